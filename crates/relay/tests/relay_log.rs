//! The relay log on a disk that works, mostly: what goes in comes out, from any start, after any reopening.

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

use binlog::LogPosition;
use binlog::encode::Head;
use binlog::{Checksum, Event, Flavour, Kind};
use common::*;
use relay::fs::{Fault, FaultyFs};
use relay::{Error, LogReader, Options, Read, RealFs, RelayHandle, RelayLog, RelayWriter, Start, reread};
use std::path::Path;
use std::sync::Arc;

const SOURCES: [(Flavour, Checksum); 4] = [
    (Flavour::MySql, Checksum::Crc32),
    (Flavour::MySql, Checksum::Off),
    (Flavour::MariaDb, Checksum::Crc32),
    (Flavour::MariaDb, Checksum::Off),
];

fn sample(flavour: Flavour, checksum: Checksum) -> Source {
    let mut source = Source::new(flavour, checksum);
    for i in 0..40 {
        source.transaction(&[10 + i, 300]);
        if i % 10 == 9 {
            source.ddl();
            source.rotate();
        }
    }
    source
}

#[test]
fn what_goes_in_comes_out() {
    for (flavour, checksum) in SOURCES {
        for zero_positions in [false, true] {
            let mut source = Source::new(flavour, checksum);
            source.zero_positions = zero_positions;
            for i in 0..100 {
                source.transaction(&[10 + i, 300]);
                if i % 30 == 29 {
                    source.rotate();
                }
            }
            let fs = FaultyFs::new(1);
            let (mut writer, shared) = open(&fs).unwrap();
            append(&mut writer, &source.sent);
            let durable = writer.sync().unwrap();
            assert_eq!(durable.position, Some(source.sent.last().unwrap().end_position()));
            assert_eq!(shared.durable(), durable.position);
            assert!(shared.segments() > 3);
            assert_same(&read(&shared, Start::Beginning).unwrap(), &source.sent);
        }
    }
}

#[test]
fn nothing_is_visible_before_it_is_durable() {
    let source = sample(Flavour::MySql, Checksum::Crc32);
    let fs = FaultyFs::new(1);
    let (mut writer, shared) = open(&fs).unwrap();
    append(&mut writer, &source.sent[..5]);
    assert_same(&read(&shared, Start::Beginning).unwrap(), &[]);
    writer.sync().unwrap();
    assert_same(&read(&shared, Start::Beginning).unwrap(), &source.sent[..5]);
}

#[test]
fn a_batch_costs_one_sync_and_an_empty_one_none() {
    let source = sample(Flavour::MySql, Checksum::Crc32);
    let fs = FaultyFs::new(1);
    let (mut writer, _shared) = open(&fs).unwrap();
    append(&mut writer, &source.sent[..2]);
    writer.sync().unwrap();
    let before = fs.operations();
    append(&mut writer, &source.sent[2..8]);
    writer.sync().unwrap();
    assert_eq!(fs.operations() - before, 2, "a write and a sync");
    writer.sync().unwrap();
    assert_eq!(fs.operations() - before, 2);
}

#[test]
fn reading_starts_anywhere() {
    let source = sample(Flavour::MariaDb, Checksum::Crc32);
    let fs = FaultyFs::new(1);
    let (mut writer, shared) = open(&fs).unwrap();
    append(&mut writer, &source.sent);
    writer.sync().unwrap();
    for (i, sent) in source.sent.iter().enumerate() {
        let found = read(&shared, Start::At(sent.position())).unwrap();
        assert_same(&found, &source.sent[i..]);
        let inside = LogPosition::new(sent.file.as_str(), sent.start + 1);
        let error = read(&shared, Start::At(inside)).unwrap_err();
        assert!(error.to_string().contains("inside an event"), "{error}");
    }
    let end = source.sent.last().unwrap().end_position();
    assert_same(&read(&shared, Start::At(end)).unwrap(), &[]);
}

#[test]
fn a_format_description_comes_first() {
    let source = sample(Flavour::MySql, Checksum::Crc32);
    let fs = FaultyFs::new(1);
    let (mut writer, shared) = open(&fs).unwrap();
    append(&mut writer, &source.sent);
    writer.sync().unwrap();
    let third = &source.sent[3];
    let mut reader = shared.reader(Start::At(third.position())).unwrap();
    let Read::Event(format) = reader.next().unwrap() else { panic!() };
    assert_eq!(format.event.kind(), Kind::FORMAT_DESCRIPTION);
    assert_eq!((&format.position, format.end), (&third.position(), third.start));
    let Read::Event(event) = reader.next().unwrap() else { panic!() };
    assert_eq!(event.event.bytes(), third.event.bytes());
    // Not twice when the log itself starts with one, nor between segments.
    let mut reader = shared.reader(Start::Beginning).unwrap();
    let mut formats = 0;
    while let Read::Event(event) = reader.next().unwrap() {
        formats += usize::from(event.event.kind() == Kind::FORMAT_DESCRIPTION);
    }
    let expected = source.sent.iter().filter(|sent| sent.event.kind() == Kind::FORMAT_DESCRIPTION).count();
    assert_eq!(formats, expected);
}

#[test]
fn reopened_and_continued() {
    for (flavour, checksum) in SOURCES {
        let source = sample(flavour, checksum);
        let fs = FaultyFs::new(1);
        for (round, chunk) in source.sent.chunks(7).enumerate() {
            let (mut writer, _shared) = open(&fs).unwrap();
            append(&mut writer, chunk);
            writer.sync().unwrap();
            match round % 3 {
                0 => writer.close().unwrap(),
                1 => drop(writer),
                _ => writer.rotate().unwrap(),
            }
        }
        let (writer, shared) = open(&fs).unwrap();
        assert_same(&read(&shared, Start::Beginning).unwrap(), &source.sent);
        let resume = writer.resume_position().unwrap();
        assert_eq!(resume.event_end, source.sent.last().unwrap().end_position());
        assert_eq!(resume.position, resume.event_end);
        assert_eq!(resume.gtids, source.gtids_to(source.gno));
        let used: u64 = (1..=shared.segments() as u64).map(|n| fs.contents(&segment(n)).unwrap().len() as u64).sum();
        assert_eq!(shared.bytes_used(), used);
    }
}

#[test]
fn resume_inside_a_transaction() {
    for (flavour, checksum) in SOURCES {
        let fs = FaultyFs::new(1);
        let mut source = Source::new(flavour, checksum);
        source.transaction(&[100]);
        let whole = source.sent.len();
        source.begin();
        source.rows(5000);
        source.rows(100);
        let partial = source.sent.len();
        let (mut writer, shared) = open(&fs).unwrap();
        let mut before = shared.reader(Start::Beginning).unwrap();
        append(&mut writer, &source.sent);
        writer.sync().unwrap();
        assert_same(&drain(&mut before).unwrap(), &source.sent);
        drop((writer, shared));

        let (mut writer, shared) = open(&fs).unwrap();
        let resume = writer.resume_position().unwrap();
        assert!(resume.in_transaction);
        assert_eq!(resume.position, source.sent[whole - 1].end_position());
        assert_eq!(resume.event_end, source.sent[partial - 1].end_position());
        assert_eq!(resume.gtids, source.gtids_to(1));

        // Without restart() going back is an error; with it the transaction comes again, whole.
        let again = &source.sent[whole];
        assert!(matches!(writer.append(&again.file, &again.event), Err(Error::WentBack { .. })));
        writer.restart(&resume.position);
        source.rows(10);
        source.commit();
        append(&mut writer, &source.sent[whole..]);
        writer.sync().unwrap();
        let mut reader = shared.reader(Start::At(resume.position.clone())).unwrap();
        let mut restarts = Vec::new();
        let mut count = 0;
        while let Read::Event(located) = reader.next().unwrap() {
            if located.end > located.position.offset {
                if located.restarted {
                    restarts.push((count, located.position.clone()));
                }
                count += 1;
            }
        }
        assert_eq!(restarts, [(partial - whole, resume.position.clone())]);
        assert_eq!(count, partial - whole + source.sent.len() - whole);
        drop(reader);
        let resume = writer.resume_position().unwrap();
        assert!(!resume.in_transaction);
        assert_eq!(resume.gtids, source.gtids_to(2));
        drop((writer, shared));
        let (writer, _shared) = open(&fs).unwrap();
        assert_eq!(writer.resume_position().unwrap(), resume);
    }
}

#[test]
fn events_that_the_server_makes_up_take_no_room() {
    let mut source = Source::new(Flavour::MySql, Checksum::Crc32);
    source.transaction(&[10]);
    let fs = FaultyFs::new(1);
    let (mut writer, shared) = open(&fs).unwrap();
    append(&mut writer, &source.sent);
    let head = Head::new(0, 1, Checksum::Crc32).with_flags(binlog::Header::FLAG_ARTIFICIAL);
    let rotate = Event::parse(binlog::encode::rotate(&head, 4, "bin.000001").into(), Checksum::Crc32).unwrap();
    writer.append("bin.000001", &rotate).unwrap();
    source.transaction(&[10]);
    append(&mut writer, &source.sent[source.sent.len() - 4..]);
    writer.sync().unwrap();
    let found = read(&shared, Start::Beginning).unwrap();
    let end = source.sent.last().unwrap().end;
    assert_eq!(found.last().unwrap().end, end);
    assert_eq!(found.len(), source.sent.len() + 1);
}

#[test]
fn a_stream_by_gtid_begins_with_the_head_of_the_file_again() {
    let mut source = Source::new(Flavour::MySql, Checksum::Crc32);
    source.previous_gtids();
    let head = source.sent.len();
    source.transaction(&[10]);
    let received = source.sent.len();
    let fs = FaultyFs::new(1);
    let (mut writer, shared) = open(&fs).unwrap();
    append(&mut writer, &source.sent);
    writer.restart(&writer.resume_position().unwrap().position);
    append(&mut writer, &source.sent[..head]);
    source.transaction(&[20]);
    append(&mut writer, &source.sent[received..]);
    writer.sync().unwrap();
    let mut found = read(&shared, Start::Beginning).unwrap();
    let again: Vec<_> = found.drain(received..received + head).collect();
    assert!(again.iter().all(|sent| sent.start == sent.end));
    assert_same(&found, &source.sent);
    let resume = writer.resume_position().unwrap();
    assert_eq!(resume.position, source.sent.last().unwrap().end_position());
    assert_eq!(resume.gtids, source.gtids_to(2));
}

#[test]
fn positions_past_4_gib() {
    let mut source = Source::new(Flavour::MySql, Checksum::Crc32);
    let fs = FaultyFs::new(1);
    let (mut writer, shared) = open(&fs).unwrap();
    source.offset = (1 << 32) - 100;
    writer.append("bin.000001", &source.sent[0].event).unwrap();
    writer.restart(&LogPosition::new("bin.000001", source.offset));
    source.transaction(&[100]);
    source.offset += 3 << 30;
    source.transaction(&[100]);
    append(&mut writer, &source.sent[1..]);
    writer.sync().unwrap();
    assert_same(&read(&shared, Start::Beginning).unwrap()[1..], &source.sent[1..]);
}

#[test]
fn a_huge_transaction_is_read_again() {
    let mut source = Source::new(Flavour::MariaDb, Checksum::Crc32);
    source.transaction(&[10]);
    let from = source.sent.len();
    source.transaction(&[3000; 20]);
    let until = source.sent.len() - 1;
    source.transaction(&[10]);
    let fs = FaultyFs::new(1);
    let (mut writer, shared) = open(&fs).unwrap();
    append(&mut writer, &source.sent);
    writer.sync().unwrap();
    let mut reader = shared.reader(Start::Beginning).unwrap();
    let mut places = Vec::new();
    let mut format = None;
    while let Read::Event(located) = reader.next().unwrap() {
        places.push(located.place.clone());
        format = Some(located.format.clone());
    }
    let again = reread(&places[from], &places[until], format.unwrap()).unwrap();
    let again: Vec<Sent> = again
        .map(|located| located.unwrap())
        .map(|l| Sent { file: l.position.file.to_string(), start: l.position.offset, end: l.end, event: l.event })
        .collect();
    assert_same(&again, &source.sent[from..=until]);
}

#[test]
fn purge_keeps_what_is_needed() {
    let source = sample(Flavour::MySql, Checksum::Crc32);
    let fs = FaultyFs::new(1);
    let (mut writer, shared) = open(&fs).unwrap();
    append(&mut writer, &source.sent);
    writer.sync().unwrap();
    let all = shared.segments();
    let low_water = source.sent[source.sent.len() / 2].position();

    // A reader at the beginning needs everything.
    let reader = shared.reader(Start::Beginning).unwrap();
    assert_eq!(shared.purge(&low_water).unwrap(), 0);
    drop(reader);

    let before = shared.bytes_used();
    let freed = shared.purge(&low_water).unwrap();
    assert!(freed > 0 && shared.segments() < all);
    assert_eq!(shared.bytes_used(), before - freed);
    assert_same(&read(&shared, Start::At(low_water.clone())).unwrap(), &source.sent[source.sent.len() / 2..]);
    let gone = read(&shared, Start::At(source.sent[0].position())).unwrap_err();
    assert!(matches!(gone, Error::Purged { .. }), "{gone}");

    // The last segment knows where to resume: it stays.
    shared.purge(&LogPosition::new("bin.999999", 4)).unwrap();
    assert_eq!(shared.segments(), 1);
    drop((writer, shared));
    let (writer, shared) = open(&fs).unwrap();
    let resume = writer.resume_position().unwrap();
    assert_eq!(resume.event_end, source.sent.last().unwrap().end_position());
    assert_eq!(resume.gtids, source.gtids_to(source.gno));
    assert_eq!(shared.segments(), 1);
}

/// By the number, not by the text: a reader starts, and the purger stops, in the right segment.
#[test]
fn file_1000000_comes_after_file_999999() {
    let mut source = Source { number: 999_999, ..Source::new(Flavour::MySql, Checksum::Crc32) };
    (source.sent, source.offset) = (Vec::new(), 4);
    source.format();
    (0..20).for_each(|_| source.transaction(&[500]));
    source.rotate();
    let second = source.sent.len() - 1;
    (0..20).for_each(|_| source.transaction(&[500]));
    let (mut writer, shared) = open(&FaultyFs::new(1)).unwrap();
    append(&mut writer, &source.sent);
    writer.sync().unwrap();
    let all = shared.segments();
    shared.purge(&source.sent[second - 1].position()).unwrap();
    assert!(shared.segments() < all && shared.first().unwrap().file.ends_with(".999999"));
    for start in [second - 1, second] {
        assert_same(&read(&shared, Start::At(source.sent[start].position())).unwrap(), &source.sent[start..]);
    }
    shared.purge(&source.sent.last().unwrap().position()).unwrap();
    assert!(shared.first().unwrap().file.ends_with(".1000000"));
}

#[test]
fn a_full_log_waits_for_the_purger() {
    let fs = FaultyFs::new(1);
    let options = Options { relay_bytes_max: 20_000, ..options() };
    let (mut writer, shared) = RelayLog::open(Arc::new(fs), Path::new(DIR), options).unwrap();
    let mut source = Source::new(Flavour::MySql, Checksum::Crc32);
    append(&mut writer, &source.sent);
    // A transaction larger than the limit goes through: nothing of it could be purged.
    source.begin();
    append(&mut writer, &source.sent[1..]);
    for _ in 0..30 {
        source.rows(1000);
        append(&mut writer, &source.sent[source.sent.len() - 1..]);
        writer.sync().unwrap();
        assert!(writer.has_room().unwrap());
    }
    source.commit();
    append(&mut writer, &source.sent[source.sent.len() - 1..]);
    writer.sync().unwrap();
    assert!(!writer.has_room().unwrap());
    let end = source.sent.last().unwrap().end_position();
    let purger = std::thread::spawn(move || shared.purge(&end).unwrap());
    while !writer.has_room().unwrap() {
        std::thread::yield_now();
    }
    purger.join().unwrap();
    assert!(writer.bytes_used() < 20_000);
}

#[test]
fn one_event_larger_than_the_limit_can_be_purged() {
    let fs = FaultyFs::new(1);
    let options = Options { relay_bytes_max: 20_000, ..options() };
    let (mut writer, shared) = RelayLog::open(Arc::new(fs), Path::new(DIR), options).unwrap();
    let mut source = Source::new(Flavour::MySql, Checksum::Crc32);
    source.transaction(&[100_000]);
    append(&mut writer, &source.sent);
    writer.sync().unwrap();
    assert!(!writer.has_room().unwrap());
    shared.purge(&source.sent.last().unwrap().end_position()).unwrap();
    assert!(writer.has_room().unwrap());
}

/// Larger than it may be from now on, all of it applied.
#[test]
fn a_log_whose_limit_was_lowered_goes_on() {
    for is_closed in [true, false] {
        let fs = FaultyFs::new(1);
        let large = Options { segment_bytes_max: 1 << 20, ..options() };
        let (mut writer, _) = RelayLog::open(Arc::new(fs.clone()), Path::new(DIR), large.clone()).unwrap();
        let mut source = Source::new(Flavour::MySql, Checksum::Crc32);
        source.transaction(&[30_000]);
        append(&mut writer, &source.sent);
        writer.sync().unwrap();
        let applied = source.sent.last().unwrap().end_position();
        if is_closed {
            writer.close().unwrap();
        } else {
            drop(writer);
        }
        let options = Options { relay_bytes_max: 10_000, ..large };
        let (mut writer, shared) = RelayLog::open(Arc::new(fs), Path::new(DIR), options).unwrap();
        let resume = writer.resume_position().unwrap();
        writer.restart(&resume.position);
        let received = source.sent.len();
        source.transaction(&[100]);
        let format = source.sent.iter().position(|sent| sent.event.kind() == Kind::FORMAT_DESCRIPTION).unwrap();
        let wait_for_room = |writer: &mut RelayWriter| {
            for _ in 0..10 {
                if writer.has_room().unwrap() {
                    return;
                }
                writer.publish().unwrap();
                shared.purge(&applied).unwrap();
            }
            panic!("no room; closed: {is_closed}");
        };
        wait_for_room(&mut writer);
        append(&mut writer, &source.sent[format..=format]);
        wait_for_room(&mut writer);
        append(&mut writer, &source.sent[received..]);
        writer.sync().unwrap();
        assert_eq!(shared.durable(), Some(source.sent.last().unwrap().end_position()));
    }
}

#[test]
fn a_full_disk_loses_nothing() {
    let source = sample(Flavour::MySql, Checksum::Crc32);
    for capacity in (200..40_000).step_by(371) {
        let fs = FaultyFs::new(capacity);
        let (mut writer, shared) = open(&fs).unwrap();
        fs.set_capacity(Some(capacity));
        for sent in &source.sent {
            let heal = |error: Error| {
                assert!(matches!(error, Error::DiskFull { .. }) && error.is_retryable(), "{error}");
                // What is published can be read although the writer is stuck.
                read(&shared, Start::Beginning).unwrap();
                fs.heal();
            };
            while let Err(e) = writer.append(&sent.file, &sent.event) {
                heal(e);
            }
            while let Err(e) = writer.sync() {
                heal(e);
            }
        }
        assert_same(&read(&shared, Start::Beginning).unwrap(), &source.sent);
        drop((writer, shared));
        let (_writer, shared) = open(&fs).unwrap();
        assert_same(&read(&shared, Start::Beginning).unwrap(), &source.sent);
    }
}

#[test]
fn after_a_failed_fsync_nothing_goes_on() {
    let source = sample(Flavour::MySql, Checksum::Crc32);
    for (after, fault) in [(2, Fault::FailedSync), (1, Fault::FailedWrite)] {
        let fs = FaultyFs::new(1);
        let (mut writer, shared) = open(&fs).unwrap();
        append(&mut writer, &source.sent[..4]);
        writer.sync().unwrap();
        append(&mut writer, &source.sent[4..8]);
        fs.inject(after, fault);
        assert!(matches!(writer.sync(), Err(Error::Io { .. })));
        fs.heal();
        let refused = |error: Error| assert!(error.to_string().contains("can't be trusted; restart"), "{error}");
        refused(writer.sync().unwrap_err());
        refused(writer.append("bin.000001", &source.sent[8].event).unwrap_err());
        refused(writer.rotate().unwrap_err());
        refused(writer.has_room().unwrap_err());
        assert!(shared.has_ended());
        assert_same(&read(&shared, Start::Beginning).unwrap(), &source.sent[..4]);
        refused(writer.close().unwrap_err());
        // The pages that did not reach the disk must not come back as if they had.
        let (mut writer, shared) = open(&fs).unwrap();
        let found = read(&shared, Start::Beginning).unwrap();
        if fault == Fault::FailedSync {
            assert_same(&found, &source.sent[..4]);
        }
        append(&mut writer, &source.sent[found.len()..]);
        writer.sync().unwrap();
        fs.crash();
        fs.restart();
        drop((writer, shared));
        let (_writer, shared) = open(&fs).unwrap();
        assert_same(&read(&shared, Start::Beginning).unwrap(), &source.sent);
    }
}

/// With segments that are not full so soon.
fn open_large(fs: &FaultyFs) -> (RelayWriter, RelayHandle) {
    let large = Options { segment_bytes_max: 1 << 20, relay_bytes_max: 1 << 30, ..options() };
    RelayLog::open(Arc::new(fs.clone()), Path::new(DIR), large).unwrap()
}

#[test]
fn what_a_dead_process_left_is_made_durable_before_it_is_read() {
    let source = sample(Flavour::MySql, Checksum::Crc32);
    let fs = FaultyFs::new(1);
    let (mut writer, shared) = open_large(&fs);
    append(&mut writer, &source.sent);
    writer.publish().unwrap();
    assert_eq!(shared.durable(), None);
    drop((writer, shared));
    let (writer, shared) = open(&fs).unwrap();
    assert_same(&read(&shared, Start::Beginning).unwrap(), &source.sent);
    fs.crash();
    fs.restart();
    drop((writer, shared));
    let (_writer, shared) = open(&fs).unwrap();
    assert_same(&read(&shared, Start::Beginning).unwrap(), &source.sent);
}

#[test]
fn a_sync_beside() {
    let source = sample(Flavour::MySql, Checksum::Crc32);
    let fs = FaultyFs::new(1);
    let (mut writer, shared) = open_large(&fs);
    let last = |count: usize| Some(source.sent[count - 1].end_position());
    append(&mut writer, &source.sent[..4]);
    assert!(writer.begin_sync().unwrap().is_none(), "what is not written can not be synced");
    writer.publish().unwrap();
    assert_same(&read(&shared, Start::Beginning).unwrap(), &source.sent[..4]);
    assert_eq!(shared.durable(), None);
    let syncing = writer.begin_sync().unwrap().unwrap();
    append(&mut writer, &source.sent[4..6]);
    writer.publish().unwrap();
    assert!(writer.begin_sync().unwrap().is_none(), "one at a time");
    syncing.run();
    writer.publish().unwrap();
    assert_eq!(shared.durable(), last(4));
    // One that is given up is begun again.
    drop(writer.begin_sync().unwrap().unwrap());
    writer.begin_sync().unwrap().unwrap().run();
    writer.publish().unwrap();
    assert_eq!(shared.durable(), last(6));
    assert!(writer.begin_sync().unwrap().is_none());
    // A seal waits for it.
    append(&mut writer, &source.sent[6..8]);
    writer.publish().unwrap();
    let syncing = writer.begin_sync().unwrap().unwrap();
    let thread = std::thread::spawn(move || syncing.run());
    writer.rotate().unwrap();
    thread.join().unwrap();
    assert_eq!(shared.durable(), last(8));
    // It fails: nobody reads what is not on the disk, nothing goes on.
    append(&mut writer, &source.sent[8..9]);
    writer.publish().unwrap();
    let mut reader = shared.reader(Start::Beginning).unwrap();
    let mut next = || match reader.next() {
        Ok(Read::Event(located)) => Some(located.event.bytes().to_vec()),
        Ok(_) => None,
        Err(error) => panic!("{error}"),
    };
    for sent in &source.sent[..8] {
        assert_eq!(next().as_deref(), Some(&sent.event.bytes()[..]));
    }
    fs.inject(1, Fault::FailedSync);
    writer.begin_sync().unwrap().unwrap().run();
    assert!(matches!(writer.publish(), Err(Error::Io { .. })));
    assert_eq!(next(), None);
    assert!(shared.has_ended());
    assert_same(&read(&shared, Start::Beginning).unwrap(), &source.sent[..8]);
    fs.heal();
    assert!(writer.sync().is_err());
    fs.crash();
    fs.restart();
    drop((writer, shared));
    let (writer, _shared) = open(&fs).unwrap();
    assert_eq!(writer.resume_position().map(|resume| resume.event_end), last(8));
}

#[test]
fn every_flipped_bit_is_found() {
    for checksum in [Checksum::Crc32, Checksum::Off] {
        let mut source = Source::new(Flavour::MySql, checksum);
        source.transaction(&[50]);
        source.rotate();
        source.transaction(&[50]);
        let fs = FaultyFs::new(1);
        let (mut writer, _shared) = open(&fs).unwrap();
        let half = source.sent.len() / 2;
        append(&mut writer, &source.sent[..half]);
        writer.rotate().unwrap();
        append(&mut writer, &source.sent[half..]);
        writer.close().unwrap();
        for number in [1, 2] {
            let len = fs.contents(&segment(number)).unwrap().len() as u64;
            for at in 0..len {
                let bit = (at % 8) as u8;
                assert!(fs.flip_bit(&segment(number), at, bit));
                let found = open(&fs).and_then(|(writer, shared)| {
                    // A sealed segment before the last is only read when it is needed. At the end of the last one the
                    // seal may be cut off as torn, nothing else.
                    let events = read(&shared, Start::Beginning)?;
                    Ok((events, writer.recovery().cut.clone()))
                });
                match found {
                    Err(Error::Damaged { path, .. }) => assert_eq!(path, segment(number)),
                    Ok((events, Some(_))) if number == 2 => assert_same(&events, &source.sent[..events.len()]),
                    other => panic!("segment {number}, byte {at}: {other:?}"),
                }
                if found_is_cut(&fs, number, len) {
                    rebuild(&fs, &source, half);
                } else {
                    assert!(fs.flip_bit(&segment(number), at, bit));
                }
            }
        }
    }
}

fn found_is_cut(fs: &FaultyFs, number: u64, len: u64) -> bool {
    fs.contents(&segment(number)).unwrap().len() as u64 != len
}

fn rebuild(fs: &FaultyFs, source: &Source, half: usize) {
    use relay::fs::Fs;
    let (mut numbers, dir) = (fs.list(Path::new(DIR)).unwrap(), Path::new(DIR));
    numbers.retain(|name| name.starts_with("heddle-relay"));
    numbers.iter().for_each(|name| fs.remove(&dir.join(name)).unwrap());
    let (mut writer, _shared) = open(fs).unwrap();
    append(&mut writer, &source.sent[..half]);
    writer.rotate().unwrap();
    append(&mut writer, &source.sent[half..]);
    writer.close().unwrap();
}

#[test]
fn damage_before_durable_records_is_not_cut() {
    let source = sample(Flavour::MySql, Checksum::Crc32);
    let fs = FaultyFs::new(1);
    let (mut writer, shared) = open(&fs).unwrap();
    append(&mut writer, &source.sent[..4]);
    writer.sync().unwrap();
    let durable = fs.contents(&segment(1)).unwrap().len() as u64;
    append(&mut writer, &source.sent[4..6]);
    writer.sync().unwrap();
    drop((writer, shared));
    fs.flip_bit(&segment(1), durable - 3, 0);
    let Err(Error::Damaged { offset, reason, .. }) = open(&fs).map(|_| ()) else { panic!("not found") };
    assert!(offset < durable && reason.contains("was durable before"), "{reason}");
    fs.flip_bit(&segment(1), durable - 3, 0);
    // A record cut short at the end, however, is.
    fs.truncate(&segment(1), durable + 3);
    let (writer, shared) = open(&fs).unwrap();
    assert_eq!(writer.recovery().cut, Some((segment(1), durable, 3)));
    assert_same(&read(&shared, Start::Beginning).unwrap(), &source.sent[..4]);
}

#[test]
fn missing_and_foreign_segments() {
    let source = sample(Flavour::MySql, Checksum::Crc32);
    let fs = FaultyFs::new(1);
    let (mut writer, shared) = open(&fs).unwrap();
    append(&mut writer, &source.sent);
    writer.sync().unwrap();
    assert!(matches!(open(&fs).map(|_| ()), Err(Error::Locked { .. })));
    drop((writer, shared));
    let other = Options { source: "other".into(), ..options() };
    let refused = RelayLog::open(Arc::new(fs.clone()), Path::new(DIR), other).map(|_| ());
    assert!(matches!(refused, Err(Error::OtherSource { .. })));
    use relay::fs::Fs;
    fs.remove(&segment(2)).unwrap();
    let Err(Error::MissingSegment { path }) = open(&fs).map(|_| ()) else { panic!("not missed") };
    assert_eq!(path, segment(2));
}

#[test]
fn a_cleared_log_begins_anew() {
    let source = sample(Flavour::MySql, Checksum::Crc32);
    let fs = FaultyFs::new(1);
    let (mut writer, shared) = open(&fs).unwrap();
    append(&mut writer, &source.sent);
    writer.sync().unwrap();
    assert!(matches!(RelayLog::clear(&fs, Path::new(DIR)), Err(Error::Locked { .. })));
    drop((writer, shared));
    // Damage, and another source, do not matter.
    fs.flip_bit(&segment(1), 9, 0);
    RelayLog::clear(&fs, Path::new(DIR)).unwrap();
    let (mut writer, shared) = open(&fs).unwrap();
    assert_eq!((shared.segments(), writer.resume_position()), (0, None));
    append(&mut writer, &source.sent);
    writer.sync().unwrap();
    assert_same(&read(&shared, Start::Beginning).unwrap(), &source.sent);
}

#[test]
fn a_stream_begins_with_its_format() {
    let mut source = Source::new(Flavour::MySql, Checksum::Crc32);
    source.transaction(&[10]);
    let fs = FaultyFs::new(1);
    let (mut writer, _shared) = open(&fs).unwrap();
    let second = &source.sent[1];
    assert!(matches!(writer.append(&second.file, &second.event), Err(Error::NoFormat { .. })));
    assert_eq!(writer.resume_position(), None);
    append(&mut writer, &source.sent);
}

#[test]
fn gtids_of_before_the_log_count() {
    let mut source = Source::new(Flavour::MySql, Checksum::Crc32);
    source.gno = 5;
    source.transaction(&[10]);
    let fs = FaultyFs::new(1);
    let options = Options { gtids: source.gtids_to(5), ..options() };
    let (mut writer, _shared) = RelayLog::open(Arc::new(fs), Path::new(DIR), options).unwrap();
    append(&mut writer, &source.sent);
    assert_eq!(writer.resume_position().unwrap().gtids, source.gtids_to(6));
    assert_eq!(writer.gtids(), source.gtids_to(6));
}

/// Run by `two_processes_do_not_share_a_directory` in a process of its own.
#[test]
#[ignore = "the second process of another test"]
fn second_process() {
    let Ok(dir) = std::env::var("RELAY_TEST_DIR") else {
        return;
    };
    match RelayLog::open(Arc::new(RealFs), Path::new(&dir), options()) {
        Err(Error::Locked { .. }) => println!("locked"),
        Ok(_) => println!("opened"),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn two_processes_do_not_share_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let second = || {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "second_process", "--nocapture"]).env("RELAY_TEST_DIR", dir.path());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let (mut writer, shared) = RelayLog::open(Arc::new(RealFs), dir.path(), options()).unwrap();
    let source = sample(Flavour::MySql, Checksum::Crc32);
    append(&mut writer, &source.sent);
    writer.sync().unwrap();
    assert_same(&read(&shared, Start::Beginning).unwrap(), &source.sent);
    assert!(second().contains("locked"));
    drop(writer);
    assert!(second().contains("opened"));
}

/// Where the stream would be resumed after these events, and whether a transaction is open there.
fn resume_after(source: &Source) -> (u64, bool, String) {
    let (mut writer, _shared) = open(&FaultyFs::new(1)).unwrap();
    append(&mut writer, &source.sent);
    let resume = writer.resume_position().unwrap();
    (resume.position.offset, resume.in_transaction, resume.gtids)
}

/// The body of a routine begins nothing, though the text ends as a BEGIN does.
#[test]
fn the_text_of_a_routine_opens_no_transaction() {
    for flavour in [Flavour::MySql, Flavour::MariaDb] {
        let mut source = Source::new(flavour, Checksum::Crc32);
        source.gtid(true);
        source.query("CREATE PROCEDURE p() START TRANSACTION");
        assert_eq!(resume_after(&source), (source.offset, false, source.gtids_to(1)), "{flavour}");
        source.transaction(&[10]);
        assert_eq!(resume_after(&source), (source.offset, false, source.gtids_to(2)), "{flavour}");
    }
}

/// A stream may begin in the middle of a transaction. Nothing but its end is a place to resume at.
#[test]
fn rows_without_a_beginning_go_on_to_their_end() {
    let mut source = Source::new(Flavour::MySql, Checksum::Crc32);
    let begin = source.offset;
    source.rows(10);
    assert_eq!(resume_after(&source), (begin, true, String::new()));
    source.query("INSERT INTO t VALUES (1)");
    assert_eq!(resume_after(&source), (begin, true, String::new()));
    source.commit();
    assert_eq!(resume_after(&source), (source.offset, false, String::new()));
}

/// MariaDB's compressed statements end what the same statements in clear would end.
#[test]
fn compressed_statements_are_looked_at() {
    let mut source = Source::new(Flavour::MariaDb, Checksum::Crc32);
    source.transaction(&[10]);
    let begin = source.offset;
    source.gtid(false);
    source.compressed_query("SAVEPOINT `a name that is long enough to be compressed`");
    source.compressed_query("INSERT INTO t VALUES (1)");
    assert_eq!(resume_after(&source), (begin, true, source.gtids_to(1)));
    source.compressed_query("ROLLBACK");
    assert_eq!(resume_after(&source), (source.offset, false, source.gtids_to(2)));
    source.gtid(true);
    source.compressed_query("CREATE TABLE t (a INT)");
    assert_eq!(resume_after(&source), (source.offset, false, source.gtids_to(3)));
}
