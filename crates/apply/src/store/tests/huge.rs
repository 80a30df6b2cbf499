//! Transactions larger than what is held in memory.

use std::sync::Arc;

use binlog::{Checksum, Column, ColumnKind, Event, LogPosition};
use bytes::Bytes;
use engine::failure::FailureKind;
use engine::intake::Assembler;
use engine::transaction::Body;

use super::lab::{Lab, Pieces, Source, TestValue, counts, format, int, rows_of, text, transaction};
use crate::store::files::Files;
use crate::store::keys;
use crate::store::records::finish_staged;

fn blobs() -> Source {
    let mut source = Source::full("t");
    source.columns[1] = Column { name: Some("v".to_owned()), ..Column::new(ColumnKind::BLOB, 4, true) };
    source
}

/// Changes that are read again together.
const CHANGES_OF_PIECE: usize = 8;

/// Applies the changes as a worker does with a spilled transaction: without its items, which come in pieces.
fn spilled(lab: &mut Lab, changes: &[Vec<Vec<u8>>]) -> Result<(), engine::failure::Failure> {
    let before = lab.marker.mark().clone();
    let pieces = changes.chunks(CHANGES_OF_PIECE);
    lab.spilled = Pieces(pieces.map(|changes| lab.assemble(&transaction(changes), before.seq)).collect());
    let (_, format) = format();
    let mut assembler = Assembler::new(1000);
    for bytes in transaction(changes) {
        let event = Event::parse(Bytes::from(bytes), Checksum::Off).unwrap();
        let position = LogPosition::new("b.000001", 100);
        let Some(mut whole) = assembler.event(&event, &format, &position, &position).unwrap() else { continue };
        assert!(matches!(whole.body, Body::Spilled { .. }));
        whole.seq = before.seq + 1;
        let outcome = lab.apply(before.clone(), vec![Arc::new(whole)]);
        if outcome.is_err() {
            lab.marker = engine::progress::Marker::new(before);
        }
        return outcome;
    }
    panic!("the events do not end a transaction");
}

#[test]
fn a_transaction_in_pieces_is_one() {
    let (dir, mut lab) = Lab::new();
    let t = blobs();
    let big = |id: i32, fill: &str| vec![int(id), text(&fill.repeat(1 << 20))];
    lab.one(&[t.insert(&[int(100), text("before")])]).unwrap();
    let mut changes: Vec<_> = (0..40).map(|id| t.insert(&big(id, "x"))).collect();
    // Rows that are in the staging keyspace by now are changed again.
    changes.push(t.delete(&big(0, "x")));
    changes.push(t.update(&big(1, "x"), &[int(1), text("small")]));
    changes.push(t.insert(&[int(0), TestValue::Null]));
    let mut broken = changes.clone();
    broken.push(t.insert(&[int(2), text("twice")]));
    let failure = spilled(&mut lab, &broken).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Divergence);
    assert!(failure.message.contains("(id=2)"), "{failure}");
    spilled(&mut lab, &changes).unwrap();
    assert_eq!(lab.marker.mark().seq, 2);
    lab.one(&[t.delete(&[int(1), text("small")])]).unwrap();
    lab.close();
    let path = dir.path().join("store");
    assert_eq!(counts(&path), [("shop.t".to_owned(), 40)]);
    let rows = rows_of(&path, "shop.t");
    assert_eq!(rows[0], "0\t\\N");
    assert!(rows.contains(&"100\tbefore".to_owned()) && rows.iter().all(|row| !row.starts_with("1\t")));
    assert_eq!(rows.iter().filter(|row| row.len() > 1 << 20).count(), 38);
}

/// Killed between the commit of a staged transaction and its rows; and before the commit.
#[test]
fn staged_rows_after_a_crash() {
    for committed in [false, true] {
        let (dir, lab) = Lab::new();
        let path = dir.path().join("store");
        lab.close();
        let key = [0, 0, 0, 9, 1];
        {
            let files = Files::open(&path).unwrap();
            let mut batch = files.db.batch();
            batch.insert(&files.data, [0, 0, 0, 9, 2], "old");
            batch.insert(&files.staging, key, [&[1u8][..], b"row"].concat());
            batch.insert(&files.staging, [0, 0, 0, 9, 2], [0u8]);
            if committed {
                batch.insert(&files.data, keys::staged(), "");
            }
            batch.commit().unwrap();
        }
        let files = Files::open(&path).unwrap();
        for _ in 0..2 {
            finish_staged(&files).unwrap();
            assert!(files.staging.is_empty().unwrap());
            assert_eq!(
                files.data.get(key).unwrap().map(|row| Bytes::copy_from_slice(&row)),
                committed.then(|| Bytes::from("row"))
            );
            assert_eq!(files.data.contains_key([0, 0, 0, 9, 2]).unwrap(), !committed);
            assert!(!files.data.contains_key(keys::staged()).unwrap());
        }
    }
}
