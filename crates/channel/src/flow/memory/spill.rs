//! Transactions that are too large to hold in memory: read again from the log, piece by piece.
//!
//! The feeder remembers where their events are, a session applies the pieces. Holds places, never events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use apply::spilled_transactions::SpilledTransactions;
use binlog::FormatDescription;
use engine::Seq;
use engine::failure::{Failure, FailureKind};
use engine::intake::{Pieces, PlacedEvent, Selection};
use engine::transaction::{Body, Transaction, WriteSet};
use relay::Place;

/// Where a transaction's events are.
#[derive(Clone, Debug)]
pub struct Spill {
    pub from: Place,
    pub until: Place,
    pub format: Arc<FormatDescription>,
}

/// The places of the spilled transactions that are not committed yet.
#[derive(Clone, Debug)]
pub struct Spills {
    places: Arc<Mutex<HashMap<Seq, Spill>>>,
    event_bytes_max: u64,
    selection: Selection,
}

impl Spills {
    /// What is compressed is read again up to so many bytes at once. `selection`: what of the log goes on.
    pub fn new(event_bytes_max: u64, selection: Selection) -> Self {
        Self { places: Arc::default(), event_bytes_max, selection }
    }

    fn places(&self) -> std::sync::MutexGuard<'_, HashMap<Seq, Spill>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before the transaction is handed on.
    pub fn remember(&self, seq: Seq, spill: Spill) {
        self.places().insert(seq, spill);
    }

    /// Everything up to there is committed.
    pub fn forget_to(&self, low_water: Seq) {
        self.places().retain(|&seq, _| seq > low_water);
    }
}

impl SpilledTransactions for Spills {
    fn pieces(
        &self,
        transaction: &Transaction,
        apply: &mut dyn FnMut(&Transaction) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let broken = |why: String| Failure::new(FailureKind::Refused, why).at(transaction.place());
        let spill = self.places().get(&transaction.seq).cloned();
        let spill = spill.ok_or_else(|| broken("the place of a large transaction was forgotten".to_owned()))?;
        let events = relay::reread(&spill.from, &spill.until, Arc::clone(&spill.format))
            .map_err(|error| broken(error.to_string()))?;
        let mut pieces = Pieces::inflating_at_most(self.event_bytes_max).selecting(self.selection.clone());
        for located in events {
            let located = located.map_err(|error| broken(error.to_string()))?;
            let placed = PlacedEvent {
                event: &located.event,
                format: &located.format,
                start: &located.position,
                end: &located.end_position(),
            };
            pieces.event(placed, |error| broken(error.to_string()), &mut |items| apply(&piece(transaction, items)))?;
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
        original_commit_us: transaction.original_commit_us,
        bytes: 0,
        map_bytes: 0,
        body: Body::Items(items),
        rolls_back: transaction.rolls_back,
        only_changes: transaction.only_changes,
        beside_prepared: transaction.beside_prepared,
        unsafe_statements: Vec::new(),
        left_out: Vec::new(),
        refusal: None,
        branch: None,
        session: None,
        source_starts: transaction.source_starts,
        write_set: WriteSet::default(),
        barrier: transaction.barrier,
    }
}

#[cfg(test)]
mod tests {
    use binlog::encode::{FormatSpec, Head, RowsSpec, TableMapSpec, format_description, query, rows, table_map, xid};
    use binlog::{Bitmap, Checksum, Column, ColumnKind, Flavour, RowsKind};
    use relay::{FileOptions, FilesReader, LogReader, Read, RealFs};

    use engine::intake::Assembler;

    use super::*;

    const HEAD: Head = Head { timestamp: 1, server_id: 1, flags: 0, offset: None, checksum: Checksum::Off };

    /// One inserted row of `(id INT, v LONGBLOB)`.
    fn insert(id: i32, bytes: usize) -> [Vec<u8>; 2] {
        let columns = [Column::new(ColumnKind::LONG, 0, false), Column::new(ColumnKind::BLOB, 4, true)];
        let map = TableMapSpec {
            table_id: 7,
            flags: 1,
            schema: "shop",
            table: "t",
            columns: &columns,
            primary_key: None,
            metadata: false,
        };
        let spec = RowsSpec {
            kind: RowsKind::Write,
            table_id: 7,
            flags: 1,
            version: 2,
            extra: &[],
            before_columns: &Bitmap::full(2),
            after_columns: &Bitmap::full(2),
            partial_json: false,
        };
        let body = [&[0xfc][..], &id.to_le_bytes(), &(bytes as u32).to_le_bytes(), &vec![b'x'; bytes]].concat();
        [table_map(&HEAD, &map), rows(&HEAD, &spec, &body)]
    }

    /// A binary log file with one transaction of these events.
    fn file_of(changes: impl Iterator<Item = [Vec<u8>; 2]>) -> Vec<u8> {
        let spec = FormatSpec::new("8.0.36", Flavour::MySql, Checksum::Off);
        let mut log = binlog::MAGIC.to_vec();
        let sql = |text: &str| query(&HEAD, 1, 0, 0, "shop", &[], text.as_bytes());
        let mut add = |bytes: Vec<u8>| {
            let start = log.len();
            log.extend(bytes);
            let end = (log.len() as u32).to_le_bytes();
            log[start + 13..start + 17].copy_from_slice(&end);
            if start == 4 {
                // The format description has a checksum of its own.
                let checksum = log.len() - 4;
                let sum = crc32(&log[start..checksum]).to_le_bytes();
                log[checksum..].copy_from_slice(&sum);
            }
        };
        add(format_description(&HEAD, &spec));
        add(sql("BEGIN"));
        changes.flatten().for_each(&mut add);
        add(xid(&HEAD, 9));
        log
    }

    fn crc32(bytes: &[u8]) -> u32 {
        let mut crc = !0u32;
        for byte in bytes {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = (crc >> 1) ^ (0xedb8_8320 & (0u32.wrapping_sub(crc & 1)));
            }
        }
        !crc
    }

    /// Reads the file as the feeder does: the spilled transaction, remembered under number 5.
    fn remembered(path: std::path::PathBuf, spills: &Spills) -> Transaction {
        let start = relay::Start::Beginning;
        let mut reader = FilesReader::open_with(Arc::new(RealFs), vec![path], start, FileOptions::default()).unwrap();
        let mut assembler = Assembler::new(1000);
        let mut first = None;
        while let Read::Event(located) = reader.next().unwrap() {
            if assembler.is_between_transactions() {
                first = Some((located.place.clone(), Arc::clone(&located.format)));
            }
            let (start, end) = (located.position.clone(), located.end_position());
            let Some(mut done) = assembler.event(&located.event, &located.format, &start, &end).unwrap() else {
                continue;
            };
            assert!(matches!(done.body, Body::Spilled { .. }));
            done.seq = 5;
            let (from, format) = first.clone().unwrap();
            spills.remember(done.seq, Spill { from, until: located.place.clone(), format });
            return done;
        }
        panic!("no transaction in the file");
    }

    #[test]
    fn pieces_are_the_whole_transaction_once() {
        let path = std::env::temp_dir().join(format!("heddle-spill-{}", std::process::id()));
        std::fs::write(&path, file_of((0..12).map(|id| insert(id, 1 << 20)))).unwrap();
        let spills = Spills::new(1 << 30, Selection::sent());
        let transaction = remembered(path.clone(), &spills);
        let rows_of_pieces = || {
            let mut pieces = Vec::new();
            let done = spills.pieces(&transaction, &mut |piece| {
                assert_eq!((piece.seq, piece.server_id), (5, transaction.server_id));
                pieces.push(piece.items().len());
                Ok(())
            });
            std::fs::remove_file(&path).ok();
            done.map(|()| pieces)
        };
        let pieces = rows_of_pieces().unwrap();
        assert_eq!(pieces.iter().sum::<usize>(), 12);
        assert!(pieces.len() > 2, "{pieces:?}");
        spills.forget_to(5);
        assert!(rows_of_pieces().unwrap_err().message.contains("was forgotten"));
    }
}
