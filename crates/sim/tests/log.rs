//! The generated log against the oracle and against the rules for its tags, for any parameters.

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

use std::collections::BTreeMap;

use common::{Logged, RowName, TextRow, read};
use engine::tags::DependencyTracking;
use proptest::prelude::*;
use sim::schema::TableIndex;
use sim::workload::Transaction;
use sim::{LogFile, LogParams, Params, State, Workload, mysql_log};

fn any_params() -> impl Strategy<Value = Params> {
    let counts = (any::<u64>(), 0..400u64, 1..40u32, 1..4u16, 1..600u64);
    let shape = (0..=100u8, 0..=30u8, 0..3_000u64, 1..500u64, 0..5_000u64);
    (counts, shape).prop_map(|((seed, transactions, sessions, schemas, accounts), shape)| {
        let (hot_percent, long_percent, fsync_us, statement_us, think_us) = shape;
        Params {
            seed,
            transactions,
            sessions,
            schemas,
            accounts,
            hot_percent,
            long_percent,
            fsync_us,
            statement_us,
            think_us,
            ..Params::default()
        }
    })
}

fn any_log() -> impl Strategy<Value = LogParams> {
    let tracking = prop_oneof![
        Just((DependencyTracking::CommitOrder, 25_000)),
        Just((DependencyTracking::Writeset, 25_000)),
        (1..200usize).prop_map(|history_rows_max| (DependencyTracking::Writeset, history_rows_max)),
        (1..200usize).prop_map(|history_rows_max| (DependencyTracking::WritesetSession, history_rows_max)),
    ];
    (tracking, 1..200_000u64).prop_map(|((tracking, history_rows_max), file_bytes_max)| LogParams {
        tracking,
        history_rows_max,
        file_bytes_max,
        ..LogParams::default()
    })
}

struct Run {
    workload: Workload,
    transactions: Vec<Transaction>,
    files: Vec<LogFile>,
}

fn run(params: Params, log: &LogParams) -> Run {
    let mut workload = Workload::new(params);
    let transactions: Vec<Transaction> = (&mut workload).collect();
    let files = mysql_log::files(log, workload.schema(), transactions.clone()).collect();
    Run { workload, transactions, files }
}

type Tables = BTreeMap<RowName, TextRow>;

/// The oracle's rows as text.
fn expected(workload: &Workload) -> Tables {
    let mut rows = Tables::new();
    for (index, table) in workload.schema().tables().iter().enumerate() {
        for (_, row) in workload.state().rows(TableIndex(index)) {
            let texts: TextRow = row.iter().zip(&table.columns).map(|(value, column)| value.text(column.of)).collect();
            let key = texts[..table.key_columns].to_vec();
            rows.insert((format!("{}.{}", table.schema, table.name), key), texts);
        }
    }
    rows
}

/// Serial application, strict.
fn apply(rows: &mut Tables, transaction: &Logged) {
    for (name, before, after) in &transaction.changes {
        assert_eq!(rows.get(name), before.as_ref(), "{name:?}");
        match after {
            Some(after) => rows.insert(name.clone(), after.clone()),
            None => rows.remove(name),
        };
    }
}

/// Whoever may run beside another touches none of its rows, and numbers are as a server gives them.
fn check_tags(transactions: &[Logged]) {
    let mut last_writer: BTreeMap<&RowName, i64> = BTreeMap::new();
    for (index, transaction) in transactions.iter().enumerate() {
        let (last_committed, number) = (transaction.gtid.last_committed, transaction.gtid.sequence_number);
        assert_eq!(number, index as i64 + 1);
        assert!((0..number).contains(&last_committed), "{last_committed} {number}");
        for (row, ..) in &transaction.changes {
            let writer = last_writer.insert(row, number).unwrap_or(0);
            assert!(
                writer <= last_committed || writer == number,
                "{number} may run after {last_committed} but shares {row:?} with {writer}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_log_gives_the_state_and_its_tags_are_sound(params in any_params(), log in any_log()) {
        let run = run(params, &log);
        let mut rows = Tables::new();
        let mut done = 0;
        for (number, file) in run.files.iter().enumerate() {
            let read = read(file);
            prop_assert_eq!(&file.name, &format!("binlog.{:06}", number + 1));
            let next = run.files.get(number + 1).map(|file| file.name.clone());
            prop_assert_eq!(&read.next_file, &next);
            let previous: Vec<(u64, u64)> = if done == 0 { vec![] } else { vec![(1, done + 1)] };
            let entries = read.previous.entries.iter().flat_map(|entry| entry.intervals.clone());
            prop_assert_eq!(entries.collect::<Vec<_>>(), previous);
            check_tags(&read.transactions);
            for transaction in &read.transactions {
                done += 1;
                prop_assert_eq!(transaction.gtid.gno, done);
                apply(&mut rows, transaction);
            }
        }
        prop_assert_eq!(done, run.transactions.len() as u64);
        prop_assert_eq!(rows, expected(&run.workload));
    }

    #[test]
    fn the_workload_is_a_serial_history(params in any_params()) {
        let opening = Workload::opening_transactions(&params);
        let mut workload = Workload::new(params.clone());
        let mut state = State::new(workload.schema());
        let (mut seq, mut commit_time_us) = (0, 0);
        let transactions: Vec<Transaction> = (&mut workload).collect();
        for transaction in &transactions {
            seq += 1;
            prop_assert_eq!(transaction.seq, seq);
            prop_assert!(transaction.commit_parent < seq);
            prop_assert!(transaction.begun_us <= transaction.prepared_us);
            prop_assert!(transaction.prepared_us <= transaction.commit_time_us);
            prop_assert!(commit_time_us <= transaction.commit_time_us);
            commit_time_us = transaction.commit_time_us;
            prop_assert_eq!(state.apply_transaction(transaction), Ok(()));
        }
        prop_assert_eq!(seq, opening + params.transactions);
        prop_assert_eq!(&state, workload.state());
    }
}

/// Mean distance between a transaction and what it must wait for: how parallel a replica may be.
fn parallelism(run: &Run) -> f64 {
    let tags = run.files.iter().flat_map(|file| read(file).transactions);
    let distances: Vec<i64> =
        tags.map(|transaction| transaction.gtid.sequence_number - transaction.gtid.last_committed).collect();
    distances.iter().sum::<i64>() as f64 / distances.len() as f64
}

#[test]
fn sessions_commit_in_groups_and_write_sets_find_more() {
    let params = || Params { transactions: 3_000, accounts: 2_000, ..Params::default() };
    let log = |tracking| LogParams { tracking, ..LogParams::default() };
    let by_commits = parallelism(&run(params(), &log(DependencyTracking::CommitOrder)));
    let by_rows = parallelism(&run(params(), &log(DependencyTracking::Writeset)));
    assert!((3.0..40.0).contains(&by_commits), "{by_commits}");
    assert!(by_rows > 4.0 * by_commits, "{by_rows} against {by_commits}");
    let alone = parallelism(&run(Params { sessions: 1, ..params() }, &log(DependencyTracking::CommitOrder)));
    assert_eq!(alone, 1.0);
}

#[test]
fn the_same_seed_gives_the_same_log() {
    let params = || Params { transactions: 500, accounts: 300, schemas: 2, ..Params::default() };
    let log = LogParams { file_bytes_max: 100_000, tracking: DependencyTracking::Writeset, ..LogParams::default() };
    let first = run(params(), &log);
    assert_eq!(first.files, run(params(), &log).files);
    assert_ne!(first.files, run(Params { seed: 2, ..params() }, &log).files);
    // A change here is a change of what `heddle demo` and the benchmarks measure.
    assert_eq!(crc32fast::hash(format!("{:?}", first.transactions).as_bytes()), 925718);
}
