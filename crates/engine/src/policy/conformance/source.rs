//! A source: random transactions that were valid one after the other, tagged as servers tag them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use binlog::{Flavour, MariaDbGtid, RowsKind};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::target::Database;
use crate::Seq;
use crate::intake::Keying;
use crate::schema::ForeignKey;
use crate::tags::Generation;
use crate::testing::{FakeCatalogue, Log, Row, RowChange, TestTable, Value, delete, insert, int, update};
use crate::transaction::{BarrierCause, Transaction};
use binlog::LogPosition;
use binlog::gtids::Gtid;

/// Two schemas; a parent with a unique value, its child, a table without a key.
pub fn tables() -> Vec<TestTable> {
    let mut parent = TestTable::new(1, "parent", "id:int u:int? v:int", &[&[0], &[1]]);
    parent.def.is_referenced = true;
    parent.def.has_relations = true;
    let mut child = TestTable::new(2, "child", "id:int p:int? v:int", &[&[0]]);
    child.def.has_relations = true;
    child.def.foreign_keys = vec![ForeignKey {
        name: "p".to_owned(),
        columns: vec![1],
        parent: parent.def.id,
        parent_key: Some(0),
        classes: vec![parent.def.columns[0].key_class],
    }];
    let bare = TestTable::new(3, "bare", "a:int b:int?", &[]);
    let mut account = TestTable::new(4, "account", "id:int v:int", &[&[0]]);
    account.def.schema = "bank".to_owned();
    vec![parent, child, bare, account]
}

/// What an XA transaction's part in the log does with it, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xa {
    /// Its rows are changed and locked, whatever becomes of the session.
    Prepare(usize),
    Commit(usize),
    Rollback(usize),
}

pub struct Source {
    pub tables: Vec<TestTable>,
    pub transactions: Vec<Arc<Transaction>>,
    pub xa: BTreeMap<Seq, Xa>,
    /// What a replica must end with.
    pub end: Database,
    /// What readers saw before the first and after each.
    pub states: Vec<BTreeMap<u32, Vec<Row>>>,
}

fn pick<'a>(random: &mut StdRng, rows: &'a [Row]) -> Option<&'a Row> {
    rows.choose(random)
}

fn value(random: &mut StdRng) -> Value {
    int(random.random_range(0..1000))
}

fn key(random: &mut StdRng) -> Value {
    // Few keys, and fewer that are hot.
    int(if random.random_bool(0.4) { random.random_range(0..3) } else { random.random_range(0..30) })
}

fn nullable(random: &mut StdRng, value: Value) -> Value {
    if random.random_bool(0.3) { Value::Null } else { value }
}

/// A change that may be refused by the state at hand.
fn change(random: &mut StdRng, table: usize, state: &Database, tables: &[TestTable]) -> Option<RowChange> {
    let rows = state.rows(&tables[table]);
    let fresh = |random: &mut StdRng| match table {
        0 => {
            let unique = key(random);
            vec![key(random), nullable(random, unique), value(random)]
        }
        1 => {
            let parent = key(random);
            vec![key(random), nullable(random, parent), value(random)]
        }
        2 => vec![int(random.random_range(0..4)), int(random.random_range(0..2))],
        _ => vec![key(random), value(random)],
    };
    match random.random_range(0..10) {
        0..4 => Some(insert(fresh(random))),
        4..8 => {
            let before = pick(random, &rows)?.clone();
            let mut after = fresh(random);
            // Most updates leave the key alone.
            if random.random_bool(0.8) {
                after[0] = before[0].clone();
            }
            (after != before).then(|| update(before, after))
        }
        _ => Some(delete(pick(random, &rows)?.clone())),
    }
}

/// Values that order two transactions: of unique keys, of rows without one, of references.
type Marks = BTreeSet<(u32, usize, Vec<Value>)>;

fn marks(table: &TestTable, change: &RowChange, marks: &mut Marks) {
    for row in [&change.before, &change.after].into_iter().filter(|row| !row.is_empty()) {
        if table.def.unique_keys.is_empty() {
            marks.insert((table.def.id.0, 9, Vec::new()));
        }
        for (index, key) in table.def.unique_keys.iter().enumerate() {
            marks.insert((table.def.id.0, index, key.parts.iter().map(|part| row[part.column].clone()).collect()));
        }
        for key in &table.def.foreign_keys {
            marks.insert((key.parent.0, 0, key.columns.iter().map(|&column| row[column].clone()).collect()));
        }
    }
}

impl Source {
    pub fn make(seed: u64, length: usize, flavour: Flavour) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let tables = tables();
        let mut state = Database::default();
        let mut log = Log::mysql();
        let mut states = vec![state.visible()];
        let mut touched: Vec<(Marks, Option<BarrierCause>)> = Vec::new();
        let (mut xa, mut prepared) = (BTreeMap::new(), Vec::new());
        let mut xa_number = 0;
        while touched.len() < length {
            if random.random_bool(0.04) {
                log.gtid().query("ALTER TABLE parent COMMENT 'x'");
                touched.push((BTreeSet::new(), Some(BarrierCause::Ddl)));
                states.push(state.visible());
                continue;
            }
            if !prepared.is_empty() && random.random_bool(0.3) {
                let number = prepared.swap_remove(random.random_range(0..prepared.len()));
                let commits = random.random_bool(0.7);
                log.gtid().query(if commits { "XA COMMIT 'x'" } else { "XA ROLLBACK 'x'" });
                xa.insert(touched.len() as Seq + 1, if commits { Xa::Commit(number) } else { Xa::Rollback(number) });
                state.end_xa(number, commits);
                touched.push((BTreeSet::new(), Some(BarrierCause::Xa)));
                states.push(state.visible());
                continue;
            }
            let barrier = match random.random_range(0..100) {
                0..2 => Some(BarrierCause::Huge),
                2..5 => Some(BarrierCause::Xa),
                _ => None,
            };
            let wanted = match barrier {
                Some(BarrierCause::Huge) => random.random_range(100..200),
                _ if random.random_bool(0.05) => random.random_range(10..30),
                _ => random.random_range(1..4),
            };
            let (mut changes, mut seen) = (Vec::new(), BTreeSet::new());
            for _ in 0..wanted {
                let table = *[0, 0, 1, 1, 1, 2, 3, 3].choose(&mut random).unwrap_or(&0);
                if let Some(change) = change(&mut random, table, &state, &tables)
                    && state.apply(&tables, 0, &tables[table], &change).is_ok()
                {
                    marks(&tables[table], &change, &mut seen);
                    changes.push((&tables[table], change));
                }
            }
            if changes.is_empty() {
                state.commit(0);
                continue;
            }
            if barrier == Some(BarrierCause::Xa) {
                xa_number += 1;
                state.prepare(0, xa_number);
                xa.insert(touched.len() as Seq + 1, Xa::Prepare(xa_number));
                prepared.push(xa_number);
            } else {
                state.commit(0);
            }
            log.transaction(&changes);
            touched.push((seen, barrier));
            states.push(state.visible());
        }
        let mut transactions = log.assemble().unwrap();
        tag(&mut random, flavour, &mut transactions, &touched);
        let tables_ref: Vec<&TestTable> = tables.iter().collect();
        let mut catalogue = FakeCatalogue::new(&tables_ref);
        let mut keying = Keying::new(1).for_tags(Generation::Mysql84);
        for transaction in &mut transactions {
            keying.key(transaction, &mut catalogue).unwrap();
        }
        let transactions = transactions.into_iter().map(Arc::new).collect();
        Self { tables, transactions, xa, end: state, states }
    }
}

/// Numbers, sessions and what a server says of who could run beside whom: true, but not all that is true.
fn tag(
    random: &mut StdRng,
    flavour: Flavour,
    transactions: &mut [Transaction],
    touched: &[(Marks, Option<BarrierCause>)],
) {
    let alone = |index: usize| touched[index].1.is_some();
    let meet = |a: usize, b: usize| alone(a) || alone(b) || !touched[a].0.is_disjoint(&touched[b].0);
    let (mut file, mut offset) = (1, 0);
    let (mut group, mut group_start) = (1_u64, 0);
    let mut domain = 0;
    for (index, transaction) in transactions.iter_mut().enumerate() {
        if index > 0 && random.random_bool(0.05) {
            file += 1;
            offset = index;
        }
        transaction.seq = index as Seq + 1;
        transaction.start = LogPosition::new(format!("binlog.{file:06}"), index as u64 * 10);
        transaction.end = LogPosition::new(format!("binlog.{file:06}"), index as u64 * 10 + 10);
        transaction.tags.session = random.random_range(1..6);
        if let Some(cause) = touched[index].1 {
            transaction.barrier = Some(cause);
        }
        match flavour {
            Flavour::MySql => {
                let parent = (0..index).rev().find(|&other| meet(index, other)).map_or(0, |other| other + 1);
                let parent = random.random_range(parent..=index);
                transaction.tags.last_committed = parent.saturating_sub(offset) as i64;
                transaction.tags.sequence_number = (index + 1 - offset) as i64;
            }
            Flavour::MariaDb => {
                let free = (group_start..index).all(|other| !meet(index, other));
                if !free || random.random_bool(0.2) {
                    (group, group_start) = (group + 1, index);
                    domain = random.random_range(0..3);
                }
                transaction.tags.commit_id = Some(group);
                transaction.tags.domain = domain;
                transaction.tags.flags = MariaDbGtid::FL_TRANSACTIONAL | MariaDbGtid::FL_ALLOW_PARALLEL;
                if random.random_bool(0.1) {
                    transaction.tags.flags |= MariaDbGtid::FL_WAITED;
                }
                transaction.gtid = Some(Gtid::MariaDb { domain, server: 1, seq: transaction.seq });
            }
        }
    }
}

/// So that the generator does not quietly make less than it should.
#[test]
fn the_workload_has_everything_in_it() {
    let source = Source::make(1, 400, Flavour::MySql);
    let kinds = |kind: RowsKind| {
        let items = source.transactions.iter().flat_map(|transaction| transaction.items());
        items.filter(|item| matches!(item, crate::transaction::Item::Rows(rows) if rows.event.kind == kind)).count()
    };
    assert!([RowsKind::Write, RowsKind::Update, RowsKind::Delete].into_iter().all(|kind| kinds(kind) > 30));
    for cause in [BarrierCause::Ddl, BarrierCause::Xa, BarrierCause::Huge] {
        let alone = source.transactions.iter().filter(|transaction| transaction.barrier == Some(cause)).count();
        assert!(alone > 2, "{cause:?}: {alone}");
    }
    let ends = |wanted: fn(&Xa) -> bool| source.xa.values().filter(|step| wanted(step)).count();
    assert!(ends(|step| matches!(step, Xa::Commit(_))) > 2 && ends(|step| matches!(step, Xa::Rollback(_))) > 0);
    assert!(source.tables.iter().all(|table| !source.end.rows(table).is_empty()));
    let parallel = source.transactions.iter().filter(|t| t.tags.last_committed + 1 < t.tags.sequence_number).count();
    assert!(parallel > 50, "{parallel}");
}
