//! How many single-row updates pass each stage in a second of one core's time, from events in memory:
//! `cargo run --release -p heddle-engine --example throughput [transactions] [rows of the table]`.
//! What has to be freed in the end counts, too.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unreachable,
    clippy::unwrap_used,
    reason = "an example"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlog::LogPosition;
use binlog::encode::{self, FormatSpec, Head, RowsSpec, TableMapSpec};
use binlog::{Bitmap, Checksum, Column, ColumnKind, Event, Flavour, FormatDescription, MySqlGtid, RowsKind, TableMap};
use bytes::Bytes;
use engine::compact;
use engine::group::Group;
use engine::intake::{Assembler, Keying};
use engine::keys::{DataType, classify};
use engine::policy::CommitOrder;
use engine::policy::{Placement, Policy, WriteSetPolicy};
use engine::progress::Mark;
use engine::retag::{Options, Tagger};
use engine::schedule::{Config, Grouping, Limits, Output, Scheduler};
use engine::schema::{self, Catalogue, CatalogueError, KeyPart, Table, TableId, UniqueKey};
use engine::sql::SqlMode;
use engine::survey::Definitions;
use engine::transaction::Transaction;

/// sysbench's table: id, k, c CHAR(120), pad CHAR(60).
fn columns() -> Vec<Column> {
    let char = |length: u16| Column::new(ColumnKind::STRING, 0xfe00 | length, false);
    vec![Column::new(ColumnKind::LONG, 0, false), Column::new(ColumnKind::LONG, 0, false), char(120), char(60)]
}

struct OneTable(Arc<Table>);

impl Catalogue for OneTable {
    fn table(&mut self, _: &TableMap) -> Result<Arc<Table>, CatalogueError> {
        Ok(Arc::clone(&self.0))
    }

    fn invalidate(&mut self, _: &engine::definition_change::DefinitionChange) {}
}

fn catalogue() -> OneTable {
    let int = || classify(&DataType::Int { bytes: 4, unsigned: false }, "", "");
    let char = || classify(&DataType::Char, "latin1", "latin1_swedish_ci");
    let column =
        |name: &str, key_class| schema::Column { name: name.to_owned(), unsigned: false, nullable: false, key_class };
    OneTable(Arc::new(Table {
        id: TableId(1),
        schema: "sbtest".to_owned(),
        name: "sbtest1".to_owned(),
        columns: vec![column("id", int()), column("k", int()), column("c", char()), column("pad", char())],
        unique_keys: vec![UniqueKey { name: "PRIMARY".to_owned(), parts: vec![KeyPart { column: 0, prefix: None }] }],
        foreign_keys: Vec::new(),
        cascades_to: Vec::new(),
        cascade_columns: Vec::new(),
        has_relations: false,
        is_referenced: false,
        transactional: true,
        works_out: false,
        barrier: None,
        timed: Vec::new(),
        lookup_columns: None,
        order_by_table: None,
        leftovers: schema::Leftovers::None,
    }))
}

/// The events one after the other, as a log file has them.
fn log(transactions: u64, ids: u64, random: &mut u64) -> (FormatDescription, Bytes) {
    let spec = FormatSpec::new("8.0.36", Flavour::MySql, Checksum::Crc32);
    let head = Head::new(1_700_000_000, 1, Checksum::Crc32);
    let columns = columns();
    let full = Bitmap::full(columns.len());
    let mut bytes = Vec::new();
    for gno in 1..=transactions {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        let gtid = MySqlGtid {
            uuid: [3; 16],
            gno,
            last_committed: gno as i64 - 1,
            sequence_number: gno as i64,
            ..MySqlGtid::default()
        };
        bytes.extend(encode::mysql_gtid(&head, &gtid));
        bytes.extend(encode::query(&head, 7, 0, 0, "sbtest", &[0, 0, 0, 0, 0], b"BEGIN"));
        bytes.extend(encode::table_map(
            &head,
            &TableMapSpec {
                table_id: 90,
                flags: 1,
                schema: "sbtest",
                table: "sbtest1",
                columns: &columns,
                primary_key: None,
                metadata: true,
            },
        ));
        let mut image = vec![0_u8];
        image.extend(((*random % ids) as u32).to_le_bytes());
        image.extend((gno as u32).to_le_bytes());
        image.push(119);
        image.extend([b'x'; 119]);
        image.push(59);
        image.extend([b'y'; 59]);
        let spec = RowsSpec {
            kind: RowsKind::Update,
            table_id: 90,
            flags: 1,
            version: 2,
            extra: &[],
            before_columns: &full,
            after_columns: &full,
            partial_json: false,
        };
        bytes.extend(encode::rows_v(&head, &spec, &[&image, &image]));
        bytes.extend(encode::xid(&head, gno));
    }
    (spec.describe(), Bytes::from(bytes))
}

/// This thread's time on a processor, where the system says it: others may use the machine as well.
fn on_cpu(started: Instant) -> Duration {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = said.and_then(|text| text.split(' ').next().and_then(|field| field.parse().ok()));
    ns.map_or_else(|| started.elapsed(), Duration::from_nanos)
}

#[derive(Clone, Copy)]
struct Clock {
    started: Instant,
    then: Duration,
}

impl Clock {
    fn start() -> Self {
        let started = Instant::now();
        Self { started, then: on_cpu(started) }
    }

    fn elapsed(self) -> Duration {
        on_cpu(self.started).saturating_sub(self.then)
    }
}

/// Time of each stage, in the order in which they first ran.
#[derive(Default)]
struct Stages(Vec<(&'static str, Duration)>);

impl Stages {
    fn time<T>(&mut self, stage: &'static str, run: impl FnOnce() -> T) -> T {
        let clock = Clock::start();
        let result = run();
        let time = clock.elapsed();
        match self.0.iter_mut().find(|(name, _)| *name == stage) {
            Some((_, total)) => *total += time,
            None => self.0.push((stage, time)),
        }
        result
    }

    fn show(&self, transactions: u64) {
        for (stage, time) in &self.0 {
            let rate = transactions as f64 / time.as_secs_f64() / 1e6;
            println!("{stage:<34} {rate:>8.2} M/s {:>8.0} ns each", time.as_nanos() as f64 / transactions as f64);
        }
    }

    fn sum(&self, stages: &[&str]) -> Duration {
        self.0.iter().filter(|(name, _)| stages.contains(name)).map(|(_, time)| *time).sum()
    }
}

/// Transactions that are under way together, as the queues between the stages bound them.
const WINDOW: usize = 10_000;

fn main() {
    let argument =
        |at: usize, default: u64| std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (count, ids) = (argument(1, 1_000_000), argument(2, 400_000));
    println!("{count} updates of one row among {ids}");
    for (name, order, grouping) in [
        ("preserved order, groups", CommitOrder::Preserve, Grouping::Auto),
        ("preserved order, one by one", CommitOrder::Preserve, Grouping::Off),
        ("relaxed order, groups of 50", CommitOrder::Relaxed, Grouping::UpTo(50)),
        ("relaxed order, one by one", CommitOrder::Relaxed, Grouping::Off),
    ] {
        println!("\n{name}");
        run(count, ids, order, grouping);
    }
    println!("\ntags made anew");
    make_tags(count, ids);
}

/// What `heddle retag` and `heddle serve --retag` do with each event: assemble, key, look up who touched these keys last.
fn make_tags(count: u64, ids: u64) {
    let mut definitions = Definitions::default();
    let sql = b"CREATE TABLE sbtest1 (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL)";
    assert!(definitions.execute(sql, "sbtest", SqlMode::from_bits(0)));
    let options =
        Options { keys_max: 1 << 20, keep_session_order: false, explain: false, transaction_bytes_max: 16 << 20 };
    let mut tagger = Tagger::new(options, definitions, &[]);
    let mut stages = Stages::default();
    let (mut random, mut made, mut at) = (88_172_645_463_325_252_u64, 0, 4);
    let file: Arc<str> = "binlog.000001".into();
    while made < count {
        let (format, bytes) = log(WINDOW as u64, ids, &mut random);
        let events = stages.time("frame, with checksums", || frame(bytes, at));
        made += stages.time("tag", || {
            let mut changed = 0;
            for (offset, event) in &events {
                let start = LogPosition { file: Arc::clone(&file), offset: *offset };
                let end = LogPosition { file: Arc::clone(&file), offset: offset + event.bytes().len() as u64 };
                let tag = tagger.event(event, &format, &start, &end).unwrap();
                changed += u64::from(tag.is_some_and(|tag| tag.is_changed()));
            }
            assert!(changed > WINDOW as u64 / 2, "{changed} of {WINDOW} tags are new ones");
            WINDOW as u64
        });
        at = events.last().map_or(at, |(offset, event)| offset + event.bytes().len() as u64);
        stages.time("free", || drop(events));
    }
    stages.show(made);
    let all = stages.sum(&["frame, with checksums", "tag", "free"]);
    println!("{:<34} {:>8.2} M/s", "all", made as f64 / all.as_secs_f64() / 1e6);
}

/// Each event, and where it stands.
fn frame(mut bytes: Bytes, from: u64) -> Vec<(u64, Event)> {
    let (mut events, mut at) = (Vec::with_capacity(5 * WINDOW), from);
    while !bytes.is_empty() {
        let length = u32::from_le_bytes(bytes[9..13].try_into().unwrap()) as usize;
        events.push((at, Event::parse(bytes.split_to(length), Checksum::Crc32).unwrap()));
        at += length as u64;
    }
    events
}

fn run(count: u64, ids: u64, order: CommitOrder, grouping: Grouping) {
    let mut stages = Stages::default();
    let config = Config::new(8, order, Limits::new(grouping), 3);
    let mut scheduler = Scheduler::new(config, Mark::default(), &[]);
    let mut assembler = Assembler::new(16 << 20);
    let (mut keying, mut catalogue) = (Keying::new(7), catalogue());
    let mut policy = WriteSetPolicy::default();
    let mut random = 88_172_645_463_325_252_u64;
    let mut seq = 0;
    while seq < count {
        let (format, bytes) = log(WINDOW as u64, ids, &mut random);
        let events = stages.time("frame, with checksums (not ours)", || frame(bytes, 4));
        let mut transactions = stages.time("assemble", || {
            let mut transactions = Vec::with_capacity(WINDOW);
            let file: Arc<str> = "binlog.000001".into();
            for (offset, event) in &events {
                let position = LogPosition { file: Arc::clone(&file), offset: *offset };
                let end = LogPosition { file: Arc::clone(&file), offset: offset + event.bytes().len() as u64 };
                transactions.extend(assembler.event(event, &format, &position, &end).unwrap());
            }
            transactions
        });
        drop(events);
        stages.time("key", || {
            for transaction in &mut transactions {
                seq += 1;
                transaction.seq = seq;
                keying.key(transaction, &mut catalogue).unwrap();
            }
        });
        let placed: Vec<(Arc<Transaction>, Placement)> = stages.time("place", || {
            let place = |transaction: Transaction| {
                policy.low_water(transaction.seq.saturating_sub(2 * WINDOW as u64));
                let placement = policy.place(&transaction);
                (Arc::new(transaction), placement)
            };
            transactions.into_iter().map(place).collect()
        });
        let groups = stages.time("schedule", || schedule(&mut scheduler, placed));
        stages.time("plan (by the workers)", || {
            for group in &groups {
                black_box(compact::plan(group, true));
            }
        });
        stages.time("free", || drop(groups));
    }
    stages.show(count);
    let ours = stages.sum(&["assemble", "key", "place", "schedule", "free"]);
    println!("{:<34} {:>8.2} M/s", "all but frame and plan", count as f64 / ours.as_secs_f64() / 1e6);
}

/// Eight workers that take no time.
fn schedule(scheduler: &mut Scheduler, placed: Vec<(Arc<Transaction>, Placement)>) -> Vec<Arc<Group>> {
    let mut groups = Vec::new();
    let mut running = Vec::new();
    for (transaction, placement) in placed {
        scheduler.enqueue(transaction, placement);
    }
    loop {
        while let Some(output) = scheduler.poll() {
            match output {
                Output::Dispatch { group, run, .. } => {
                    if run.granted {
                        running.push(group.id);
                    }
                    groups.push(group);
                }
                Output::Grant { group, .. } => running.push(group),
                Output::LowWater(_) | Output::Release { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        if running.is_empty() {
            return groups;
        }
        for group in running.drain(..) {
            scheduler.committed(group);
        }
    }
}
