//! Connecting: the socket, the greeting, TLS, the login, in this order, and all of it within one deadline. Nothing before the login may be large.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::connection::{Connection, READ_CHUNK_BYTES};
use super::io_error::classify;
use super::login;
use super::options::{ConnectOptions, SslMode};
use super::socket::{Socket, Watch};
use super::stream::{ShutdownHandle, Stream};
use super::tls;
use crate::codec::capabilities as cap;
use crate::codec::handshake::{self, Greeting};
use crate::codec::packet::{PacketReader, write_payload};
use crate::error::Error;

/// Greetings and errors have a few hundred bytes, RSA keys two thousand, the data of exotic plugins (Kerberos tickets) some ten thousand.
const LOGIN_PAYLOAD_BYTES_MAX: usize = 64 << 10;
const SET_UP: &str = "setting up the socket";

impl Connection {
    /// Connects and logs in.
    ///
    /// With [`SslMode::Preferred`] a server that says that it has no TLS which this client speaks (only TLS 1.0 or 1.1, or no cipher with elliptic
    /// curves) is connected to without TLS, with a warning in the log: that mode protects against listeners where it can, and it never refused a
    /// server for having no TLS at all. Not so where the connection only ends in the handshake, or where there was TLS before.
    pub fn connect(options: &ConnectOptions) -> Result<Connection, Error> {
        let message = match connect_once(options) {
            Err(Error::TlsIncompatible { message }) if options.effective_ssl_mode() == SslMode::Preferred => message,
            other => return other,
        };
        if options.tls.had_tls.load(Ordering::Relaxed) {
            let message = format!(
                "{message}. There was TLS with {} before, so it is not connected to in clear: see what is between here and there, and what has \
                 changed on the server; if it is meant, begin again",
                options.address()
            );
            return Err(Error::TlsIncompatible { message });
        }
        tracing::warn!(server = %options.address(), "connecting without encryption, for the server's TLS is too old: {message}");
        let mut in_clear = options.clone();
        in_clear.tls.mode = SslMode::Disabled;
        connect_once(&in_clear)
    }
}

fn connect_once(options: &ConnectOptions) -> Result<Connection, Error> {
    let timeout = Some(options.limits.connect_timeout);
    let socket = Socket::connect(options)?;
    let set_up = |source| Error::Io { during: SET_UP, source };
    let shutdown = ShutdownHandle::new(&socket).map_err(set_up)?;
    let mut stream = Stream::Plain(socket);
    let mut reader = PacketReader::new(READ_CHUNK_BYTES, LOGIN_PAYLOAD_BYTES_MAX);

    let frame =
        reader.read(&mut stream).map_err(|error| classify(error, "waiting for the server's greeting", timeout))?;
    let greeting = Greeting::parse(&frame.payload).map_err(|error| login::refusal(error, options))?;
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
            .map_err(|error| classify(error, "asking for TLS", timeout))?;
        if let Stream::Plain(socket) = stream {
            stream = tls::wrap(socket, options, &greeting.server)?;
            options.tls.had_tls.store(true, Ordering::Relaxed);
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
        ahead_bytes: 0,
        watch: Watch::On,
        needs_password_cache: false,
        // Until the login is through there is nobody to say goodbye to.
        broken: true,
        asked: false,
        answer_bytes_max: options.limits.answer_bytes_max,
        shutdown,
        read_timeout: timeout,
        silence: options.limits.connect_timeout,
    };
    login::log_in(&mut connection, options, greeting, sequence).map_err(|error| login::refusal(error, options))?;
    connection.broken = false;
    connection.stream.socket_mut().logged_in().map_err(set_up)?;
    connection.reader.set_payload_bytes_max(options.limits.answer_bytes_max);
    connection.set_read_timeout(options.limits.read_timeout)?;
    tracing::debug!(
        server = %options.address(),
        version = %connection.server.version_text,
        connection_id = connection.server.connection_id,
        tls = connection.server.tls,
        "connected"
    );
    Ok(connection)
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
