//! What replicas of every version say before the first event comes, as it was recorded from the servers themselves (`handshakes/`, made by
//! `HEDDLE_WRITE_DOCS=1 scripts/nightly serve`): each statement is answered as the source answered it, and the request for the log is understood.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use std::collections::BTreeMap;
use std::path::Path;

use serve::dump::{DumpStart, MarkedEvents, Request, WaitMode};
use serve::inventory::{Inventory, SourceFacts};
use serve::queries::{Answer, Client, ServerValues, SessionLine, Sessions, Variables, World, answer};
use wire::server::Command;

#[derive(Debug)]
struct Nobody;

impl Sessions for Nobody {
    fn list(&self) -> Vec<SessionLine> {
        Vec::new()
    }

    fn kill(&self, _: u32, _: &str) -> bool {
        false
    }
}

/// Its first lines.
fn facts(text: &str) -> SourceFacts {
    let mut facts =
        SourceFacts { greeting: String::new(), charset: 45, version: (0, 0, 0), variables: BTreeMap::new() };
    for line in text.lines() {
        if let Some(version) = line.strip_prefix("version ") {
            let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
            let mut next = || numbers.next().unwrap_or(0);
            facts.version = (next(), next(), next());
            facts.variables.insert("version".to_owned(), version.to_owned());
        } else if let Some(greeting) = line.strip_prefix("greeting ") {
            greeting.clone_into(&mut facts.greeting);
        } else if let Some((name, value)) = line.strip_prefix("variable ").and_then(|rest| rest.split_once(' ')) {
            facts.variables.insert(name.to_owned(), value.to_owned());
        }
    }
    facts
}

/// As it was recorded: `ok`, `error NUMBER`, or columns and rows.
fn shown(sql: &str, variables: &mut Variables, source: &SourceFacts) -> String {
    let inventory = Inventory::new(Path::new("/nonexistent"));
    let own = ServerValues { hostname: "heddle".to_owned(), port: 3306, groups: false, started: 0 };
    let who = Client { number: 1, user: "repl", from: [127, 0, 0, 1].into() };
    match answer(
        sql.as_bytes(),
        variables,
        World { inventory: &inventory, source, receiving: None, schema: None, own: &own, who, sessions: &Nobody },
    ) {
        Ok(Answer::Done | Answer::Leave) => "ok".to_owned(),
        Err(error) => format!("error {}", error.code),
        Ok(Answer::Rows(rows)) => {
            let names: Vec<&str> = rows.columns.iter().map(|(name, _)| name.as_str()).collect();
            let mut out = format!("columns {}", names.join("\t"));
            for row in &rows.rows {
                let cells: Vec<&str> = row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
                out.push_str(&format!("\nrow {}", cells.join("\t")));
            }
            out
        }
    }
}

fn replay(name: &str, text: &str) {
    let source = facts(text);
    let mut variables = Variables::default();
    let mut lines = text.lines().peekable();
    let (mut asked, mut has_registered, mut request) = (0, false, None);
    while let Some(line) = lines.next() {
        if let Some(sql) = line.strip_prefix("ask ") {
            let mut want = lines.next().unwrap().to_owned();
            while let Some(row) = lines.peek().filter(|line| line.starts_with("row ")) {
                want.push_str(&format!("\n{row}"));
                lines.next();
            }
            let mut is = shown(sql, &mut variables, &source);
            asked += 1;
            if sql.contains("UNIX_TIMESTAMP") {
                // The clock.
                assert!(is.starts_with("columns UNIX_TIMESTAMP()\nrow 1"), "{name}: {is}");
                continue;
            }
            if sql.starts_with("SELECT binlog_gtid_pos") {
                // There are no files in this test: as a server says it of a file that it does not have.
                is = is.replace("row NULL", "");
                want = want.lines().next().unwrap().to_owned() + "\n";
            }
            assert_eq!(is, want, "{name}: {sql}");
        } else if let Some(hex) = line.strip_prefix("register ") {
            let Command::RegisterReplica(registration) = Command::parse(&hex::decode(hex).unwrap()) else {
                panic!("{name}: {line}")
            };
            assert_eq!((registration.server_id, registration.port), (8, 3306), "{name}");
            assert_eq!(registration.host, b"replica", "{name}");
            has_registered = true;
        } else if let Some(hex) = line.strip_prefix("dump ") {
            let Command::BinlogDump(from) = Command::parse(&hex::decode(hex).unwrap()) else {
                panic!("{name}: {line}")
            };
            assert_eq!(from.server_id, 8, "{name}");
            let of_session = |name: &str| variables.user(name);
            request = Some(Request::new(&from, &source, MarkedEvents::Sent, &of_session).unwrap());
        } else {
            assert!(!line.starts_with("other"), "{name}: {line}");
        }
    }
    let request = request.unwrap_or_else(|| panic!("{name}: no request for the log"));
    assert!(asked >= 4 && has_registered, "{name}");
    assert_eq!(request.waiting, WaitMode::ForMore, "{name}");
    assert_eq!(request.heartbeat.map(|period| period.as_millis()), Some(1000), "{name}");
    assert!(request.checksum.is_some(), "{name}");
    let by_gtid = matches!(request.start, DumpStart::MySqlGtids(_) | DumpStart::MariaDb(_));
    assert_eq!(by_gtid, name.contains("-gtid"), "{name}: {:?}", request.start);
}

#[test]
fn every_version_is_answered_as_its_source_did() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/handshakes");
    let mut names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for path in &names {
        replay(&path.file_name().unwrap().to_string_lossy(), &std::fs::read_to_string(path).unwrap());
    }
    assert!(names.len() >= 18, "{} files", names.len());
}
