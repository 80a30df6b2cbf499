//! Definitions of the log that were handed over, and may not be applied yet. What is not about their tables goes on meanwhile.

use engine::Seq;
use engine::definition_change::DefinitionChange;
use engine::transaction::Transaction;

use super::no_effect;

/// More than these are waited for: each transaction is compared with all of them.
const MOST: usize = 64;

#[derive(Debug, Default)]
pub struct PendingDefinitions {
    redefined: Vec<DefinitionChange>,
    last: Seq,
}

impl PendingDefinitions {
    pub fn add(&mut self, seq: Seq, redefined: DefinitionChange) {
        if redefined != DefinitionChange::Nothing {
            self.redefined.push(redefined);
            self.last = seq;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.redefined.is_empty()
    }

    /// The last transaction of these.
    pub fn last(&self) -> Seq {
        self.last
    }

    pub fn take(&mut self) -> Vec<DefinitionChange> {
        std::mem::take(&mut self.redefined)
    }

    /// Whether a transaction needs definitions that one of these may change. A definition needs none, unless what it does depends on them.
    pub fn concerns(&self, transaction: &Transaction) -> bool {
        !self.is_empty()
            && (self.redefined.len() > MOST && !transaction.is_definition()
                || no_effect::depends_on_the_target(transaction)
                || self.redefined.iter().any(|redefined| redefined.may_concern(transaction)))
    }
}
