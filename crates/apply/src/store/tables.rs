//! The store's own catalogue: tables by name, table maps by number, in memory and as records.
//!
//! A table's number, not its name, is in the keys of its rows: to rename or empty a table is to write one record.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use binlog::encode::{FormatSpec, Head, format_description, table_map};
use binlog::{Checksum, Event, Flavour, FormatDescription, TableMap};
use bytes::Bytes;
use engine::sql::ObjectName;
use serde::{Deserialize, Serialize};

use super::identity::{self, Identity, KeyRule};
use super::image::VERSION_MAX;
use super::keys;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub number: u32,
    pub identity: Identity,
}

/// Writes that bring the records up to date: key and value, `None` to remove.
pub type Writes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

#[derive(Clone, Debug, Default)]
pub struct Tables {
    by_name: HashMap<ObjectName, Record>,
    versions: HashMap<u32, Arc<TableMap>>,
    versions_of: HashMap<ObjectName, Vec<u32>>,
    last_number: u32,
    last_version: u32,
}

/// How the rows of one table map are applied.
#[derive(Clone, Debug)]
pub struct TablePlan {
    pub number: u32,
    pub version: u32,
    pub mode: Mode,
}

#[derive(Clone, Debug)]
pub enum Mode {
    Key(KeyRule),
    Bag,
    Single,
}

/// Why rows can not be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableMismatch {
    /// The rows that are there do not go with those that come.
    Misfit(String),
    Broken(String),
}

impl Tables {
    /// Takes over a record; false when it is none that this knows.
    pub fn load(&mut self, key: &[u8], value: &[u8]) -> Result<bool, String> {
        if let Some(rest) = key.strip_prefix(keys::tables().as_slice()) {
            let split = rest.iter().position(|&byte| byte == 0).and_then(|at| rest.split_at_checked(at));
            let (schema, name) = split.ok_or("a table's record without a name")?;
            let text = |bytes: &[u8]| std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| error.to_string());
            let name = ObjectName { schema: text(schema)?, name: text(name.get(1..).unwrap_or_default())? };
            let record: Record = serde_json::from_slice(value).map_err(|error| format!("{name}: {error}"))?;
            self.last_number = self.last_number.max(record.number);
            self.by_name.insert(name, record);
        } else if key.starts_with(&keys::versions()) {
            let number = keys::number(key).ok_or("a table map without a number")?;
            let map = decode_map(value)?;
            self.note_version(number, Arc::new(map));
        } else if key.starts_with(&keys::garbage()) {
            let number = keys::number(key).ok_or("garbage without a number")?;
            self.last_number = self.last_number.max(number);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn note_version(&mut self, number: u32, map: Arc<TableMap>) {
        self.last_version = self.last_version.max(number);
        self.versions_of.entry(ObjectName::new(&map.schema, &map.table)).or_default().push(number);
        self.versions.insert(number, map);
    }

    /// The state before a transaction that failed, but no number is given out twice.
    pub fn restore(&mut self, before: Tables) {
        let numbers = (self.last_number, self.last_version);
        *self = before;
        (self.last_number, self.last_version) = numbers;
    }

    pub fn get(&self, name: &ObjectName) -> Option<&Record> {
        self.by_name.get(name)
    }

    pub fn names(&self) -> Vec<ObjectName> {
        let mut names: Vec<ObjectName> = self.by_name.keys().cloned().collect();
        names.sort();
        names
    }

    pub fn version(&self, number: u32) -> Option<&Arc<TableMap>> {
        self.versions.get(&number)
    }

    pub fn width(&self, version: u32) -> Option<usize> {
        self.versions.get(&version).map(|map| map.columns.len())
    }

    /// The last table map that was seen under a name.
    pub fn last_map(&self, name: &ObjectName) -> Option<&Arc<TableMap>> {
        self.versions_of.get(name)?.last().and_then(|number| self.versions.get(number))
    }

    /// How rows under `map` identify themselves, by what is known so far. Changes nothing.
    pub fn view(&self, map: &TableMap) -> Result<Identity, String> {
        match self.by_name.get(&ObjectName::new(&map.schema, &map.table)) {
            Some(record) => identity::fit(&record.identity, map),
            None => Ok(identity::decide(map, None)),
        }
    }

    /// The table and table map of rows that are about to be applied; both are recorded when they are new.
    pub fn resolve(
        &mut self,
        map: &Arc<TableMap>,
        is_empty: &mut dyn FnMut(u32) -> Result<bool, String>,
        writes: &mut Writes,
    ) -> Result<TablePlan, TableMismatch> {
        let name = ObjectName::new(&map.schema, &map.table);
        let known = self.by_name.get(&name).cloned();
        let (record, identity) = match known {
            None => {
                let identity = identity::decide(map, None);
                (Record { number: self.next_number(), identity: identity.clone() }, identity)
            }
            Some(record) => match identity::fit(&record.identity, map) {
                Ok(identity) => {
                    // A key's places follow the table map; the record keeps those of the first one.
                    let decided = matches!(record.identity, Identity::Undecided { .. });
                    let kept = if decided { identity.clone() } else { record.identity };
                    (Record { number: record.number, identity: kept }, identity)
                }
                Err(why) => {
                    if !is_empty(record.number).map_err(TableMismatch::Broken)? {
                        return Err(TableMismatch::Misfit(why));
                    }
                    let identity = identity::decide(map, None);
                    (Record { number: record.number, identity: identity.clone() }, identity)
                }
            },
        };
        let number = record.number;
        self.put(&name, record, writes);
        let version = self.resolve_version(&name, map, writes).map_err(TableMismatch::Broken)?;
        let mode = match identity {
            Identity::Key { parts, .. } => Mode::Key(KeyRule::new(number, &parts)),
            Identity::Bag { .. } | Identity::Undecided { .. } => Mode::Bag,
            Identity::Single => Mode::Single,
        };
        Ok(TablePlan { number, version, mode })
    }

    fn resolve_version(&mut self, name: &ObjectName, map: &Arc<TableMap>, writes: &mut Writes) -> Result<u32, String> {
        let same = |number: &&u32| {
            self.versions.get(number).is_some_and(|known| {
                Arc::ptr_eq(known, map) || (known.columns == map.columns && known.primary_key == map.primary_key)
            })
        };
        if let Some(number) = self.versions_of.get(name).and_then(|numbers| numbers.iter().rev().find(same)) {
            return Ok(*number);
        }
        if self.last_version >= VERSION_MAX {
            return Err("the store has had too many table definitions".to_owned());
        }
        let number = self.last_version + 1;
        writes.push((keys::version(number), Some(encode_map(map))));
        self.note_version(number, Arc::clone(map));
        Ok(number)
    }

    fn next_number(&mut self) -> u32 {
        self.last_number += 1;
        self.last_number
    }

    /// Records a table, unless it is recorded like this.
    pub fn put(&mut self, name: &ObjectName, record: Record, writes: &mut Writes) {
        if self.by_name.get(name) == Some(&record) {
            return;
        }
        match serde_json::to_vec(&record) {
            Ok(value) => writes.push((keys::table(&name.schema, &name.name), Some(value))),
            #[expect(clippy::unreachable, reason = "numbers, texts and lists")]
            Err(error) => unreachable!("a record of numbers and lists has no JSON form: {error}"),
        }
        self.by_name.insert(name.clone(), record);
    }

    /// A new table without rows.
    pub fn create(&mut self, name: &ObjectName, identity: Identity, writes: &mut Writes) {
        let number = self.next_number();
        self.put(name, Record { number, identity }, writes);
    }

    /// Forgets a table and gives its rows up.
    pub fn drop(&mut self, name: &ObjectName, writes: &mut Writes) -> Option<Record> {
        let record = self.by_name.remove(name)?;
        writes.push((keys::table(&name.schema, &name.name), None));
        writes.push((keys::garbage_of(record.number), Some(Vec::new())));
        Some(record)
    }

    /// Gives the rows of a table up.
    pub fn truncate(&mut self, name: &ObjectName, writes: &mut Writes) {
        if let Some(record) = self.drop(name, writes) {
            self.create(name, record.identity, writes);
        }
    }

    pub fn rename(&mut self, from: &ObjectName, to: &ObjectName, writes: &mut Writes) {
        if let Some(record) = self.by_name.remove(from) {
            writes.push((keys::table(&from.schema, &from.name), None));
            self.put(to, record, writes);
        }
    }
}

fn encode_map(map: &TableMap) -> Vec<u8> {
    table_map(&Head::new(0, 0, Checksum::Off), &map.spec(map.table_id))
}

fn decode_map(bytes: &[u8]) -> Result<TableMap, String> {
    let event = Event::parse(Bytes::copy_from_slice(bytes), Checksum::Off).map_err(|error| error.to_string())?;
    TableMap::decode(&event, format()?).map_err(|error| error.to_string())
}

/// The layout of [`encode_map`]'s events.
fn format() -> Result<&'static FormatDescription, String> {
    static FORMAT: OnceLock<Result<FormatDescription, String>> = OnceLock::new();
    let made = FORMAT.get_or_init(|| {
        let spec = FormatSpec {
            server_version: "8.0.36".to_owned(),
            flavour: Flavour::MySql,
            checksum: Checksum::Off,
            created: 0,
            in_use: false,
        };
        let bytes = format_description(&Head::new(0, 0, Checksum::Crc32), &spec);
        FormatDescription::decode(&Bytes::from(bytes)).map(|(_, format)| format).map_err(|error| error.to_string())
    });
    made.as_ref().map_err(Clone::clone)
}
