//! One writer, several readers and a purger at once, on a real disk.

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

use binlog::{Checksum, Flavour};
use common::*;
use relay::{LogReader, Options, Read, RealFs, RelayLog, Start};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn readers_follow_the_writer() {
    let mut source = Source::new(Flavour::MySql, Checksum::Crc32);
    for i in 0..3000usize {
        source.transaction(&[i % 300]);
        if i % 700 == 699 {
            source.rotate();
        }
    }
    let sent = Arc::new(source.sent);
    let dir = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes_max: 64 << 10, relay_bytes_max: 512 << 10, ..options() };
    let (mut writer, shared) = RelayLog::open(Arc::new(RealFs), dir.path(), options).unwrap();
    const READERS: usize = 3;
    let progress: Arc<[AtomicUsize; READERS]> = Arc::default();
    let readers: Vec<_> = (0..READERS)
        .map(|who| {
            let mut reader = shared.reader(Start::Beginning).unwrap();
            let (sent, shared, progress) = (sent.clone(), shared.clone(), progress.clone());
            std::thread::spawn(move || {
                let mut at = 0;
                loop {
                    match reader.next().unwrap() {
                        Read::Event(located) => {
                            assert_eq!(located.event.bytes(), sent[at].event.bytes());
                            assert_eq!(located.position, sent[at].position());
                            at += 1;
                            progress[who].store(at, Ordering::SeqCst);
                            if at % 50 == 0 {
                                let low = progress.iter().map(|p| p.load(Ordering::SeqCst)).min().unwrap();
                                shared.purge(&sent[low.saturating_sub(1)].position()).unwrap();
                            }
                        }
                        Read::CaughtUp if at == sent.len() => return,
                        Read::CaughtUp => std::thread::yield_now(),
                        Read::Large(_) | Read::End => unreachable!(),
                    }
                }
            })
        })
        .collect();
    for (i, event) in sent.iter().enumerate() {
        writer.append(&event.file, &event.event).unwrap();
        if i % 23 == 0 {
            writer.sync().unwrap();
            while !writer.has_room().unwrap() {
                std::thread::yield_now();
            }
        }
    }
    writer.sync().unwrap();
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    assert!(shared.bytes_used() < 1 << 20);
}
