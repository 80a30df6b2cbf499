//! Transactions larger than what is held in memory.

use std::sync::Arc;

use binlog::{Column, ColumnKind};
use bytes::Bytes;
use engine::assemble::Assembler;
use engine::failure::FailureKind;
use engine::transaction::Body;
use relay::{FileOptions, FilesReader, LogReader, Read, RealFs};

use super::lab::{Lab, Source, Val, counts, format, int, rows_of, text, transaction};
use crate::spilled::Spill;
use crate::store::files::Files;
use crate::store::{finish_staged, keys};

fn blobs() -> Source {
    let mut source = Source::full("t");
    source.columns[1] = Column { name: Some("v".to_owned()), ..Column::new(ColumnKind::BLOB, 4, true) };
    source
}

/// Puts the events into a binary log file and applies them as the runtime does with a spilled transaction.
fn spilled(lab: &mut Lab, dir: &std::path::Path, events: &[Vec<u8>]) -> Result<(), engine::failure::Failure> {
    let mut log = binlog::MAGIC.to_vec();
    for bytes in std::iter::once(&format().0).chain(events) {
        let mut bytes = bytes.clone();
        let end = (log.len() + bytes.len()) as u32;
        bytes[13..17].copy_from_slice(&end.to_le_bytes());
        if log.len() == 4 {
            // The format description has a checksum of its own.
            let (body, crc) = bytes.split_at_mut(end as usize - 8);
            crc.copy_from_slice(&crc32(body).to_le_bytes());
        }
        log.extend(bytes);
    }
    let file = dir.join("b.000001");
    std::fs::write(&file, log).unwrap();
    let mut reader =
        FilesReader::open_with(Arc::new(RealFs), vec![file], relay::Start::Beginning, FileOptions::default()).unwrap();
    let mut assembler = Assembler::new(1000);
    let mut first = None;
    while let Read::Event(located) = reader.next().unwrap() {
        if assembler.is_between_transactions() {
            first = Some((located.place.clone(), Arc::clone(&located.format)));
        }
        let (start, end) = (located.position.clone(), located.end_position());
        let Some(mut done) = assembler.event(&located.event, &located.format, &start, &end).unwrap() else { continue };
        assert!(matches!(done.body, Body::Spilled { .. }));
        let before = lab.marker.mark().clone();
        done.seq = before.seq + 1;
        let (from, format) = first.clone().unwrap();
        lab.reread.remember(done.seq, Spill { from, until: located.place.clone(), format });
        let outcome = lab.apply(before.clone(), vec![Arc::new(done)]);
        if outcome.is_err() {
            lab.marker = engine::progress::Marker::new(before);
        }
        return outcome;
    }
    panic!("no transaction in the file");
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
    changes.push(t.insert(&[int(0), Val::Null]));
    let mut broken = changes.clone();
    broken.push(t.insert(&[int(2), text("twice")]));
    let failure = spilled(&mut lab, dir.path(), &transaction(&broken)).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Divergence);
    assert!(failure.message.contains("(id=2)"), "{failure}");
    spilled(&mut lab, dir.path(), &transaction(&changes)).unwrap();
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
            let files = Files::open(&path, false).unwrap();
            let mut batch = files.db.batch();
            batch.insert(&files.data, [0, 0, 0, 9, 2], "old");
            batch.insert(&files.staging, key, [&[1u8][..], b"row"].concat());
            batch.insert(&files.staging, [0, 0, 0, 9, 2], [0u8]);
            if committed {
                batch.insert(&files.data, keys::staged(), "");
            }
            batch.commit().unwrap();
        }
        let files = Files::open(&path, false).unwrap();
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
