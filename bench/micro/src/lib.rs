//! Generated logs, and the steps of the engine over them, one thread: for `benches/pipeline.rs`.

pub mod single_row;

use std::collections::HashMap;
use std::sync::Arc;

use binlog::{Event, FormatDescription, Framer, Step, TableMap};
use engine::compact::plan;
use engine::intake::Assembler;
use engine::group::Group;
use engine::intake::Keying;
use engine::policy::{Placement, Policy, WriteSetPolicy};
use binlog::LogPosition;
use engine::progress::Mark;
use engine::policy::CommitOrder;
use engine::schedule::{Config, Grouping, Limits, Output, Scheduler};
use engine::schema::{Catalogue, CatalogueError, KeyPart, Table, TableId};
use engine::transaction::Transaction;
use sim::{LogParams, Params, Workload, mysql_log};

/// One binary log file of so many transactions of 32 sessions.
pub fn log(transactions: u64) -> Vec<u8> {
    let params = Params { transactions, sessions: 32, long_percent: 0, ..Params::default() };
    let mut workload = Workload::new(params);
    let all: Vec<_> = (&mut workload).collect();
    let log = LogParams { file_bytes_max: u64::MAX, ..LogParams::default() };
    let mut files: Vec<_> = mysql_log::files(&log, workload.schema(), all).collect();
    assert_eq!(files.len(), 1, "one file was asked for");
    files.remove(0).bytes
}

pub type Located = (u64, Event, Arc<FormatDescription>);

/// Cuts the log into events and checks every checksum: how many there are.
pub fn check(log: &bytes::Bytes) -> u64 {
    let mut framer = Framer::new();
    framer.push(log.clone());
    let mut count = 0;
    loop {
        match framer.next() {
            Step::Event { event, .. } => {
                std::hint::black_box(&event);
                count += 1;
            }
            Step::NeedMore { .. } => return count,
            Step::Corrupt(corrupt) => panic!("{corrupt}"),
        }
    }
}

pub fn events(log: &bytes::Bytes) -> Vec<Located> {
    let mut events = Vec::new();
    walk(log, &mut |located| events.push(located));
    events
}

fn walk(log: &bytes::Bytes, take: &mut dyn FnMut(Located)) {
    let mut framer = Framer::new();
    framer.push(log.clone());
    let mut format: Option<Arc<FormatDescription>> = None;
    loop {
        match framer.next() {
            Step::Event { event, offset } => {
                let known = framer.format().expect("a format description comes first");
                let same = format.clone().filter(|_| event.kind() != binlog::Kind::FORMAT_DESCRIPTION);
                let format = format.insert(same.unwrap_or_else(|| Arc::new(known.clone())));
                take((offset, event, Arc::clone(format)));
            }
            Step::NeedMore { .. } => return,
            Step::Corrupt(corrupt) => panic!("{corrupt}"),
        }
    }
}

pub fn assemble(events: &[Located]) -> Vec<Transaction> {
    let mut transactions = Vec::new();
    for_each_transaction(events, |transaction| transactions.push(transaction));
    transactions
}

fn for_each_transaction(events: &[Located], mut take: impl FnMut(Transaction)) {
    // As the feeder does: the file's name is shared as long as it stays.
    let mut start = LogPosition { file: "binlog.000001".into(), offset: 0 };
    let mut end = start.clone();
    let mut assembler = Assembler::new(16 << 20);
    let mut seq = 0;
    for (offset, event, format) in events {
        start.offset = *offset;
        end.offset = offset + event.bytes().len() as u64;
        if let Some(mut transaction) = assembler.event(event, format, &start, &end).expect("a whole log") {
            seq += 1;
            transaction.seq = seq;
            take(transaction);
        }
    }
}

/// By the metadata of the log.
#[derive(Default)]
pub struct ByMap(HashMap<String, Arc<Table>>);

impl Catalogue for ByMap {
    fn table(&mut self, map: &TableMap) -> Result<Arc<Table>, CatalogueError> {
        let next = TableId(self.0.len() as u32);
        let table = self.0.entry(format!("{}.{}", map.schema, map.table)).or_insert_with(|| {
            let parts = map
                .primary_key
                .as_ref()
                .map(|parts| parts.iter().map(|part| KeyPart { column: part.column, prefix: None }).collect());
            Arc::new(Table::from_map(next, map, parts))
        });
        Ok(Arc::clone(table))
    }

    fn invalidate(&mut self, _: &engine::definition_change::DefinitionChange) {}
}

pub fn key(transactions: &mut [Transaction]) {
    let (mut keying, mut catalogue) = (Keying::new(7), ByMap::default());
    for transaction in transactions {
        keying.key(transaction, &mut catalogue).expect("every table is known");
    }
}

pub fn place(transactions: Vec<Transaction>) -> Vec<(Arc<Transaction>, Placement)> {
    let mut policy = WriteSetPolicy::default();
    let place = |transaction: Transaction| {
        policy.low_water(transaction.seq.saturating_sub(10_000));
        let placement = policy.place(&transaction);
        (Arc::new(transaction), placement)
    };
    transactions.into_iter().map(place).collect()
}

/// Four workers that take no time; returns the groups in the order in which they were dispatched.
pub fn schedule(placed: Vec<(Arc<Transaction>, Placement)>, grouping: Grouping) -> Vec<Arc<Group>> {
    let mut scheduler = scheduler(grouping);
    let mut groups = Vec::new();
    let mut placed = placed.into_iter();
    loop {
        let mut more = false;
        for (transaction, placement) in placed.by_ref().take(QUEUED) {
            more = true;
            assert!(scheduler.enqueue(transaction, placement));
        }
        if !more && !scheduler.has_ended() {
            scheduler.end();
        }
        if dispatch(&mut scheduler, |group| groups.push(group)) {
            return groups;
        }
    }
}

/// Every step for each transaction before the next one is looked at, as in a run; groups are freed when they have been committed.
pub fn run(events: &[Located]) -> usize {
    let (mut keying, mut catalogue) = (Keying::new(7), ByMap::default());
    let mut policy = WriteSetPolicy::default();
    let mut scheduler = scheduler(Grouping::Auto);
    let (mut queued, mut rows) = (0, 0);
    for_each_transaction(events, |mut transaction| {
        keying.key(&mut transaction, &mut catalogue).expect("every table is known");
        policy.low_water(transaction.seq.saturating_sub(10_000));
        let placement = policy.place(&transaction);
        assert!(scheduler.enqueue(Arc::new(transaction), placement));
        queued += 1;
        if queued == QUEUED {
            queued = 0;
            dispatch(&mut scheduler, |group| rows += group.rows());
        }
    });
    scheduler.end();
    assert!(dispatch(&mut scheduler, |group| rows += group.rows()));
    rows
}

/// How many rows of all groups can be changed in any order.
pub fn compact(groups: &[Arc<Group>]) -> usize {
    groups.iter().map(|group| plan(group, true).independent.len()).sum()
}

/// Transactions that wait when groups are formed.
const QUEUED: usize = 4_096;

fn scheduler(grouping: Grouping) -> Scheduler {
    let config = Config::new(4, CommitOrder::Preserve, Limits::new(grouping), 10);
    Scheduler::new(config, Mark::default(), &[])
}

/// Carries out what the scheduler says, with workers that take no time; true when all is done.
fn dispatch(scheduler: &mut Scheduler, mut take: impl FnMut(Arc<Group>)) -> bool {
    while let Some(output) = scheduler.poll() {
        match output {
            Output::Dispatch { group, run, .. } => {
                let id = group.id;
                take(group);
                if run.granted {
                    scheduler.committed(id);
                }
            }
            Output::Grant { group, .. } => scheduler.committed(group),
            Output::Finished => return true,
            Output::Release { .. } | Output::LowWater(_) => {}
            Output::Abort { .. } | Output::Stop(_) => panic!("nothing fails here"),
        }
    }
    false
}
