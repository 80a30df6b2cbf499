//! The archive in an S3 server of this process that fails in every way: two writers tear nothing, nothing is lost, and what a store must be able to do is asked of it.
//! `scripts/nightly archive` runs it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use archive::manifest::ArchiveError;
use archive::prune::{self, Retention};
use archive::verify::{Depth, verify};
use archive::writer::{PartialPut, Log, LogFile, Pace, Step, Writer};
use archive::{ArchiveFs, Manifest, Store, StoreError};
use binlog::{FIRST_OFFSET, HEADER_LEN};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use s3_server::{KEY_ID, Mood, SECRET, Server};

const GOLDEN: &[u8] = include_bytes!("../../../binlog/tests/golden/mysql-9.7/rows.binlog");
const OWNER: &str = r#"{"version":1,"vendor":"MySQL","source":"3e11fa47"}"#;
const NOW: Pace = Pace { every: Duration::ZERO, may_leave_gap: false };

/// Its bytes, up to where they are durable, whether it is complete.
type FakeFile = (Vec<u8>, u64, bool);

#[derive(Default)]
struct Fake(Mutex<BTreeMap<String, FakeFile>>);

impl Fake {
    fn set(&self, name: &str, bytes: &[u8], durable: u64) {
        let is_complete = durable == bytes.len() as u64;
        self.0.lock().unwrap().insert(name.to_owned(), (bytes.to_vec(), durable, is_complete));
    }
}

impl Log for Fake {
    fn files(&self) -> io::Result<Vec<LogFile>> {
        let files = self.0.lock().unwrap();
        let file = |(name, (_, end, is_complete)): (&String, &FakeFile)| LogFile {
            name: name.clone(),
            end: *end,
            is_complete: *is_complete,
        };
        Ok(files.iter().map(file).collect())
    }

    fn read_at(&self, file: &str, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let files = self.0.lock().unwrap();
        let (bytes, end, _) = files.get(file).ok_or(io::ErrorKind::NotFound)?;
        let there = &bytes[offset as usize..*end as usize];
        let read = there.len().min(into.len());
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

/// A log whose rows do not compress: events that nobody knows, between transactions.
fn large(seed: u64, length: usize) -> Vec<u8> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut log = GOLDEN.to_vec();
    while log.len() < length {
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

fn writer(store: &Store, id: &str) -> Writer {
    Writer::new(store.clone(), id.to_owned(), NOW)
}

/// Until nothing is left to do, whatever fails meanwhile.
fn drain(writer: &mut Writer, log: &Fake) -> Step {
    let began = Instant::now();
    loop {
        match writer.step(log, PartialPut::Now) {
            Ok(Step::Put) | Err(ArchiveError::Overtaken | ArchiveError::Store(StoreError::Failed(_))) => {}
            Ok(step) => return step,
            Err(other) => panic!("{other}"),
        }
        assert!(began.elapsed() < Duration::from_secs(240), "it does not end");
    }
}

/// Everything of the log is in the archive, byte for byte.
fn check(store: &Store, log: &Fake) {
    let fs = ArchiveFs::open(store).unwrap();
    for (name, (bytes, end, is_complete)) in &*log.0.lock().unwrap() {
        let file = fs.state().file(name).unwrap();
        assert_eq!((file.size, file.is_complete), (*end, *is_complete), "{name}");
        let mut read = vec![0; *end as usize + 1];
        assert_eq!(fs.read_full(name, &mut read, 0).unwrap() as u64, *end);
        assert!(read[..*end as usize] == bytes[..*end as usize], "{name}");
    }
    let verified = verify(&Manifest::open(store).unwrap(), Depth::Contents, |_| true).unwrap();
    assert_eq!(verified.problems, Vec::<String>::new());
}

fn works(server: &Server) {
    let (store, log) = (Store::make("s3://bucket/works").unwrap(), Fake::default());
    let bytes = large(1, 30 << 20);
    let mut writer = writer(&store, "1");
    for end in [1 << 20, 5 << 20, 20 << 20, bytes.len()] {
        log.set("b.000001", &bytes, end as u64);
        drain(&mut writer, &log);
    }
    log.set("b.000002", GOLDEN, GOLDEN.len() as u64);
    drain(&mut writer, &log);
    check(&store, &log);
    let length = (bytes.len() + 2 * GOLDEN.len()) as u64;
    assert!(store.sent() * 100 <= length * 105, "{} for {length}", store.sent());
    let mut manifest = Manifest::open(&store).unwrap();
    let keep = Retention { seconds: None, bytes: Some(1) };
    prune::prune(&mut manifest, keep, 1_900_000_000).unwrap();
    let left = ArchiveFs::open(&store).unwrap().paths();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(server.faults(), 0);
}

/// Two heddles with equal mirrors archive at the same time, are killed and begin anew.
fn two_writers(server: &Server) {
    for seed in 0..2 {
        let url = format!("s3://bucket/two-{seed}");
        let store = Store::make(&url).unwrap();
        let logs = [Fake::default(), Fake::default()];
        let bytes = large(seed, 6 << 20);
        server.set(Mood::Faults);
        thread::scope(|scope| {
            for (number, log) in logs.iter().enumerate() {
                let (url, bytes) = (&url, &bytes);
                scope.spawn(move || {
                    let store = Store::make(url).unwrap();
                    let mut random = StdRng::seed_from_u64(seed * 2 + number as u64);
                    let mut writer = writer(&store, &format!("{number}-0"));
                    for file in 1..=3 {
                        let mut end = FIRST_OFFSET;
                        while end < bytes.len() as u64 {
                            end = (end + random.random_range(1..2 << 20)).min(bytes.len() as u64);
                            log.set(&format!("b.00000{file}"), bytes, end);
                            for _ in 0..random.random_range(0..3) {
                                match writer.step(log, PartialPut::Now) {
                                    Ok(_) | Err(ArchiveError::Overtaken | ArchiveError::Store(_)) => {}
                                    Err(other) => panic!("{seed}: {other}"),
                                }
                            }
                            if random.random_bool(0.2) {
                                writer = crate::writer(&store, &format!("{number}-{file}-{end}"));
                            }
                        }
                    }
                    drain(&mut writer, log);
                });
            }
        });
        server.set(Mood::Well);
        logs.iter().for_each(|log| check(&store, log));
    }
    assert!(server.faults() > 20, "{} faults", server.faults());
}

/// A store that is down is an error within a time, and no more than that.
fn down(server: &Server) {
    let (store, log) = (Store::make("s3://bucket/down").unwrap(), Fake::default());
    let mut writer = writer(&store, "1");
    log.set("b.000001", GOLDEN, GOLDEN.len() as u64);
    drain(&mut writer, &log);
    log.set("b.000002", GOLDEN, GOLDEN.len() as u64);
    server.set(Mood::Down);
    let began = Instant::now();
    assert!(matches!(writer.step(&log, PartialPut::Now), Err(ArchiveError::Store(StoreError::Failed(_)))));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    server.set(Mood::Well);
    drain(&mut writer, &log);
    check(&store, &log);
}

fn refused(server: &Server) {
    server.set(Mood::Overwrites);
    let log = Fake::default();
    log.set("b.000001", GOLDEN, GOLDEN.len() as u64);
    let store = Store::make("s3://bucket/overwrites").unwrap();
    let error = writer(&store, "1").step(&log, PartialPut::Now).unwrap_err();
    assert!(error.to_string().contains("If-None-Match"), "{error}");
    server.set(Mood::Well);
    let nowhere = Store::make("s3://no-such-bucket/x").unwrap();
    assert!(writer(&nowhere, "1").step(&log, PartialPut::Now).is_err());
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("bucket")).unwrap();
    let server = Server::start(dir.path());
    let endpoint = format!("http://{}", server.address);
    for (name, value) in [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ACCESS_KEY_ID", KEY_ID),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_REGION", "us-east-1"),
    ] {
        // SAFETY: the threads that run are the server's, which read no variable.
        unsafe { std::env::set_var(name, value) };
    }
    let parts: [(&str, fn(&Server)); 4] =
        [("works", works), ("two writers", two_writers), ("down", down), ("refused", refused)];
    for (name, part) in parts {
        let began = Instant::now();
        part(&server);
        println!(
            "{name}: {} ms, {} requests, {} faults so far",
            began.elapsed().as_millis(),
            server.requests(),
            server.faults()
        );
    }
}
