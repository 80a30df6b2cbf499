//! One client that has logged in: its commands, the answers to them, and events for it.

use std::io::{self, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use binlog::Flavour;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::answer::{self, Rows, ServerError};
use super::auth::{Account, Accounts};
use super::login::{self, AcceptedClient};
use super::options::{PeerError, PeerOptions};
use super::stream::Stream;
use crate::codec::capabilities as cap;
use crate::codec::command::Command;
use crate::codec::packet::{Frame, MAX_PACKET_PAYLOAD_BYTES, PacketReader, PayloadWriter, write_payload};
use crate::codec::semi_sync::{MAGIC, REPLY_BYTES_MAX, Reply};

/// What may wait to be sent together.
const WAITING_BYTES_MAX: usize = 128 << 10;
/// A larger payload goes without being copied.
const COPIED_BYTES_MAX: usize = 32 << 10;
/// What an idle connection keeps.
const IDLE_BYTES: usize = 4 << 10;
/// Chunk for what clients send: commands are short.
const READ_CHUNK_BYTES: usize = 2 << 10;

/// Ends a connection from another thread.
#[derive(Debug)]
pub struct Closer(TcpStream);

impl Closer {
    /// Of a socket.
    pub fn new(tcp: &TcpStream) -> io::Result<Self> {
        tcp.try_clone().map(Closer)
    }

    /// Whatever waits for the connection ends.
    pub fn close(&self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// What an event of a semi-synchronous stream wants of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventReply {
    /// Nothing.
    Nothing,
    /// A reply.
    Reply,
}

/// A client that has logged in.
#[derive(Debug)]
pub struct Peer {
    stream: Stream,
    reader: PacketReader,
    capabilities: u32,
    account: Arc<Account>,
    from: IpAddr,
    /// Number of the next packet that is sent.
    sequence: u8,
    waiting: Vec<u8>,
    /// Two bytes stand before each event, and the client sends replies. The number of the compressed packet behind each event that it replies to.
    semi_sync: Option<u8>,
}

impl Peer {
    /// Greets a client and lets it log in. Who is refused was told so when this returns.
    pub fn accept(
        tcp: TcpStream,
        number: u32,
        options: &PeerOptions,
        accounts: &dyn Accounts,
    ) -> Result<Peer, PeerError> {
        let AcceptedClient { stream, capabilities, account, from } = login::log_in(tcp, number, options, accounts)?;
        let reader = PacketReader::new(READ_CHUNK_BYTES, options.command_bytes_max);
        Ok(Peer { stream, reader, capabilities, account, from, sequence: 0, waiting: Vec::new(), semi_sync: None })
    }

    /// The account's name.
    pub fn user(&self) -> &str {
        &self.account.user
    }

    /// Where the client is.
    pub fn from(&self) -> IpAddr {
        self.from
    }

    /// The next command. A client that has left is [`Command::Quit`].
    pub fn command(&mut self) -> Result<Command, PeerError> {
        self.waiting.shrink_to(IDLE_BYTES);
        let Frame { sequence, payload } = match self.reader.read(&mut self.stream) {
            Ok(frame) => frame,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Command::Quit),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(self.too_large(&error)),
            Err(source) => return Err(PeerError::Gone { during: "waiting for a command", source }),
        };
        self.sequence = sequence.wrapping_add(1);
        Ok(Command::parse(&payload))
    }

    /// A client that sends more than it may is told so, and is served no longer.
    fn too_large(&mut self, error: &io::Error) -> PeerError {
        self.sequence = 1;
        // A replica that is told of the packet's size comes again, and again.
        let told = match self.reader.refused() {
            Some((&[cap::COM_BINLOG_DUMP_GTID, ..], limit)) => {
                let text = format!("The replica's request with its GTID set is larger than {} MiB", limit >> 20);
                ServerError::new(1236, "HY000", text)
            }
            _ => ServerError::new(1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes"),
        };
        let _ = self.error(&told);
        PeerError::Protocol(crate::Error::protocol(error.to_string()))
    }

    /// Done.
    pub fn ok(&mut self) -> Result<(), PeerError> {
        self.put(&[&answer::ok(0)])?;
        self.flush()
    }

    /// Not done.
    pub fn error(&mut self, error: &ServerError) -> Result<(), PeerError> {
        self.put(&[&error.encode()])?;
        self.flush()
    }

    /// The stream of events ends here. Also the answer to [`Command::SetOption`].
    pub fn end(&mut self) -> Result<(), PeerError> {
        self.put(&[&answer::eof()])?;
        self.flush()
    }

    /// A result with rows.
    pub fn rows(&mut self, rows: &Rows) -> Result<(), PeerError> {
        for packet in rows.encode(self.capabilities) {
            self.put(&[&packet])?;
        }
        self.flush()
    }

    /// A statement was prepared under this number: it takes so many values.
    pub fn prepared(&mut self, number: u32, values: u16) -> Result<(), PeerError> {
        for packet in answer::prepared(number, values, self.capabilities) {
            self.put(&[&packet])?;
        }
        self.flush()
    }

    /// A result with rows, of a statement that was prepared.
    pub fn binary_rows(&mut self, rows: &Rows) -> Result<(), PeerError> {
        for packet in rows.encode_binary(self.capabilities) {
            self.put(&[&packet])?;
        }
        self.flush()
    }

    /// A line without a mark: the answer to [`Command::Statistics`].
    pub fn line(&mut self, text: &str) -> Result<(), PeerError> {
        self.put(&[text.as_bytes()])?;
        self.flush()
    }

    /// An event of a stream. It is sent when enough have come together, or by [`flush`](Self::flush).
    pub fn event(&mut self, event: &[u8]) -> Result<(), PeerError> {
        let before: &[u8] = if self.semi_sync.is_some() { &[0, MAGIC, 0] } else { &[0] };
        self.put(&[before, event])
    }

    /// The stream that follows is semi-synchronous: replies come in between. Behind each, packets are numbered anew: on all servers from 1 on, and compressed packets on MySQL from
    /// 0, on MariaDB from 1.
    pub fn begin_semi_sync(&mut self, flavour: Flavour) {
        self.semi_sync = Some(match flavour {
            Flavour::MySql => 0,
            Flavour::MariaDb => 1,
        });
        self.reader.set_payload_bytes_max(REPLY_BYTES_MAX);
        self.stream.timed_mut().read_without_waiting();
    }

    /// An event that the client has to reply to. It is sent at once.
    pub fn event_for_reply(&mut self, event: &[u8]) -> Result<(), PeerError> {
        self.put(&[&[0, MAGIC, 1], event])?;
        self.flush()?;
        self.reply_follows();
        Ok(())
    }

    fn reply_follows(&mut self) {
        // The client's reply is number 0.
        self.sequence = 1;
        self.stream.number_from(self.semi_sync.unwrap_or_default());
    }

    /// An event of `bytes` bytes that is never whole in memory: `send` hands it on piece by piece. Sent at once. With [`EventReply::Reply`] as [`event_for_reply`](Self::event_for_reply).
    ///
    /// # Errors
    /// The client is gone, or `send` fails. The client then waits for the rest of the event, and can not be told anything: the connection has to end.
    pub fn large_event<E: From<PeerError>>(
        &mut self,
        bytes: usize,
        wants: EventReply,
        send: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), PeerError>) -> Result<(), E>,
    ) -> Result<(), E> {
        let asks = wants == EventReply::Reply;
        let before: &[u8] = if self.semi_sync.is_some() { &[0, MAGIC, u8::from(asks)] } else { &[0] };
        self.write_waiting().map_err(gone)?;
        let mut writer = PayloadWriter::begin(&mut self.stream, self.sequence, before.len() + bytes).map_err(gone)?;
        writer.write_all(before).map_err(gone)?;
        send(&mut |piece| writer.write_all(piece).map_err(gone))?;
        self.sequence = writer.end().map_err(gone)?;
        if asks {
            self.flush()?;
            self.reply_follows();
        }
        Ok(())
    }

    /// A reply, if a whole one has come. Does not wait.
    pub fn reply(&mut self) -> Result<Option<Reply>, PeerError> {
        match self.reader.read(&mut self.stream) {
            Ok(frame) => Reply::parse(&frame.payload).map(Some).map_err(PeerError::Protocol),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(source) => Err(PeerError::Gone { during: "waiting for a reply", source }),
        }
    }

    /// Sends what waits.
    pub fn flush(&mut self) -> Result<(), PeerError> {
        self.write_waiting().and_then(|()| self.stream.flush()).map_err(gone)
    }

    /// True when nothing waits to be sent.
    pub fn is_flushed(&self) -> bool {
        self.waiting.is_empty()
    }

    /// From here on a client may take in nothing for so long.
    pub fn set_write_timeout(&mut self, timeout: Duration) {
        self.stream.timed_mut().set_write_timeout(timeout);
    }

    /// Gives memory back before a longer wait.
    pub fn rest(&mut self) {
        self.waiting.shrink_to(IDLE_BYTES);
    }

    /// Whether the client has closed the connection. Does not wait.
    pub fn has_left(&self) -> bool {
        let left = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let mut poll_fd = [PollFd::new(self.stream.timed().tcp(), left)];
        match poll(&mut poll_fd, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(_) => poll_fd.iter().any(|polled| polled.revents().intersects(left)),
            Err(error) => error != rustix::io::Errno::INTR,
        }
    }

    fn put(&mut self, parts: &[&[u8]]) -> Result<(), PeerError> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if bytes > COPIED_BYTES_MAX || bytes >= MAX_PACKET_PAYLOAD_BYTES {
            self.write_waiting().map_err(gone)?;
            self.sequence = write_payload(&mut self.stream, self.sequence, parts).map_err(gone)?;
            return Ok(());
        }
        if self.waiting.len() + bytes > WAITING_BYTES_MAX {
            self.write_waiting().map_err(gone)?;
        }
        self.sequence = write_payload(&mut self.waiting, self.sequence, parts).map_err(gone)?;
        Ok(())
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        let written = self.stream.write_all(&self.waiting);
        self.waiting.clear();
        written
    }
}

/// To wait for a client's replies and for something else at once.
impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.timed().tcp().as_fd()
    }
}

/// An error in place of the greeting: nobody is let in.
pub fn refuse(tcp: &mut TcpStream, error: &ServerError) -> io::Result<()> {
    write_payload(tcp, 0, &[&error.encode()]).map(|_| ())
}

fn gone(source: io::Error) -> PeerError {
    PeerError::Gone { during: "sending", source }
}
