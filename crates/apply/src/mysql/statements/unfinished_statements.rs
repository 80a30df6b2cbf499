//! What earlier runs, connections or attempts have left unfinished, until its transaction comes; and what was executed, until that is recorded.

use std::sync::Mutex;

use engine::Seq;

use crate::lock::locked;
use crate::mysql::progress::intent::{Intent, Intents};

#[derive(Debug, Default)]
pub struct UnfinishedStatements {
    /// Statements that may have been executed.
    intents: Mutex<Intents>,
    /// The transaction that has failed in this run and left a part of itself, and why.
    in_part: Mutex<Option<(Seq, String)>>,
}

impl UnfinishedStatements {
    pub fn set_intents(&self, intents: Intents) {
        *locked(&self.intents) = intents;
    }

    /// Its statement was executed, and the target does not say so yet. If the record of it fails, the next attempt has to know.
    pub fn set_executed(&self, intent: Intent) {
        locked(&self.intents).put(intent);
    }

    /// The intent of this transaction, if there is one. It is given once.
    pub fn take_intent(&self, seq: Seq) -> Option<Intent> {
        locked(&self.intents).take(seq)
    }

    /// As [`take_intent`](Self::take_intent), and it stays.
    pub fn intent_of(&self, seq: Seq) -> Option<Intent> {
        locked(&self.intents).of(seq).cloned()
    }

    /// Those of transactions after this one: whatever is recorded meanwhile, they stay.
    pub fn later_than(&self, seq: Seq) -> Intents {
        locked(&self.intents).after(seq)
    }

    pub fn set_in_part(&self, seq: Seq, why: &str) {
        *locked(&self.in_part) = Some((seq, why.to_owned()));
    }

    /// Why the transaction was executed in part only, if it was.
    pub fn in_part(&self, seq: Seq) -> Option<String> {
        locked(&self.in_part).as_ref().filter(|(failed, _)| *failed == seq).map(|(_, why)| why.clone())
    }
}
