//! How far a copy is: its phase, and the places of the source's log that belong to it.

use apply::mysql::BinlogChoice;
use apply::mysql::progress::SCHEMA;
use apply::mysql::server::errors::{failed, if_there};
use apply::mysql::server::sql::quote;
use binlog::LogPosition;
use binlog::gtids::GtidState;
use engine::failure::{Failure, FailureKind};
use wire::{Connection, Row};

use super::tables::{COPY_TABLES, create};

/// What is done in a round, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Rows are read and placed.
    Reading,
    /// The log of the round is applied.
    Following,
    /// Foreign keys and programs are made.
    Finishing,
}

impl Phase {
    fn as_str(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Following => "following",
            Self::Finishing => "finishing",
        }
    }

    fn of(text: &str) -> Option<Self> {
        [Self::Reading, Self::Following, Self::Finishing].into_iter().find(|phase| phase.as_str() == text)
    }
}

/// A place of the source's log that a copy has to do with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyPlace {
    /// `None`: known by its GTIDs alone.
    pub position: Option<LogPosition>,
    /// All that comes before it; none for a source without GTIDs.
    pub gtids: GtidState,
}

/// The row of `copies`.
#[derive(Clone, Debug)]
pub struct CopyState {
    pub channel: String,
    pub epoch: u64,
    pub phase: Phase,
    pub round: u32,
    /// As [`wire::source::identity`] says it.
    pub source: String,
    /// What the channel takes, as its options; none: all of the source.
    pub selection: String,
    /// Whether the copied rows are in the target's binary log.
    pub logged: BinlogChoice,
    /// Where the channel begins.
    pub low: CopyPlace,
    /// Where the log of the last round ends; the first has none before it is read.
    pub high: Option<CopyPlace>,
}

impl CopyState {
    /// The copy of a channel, if it is not finished.
    pub fn read(connection: &mut Connection, channel: &str) -> Result<Option<Self>, Failure> {
        let found = connection.row(format!(
            "SELECT epoch, phase, round, source, low, high, gtids, is_logged, selection FROM {SCHEMA}.copies WHERE channel={}",
            quote(channel)
        ));
        match if_there(found)?.flatten() {
            Some(row) => Self::of_row(channel, &row).map(Some),
            None => Ok(None),
        }
    }

    fn of_row(channel: &str, row: &Row) -> Result<Self, Failure> {
        let text = |at: usize| row.text(at).map(|text| text.unwrap_or_default().to_owned()).map_err(failed);
        let damaged = || {
            Failure::new(
                FailureKind::Refused,
                format!("the row of channel {channel} in {SCHEMA}.copies can not be understood"),
            )
        };
        let gtids =
            |text: &str| if text.is_empty() { Ok(GtidState::None) } else { text.parse().map_err(|_| damaged()) };
        let (low_position, low_gtids) =
            text(4)?.split_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).ok_or_else(damaged)?;
        let position =
            |text: &str| if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(|_| damaged()) };
        let high = position(&text(5)?)?
            .map(|high| Ok::<_, Failure>(CopyPlace { position: Some(high), gtids: gtids(&text(6)?)? }));
        Ok(Self {
            channel: channel.to_owned(),
            epoch: row.required(0).map_err(failed)?,
            phase: Phase::of(&text(1)?).ok_or_else(damaged)?,
            round: row.required(2).map_err(failed)?,
            source: text(3)?,
            selection: text(8)?,
            logged: if text(7)? == "0" { BinlogChoice::No } else { BinlogChoice::Yes },
            low: CopyPlace { position: position(&low_position)?, gtids: gtids(&low_gtids)? },
            high: high.transpose()?,
        })
    }

    /// A new copy.
    pub fn begin(&self, connection: &mut Connection) -> Result<(), Failure> {
        for statement in create() {
            connection.execute(statement).map_err(failed)?;
        }
        let (high, gtids) = self.high_texts();
        let sql = format!(
            "INSERT INTO {SCHEMA}.copies (channel, epoch, phase, round, source, low, high, gtids, is_logged, selection) VALUES ({}, {}, '{}', {}, {}, {}, {high}, {gtids}, {}, {})",
            quote(&self.channel),
            self.epoch,
            self.phase.as_str(),
            self.round,
            quote(&self.source),
            quote(&format!(
                "{}\n{}",
                self.low.position.as_ref().map_or_else(String::new, ToString::to_string),
                self.low.gtids
            )),
            u8::from(self.logged == BinlogChoice::Yes),
            quote(&self.selection),
        );
        connection.execute(sql).map(|_| ()).map_err(failed)
    }

    /// Takes the copy over: what an earlier process has under way ends before this returns, and it begins nothing more.
    pub fn take_over(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        let of = quote(&self.channel);
        connection.execute(format!("UPDATE {SCHEMA}.copies SET epoch=epoch+1 WHERE channel={of}")).map_err(failed)?;
        let epoch =
            connection.scalar(format!("SELECT epoch FROM {SCHEMA}.copies WHERE channel={of}")).map_err(failed)?;
        self.epoch = epoch.and_then(|epoch| epoch.parse().ok()).ok_or_else(|| fenced(&self.channel))?;
        Ok(())
    }

    /// Records the phase, and what belongs to it.
    pub fn record(&self, connection: &mut Connection) -> Result<(), Failure> {
        let (high, gtids) = self.high_texts();
        // The number makes the statement change the row, or find none.
        let sql = format!(
            "UPDATE {SCHEMA}.copies SET phase='{}', round={}, high={high}, gtids={gtids} WHERE channel={} AND epoch={}",
            self.phase.as_str(),
            self.round,
            quote(&self.channel),
            self.epoch
        );
        connection.execute(sql).map_err(failed)?;
        self.check(connection)
    }

    /// Whether this process still has the copy. In a transaction: it keeps it until that ends.
    pub fn check(&self, connection: &mut Connection) -> Result<(), Failure> {
        let sql =
            format!("SELECT epoch FROM {SCHEMA}.copies WHERE channel={} LOCK IN SHARE MODE", quote(&self.channel));
        let epoch = connection.scalar(sql).map_err(failed)?;
        if epoch.and_then(|epoch| epoch.parse().ok()) == Some(self.epoch) { Ok(()) } else { Err(fenced(&self.channel)) }
    }

    /// All rows are there.
    pub fn forget(&self, connection: &mut Connection) -> Result<(), Failure> {
        self.check(connection)?;
        let of = quote(&self.channel);
        // Its own row last: until then it is under way.
        for table in COPY_TABLES.iter().rev() {
            connection.execute(format!("DELETE FROM {SCHEMA}.{table} WHERE channel={of}")).map_err(failed)?;
        }
        Ok(())
    }

    fn high_texts(&self) -> (String, String) {
        let position =
            self.high.as_ref().and_then(|high| high.position.as_ref()).map_or_else(String::new, ToString::to_string);
        let gtids = self.high.as_ref().map_or_else(String::new, |high| high.gtids.to_string());
        (quote(&position), quote(&gtids))
    }
}

fn fenced(channel: &str) -> Failure {
    Failure::new(FailureKind::Fenced, format!("another heddle goes on with the copy of channel {channel}"))
        .remedy("let that one go on; or end it, and run the same command again")
}
