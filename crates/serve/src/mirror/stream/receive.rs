//! Decides about one event of a source's stream: it is stored at its position, belongs to no file, or is refused. Pure: it opens nothing.
//!
//! A source sends its files from position 4 on, or from a position inside a file. In between it sends artificial events: a ROTATE before each file, the format description before a
//! position inside a file, heartbeats, and MariaDB's Gtid_list after a start by GTID (`sql/rpl_binlog_sender.cc`, `sql/sql_repl.cc`).

use binlog::rotate::Rotate;
use binlog::{Checksum, Event, FIRST_OFFSET, FormatDescription, HEADER_LEN, Header, Kind, LogPosition, patch};
use bytes::Bytes;

use super::continuity::{Continuity, GtidBreak};

/// Behind this a file has no list of GTIDs any more (servers of before GTIDs).
const HEAD_MAX: u64 = 1 << 20;

/// Why a stream cannot be mirrored any further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Bytes that are no event, or whose checksum is wrong.
    #[error("{at}: {reason}")]
    Damaged { at: LogPosition, reason: String },
    /// Events between two positions did not come.
    #[error(
        "{at}: the next event ends at {ends} (modulo 2^32) and is {length} bytes long: the events in between are missing"
    )]
    Hole { at: LogPosition, ends: u32, length: u32 },
    /// The file after this one is not the next.
    #[error("{at}: the source goes on with {next}, which is not the file after {}", at.file)]
    OtherFile { at: LogPosition, next: String },
    /// An event before anything said which file it is of.
    #[error("the source sent a {kind} event before the name of its file")]
    NoFile { kind: &'static str },
    /// The GTIDs do not go on.
    #[error("{at}: {broken}")]
    Gtids { at: LogPosition, broken: GtidBreak },
}

/// What to do with an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// It stands at the end of the file.
    Store(Bytes),
    /// It is in no file.
    LeaveOut,
    /// A file begins; the source has left the one before it.
    Begin { file: String, left: FileEnding },
}

/// How a file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEnding {
    /// With its own last event, ROTATE or STOP; or there was none.
    Ended,
    /// Without: it crashed, or what comes is of another history (after RESET a connection goes on with the new files).
    Open,
}

/// The position in the source's log behind the received events.
#[derive(Debug, Default)]
pub struct EventReceiver {
    /// Empty before the first file.
    at: Option<LogPosition>,
    format: Option<FormatDescription>,
    gtids: Continuity,
    /// The last stored event is ROTATE or STOP.
    has_ended: bool,
}

impl EventReceiver {
    /// Continues an existing file before its last event. `format`: the file's; `gtids`: those before the position.
    pub fn resume(at: LogPosition, format: FormatDescription, gtids: Continuity) -> Self {
        Self { at: Some(at), format: Some(format), gtids, has_ended: false }
    }

    /// All GTIDs up to the position.
    pub fn gtids(&self) -> &Continuity {
        &self.gtids
    }

    /// The present file's beginning is known to follow the file before it.
    pub fn has_begun(&self) -> bool {
        self.gtids.has_list() || self.at.as_ref().is_some_and(|at| at.offset > HEAD_MAX)
    }

    /// The position behind the received events.
    pub fn position(&self) -> Option<&LogPosition> {
        self.at.as_ref()
    }

    /// Decides about the bytes of one event, and moves on behind it.
    pub fn take(&mut self, bytes: Bytes) -> Result<Arrival, Refusal> {
        let header = Header::parse(&bytes).ok_or_else(|| self.damaged("an event that is shorter than a header"))?;
        match header.kind {
            Kind::HEARTBEAT | Kind::HEARTBEAT_V2 => Ok(Arrival::LeaveOut),
            Kind::ROTATE if is_made_up(&header) => self.announced(bytes),
            Kind::FORMAT_DESCRIPTION => self.format_description(bytes),
            // Before a position inside of an encrypted file, and after a start by GTID.
            Kind::START_ENCRYPTION | Kind::MARIADB_GTID_LIST if is_made_up(&header) => Ok(Arrival::LeaveOut),
            _ => self.event(bytes, &header),
        }
    }

    fn announced(&mut self, bytes: Bytes) -> Result<Arrival, Refusal> {
        // Summed as the connection has agreed, which no file says.
        let parsed = Event::parse(bytes.clone(), Checksum::Crc32).or_else(|_| Event::parse(bytes, Checksum::Off));
        let rotate =
            parsed.and_then(|event| Rotate::decode_any(&event)).map_err(|error| self.damaged(error.to_string()))?;
        match &self.at {
            Some(at) if *at.file == *rotate.file => return Ok(Arrival::LeaveOut),
            Some(at) if !follows(&at.file, &rotate.file) => {
                return Err(Refusal::OtherFile { at: at.clone(), next: rotate.file });
            }
            _ => {}
        }
        let left = if self.at.is_none() || self.has_ended { FileEnding::Ended } else { FileEnding::Open };
        self.at = Some(LogPosition::new(rotate.file.as_str(), FIRST_OFFSET));
        self.format = None;
        self.gtids.next_file();
        Ok(Arrival::Begin { file: rotate.file, left })
    }

    fn format_description(&mut self, bytes: Bytes) -> Result<Arrival, Refusal> {
        if self.format.is_some() {
            // Of a stream that begins inside of the file.
            return Ok(Arrival::LeaveOut);
        }
        let mut bytes = Vec::from(bytes);
        // The server clears it in the file when it closes the file; the checksum is that without it.
        if let Some(flags) = bytes.get_mut(17) {
            *flags &= !(Header::FLAG_BINLOG_IN_USE as u8);
        }
        let bytes = Bytes::from(bytes);
        let (event, format) = FormatDescription::decode(&bytes).map_err(|error| self.damaged(error.to_string()))?;
        self.format = Some(format);
        self.store(bytes, event.header())
    }

    fn event(&mut self, bytes: Bytes, header: &Header) -> Result<Arrival, Refusal> {
        let (Some(at), Some(format)) = (&self.at, &self.format) else {
            return Err(match self.at {
                Some(_) => self.damaged("a file does not begin with a format description"),
                None => Refusal::NoFile { kind: header.kind.name() },
            });
        };
        let checksum = format.checksum;
        let event = Event::parse(bytes.clone(), checksum).map_err(|error| self.damaged(error.to_string()))?;
        self.gtids.observe(&event, format).map_err(|broken| Refusal::Gtids { at: at.clone(), broken })?;
        if header.kind == Kind::START_ENCRYPTION {
            return self.store(blank(&bytes, checksum), header);
        }
        self.store(bytes, header)
    }

    fn store(&mut self, bytes: Bytes, header: &Header) -> Result<Arrival, Refusal> {
        let Some(at) = &mut self.at else { return Err(Refusal::NoFile { kind: header.kind.name() }) };
        let end = at.offset + u64::from(header.event_len);
        // MariaDB 11.4 and later write no positions inside of transactions.
        if header.log_pos != 0 && header.log_pos != end as u32 {
            return Err(Refusal::Hole { at: at.clone(), ends: header.log_pos, length: header.event_len });
        }
        at.offset = end;
        self.has_ended = matches!(header.kind, Kind::ROTATE | Kind::STOP);
        Ok(Arrival::Store(bytes))
    }

    fn damaged(&self, reason: impl Into<String>) -> Refusal {
        let at = self.at.clone().unwrap_or_else(|| LogPosition::new("the stream's beginning", 0));
        Refusal::Damaged { at, reason: reason.into() }
    }
}

/// Not in the source's file.
fn is_made_up(header: &Header) -> bool {
    header.log_pos == 0 || header.timestamp == 0 || header.flags & Header::FLAG_ARTIFICIAL != 0
}

/// Whether `next` is the name of the file after `file`.
pub fn follows(file: &str, next: &str) -> bool {
    let (file, next) = (LogPosition::new(file, 0), LogPosition::new(next, 0));
    let numbers = file.file_number().zip(next.file_number());
    file.base_name() == next.base_name() && numbers.is_some_and(|(number, next)| Some(next) == number.checked_add(1))
}

/// MariaDB's START_ENCRYPTION says that what follows is encrypted, which it is not when it comes over the network. An event of the same length that everybody may ignore
/// keeps the positions.
fn blank(bytes: &Bytes, checksum: Checksum) -> Bytes {
    let mut event = Vec::from(&bytes[..]);
    if let Some(kind) = event.get_mut(4) {
        *kind = Kind::IGNORABLE.0;
    }
    if let Some(flags) = event.get_mut(17) {
        *flags |= Header::FLAG_IGNORABLE as u8;
    }
    let end = event.len().saturating_sub(checksum.len());
    if let Some(body) = event.get_mut(HEADER_LEN..end) {
        body.fill(0);
    }
    patch::fix_checksum(&mut event, checksum);
    Bytes::from(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: Kind, log_pos: u32, flags: u16, body: &[u8]) -> Bytes {
        let event_len = (HEADER_LEN + body.len() + 4) as u32;
        let mut out = Vec::new();
        Header { timestamp: u32::from(log_pos != 0), kind, server_id: 1, event_len, log_pos, flags }.write_to(&mut out);
        out.extend_from_slice(body);
        out.extend_from_slice(&[0; 4]);
        patch::fix_checksum(&mut out, Checksum::Crc32);
        out.into()
    }

    fn rotate(file: &str, log_pos: u32) -> Bytes {
        event(Kind::ROTATE, log_pos, 0, &[&4_u64.to_le_bytes()[..], file.as_bytes()].concat())
    }

    /// The first events of a server's file, and the offset behind them.
    fn golden() -> Vec<Bytes> {
        let log = include_bytes!("../../../../binlog/tests/golden/mysql-9.7/rows.binlog");
        let mut framer = binlog::Framer::new();
        framer.push(Bytes::from_static(log));
        let mut events = Vec::new();
        while let binlog::Step::Event { event, .. } = framer.next() {
            events.push(event.bytes().clone());
        }
        events
    }

    #[test]
    fn a_file_is_stored_as_it_is_and_what_is_made_up_is_not() {
        let events = golden();
        let mut arriving = EventReceiver::default();
        assert_eq!(arriving.take(rotate("b.000009", 0)), Ok(begin("b.000009", FileEnding::Ended)));
        let heartbeat = event(Kind::HEARTBEAT, 99, 0, b"b.000009");
        let mut file = binlog::MAGIC.to_vec();
        for event in &events {
            let Ok(Arrival::Store(bytes)) = arriving.take(event.clone()) else { panic!("{event:?}") };
            file.extend_from_slice(&bytes);
            assert_eq!(arriving.take(heartbeat.clone()), Ok(Arrival::LeaveOut));
        }
        assert_eq!(&file[..], &include_bytes!("../../../../binlog/tests/golden/mysql-9.7/rows.binlog")[..]);
        // The source has died: the file may end without ROTATE.
        let mut died = EventReceiver { has_ended: false, ..EventReceiver::default() };
        died.at = arriving.at.clone();
        assert_eq!(died.take(rotate("b.000010", 0)), Ok(begin("b.000010", FileEnding::Open)));
        assert!(arriving.has_begun());
        assert_eq!(arriving.take(rotate("b.000010", 0)), Ok(begin("b.000010", FileEnding::Ended)));
        assert!(!arriving.has_begun());
        // It begins without the GTIDs of the file before.
        arriving.take(events[0].clone()).unwrap();
        let lost = arriving.take(events[1].clone());
        assert!(matches!(lost, Err(Refusal::Gtids { broken: GtidBreak::Lost(_), .. })), "{lost:?}");
    }

    fn begin(file: &str, left: FileEnding) -> Arrival {
        Arrival::Begin { file: file.to_owned(), left }
    }

    /// In the golden file, before its event `number`.
    fn before(number: usize) -> (EventReceiver, Vec<Bytes>) {
        let events = golden();
        let mut arriving = EventReceiver::default();
        arriving.take(rotate("b.000009", 0)).unwrap();
        for event in &events[..number] {
            arriving.take(event.clone()).unwrap();
        }
        (arriving, events)
    }

    #[test]
    fn what_is_missing_or_damaged_is_noticed() {
        let (mut arriving, events) = before(3);
        let hole = arriving.take(events[4].clone());
        assert!(matches!(&hole, Err(Refusal::Hole { at, .. }) if Some(at) == arriving.position()), "{hole:?}");
        let (mut arriving, events) = before(3);
        let mut damaged = events[3].to_vec();
        damaged[20] ^= 1;
        assert!(matches!(arriving.take(damaged.into()), Err(Refusal::Damaged { .. })));
        let (mut arriving, _) = before(3);
        assert!(matches!(arriving.take(rotate("b.000011", 0)), Err(Refusal::OtherFile { .. })));
        assert!(matches!(arriving.take(rotate("c.000010", 0)), Err(Refusal::OtherFile { .. })));
        let no_file = EventReceiver::default().take(events[1].clone());
        assert_eq!(no_file, Err(Refusal::NoFile { kind: Kind::PREVIOUS_GTIDS.name() }));
    }

    #[test]
    fn a_stream_that_begins_inside_of_a_file_brings_a_format_description_that_is_not_stored() {
        let (arriving, events) = before(2);
        let (_, format) = FormatDescription::decode(&events[0]).unwrap();
        let mut resumed = EventReceiver::resume(arriving.position().unwrap().clone(), format, arriving.gtids.clone());
        assert_eq!(resumed.take(rotate("b.000009", 0)), Ok(Arrival::LeaveOut));
        assert_eq!(resumed.take(events[0].clone()), Ok(Arrival::LeaveOut));
        assert_eq!(resumed.take(events[2].clone()), Ok(Arrival::Store(events[2].clone())));
    }

    /// Headers and the command that asks have 32 bits for a position.
    #[test]
    fn a_file_may_be_larger_than_4_gib() {
        let (arriving, _) = before(2);
        let limit = 1_u64 << 32;
        let length = (HEADER_LEN + 100 + 4) as u64;
        let at = LogPosition::new("b.000009", limit - length / 2);
        let mut large = EventReceiver { at: Some(at.clone()), ..arriving };
        let wrapped = event(Kind::ROWS_QUERY, (at.offset + length) as u32, 0, &[0; 100]);
        assert_eq!(large.take(wrapped.clone()), Ok(Arrival::Store(wrapped)));
        assert_eq!(large.position().unwrap().offset, limit - length / 2 + length);
        let next = event(Kind::ROWS_QUERY, (at.offset + 2 * length) as u32, 0, &[1; 100]);
        assert_eq!(large.take(next.clone()), Ok(Arrival::Store(next)));
        let hole = event(Kind::ROWS_QUERY, (at.offset + 4 * length) as u32, 0, &[1; 100]);
        assert!(matches!(large.take(hole), Err(Refusal::Hole { at, .. }) if at.offset > limit));
    }

    #[test]
    fn the_mark_of_an_open_file_and_of_an_encrypted_one_are_not_kept() {
        let (mut arriving, events) = before(0);
        let mut open = events[0].to_vec();
        open[17] |= Header::FLAG_BINLOG_IN_USE as u8;
        assert_eq!(arriving.take(open.into()), Ok(Arrival::Store(events[0].clone())));
        let at = arriving.position().unwrap().offset as u32;
        let encryption = event(Kind::START_ENCRYPTION, at + 19 + 17 + 4, 0, &[1; 17]);
        let Ok(Arrival::Store(blanked)) = arriving.take(encryption.clone()) else { panic!() };
        let parsed = Event::parse(blanked.clone(), Checksum::Crc32).unwrap();
        assert!(parsed.kind() == Kind::IGNORABLE && parsed.header().flags & Header::FLAG_IGNORABLE != 0);
        assert_eq!((blanked.len(), parsed.body()), (encryption.len(), &[0; 17][..]));
    }
}
