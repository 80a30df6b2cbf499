//! Logs that real servers wrote, put together into transactions and keyed.

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

use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlog::LogPosition;
use binlog::gtids::Gtid;
use binlog::{Event, FormatDescription, Framer, Kind, MariaDbGtid, MySqlGtid, Query, Step, TableMap};
use engine::intake::Assembler;
use engine::intake::Keying;
use engine::keys::KeyClass;
use engine::policy::{Policy, WriteSetPolicy};
use engine::schema::{Catalogue, CatalogueError, Column, KeyPart, Table, TableId, UniqueKey};
use engine::transaction::{BarrierCause, Item, Transaction};

fn logs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../binlog/tests/golden");
    let servers = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let files = servers.flat_map(|server| std::fs::read_dir(server).unwrap().map(|entry| entry.unwrap().path()));
    let mut logs: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|ext| ext == "binlog")).collect();
    logs.sort();
    assert!(logs.len() > 10, "golden files are missing");
    logs
}

fn events(log: &Path) -> Vec<(u64, Event, FormatDescription)> {
    let mut framer = Framer::new();
    framer.push(std::fs::read(log).unwrap().into());
    let mut events = Vec::new();
    loop {
        match framer.next() {
            Step::Event { event, offset } => events.push((offset, event, framer.format().unwrap().clone())),
            Step::NeedMore { .. } => return events,
            Step::Corrupt(corrupt) => panic!("{}: {corrupt}", log.display()),
        }
    }
}

fn assemble_with(log: &Path, assembler: &mut Assembler) -> Vec<Transaction> {
    let mut transactions = Vec::new();
    for (offset, event, format) in events(log) {
        let start = LogPosition::new("binlog.000001", offset);
        let end = LogPosition::new("binlog.000001", offset + event.bytes().len() as u64);
        let transaction = assembler.event(&event, &format, &start, &end);
        transactions.extend(transaction.unwrap_or_else(|error| panic!("{}: {error}", log.display())));
    }
    assert!(assembler.is_between_transactions(), "{}", log.display());
    transactions
}

fn assemble(log: &Path) -> Vec<Transaction> {
    assemble_with(log, &mut Assembler::new(1 << 30))
}

/// What the log says by itself: a GTID event for each transaction.
fn gtids(log: &Path) -> Vec<Option<Gtid>> {
    let mut gtids = Vec::new();
    for (_, event, format) in events(log) {
        match event.kind() {
            Kind::ANONYMOUS_GTID => gtids.push(None),
            Kind::GTID | Kind::GTID_TAGGED => {
                let gtid = MySqlGtid::decode(&event, &format).unwrap();
                let tag = (!gtid.tag.is_empty()).then(|| gtid.tag.as_str().into());
                gtids.push(Some(Gtid::MySql { uuid: gtid.uuid, tag, gno: gtid.gno }));
            }
            Kind::MARIADB_GTID => {
                let gtid = MariaDbGtid::decode(&event, &format).unwrap();
                gtids.push(Some(Gtid::MariaDb { domain: gtid.domain_id, server: gtid.server_id, seq: gtid.seq_no }));
            }
            _ => {}
        }
    }
    gtids
}

/// How often something is committed or rolled back in a log, statements that commit by themselves among it.
fn commits(log: &Path) -> usize {
    let mut open = false;
    let mut count = 0;
    for (_, event, format) in events(log) {
        let text = match event.kind() {
            Kind::XID => "COMMIT".to_owned(),
            Kind::QUERY => String::from_utf8_lossy(&Query::decode(&event, &format).unwrap().sql).into_owned(),
            _ => continue,
        };
        open |= text == "BEGIN";
        let ends = matches!(text.as_str(), "COMMIT" | "ROLLBACK");
        count += usize::from(ends || !open);
        open &= !ends;
    }
    count
}

#[test]
fn one_transaction_for_each_gtid() {
    for log in logs() {
        let transactions = assemble(&log);
        let expected = match gtids(&log) {
            // MySQL 5.6 without GTIDs: CREATE TABLE and two inserts.
            none if none.is_empty() && log.ends_with("anonymous.binlog") => vec![None; 3],
            none if none.is_empty() => vec![None; commits(&log)],
            gtids => gtids,
        };
        let got: Vec<Option<Gtid>> = transactions.iter().map(|transaction| transaction.gtid.clone()).collect();
        assert_eq!(got, expected, "{}", log.display());
        for pair in transactions.windows(2) {
            assert!(pair[0].end <= pair[1].start, "{}: {}", log.display(), pair[1].place());
        }
        for transaction in &transactions {
            assert!(!transaction.items().is_empty(), "{}: nothing in {}", log.display(), transaction.place());
        }
    }
}

/// The same with hardly any memory: everything else stays.
#[test]
fn spilled_transactions_end_where_they_did() {
    for log in logs() {
        let whole = assemble(&log);
        let spilled = assemble_with(&log, &mut Assembler::new(1));
        assert_eq!(whole.len(), spilled.len(), "{}", log.display());
        for (a, b) in whole.iter().zip(&spilled) {
            let of = |t: &Transaction| (t.gtid.clone(), t.start.clone(), t.end.clone(), t.commit_time_us, t.server_id);
            assert_eq!(of(a), of(b), "{}", log.display());
            assert!(b.items().is_empty() && b.barrier.is_some(), "{}", log.display());
        }
    }
}

/// An interruption after any event: what comes again is the same.
#[test]
fn a_stream_may_break_off_anywhere() {
    for log in logs() {
        let whole = assemble(&log);
        let events = events(&log);
        let at = |offset: u64| LogPosition::new("binlog.000001", offset);
        for cut in 1..events.len() {
            let mut assembler = Assembler::new(1 << 30);
            let mut done = Vec::new();
            let mut feed = |assembler: &mut Assembler, (offset, event, format): &(u64, Event, FormatDescription)| {
                let end = at(offset + event.bytes().len() as u64);
                done.extend(assembler.event(event, format, &at(*offset), &end).unwrap());
                done.last().map(|transaction: &Transaction| transaction.end.offset)
            };
            let boundary = events[..cut].iter().map(|event| feed(&mut assembler, event)).last().flatten().unwrap_or(4);
            assembler.restart();
            // The head of the file comes again, then what is behind the last transaction.
            for event in events.iter().filter(|(offset, event, _)| {
                *offset >= boundary || matches!(event.kind(), Kind::FORMAT_DESCRIPTION | Kind::PREVIOUS_GTIDS)
            }) {
                feed(&mut assembler, event);
            }
            let of = |t: &Transaction| (t.gtid.clone(), t.start.clone(), t.end.clone(), t.items().len(), t.barrier);
            assert!(done.iter().map(of).eq(whole.iter().map(of)), "{} cut at event {cut}", log.display());
        }
    }
}

fn barriers(server: &str, case: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../binlog/tests/golden");
    let transactions = assemble(&root.join(server).join(format!("{case}.binlog")));
    let names: Vec<&str> = transactions.iter().map(|t| t.barrier.map_or("-", BarrierCause::as_str)).collect();
    names.join(" ")
}

#[test]
fn what_runs_alone() {
    // Anew from 5.7 on MySQL, 10.5 on MariaDB: XA PREPARE has a transaction of its own.
    let cases = [
        ("mysql-9.7", "ddl-xa", "ddl - ddl - ddl ddl ddl ddl xa xa xa xa - ddl ddl ddl"),
        ("mysql-5.7.22", "rows", "ddl ddl ddl - - - - - - - - - - - - - - - -"),
        ("mysql-9.7", "payload", "ddl - - -"),
        ("mysql-9.7", "tagged", "ddl - - - - -"),
        ("mysql-5.6.14", "ddl-xa", "ddl - ddl - ddl - - ddl ddl"),
        ("mariadb-10.11", "ddl-xa", "ddl - ddl - ddl ddl ddl ddl xa xa xa xa - ddl ddl ddl"),
        ("mariadb-10.2", "ddl-xa", "ddl - ddl - ddl ddl ddl ddl - - ddl ddl ddl"),
        ("mariadb-11.8", "compress", "ddl - - - statement"),
        (
            "mysql-8.0.15",
            "statement",
            // In the middle a temporary table.
            "ddl ddl statement statement statement statement statement statement statement statement statement ddl statement \
             statement ddl load_data load_data account account ddl statement ddl ddl statement ddl account ddl",
        ),
    ];
    for (server, case, expected) in cases {
        assert_eq!(barriers(server, case), expected, "{server} {case}");
    }
}

/// Every table has its first column as its key.
struct FirstColumn;

impl Catalogue for FirstColumn {
    fn table(&mut self, map: &TableMap) -> Result<Arc<Table>, CatalogueError> {
        let mut table = Table::unknown(
            TableId(map.table.len() as u32),
            &map.schema,
            &map.table,
            engine::schema::TableOrderCause::NoUniqueKey,
        );
        table.order_by_table = None;
        table.has_relations = false;
        table.columns = map
            .columns
            .iter()
            .map(|_| Column { name: String::new(), unsigned: false, nullable: true, key_class: KeyClass::Exact })
            .collect();
        table.unique_keys =
            vec![UniqueKey { name: "PRIMARY".to_owned(), parts: vec![KeyPart { column: 0, prefix: None }] }];
        Ok(Arc::new(table))
    }

    fn invalidate(&mut self, _: &engine::definition_change::DefinitionChange) {}
}

/// Every row image of every type is walked, and every transaction placed.
#[test]
fn everything_can_be_keyed_and_placed() {
    let mut rows = 0;
    for log in logs() {
        let mut keying = Keying::new(7);
        let mut policy = WriteSetPolicy::default();
        for (seq, mut transaction) in (1..).zip(assemble(&log)) {
            transaction.seq = seq;
            keying.key(&mut transaction, &mut FirstColumn).unwrap_or_else(|error| panic!("{}: {error}", log.display()));
            let in_items = transaction.items().iter().map(|item| match item {
                Item::Rows(rows) => rows.rows.len(),
                Item::Statement(_) => 0,
            });
            assert_eq!(in_items.sum::<usize>(), transaction.write_set.rows.len());
            rows += transaction.write_set.rows.len();
            let placement = policy.place(&transaction);
            assert_eq!(placement.barrier, transaction.barrier);
        }
    }
    assert!(rows > 500, "{rows}");
}
