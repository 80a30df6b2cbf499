//! Binary log files in place: whole series, any start, and every way in which a file can be wrong.

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
use binlog::{Checksum, Flavour, Kind};
use common::*;
use relay::{Error, FileOptions, FileSource, FilesReader, LogReader, Read, RealFs, Result, Start, reread};
use std::path::PathBuf;
use std::sync::Arc;

fn sample() -> Source {
    let mut source = Source::new(Flavour::MySql, Checksum::Crc32);
    for i in 0..30 {
        source.transaction(&[100 + i]);
        if i % 10 == 9 && i < 29 {
            source.rotate();
        }
    }
    source
}

fn write(files: &[(String, Vec<u8>)]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, bytes)| std::fs::write(dir.path().join(name), bytes).unwrap());
    let paths: Vec<PathBuf> = files.iter().map(|(name, _)| dir.path().join(name)).collect();
    (dir, paths)
}

fn read_files(paths: &[PathBuf], start: Start, allow_torn_tail: bool) -> Result<Vec<Sent>> {
    let options = FileOptions { allow_torn_tail, ..FileOptions::default() };
    let mut reader = FilesReader::open_with(Arc::new(RealFs), paths.to_vec(), start, options)?;
    let events = drain(&mut reader)?;
    assert!(matches!(reader.next()?, Read::End), "the end stays the end");
    Ok(events)
}

#[test]
fn a_series() {
    let source = sample();
    let (dir, paths) = write(&source.files());
    assert_eq!(FileSource::discover(&[dir.path()]).unwrap(), paths);
    assert_same(&read_files(&paths, Start::Beginning, false).unwrap(), &source.sent);
    for (i, sent) in source.sent.iter().enumerate() {
        let found = read_files(&paths, Start::At(sent.position()), false).unwrap();
        assert_same(&found, &source.sent[i..]);
    }
    let end = source.sent.last().unwrap().end_position();
    assert_same(&read_files(&paths, Start::At(end), false).unwrap(), &[]);
}

#[test]
fn events_larger_than_a_chunk() {
    let mut source = Source::new(Flavour::MariaDb, Checksum::Crc32);
    source.transaction(&[3 << 20, 10, 700_000, 700_000, 5 << 20]);
    let (_dir, paths) = write(&source.files());
    assert_same(&read_files(&paths, Start::Beginning, false).unwrap(), &source.sent);
    let mut reader = FilesReader::open(paths, Start::Beginning).unwrap();
    let mut located = Vec::new();
    while let Read::Event(event) = reader.next().unwrap() {
        located.push(event.clone());
    }
    let (from, until) = (&located[1], located.last().unwrap());
    let again: Vec<_> = reread(&from.place, &until.place, from.format.clone()).unwrap().map(Result::unwrap).collect();
    assert_eq!(again.len(), located.len() - 1);
    for (again, first) in again.iter().zip(&located[1..]) {
        assert_eq!(again.event.bytes(), first.event.bytes());
        assert_eq!((&again.position, again.end), (&first.position, first.end));
    }
}

#[test]
fn wrong_positions() {
    let source = sample();
    let (_dir, paths) = write(&source.files());
    let check = |file: &str, offset: u64, part: &str| {
        let error = read_files(&paths, Start::At(LogPosition::new(file, offset)), false).unwrap_err();
        assert!(matches!(error, Error::NoSuchPosition { .. }) && error.to_string().contains(part), "{error}");
    };
    check("bin.000009", 4, "not among those given");
    check("bin.000002", 9, "inside the format description");
    check("bin.000002", source.sent[1].start + 1, "no event starts there");
    check("bin.000002", 1 << 40, "shorter");
}

/// `damage` is done to the files; reading them all must end in the error that `expect` accepts, after `whole` events.
fn check(damage: impl Fn(&mut Vec<(String, Vec<u8>)>), allow_torn_tail: bool, expect: impl Fn(&Error) -> bool) {
    let source = sample();
    let mut files = source.files();
    damage(&mut files);
    let (_dir, paths) = write(&files);
    match read_files(&paths, Start::Beginning, allow_torn_tail) {
        Err(error) => assert!(expect(&error), "{error:?}"),
        Ok(found) => panic!("{} events and no error", found.len()),
    }
}

#[test]
fn damaged_files() {
    let path_ends = |path: &PathBuf, name: &str| path.ends_with(name);
    // Only the last file may be torn, and only if allowed.
    check(
        |files| files[2].1.truncate(1000),
        false,
        |e| matches!(e, Error::TornTail { path, .. } if path_ends(path, "bin.000003")),
    );
    check(
        |files| files[1].1.truncate(1000),
        true,
        |e| matches!(e, Error::TornTail { path, .. } if path_ends(path, "bin.000002")),
    );
    check(|files| files[1].1.truncate(0), true, |e| !matches!(e, Error::Io { .. }));
    // Zeros at the end are torn, in the middle they are not.
    check(|files| files[2].1.extend([0; 5000]), false, |e| matches!(e, Error::TornTail { .. }));
    check(
        |files| files[2].1.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        true,
        |e| matches!(e, Error::Corrupt { .. }),
    );
    check(
        |files| files[1].1[700] ^= 4,
        true,
        |e| matches!(e, Error::Corrupt { path, .. } if path_ends(path, "bin.000002")),
    );
    check(|files| files[1].1[0] = 0xfd, true, |e| matches!(e, Error::Encrypted { .. }));
}

#[test]
fn a_torn_tail_that_is_allowed() {
    let source = sample();
    let files = source.files();
    let last_start = source.sent.last().unwrap().start as usize;
    for len in last_start..files[2].1.len() {
        let mut files = files.clone();
        files[2].1.truncate(len);
        let (_dir, paths) = write(&files);
        let found = read_files(&paths, Start::Beginning, true).unwrap();
        assert_same(&found, &source.sent[..source.sent.len() - 1]);
        if len > last_start {
            assert!(
                matches!(read_files(&paths, Start::Beginning, false), Err(Error::TornTail { offset, .. }) if offset == last_start as u64)
            );
        }
    }
}

#[test]
fn not_a_binary_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dump.sql");
    for contents in [&b"-- MySQL dump 10.13"[..], b"", b"\xfeb"] {
        std::fs::write(&path, contents).unwrap();
        let paths = FileSource::discover(&[&path]).unwrap();
        let error = read_files(&paths, Start::Beginning, false).unwrap_err();
        assert!(matches!(error, Error::NotABinaryLog { .. } | Error::TornTail { .. }), "{error}");
        assert!(error.to_string().contains("dump.sql"));
    }
}

/// `cat binlog.0000* > all`
#[test]
fn files_that_were_put_together_are_named_as_such() {
    let files = sample().files();
    let together = files.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    let (_dir, paths) = write(&[("all.000001".to_owned(), together)]);
    let error = read_files(&paths, Start::Beginning, true).unwrap_err();
    let end = files[0].1.len() as u64;
    assert!(matches!(error, Error::Corrupt { offset, .. } if offset == end), "{error}");
    assert!(error.to_string().contains("put together (cat); give them one by one"), "{error}");
}

#[test]
fn a_compressed_file_is_named_as_one() {
    let dir = tempfile::tempdir().unwrap();
    for magic in [&b"\x1f\x8b\x08\x00"[..], b"\x28\xb5\x2f\xfd", b"BZh9", b"\xfd7zX", b"\x04\x22\x4d\x18"] {
        let path = dir.path().join("bin.000001.x");
        std::fs::write(&path, [magic, &[7; 100]].concat()).unwrap();
        let error = read_files(&[path], Start::Beginning, false).unwrap_err();
        assert!(matches!(error, Error::Compressed { .. }), "{error}");
    }
}

#[test]
fn encrypted_by_mariadb() {
    let mut source = Source::new(Flavour::MariaDb, Checksum::Crc32);
    let mut files = source.files();
    source.offset = files[0].1.len() as u64;
    let head = Head::new(1, 1, Checksum::Crc32).at(source.offset);
    files[0].1.extend(binlog::encode::event(Kind::START_ENCRYPTION, &head, &[1; 17]));
    files[0].1.extend([0xAA; 500]);
    let (_dir, paths) = write(&files);
    for start in [Start::Beginning, Start::At(LogPosition::new("bin.000001", 400))] {
        let error = read_files(&paths, start, false).unwrap_err();
        assert!(matches!(error, Error::Encrypted { .. }), "{error}");
    }
}

#[test]
fn a_successor_that_is_not_the_next_file() {
    let source = sample();
    let (dir, paths) = write(&source.files());
    let two = [paths[0].clone(), paths[2].clone()];
    assert!(matches!(FileSource::discover(&two), Err(Error::Gap { missing, .. }) if missing == "bin.000002"));
    let error = read_files(&two, Start::Beginning, false).unwrap_err();
    assert!(matches!(&error, Error::WrongNextFile { expected, .. } if expected == "bin.000002"), "{error}");
    drop(dir);
}

#[test]
fn a_server_that_crashed_names_no_successor() {
    let mut source = Source::new(Flavour::MySql, Checksum::Crc32);
    source.transaction(&[10]);
    source.number += 1;
    source.offset = 4;
    source.format();
    source.transaction(&[10]);
    let (_dir, paths) = write(&source.files());
    assert_same(&read_files(&paths, Start::Beginning, false).unwrap(), &source.sent);
}

/// Where each transaction of a file begins.
fn transactions(source: &Source, file: &str) -> Vec<LogPosition> {
    let begins = |sent: &&Sent| sent.file == file && matches!(sent.event.kind(), Kind::GTID | Kind::MARIADB_GTID);
    source.sent.iter().filter(begins).map(Sent::position).collect()
}

#[test]
fn a_copy_that_ends_between_two_transactions() {
    for flavour in [Flavour::MySql, Flavour::MariaDb] {
        let mut source = Source::new(flavour, Checksum::Crc32);
        source.gtid_list();
        for _ in 0..2 {
            (0..5).for_each(|_| source.transaction(&[100]));
            source.rotate();
            source.gtid_list();
        }
        let (dir, paths) = write(&source.files());
        assert_same(&read_files(&paths, Start::Beginning, false).unwrap(), &source.sent);
        let begins = transactions(&source, "bin.000002");
        let length = begins[3].offset as usize;
        let cut = std::fs::read(&paths[1]).unwrap().into_iter().take(length).collect::<Vec<u8>>();
        std::fs::write(dir.path().join("bin.000002"), cut).unwrap();
        let mut starts = vec![Start::Beginning];
        starts.extend(transactions(&source, "bin.000001").into_iter().map(Start::At));
        starts.extend(begins.into_iter().take(3).map(Start::At));
        for start in starts {
            let mut reader = FilesReader::open(paths.clone(), start.clone()).unwrap();
            let failed = |reader: &mut FilesReader| loop {
                match reader.next() {
                    Ok(Read::Event(_)) => {}
                    Ok(other) => panic!("{start:?}: {other:?}"),
                    Err(error) => return error,
                }
            };
            for _ in 0..2 {
                match failed(&mut reader) {
                    Error::Unfinished { path, next, missing } => {
                        assert_eq!((path, next), (paths[1].clone(), paths[2].clone()));
                        let text =
                            if flavour == Flavour::MySql { format!("{UUID_TEXT}:9-10") } else { "up to 0-1-10".into() };
                        assert_eq!(missing, text);
                    }
                    other => panic!("{other}"),
                }
            }
        }
    }
}

/// The mark of a file that its server has not closed, in the format description's flags.
const IN_USE: usize = 4 + 17;

/// MariaDB leaves the mark on a file when it crashes; a MySQL source may have been copied when it had nothing more to write there.
#[test]
fn a_whole_file_that_looks_in_use() {
    for flavour in [Flavour::MySql, Flavour::MariaDb] {
        let mut source = Source::new(flavour, Checksum::Off);
        source.gtid_list();
        (0..3).for_each(|_| source.transaction(&[100]));
        let end = source.offset;
        source.number += 1;
        source.offset = 4;
        source.format();
        source.gtid_list();
        source.transaction(&[100]);
        let mut files = source.files();
        files[0].1[IN_USE] |= 1;
        let (_dir, paths) = write(&files);
        let mut starts = vec![Start::Beginning, Start::At(LogPosition::new("bin.000001", end))];
        starts.extend(transactions(&source, "bin.000001").into_iter().map(Start::At));
        for start in starts {
            read_files(&paths, start.clone(), false).unwrap_or_else(|error| panic!("{flavour:?} {start:?}: {error}"));
        }
    }
}

#[test]
fn a_copy_without_gtids_of_a_file_in_use() {
    let mut source = Source::new(Flavour::MySql, Checksum::Off);
    source.query("CREATE TABLE t (id INT)");
    let end = source.offset as usize;
    source.rotate();
    source.query("CREATE TABLE u (id INT)");
    let mut files = source.files();
    let mark = |files: &mut Vec<(String, Vec<u8>)>, file: usize| files[file].1[IN_USE] |= 1;
    mark(&mut files, 1);
    let (_dir, paths) = write(&files);
    read_files(&paths, Start::Beginning, false).expect("the last file may be one that is written");
    mark(&mut files, 0);
    let (_dir, paths) = write(&files);
    read_files(&paths, Start::Beginning, false).expect("its last event says that it is whole");
    files[0].1.truncate(end);
    let (_dir, paths) = write(&files);
    let error = read_files(&paths, Start::Beginning, false).unwrap_err();
    assert!(matches!(&error, Error::StillWritten { path, .. } if *path == paths[0]), "{error}");
}

/// Where each event of the second of three files without GTIDs ends.
fn without_gtids(source: &mut Source, started: bool) -> Vec<usize> {
    source.previous_gtids();
    source.query("CREATE TABLE t (id INT)");
    source.rotate();
    source.previous_gtids();
    (0..3).for_each(|_| source.query("INSERT INTO t VALUES (1)"));
    let ends = source.sent.iter().filter(|sent| sent.file == "bin.000002").map(|sent| sent.end as usize).collect();
    if started {
        source.stop_and_start();
    } else {
        source.rotate();
    }
    source.previous_gtids();
    source.query("INSERT INTO t VALUES (2)");
    ends
}

/// Cut behind any event, the magic too; from the beginning, and from any place in the file.
#[test]
fn a_cut_file_without_gtids() {
    let mut source = Source::new(Flavour::MySql, Checksum::Crc32);
    let ends = without_gtids(&mut source, false);
    let (_dir, paths) = write(&source.files());
    assert_same(&read_files(&paths, Start::Beginning, false).unwrap(), &source.sent);
    for (i, sent) in source.sent.iter().enumerate() {
        // Its end, behind ROTATE, as well: that it is whole is seen in what is skipped.
        let rest = read_files(&paths, Start::At(sent.end_position()), false).unwrap();
        assert_eq!(rest.last().map(|sent| sent.end), source.sent[i + 1..].last().map(|sent| sent.end));
    }
    for end in std::iter::once(4).chain(ends) {
        let mut files = source.files();
        files[1].1.truncate(end);
        let (_dir, paths) = write(&files);
        let starts = source.sent.iter().filter(|sent| sent.file == "bin.000001" || sent.end as usize <= end);
        let starts = starts.filter(|sent| sent.file != "bin.000003").map(|sent| Start::At(sent.end_position()));
        for start in std::iter::once(Start::Beginning).chain(starts) {
            let error = read_files(&paths, start.clone(), true).expect_err(&format!("cut at {end}, from {start:?}"));
            match error {
                Error::TornTail { path, .. } if end == 4 => assert_eq!(path, paths[1]),
                Error::CutShort { path, next } => assert_eq!((path, next), (paths[1].clone(), paths[2].clone())),
                other => panic!("cut at {end}, from {start:?}: {other}"),
            }
        }
    }
}

/// MySQL that starts after a crash has cleared the mark of the file that it left.
#[test]
fn what_a_crash_left_without_gtids_is_read() {
    let mut source = Source::new(Flavour::MySql, Checksum::Crc32);
    let ends = without_gtids(&mut source, true);
    let mut files = source.files();
    files[1].1.truncate(*ends.last().unwrap());
    let (_dir, paths) = write(&files);
    read_files(&paths, Start::Beginning, false).expect("it looks like what a crash leaves");
}

#[test]
fn the_last_file_without_events() {
    let mut source = Source::new(Flavour::MySql, Checksum::Crc32);
    without_gtids(&mut source, false);
    let mut files = source.files();
    files[2].1.truncate(4);
    let (_dir, paths) = write(&files);
    let error = read_files(&paths, Start::Beginning, false).unwrap_err();
    assert!(matches!(&error, Error::TornTail { path, .. } if *path == paths[2]), "{error}");
    read_files(&paths, Start::Beginning, true).expect("a server may have begun it just now");
}
