//! What a receiver has to know of the stream it writes, to resume it: where the last event ended, where the last whole
//! transaction ended, which GTIDs have come.
//!
//! It finds transaction boundaries only; it does not judge, order or apply anything. Where it cannot see a boundary it
//! assumes that the transaction goes on, so a resumed stream may repeat a transaction but never lacks a part of one.

use crate::gtids::Gtids;
use binlog::LogPosition;
use binlog::gtids::Gtid;
use binlog::{Corrupt, Event, FormatDescription, Kind, MariaDbGtid, MySqlGtid};
use std::fmt::Write;
use std::sync::Arc;

/// Whether a transaction is open, and what ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Open {
    /// Between transactions.
    #[default]
    No,
    /// Announced, or its first preparing events have come: one statement ends it, unless that is a BEGIN.
    Statement,
    /// Until COMMIT, ROLLBACK, XID or XA PREPARE.
    Block,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stream {
    open: Open,
    pending: Option<Gtid>,
    gtids: Gtids,
    boundary: Option<LogPosition>,
    end: Option<LogPosition>,
}

impl Stream {
    pub(crate) fn starting_with(gtids: Gtids) -> Self {
        Stream { gtids, ..Stream::default() }
    }

    /// After the last event.
    pub(crate) fn end(&self) -> Option<&LogPosition> {
        self.end.as_ref()
    }

    /// After the last whole transaction.
    pub(crate) fn boundary(&self) -> Option<&LogPosition> {
        self.boundary.as_ref()
    }

    pub(crate) fn gtids(&self) -> &Gtids {
        &self.gtids
    }

    pub(crate) fn in_transaction(&self) -> bool {
        self.open != Open::No
    }

    /// The stream comes again from `at`: an open transaction is void.
    pub(crate) fn restart(&mut self, at: &LogPosition) {
        self.open = Open::No;
        self.pending = None;
        self.end = Some(at.clone());
        self.boundary = Some(at.clone());
    }

    /// Takes note of an event that ends at `end` of `file`.
    pub(crate) fn observe(
        &mut self,
        event: &Event,
        format: &FormatDescription,
        file: &Arc<str>,
        end: u64,
    ) -> Result<(), Corrupt> {
        let artificial = is_artificial(event);
        match event.kind() {
            Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED => {
                let gtid = MySqlGtid::decode(event, format)?;
                self.open = Open::Statement;
                self.pending = Gtid::of_mysql(&gtid).filter(|_| gtid.gno > 0);
            }
            Kind::MARIADB_GTID => {
                let gtid = MariaDbGtid::decode(event, format)?;
                // The event itself is the BEGIN, unless it says that one statement follows.
                let single = MariaDbGtid::FL_STANDALONE | MariaDbGtid::FL_COMPLETED_XA;
                self.open = if gtid.flags & single != 0 { Open::Statement } else { Open::Block };
                self.pending = Some(Gtid::of_mariadb(&gtid));
            }
            Kind::QUERY => match (self.open, verb(event, format)) {
                (_, Verb::Commit) => self.finish(),
                (_, Verb::Begin) => self.open = Open::Block,
                (Open::Block, Verb::Other) => {}
                (Open::No | Open::Statement, Verb::Other) => self.finish(),
            },
            Kind::QUERY_COMPRESSED | Kind::EXECUTE_LOAD_QUERY | Kind::INCIDENT if self.open != Open::Block => {
                self.finish();
            }
            Kind::XID | Kind::XA_PREPARE | Kind::TRANSACTION_PAYLOAD => self.finish(),
            Kind::FORMAT_DESCRIPTION if !artificial => {
                // A new log: its server did not finish what was open.
                self.open = Open::No;
                self.pending = None;
            }
            Kind::INTVAR
            | Kind::RAND
            | Kind::USER_VAR
            | Kind::TABLE_MAP
            | Kind::BEGIN_LOAD_QUERY
            | Kind::APPEND_BLOCK
                if self.open == Open::No =>
            {
                self.open = Open::Statement;
            }
            _ => {}
        }
        set(&mut self.end, file, end);
        if self.open == Open::No {
            set(&mut self.boundary, file, end);
        }
        Ok(())
    }

    fn finish(&mut self) {
        self.open = Open::No;
        if let Some(gtid) = self.pending.take() {
            self.gtids.insert(&gtid);
        }
    }

    /// For a segment's header: lines of `name value`.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        let open = match self.open {
            Open::No => "no",
            Open::Statement => "statement",
            Open::Block => "block",
        };
        // Writing to a String does not fail.
        let _ = writeln!(text, "open {open}");
        let _ = writeln!(text, "gtids {}", self.gtids);
        if let Some(gtid) = &self.pending {
            let _ = writeln!(text, "pending {gtid}");
        }
        for (name, position) in [("boundary", &self.boundary), ("end", &self.end)] {
            if let Some(position) = position {
                let _ = writeln!(text, "{name} {} {}", position.offset, position.file);
            }
        }
        text
    }

    pub(crate) fn from_text(text: &str) -> Option<Stream> {
        let mut stream = Stream::default();
        let position = |value: &str| {
            let (offset, file) = value.split_once(' ')?;
            Some(LogPosition::new(file, offset.parse().ok()?))
        };
        for line in text.lines() {
            let (name, value) = line.split_once(' ')?;
            match name {
                "open" => {
                    stream.open = match value {
                        "no" => Open::No,
                        "statement" => Open::Statement,
                        "block" => Open::Block,
                        _ => return None,
                    }
                }
                "gtids" => stream.gtids = Gtids::parse(value)?,
                "pending" => stream.pending = Some(value.parse().ok()?),
                "boundary" => stream.boundary = Some(position(value)?),
                "end" => stream.end = Some(position(value)?),
                _ => return None,
            }
        }
        Some(stream)
    }
}

fn set(slot: &mut Option<LogPosition>, file: &Arc<str>, offset: u64) {
    match slot {
        Some(position) => {
            if !Arc::ptr_eq(&position.file, file) {
                position.file = file.clone();
            }
            position.offset = offset;
        }
        None => *slot = Some(LogPosition { file: file.clone(), offset }),
    }
}

/// Whether the sending server made the event up: it takes no room in the source's file.
pub(crate) fn is_artificial(event: &Event) -> bool {
    let header = event.header();
    header.flags & binlog::Header::FLAG_ARTIFICIAL != 0
        || (header.log_pos == 0
            && matches!(header.kind, Kind::FORMAT_DESCRIPTION | Kind::ROTATE | Kind::MARIADB_GTID_LIST))
        || matches!(header.kind, Kind::HEARTBEAT | Kind::HEARTBEAT_V2)
}

/// Whether events of this kind describe their file and belong to no transaction: to receive one twice does no harm.
pub(crate) fn is_of_file(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::FORMAT_DESCRIPTION
            | Kind::START_ENCRYPTION
            | Kind::PREVIOUS_GTIDS
            | Kind::MARIADB_GTID_LIST
            | Kind::BINLOG_CHECKPOINT
    )
}

enum Verb {
    Begin,
    Commit,
    Other,
}

/// The role of a statement; its text is found without decoding the session in front of it.
fn verb(event: &Event, format: &FormatDescription) -> Verb {
    let Some(sql) = sql(event.body(), usize::from(format.post_header_len(Kind::QUERY)).max(13)) else {
        return Verb::Other;
    };
    let is = |word: &[u8]| sql.eq_ignore_ascii_case(word);
    let starts = |word: &[u8]| sql.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
    let ends = |word: &[u8]| {
        sql.len().checked_sub(word.len()).and_then(|at| sql.get(at..)).is_some_and(|t| t.eq_ignore_ascii_case(word))
    };
    // An atomic CREATE TABLE … SELECT says START TRANSACTION at its end.
    if is(b"BEGIN")
        || is(b"START TRANSACTION")
        || starts(b"XA START")
        || starts(b"XA BEGIN")
        || ends(b" START TRANSACTION")
    {
        Verb::Begin
    } else if is(b"COMMIT") || is(b"ROLLBACK") {
        Verb::Commit
    } else {
        Verb::Other
    }
}

fn sql(body: &[u8], post_header_len: usize) -> Option<&[u8]> {
    let schema_len = usize::from(*body.get(8)?);
    let status_len = usize::from(u16::from_le_bytes([*body.get(11)?, *body.get(12)?]));
    body.get(post_header_len + status_len + schema_len + 1..)
}
