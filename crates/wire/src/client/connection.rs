//! A connection: connect, log in, send and receive payloads, end. What the payloads of statements and dumps mean is
//! the business of `query` and `dump`.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::io_error::classify;
use super::socket::{Watch, is_silence};
use super::stream::{ShutdownHandle, Stream};
use crate::codec::capabilities as cap;
use crate::codec::error_packet::parse_error;
use crate::codec::packet::{Frame, PacketReader, PayloadWriter, write_payload};
use crate::codec::server_info::ServerInfo;
use crate::error::{Error, Statement};

/// Chunk for reading answers to statements, in bytes.
pub(crate) const READ_CHUNK_BYTES: usize = 16 << 10;
/// After so long without a byte a reader looks whether the server still has something to say.
const SILENCE: Duration = Duration::from_secs(1);
/// So much surely fits into the buffers of a server that is busy with the statement before: above it the server's machine may say for long that it has no
/// room, though nothing is wrong.
pub(crate) const AHEAD_BYTES_MAX: usize = 32 << 10;

/// A query whose results are still to be read.
pub(crate) struct PendingQuery {
    /// The sequence number that its answer starts with.
    pub(crate) sequence: u8,
    /// For the server's errors about it.
    pub(crate) statement: Statement,
    /// Its length.
    pub(crate) bytes: usize,
}

/// One connection to a server. Dropping it says goodbye to the server if that can be done without waiting.
pub struct Connection {
    pub(crate) stream: Stream,
    pub(crate) reader: PacketReader,
    pub(crate) server: ServerInfo,
    pub(crate) capabilities: u32,
    /// The queries sent and not yet answered.
    pub(crate) pending: VecDeque<PendingQuery>,
    /// Bytes that were sent behind a query that is not answered yet.
    pub(crate) ahead_bytes: usize,
    /// Whether a machine that is gone is noticed: not while much is ahead.
    pub(crate) watch: Watch,
    /// The login went by the password that the server had in its cache, and there is no other way over this line.
    pub(crate) needs_password_cache: bool,
    /// Set once an error left the stream in an unknown state.
    pub(crate) broken: bool,
    /// A ping was sent behind the query that is being answered, and its answer is still to come.
    pub(crate) asked: bool,
    /// Most bytes of the answer to one query.
    pub(crate) answer_bytes_max: usize,
    pub(crate) shutdown: ShutdownHandle,
    pub(crate) read_timeout: Option<Duration>,
    /// A read returns after so long without a byte: `read_timeout` or a part of it.
    pub(crate) silence: Duration,
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
    /// What the server said of itself.
    pub fn server(&self) -> &ServerInfo {
        &self.server
    }

    /// SHA-256 of the certificate that the server has shown, if the connection is inside TLS.
    pub fn certificate_fingerprint(&self) -> Option<[u8; 32]> {
        self.stream.certificate()
    }

    /// True where the next login is refused once the server has forgotten the password: it restarts, or somebody executes FLUSH PRIVILEGES. Only
    /// caching_sha2_password without TLS has such a cache; then the password may not be sent ([`PasswordOptions`](crate::PasswordOptions)).
    pub fn needs_password_cache(&self) -> bool {
        self.needs_password_cache
    }

    /// Limit for every wait for an answer from now on; `None` waits for ever. After [`Error::Timeout`] the
    /// connection cannot be used any more.
    pub fn set_read_timeout(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        self.read_timeout = timeout;
        self.silence = timeout.map_or(SILENCE, |timeout| timeout.min(SILENCE));
        self.stream
            .socket()
            .set_read_timeout(self.silence)
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
        self.execute_repeatable("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci").map(|_| ())
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
            Some(0xff) => Err(self.mark(parse_error(&frame.payload, 0))),
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

    /// Notes that so many bytes are sent behind what is not answered yet.
    pub(crate) fn sends_ahead(&mut self, bytes: usize) -> Result<(), Error> {
        self.ahead_bytes = self.ahead_bytes.saturating_add(bytes);
        if self.ahead_bytes > AHEAD_BYTES_MAX { self.watch_peer(Watch::Off) } else { Ok(()) }
    }

    /// The oldest query is answered: the next one is no longer behind it.
    pub(crate) fn is_answered(&mut self) -> Result<(), Error> {
        self.ahead_bytes = self.pending.iter().skip(1).map(|pending| pending.bytes).sum();
        if self.ahead_bytes <= AHEAD_BYTES_MAX / 2 { self.watch_peer(Watch::On) } else { Ok(()) }
    }

    fn watch_peer(&mut self, watch: Watch) -> Result<(), Error> {
        if self.watch == watch {
            return Ok(());
        }
        self.watch = watch;
        let set = self.stream.socket().watch_peer(watch);
        set.map_err(|source| Error::Io { during: "setting the socket's options", source })
    }

    /// Sends one payload; returns the sequence number of the answer.
    pub(crate) fn send(&mut self, sequence: u8, parts: &[&[u8]], during: &'static str) -> Result<u8, Error> {
        let sent = write_payload(&mut self.stream, sequence, parts).and_then(|next| self.stream.flush().map(|()| next));
        sent.map_err(|error| self.not_sent(error, during))
    }

    /// The same of a command whose payload, of so many bytes, `write` writes.
    pub(crate) fn send_written(
        &mut self,
        bytes: usize,
        during: &'static str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<u8, Error> {
        let sent = PayloadWriter::begin(&mut self.stream, 0, bytes)
            .and_then(|mut payload| write(&mut payload).and_then(|()| payload.end()))
            .and_then(|next| self.stream.flush().map(|()| next));
        sent.map_err(|error| self.not_sent(error, during))
    }

    fn not_sent(&mut self, error: io::Error, during: &'static str) -> Error {
        let error = self.reason_for_closing().unwrap_or_else(|| self.classify(error, during));
        self.mark(error)
    }

    /// A server that closes (packet too large, idle for too long, killed) mostly says why before; that is worth more
    /// than "broken pipe".
    fn reason_for_closing(&mut self) -> Option<Error> {
        if !self.pending.is_empty() || self.shutdown.is_shut_down() {
            return None;
        }
        self.stream.socket().set_read_timeout(Duration::from_millis(500)).ok()?;
        let frame = self.reader.read(&mut self.stream).ok()?;
        let error = (frame.payload.first() == Some(&0xff)).then(|| parse_error(&frame.payload, 0));
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
            let waited = self.silence + since.get_or_insert_with(Instant::now).elapsed();
            if !is_silence(&error) || self.read_timeout.is_some_and(|timeout| waited >= timeout) {
                let error = self.classify(error, during);
                return Err(self.mark(error));
            }
            self.stream.socket().hurry_up();
            silent(self)?;
        }
    }

    /// Takes in what has come, without waiting for a whole packet. False: nothing has come, or much is here that was not received yet.
    pub(crate) fn take_in(&mut self, during: &'static str) -> Result<bool, Error> {
        match self.reader.take_in(&mut self.stream) {
            Err(error) if is_silence(&error) => Ok(false),
            Err(error) => {
                let error = self.classify(error, during);
                Err(self.mark(error))
            }
            taken => Ok(taken.unwrap_or(false)),
        }
    }

    fn classify(&self, error: io::Error, during: &'static str) -> Error {
        if self.shutdown.is_shut_down() {
            return Error::ShutDown;
        }
        classify(error, during, self.read_timeout)
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
