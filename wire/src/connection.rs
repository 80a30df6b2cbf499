//! A connection: connect, log in, send and receive payloads, end. What the payloads of statements and dumps mean is
//! the business of `query` and `dump`.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::auth::{self, Answer, Plugin};
use crate::capabilities as cap;
use crate::error::Error;
use crate::handshake::{self, AuthSwitch, Greeting};
use crate::options::{ConnectOptions, SslMode};
use crate::packet::{Frame, PacketReader, write_payload};
use crate::server_info::ServerInfo;
use crate::stream::{ShutdownHandle, Socket, Stream};
use crate::tls;

/// Chunk for reading answers to statements, in bytes.
const READ_CHUNK_BYTES: usize = 16 << 10;
/// After so long without a byte a reader looks whether the server still has something to say.
const SILENCE: Duration = Duration::from_secs(1);
/// An authentication takes two or three rounds; a server that wants more is broken.
const MAX_AUTH_ROUNDS: usize = 16;

/// A query whose results are still to be read.
pub(crate) struct Pending {
    /// The sequence number that its answer starts with.
    pub(crate) sequence: u8,
    /// Its text mentions a password, so the server's errors about it must not be quoted.
    pub(crate) sensitive: bool,
}

/// One connection to a server. Dropping it says goodbye to the server if that can be done without waiting.
pub struct Connection {
    pub(crate) stream: Stream,
    pub(crate) reader: PacketReader,
    pub(crate) server: ServerInfo,
    pub(crate) capabilities: u32,
    /// The queries sent and not yet answered.
    pub(crate) pending: VecDeque<Pending>,
    /// Set once an error left the stream in an unknown state.
    pub(crate) broken: bool,
    /// A ping was sent behind the query that is being answered, and its answer is still to come.
    pub(crate) asked: bool,
    shutdown: ShutdownHandle,
    read_timeout: Option<Duration>,
    /// A read returns after so long without a byte: `read_timeout` or a part of it.
    silence: Duration,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("server", &self.server)
            .field("pending", &self.pending.len())
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

/// To wait for it together with others, or for more than one answer. Whoever reads or writes breaks the connection.
impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.socket().as_fd()
    }
}

impl Connection {
    /// Connects and logs in.
    ///
    /// With [`SslMode::Preferred`] a server that says that it has no TLS which this client speaks (only TLS 1.0 or 1.1, or no cipher with elliptic
    /// curves) is connected to without TLS, with a warning in the log: that mode protects against listeners where it can, and it never refused a
    /// server for having no TLS at all. Not so where the connection only ends in the handshake, or where there was TLS before.
    pub fn connect(options: &ConnectOptions) -> Result<Connection, Error> {
        let message = match Connection::connect_once(options) {
            Err(Error::TlsIncompatible { message }) if options.effective_ssl_mode() == SslMode::Preferred => message,
            other => return other,
        };
        if options.had_tls.load(Ordering::Relaxed) {
            let message = format!(
                "{message}. There was TLS with {} before, so it is not connected to in clear: see what is between here and there, and what has \
                 changed on the server; if it is meant, begin again",
                options.address()
            );
            return Err(Error::TlsIncompatible { message });
        }
        tracing::warn!(server = %options.address(), "connecting without encryption, for the server's TLS is too old: {message}");
        Connection::connect_once(&ConnectOptions { ssl_mode: SslMode::Disabled, ..options.clone() })
    }

    fn connect_once(options: &ConnectOptions) -> Result<Connection, Error> {
        let socket = Socket::connect(options)?;
        let set_up = |source| Error::Io { during: "setting up the socket", source };
        socket.set_read_timeout(Some(options.connect_timeout)).map_err(set_up)?;
        socket.set_write_timeout(Some(options.connect_timeout)).map_err(set_up)?;
        let shutdown = ShutdownHandle::new(&socket).map_err(set_up)?;
        let mut stream = Stream::Plain(socket);
        let mut reader = PacketReader::new(READ_CHUNK_BYTES);

        let during = "waiting for the server's greeting";
        let frame = reader
            .read(&mut stream)
            .map_err(|error| classify(error, during, &shutdown, Some(options.connect_timeout)))?;
        let greeting = Greeting::parse(&frame.payload).map_err(|error| handshake::login_error(error, options))?;
        let mut sequence = frame.sequence.wrapping_add(1);
        let mut capabilities = greeting.capabilities & cap::WANTED;
        if options.database.is_some() {
            capabilities |= cap::CONNECT_WITH_DB;
        }

        if wants_tls(options, &greeting)? {
            capabilities |= cap::SSL;
            // Anything before TLS could have been put there by somebody else.
            if reader.has_buffered() {
                return Err(Error::protocol("the server sent data before TLS was set up"));
            }
            sequence = write_payload(&mut stream, sequence, &[&handshake::ssl_request(capabilities)])
                .map_err(|error| classify(error, "asking for TLS", &shutdown, Some(options.connect_timeout)))?;
            if let Stream::Plain(socket) = stream {
                stream = tls::wrap(socket, options, &greeting.server)?;
                options.had_tls.store(true, Ordering::Relaxed);
            }
        }

        let mut server = greeting.server.clone();
        server.tls = stream.is_tls();
        let mut connection = Connection {
            stream,
            reader,
            server,
            capabilities,
            pending: VecDeque::new(),
            // Until the login is through there is nobody to say goodbye to.
            broken: true,
            asked: false,
            shutdown,
            read_timeout: Some(options.connect_timeout),
            silence: options.connect_timeout,
        };
        connection.log_in(options, greeting, sequence).map_err(|error| handshake::login_error(error, options))?;
        connection.broken = false;
        connection.stream.socket().set_write_timeout(None).map_err(set_up)?;
        connection.set_read_timeout(options.read_timeout)?;
        tracing::debug!(
            server = %options.address(),
            version = %connection.server.version_text,
            connection_id = connection.server.connection_id,
            tls = connection.server.tls,
            "connected"
        );
        Ok(connection)
    }

    fn log_in(&mut self, options: &ConnectOptions, greeting: Greeting, mut sequence: u8) -> Result<(), Error> {
        let during = "logging in";
        let password = options.password.as_ref().map_or("", |password| password.expose());
        let (private, tls) = (self.stream.is_private(), self.stream.is_tls());
        let mut nonce = greeting.nonce;
        // The server's default is a guess at the account's plugin; a wrong one costs a round, not the login.
        let mut plugin = match Plugin::from_name(&greeting.auth_plugin) {
            Some(plugin @ (Plugin::Native | Plugin::CachingSha2 | Plugin::Ed25519)) => plugin,
            _ => Plugin::Native,
        };
        let mut key_awaited = false;
        let first = match plugin.answer(password, &nonce, private, tls)? {
            Answer::Bytes(bytes) => bytes,
            Answer::ClearPassword | Answer::RequestKey(_) => Vec::new(),
        };
        let response = handshake::response(options, self.capabilities, plugin.name(), &first);
        self.send(sequence, &[&response], during)?;

        for _ in 0..MAX_AUTH_ROUNDS {
            let frame = self.receive(during)?;
            sequence = frame.sequence.wrapping_add(1);
            match frame.payload.first() {
                Some(0x00) => return Ok(()),
                Some(0xff) => return Err(handshake::parse_error(&frame.payload, 0)),
                Some(0xfe) => {
                    let switch = AuthSwitch::parse(&frame.payload);
                    plugin = Plugin::from_name(&switch.plugin).ok_or_else(|| auth::unsupported(&switch.plugin))?;
                    nonce = switch.nonce;
                    match plugin.answer(password, &nonce, private, tls)? {
                        Answer::Bytes(bytes) => self.send(sequence, &[&bytes], during)?,
                        Answer::ClearPassword => self.send(sequence, &[password.as_bytes(), &[0]], during)?,
                        Answer::RequestKey(byte) => {
                            key_awaited = true;
                            self.send(sequence, &[&[byte]], during)?
                        }
                    };
                }
                Some(0x01) => {
                    let data = frame.payload.get(1..).unwrap_or_default();
                    match (plugin, data) {
                        (Plugin::CachingSha2 | Plugin::Sha256, key) if key_awaited => {
                            key_awaited = false;
                            let sealed = auth::encrypt_password(password.as_bytes(), &nonce, key)?;
                            self.send(sequence, &[&sealed], during)?;
                        }
                        // The server knew the password's hash; its OK follows.
                        (Plugin::CachingSha2, [3]) => {}
                        (Plugin::CachingSha2, [4]) if private => {
                            self.send(sequence, &[password.as_bytes(), &[0]], during)?;
                        }
                        (Plugin::CachingSha2, [4]) => {
                            key_awaited = true;
                            self.send(sequence, &[&[2]], during)?;
                        }
                        _ => {
                            let what = format!("data that the plugin {} does not expect", plugin.name());
                            return Err(Error::protocol(what));
                        }
                    }
                }
                _ => return Err(Error::protocol("an unknown packet during the login")),
            }
        }
        Err(Error::protocol("the login does not come to an end"))
    }

    /// What the server said of itself.
    pub fn server(&self) -> &ServerInfo {
        &self.server
    }

    /// Limit for every wait for an answer from now on; `None` waits for ever. After [`Error::Timeout`] the
    /// connection cannot be used any more.
    pub fn set_read_timeout(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        self.read_timeout = timeout;
        self.silence = timeout.map_or(SILENCE, |timeout| timeout.min(SILENCE));
        self.stream
            .socket()
            .set_read_timeout(Some(self.silence))
            .map_err(|source| Error::Io { during: "setting the read timeout", source })
    }

    /// The read timeout in effect.
    pub fn read_timeout(&self) -> Option<Duration> {
        self.read_timeout
    }

    /// A handle with which another thread can end this connection.
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        self.shutdown.clone()
    }

    /// True when an earlier error made the connection unusable.
    pub fn is_broken(&self) -> bool {
        self.broken || self.shutdown.is_shut_down()
    }

    /// Asks whether the server is there.
    pub fn ping(&mut self) -> Result<(), Error> {
        self.simple_command(&[&[cap::COM_PING]], "pinging").map(|_| ())
    }

    /// Back to the state after the login: rolls back, frees locks, drops temporary tables, session and user
    /// variables. Needs MySQL 5.7.3 or MariaDB 10.2.4.
    pub fn reset(&mut self) -> Result<(), Error> {
        self.simple_command(&[&[cap::COM_RESET_CONNECTION]], "resetting the connection")?;
        // MySQL 5.7 goes back to the server's character set, not to the one of the login.
        self.execute("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci").map(|_| ())
    }

    /// Says goodbye and closes.
    pub fn close(self) {
        drop(self);
    }

    /// Sends a command that is answered by one OK packet.
    pub(crate) fn simple_command(&mut self, parts: &[&[u8]], during: &'static str) -> Result<Bytes, Error> {
        self.check_idle(during)?;
        self.send(0, parts, during)?;
        let frame = self.receive(during)?;
        match frame.payload.first() {
            Some(0x00) => Ok(frame.payload),
            Some(0xff) => Err(self.mark(handshake::parse_error(&frame.payload, 0))),
            _ => Err(self.mark(Error::protocol(format!("an unknown answer while {during}")))),
        }
    }

    pub(crate) fn check_usable(&self, during: &'static str) -> Result<(), Error> {
        if self.shutdown.is_shut_down() {
            Err(Error::ShutDown)
        } else if self.broken {
            Err(Error::Lost { during })
        } else {
            Ok(())
        }
    }

    pub(crate) fn check_idle(&self, during: &'static str) -> Result<(), Error> {
        self.check_usable(during)?;
        match self.pending.len() {
            0 => Ok(()),
            pending => Err(Error::Busy { pending }),
        }
    }

    /// Remembers that the connection is unusable if the error says so.
    pub(crate) fn mark(&mut self, error: Error) -> Error {
        self.broken |= error.is_connection_lost();
        error
    }

    /// Sends one payload; returns the sequence number of the answer.
    pub(crate) fn send(&mut self, sequence: u8, parts: &[&[u8]], during: &'static str) -> Result<u8, Error> {
        let sent = write_payload(&mut self.stream, sequence, parts).and_then(|next| self.stream.flush().map(|()| next));
        sent.map_err(|error| {
            let error = self.reason_for_closing().unwrap_or_else(|| self.classify(error, during));
            self.mark(error)
        })
    }

    /// A server that closes (packet too large, idle for too long, killed) mostly says why before; that is worth more
    /// than "broken pipe".
    fn reason_for_closing(&mut self) -> Option<Error> {
        if !self.pending.is_empty() || self.shutdown.is_shut_down() {
            return None;
        }
        self.stream.socket().set_read_timeout(Some(Duration::from_millis(500))).ok()?;
        let frame = self.reader.read(&mut self.stream).ok()?;
        let error = (frame.payload.first() == Some(&0xff)).then(|| handshake::parse_error(&frame.payload, 0));
        self.broken = true;
        error
    }

    /// The next payload, whatever its sequence number.
    pub(crate) fn receive(&mut self, during: &'static str) -> Result<Frame, Error> {
        self.receive_or(during, |_| Ok(()))
    }

    /// The same; `silent` is called each time that nothing has come for a while.
    pub(crate) fn receive_or(
        &mut self,
        during: &'static str,
        mut silent: impl FnMut(&mut Self) -> Result<(), Error>,
    ) -> Result<Frame, Error> {
        let mut since = None;
        loop {
            let error = match self.reader.read(&mut self.stream) {
                Ok(frame) => return Ok(frame),
                Err(error) => error,
            };
            let is_silence = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
            let waited = self.silence + since.get_or_insert_with(Instant::now).elapsed();
            if !is_silence || self.read_timeout.is_some_and(|timeout| waited >= timeout) {
                let error = self.classify(error, during);
                return Err(self.mark(error));
            }
            silent(self)?;
        }
    }

    pub(crate) fn classify(&self, error: io::Error, during: &'static str) -> Error {
        classify(error, during, &self.shutdown, self.read_timeout)
    }
}

fn wants_tls(options: &ConnectOptions, greeting: &Greeting) -> Result<bool, Error> {
    let offered = greeting.capabilities & cap::SSL != 0;
    match options.effective_ssl_mode() {
        SslMode::Disabled => Ok(false),
        SslMode::Preferred => Ok(offered && options.socket.is_none()),
        SslMode::Required | SslMode::VerifyCa | SslMode::VerifyIdentity if offered => Ok(true),
        SslMode::Required | SslMode::VerifyCa | SslMode::VerifyIdentity => Err(Error::Tls {
            message: "the ssl-mode asks for encryption, but the server does not offer it: set ssl_cert and ssl_key \
                      on the server, or use ssl-mode=preferred"
                .to_owned(),
        }),
    }
}

fn classify(error: io::Error, during: &'static str, shutdown: &ShutdownHandle, timeout: Option<Duration>) -> Error {
    use io::ErrorKind as Kind;
    if shutdown.is_shut_down() {
        return Error::ShutDown;
    }
    match error.kind() {
        Kind::UnexpectedEof | Kind::ConnectionReset | Kind::BrokenPipe | Kind::ConnectionAborted => {
            Error::Lost { during }
        }
        Kind::WouldBlock | Kind::TimedOut => Error::Timeout { during, after: timeout.unwrap_or_default() },
        Kind::InvalidData if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) => {
            Error::Tls { message: error.to_string() }
        }
        Kind::InvalidData => Error::protocol(format!("{error} while {during}")),
        _ => Error::Io { during, source: error },
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.is_broken() && self.pending.is_empty() {
            // Few bytes into an idle socket: this does not block.
            let _ = write_payload(&mut self.stream, 0, &[&[cap::COM_QUIT]]).and_then(|_| self.stream.flush());
        }
        // Clones of the handle hold the socket open; without this the server would keep the session for as long.
        self.shutdown.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn can_move_between_threads() {
        fn send<T: Send>() {}
        fn send_and_sync<T: Send + Sync>() {}
        send::<Connection>();
        send::<crate::BinlogStream>();
        send_and_sync::<ShutdownHandle>();
        send_and_sync::<Error>();
        send_and_sync::<crate::Row>();
    }
}
