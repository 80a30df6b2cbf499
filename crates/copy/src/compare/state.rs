//! How far a comparison is, in a file from which an interrupted one goes on: one line of JSON for each step, appended as the step is done.
//!
//! A process that is killed loses the step under way at most: a last line that is not complete is cut off. Chunks of a table stand in the file in the table's order, so
//! the last one says how far it is. A chunk that differs stands there as a suspect until its rows are settled; what has not been settled is looked at again.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::report::RowDifference;
use super::sql::Range;
use super::tables::plan::{Key, TablePlan};

/// Of the lines below.
const VERSION: u32 = 1;
/// Of a header.
const FIRST_BYTES: &[u8] = br#"{"version":"#;

/// The file, and what a comparison has to have in common with the one that wrote it.
#[derive(Clone, Debug)]
pub struct StateRequest {
    pub path: PathBuf,
    /// All options that change what is compared or reported.
    pub options: String,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    version: u32,
    source: String,
    target: String,
    options: String,
}

impl Header {
    /// `ends`: source and target, by their own names and their addresses.
    pub fn new([source, target]: [String; 2], options: String) -> Self {
        Self { version: VERSION, source, target, options }
    }
}

/// A key, its values in hexadecimal digits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
struct StoredKey(Key);

impl From<StoredKey> for Vec<String> {
    fn from(StoredKey(key): StoredKey) -> Self {
        let digits = |value: &Vec<u8>| value.iter().map(|byte| format!("{byte:02x}")).collect();
        key.iter().map(digits).collect()
    }
}

impl TryFrom<Vec<String>> for StoredKey {
    type Error = &'static str;

    fn try_from(digits: Vec<String>) -> Result<Self, Self::Error> {
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let value = |digits: &String| digits.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>();
        digits.iter().map(value).collect::<Option<_>>().map(Self).ok_or("no hexadecimal digits")
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    /// What is below counts for this form of the table; what is above does not.
    Begun {
        table: String,
        plan: u64,
    },
    /// No `until`: it was the last chunk.
    Equal {
        table: String,
        until: Option<StoredKey>,
        rows: u64,
    },
    /// No `until` and no `after`: the whole table.
    Suspect {
        table: String,
        number: u64,
        after: Option<StoredKey>,
        until: Option<StoredKey>,
        is_keyless: bool,
        rows: u64,
    },
    /// `rows`: those that were counted only when they were looked at.
    Settled {
        table: String,
        number: u64,
        rows: u64,
    },
    Different {
        table: String,
        keys: [Option<StoredKey>; 2],
        row: RowDifference,
    },
    /// More differ than are named.
    Full {
        table: String,
    },
}

impl Step {
    fn table(&self) -> &str {
        match self {
            Self::Begun { table, .. }
            | Self::Equal { table, .. }
            | Self::Suspect { table, .. }
            | Self::Settled { table, .. }
            | Self::Different { table, .. }
            | Self::Full { table } => table,
        }
    }
}

/// The keys by which a pair of rows is known: on the source, on the target.
pub type PairOfKeys = [Option<Key>; 2];

/// How far a table is.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TableProgress {
    /// The last key that was read.
    pub after: Option<Key>,
    /// It was read to its end.
    pub is_read: bool,
    pub rows: u64,
    /// What is to be looked at by rows; `None`: the whole table.
    pub suspects: BTreeMap<u64, Option<Range>>,
    pub differences: Vec<(PairOfKeys, RowDifference)>,
    pub is_full: bool,
    plan: u64,
}

impl TableProgress {
    fn take(&mut self, step: Step) {
        match step {
            Step::Begun { plan, .. } => *self = Self { plan, ..Self::default() },
            Step::Equal { until, rows, .. } => {
                self.rows += rows;
                self.read_to(until.map(|key| key.0));
            }
            Step::Suspect { number, after, until, is_keyless, rows, .. } => {
                let range = Range { after: after.map(|key| key.0), until: until.map(|key| key.0) };
                self.rows += rows;
                self.read_to(range.until.clone());
                self.suspects.insert(number, (!is_keyless).then_some(range));
            }
            Step::Settled { number, rows, .. } => {
                self.rows += rows;
                self.suspects.remove(&number);
            }
            Step::Different { keys, row, .. } => {
                self.differences.push((keys.map(|key| key.map(|key| key.0)), row));
            }
            Step::Full { .. } => self.is_full = true,
        }
    }

    fn read_to(&mut self, until: Option<Key>) {
        self.is_read = until.is_none();
        self.after = until;
    }
}

/// What a table is read as: if it changes, what was recorded of the table does not count any more.
fn fingerprint(plan: &TablePlan) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{:?} {:?} {:?}", plan.target, plan.key, plan.columns).hash(&mut hasher);
    hasher.finish()
}

/// All complete lines of a file, and how many bytes they have.
fn read_steps(text: &str) -> (Option<Header>, BTreeMap<String, TableProgress>, usize) {
    let (mut tables, mut length, mut header) = (BTreeMap::<String, TableProgress>::new(), 0, None);
    for line in text.split_inclusive('\n') {
        let Some(json) = line.strip_suffix('\n') else { break };
        if header.is_none() {
            let Ok(found) = serde_json::from_str(json) else { break };
            header = Some(found);
        } else {
            let Ok(step) = serde_json::from_str::<Step>(json) else { break };
            tables.entry(step.table().to_owned()).or_default().take(step);
        }
        length += line.len();
    }
    (header, tables, length)
}

/// The file that is written; none, if nothing is to be kept.
#[derive(Debug, Default)]
pub struct Journal {
    file: Option<(PathBuf, Mutex<File>)>,
    /// Of suspects.
    next_number: AtomicU64,
}

impl Journal {
    /// Opens the file and reads how far each table is. A file of another comparison is refused.
    pub fn open(path: &Path, header: &Header, plans: &[TablePlan]) -> Result<(Self, Vec<TableProgress>)> {
        let named = || format!("--state {}", path.display());
        let mut file = File::options().read(true).append(true).create(true).open(path).with_context(named)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("{}: another heddle compare is at work with it", named()),
            Err(TryLockError::Error(error)) => return Err(error).with_context(named),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(named)?;
        let (found, mut tables, length) = read_steps(&String::from_utf8_lossy(&bytes));
        match found {
            Some(found) if found == *header => file.set_len(length as u64).with_context(named)?,
            Some(_) => bail!(
                "{}: it is of a comparison of other servers, or with other options: give the same ones, or remove the file",
                named()
            ),
            // The process was killed as it wrote its first line.
            None if !bytes.contains(&b'\n') && bytes.iter().zip(FIRST_BYTES).all(|(one, other)| one == other) => {
                file.set_len(0).with_context(named)?;
                write_line(&mut file, header).with_context(named)?;
            }
            None => bail!("{}: it is no state of a comparison: choose another file, or remove this one", named()),
        }
        let journal = Self { file: Some((path.to_owned(), Mutex::new(file))), next_number: AtomicU64::new(0) };
        let mut all = Vec::with_capacity(plans.len());
        for plan in plans {
            let (name, fingerprint) = (plan.source.sql(), fingerprint(plan));
            let progress = tables.remove(&name).filter(|progress| progress.plan == fingerprint);
            let progress = match progress {
                Some(progress) => progress,
                None => {
                    journal.write(&Step::Begun { table: name, plan: fingerprint })?;
                    TableProgress { plan: fingerprint, ..TableProgress::default() }
                }
            };
            let next = progress.suspects.last_key_value().map_or(0, |(last, _)| last + 1);
            journal.next_number.fetch_max(next, Ordering::Relaxed);
            all.push(progress);
        }
        Ok((journal, all))
    }

    fn write(&self, step: &Step) -> Result<()> {
        let Some((path, file)) = &self.file else { return Ok(()) };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        write_line(&mut file, step).with_context(|| format!("--state {}", path.display()))
    }

    /// A chunk was equal on both servers.
    pub fn equal(&self, plan: &TablePlan, range: &Range, rows: u64) -> Result<()> {
        self.write(&Step::Equal { table: plan.source.sql(), until: range.until.clone().map(StoredKey), rows })
    }

    /// The number of a chunk whose rows have to be looked at. `range`: `None` is the whole table.
    pub fn suspect(&self, plan: &TablePlan, range: Option<&Range>, rows: u64) -> Result<u64> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        self.write(&Step::Suspect {
            table: plan.source.sql(),
            number,
            after: range.and_then(|range| range.after.clone()).map(StoredKey),
            until: range.and_then(|range| range.until.clone()).map(StoredKey),
            is_keyless: range.is_none(),
            rows,
        })?;
        Ok(number)
    }

    /// All rows of a suspect are equal, or their differences are recorded.
    pub fn settled(&self, plan: &TablePlan, number: u64, rows: u64) -> Result<()> {
        self.write(&Step::Settled { table: plan.source.sql(), number, rows })
    }

    pub fn different(&self, plan: &TablePlan, keys: &PairOfKeys, row: &RowDifference) -> Result<()> {
        if self.file.is_none() {
            return Ok(());
        }
        let keys = keys.clone().map(|key| key.map(StoredKey));
        self.write(&Step::Different { table: plan.source.sql(), keys, row: row.clone() })
    }

    pub fn full(&self, plan: &TablePlan) -> Result<()> {
        self.write(&Step::Full { table: plan.source.sql() })
    }

    /// The comparison has ended: there is nothing to go on with.
    pub fn remove(self) -> Result<()> {
        let Some((path, _)) = &self.file else { return Ok(()) };
        std::fs::remove_file(path).with_context(|| format!("--state {}", path.display()))
    }
}

/// In one write: a process that is killed leaves all of a line or a beginning of it.
fn write_line(file: &mut File, line: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    Ok(file.write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::super::report::Kind;
    use super::super::tables::definition::TableName;
    use super::*;

    fn plan(table: &str) -> TablePlan {
        TablePlan {
            source: TableName::new("d", table),
            target: TableName::new("d", table),
            columns: Vec::new(),
            key: None,
            rows_estimate: 0,
            row_bytes: 0,
            width: 1,
            cascading_parents: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn header(options: &str) -> Header {
        Header::new(["a", "b"].map(str::to_owned), options.to_owned())
    }

    fn at(text: &str) -> Key {
        vec![text.as_bytes().to_vec(), Vec::new()]
    }

    fn difference() -> RowDifference {
        let key = vec![("id".to_owned(), "7".to_owned())];
        RowDifference { kind: Kind::MissingOnTarget, key, columns: Vec::new(), copies: None, repair: None }
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("heddle-compare-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Steps of two tables.
    fn write(path: &Path, plans: &[TablePlan]) {
        let (journal, before) = Journal::open(path, &header("x"), plans).unwrap();
        assert!(before.iter().all(|table| table.after.is_none() && table.rows == 0));
        let range = |after: Option<Key>, until: Option<Key>| Range { after, until };
        journal.equal(&plans[0], &range(None, Some(at("\u{e9}5"))), 10).unwrap();
        let first = journal.suspect(&plans[0], Some(&range(Some(at("\u{e9}5")), Some(at("8")))), 20).unwrap();
        let second = journal.suspect(&plans[0], Some(&range(Some(at("8")), Some(at("9")))), 0).unwrap();
        let keyless = journal.suspect(&plans[1], None, 0).unwrap();
        journal.different(&plans[0], &[Some(at("6")), None], &difference()).unwrap();
        journal.settled(&plans[0], first, 0).unwrap();
        journal.settled(&plans[1], keyless, 7).unwrap();
        assert!(first < second && second < keyless);
    }

    #[test]
    fn a_comparison_goes_on_where_it_was_however_much_of_the_file_is_there() {
        let folder = Folder::new("state");
        let (path, plans) = (folder.0.join("s"), [plan("t"), plan("keyless")]);
        write(&path, &plans);
        let whole = std::fs::read(&path).unwrap();
        let (_, tables) = Journal::open(&path, &header("x"), &plans).unwrap();
        let left = Range { after: Some(at("8")), until: Some(at("9")) };
        assert_eq!((tables[0].after.clone(), tables[0].is_read, tables[0].rows), (Some(at("9")), false, 30));
        assert_eq!(tables[0].suspects.values().collect::<Vec<_>>(), [&Some(left)]);
        assert_eq!(tables[0].differences, [([Some(at("6")), None], difference())]);
        assert_eq!((tables[1].is_read, tables[1].rows, tables[1].suspects.len()), (true, 7, 0));
        // Killed at any byte.
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (journal, tables) = Journal::open(&path, &header("x"), &plans).unwrap();
            let rows = tables[0].rows;
            assert!([0, 10, 30].contains(&rows) && tables[0].after.is_none() == (rows == 0), "{length}: {tables:?}");
            // What is written next is a line of its own.
            journal.full(&plans[0]).unwrap();
            drop(journal);
            let (_, tables) = Journal::open(&path, &header("x"), &plans).unwrap();
            assert!(tables[0].is_full && tables[0].rows == rows, "{length}");
        }
    }

    #[test]
    fn a_file_of_something_else_is_refused() {
        let folder = Folder::new("refused");
        let (path, plans) = (folder.0.join("s"), [plan("t")]);
        let check = |options: &str, expected: &str| {
            let error = Journal::open(&path, &header(options), &plans).map(|_| ()).unwrap_err();
            assert!(format!("{error:#}").contains(expected), "{error:#}");
        };
        for text in ["precious", "precious\n", "{}\n"] {
            std::fs::write(&path, text).unwrap();
            check("x", "no state of a comparison");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        std::fs::remove_file(&path).unwrap();
        let (journal, _) = Journal::open(&path, &header("x"), &plans).unwrap();
        check("x", "another heddle compare");
        drop(journal);
        check("y", "other options");
        let (journal, _) = Journal::open(&path, &header("x"), &plans).unwrap();
        journal.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_table_that_was_defined_anew_begins_anew() {
        let folder = Folder::new("defined");
        let (path, mut plans) = (folder.0.join("s"), [plan("t"), plan("keyless")]);
        write(&path, &plans);
        plans[0].target = TableName::new("d", "other");
        let (journal, tables) = Journal::open(&path, &header("x"), &plans).unwrap();
        assert_eq!((tables[0].rows, tables[0].differences.len(), tables[1].rows), (0, 0, 7));
        drop(journal);
        let (_, tables) = Journal::open(&path, &header("x"), &plans).unwrap();
        assert_eq!((tables[0].rows, tables[1].rows), (0, 7));
    }
}
