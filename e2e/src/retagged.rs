//! What tests of tags made anew share: log files as bytes, what differs in them, how parallel they are; a workload that tags can spread.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use binlog::Header;

use crate::checksum::{contents, differences};
use crate::heddle::heddle;
use crate::native::{gtids, wait_caught_up};
use crate::served::assert_same;
use crate::server::Server;
use crate::workload::Size;

pub const RETAG: &[&str] = &["--retag", "writeset"];

/// What replicas of the source's vendor are given to apply.
pub const SIZE: Size = Size {
    tables: 8,
    sessions: 4,
    transactions: 60,
    definitions_percent: 1,
    xa: true,
    replace: true,
    temporary: true,
    same_flavour: true,
    unlogged: false,
};

/// By name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The numbered files of a folder whose names begin so.
pub fn log_files(dir: &Path, base: &str) -> Result<Files> {
    let mut found = Files::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix(base).and_then(|rest| rest.strip_prefix('.'));
        if number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
            found.insert(name, std::fs::read(entry.path())?);
        }
    }
    Ok(found)
}

/// An event that is not the same in both, and where.
#[derive(Debug)]
pub struct Differing<'a> {
    pub header: Header,
    pub theirs: &'a [u8],
    pub ours: &'a [u8],
    pub place: String,
}

/// Files of the same names and lengths: how many of their events differ, each of which is shown.
pub fn count_differing(
    theirs: &Files,
    ours: &Files,
    mut each: impl FnMut(Differing<'_>) -> Result<()>,
) -> Result<usize> {
    ensure!(theirs.keys().eq(ours.keys()), "{:?} and {:?}", theirs.keys(), ours.keys());
    let mut count = 0;
    for ((name, theirs), ours) in theirs.iter().zip(ours.values()) {
        ensure!(ours.len() == theirs.len(), "{name}: {} and {} bytes", ours.len(), theirs.len());
        let mut at = 4;
        while let Some(header) = theirs.get(at..).and_then(Header::parse) {
            let place = at..at + header.event_len as usize;
            at = place.end;
            let (theirs, ours) = theirs.get(place.clone()).zip(ours.get(place.clone())).context("a whole event")?;
            if theirs != ours {
                let place = format!("{name}:{} {}", place.start, header.kind);
                each(Differing { header, theirs, ours, place })?;
                count += 1;
            }
        }
    }
    Ok(count)
}

/// What `heddle inspect` says of these files under this name.
pub fn inspected(files: &Files, name: &str, dir: &Path) -> Result<f64> {
    let copies = tempfile::tempdir_in(dir)?;
    for (name, bytes) in files {
        std::fs::write(copies.path().join(name), bytes)?;
    }
    let run = heddle(&["inspect", &copies.path().display().to_string(), "--json"])?.successful()?;
    let said: serde_json::Value = serde_json::from_str(&run.stdout)?;
    let found = find(&said, name).with_context(|| said.to_string())?;
    found.as_f64().with_context(|| found.to_string())
}

fn find<'a>(value: &'a serde_json::Value, name: &str) -> Option<&'a serde_json::Value> {
    match value {
        serde_json::Value::Object(fields) => {
            fields.get(name).or_else(|| fields.values().find_map(|value| find(value, name)))
        }
        serde_json::Value::Array(values) => values.iter().find_map(|value| find(value, name)),
        _ => None,
    }
}

/// One session on a table of its own, and rows that are changed again and again.
pub fn one_session(source: &Server, transactions: usize) -> Result<()> {
    source.execute("CREATE DATABASE one; CREATE TABLE one.t (id INT PRIMARY KEY, v INT, UNIQUE (v)) ENGINE=InnoDB")?;
    source.execute(&changes(transactions))
}

/// Of that table.
pub fn changes(transactions: usize) -> String {
    (0..transactions)
        .map(|number| match number % 10 {
            9 => format!("UPDATE one.t SET v = v + 100000 WHERE id = {};", number / 2),
            _ => format!("INSERT INTO one.t VALUES ({number}, {number});"),
        })
        .collect()
}

/// Tables and GTIDs; of another version only the rows are said in the same words.
pub fn same(source: &Server, replica: &Server) -> Result<()> {
    if source.kind == replica.kind {
        return assert_same(source, replica);
    }
    wait_caught_up(source, replica)?;
    let differences = differences(&contents(source)?, &contents(replica)?);
    ensure!(differences.is_empty(), "{differences:?}");
    ensure!(gtids(source)? == gtids(replica)?);
    Ok(())
}
