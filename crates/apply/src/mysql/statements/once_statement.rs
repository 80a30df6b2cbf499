//! What must be done exactly once although it commits by itself.
//!
//! Before it an intent is recorded on the target: which statement of which transaction, and a fingerprint of what it is about to change. After a
//! crash an unchanged fingerprint says that it was not executed (or that executing it again changes nothing), a changed one that it was.

use engine::failure::{Failure, FailureKind};
use engine::transaction::{Item, Transaction};

use super::unfinished_statements::UnfinishedStatements;
use crate::Range;
use crate::mysql::progress::intent::{FingerprintScope, Intent, Intents};
use crate::mysql::session::connection::ChannelConnection;

/// What to do once, and how to tell whether it was done.
pub struct OnceStatement<'a> {
    pub transaction: &'a Transaction,
    /// Index of the item.
    pub item: usize,
    pub range: Range<'a>,
    pub done_before: Option<&'a Intent>,
    pub unfinished: &'a UnfinishedStatements,
}

impl OnceStatement<'_> {
    /// Records the intent, then runs it, unless an earlier run did. The record may wait in the script: `run` sends it, before anything else.
    pub fn run(
        &self,
        connection: &mut ChannelConnection,
        fingerprint: impl Fn(&mut ChannelConnection, FingerprintScope) -> Result<u64, Failure>,
        run: impl Fn(&mut ChannelConnection) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.run_or_complete(connection, fingerprint, run, |_| Ok(()))
    }

    /// As `run`; `complete` is called when an earlier run had begun it, for what can be executed in part.
    pub fn run_or_complete(
        &self,
        connection: &mut ChannelConnection,
        fingerprint: impl Fn(&mut ChannelConnection, FingerprintScope) -> Result<u64, Failure>,
        run: impl Fn(&mut ChannelConnection) -> Result<(), Failure>,
        complete: impl Fn(&mut ChannelConnection) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let look = self.done_before.map_or_else(FingerprintScope::default, |before| before.look);
        let now = fingerprint(connection, look)?;
        match self.done_before {
            Some(intent) if self.item < intent.item => return Ok(()),
            Some(intent) if self.item == intent.item && now != intent.fingerprint => {
                let place = self.transaction.place();
                tracing::info!("a statement that was under way had been executed: {place}");
                complete(connection)?;
                self.unfinished.set_executed(intent.clone());
                return Ok(());
            }
            _ => {}
        }
        let intent = Intent { seq: self.transaction.seq, item: self.item, fingerprint: now, look };
        let intent = Some(intent).filter(|_| !self.is_idempotent());
        // In any case: the lease is compared with it.
        self.record(connection, intent.clone())?;
        if let Err(failure) = run(connection) {
            // A lost connection says nothing: the intent is read again with the next one.
            if failure.kind != FailureKind::ConnectionLost {
                // The server says that it was not executed: what an operator changes now must not be taken for its effect.
                connection.rollback()?;
                self.record(connection, None)?;
                connection.send()?;
            }
            return Err(failure);
        }
        intent.into_iter().for_each(|intent| self.unfinished.set_executed(intent));
        connection.after_own_commit()
    }

    /// It may be executed any number of times: nothing has to be known of it.
    fn is_idempotent(&self) -> bool {
        matches!(self.transaction.items(), [Item::Statement(statement)] if statement.is_idempotent())
    }

    fn record(&self, connection: &mut ChannelConnection, intent: Option<Intent>) -> Result<(), Failure> {
        let before = (!self.range.is_committed_range()).then_some(self.range.before);
        let later = self.unfinished.later_than(self.transaction.seq);
        let intents = Intents::new(intent.into_iter().collect()).with_later(&later);
        let statement = connection.progress().intend(before, &intents.to_text());
        if connection.gtids().are_preserved() {
            return connection.execute_unlogged(&statement).map(|_| ());
        }
        connection.script.statement(statement);
        Ok(())
    }
}
