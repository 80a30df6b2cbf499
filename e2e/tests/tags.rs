//! The tags that the engine works out are those that real MySQL servers write, transaction by transaction.
//!
//! One workload with every fallback in it, its sessions one after the other, so that the commit order is known: on a
//! source with each tracking that it knows, and on an intermediate server that applies it with one thread. Then the tags in
//! the logs against the engine's, with the tables as the server describes them.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, bail, ensure};
use e2e::logged;
use e2e::native;
use e2e::server::{Kind, MYSQL_9_7, PASSWORD, Server, USER};
use engine::failure::{Failure, FailureKind};
use engine::intake::Keying;
use engine::keys::{DataType, KeyClass, classify};
use engine::schema::{
    Catalogue, CatalogueError, Column, ForeignKey, KeyPart, Leftovers, Table, TableId, TableOrderCause, UniqueKey,
};
use engine::tags::{DependencyTracking, Fallback, Generation, Rules, Subject, Tracker};
use engine::transaction::{Item, Transaction};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use wire::{ConnectOptions, Connection};

/// With this one there is every fallback in the workload.
const DEFAULT_SEED: u64 = 4;

/// Of one workload.
const STEPS: u32 = 420;

/// Small, so that it fills up.
const HISTORY: usize = 60;

const TABLES: &str = "CREATE DATABASE d; \
    CREATE TABLE d.plain (id INT PRIMARY KEY, v INT); \
    CREATE TABLE d.uniq (id INT PRIMARY KEY, a INT, b INT NULL, UNIQUE ab (a, b)); \
    CREATE TABLE d.parent (id INT, sub INT, PRIMARY KEY (id, sub)); \
    CREATE TABLE d.child (id INT PRIMARY KEY, p INT NULL, s INT NULL, v INT, FOREIGN KEY (p, s) REFERENCES d.parent (id, sub)); \
    CREATE TABLE d.one (id INT PRIMARY KEY); \
    CREATE TABLE d.kid (id INT PRIMARY KEY, p INT NULL, v INT, FOREIGN KEY (p) REFERENCES d.one (id)); \
    CREATE TABLE d.bare (a INT, b INT); \
    CREATE TABLE d.maybe (a INT NULL UNIQUE, b INT); \
    CREATE TABLE d.promoted (a INT NOT NULL, b INT, UNIQUE (a)); \
    CREATE TABLE d.text (id VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, v INT); \
    CREATE TABLE d.prefix (id INT PRIMARY KEY, t VARCHAR(40), UNIQUE (t(4)))";

/// Statements of one step; more than one where several transactions belong together.
///
/// `replaces`: with REPLACE on a table with a second unique key. 8.0.15 takes the new row's values for those of the row that it
/// deletes, so its tags miss a conflict on the value that became free; that row cannot be told from the log.
fn step(random: &mut StdRng, at: u32, replaces: bool) -> Vec<String> {
    let replace = if replaces { "REPLACE" } else { "INSERT IGNORE" };
    let few = random.random_range(1..12);
    let other = random.random_range(1..12);
    let text = ["anna", "ANNA", "Anna ", "bert", "zoe"][random.random_range(0..5)];
    let one = |sql: String| vec![sql];
    match random.random_range(0..42_u32) {
        0..8 => one(format!("INSERT INTO d.plain VALUES ({few}, {at}) ON DUPLICATE KEY UPDATE v = {at}")),
        8..10 => one(format!("DELETE FROM d.plain WHERE id = {few}")),
        10..14 => one(format!("{replace} INTO d.uniq VALUES ({few}, {other}, IF({at} % 3 = 0, NULL, {other}))")),
        14..16 => one(format!("UPDATE IGNORE d.uniq SET b = {at} % 7 WHERE id = {few}")),
        16 => one(format!("INSERT IGNORE INTO d.parent VALUES ({few} + {at} DIV 1000 * 1000, 1)")),
        17..20 => {
            one(format!("INSERT INTO d.child SELECT {at}, id, sub, {few} FROM d.parent WHERE id >= {few} LIMIT 1"))
        }
        20 => one(format!("INSERT INTO d.child VALUES ({at}, NULL, NULL, {few})")),
        21 => one(format!("UPDATE d.child SET v = {at} ORDER BY id LIMIT {}", few % 3 + 1)),
        22 => one(format!("INSERT IGNORE INTO d.one VALUES ({few} + {at} DIV 1000 * 1000)")),
        23..25 => one(format!("INSERT INTO d.kid SELECT {at}, id, {few} FROM d.one WHERE id >= {few} LIMIT 1")),
        25 => one(format!("INSERT INTO d.kid VALUES ({at}, NULL, {few})")),
        26 => vec![
            "SET foreign_key_checks = 0".to_owned(),
            format!("INSERT INTO d.kid VALUES ({at}, {few} + 100, {few})"),
            "SET foreign_key_checks = 1".to_owned(),
        ],
        27 => one(format!("INSERT INTO d.bare VALUES ({few}, {other})")),
        28 => one(format!("INSERT IGNORE INTO d.maybe VALUES ({few}, {other})")),
        29 => one(format!("REPLACE INTO d.promoted VALUES ({few}, {other})")),
        30..32 => one(format!("REPLACE INTO d.text VALUES ('{text}', {at})")),
        32 => one(format!("{replace} INTO d.prefix VALUES ({few}, CONCAT('{text}', {at}))")),
        33 => one(format!("ALTER TABLE d.plain COMMENT '{at}'")),
        34 => one(match random.random_range(0..4) {
            0 => "ANALYZE TABLE d.plain".to_owned(),
            1 => "CREATE DATABASE IF NOT EXISTS e".to_owned(),
            2 => "ALTER DATABASE e CHARACTER SET latin1".to_owned(),
            // One transaction since 8.0.21; before, refused with GTIDs.
            _ => format!("CREATE TABLE d.made{at} (id INT PRIMARY KEY) SELECT id FROM d.plain LIMIT 3"),
        }),
        39 => one("FLUSH BINARY LOGS".to_owned()),
        // Of a size about the history's, and larger than it.
        35 | 40.. => {
            let rows = |from: u32, count: u32| {
                (from..from + count).map(|id| format!("({id}, 1)")).collect::<Vec<_>>().join(",")
            };
            let count = [30, 45, 55, 61, 70][random.random_range(0..5)];
            one(format!("INSERT INTO d.plain VALUES {}", rows(1000 + at * 100, count)))
        }
        36 => vec![
            "BEGIN".to_owned(),
            format!("REPLACE INTO d.plain VALUES ({few}, {at})"),
            "SAVEPOINT s".to_owned(),
            format!("REPLACE INTO d.plain VALUES ({other}, {at})"),
            "ROLLBACK TO s".to_owned(),
            format!("REPLACE INTO d.text VALUES ('{text}', {at})"),
            "COMMIT".to_owned(),
        ],
        37 => vec![
            format!("XA START 'x{at}'"),
            format!("REPLACE INTO d.plain VALUES ({few}, {at})"),
            format!("XA END 'x{at}'"),
            format!("XA PREPARE 'x{at}'"),
            format!("XA COMMIT 'x{at}'"),
        ],
        38 => vec![
            "BEGIN".to_owned(),
            format!("REPLACE INTO d.plain VALUES ({few}, {at})"),
            format!("REPLACE INTO d.bare VALUES ({few}, {at})"),
            "COMMIT".to_owned(),
        ],
    }
}

fn connect(server: &Server) -> Result<Connection> {
    let (mut options, _) = ConnectOptions::from_url(&format!("mysql://{USER}@127.0.0.1:{}", server.port))?;
    options.password = Some(PASSWORD.into());
    Ok(Connection::connect(&options)?)
}

/// Three sessions that take turns.
/// `at`: where the numbers of its rows begin, in thousands.
fn workload(server: &Server, seed: u64, at: u32, replaces: bool) -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut sessions = [connect(server)?, connect(server)?, connect(server)?];
    for at in at..at + STEPS {
        let session = &mut sessions[random.random_range(0..3)];
        for sql in step(&mut random, at, replaces) {
            // With the server's settings a few of these fail (a foreign key, a duplicate): then they are not in the log.
            if let Err(error) = session.query(&sql)
                && error.code().is_none()
            {
                bail!("{sql}: {error}");
            }
        }
    }
    Ok(())
}

/// Tables as `information_schema` has them.
struct Described {
    connection: Connection,
    ids: HashMap<(String, String), TableId>,
    tables: HashMap<TableId, Arc<Table>>,
}

impl Described {
    fn id(&mut self, schema: &str, table: &str) -> TableId {
        let next = TableId(self.ids.len() as u32);
        *self.ids.entry((schema.to_owned(), table.to_owned())).or_insert(next)
    }

    fn load(&mut self, schema: &str, name: &str) -> Result<Table> {
        let place = format!("TABLE_SCHEMA='{schema}' AND TABLE_NAME='{name}'");
        let mut columns = Vec::new();
        for row in self.connection.rows(format!(
            "SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COALESCE(CHARACTER_SET_NAME,''), COALESCE(COLLATION_NAME,'') \
             FROM information_schema.COLUMNS WHERE {place} ORDER BY ORDINAL_POSITION"
        ))? {
            let text = |at: usize| row.required_text(at).map(str::to_owned);
            columns.push(Column {
                name: text(0)?,
                unsigned: false,
                nullable: text(2)? == "YES",
                key_class: classify(&DataType::from_column_type(&text(1)?), &text(3)?, &text(4)?),
            });
        }
        let position = |name: &str| columns.iter().position(|column| column.name == name).context("a column");
        let mut unique_keys: Vec<UniqueKey> = Vec::new();
        for row in self.connection.rows(format!(
            "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS WHERE {place} AND NON_UNIQUE=0 \
             ORDER BY INDEX_NAME<>'PRIMARY', INDEX_NAME, SEQ_IN_INDEX"
        ))? {
            let (index, column) = (row.required_text(0)?, position(row.required_text(1)?)?);
            let part = KeyPart { column, prefix: row.parse(2)? };
            match unique_keys.last_mut().filter(|key| key.name == index) {
                Some(key) => key.parts.push(part),
                None => unique_keys.push(UniqueKey { name: index.to_owned(), parts: vec![part] }),
            }
        }
        let mut foreign_keys: Vec<ForeignKey> = Vec::new();
        let usage = self.connection.rows(format!(
            "SELECT CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME FROM \
             information_schema.KEY_COLUMN_USAGE WHERE {place} AND REFERENCED_TABLE_NAME IS NOT NULL \
             ORDER BY CONSTRAINT_NAME, ORDINAL_POSITION"
        ))?;
        for row in usage {
            let name = row.required_text(0)?.to_owned();
            let column = position(row.required_text(1)?)?;
            let parent = self.id(row.required_text(2)?, row.required_text(3)?);
            if foreign_keys.last().is_none_or(|key| key.name != name) {
                // Every parent here has its primary key referred to, and integers in it.
                foreign_keys.push(ForeignKey {
                    name,
                    columns: Vec::new(),
                    parent,
                    parent_key: Some(0),
                    classes: Vec::new(),
                });
            }
            if let Some(key) = foreign_keys.last_mut() {
                key.columns.push(column);
                key.classes.push(KeyClass::Exact);
            }
        }
        let referenced = self.connection.scalar(format!(
            "SELECT COUNT(*) FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_SCHEMA='{schema}' AND \
             REFERENCED_TABLE_NAME='{name}'"
        ))?;
        let identified =
            unique_keys.first().is_some_and(|key| key.parts.iter().all(|part| !columns[part.column].nullable));
        Ok(Table {
            id: self.id(schema, name),
            schema: schema.to_owned(),
            name: name.to_owned(),
            columns,
            unique_keys,
            has_relations: !foreign_keys.is_empty(),
            foreign_keys,
            cascades_to: Vec::new(),
            cascade_columns: Vec::new(),
            is_referenced: referenced.as_deref() != Some("0"),
            transactional: true,
            works_out: false,
            barrier: None,
            timed: Vec::new(),
            lookup_columns: None,
            order_by_table: (!identified).then_some(TableOrderCause::NoUniqueKey),
            leftovers: Leftovers::None,
        })
    }
}

impl Catalogue for Described {
    fn table(&mut self, map: &binlog::TableMap) -> Result<Arc<Table>, CatalogueError> {
        let id = self.id(&map.schema, &map.table);
        if let Some(table) = self.tables.get(&id) {
            return Ok(Arc::clone(table));
        }
        let table = self.load(&map.schema, &map.table).map_err(|error| CatalogueError {
            schema: map.schema.clone(),
            table: map.table.clone(),
            why: Box::new(Failure::new(FailureKind::Refused, error.to_string())),
        })?;
        Ok(Arc::clone(self.tables.entry(id).or_insert(Arc::new(table))))
    }

    fn invalidate(&mut self, _: &engine::definition_change::DefinitionChange) {}
}

/// The binary logs of a server, with the server's own tags and the engine's. `rules` of each file; `one_session`: a
/// replica's applier is a single one, whatever connections its log names.
fn compare(
    server: &Server,
    rules: &dyn Fn(&str) -> Rules,
    one_session: bool,
) -> Result<BTreeMap<Option<Fallback>, usize>> {
    let mut catalogue = Described { connection: connect(server)?, ids: HashMap::new(), tables: HashMap::new() };
    let (mut file, mut state): (Option<Arc<str>>, Option<(Keying, Tracker)>) = (None, None);
    let (mut seq, mut seen, mut differ) = (0, BTreeMap::new(), Vec::new());
    // A difference is the work of what came before.
    let mut before: VecDeque<String> = VecDeque::new();
    logged::transactions(server.binlogs()?, |mut transaction| {
        seq += 1;
        transaction.seq = seq;
        let name = &transaction.start.file;
        if file.as_ref() != Some(name) {
            // Where the tracking changes the server forgets its history, as at every rotation.
            let rules = rules(name);
            match &mut state {
                Some((_, tracker)) if tracker.rules().tracking == rules.tracking => tracker.rotate(),
                state => {
                    let mut tracker = Tracker::new(rules, seq);
                    if file.is_some() {
                        tracker.rotate();
                    }
                    *state = Some((Keying::new(1).for_tags(rules.generation), tracker));
                }
            }
            file = Some(Arc::clone(name));
        }
        let Some((keying, tracker)) = &mut state else { bail!("no file") };
        keying.key(&mut transaction, &mut catalogue)?;
        let mut subject = Subject::of(&transaction);
        if one_session {
            subject.session = 1;
            // It gives an XA transaction away once it is prepared.
            subject.prepares = false;
        }
        let tagged = tracker.next(seq - 1, &subject);
        *seen.entry(tagged.fallback).or_default() += 1;
        let theirs = (transaction.tags.last_committed, transaction.tags.sequence_number);
        let ours = (tagged.last_committed, tagged.sequence_number);
        before.push_back(format!(
            "{}: the server says {theirs:?}, the engine {ours:?}, {:?}, session {}, {} hashes, {} remembered, {}",
            transaction.place(),
            tagged.fallback,
            subject.session,
            subject.hashes.len(),
            tracker.remembered(),
            described(&transaction)
        ));
        if theirs != ours {
            differ.push(before.iter().cloned().collect::<Vec<_>>().join("\n  "));
        }
        if before.len() > 5 {
            before.pop_front();
        }
        Ok(())
    })?;
    ensure!(
        differ.is_empty(),
        "{} of {seq} differ:\n{}",
        differ.len(),
        differ.iter().take(1).cloned().collect::<Vec<_>>().join("\n\n")
    );
    Ok(seen)
}

fn described(transaction: &Transaction) -> String {
    let one = |item: &Item| match item {
        Item::Rows(rows) => format!("{:?} {}", rows.event.kind, rows.map.table),
        Item::Statement(statement) => String::from_utf8_lossy(&statement.query.sql).into_owned(),
    };
    transaction.items().iter().map(one).collect::<Vec<_>>().join(", ")
}

fn check(kind: Kind, generation: Generation, trackings: &[(&str, DependencyTracking)]) -> Result<()> {
    let seed = e2e::seed(DEFAULT_SEED, "tags");
    let history = format!("--binlog-transaction-dependency-history-size={HISTORY}");
    let (source, replica) = Server::start_two((kind, &[&history]), (kind, &[&history]))?;
    source.execute(TABLES)?;
    let mut rules_of: BTreeMap<String, DependencyTracking> = BTreeMap::new();
    let mut first = true;
    for (phase, &(name, tracking)) in (0..).zip(trackings) {
        if !name.is_empty() {
            source
                .execute(&format!("SET GLOBAL binlog_transaction_dependency_tracking = {name}; FLUSH BINARY LOGS"))?;
        }
        let from = last_file(&source)?;
        if std::mem::take(&mut first) && !name.is_empty() {
            // The tables were made before.
            rules_of.insert(String::new(), DependencyTracking::CommitOrder);
        }
        rules_of.insert(from, tracking);
        workload(&source, seed + u64::from(phase), phase * 1000, generation == Generation::Mysql84)?;
    }
    let rules = |file: &str| {
        let tracking = rules_of
            .range(..=file.to_owned())
            .next_back()
            .map_or(DependencyTracking::Writeset, |(_, &tracking)| tracking);
        Rules { tracking, generation, history_max: HISTORY }
    };
    let at_source = compare(&source, &rules, false).with_context(|| format!("{kind} as source"))?;
    eprintln!("{kind}: {at_source:?}");
    // An intermediate server, fed with the same stream.
    let tracking = trackings.last().map_or(DependencyTracking::Writeset, |&(_, tracking)| tracking);
    if let Some((name, _)) = trackings.last().filter(|(name, _)| !name.is_empty()) {
        replica.execute(&format!(
            "SET GLOBAL slave_parallel_workers = 0; SET GLOBAL binlog_transaction_dependency_tracking = {name}"
        ))?;
    } else {
        replica.execute("SET GLOBAL replica_parallel_workers = 1")?;
    }
    replica.rotate()?;
    let from = last_file(&replica)?;
    native::native_replica(&source, &replica)?;
    native::wait_caught_up(&source, &replica)?;
    let rules = |file: &str| Rules {
        tracking: if *file < *from && generation == Generation::Mysql80 {
            DependencyTracking::CommitOrder
        } else {
            tracking
        },
        generation,
        history_max: HISTORY,
    };
    let seen = compare(&replica, &rules, true).with_context(|| format!("{kind} as intermediate server"))?;
    eprintln!("{kind} as intermediate server: {seen:?}");
    let mut wanted = vec![Fallback::NoWriteSet, Fallback::MissingKeys, Fallback::Referenced, Fallback::HistoryFull];
    if generation == Generation::Mysql84 {
        wanted.extend([Fallback::LargeSet, Fallback::CreateSelect]);
    }
    wanted.retain(|fallback| !seen.contains_key(&Some(*fallback)) && !at_source.contains_key(&Some(*fallback)));
    ensure!(wanted.is_empty() || seed != DEFAULT_SEED, "the workload has no {wanted:?}");
    Ok(())
}

fn last_file(server: &Server) -> Result<String> {
    let index = std::fs::read_to_string(server.binlog_index())?;
    Ok(index.lines().last().context("no log")?.trim_start_matches("./").to_owned())
}

#[test]
fn mysql_9_7() {
    if let Err(error) = check(MYSQL_9_7, Generation::Mysql84, &[("", DependencyTracking::Writeset)]) {
        panic!("{error:#}");
    }
}

/// Fetched with `scripts/servers fetch mysql-8.0.15`; not one of the servers that `make test` brings.
#[test]
#[ignore = "needs mysql-8.0.15 in the cache"]
fn mysql_8_0_15() {
    let trackings = [
        ("COMMIT_ORDER", DependencyTracking::CommitOrder),
        ("WRITESET_SESSION", DependencyTracking::WritesetSession),
        ("WRITESET", DependencyTracking::Writeset),
    ];
    let done = "mysql-8.0.15".parse().and_then(|kind| check(kind, Generation::Mysql80, &trackings));
    if let Err(error) = done {
        panic!("{error:#}");
    }
}
