use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use binlog::{FIRST_OFFSET, HEADER_LEN};
use object_store::memory::InMemory;
use object_store::path::Path;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use relay::fs::Fs;

use super::*;
use crate::prune::{self, Retention};
use crate::reader::ArchiveFs;
use crate::store::StoreError;
use crate::store::faulty::FaultyStore;
use crate::verify::{Depth, verify};

const GOLDEN: &[u8] = include_bytes!("../../binlog/tests/golden/mysql-9.7/rows.binlog");
const OWNER: &str = r#"{"version":1,"vendor":"MySQL","source":"3e11fa47"}"#;
const NOW: Pace = Pace { every: Duration::ZERO, may_leave_gap: false };

/// Its bytes, up to where they are durable, whether it is complete.
type FakeFile = (Vec<u8>, u64, bool);

/// Files of which only a part may be durable.
#[derive(Default)]
struct Fake {
    files: Mutex<BTreeMap<String, FakeFile>>,
}

impl Fake {
    fn set(&self, name: &str, bytes: &[u8], durable: u64, is_complete: bool) {
        self.files.lock().unwrap().insert(name.to_owned(), (bytes.to_vec(), durable, is_complete));
    }

    fn whole(&self, name: &str, bytes: &[u8]) {
        self.set(name, bytes, bytes.len() as u64, true);
    }
}

impl Log for Fake {
    fn files(&self) -> io::Result<Vec<LogFile>> {
        let files = self.files.lock().unwrap();
        let file = |(name, (_, end, is_complete)): (&String, &FakeFile)| LogFile {
            name: name.clone(),
            end: *end,
            is_complete: *is_complete,
        };
        Ok(files.iter().map(file).collect())
    }

    fn read_at(&self, file: &str, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let files = self.files.lock().unwrap();
        let (bytes, end, _) = files.get(file).ok_or(io::ErrorKind::NotFound)?;
        let there = &bytes[offset as usize..*end as usize];
        let read = there.len().min(into.len()).min(3000);
        into[..read].copy_from_slice(&there[..read]);
        Ok(read)
    }

    fn owner(&self) -> io::Result<Option<String>> {
        Ok(Some(OWNER.to_owned()))
    }

    fn facts(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(Some(b"{\"greeting\":\"9.7.0\"}".to_vec()))
    }
}

fn memory() -> (Arc<InMemory>, Store) {
    let inner = Arc::new(InMemory::new());
    (Arc::clone(&inner), Store::new("memory://a".to_owned(), inner, Path::from("p")))
}

fn writer(store: &Store, id: &str) -> Writer {
    Writer::new(store.clone(), id.to_owned(), NOW)
}

fn drain(writer: &mut Writer, log: &Fake) -> Step {
    for _ in 0..10_000 {
        match writer.step(log, PartialPut::Now) {
            Ok(Step::Put) | Err(ArchiveError::Overtaken | ArchiveError::Store(StoreError::Failed(_))) => {}
            Ok(step) => return step,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("it does not end");
}

/// Everything of the log is in the archive, byte for byte.
fn check(store: &Store, log: &Fake) {
    let fs = ArchiveFs::open(store).unwrap();
    for (name, (bytes, end, is_complete)) in &*log.files.lock().unwrap() {
        let file = fs.state().file(name).unwrap();
        assert_eq!((file.size, file.is_complete), (*end, *is_complete), "{name}");
        let mut read = vec![0; *end as usize + 1];
        assert_eq!(fs.read_full(name, &mut read, 0).unwrap() as u64, *end);
        assert!(read[..*end as usize] == bytes[..*end as usize], "{name}");
        let middle = *end as usize / 2;
        let mut some = vec![0; 100];
        fs.read_full(name, &mut some, middle as u64).unwrap();
        assert_eq!(some, bytes[middle..middle + 100]);
    }
    let verified = verify(&Manifest::open(store).unwrap(), Depth::Contents, |_| true).unwrap();
    assert_eq!(verified.problems, Vec::<String>::new());
}

/// A log whose rows do not compress, from the golden one's first events and events that are made up.
fn large(seed: u64, length: usize) -> Vec<u8> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut log = GOLDEN.to_vec();
    while log.len() < length {
        // A statement of which nobody knows an end: IGNORABLE, between transactions.
        let body = random.random_range(100..200_000);
        let mut event = vec![0; HEADER_LEN + body];
        random.fill(&mut event[HEADER_LEN..]);
        event[..4].copy_from_slice(&1_800_000_000_u32.to_le_bytes());
        event[4] = 28;
        event[9..13].copy_from_slice(&((HEADER_LEN + body) as u32).to_le_bytes());
        log.extend_from_slice(&event);
    }
    log
}

#[test]
fn a_log_as_it_comes() {
    let (_, store) = memory();
    let log = Fake::default();
    let mut writer = writer(&store, "1");
    for end in (FIRST_OFFSET..GOLDEN.len() as u64).step_by(1000) {
        log.set("b.000001", GOLDEN, end, false);
        drain(&mut writer, &log);
    }
    log.whole("b.000001", GOLDEN);
    log.set("b.000002", GOLDEN, GOLDEN.len() as u64, false);
    assert_eq!(drain(&mut writer, &log), Step::AtEnd);
    check(&store, &log);
    log.whole("b.000002", GOLDEN);
    assert_eq!(drain(&mut writer, &log), Step::AtEnd);
    check(&store, &log);
    let state = ArchiveFs::open(&store).unwrap().state().clone();
    assert!(state.files[0].gtids.contains(':') && state.files[0].times.last > 1_600_000_000, "{state:?}");
    assert_eq!(writer.archived(), 2 * GOLDEN.len() as u64);
}

/// What does not compress costs hardly more than itself.
#[test]
fn uploads_are_hardly_more_than_the_log() {
    let (_, store) = memory();
    let log = Fake::default();
    let bytes = large(1, 40 << 20);
    let mut writer = writer(&store, "1");
    for end in (1..=40_u64).map(|part| part << 20) {
        log.set("b.000001", &bytes, end, false);
        drain(&mut writer, &log);
    }
    log.whole("b.000001", &bytes);
    log.whole("b.000002", GOLDEN);
    drain(&mut writer, &log);
    check(&store, &log);
    let length = (bytes.len() + GOLDEN.len()) as u64;
    assert!(store.sent() * 100 <= length * 105, "{} for {length}", store.sent());
}

/// Two writers of equal mirrors, a store that fails at random (also behind a put that was done), processes that are killed and begin anew.
#[test]
fn whatever_fails_the_archive_is_valid() {
    for seed in 0..30 {
        let mut random = StdRng::seed_from_u64(seed);
        let (inner, _) = memory();
        let store = Store::new("faulty".to_owned(), Arc::new(FaultyStore::new(inner.clone(), seed)), Path::from("p"));
        let plain = Store::new("memory".to_owned(), inner, Path::from("p"));
        let logs = [Fake::default(), Fake::default()];
        let mut writers = [writer(&store, "a0"), writer(&store, "b0")];
        let mut begun = 0;
        for file in 1..=4 {
            let name = format!("b.00000{file}");
            let mut end = 4;
            while end < GOLDEN.len() as u64 {
                end = (end + random.random_range(1..8000)).min(GOLDEN.len() as u64);
                for (log, writer) in logs.iter().zip(&mut writers) {
                    if random.random_bool(0.8) {
                        log.set(&name, GOLDEN, end, end == GOLDEN.len() as u64);
                    }
                    for _ in 0..random.random_range(0..4) {
                        match writer.step(log, PartialPut::Now) {
                            Ok(_) | Err(ArchiveError::Overtaken | ArchiveError::Store(_)) => {}
                            Err(other) => panic!("{seed}: {other}"),
                        }
                    }
                    if random.random_bool(0.1) {
                        begun += 1;
                        *writer = Writer::new(store.clone(), format!("w{begun}"), NOW);
                    }
                    if let Ok(manifest) = Manifest::open(&plain) {
                        assert!(verify(&manifest, Depth::Contents, |_| true).unwrap().problems.is_empty(), "{seed}");
                    }
                }
            }
            logs.iter().for_each(|log| log.whole(&name, GOLDEN));
        }
        let mut last = writer(&plain, "last");
        assert_eq!(drain(&mut last, &logs[0]), Step::AtEnd);
        check(&plain, &logs[0]);
    }
}

#[test]
fn another_history_is_never_mixed_in() {
    let (_, store) = memory();
    let log = Fake::default();
    log.set("b.000001", GOLDEN, GOLDEN.len() as u64, false);
    drain(&mut writer(&store, "1"), &log);
    let mut other = GOLDEN.to_vec();
    let at = other.len() - 40;
    other[at] ^= 1;
    log.set("b.000001", &other, other.len() as u64, false);
    log.whole("b.000002", GOLDEN);
    let refused = writer(&store, "2").step(&log, PartialPut::Now).unwrap_err();
    assert!(refused.to_string().contains("is not the log's"), "{refused}");
    struct Foreign(Fake);
    impl Log for Foreign {
        fn files(&self) -> io::Result<Vec<LogFile>> {
            self.0.files()
        }
        fn read_at(&self, file: &str, into: &mut [u8], offset: u64) -> io::Result<usize> {
            self.0.read_at(file, into, offset)
        }
        fn owner(&self) -> io::Result<Option<String>> {
            Ok(Some(OWNER.replace("3e11", "9999")))
        }
        fn facts(&self) -> io::Result<Option<Vec<u8>>> {
            Ok(None)
        }
    }
    let refused = writer(&store, "3").step(&Foreign(log), PartialPut::Now).unwrap_err();
    assert!(refused.to_string().contains("another source (3e11fa47)"), "{refused}");
}

#[test]
fn a_file_that_was_never_archived_is_a_gap() {
    let (_, store) = memory();
    let log = Fake::default();
    log.whole("b.000001", GOLDEN);
    drain(&mut writer(&store, "1"), &log);
    log.files.lock().unwrap().clear();
    log.whole("b.000004", GOLDEN);
    let refused = writer(&store, "2").step(&log, PartialPut::Now).unwrap_err();
    assert!(refused.to_string().contains("the log begins with b.000004"), "{refused}");
    let mut goes_on = Writer::new(store.clone(), "3".to_owned(), Pace { may_leave_gap: true, ..NOW });
    drain(&mut goes_on, &log);
    check(&store, &log);
    let verified = verify(&Manifest::open(&store).unwrap(), Depth::Sizes, |_| true).unwrap();
    assert_eq!(verified.gaps, ["b.000004"]);
}

/// What is young waits, and a transaction that is open.
#[test]
fn segments_by_size_and_age() {
    let (_, store) = memory();
    let log = Fake::default();
    let bytes = large(3, 20 << 20);
    let pace = Pace { every: Duration::from_secs(3600), may_leave_gap: false };
    let mut writer = Writer::new(store.clone(), "1".to_owned(), pace);
    log.set("b.000001", &bytes, 1 << 20, false);
    // The owner's record.
    assert_eq!(writer.step(&log, PartialPut::WhenOld).unwrap(), Step::Waits);
    log.set("b.000001", &bytes, 20 << 20, false);
    assert_eq!(writer.step(&log, PartialPut::WhenOld).unwrap(), Step::Put);
    assert_eq!(writer.step(&log, PartialPut::WhenOld).unwrap(), Step::Put);
    assert_eq!(writer.step(&log, PartialPut::WhenOld).unwrap(), Step::Waits);
    let end = writer.manifest().unwrap().state().end().unwrap().offset;
    assert!((12 << 20..=16 << 20).contains(&end), "{end}");
    assert_eq!(drain(&mut writer, &log), Step::Waits);
}

#[test]
fn the_oldest_files_go_and_what_nobody_names() {
    let (_, store) = memory();
    let log = Fake::default();
    for file in 1..=5 {
        log.whole(&format!("b.00000{file}"), GOLDEN);
    }
    drain(&mut writer(&store, "1"), &log);
    let mut manifest = Manifest::open(&store).unwrap();
    let last = u64::from(manifest.state().files[0].times.last);
    let keep = Retention { seconds: Some(10), bytes: None };
    assert!(prune::plan(&manifest, keep, last).unwrap().files.is_empty());
    assert_eq!(prune::plan(&manifest, keep, last + 11).unwrap().files.len(), 4);
    let stored = manifest.state().files[0].stored;
    let keep = Retention { seconds: None, bytes: Some(3 * stored) };
    let planned = prune::plan(&manifest, keep, 0).unwrap();
    assert_eq!(
        (planned.files.as_slice(), planned.first.as_deref()),
        (&["b.000001".to_owned(), "b.000002".to_owned()][..], Some("b.000003"))
    );
    let pruned = prune::prune(&mut manifest, keep, 0).unwrap();
    assert_eq!(pruned, planned);
    assert!(log.files.lock().unwrap().remove("b.000001").is_some());
    assert!(log.files.lock().unwrap().remove("b.000002").is_some());
    check(&store, &log);
    let verified = verify(&Manifest::open(&store).unwrap(), Depth::Sizes, |_| true).unwrap();
    assert_eq!((verified.files, verified.orphans), (3, 0));
    let state = manifest.state().clone();
    assert!(state.files[0].before.contains(':'), "{state:?}");
    // The writer goes on.
    log.whole("b.000006", GOLDEN);
    drain(&mut writer(&store, "2"), &log);
    check(&store, &log);
    // What a writer has just put is nobody's for a moment: it is too young to go.
    store.put("segments/b.000007/000000000000-000000000010-x", Bytes::from_static(b"x")).unwrap();
    let manifest = Manifest::open(&store).unwrap();
    assert_eq!(prune::plan(&manifest, Retention::default(), 0).unwrap().orphans, 0);
    assert_eq!(verify(&manifest, Depth::Sizes, |_| true).unwrap().orphans, 1);
}

/// A log that nobody lets a segment of be damaged in silence.
#[test]
fn damage_is_found_and_named() {
    let (_, store) = memory();
    let log = Fake::default();
    log.whole("b.000001", GOLDEN);
    drain(&mut writer(&store, "1"), &log);
    let object = store.list("segments", None).unwrap().pop().unwrap();
    let mut bytes = store.get(&object.name).unwrap().to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    store.put(&object.name, bytes.into()).unwrap();
    let manifest = Manifest::open(&store).unwrap();
    assert!(verify(&manifest, Depth::Sizes, |_| true).unwrap().problems.is_empty());
    let problems = verify(&manifest, Depth::Contents, |_| true).unwrap().problems;
    assert!(problems.len() == 1 && problems[0].starts_with(&object.name), "{problems:?}");
    let fs = ArchiveFs::open(&store).unwrap();
    let file = fs.open_read(std::path::Path::new("x/b.000001")).unwrap();
    assert!(file.read_at(&mut [0; 10], 0).unwrap_err().to_string().contains(&object.name));
    store.delete(&[object.name]).unwrap();
    assert!(verify(&manifest, Depth::Sizes, |_| true).unwrap().problems[0].ends_with("it is missing"));
}
