//! Cuts a file into pieces of whole transactions, by event headers and the first words of statements.
//!
//! [`Boundary`] says where transactions begin and end. Looks into format descriptions, and into DDL, so that each piece knows the table
//! definitions at its beginning. Where it cuts depends on the bytes alone. A transaction that is larger than a piece may be is cut
//! as well: its later pieces come with the table maps that its earlier ones had.

use std::sync::Arc;

use binlog::boundary::{Boundary, is_gtid};
use binlog::frame::{BEGINNING_LEN, begins_log};
use binlog::{Event, FormatDescription, Header, Kind, MAGIC, MAX_EVENT_LEN, Query, query};
use bytes::Bytes;

use super::{Definitions, Problem};
use crate::sql::SqlMode;

/// A piece ends with the transaction that reaches this many bytes.
pub const PIECE_BYTES: usize = 1 << 20;
/// A transaction is cut when a piece would have more than this many bytes.
const PIECE_BYTES_MAX: usize = 16 << 20;
/// Larger events are not looked into, in bytes; nor, uncompressed, larger compressed ones.
const EVENT_BYTES_MAX: usize = 64 << 20;
pub(super) const PAYLOAD_BYTES_MAX: u64 = 96 << 20;

/// Events of one file that one call of [`super::scan`] reads.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Where its first event starts in the file.
    pub offset: u64,
    pub bytes: Bytes,
    pub format: Arc<FormatDescription>,
    /// Of the format description: who began the file, and when.
    pub written_by: FileWriter,
    pub definitions: Arc<Definitions>,
    /// What is open where it begins.
    pub boundary: Boundary,
    /// The first transaction began before it; these are its table maps so far.
    pub continued: Option<Vec<Bytes>>,
    /// The last transaction goes on behind it.
    pub goes_on: bool,
    /// An event follows that is too large to be looked into: its header.
    pub too_large: Option<Header>,
}

/// The server that wrote a file, and the second in which it began it, since 1970; zeros: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileWriter {
    pub server_id: u32,
    pub time: u32,
}

/// What [`Cutter::next`] found.
#[derive(Debug)]
pub enum Cut {
    Piece(Piece),
    /// Push at least so many more bytes, or call [`Cutter::finish`].
    NeedMore(usize),
    /// Leave out so many bytes of the file, without pushing them: the rest of the event at `offset`.
    Skip {
        bytes: u64,
        offset: u64,
    },
    /// Nothing behind this can be read.
    Failed(Problem),
}

/// Over one file, from its start.
#[derive(Debug)]
pub struct Cutter {
    definitions: Arc<Definitions>,
    format: Option<Arc<FormatDescription>>,
    written_by: FileWriter,
    buffer: Vec<u8>,
    /// The memory of a piece that is done, for the next one.
    spare: Option<Vec<u8>>,
    /// Offset in the file of the buffer's first byte.
    base: u64,
    /// Events before this place in the buffer have been looked at.
    at: usize,
    /// The last place, in the buffer, where one transaction had ended and another began.
    last_whole: usize,
    /// After the events that have been looked at.
    boundary: Boundary,
    /// At the buffer's first byte.
    began: Boundary,
    /// Definitions changed after the last boundary, or a format description came.
    cut_here: bool,
    changed: bool,
    continued: Option<Vec<Bytes>>,
    /// Bytes to leave out, and where their event begins.
    skip: Option<(u64, u64)>,
    failed: bool,
    /// Where the file ends, if that is known.
    end: Option<u64>,
    /// What comes is not encrypted, whatever the file says of itself.
    in_clear: bool,
}

impl Cutter {
    /// `definitions`: those at the start of the file.
    pub fn new(definitions: Arc<Definitions>) -> Self {
        Self {
            definitions,
            format: None,
            written_by: FileWriter::default(),
            buffer: Vec::new(),
            spare: None,
            base: 0,
            at: 0,
            last_whole: 0,
            boundary: Boundary::default(),
            began: Boundary::default(),
            cut_here: false,
            changed: false,
            continued: None,
            skip: None,
            failed: false,
            end: None,
            in_clear: false,
        }
    }

    /// The file has so many bytes.
    #[must_use]
    pub fn ending_at(mut self, bytes: u64) -> Self {
        self.end = Some(bytes);
        self
    }

    /// A live server decrypts what it sends, and leaves in that its file is encrypted.
    #[must_use]
    pub fn in_clear(mut self) -> Self {
        self.in_clear = true;
        self
    }

    /// The definitions at the end of what was cut.
    pub fn definitions(&self) -> &Arc<Definitions> {
        &self.definitions
    }

    pub fn format(&self) -> Option<&Arc<FormatDescription>> {
        self.format.as_ref()
    }

    /// Where to append what follows in the file.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Takes the memory of a piece that nobody needs any more: memory that the processor has in its caches.
    pub fn reuse(&mut self, buffers: &mut Vec<Vec<u8>>) {
        if self.spare.is_none() {
            self.spare = buffers.pop();
        }
    }

    #[expect(clippy::should_implement_trait, reason = "it may need more input")]
    pub fn next(&mut self) -> Cut {
        if let Some((bytes, offset)) = self.skip.take() {
            return Cut::Skip { bytes, offset };
        }
        loop {
            if self.base == 0 && self.at == 0 {
                match self.magic() {
                    Some(cut) => return cut,
                    None => continue,
                }
            }
            let rest = self.buffer.get(self.at..).unwrap_or_default();
            let Some(header) = Header::parse(rest) else {
                return more(binlog::HEADER_LEN - rest.len().min(binlog::HEADER_LEN - 1));
            };
            if rest.starts_with(&MAGIC) && self.format.is_some() {
                match begins_anew(rest) {
                    None => return more(BEGINNING_LEN - rest.len()),
                    Some(true) if self.at > 0 => return Cut::Piece(self.piece(self.at, false)),
                    Some(true) => {
                        self.buffer.drain(..MAGIC.len());
                        self.base += MAGIC.len() as u64;
                        continue;
                    }
                    Some(false) => {}
                }
            }
            let length = header.event_len as usize;
            if !(binlog::HEADER_LEN..=MAX_EVENT_LEN).contains(&length) {
                let zeros = rest.iter().all(|&byte| byte == 0);
                let what = if zeros && length == 0 {
                    "only zeros follow: the server crashed, or the copy is incomplete".to_owned()
                } else {
                    format!("an event can not have {length} bytes: the file is damaged from here on")
                };
                return self.fail(what);
            }
            let have = rest.len();
            if self.is_between(&header) {
                self.last_whole = self.at;
                if self.should_cut() && self.at > 0 {
                    return Cut::Piece(self.piece(self.at, false));
                }
            }
            let offset = self.base + self.at as u64;
            if let Some(end) = self.end.filter(|&end| length > EVENT_BYTES_MAX && offset + length as u64 > end) {
                return self.fail(torn(end.saturating_sub(offset), length));
            }
            if length > EVENT_BYTES_MAX {
                self.boundary.unread(header.kind);
                let mut piece = self.piece(self.at, !self.boundary.is_between());
                piece.too_large = Some(header);
                let offset = self.base;
                self.base += length as u64;
                // What is in the buffer of it goes, too.
                let here = self.buffer.len().min(length);
                self.buffer.drain(..here);
                self.skip = (length > here).then_some(((length - here) as u64, offset));
                return Cut::Piece(piece);
            }
            // Whatever else is there already: where it cuts must not depend on how the file arrives.
            if self.at - self.last_whole.min(self.at) >= PIECE_BYTES_MAX {
                return Cut::Piece(self.piece(self.at, !self.boundary.is_between()));
            }
            if have < length {
                return more(length - have);
            }
            if let Err(problem) = self.look(&header, length) {
                return self.fail(problem);
            }
            self.at += length;
        }
    }

    fn magic(&mut self) -> Option<Cut> {
        let Some(magic) = self.buffer.first_chunk::<4>() else {
            return Some(Cut::NeedMore(MAGIC.len() - self.buffer.len().min(3)));
        };
        match *magic {
            MAGIC => {
                self.buffer.drain(..MAGIC.len());
                self.base = MAGIC.len() as u64;
                None
            }
            binlog::frame::MAGIC_ENCRYPTED => Some(
                self.fail("the file is encrypted; read it from the live server, which sends it in clear".to_owned()),
            ),
            other => Some(self.fail(match binlog::frame::compressed_by(other) {
                Some((by, unpack)) => {
                    format!("not a binary log but compressed by {by}: `{unpack} FILE | heddle inspect -`")
                }
                None => format!("not a binary log: it starts with {other:02x?} instead of fe 62 69 6e"),
            })),
        }
    }

    /// The end of what can be read: what is before it still becomes a piece, then this is said.
    fn fail(&mut self, what: String) -> Cut {
        if self.failed || self.at == 0 {
            self.failed = true;
            return Cut::Failed(Problem::new(self.base + self.at as u64, what));
        }
        Cut::Piece(self.piece(self.at, false))
    }

    /// Nothing more comes. The last piece, and what is wrong with the end of the file.
    pub fn finish(&mut self) -> (Option<Piece>, Option<Problem>) {
        let torn = self.buffer.len() - self.at.min(self.buffer.len());
        let offset = self.base + self.at as u64;
        let problem = if self.base == 0 && self.at == 0 {
            let what = if self.buffer.is_empty() { "the file is empty" } else { "not a binary log: it is too short" };
            Some(Problem::new(0, what))
        } else if torn > 0 {
            let want =
                self.buffer.get(self.at..).and_then(Header::parse).map_or(binlog::HEADER_LEN, |h| h.event_len as usize);
            Some(Problem::new(offset, self::torn(torn as u64, want)))
        } else if self.format.is_none() {
            Some(Problem::new(offset, "the file has no events"))
        } else {
            None
        };
        let piece = (self.at > 0 && self.format.is_some()).then(|| self.piece(self.at, false));
        (piece, problem)
    }

    /// Whether this event begins a transaction, or a log, and none can be open before it.
    fn is_between(&mut self, header: &Header) -> bool {
        match header.kind {
            Kind::FORMAT_DESCRIPTION => {
                self.cut_here = true;
                true
            }
            Kind::QUERY
            | Kind::QUERY_COMPRESSED
            | Kind::EXECUTE_LOAD_QUERY
            | Kind::BEGIN_LOAD_QUERY
            | Kind::APPEND_BLOCK
            | Kind::INTVAR
            | Kind::RAND
            | Kind::USER_VAR => self.boundary.is_between(),
            kind => is_gtid(kind),
        }
    }

    fn should_cut(&mut self) -> bool {
        std::mem::take(&mut self.cut_here) || self.changed || self.last_whole >= PIECE_BYTES
    }

    /// The buffer up to `end` as a piece; the rest stays.
    fn piece(&mut self, end: usize, goes_on: bool) -> Piece {
        let rest_at = end.min(self.buffer.len());
        let mut rest = self.spare.take().unwrap_or_default();
        rest.clear();
        rest.reserve((self.buffer.len() - rest_at).max(PIECE_BYTES + (1 << 18)));
        rest.extend_from_slice(self.buffer.get(rest_at..).unwrap_or_default());
        self.buffer.truncate(rest_at);
        let bytes = Bytes::from(std::mem::replace(&mut self.buffer, rest));
        let continued = self.continued.take();
        if goes_on {
            self.continued = Some(maps(&bytes, continued.as_deref().unwrap_or_default()));
        }
        let piece = Piece {
            offset: self.base,
            bytes,
            format: self.format.clone().unwrap_or_else(|| Arc::new(no_format())),
            written_by: self.written_by,
            definitions: Arc::clone(&self.definitions),
            boundary: self.began,
            continued,
            goes_on,
            too_large: None,
        };
        self.base += rest_at as u64;
        self.at -= rest_at;
        self.last_whole = 0;
        self.began = if goes_on { self.boundary } else { Boundary::default() };
        if !goes_on && std::mem::take(&mut self.changed) {
            self.execute(&piece);
        }
        piece
    }

    /// Looks at a whole event that stands at `self.at`.
    fn look(&mut self, header: &Header, length: usize) -> Result<(), String> {
        match header.kind {
            Kind::FORMAT_DESCRIPTION => {
                let bytes = self.event(length);
                let (event, format) =
                    FormatDescription::decode(&bytes).map_err(|corrupt| format!("format description: {corrupt}"))?;
                self.written_by = FileWriter { server_id: event.header().server_id, time: event.header().timestamp };
                self.format = Some(Arc::new(format));
            }
            _ if self.format.is_none() => return Err("no format description precedes this event".to_owned()),
            Kind::START_ENCRYPTION if !self.in_clear => {
                return Err(
                    "the file is encrypted from here on; read it from the live server, which sends it in clear"
                        .to_owned(),
                );
            }
            Kind::QUERY | Kind::QUERY_COMPRESSED => {
                let event = self.buffer.get(self.at..self.at + length).unwrap_or_default();
                self.changed |= self.format.as_ref().is_some_and(|format| may_define(event, format));
            }
            _ => {}
        }
        if let Some(format) = &self.format {
            let end = self.at + length.saturating_sub(format.checksum.len());
            let body = self.buffer.get(self.at + binlog::HEADER_LEN..end).unwrap_or_default();
            self.boundary.raw(header, body, format);
        }
        Ok(())
    }

    fn event(&self, length: usize) -> Bytes {
        Bytes::copy_from_slice(self.buffer.get(self.at..self.at + length).unwrap_or_default())
    }

    /// What the statements of a piece do to definitions, for the pieces after it.
    fn execute(&mut self, piece: &Piece) {
        for event in events(&piece.bytes) {
            if !may_define(&event, &piece.format) {
                continue;
            }
            // What is damaged is noted by the scan.
            let Ok(event) = Event::parse(event, piece.format.checksum) else { continue };
            let Ok(query) = Query::decode_within(&event, &piece.format, PAYLOAD_BYTES_MAX) else { continue };
            if query.error_code == 0 {
                let mode = SqlMode::of(&query.vars);
                let schema = String::from_utf8_lossy(&query.schema);
                Arc::make_mut(&mut self.definitions).execute(&query.sql, &schema, mode);
            }
        }
    }
}

fn more(at_least: usize) -> Cut {
    Cut::NeedMore(at_least.max(1))
}

fn torn(there: u64, length: usize) -> String {
    format!("the file ends inside an event: {there} of at least {length} bytes are there")
}

/// Whether the beginning of another file follows, as `cat` puts files together; `None`: there is too little to tell.
fn begins_anew(rest: &[u8]) -> Option<bool> {
    rest.get(..BEGINNING_LEN).map(begins_log)
}

/// Never used for decoding: a piece without a format description is empty.
fn no_format() -> FormatDescription {
    FormatDescription {
        binlog_version: 4,
        server_version: String::new(),
        flavour: binlog::Flavour::MySql,
        header_len: binlog::HEADER_LEN as u8,
        post_header_lens: Vec::new(),
        checksum: binlog::Checksum::Off,
        created: 0,
        in_use: false,
    }
}

/// Whole events from the start of `bytes`.
pub(super) fn events(bytes: &Bytes) -> impl Iterator<Item = Bytes> {
    let mut rest = bytes.clone();
    std::iter::from_fn(move || {
        let length = Header::parse(&rest)?.event_len as usize;
        (binlog::HEADER_LEN..=rest.len()).contains(&length).then(|| rest.split_to(length))
    })
}

/// The last table map of each table id.
fn maps(bytes: &Bytes, before: &[Bytes]) -> Vec<Bytes> {
    let id = |event: &Bytes| event.get(binlog::HEADER_LEN..binlog::HEADER_LEN + 6).map(<[u8]>::to_vec);
    let mut maps: Vec<Bytes> = before.to_vec();
    for event in events(bytes).filter(|event| event.get(4) == Some(&Kind::TABLE_MAP.0)) {
        maps.retain(|map| id(map) != id(&event));
        // Not a part of the piece, which would stay in memory with it.
        maps.push(Bytes::copy_from_slice(&event));
    }
    maps
}

/// The text of a whole QUERY event.
fn text<'a>(event: &'a [u8], format: &FormatDescription) -> Option<&'a [u8]> {
    let body = event.get(binlog::HEADER_LEN..event.len().checked_sub(format.checksum.len())?)?;
    query::peek(body, Kind::QUERY, format).map(|(_, sql)| sql)
}

/// Whether an event's statement may change definitions: false for the verbs of data and transactions.
fn may_define(event: &[u8], format: &FormatDescription) -> bool {
    match event.get(4).copied().map(Kind) {
        // Its text would have to be decompressed.
        Some(Kind::QUERY_COMPRESSED) => return true,
        Some(Kind::QUERY) => {}
        _ => return false,
    }
    let text = text(event, format).unwrap_or_default();
    let verb = text.split(|byte| !byte.is_ascii_alphabetic()).next().unwrap_or_default();
    const OTHERS: [&[u8]; 12] = [
        b"BEGIN",
        b"COMMIT",
        b"ROLLBACK",
        b"INSERT",
        b"UPDATE",
        b"DELETE",
        b"REPLACE",
        b"SAVEPOINT",
        b"RELEASE",
        b"XA",
        b"GRANT",
        b"FLUSH",
    ];
    !OTHERS.iter().any(|other| verb.eq_ignore_ascii_case(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::encode::{self, FormatSpec, Head};
    use binlog::{Checksum, Flavour, MySqlGtid};

    /// Checksums that begin with a letter must not make a verb of BEGIN: pieces would be cut at every transaction.
    #[test]
    fn pieces_are_large_whatever_the_checksums() {
        let spec = FormatSpec::new("8.0.36", Flavour::MySql, Checksum::Crc32);
        let mut bytes = MAGIC.to_vec();
        bytes.extend(encode::format_description(&Head::new(0, 1, Checksum::Crc32), &spec));
        let head = Head::new(1_700_000_000, 1, Checksum::Crc32);
        for gno in 1..=2_000_u64 {
            let gtid = MySqlGtid { uuid: [3; 16], gno, ..MySqlGtid::default() };
            bytes.extend(encode::mysql_gtid(&head, &gtid));
            bytes.extend(encode::query(&head, gno as u32, 0, 0, "s", &[], b"BEGIN"));
            bytes.extend(encode::xid(&head, gno));
        }
        let mut cutter = Cutter::new(Arc::new(Definitions::default()));
        cutter.buffer().extend_from_slice(&bytes);
        assert!(matches!(cutter.next(), Cut::NeedMore(_)));
        let (piece, problem) = cutter.finish();
        assert_eq!((piece.map(|piece| piece.bytes.len()), problem), (Some(bytes.len() - MAGIC.len()), None));
    }
}
