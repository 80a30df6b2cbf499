//! Crashes and faults at every moment: whatever was durable is there afterwards, nothing torn is delivered.

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
use proptest::prelude::*;
use relay::fs::{Fault, FaultyFs};
use relay::{LogReader, Read, Start};

#[derive(Debug, Clone)]
enum Step {
    Append(usize),
    Sync,
    Publish,
    /// A sync on another thread, which is done before the next step, or never.
    Beside(bool),
    Rotate,
    Purge,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1..20usize).prop_map(Step::Append),
        4 => Just(Step::Sync),
        4 => Just(Step::Publish),
        3 => any::<bool>().prop_map(Step::Beside),
        1 => Just(Step::Rotate),
        1 => Just(Step::Purge),
    ];
    prop::collection::vec(step, 1..40)
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => Just(Fault::Crash),
        1 => Just(Fault::FailedSync),
        1 => Just(Fault::FailedWrite),
        1 => Just(Fault::DiskFull),
        1 => Just(Fault::ShortWrite),
    ]
}

fn long_source(checksum: Checksum) -> Source {
    let mut source = Source::new(Flavour::MySql, checksum);
    for i in 0..150usize {
        source.transaction(&[i * 7 % 500, 20 + i * 131 % 900]);
        if i % 40 == 39 {
            source.rotate();
        }
    }
    source
}

/// Runs `steps` with a fault after so many operations of the disk, then crashes, reopens and goes on to the end.
fn check(seed: u64, checksum: Checksum, steps: &[Step], faults: &[(u64, Fault)]) {
    let source = long_source(checksum);
    let fs = FaultyFs::new(seed);
    faults.iter().for_each(|(after, fault)| fs.inject(*after, *fault));
    let mut appended = 0;
    let mut durable = 0;
    let mut published = 0;
    let mut delivered = Vec::new();
    if let Ok((mut writer, shared)) = open(&fs) {
        let mut reader = shared.reader(Start::Beginning).unwrap();
        for step in steps {
            let done = match step {
                Step::Append(n) => (0..*n).try_for_each(|_| {
                    let Some(sent) = source.sent.get(appended) else {
                        return Ok(());
                    };
                    writer.append(&sent.file, &sent.event)?;
                    appended += 1;
                    Ok(())
                }),
                Step::Sync => writer.sync().map(|synced| {
                    (published, durable) = (appended, appended);
                    let expected = appended.checked_sub(1).map(|last| source.sent[last].end_position());
                    assert_eq!(synced.position, expected);
                }),
                Step::Publish => writer.publish().map(|()| published = appended),
                Step::Beside(done) => writer.begin_sync().map(|begun| {
                    if let Some(syncing) = begun
                        && *done
                    {
                        syncing.run();
                    }
                }),
                Step::Rotate => writer.rotate(),
                Step::Purge => match delivered.len() {
                    0 => Ok(()),
                    n => shared.purge(&source.sent[n - 1].position()).map(|_| ()),
                },
            };
            if let Some(position) = shared.durable() {
                let end = |sent: &Sent| sent.end_position() == position;
                durable = durable.max(source.sent.iter().position(end).expect("it ends after an event") + 1);
            }
            // What a reader gets is in order, whatever just failed.
            while let Ok(Read::Event(located)) = reader.next() {
                assert_eq!(located.event.bytes(), source.sent[delivered.len()].event.bytes());
                delivered.push(located.clone());
            }
            if done.is_err() {
                break;
            }
            if matches!(step, Step::Sync | Step::Publish) {
                assert_eq!(delivered.len(), published, "all that is published can be read");
            }
        }
        assert!(durable <= appended);
    }
    fs.crash();
    fs.restart();

    let (mut writer, shared) = open(&fs).unwrap();
    let first = shared.first();
    let survived = writer.resume_position().map_or(0, |resume| {
        let end = |sent: &Sent| sent.end_position() == resume.event_end;
        source.sent.iter().position(end).expect("it ends after an event") + 1
    });
    assert!(survived >= durable, "{survived} of {durable} durable events survived");
    assert!(survived <= appended + 1, "{survived} of {appended} appended events");
    append(&mut writer, &source.sent[survived..]);
    writer.sync().unwrap();
    let found = read(&shared, Start::Beginning).unwrap();
    let skipped = source.sent.len() - found.len();
    if let Some(first) = first {
        assert!(source.sent[skipped].position() >= first);
    }
    assert!(skipped <= delivered.len(), "only what was delivered can have been purged");
    assert_same(&found, &source.sent[skipped..]);
    assert_eq!(writer.resume_position().unwrap().gtids, source.gtids_to(source.gno));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn durable_survives(
        seed in any::<u64>(),
        checksum in prop_oneof![Just(Checksum::Crc32), Just(Checksum::Off)],
        steps in steps(),
        faults in prop::collection::vec((1..60u64, fault()), 0..3),
    ) {
        check(seed, checksum, &steps, &faults);
    }
}

#[test]
fn a_crash_at_every_operation() {
    let steps: Vec<Step> = (0..12).flat_map(|_| [Step::Append(9), Step::Sync, Step::Append(3), Step::Purge]).collect();
    for seed in 0..5 {
        for after in 1..80 {
            check(seed, Checksum::Crc32, &steps, &[(after, Fault::Crash)]);
            check(seed, Checksum::Off, &steps, &[(after, Fault::FailedSync)]);
        }
    }
}
