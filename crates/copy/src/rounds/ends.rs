//! Both ends of a copy, and the steps from one round to the next.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use apply::mysql::AccountStatements;
use apply::mysql::progress::copy_lock_name;
use apply::mysql::server::errors::failed;
use apply::mysql::server::sql::{identifier, quote};
use engine::failure::{Failure, FailureKind};
use engine::intake::Filter;
use engine::windows::{Low, Reading};
use wire::Connection;

use crate::accounts::{AccountTransfer, Preparation};
use crate::bookkeeping::{CopyPlace, CopyState, Phase, TableStatus, tables_of};
use crate::definitions::{CopyPart, TargetNames, TargetStatement};
use crate::limits::CopyLimits;
use crate::measures::Measures;
use crate::place::{self, CopyTarget};
use crate::source::source_failure;
use crate::source::{self, CopySource, Windows};

use super::channel::{CopyChannel, LogPart};

/// So many rounds: afterwards something is wrong, or never at rest.
const ROUNDS_MAX: u32 = 100;

/// What a copy depends on.
pub struct CopyRequest<'a> {
    pub source: CopySource<'a>,
    pub target: CopyTarget<'a>,
    pub channel: &'a str,
    pub part: CopyPart<'a>,
    pub workers: usize,
    pub limits: CopyLimits<'a>,
    /// Towards the source, for reading its log beside the channel.
    pub server_id: u32,
    pub memory_bytes: u64,
    pub measures: &'a Measures,
    pub stop: &'a AtomicBool,
}

/// Both ends, while a copy runs.
pub struct Ends<'a> {
    pub request: &'a CopyRequest<'a>,
    pub source: Connection,
    /// Of the target.
    pub control: Connection,
    pub windows: Windows,
    pub names: TargetNames,
    pub accounts: AccountChoice,
}

/// Whether the target gets the source's accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountChoice {
    Copied,
    /// Nobody has asked for them, or an end does not let them be copied.
    LeftOut,
}

impl CopyRequest<'_> {
    /// What was asked for: of a part of the source, accounts would have grants on what is not there; a channel that has begun has them.
    pub fn accounts(&self) -> AccountChoice {
        let is_whole = self.part.already.is_none() && self.part.taken.is_none_or(Filter::takes_all_tables);
        if is_whole && self.target.accounts == AccountStatements::Apply {
            AccountChoice::Copied
        } else {
            AccountChoice::LeftOut
        }
    }
}

impl Ends<'_> {
    /// The source's accounts as they are now. `None`: they are not copied, which is said once.
    pub fn accounts(&mut self) -> Result<Option<Box<AccountTransfer>>, Failure> {
        if self.accounts == AccountChoice::LeftOut {
            return Ok(None);
        }
        match AccountTransfer::prepare(&mut self.source, &mut self.control, self.request.channel)? {
            Preparation::Ready(accounts) => Ok(Some(accounts)),
            Preparation::Impossible(why) => {
                tracing::warn!("copy: {why}");
                self.accounts = AccountChoice::LeftOut;
                Ok(None)
            }
        }
    }
}

impl Ends<'_> {
    pub fn follow(&mut self, state: &mut CopyState, channel: &mut CopyChannel<'_, '_>) -> Result<(), Failure> {
        let high = state
            .high
            .clone()
            .ok_or_else(|| Failure::new(FailureKind::Refused, "the copy's record has no end of its log"))?;
        let tables = tables_of(&mut self.control, &state.channel)?;
        let takes =
            tables.iter().filter(|table| table.reading == Reading::Chunks && table.status == TableStatus::Placed);
        let following =
            LogPart { from: state.low.clone(), to: high, tables: takes.map(|table| table.name.clone()).collect() };
        self.request.measures.begin(format!(
            "applying the log of round {} up to {}",
            state.round,
            following.to.position.as_ref().map_or_else(String::new, ToString::to_string)
        ));
        (channel.follow)(&following)?;
        // The channel takes its time: idle connections may be gone.
        self.reconnect()?;
        if tables.iter().any(|table| table.status == TableStatus::Pending) {
            channel.go_on()?;
            return self.next_round(state);
        }
        // What it has applied by then may lie behind this round's end: in another round, in which there is next to nothing to read, it does not.
        if channel.hold()? {
            return self.next_round(state);
        }
        state.phase = Phase::Finishing;
        state.record(&mut self.control)
    }

    pub fn next_round(&mut self, state: &mut CopyState) -> Result<(), Failure> {
        if state.round >= ROUNDS_MAX {
            return Err(Failure::new(
                FailureKind::Refused,
                format!("after {ROUNDS_MAX} rounds there are still tables whose definitions, or rows, change as they are read, or accounts that change"),
            )
            .remedy("the log says which (copy: … is read again); leave them alone for a while, or leave them out (--ignore)"));
        }
        state.round += 1;
        state.phase = Phase::Reading;
        state.record(&mut self.control)
    }

    pub fn reconnect(&mut self) -> Result<(), Failure> {
        if self.source.scalar("SELECT 1").is_err() {
            self.source = source::connect(self.request.source.rows()).map_err(source_failure)?;
        }
        if self.control.scalar("SELECT 1").is_err() {
            self.control = place::connect(self.request.target)?;
            take_lock(&mut self.control, self.request.channel)?;
        }
        Ok(())
    }

    /// All up to the place is visible to reads that begin from now on.
    pub fn wait_until_visible(&mut self, place: &CopyPlace) -> Result<(), Failure> {
        loop {
            let low = self.windows.low(&mut self.source).map_err(source_failure)?;
            let is_visible = match (&low, &place.position) {
                (Low::Gtids(seen), _) => seen.contains_state(&place.gtids),
                (Low::Position(low), Some(position)) => low >= position,
                (Low::Position(_), None) => false,
            };
            if is_visible {
                return Ok(());
            }
            if self.request.stop.load(Ordering::Relaxed) {
                return Err(Failure::new(FailureKind::Stopped, "the copy was asked to end"));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// On the target, in its schema.
pub fn execute_there(target: &mut Connection, statement: &TargetStatement) -> Result<(), Failure> {
    let use_schema = (!statement.schema.is_empty()).then(|| format!("USE {}", identifier(&statement.schema)));
    for sql in use_schema.iter().chain([&statement.sql]) {
        target.execute(sql).map_err(failed)?;
    }
    Ok(())
}

/// One heddle copies. The number of the copy fences one that has lost its connection.
pub fn take_lock(control: &mut Connection, channel: &str) -> Result<(), Failure> {
    let lock = quote(&copy_lock_name(channel));
    let got = control.scalar(format!("SELECT GET_LOCK({lock}, 10)")).map_err(failed)?;
    if got.as_deref() == Some("1") {
        return Ok(());
    }
    Err(Failure::new(FailureKind::Fenced, format!("another heddle copies into channel {channel} now"))
        .remedy("let it, or end it first"))
}
