//! Transactions that are too large to hold in memory are read again from the log, piece by piece.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use binlog::FormatDescription;
use engine::Seq;
use engine::assemble::Assembler;
use engine::failure::{Failure, FailureKind};
use engine::transaction::{Body, Transaction};
use relay::Place;

/// Where a transaction's events are.
#[derive(Clone, Debug)]
pub struct Spill {
    pub from: Place,
    pub until: Place,
    pub format: Arc<FormatDescription>,
}

/// The places of the spilled transactions that are not committed yet.
#[derive(Clone, Debug, Default)]
pub struct Reread(Arc<Mutex<HashMap<Seq, Spill>>>);

/// A piece is handed on once its events have so many bytes.
const PIECE_BYTES: u64 = 4 << 20;

impl Reread {
    fn places(&self) -> std::sync::MutexGuard<'_, HashMap<Seq, Spill>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn remember(&self, seq: Seq, spill: Spill) {
        self.places().insert(seq, spill);
    }

    pub fn forget_to(&self, low_water: Seq) {
        self.places().retain(|&seq, _| seq > low_water);
    }

    /// Calls `apply` for each piece, in order. A piece is a transaction with some of the items and no write set.
    pub fn pieces(
        &self,
        transaction: &Transaction,
        apply: &mut dyn FnMut(&Transaction) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let broken = |why: String| Failure::new(FailureKind::Refused, why).at(transaction.place());
        let spill = self.places().get(&transaction.seq).cloned();
        let spill = spill.ok_or_else(|| broken("the place of a large transaction was forgotten".to_owned()))?;
        let events = relay::reread(&spill.from, &spill.until, Arc::clone(&spill.format))
            .map_err(|error| broken(error.to_string()))?;
        let mut assembler = Assembler::new(u64::MAX);
        let mut bytes = 0;
        for located in events {
            let located = located.map_err(|error| broken(error.to_string()))?;
            let (start, end) = (located.position.clone(), located.end_position());
            bytes += located.event.bytes().len() as u64;
            let finished = assembler
                .event(&located.event, &located.format, &start, &end)
                .map_err(|error| broken(error.to_string()))?;
            let items = match finished {
                Some(Transaction { body: Body::Items(items), .. }) => items,
                Some(Transaction { body: Body::Spilled { .. }, .. }) => Vec::new(),
                None if bytes >= PIECE_BYTES => assembler.take_items(),
                None => continue,
            };
            bytes = 0;
            apply(&piece(transaction, items))?;
        }
        Ok(())
    }
}

fn piece(transaction: &Transaction, items: Vec<engine::transaction::Item>) -> Transaction {
    Transaction {
        seq: transaction.seq,
        gtid: transaction.gtid.clone(),
        start: transaction.start.clone(),
        end: transaction.end.clone(),
        tags: transaction.tags,
        server_id: transaction.server_id,
        commit_time_us: transaction.commit_time_us,
        bytes: 0,
        body: Body::Items(items),
        rolls_back: transaction.rolls_back,
        only_changes: transaction.only_changes,
        beside_prepared: transaction.beside_prepared,
        branch: None,
        session: None,
        source_starts: transaction.source_starts,
        write_set: Default::default(),
        barrier: transaction.barrier,
    }
}
