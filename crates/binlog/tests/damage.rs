//! Damaged input: torn at every byte, flipped in every byte, garbage. Never a panic, never a wrong event taken for good.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unreachable,
    clippy::unwrap_used,
    reason = "a test"
)]

mod common;

use binlog::frame::{Finish, Framer, Step};
use binlog::rows::RowsEvent;
use binlog::{CorruptionKind, Event, FormatDescription, Kind, TableMap, TransactionPayload};
use bytes::Bytes;
use common::{Tables, events, flattened, golden_logs};
use proptest::prelude::*;

/// Everything a reader does with an event, errors ignored: only a panic fails.
fn decode_all(event: &Event, f: &FormatDescription, tables: &mut Tables) {
    let _ = binlog::Query::decode(event, f);
    let _ = binlog::rotate::Rotate::decode(event, f);
    let _ = binlog::intvar::IntVar::decode(event, f);
    let _ = binlog::rand::Rand::decode(event, f);
    let _ = binlog::user_var::UserVar::decode(event, f);
    let _ = binlog::xid::Xid::decode(event, f);
    let _ = binlog::load_data::LoadBlock::decode(event, f);
    let _ = binlog::load_data::ExecuteLoadQuery::decode(event, f);
    let _ = binlog::load_data::DeleteFile::decode(event, f);
    let _ = binlog::rows_query::RowsQuery::decode(event, f);
    let _ = binlog::incident::Incident::decode(event, f);
    let _ = binlog::heartbeat::Heartbeat::decode(event, f);
    let _ = binlog::MySqlGtid::decode(event, f);
    let _ = binlog::PreviousGtids::decode(event, f);
    let _ = binlog::XaPrepare::decode(event, f);
    let _ = binlog::MariaDbGtid::decode(event, f);
    let _ = binlog::MariaDbGtidList::decode(event, f);
    let _ = binlog::gtid_list::BinlogCheckpoint::decode(event, f);
    let _ = FormatDescription::decode(event.bytes());
    if let Ok(payload) = TransactionPayload::decode(event, f)
        && let Ok(events) = payload.events(1 << 20)
    {
        events.for_each(drop);
    }
    if let Ok(map) = TableMap::decode(event, f) {
        tables.0.insert(map.table_id, map);
    }
    if let Ok(rows) = RowsEvent::decode(event, f) {
        for table in tables.0.values() {
            for images in rows.images(table).flatten() {
                for (range, present) in [(images.before, &rows.before_columns), (images.after, &rows.after_columns)] {
                    let Some(range) = range else { continue };
                    for value in table.layout().columns(present, &rows.rows[range]).flatten() {
                        binlog::value::display(&table.columns[value.column], value.value.unwrap_or_default(), false);
                    }
                }
            }
        }
    }
}

/// The offsets at which events end in `bytes`, which is a whole log.
fn ends(bytes: &[u8]) -> Vec<usize> {
    events(bytes).iter().map(|(offset, event, _)| *offset as usize + event.bytes().len()).collect()
}

#[test]
fn torn_at_every_byte() {
    for log in golden_logs() {
        let bytes = Bytes::from(std::fs::read(&log).unwrap());
        let ends = ends(&bytes);
        let step = if bytes.len() > 20_000 { 97 } else { 1 };
        for cut in (0..bytes.len()).step_by(step) {
            let mut framer = Framer::new();
            framer.push(bytes.slice(..cut));
            let mut count = 0;
            let at_least = loop {
                match framer.next() {
                    Step::Event { .. } => count += 1,
                    Step::NeedMore { at_least } => break at_least,
                    Step::Corrupt(corrupt) => panic!("{} cut at {cut}: {corrupt}", log.display()),
                }
            };
            assert_eq!(count, ends.iter().filter(|end| **end <= cut).count());
            assert!(at_least > 0 && cut + at_least <= bytes.len());
            let start = ends.iter().rev().find(|end| **end <= cut).copied().unwrap_or(if cut < 4 { 0 } else { 4 });
            let clean = start == cut && cut >= 4;
            match framer.finish() {
                Finish::Clean => assert!(clean, "cut at {cut}"),
                Finish::Torn { offset, have, want } => {
                    assert!(!clean, "cut at {cut}");
                    assert_eq!((offset as usize, have), (start, cut - start));
                    assert!(want > have);
                }
            }
        }
    }
}

#[test]
fn chunks_of_any_size_give_the_same_events() {
    for log in golden_logs() {
        let bytes = Bytes::from(std::fs::read(&log).unwrap());
        let whole = events(&bytes);
        for size in [1, 7, 19, 100, 4096] {
            let mut framer = Framer::new();
            let mut seen = Vec::new();
            for chunk in bytes.chunks(size) {
                framer.push(Bytes::copy_from_slice(chunk));
                while let Step::Event { event, offset } = framer.next() {
                    seen.push((offset, event, framer.format().unwrap().clone()));
                }
            }
            assert_eq!(framer.finish(), Finish::Clean);
            assert_eq!(seen, whole);
        }
    }
}

/// With checksums, a flipped bit anywhere ends in an error or a torn tail, but for the in-use flag.
#[test]
fn flipped_bits_are_caught() {
    for log in golden_logs() {
        let bytes = std::fs::read(&log).unwrap();
        let whole = events(&bytes);
        let summed = whole[0].2.checksum == binlog::Checksum::Crc32;
        let step = if bytes.len() > 20_000 { 211 } else { 1 + bytes.len() / 500 };
        for at in (0..bytes.len()).step_by(step) {
            for bit in [0, 3, 7] {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                let mut framer = Framer::new();
                framer.push(damaged.into());
                let mut count = 0;
                let mut tables = Tables::default();
                let corrupt = loop {
                    match framer.next() {
                        Step::Event { event, .. } => {
                            count += 1;
                            if !summed {
                                decode_all(&event, &framer.format().unwrap().clone(), &mut tables);
                            }
                        }
                        Step::NeedMore { .. } => break None,
                        Step::Corrupt(corrupt) => break Some(corrupt),
                    }
                };
                let in_use_flag = at == 4 + 17 && bit == 0;
                // Whether events are summed is itself in a format description: turned off, nothing can be checked.
                let algorithm = whole.iter().any(|(offset, event, _)| {
                    event.kind() == Kind::FORMAT_DESCRIPTION && at as u64 == offset + event.bytes().len() as u64 - 5
                });
                if summed && !in_use_flag && !algorithm {
                    let torn = framer.finish() != Finish::Clean;
                    assert!(corrupt.is_some() || torn, "{} byte {at} bit {bit}", log.display());
                    assert!(count < whole.len());
                }
                if let Some(corrupt) = corrupt {
                    assert!(corrupt.offset <= bytes.len() as u64);
                    assert!(!corrupt.to_string().is_empty());
                    assert!(matches!(framer.next(), Step::Corrupt(again) if again == corrupt));
                }
            }
        }
    }
}

#[test]
fn encrypted_and_foreign_files() {
    let check = |bytes: &[u8], want: CorruptionKind| {
        let mut framer = Framer::new();
        framer.push(Bytes::copy_from_slice(bytes));
        match framer.next() {
            Step::Corrupt(corrupt) => assert_eq!(corrupt.what, want),
            other => panic!("{other:?}"),
        }
    };
    check(b"\xfdbin\x01\x02\x03", CorruptionKind::Encrypted);
    check(b"PK\x03\x04....", CorruptionKind::Magic(*b"PK\x03\x04"));
    let log = std::fs::read(golden_logs().remove(0)).unwrap();
    let first = events(&log).remove(0).1;
    // The log starts in the middle.
    let second = &log[4 + first.bytes().len()..];
    check(&[b"\xfebin", second].concat(), CorruptionKind::NoFormat(Kind(second[4])));
    // MariaDB's START_ENCRYPTION.
    let head = binlog::encode::Head::new(0, 1, first.checksum());
    let start = binlog::encode::event(Kind::START_ENCRYPTION, &head, &[0; 17]);
    let mut framer = Framer::new();
    framer.push([&log[..4 + first.bytes().len()], &start].concat().into());
    assert!(matches!(framer.next(), Step::Event { .. }));
    assert!(matches!(framer.next(), Step::Corrupt(corrupt) if corrupt.what == CorruptionKind::Encrypted));
}

#[test]
fn resume_at_any_event() {
    for log in golden_logs() {
        let bytes = Bytes::from(std::fs::read(&log).unwrap());
        let whole = events(&bytes);
        for (index, (offset, event, format)) in whole.iter().enumerate() {
            let mut framer = Framer::resume(Some(format.clone()), *offset);
            framer.push(bytes.slice(*offset as usize..));
            match framer.next() {
                Step::Event { event: again, offset: at } => assert_eq!((&again, at), (event, *offset), "event {index}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A length that asks for gigabytes asks for more input, and takes no memory.
#[test]
fn lengths_are_not_believed() {
    // With checksums: without, 19 bytes are an event.
    let with_checksums = |log: &Vec<u8>| events(log)[1].1.checksum() == binlog::Checksum::Crc32;
    let log = golden_logs().into_iter().map(|log| std::fs::read(log).unwrap()).find(with_checksums).unwrap();
    let first = events(&log).remove(0).1;
    let prefix = &log[..4 + first.bytes().len()];
    for (len, corrupt) in [(0u32, true), (18, true), (19, false), (1 << 30, false), (u32::MAX, true)] {
        let mut header = [0; 19];
        header[4] = 2;
        header[9..13].copy_from_slice(&len.to_le_bytes());
        let mut framer = Framer::new();
        framer.push([prefix, &header[..]].concat().into());
        assert!(matches!(framer.next(), Step::Event { .. }));
        let step = framer.next();
        assert_eq!(matches!(step, Step::Corrupt(_)), corrupt || len == 19, "{len}: {step:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Garbage in the body of every golden event, without a checksum to catch it.
    #[test]
    fn garbage_never_panics(seed in any::<u64>(), flips in 1usize..8) {
        let logs = golden_logs();
        let log = &logs[seed as usize % logs.len()];
        let mut tables = Tables::default();
        let mut random = seed;
        let mut next = || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) as usize
        };
        for (event, format) in flattened(&std::fs::read(log).unwrap()) {
            let len = event.bytes().len() - event.checksum().len();
            let mut bytes = event.bytes()[..len].to_vec();
            bytes[9..13].copy_from_slice(&(len as u32).to_le_bytes());
            if event.kind() == Kind::FORMAT_DESCRIPTION || len == 19 {
                continue;
            }
            for _ in 0..flips {
                let at = 19 + next() % (len - 19);
                bytes[at] = next() as u8;
            }
            let event = Event::parse(bytes.into(), binlog::Checksum::Off).unwrap();
            decode_all(&event, &format, &mut tables);
        }
    }

    #[test]
    fn random_json_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64), kind in 0u8..16) {
        let _ = binlog::json::to_text(&[&[kind], &bytes[..]].concat());
    }

    #[test]
    fn random_values_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..70), kind in any::<u8>(), meta in any::<u16>()) {
        let column = binlog::Column::new(binlog::ColumnKind(kind), meta, true);
        binlog::value::display(&column, &bytes, meta & 1 == 0);
        let present = binlog::Bitmap::full(1);
        let layout = binlog::image::RowLayout::new(&[column]);
        layout.columns(&present, &bytes).for_each(drop);
    }
}
