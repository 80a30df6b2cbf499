//! Binary log dumps: what a replica tells the server before, the dump commands, and the stream of events. Events are
//! passed on as bytes; nothing here looks into them.
//!
//! Sources: "COM_BINLOG_DUMP", "COM_BINLOG_DUMP_GTID", "COM_REGISTER_SLAVE" in the MySQL protocol documentation;
//! "Replication Protocol" and "5-Slave Registration" in MariaDB's; semi-synchronous replication: MySQL's
//! `semisync.h` wire format as documented in WL#1720.

use std::time::Duration;

use bytes::{Buf, Bytes};

use binlog::Flavour;

use super::connection::Connection;
use super::replica_uuid::{uuid, uuid_of};
use super::stream::ShutdownHandle;
use crate::codec::capabilities as cap;
use crate::codec::error_packet::parse_error;
use crate::codec::packet::MAX_PAYLOAD_BYTES;
use crate::codec::semi_sync::MAGIC as SEMI_SYNC_MAGIC;
use crate::codec::server_info::ServerInfo;
use crate::error::Error;

/// Chunk for reading events, in bytes.
const READ_CHUNK_BYTES: usize = 1 << 20;
const READING: &str = "reading the binary log";
/// `@mariadb_slave_capability` of who knows MariaDB's GTID events.
const KNOWS_GTIDS: u32 = 4;
/// The first event of every log file.
const FIRST_POSITION: u32 = 4;

/// Dump flag: end at the end of the log ([`Error::DumpEnded`]) instead of waiting for more.
pub const DUMP_NON_BLOCK: u16 = 1;
/// Dump flag of MariaDB: send the events that hold the statements' texts as well.
pub const DUMP_SEND_ANNOTATE_ROWS: u16 = 2;

/// From where to dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpRequest {
    /// From a file and position; both flavours.
    FilePosition {
        /// Name of the log file; empty for the server's oldest.
        file: String,
        /// Offset of the first event in bytes; 0 means the file's start. Not beyond 4 GiB: the command has four
        /// bytes for it.
        position: u64,
        /// Identifies this replica; must differ from every other replica's and the source's own.
        server_id: u32,
        /// [`DUMP_NON_BLOCK`], [`DUMP_SEND_ANNOTATE_ROWS`].
        flags: u16,
    },
    /// All that is not in a GTID set; MySQL.
    MySqlGtid {
        /// The set in the servers' binary encoding.
        gtid_set_binary: Vec<u8>,
        /// Identifies this replica.
        server_id: u32,
    },
    /// After a GTID position; MariaDB.
    MariaDb {
        /// Such as `0-1-100,1-2-5`; empty for the very start.
        slave_gtid_state: String,
        /// The server then refuses positions that it never had.
        strict: bool,
        /// Send the events that hold the statements' texts as well ([`DUMP_SEND_ANNOTATE_ROWS`]).
        annotate: bool,
        /// Identifies this replica.
        server_id: u32,
    },
}

/// What else is agreed before a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpOptions {
    /// How often the server sends a heartbeat when there is nothing to send.
    pub heartbeat_period: Duration,
    /// Silence after which [`Error::HeartbeatTimeout`] is returned; none takes four heartbeats, at least 10 seconds.
    pub read_timeout: Option<Duration>,
    /// Ask for semi-synchronous replication: [`Packet::semisync_ack`] then says which events are to be acknowledged.
    /// Without the plugin on the server nothing changes.
    pub semi_sync: bool,
    /// A UUID for this replica (MySQL): the server then ends the dump of an earlier connection with the same one. None: one that goes by its server id.
    pub replica_uuid: Option<String>,
    /// This replica is a mirror, and known by this UUID to a mirror that it attaches to. Other servers do not look at it.
    pub mirror: Option<String>,
    /// Ends at the end of the log; like [`DUMP_NON_BLOCK`].
    pub non_block: bool,
    /// A larger event is refused with [`Error::EventTooLarge`] before it is taken in; none: as large as an event can be.
    pub event_bytes_max: Option<u64>,
    /// How events come to be summed.
    pub checksums: Checksums,
    /// Which of its own events a MariaDB server may send: below 4 it replaces GTIDs, or leaves events out.
    pub mariadb_capability: u32,
}

/// Whether the server may strip the checksums that a file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksums {
    /// Every event as `binlog_checksum` says now: an older file that has checksums loses them, when it says NONE.
    #[default]
    AsServer,
    /// Every event as it is in the file.
    AsInFile,
}

impl Default for DumpOptions {
    fn default() -> Self {
        DumpOptions {
            heartbeat_period: Duration::from_secs(5),
            read_timeout: None,
            semi_sync: false,
            replica_uuid: None,
            mirror: None,
            non_block: false,
            event_bytes_max: None,
            checksums: Checksums::AsServer,
            mariadb_capability: KNOWS_GTIDS,
        }
    }
}

/// What may stand before an event in its packet.
const STATUS_BYTES: usize = 3;

/// How long an event says that it is, of which this is the beginning, behind a status byte.
fn event_bytes(head: &[u8]) -> Option<u64> {
    const LENGTH_AT: usize = 1 + 9;
    let length = head.get(LENGTH_AT..)?.first_chunk::<4>()?;
    Some(u64::from(u32::from_le_bytes(*length)))
}

/// One event as the server sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The whole event with header and checksum, if the log has them. A slice of a larger chunk: keeping it for long
    /// keeps up to a megabyte.
    pub bytes: Bytes,
    /// The source waits for [`BinlogStream::acknowledge`] of this event.
    pub semisync_ack: bool,
}

/// A connection that streams binary log events.
#[derive(Debug)]
pub struct BinlogStream {
    pub(super) connection: Connection,
    pub(super) semi_sync: bool,
}

impl Connection {
    /// Turns the connection into a stream of events, with [`DumpOptions::default`].
    pub fn binlog_dump(self, request: &DumpRequest) -> Result<BinlogStream, Error> {
        self.binlog_dump_with(request, &DumpOptions::default())
    }

    /// Turns the connection into a stream of events. The events' checksums come as they are in the log. Most mistakes
    /// in the request are reported by the first [`BinlogStream::next`].
    pub fn binlog_dump_with(mut self, request: &DumpRequest, options: &DumpOptions) -> Result<BinlogStream, Error> {
        let command = dump_command(request, &self.server, options)?;
        self.set_up_session(request, options)?;
        self.simple_command(&[&register_command(server_id(request))], "registering as a replica")?;
        let timeout = options
            .read_timeout
            .unwrap_or_else(|| options.heartbeat_period.saturating_mul(4).max(Duration::from_secs(10)));
        self.set_read_timeout(Some(timeout))?;
        self.reader.set_chunk_bytes(READ_CHUNK_BYTES);
        let bytes_max = options.event_bytes_max.and_then(|bytes| usize::try_from(bytes).ok());
        self.reader
            .set_payload_bytes_max(bytes_max.map_or(MAX_PAYLOAD_BYTES, |bytes| bytes.saturating_add(STATUS_BYTES)));
        self.send(0, &[&command], "requesting the binary log")?;
        // From here on the server expects no goodbye, and understands no other command.
        self.broken = true;
        Ok(BinlogStream { connection: self, semi_sync: options.semi_sync })
    }

    /// The session variables by which a replica tells the server what it can take.
    fn set_up_session(&mut self, request: &DumpRequest, options: &DumpOptions) -> Result<(), Error> {
        // Without this the server would send events without checksums, or refuse. Servers of before checksums
        // (5.5) do not know the global variable.
        let checksums = match (self.server.flavour, options.checksums) {
            (Flavour::MySql, Checksums::AsServer) => {
                "SET @master_binlog_checksum = @@global.binlog_checksum, \
                 @source_binlog_checksum = @@global.binlog_checksum"
            }
            (Flavour::MariaDb, Checksums::AsServer) => "SET @master_binlog_checksum = @@global.binlog_checksum",
            (Flavour::MySql, Checksums::AsInFile) => {
                "SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'"
            }
            (Flavour::MariaDb, Checksums::AsInFile) => "SET @master_binlog_checksum = 'CRC32'",
        };
        match self.execute_repeatable(checksums) {
            Err(Error::Server { code: 1193, .. }) => {}
            other => {
                other?;
            }
        }
        let sql = session_sql(request, self.server.flavour, options)?;
        self.execute_repeatable(sql)?;
        Ok(())
    }
}

fn server_id(request: &DumpRequest) -> u32 {
    match request {
        DumpRequest::FilePosition { server_id, .. }
        | DumpRequest::MySqlGtid { server_id, .. }
        | DumpRequest::MariaDb { server_id, .. } => *server_id,
    }
}

fn session_sql(request: &DumpRequest, flavour: Flavour, options: &DumpOptions) -> Result<String, Error> {
    // The servers take 1 millisecond to 4294967 seconds.
    let heartbeat_ns = options.heartbeat_period.as_nanos().clamp(1_000_000, 4_294_967_000_000_000);
    let mut set = vec![format!("@master_heartbeat_period = {heartbeat_ns}")];
    match flavour {
        Flavour::MySql => {
            set.push(format!("@source_heartbeat_period = {heartbeat_ns}"));
            let own = Some(server_id(request)).filter(|id| *id != 0).map(uuid_of);
            let given = options.replica_uuid.as_deref().or(own.as_deref());
            if let Some(uuid) = given.map(uuid).transpose()? {
                set.push(format!("@slave_uuid = '{uuid}', @replica_uuid = '{uuid}'"));
            }
        }
        Flavour::MariaDb => set.push(format!("@mariadb_slave_capability = {}", options.mariadb_capability)),
    }
    if let Some(uuid) = options.mirror.as_deref().map(uuid).transpose()? {
        set.push(format!("@heddle_mirror = '{uuid}'"));
    }
    if options.semi_sync {
        set.push("@rpl_semi_sync_slave = 1".to_owned());
        if flavour == Flavour::MySql {
            set.push("@rpl_semi_sync_replica = 1".to_owned());
        }
    }
    if let DumpRequest::MariaDb { slave_gtid_state, strict, .. } = request {
        if !slave_gtid_state.bytes().all(|byte| byte.is_ascii_digit() || b"-, ".contains(&byte)) {
            return Err(Error::DumpRequest(format!("{slave_gtid_state:?} is no MariaDB GTID position")));
        }
        set.push(format!("@slave_connect_state = '{slave_gtid_state}'"));
        set.push(format!("@slave_gtid_strict_mode = {}", u8::from(*strict)));
        set.push("@slave_gtid_ignore_duplicates = 0".to_owned());
    }
    Ok(format!("SET {}", set.join(", ")))
}

/// COM_REGISTER_SLAVE: makes the replica appear in SHOW REPLICAS. Host, user, password and port stay empty, as
/// replicas leave them without `report_host`.
fn register_command(server_id: u32) -> Vec<u8> {
    let mut out = vec![cap::COM_REGISTER_SLAVE];
    out.extend_from_slice(&server_id.to_le_bytes());
    out.extend_from_slice(&[0, 0, 0]); // lengths of host, user, password
    out.extend_from_slice(&[0, 0]); // port
    out.extend_from_slice(&[0; 4]); // rank, not used
    out.extend_from_slice(&[0; 4]); // source's server id: unknown
    out
}

fn dump_command(request: &DumpRequest, server: &ServerInfo, options: &DumpOptions) -> Result<Vec<u8>, Error> {
    let extra = if options.non_block { DUMP_NON_BLOCK } else { 0 };
    let wrong_flavour = |what: &str| {
        Err(Error::DumpRequest(format!("{what}, but the server is {} {}", server.flavour, server.version_text)))
    };
    match request {
        DumpRequest::FilePosition { file, position, server_id, flags } => {
            let Ok(position) = u32::try_from(*position) else {
                return Err(Error::DumpRequest(format!(
                    "the position {position} in {file} is beyond 4 GiB, which the protocol's command cannot name; \
                     start by GTID, or at the start of a file"
                )));
            };
            Ok(file_dump_command(file, position.max(FIRST_POSITION), *server_id, flags | extra))
        }
        DumpRequest::MySqlGtid { gtid_set_binary, server_id } => {
            if server.flavour != Flavour::MySql {
                return wrong_flavour("the start is a MySQL GTID set");
            }
            let Ok(set_bytes) = u32::try_from(gtid_set_binary.len()) else {
                return Err(Error::DumpRequest("the GTID set is larger than 4 GiB".to_owned()));
            };
            let mut out = vec![cap::COM_BINLOG_DUMP_GTID];
            out.extend_from_slice(&extra.to_le_bytes());
            out.extend_from_slice(&server_id.to_le_bytes());
            out.extend_from_slice(&0u32.to_le_bytes()); // length of the file name: the server finds the file
            out.extend_from_slice(&u64::from(FIRST_POSITION).to_le_bytes());
            out.extend_from_slice(&set_bytes.to_le_bytes());
            out.extend_from_slice(gtid_set_binary);
            Ok(out)
        }
        DumpRequest::MariaDb { server_id, annotate, .. } => {
            if server.flavour != Flavour::MariaDb {
                return wrong_flavour("the start is a MariaDB GTID position");
            }
            let annotate = if *annotate { DUMP_SEND_ANNOTATE_ROWS } else { 0 };
            Ok(file_dump_command("", FIRST_POSITION, *server_id, annotate | extra))
        }
    }
}

fn file_dump_command(file: &str, position: u32, server_id: u32, flags: u16) -> Vec<u8> {
    let mut out = vec![cap::COM_BINLOG_DUMP];
    out.extend_from_slice(&position.to_le_bytes());
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&server_id.to_le_bytes());
    out.extend_from_slice(file.as_bytes());
    out
}

impl BinlogStream {
    /// The next event, heartbeats and artificial events included. Blocks until there is one.
    ///
    /// [`Error::HeartbeatTimeout`] loses nothing: the call can be repeated. [`Error::DumpEnded`]: the server has
    /// nothing more to say. [`Error::Server`]: it cannot go on, such as 1236 for a position that it does not have.
    #[expect(clippy::should_implement_trait, reason = "an iterator would have no errors")]
    pub fn next(&mut self) -> Result<Packet, Error> {
        let frame = self.connection.receive(READING).map_err(|error| match error {
            Error::Timeout { after, .. } => Error::HeartbeatTimeout { after },
            other => match self.connection.reader.refused() {
                Some((head, bytes_max)) => Error::EventTooLarge {
                    bytes: event_bytes(head).unwrap_or(bytes_max as u64),
                    bytes_max: bytes_max.saturating_sub(STATUS_BYTES) as u64,
                },
                None => other,
            },
        })?;
        let payload = frame.payload;
        match payload.first() {
            Some(0x00) => event(payload, self.semi_sync),
            Some(0xfe) if payload.len() < 9 => Err(Error::DumpEnded),
            Some(0xff) => Err(parse_error(&payload, 0)),
            Some(other) => Err(Error::protocol(format!("status byte {other} before an event"))),
            None => Err(Error::protocol("an empty packet in the binary log stream")),
        }
    }

    /// True when [`next`](Self::next) would return without waiting for the network: a reader can go on filling its
    /// batch before it makes it durable.
    pub fn next_is_buffered(&self) -> bool {
        self.connection.reader.has_whole_packet()
    }

    /// Takes in what has come of the next event, without waiting for all of it. False: nothing has come, or so much that [`next`](Self::next) has to be
    /// called. A wait comes before it: [`comes_within`](Self::comes_within).
    pub fn take_in(&mut self) -> Result<bool, Error> {
        self.connection.take_in(READING)
    }

    /// Tells a semi-synchronous source that everything up to the end of an event is durable here.
    /// `position` is the offset after the event in the source's log `file`.
    pub fn acknowledge(&mut self, file: &str, position: u64) -> Result<(), Error> {
        let parts: [&[u8]; 3] = [&[SEMI_SYNC_MAGIC], &position.to_le_bytes(), file.as_bytes()];
        self.connection.send(0, &parts, "acknowledging an event").map(|_| ())
    }

    /// The server that streams.
    pub fn server(&self) -> &ServerInfo {
        self.connection.server()
    }

    /// A handle with which another thread ends the stream; [`next`](Self::next) then returns [`Error::ShutDown`].
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        self.connection.shutdown_handle()
    }

    /// Changes the silence after which [`Error::HeartbeatTimeout`] is returned.
    pub fn set_read_timeout(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        self.connection.set_read_timeout(timeout)
    }
}

/// Offset of the event's length in its header; the length counts the header.
const LENGTH_OFFSET: usize = 9;

fn claims_length(event: &[u8]) -> bool {
    let length = event.get(LENGTH_OFFSET..LENGTH_OFFSET + 4).and_then(|bytes| bytes.try_into().ok());
    length.is_some_and(|bytes| u32::from_le_bytes(bytes) as usize == event.len())
}

/// `payload` starts with the status byte. The two bytes of semi-synchronous replication come and go with the source's
/// setting, which can change at any time, so the event's own length decides whether they are there.
fn event(mut payload: Bytes, semi_sync: bool) -> Result<Packet, Error> {
    let Some(plain) = payload.get(1..) else {
        return Err(Error::protocol("an empty packet in the binary log stream"));
    };
    if semi_sync && !claims_length(plain) {
        if let [SEMI_SYNC_MAGIC, flag, rest @ ..] = plain
            && claims_length(rest)
        {
            return Ok(Packet { semisync_ack: flag & 1 != 0, bytes: payload.slice(3..) });
        }
        return Err(Error::protocol("an event that is neither whole nor marked for semi-synchronous replication"));
    }
    payload.advance(1);
    Ok(Packet { bytes: payload, semisync_ack: false })
}

#[cfg(test)]
mod tests;
