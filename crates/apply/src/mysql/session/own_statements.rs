//! Statements of our own beside the target transaction that is open, or outside any.
//!
//! With the source's GTIDs they must not take one: they stay out of the target's binary log, or get a GTID of its own.

use engine::failure::{Failure, FailureKind};

use super::connection::ChannelConnection;
use crate::Range;
use crate::mysql::server::errors::failed;
use crate::mysql::session::settings::BinlogChoice;

impl ChannelConnection {
    /// Statements that commit by themselves, and that the target's replicas do not need.
    pub fn execute_beside(&mut self, statements: &[String]) -> Result<(), Failure> {
        let is_logged = self.info().log_bin && self.channel.connector.logged() == BinlogChoice::Yes;
        if is_logged {
            self.execute_despite_interruption("SET SESSION sql_log_bin=0")?;
        }
        let done = statements.iter().try_for_each(|sql| self.execute(sql));
        if is_logged {
            self.execute_despite_interruption("SET SESSION sql_log_bin=1")?;
        }
        done
    }

    /// A statement on our own tables. Returns how many rows it changed: one, or none when it says the same again.
    pub fn execute_unlogged(&mut self, sql: &str) -> Result<u64, Failure> {
        self.send()?;
        let is_logged = !self.channel.gtids.are_preserved();
        if !is_logged {
            self.execute_despite_interruption("SET SESSION sql_log_bin=0")?;
        }
        let done = self.change_one_row(sql);
        if !is_logged {
            self.execute_despite_interruption("SET SESSION sql_log_bin=1")?;
        }
        done
    }

    fn change_one_row(&mut self, sql: &str) -> Result<u64, Failure> {
        match self.wire.execute(sql).map_err(failed)?.affected {
            few @ (0 | 1) => Ok(few),
            more => Err(Failure::new(FailureKind::Refused, format!("{more} rows of progress for one channel"))),
        }
    }

    /// Records the progress outside the transaction that it is about.
    pub fn record_beside(&mut self, range: Range<'_>) -> Result<(), Failure> {
        let record = self.progress().record(range);
        self.send()?;
        // Committed ranges are deleted by statements that are logged: the target's own replicas must have them.
        let recorded = if range.is_committed_range() {
            self.change_one_row(&self.channel.gtids.under_own_gtid(record))?
        } else {
            self.execute_unlogged(&record)?
        };
        match recorded {
            0 => Err(self.progress().not_recorded(range)),
            _ => Ok(()),
        }
    }
}
