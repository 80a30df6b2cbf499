//! Reading the golden files.

#![allow(dead_code, reason = "no test file uses all of it")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use binlog::{Event, FormatDescription, Framer, Kind, Step, TableMap};
use bytes::Bytes;

/// Every golden log, by path.
pub fn golden_logs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut logs = Vec::new();
    for server in std::fs::read_dir(root).unwrap() {
        let server = server.unwrap().path();
        if server.is_dir() {
            let files = std::fs::read_dir(server).unwrap().map(|file| file.unwrap().path());
            logs.extend(files.filter(|file| file.extension().is_some_and(|ext| ext == "binlog")));
        }
    }
    logs.sort();
    assert!(logs.len() > 10, "golden files are missing");
    logs
}

/// One log's events with the description that was in force for each; panics on anything but whole events.
pub fn events(bytes: &[u8]) -> Vec<(u64, Event, FormatDescription)> {
    let mut framer = Framer::new();
    framer.push(Bytes::copy_from_slice(bytes));
    let mut out = Vec::new();
    loop {
        match framer.next() {
            Step::Event { event, offset } => out.push((offset, event, framer.format().unwrap().clone())),
            Step::NeedMore { .. } => break,
            Step::Corrupt(corrupt) => panic!("{corrupt}"),
        }
    }
    assert_eq!(framer.finish(), binlog::Finish::Clean);
    out
}

/// The events with those in compressed payloads after theirs.
pub fn flattened(bytes: &[u8]) -> Vec<(Event, FormatDescription)> {
    let mut out = Vec::new();
    for (_, event, format) in events(bytes) {
        let payload = (event.kind() == Kind::TRANSACTION_PAYLOAD)
            .then(|| binlog::TransactionPayload::decode(&event, &format).unwrap().events(1 << 30).unwrap());
        out.push((event, format.clone()));
        out.extend(payload.into_iter().flatten().map(|event| (event.unwrap(), format.clone())));
    }
    out
}

/// The table maps in force.
#[derive(Default)]
pub struct Tables(pub HashMap<u64, TableMap>);

impl Tables {
    /// Takes in a table map; other events are ignored.
    pub fn see(&mut self, event: &Event, format: &FormatDescription) {
        if event.kind() == Kind::TABLE_MAP {
            let map = TableMap::decode(event, format).unwrap();
            self.0.insert(map.table_id, map);
        }
    }
}
