//! Logs that real servers wrote: where [`Boundary`] sees transactions begin and end, from outside, the assembler has put them together.

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

use binlog::boundary::{Boundary, Step, Verb};
use binlog::{Event, FormatDescription, Framer, Kind, LogPosition, Query};
use engine::intake::Assembler;
use engine::sql::{Class, SqlMode, classify};

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
    while let binlog::Step::Event { event, offset } = framer.next() {
        events.push((offset, event, framer.format().unwrap().clone()));
    }
    events
}

#[test]
fn transactions_are_where_the_assembler_finds_them() {
    let mut all = 0;
    for log in logs() {
        let (mut boundary, mut assembler) = (Boundary::default(), Assembler::new(1 << 30));
        let (mut spans, mut expected, mut start) = (Vec::new(), Vec::new(), 0);
        for (offset, event, format) in events(&log) {
            let end = offset + event.bytes().len() as u64;
            let at = |offset| LogPosition::new("binlog.000001", offset);
            let transaction = assembler.event(&event, &format, &at(offset), &at(end)).unwrap();
            expected.extend(transaction.map(|transaction| (transaction.start.offset, transaction.end.offset)));
            // A stream that resumes from what is kept of it goes on as if it had not broken off.
            let mut resumed = Boundary::resumed(boundary.open());
            let step = boundary.event(&event, &format);
            resumed.event(&event, &format);
            assert_eq!(resumed.open(), boundary.open(), "{}: {offset}", log.display());
            match step {
                Step::Begins { cut: false, .. } => start = offset,
                Step::Ends { first, .. } => spans.push((if first { offset } else { start }, end)),
                Step::NewLog { cut: false, .. } | Step::Aside | Step::Inside => {}
                Step::Begins { .. } | Step::NewLog { .. } | Step::EndsNothing => panic!("{}: {step:?}", log.display()),
            }
            assert_eq!(boundary.is_between(), assembler.is_between_transactions(), "{}: {offset}", log.display());
        }
        assert_eq!(spans, expected, "{}", log.display());
        all += spans.len();
    }
    assert!(all > 500, "{all}");
}

/// The few words that frame a transaction are the same for the machine as for who reads the statement.
#[test]
fn verbs_are_what_statements_are() {
    let verb = |class: &Class| match class {
        Class::Begin => Verb::Begin,
        Class::XaStart { .. } => Verb::XaStart,
        Class::Commit => Verb::Commit,
        Class::Rollback => Verb::Rollback,
        Class::XaRollback => Verb::XaRollback,
        _ => Verb::Other,
    };
    let check = |sql: &[u8], mode| {
        let class = classify(sql, "s", mode).class;
        assert_eq!(Verb::of(sql), verb(&class), "{}", String::from_utf8_lossy(sql));
    };
    for log in logs() {
        for (_, event, format) in events(&log) {
            if matches!(event.kind(), Kind::QUERY | Kind::QUERY_COMPRESSED) {
                let query = Query::decode(&event, &format).unwrap();
                check(&query.sql, SqlMode::of(&query.vars));
            }
        }
    }
    for sql in [
        "BEGIN",
        "begin work",
        "START TRANSACTION",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        "START SLAVE",
        "COMMIT",
        "COMMIT WORK;",
        "ROLLBACK",
        "ROLLBACK TO x",
        "ROLLBACK WORK TO SAVEPOINT x",
        "/* a */ COMMIT",
        "-- a\nROLLBACK",
        "XA START X'78',X'',1",
        "XA BEGIN 'a'",
        "XA END X'78',X'',1",
        "XA COMMIT X'78',X'',1 ONE PHASE",
        "XA ROLLBACK X'78',X'',1",
        "CREATE PROCEDURE p() START TRANSACTION",
        "CREATE TABLE t (a INT) START TRANSACTION",
        "SAVEPOINT `BEGIN`",
        "",
    ] {
        check(sql.as_bytes(), SqlMode::of(&binlog::StatusVars::default()));
    }
}
