//! Where a transaction begins and ends in a binary log. No other code decides that.
//!
//! [`Boundary`] sees each event once, in the order of the log, and says what the event is to the transaction around it.
//! The applier, what reads a large transaction again, `inspect` and the relay log all use it. Two ways lead in:
//!
//! - [`Boundary::event`] and [`Boundary::raw`] look at an event themselves: at its kind, at the flags of a MariaDB GTID, at the
//!   text of a statement. They decode nothing else.
//! - [`Boundary::gtid`], [`Boundary::query`] and the other steps are for a caller that has decoded the event anyway.
//!
//! It never judges: whether a transaction that was cut off is an error is the caller's business. It keeps no event, no position
//! and no GTID, and it allocates nothing, but for a short compressed statement.
//!
//! Where it cannot see an end it says that the transaction goes on. A stream that resumes at the last end can then
//! repeat a part of the log, but never lack one.

mod verb;

pub use verb::Verb;

use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::header::Header;
use crate::kind::Kind;
use crate::mariadb_gtid::MariaDbGtid;

/// What will end the transaction that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Open {
    /// None is open.
    #[default]
    No,
    /// The next statement, unless that is a BEGIN: a GTID has announced it, or the variables that it needs have come.
    Statement,
    /// COMMIT, ROLLBACK, XID, XA PREPARE or XA ROLLBACK.
    Block,
}

/// The kind of event that a transaction begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opener {
    Gtid,
    Begin,
    XaStart,
    /// A statement without BEGIN, or what a statement needs: variables, the data of LOAD DATA.
    Statement,
    /// A compressed transaction, looked at from outside.
    Payload,
    /// Rows, or their table map: the log is read from the middle of a transaction.
    Rows,
}

/// What ends a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The text COMMIT.
    Commit,
    /// The text ROLLBACK, or XA ROLLBACK of a branch that was not prepared.
    Rollback,
    /// XID, XA PREPARE, or a compressed transaction, which has its end inside.
    Event,
    /// A statement that commits by itself.
    Statement,
}

/// What an event is to the transactions of its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It is of the file, of the connection, or between two transactions. What is open stays open.
    Aside,
    /// The first event of a transaction. `cut`: one was open, and has no end.
    Begins { by: Opener, cut: bool },
    /// One of a transaction that goes on.
    Inside,
    /// The last event of a transaction. `first`: its only one.
    Ends { by: End, first: bool },
    /// An end of a transaction whose beginning was not seen.
    EndsNothing,
    /// A log begins. `cut`: a transaction was open, and has no end.
    NewLog { by: LogStart, cut: bool },
}

/// Why a server began a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStart {
    /// It went on from the log before.
    Rotation,
    /// It was started. If it had died, it has rolled back what the log before left open.
    ServerStart,
}

/// Over one log after the other; see the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Boundary {
    open: Open,
    /// The one that is open began with BEGIN alone: another BEGIN is another transaction.
    by_begin: bool,
}

impl Boundary {
    /// As it stood when [`Boundary::open`] was noted.
    pub fn resumed(open: Open) -> Self {
        Self { open, by_begin: false }
    }

    /// What will end the transaction that is open.
    pub fn open(&self) -> Open {
        self.open
    }

    /// Whether no transaction is open.
    #[inline]
    pub fn is_between(&self) -> bool {
        self.open == Open::No
    }

    /// The stream broke off: what is open comes again, whole.
    pub fn restart(&mut self) {
        *self = Self::default();
    }

    /// The next event. `format` describes it; that of a format description is its own.
    pub fn event(&mut self, event: &Event, format: &FormatDescription) -> Step {
        self.raw(event.header(), event.body(), format)
    }

    /// As [`Boundary::event`], from the parts of an event whose checksum nobody has checked.
    pub fn raw(&mut self, header: &Header, body: &[u8], format: &FormatDescription) -> Step {
        match header.kind {
            Kind::TABLE_MAP => self.rows(),
            kind if kind.is_rows() => self.rows(),
            Kind::QUERY | Kind::QUERY_COMPRESSED => self.query(verb::of_event(header.kind, body, format)),
            Kind::MARIADB_GTID => self.mariadb_gtid(MariaDbGtid::peek_flags(body)),
            Kind::FORMAT_DESCRIPTION => self.new_log(header, format),
            kind => self.unread(kind),
        }
    }

    /// An event that nobody looks into, because it is too large.
    pub fn unread(&mut self, kind: Kind) -> Step {
        match kind {
            Kind::TABLE_MAP => self.rows(),
            kind if kind.is_rows() => self.rows(),
            Kind::XID | Kind::XA_PREPARE => self.end(),
            Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED => self.gtid(),
            Kind::MARIADB_GTID => self.mariadb_gtid(0),
            Kind::QUERY | Kind::QUERY_COMPRESSED | Kind::EXECUTE_LOAD_QUERY => self.query(Verb::Other),
            Kind::TRANSACTION_PAYLOAD => self.payload(),
            Kind::INTVAR | Kind::RAND | Kind::USER_VAR | Kind::BEGIN_LOAD_QUERY | Kind::APPEND_BLOCK => {
                self.prepares_statement()
            }
            // Announced by a GTID, or between two transactions.
            Kind::INCIDENT if self.open == Open::Statement => self.ends(End::Statement),
            Kind::FORMAT_DESCRIPTION | Kind::ROTATE | Kind::STOP | Kind::HEARTBEAT | Kind::HEARTBEAT_V2 => Step::Aside,
            kind if is_of_file(kind) => Step::Aside,
            _ if self.is_between() => Step::Aside,
            _ => Step::Inside,
        }
    }

    /// MySQL's GTIDs, ANONYMOUS_GTID among them: a BEGIN or one statement follows.
    #[inline]
    pub fn gtid(&mut self) -> Step {
        self.begins(Open::Statement, Opener::Gtid)
    }

    /// MariaDB's GTID. It is the BEGIN, unless it says that one statement follows.
    #[inline]
    pub fn mariadb_gtid(&mut self, flags: u8) -> Step {
        const SINGLE: u8 = MariaDbGtid::FL_STANDALONE | MariaDbGtid::FL_COMPLETED_XA;
        self.begins(if flags & SINGLE != 0 { Open::Statement } else { Open::Block }, Opener::Gtid)
    }

    /// QUERY and QUERY_COMPRESSED; EXECUTE_LOAD_QUERY is [`Verb::Other`].
    #[inline]
    pub fn query(&mut self, verb: Verb) -> Step {
        match (self.open, verb) {
            (Open::Block, Verb::Other | Verb::XaStart) => Step::Inside,
            (Open::Block, Verb::Commit) => self.ends(End::Commit),
            (Open::Block, Verb::Rollback | Verb::XaRollback) => self.ends(End::Rollback),
            (Open::Block, Verb::Begin) if self.by_begin => self.begins(Open::Block, Opener::Begin),
            (Open::No, Verb::Begin) => self.begins(Open::Block, Opener::Begin),
            (Open::No, Verb::XaStart) => self.begins(Open::Block, Opener::XaStart),
            (Open::Block, Verb::Begin) | (Open::Statement, Verb::Begin | Verb::XaStart) => {
                self.open = Open::Block;
                Step::Inside
            }
            (Open::No | Open::Statement, Verb::Commit | Verb::Rollback | Verb::XaRollback | Verb::Other) => {
                self.ends(End::Statement)
            }
        }
    }

    /// What stands in front of the statement that needs it: INTVAR, RAND, USER_VAR, the data of LOAD DATA.
    #[inline]
    pub fn prepares_statement(&mut self) -> Step {
        match self.open {
            // In logs without GTIDs.
            Open::No => self.begins(Open::Statement, Opener::Statement),
            Open::Statement | Open::Block => Step::Inside,
        }
    }

    /// TABLE_MAP and rows.
    #[inline]
    pub fn rows(&mut self) -> Step {
        match self.open {
            // Rows are always in a block, so one of its ends comes.
            Open::No => self.begins(Open::Block, Opener::Rows),
            Open::Statement | Open::Block => Step::Inside,
        }
    }

    /// XID and XA PREPARE.
    #[inline]
    pub fn end(&mut self) -> Step {
        match self.open {
            Open::No => Step::EndsNothing,
            Open::Statement | Open::Block => self.ends(End::Event),
        }
    }

    /// TRANSACTION_PAYLOAD from outside: a server puts a whole transaction into it, without its GTID. Who looks into it gives its events
    /// instead, and not this one.
    pub fn payload(&mut self) -> Step {
        self.ends(End::Event)
    }

    /// FORMAT_DESCRIPTION; `format` is what it says.
    pub fn new_log(&mut self, header: &Header, format: &FormatDescription) -> Step {
        if is_artificial(header) {
            return Step::Aside;
        }
        let cut = !self.is_between();
        self.restart();
        let by = if format.created == 0 { LogStart::Rotation } else { LogStart::ServerStart };
        Step::NewLog { by, cut }
    }

    #[inline]
    fn begins(&mut self, open: Open, by: Opener) -> Step {
        let cut = !self.is_between();
        *self = Self { open, by_begin: matches!(by, Opener::Begin) };
        Step::Begins { by, cut }
    }

    #[inline]
    fn ends(&mut self, by: End) -> Step {
        let first = self.is_between();
        *self = Self::default();
        Step::Ends { by, first }
    }
}

/// Whether the sending server made the event up: it takes no room in the source's file.
pub fn is_artificial(header: &Header) -> bool {
    header.flags & Header::FLAG_ARTIFICIAL != 0
        || (header.log_pos == 0
            && matches!(header.kind, Kind::FORMAT_DESCRIPTION | Kind::ROTATE | Kind::MARIADB_GTID_LIST))
        || matches!(header.kind, Kind::HEARTBEAT | Kind::HEARTBEAT_V2)
}

/// Whether events of this kind describe their file and belong to no transaction: to receive one twice does no harm.
pub fn is_of_file(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::FORMAT_DESCRIPTION
            | Kind::START_ENCRYPTION
            | Kind::PREVIOUS_GTIDS
            | Kind::MARIADB_GTID_LIST
            | Kind::BINLOG_CHECKPOINT
    )
}

/// Whether an event of this kind is the first of its transaction, whatever is before it.
pub fn is_gtid(kind: Kind) -> bool {
    matches!(kind, Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED | Kind::MARIADB_GTID)
}

#[cfg(test)]
mod tests;
