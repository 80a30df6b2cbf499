//! Binary logs that a real server wrote, if there are any: read in place, and through the relay log.
//!
//! `HEDDLE_TEST_LOGS=/path/to/logs cargo test -p heddle-relay --test real_logs`

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

use binlog::Kind;
use common::*;
use relay::{
    FaultyFs, FileOptions, FileSource, FilesReader, LogReader, Options, Read, RealFs, RelayLog, RelayWriter, Start,
};
use std::path::Path;
use std::sync::Arc;

#[test]
fn real_logs() {
    let Ok(path) = std::env::var("HEDDLE_TEST_LOGS") else {
        return;
    };
    let files = FileSource::discover(&[&path]).unwrap();
    let lens: u64 = files.iter().map(|file| std::fs::metadata(file).unwrap().len()).sum();
    let options = FileOptions { allow_torn_tail: true, ..FileOptions::default() };
    let open = |start| FilesReader::open_with(Arc::new(RealFs), files.clone(), start, options).unwrap();
    let events = drain(&mut open(Start::Beginning)).unwrap();
    let read: u64 = events.iter().map(|sent| sent.end - sent.start).sum();
    assert_eq!(read + 4 * files.len() as u64, lens, "all bytes are events");
    let step = events.len() / 200 + 1;
    for i in (0..events.len()).step_by(step) {
        assert_same(&drain(&mut open(Start::At(events[i].position()))).unwrap(), &events[i..]);
    }

    // The relay log finds the same positions from the events' headers alone.
    let options = Options { segment_bytes_max: 64 << 10, relay_bytes_max: 1 << 40, ..common::options() };
    let fs = FaultyFs::new(1);
    let (mut writer, shared) = RelayLog::open(Arc::new(fs), Path::new(DIR), options).unwrap();
    let mut grouped = false;
    for (i, sent) in events.iter().enumerate() {
        writer.append(&sent.file, &sent.event).unwrap();
        // Where transactions have GTIDs, one ends exactly where the next begins, or the file's own events come.
        grouped |= is_gtid(sent.event.kind());
        let next = events.get(i + 1).map(|next| next.event.kind());
        let outside = next.is_none_or(|kind| {
            is_gtid(kind)
                || [Kind::ROTATE, Kind::STOP, Kind::BINLOG_CHECKPOINT, Kind::FORMAT_DESCRIPTION].contains(&kind)
        });
        if grouped && sent.event.kind() != Kind::FORMAT_DESCRIPTION && !outside || is_gtid(sent.event.kind()) {
            assert!(in_transaction(&writer) || is_file_own(sent.event.kind()), "after {sent:?}");
        } else if outside {
            assert!(!in_transaction(&writer), "after {sent:?}");
        }
    }
    writer.sync().unwrap();
    assert_same(&read_all(&shared), &events);
    let resume = writer.resume_position().unwrap();
    println!("{} files, {} events, {resume:?}", files.len(), events.len());
    assert!(!resume.in_transaction);
}

fn is_gtid(kind: Kind) -> bool {
    [Kind::GTID, Kind::ANONYMOUS_GTID, Kind::GTID_TAGGED, Kind::MARIADB_GTID].contains(&kind)
}

fn is_file_own(kind: Kind) -> bool {
    [Kind::PREVIOUS_GTIDS, Kind::MARIADB_GTID_LIST, Kind::BINLOG_CHECKPOINT, Kind::ROTATE].contains(&kind)
}

fn in_transaction(writer: &RelayWriter) -> bool {
    writer.resume_position().unwrap().in_transaction
}

fn read_all(shared: &relay::RelayHandle) -> Vec<Sent> {
    let mut reader = shared.reader(Start::Beginning).unwrap();
    let events = drain(&mut reader).unwrap();
    assert!(matches!(reader.next().unwrap(), Read::CaughtUp));
    events
}
