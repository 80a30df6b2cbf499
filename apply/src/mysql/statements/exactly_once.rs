//! What must be done exactly once although it commits by itself.
//!
//! Before it an intent is noted on the target: which statement of which transaction, and a fingerprint of what it is about to
//! change. After a crash an unchanged fingerprint says that it was not executed (or that executing it again changes
//! nothing), a changed one that it was.

use binlog::Flavour;
use engine::failure::{Failure, FailureKind};
use engine::transaction::Transaction;

use crate::mysql::server::errors::failed;
use crate::mysql::session::MySqlSession;
use crate::{Range, Session};

/// The domain of what is MariaDB's own beside the source's GTIDs: where its numbers have to grow, one that no source's is in.
pub(in crate::mysql) const OWN_DOMAIN: &str =
    "IF(@@global.gtid_strict_mode,@@global.server_id,@@global.gtid_domain_id)";

/// Which statement of which transaction was about to be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    pub seq: u64,
    pub item: usize,
    pub fingerprint: u64,
}

impl Intent {
    /// That a transaction has failed, and left a part of itself: it must not be taken for one that is executed.
    pub fn partly(seq: u64) -> Self {
        Self { seq, item: usize::MAX, fingerprint: 0 }
    }

    pub fn is_partly(&self) -> bool {
        self.item == usize::MAX
    }

    pub fn to_text(&self) -> String {
        format!("seq={} item={} fingerprint={:016x}", self.seq, self.item, self.fingerprint)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split(' ').map(|field| field.split_once('=').map(|(_, value)| value));
        let mut next = || fields.next().flatten();
        Some(Self {
            seq: next()?.parse().ok()?,
            item: next()?.parse().ok()?,
            fingerprint: u64::from_str_radix(next()?, 16).ok()?,
        })
    }

    /// As the target has it, where anything else than an intent can not be gone on from.
    pub fn required(text: &str) -> Result<Self, Failure> {
        Self::parse(text).ok_or_else(|| {
            Failure::new(FailureKind::Refused, format!("heddle.progress: intent {text:?} is not understood"))
        })
    }
}

/// What to do once, and how to tell whether it was done.
pub struct Once<'a> {
    pub transaction: &'a Transaction,
    /// Index of the item.
    pub item: usize,
    pub range: Range<'a>,
    pub done_before: Option<&'a Intent>,
}

impl Once<'_> {
    /// Notes the intent, then runs it, unless an earlier run did.
    pub fn run(
        &self,
        session: &mut MySqlSession,
        probe: impl Fn(&mut MySqlSession) -> Result<u64, Failure>,
        run: impl Fn(&mut MySqlSession) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.run_or_complete(session, probe, run, |_| Ok(()))
    }

    /// As `run`; `again` is called when an earlier run had begun it, for what can be executed in part.
    pub fn run_or_complete(
        &self,
        session: &mut MySqlSession,
        probe: impl Fn(&mut MySqlSession) -> Result<u64, Failure>,
        run: impl Fn(&mut MySqlSession) -> Result<(), Failure>,
        again: impl Fn(&mut MySqlSession) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let now = probe(session)?;
        match self.done_before {
            Some(intent) if self.item < intent.item => return Ok(()),
            Some(intent) if self.item == intent.item && now != intent.fingerprint => {
                let place = self.transaction.place();
                tracing::info!(
                    "a statement that was under way when the connection or heddle ended had been executed: {place}"
                );
                return again(session);
            }
            _ => {}
        }
        let intent = Intent { seq: self.transaction.seq, item: self.item, fingerprint: now };
        let before = (!self.range.is_committed_range()).then_some(self.range.before);
        let noted = session.shared.statements().intend(before, &intent.to_text());
        session.bookkeeping(&noted)?;
        if let Err(failure) = run(session) {
            // A lost connection says nothing: the intent is read again with the next one.
            if failure.kind != FailureKind::ConnectionLost {
                // The server says that it was not executed: what an operator changes now must not be taken for its effect.
                session.rollback()?;
                let cleared = session.shared.statements().intend(before, "");
                session.bookkeeping(&cleared)?;
            }
            return Err(failure);
        }
        session.after_own_commit()
    }
}

impl MySqlSession {
    /// A statement of our own beside a transaction, not in the target's binary log when GTIDs are the source's. Returns how many rows
    /// it changed: one, or none when it says the same again.
    pub(in crate::mysql) fn bookkeeping(&mut self, sql: &str) -> Result<u64, Failure> {
        self.script.send(&mut self.connection)?;
        if self.shared.sets_gtid() {
            self.connection.execute("SET SESSION sql_log_bin=0").map_err(failed)?;
        }
        let done = self.few_rows(sql);
        if self.shared.sets_gtid() {
            self.connection.execute("SET SESSION sql_log_bin=1").map_err(failed)?;
        }
        done
    }

    fn few_rows(&mut self, sql: &str) -> Result<u64, Failure> {
        match self.connection.execute(sql).map_err(failed)?.affected {
            few @ (0 | 1) => Ok(few),
            more => Err(Failure::new(FailureKind::Refused, format!("{more} rows of progress for one channel"))),
        }
    }

    /// The progress outside the transaction that it is about.
    pub(in crate::mysql) fn note_beside(&mut self, range: Range<'_>) -> Result<(), Failure> {
        let note = self.shared.statements().note(range);
        self.script.send(&mut self.connection)?;
        // Islands are deleted by statements that are logged: the target's own replicas must have them.
        let noted = if range.is_committed_range() {
            self.few_rows(&self.under_own_gtid(note))?
        } else {
            self.bookkeeping(&note)?
        };
        match noted {
            0 => Err(self.shared.not_noted(range)),
            _ => Ok(()),
        }
    }

    /// A statement that commits by itself and is logged. MariaDB would take it for the source's next transaction in this session, which has
    /// the source's domain and server: it would then seem to be executed, and be skipped.
    fn under_own_gtid(&self, sql: String) -> String {
        if !(self.shared.sets_gtid() && self.shared.info.flavour == Flavour::MariaDb) {
            return sql;
        }
        format!("SET STATEMENT gtid_domain_id={OWN_DOMAIN}, server_id=@@global.server_id FOR {sql}")
    }

    /// The statement has ended the transaction that was open, if any.
    pub(in crate::mysql) fn after_own_commit(&mut self) -> Result<(), Failure> {
        self.open = false;
        if self.shared.sets_gtid_next() {
            self.connection.execute("SET SESSION gtid_next='AUTOMATIC'").map_err(failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intent_round_trip() {
        let intent = Intent { seq: 7, item: 2, fingerprint: 0xabc };
        assert_eq!(Intent::parse(&intent.to_text()), Some(intent));
        assert_eq!(Intent::parse("nonsense"), None);
        let partly = Intent::partly(8);
        assert!(Intent::parse(&partly.to_text()).is_some_and(|intent| intent.is_partly()));
    }
}
