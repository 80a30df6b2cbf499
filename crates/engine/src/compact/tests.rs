mod leftovers;

use std::collections::HashSet;
use std::sync::Arc;

use binlog::{Bitmap, RowsEvent};
use proptest::prelude::*;

use super::*;
use crate::group::{DeferredPart, GroupId};
use crate::policy::CommitOrder;
use crate::policy::{Policy, WriteSetPolicy};
use crate::progress::Mark;
use crate::schedule::{Config, Grouping, Limits, Output, Run, Scheduler};
use crate::schema::TimedColumn;
use crate::testing::{
    Log, Model, Row as Values, RowChange, RowRefusal, TestTable, Value, change_of, delete, insert, int, text, update,
};
use crate::transaction::Body;

fn tables() -> Vec<TestTable> {
    vec![
        TestTable::new(1, "plain", "id:int v:int", &[&[0]]),
        TestTable::new(2, "second", "id:int u:int? v:int", &[&[0], &[1]]),
        TestTable::new(3, "third", "id:int u:int? w:ci? v:int", &[&[0], &[1], &[2]]),
        TestTable::new(4, "pair", "a:int b:int u:int?", &[&[0, 1], &[2, 0]]),
        TestTable::new(5, "named", "n:ci v:int", &[&[0]]),
        TestTable::new(6, "keyless", "a:int? b:int?", &[]),
        TestTable::new(7, "twice", "k:int u:int", &[&[0], &[1]]),
    ]
}

fn group(transactions: Vec<Transaction>) -> Group {
    let transactions: Vec<_> = transactions.into_iter().map(Arc::new).collect();
    let deferred = transactions.iter().map(|_| DeferredPart::Nothing).collect();
    let mark = Mark { seq: transactions.last().map_or(0, |t| t.seq), ..Mark::default() };
    Group { id: GroupId(1), transactions, deferred, before: Mark::default(), mark, has_branches: false }
}

fn apply(model: &mut Model, group: &Group, merge: bool) -> Result<(), RowRefusal> {
    let plan = plan(group, merge);
    assert!(plan.deferred.is_empty(), "nothing of the group has to wait");
    plan.independent.iter().try_for_each(|batch| model.apply_batch(batch))
}

/// What an op of a generated transaction means depends on the rows that are there: so every op is valid, and
/// shrinking keeps it so.
#[derive(Clone, Debug)]
struct Op {
    kind: u8,
    table: u8,
    row: u8,
    column: u8,
    value: u8,
}

fn ops() -> impl Strategy<Value = Vec<Vec<Op>>> {
    let op = (0u8..7, any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>())
        .prop_map(|(kind, table, row, column, value)| Op { kind, table, row, column, value });
    prop::collection::vec(prop::collection::vec(op, 1..5), 1..14)
}

/// Few values, so that keys meet.
fn value(table: &TestTable, column: usize, chosen: u8) -> Value {
    if table.columns[column].nullable && chosen.is_multiple_of(7) {
        return Value::Null;
    }
    match table.columns[column].kind {
        binlog::ColumnKind::LONG => int(i32::from(chosen % 6)),
        _ => text(["a", "A", "b", "B", "c", "é"][usize::from(chosen % 6)]),
    }
}

fn changes_of(op: &Op, table: &TestTable, model: &Model) -> Vec<RowChange> {
    let width = table.columns.len();
    let fresh = |seed: u8| -> Values {
        (0..width).map(|column| value(table, column, seed.wrapping_add(op.column.wrapping_mul(column as u8)))).collect()
    };
    let rows = model.rows.get(&table.def.id).cloned().unwrap_or_default();
    let Some(row) = rows.get(usize::from(op.row) % rows.len().max(1)) else { return vec![insert(fresh(op.value))] };
    let changed = |row: &Values, column: usize, to: Value| {
        let mut after = row.clone();
        after[column] = to;
        after
    };
    let column = usize::from(op.column) % width;
    match op.kind {
        0 => vec![insert(fresh(op.value))],
        1 => vec![delete(row.clone())],
        2 | 3 => vec![update(row.clone(), changed(row, column, value(table, column, op.value)))],
        4 => vec![delete(row.clone()), insert(changed(row, column, value(table, column, op.value)))],
        // Two rows swap a value through one that nobody has.
        5 => {
            let other = &rows[(usize::from(op.row) + 1) % rows.len()];
            if other == row || table.columns[column].kind != binlog::ColumnKind::LONG {
                return vec![insert(fresh(op.value))];
            }
            let parked = changed(row, column, int(100));
            vec![
                update(row.clone(), parked.clone()),
                update(other.clone(), changed(other, column, row[column].clone())),
                update(parked, changed(row, column, other[column].clone())),
            ]
        }
        _ => {
            let after = fresh(op.value);
            vec![insert(after.clone()), delete(after)]
        }
    }
}

/// Runs the ops on the model as a source would (what is not valid has not happened), and logs them.
fn run(ops: &[Vec<Op>], tables: &[TestTable], model: &mut Model) -> Vec<Vec<(usize, RowChange)>> {
    let mut done = Vec::new();
    for transaction in ops {
        let mut changes = Vec::new();
        for op in transaction {
            let index = usize::from(op.table) % tables.len();
            let mut after = model.clone();
            let wanted = changes_of(op, &tables[index], model);
            if wanted.iter().all(|change| after.apply(&tables[index].def, change).is_ok()) {
                *model = after;
                changes.extend(wanted.into_iter().map(|change| (index, change)));
            }
        }
        done.push(changes);
    }
    done
}

fn keyed(done: &[Vec<(usize, RowChange)>], tables: &[TestTable]) -> Vec<Transaction> {
    let mut log = Log::mysql();
    for changes in done {
        let changes: Vec<_> = changes.iter().map(|(table, change)| (&tables[*table], change.clone())).collect();
        log.transaction(&changes);
    }
    log.keyed(&tables.iter().collect::<Vec<_>>())
}

fn serial(model: &mut Model, done: &[Vec<(usize, RowChange)>], tables: &[TestTable]) -> Result<(), RowRefusal> {
    done.iter().flatten().try_for_each(|(table, change)| model.apply(&tables[*table].def, change))
}

fn cut<T>(mut items: Vec<T>, sizes: &[usize]) -> Vec<Vec<T>> {
    let mut parts = Vec::new();
    for &size in sizes.iter().cycle() {
        if items.is_empty() {
            return parts;
        }
        let rest = items.split_off(size.min(items.len()));
        parts.push(std::mem::replace(&mut items, rest));
    }
    parts
}

fn choose(tables: Vec<TestTable>, which: &[usize]) -> Vec<TestTable> {
    let chosen: Vec<TestTable> =
        tables.iter().enumerate().filter(|(index, _)| which.contains(index)).map(|(_, table)| table.clone()).collect();
    if chosen.is_empty() { tables } else { chosen }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn a_group_does_what_its_transactions_do(
        which in prop::collection::vec(0usize..7, 1..4),
        before in ops(),
        after in ops(),
        sizes in prop::collection::vec(1usize..12, 1..4),
    ) {
        let tables = choose(tables(), &which);
        let mut start = Model::default();
        run(&before, &tables, &mut start);
        let mut source = start.clone();
        let done = run(&after, &tables, &mut source);
        for merge in [true, false] {
            let mut target = start.clone();
            for transactions in cut(keyed(&done, &tables), &sizes) {
                let group = group(transactions);
                prop_assert_eq!(apply(&mut target, &group, merge), Ok(()), "merge {}", merge);
            }
            prop_assert_eq!(target.sorted(), source.sorted());
        }
    }

    /// Whatever the target has too much or too little: a group fails if, and only if, its transactions would.
    #[test]
    fn a_group_hides_no_divergence(
        which in prop::collection::vec(0usize..7, 1..3),
        before in ops(),
        after in ops(),
        wrong_table in any::<u8>(),
        wrong_row in any::<u8>(),
        stray in prop::option::of(any::<u8>()),
    ) {
        let tables = choose(tables(), &which);
        let mut start = Model::default();
        run(&before, &tables, &mut start);
        let done = run(&after, &tables, &mut start.clone());
        let wrong = &tables[usize::from(wrong_table) % tables.len()];
        match stray {
            Some(seed) => {
                let row = (0..wrong.columns.len()).map(|column| value(wrong, column, seed.wrapping_mul(column as u8 + 1))).collect();
                // Where it does not fit in, the target is right.
                let _ = start.apply(&wrong.def, &insert(row));
            }
            None => {
                let rows = start.rows.entry(wrong.def.id).or_default();
                if !rows.is_empty() {
                    rows.remove(usize::from(wrong_row) % rows.len());
                }
            }
        }
        let mut one_by_one = start.clone();
        let expected = serial(&mut one_by_one, &done, &tables);
        let mut target = start.clone();
        let got = apply(&mut target, &group(keyed(&done, &tables)), true);
        prop_assert_eq!(got.is_err(), expected.is_err(), "one by one {:?}, as a group {:?}", expected, got);
        if expected.is_ok() {
            prop_assert_eq!(target.sorted(), one_by_one.sorted());
        }
    }
}

/// One group on a worker.
struct Flight {
    group: Arc<Group>,
    run: Run,
    granted: bool,
    released: bool,
    /// What is left of its plan, the rows that wait apart.
    free: bool,
    held: bool,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Groups overlap: their free rows go to the target in any order and before those of earlier groups, the others when
    /// all before has committed. Every row finds what it needs, and no free row touches a key of a group before it.
    #[test]
    fn groups_overlap(
        which in prop::collection::vec(0usize..7, 1..3),
        before in ops(),
        after in ops(),
        size in 1usize..5,
        choices in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let tables = choose(tables(), &which);
        let mut target = Model::default();
        run(&before, &tables, &mut target);
        let mut source = target.clone();
        let done = run(&after, &tables, &mut source);
        let limits = Limits::new(Grouping::UpTo(size));
        let config = Config::new(3, CommitOrder::Preserve, limits, 0);
        let mut scheduler = Scheduler::new(config, Mark::default(), &[]);
        let mut policy = WriteSetPolicy::default();
        for transaction in keyed(&done, &tables) {
            let placement = policy.place(&transaction);
            scheduler.enqueue(Arc::new(transaction), placement);
        }
        scheduler.end();
        let mut flights: Vec<Option<Flight>> = (0..3).map(|_| None).collect();
        let mut choices = choices.into_iter().chain((0..=255).cycle());
        loop {
            let mut finished = false;
            while let Some(output) = scheduler.poll() {
                match output {
                    Output::Dispatch { worker, group, run } => {
                        let others = flights.iter().flatten().flat_map(|flight| keys(&flight.group.transactions));
                        let others: HashSet<u64> = others.collect();
                        for batch in &plan(&group, true).independent {
                            let free = batch.rows.iter().map(|images| change_of(batch, images));
                            for key in free.flat_map(|change| keys_of_change(batch.table.unwrap(), &change, &group)) {
                                prop_assert!(run.granted || !others.contains(&key), "a free row meets a group before it");
                            }
                        }
                        flights[worker] = Some(Flight { group, run, granted: run.granted, released: false, free: true, held: true });
                    }
                    Output::Grant { worker, .. } => flights[worker].as_mut().unwrap().granted = true,
                    Output::Release { worker, .. } => flights[worker].as_mut().unwrap().released = true,
                    Output::LowWater(_) => {}
                    Output::Finished => finished = true,
                    other => panic!("{other:?}"),
                }
            }
            if finished {
                break;
            }
            let worker = usize::from(choices.next().unwrap()) % 3;
            let Some(flight) = &mut flights[worker] else { continue };
            let plan = plan(&flight.group, true);
            if std::mem::replace(&mut flight.free, false) {
                prop_assert!(!flight.run.granted || plan.deferred.is_empty());
                prop_assert_eq!(plan.independent.iter().try_for_each(|batch| target.apply_batch(batch)), Ok(()));
            } else if flight.held && (flight.granted || flight.released) {
                flight.held = false;
                prop_assert_eq!(plan.deferred.iter().try_for_each(|batch| target.apply_batch(batch)), Ok(()));
            } else if flight.granted {
                let id = flight.group.id;
                flights[worker] = None;
                scheduler.committed(id);
            }
        }
        prop_assert_eq!(target.sorted(), source.sorted());
    }
}

fn keys(transactions: &[Arc<Transaction>]) -> Vec<u64> {
    let sets = transactions.iter().map(|transaction| &transaction.write_set);
    let rows = sets.flat_map(|set| set.rows.iter().map(move |row| set.unique_hashes(row)));
    rows.flatten().copied().filter(|&hash| hash != 0).collect()
}

/// Hashes of those rows of the group that have one of the change's images.
fn keys_of_change(table: &Table, change: &RowChange, group: &Group) -> Vec<u64> {
    let mut found = Vec::new();
    for transaction in &group.transactions {
        for row in &transaction.write_set.rows {
            let Item::Rows(item) = &transaction.items()[row.item as usize] else { continue };
            if item.table.as_ref().unwrap().id != table.id {
                continue;
            }
            for (offset, range, present) in
                [(0, &row.before, &item.event.before_columns), (1, &row.after, &item.event.after_columns)]
            {
                let image = &item.event.rows[range.start as usize..range.end as usize];
                if image.is_empty() {
                    continue;
                }
                let values = crate::testing::decode(&item.map, present, image);
                if values == change.before || values == change.after {
                    found.extend(transaction.write_set.unique_hashes(row).chunks_exact(2).map(|pair| pair[offset]));
                }
            }
        }
    }
    found.retain(|&hash| hash != 0);
    found
}

/// `table: rows` of each batch, such as `-(1,5) =(1,5)>(1,6) +(2,7)`.
fn shown(batches: &[Batch<'_>]) -> String {
    let show = |row: &Values| {
        let values: Vec<String> = row
            .iter()
            .map(|value| match value {
                Value::Null => "-".to_owned(),
                Value::Int(value) => value.to_string(),
                Value::Text(value) => value.clone(),
            })
            .collect();
        values.join(",")
    };
    let mut batches_shown = Vec::new();
    for batch in batches {
        let rows: Vec<String> = batch
            .rows
            .iter()
            .map(|images| {
                let change = change_of(batch, images);
                match batch.kind {
                    RowsKind::Write => format!("+{}", show(&change.after)),
                    RowsKind::Delete => format!("-{}", show(&change.before)),
                    RowsKind::Update => format!("{}>{}", show(&change.before), show(&change.after)),
                }
            })
            .collect();
        batches_shown.push(rows.join(" "));
    }
    batches_shown.join(" | ")
}

fn check(table: &TestTable, transactions: &[Vec<RowChange>], expected: &str) {
    let done: Vec<Vec<(usize, RowChange)>> =
        transactions.iter().map(|changes| changes.iter().map(|change| (0, change.clone())).collect()).collect();
    let group = group(keyed(&done, std::slice::from_ref(table)));
    assert_eq!(shown(&plan(&group, true).independent), expected);
}

fn row(values: &[i32]) -> Values {
    values.iter().map(|&value| int(value)).collect()
}

#[test]
fn net_effects() {
    let plain = TestTable::new(1, "plain", "id:int v:int", &[&[0]]);
    let r = |id, v| row(&[id, v]);
    check(&plain, &[vec![update(r(1, 5), r(1, 6))], vec![update(r(1, 6), r(1, 7))]], "1,5>1,7");
    check(&plain, &[vec![insert(r(1, 5))], vec![update(r(1, 5), r(1, 6))]], "+1,6");
    check(&plain, &[vec![delete(r(1, 5))], vec![insert(r(1, 6))]], "1,5>1,6");
    check(&plain, &[vec![update(r(1, 5), r(1, 6))], vec![delete(r(1, 6))]], "-1,5");
    // A row that comes and goes is still looked at.
    check(&plain, &[vec![insert(r(1, 5))], vec![delete(r(1, 5))]], "+1,5 | -1,5");
    // The key moves: every value is free before it is taken.
    check(&plain, &[vec![update(r(1, 5), r(2, 5))], vec![insert(r(1, 9))]], "1,5>1,9 | +2,5");
    check(
        &plain,
        &[vec![insert(r(4, 1))], vec![delete(r(3, 1))], vec![update(r(2, 1), r(2, 2))]],
        "-3,1 | 2,1>2,2 | +4,1",
    );
}

#[test]
fn secondary_keys() {
    let second = TestTable::new(2, "second", "id:int u:int? v:int", &[&[0], &[1]]);
    let r = |id, u, v| row(&[id, u, v]);
    // The value moves from one row to another.
    check(&second, &[vec![delete(r(1, 7, 0))], vec![insert(r(2, 7, 0))]], "-1,7,0 | +2,7,0");
    check(
        &second,
        &[vec![update(r(1, 7, 0), r(1, 8, 0))], vec![update(r(2, 9, 0), r(2, 7, 0))]],
        "-1,7,0 -2,9,0 | +1,8,0 +2,7,0",
    );
    // A value that was there only for a while would have met a stray row with it: nothing is merged.
    check(
        &second,
        &[vec![update(r(1, 7, 0), r(1, 8, 0))], vec![update(r(1, 8, 0), r(1, 9, 0))]],
        "1,7,0>1,8,0 1,8,0>1,9,0",
    );
    check(&second, &[vec![insert(r(1, 7, 0))], vec![update(r(1, 7, 0), r(1, 8, 0))]], "+1,7,0 | 1,7,0>1,8,0");
    // Back to where it was.
    check(
        &second,
        &[vec![update(r(1, 7, 0), r(1, 8, 0))], vec![update(r(1, 8, 0), r(1, 7, 5))]],
        "1,7,0>1,8,0 1,8,0>1,7,5",
    );
}

#[test]
fn strings_that_only_the_collation_calls_equal() {
    let named = TestTable::new(5, "named", "n:ci v:int", &[&[0]]);
    let r = |n: &str, v| vec![text(n), int(v)];
    check(&named, &[vec![update(r("a", 1), r("A", 1))], vec![update(r("A", 1), r("A", 2))]], "a,1>A,2");
    check(&named, &[vec![delete(r("a", 1))], vec![insert(r("A", 1))]], "-a,1 | +A,1");
}

#[test]
fn rows_without_a_key_share_events_in_their_order() {
    let keyless = TestTable::new(6, "keyless", "a:int? b:int?", &[]);
    let r = |a, b| row(&[a, b]);
    check(
        &keyless,
        &[vec![update(r(1, 1), r(1, 2))], vec![update(r(1, 2), r(1, 3))], vec![insert(r(1, 1))]],
        "1,1>1,2 | 1,2>1,3 | +1,1",
    );
    // Those that have nothing to do with each other are found in one scan.
    check(&keyless, &[vec![update(r(1, 1), r(1, 2))], vec![update(r(2, 1), r(1, 1))]], "1,1>1,2 2,1>1,1");
    check(&keyless, &[vec![insert(r(1, 1))], vec![insert(r(1, 1))]], "+1,1 +1,1");
}

/// The target looks for the rows of an event in its own order: a value must be free before that.
#[test]
fn unique_values_with_nulls_are_passed_on_from_event_to_event() {
    let unique = TestTable::new(6, "unique", "u:int? b:int", &[&[0]]);
    let r = |u, b| row(&[u, b]);
    check(&unique, &[vec![update(r(5, 2), r(6, 2)), update(r(4, 1), r(5, 1))]], "5,2>6,2 | 4,1>5,1");
    check(&unique, &[vec![update(r(5, 2), r(5, 3)), update(r(4, 1), r(7, 1))]], "5,2>5,3 4,1>7,1");
}

/// `unique_checks=0` of one session must not reach the rows of another.
#[test]
fn flags_are_not_mixed() {
    let plain = TestTable::new(1, "plain", "id:int v:int", &[&[0]]);
    let full = Bitmap::full(2);
    let mut log = Log::mysql();
    for (id, flags) in [(1, RowsEvent::STMT_END), (2, RowsEvent::STMT_END | RowsEvent::RELAXED_UNIQUE_CHECKS), (3, 0)] {
        log.begin().map(&plain).rows_event(&plain, &full, &full, flags, &[insert(row(&[id, 0]))]).xid();
    }
    let group = group(log.keyed(&[&plain]));
    let plan = plan(&group, true);
    let flags: Vec<(u16, usize)> = plan.independent.iter().map(|batch| (batch.flags, batch.rows.len())).collect();
    assert_eq!(flags, [(0, 1), (RowsEvent::RELAXED_UNIQUE_CHECKS, 1), (0, 1)]);
}

/// Minimal images can not be merged, and what a table is in one transaction counts for the group.
#[test]
fn one_minimal_image_keeps_the_order() {
    let plain = TestTable::new(1, "plain", "id:int v:int", &[&[0]]);
    let full = Bitmap::full(2);
    let key = Bitmap::from_fn(2, |column| column == 0);
    let rest = Bitmap::from_fn(2, |column| column == 1);
    let mut log = Log::mysql();
    log.transaction(&[(&plain, insert(row(&[1, 1])))]);
    log.begin().map(&plain).rows_event(&plain, &key, &rest, 1, &[update(row(&[1, 0]), row(&[0, 2]))]).xid();
    log.begin().map(&plain).rows_event(&plain, &full, &full, 1, &[delete(row(&[1, 2]))]).xid();
    let group = group(log.keyed(&[&plain]));
    let plan = plan(&group, true);
    let kinds: Vec<RowsKind> = plan.independent.iter().map(|batch| batch.kind).collect();
    assert_eq!(kinds, [RowsKind::Write, RowsKind::Update, RowsKind::Delete]);
}

/// Full images of rows before are looked up by the key, merged or not; what is written, and what is not full, goes as it is.
#[test]
fn rows_are_looked_up_by_their_key() {
    let mut plain = TestTable::new(1, "plain", "id:int v:int", &[&[0]]);
    let key = Bitmap::from_fn(2, |column| column == 0);
    plain.def.lookup_columns = Some(key.clone());
    let mut log = Log::mysql();
    log.transaction(&[(&plain, insert(row(&[1, 1]))), (&plain, update(row(&[2, 1]), row(&[2, 2])))]);
    log.transaction(&[(&plain, delete(row(&[3, 1]))), (&plain, delete(row(&[1, 1])))]);
    let full = group(log.keyed(&[&plain]));
    let by_key = |merge| -> Vec<(RowsKind, bool)> {
        plan(&full, merge).independent.iter().map(|batch| (batch.kind, batch.lookup_columns == Some(&key))).collect()
    };
    let (write, update_by_key, delete_by_key) =
        ((RowsKind::Write, false), (RowsKind::Update, true), (RowsKind::Delete, true));
    assert_eq!(by_key(true), [delete_by_key, update_by_key, write, delete_by_key]);
    assert_eq!(by_key(false), [write, update_by_key, delete_by_key]);

    let mut wide = TestTable::new(1, "plain", "id:int v:int w:int", &[&[0]]);
    wide.def.lookup_columns = Some(Bitmap::from_fn(3, |column| column == 0));
    let some = Bitmap::from_fn(3, |column| column < 2);
    let mut log = Log::mysql();
    let change = update(row(&[1, 0, 0]), row(&[1, 2, 0]));
    log.begin().map(&wide).rows_event(&wide, &some, &some, 1, &[change]).xid();
    let partial = group(log.keyed(&[&wide]));
    let plan = plan(&partial, true);
    assert_eq!(plan.independent.len(), 1);
    assert!(plan.independent.iter().all(|batch| batch.lookup_columns.is_none()), "some columns are missing");
}

/// Also where an event is passed on without its definition at hand.
#[test]
fn an_event_is_cut_to_its_key() {
    let plain = TestTable::new(1, "plain", "id:int v:int", &[&[0]]);
    let key = Bitmap::from_fn(2, |column| column == 0);
    let by_key = |table: &TestTable, change: RowChange| {
        let mut log = Log::mysql();
        log.transaction(&[(table, change)]);
        let group = group(log.keyed(&[table]));
        let Some(Item::Rows(item)) = group.transactions.first().and_then(|first| first.items().first()) else {
            panic!("no rows")
        };
        let batch = event_by_key(item, &key).unwrap();
        batch
            .map(|batch| (batch.rows.len(), batch.lookup_columns == Some(&key), batch.bytes() == item.event.rows.len()))
    };
    assert_eq!(by_key(&plain, update(row(&[2, 1]), row(&[2, 2]))), Some((1, true, true)));
    assert_eq!(by_key(&plain, delete(row(&[2, 1]))), Some((1, true, true)));
    assert_eq!(by_key(&plain, insert(row(&[2, 1]))), None);
    let wide = TestTable::new(1, "plain", "id:int v:int w:int", &[&[0]]);
    assert_eq!(by_key(&wide, delete(row(&[2, 1, 1]))), None, "another definition");
}

#[test]
fn tables_with_relations_keep_their_order_among_each_other() {
    let mut parent = TestTable::new(1, "parent", "id:int v:int", &[&[0]]);
    let mut child = TestTable::new(2, "child", "id:int p:int", &[&[0]]);
    parent.def.has_relations = true;
    child.def.has_relations = true;
    let mut log = Log::mysql();
    log.transaction(&[(&parent, insert(row(&[1, 1]))), (&child, insert(row(&[1, 1])))]);
    log.transaction(&[(&child, delete(row(&[1, 1]))), (&parent, delete(row(&[1, 1])))]);
    let group = group(log.keyed(&[&parent, &child]));
    let plan = plan(&group, true);
    let order: Vec<(&str, RowsKind)> = plan.independent.iter().map(|b| (b.map.table.as_str(), b.kind)).collect();
    assert_eq!(
        order,
        [
            ("parent", RowsKind::Write),
            ("child", RowsKind::Write),
            ("child", RowsKind::Delete),
            ("parent", RowsKind::Delete)
        ]
    );
}

#[test]
fn held_rows_keep_company() {
    let second = TestTable::new(2, "second", "id:int u:int? v:int", &[&[0], &[1]]);
    let mut log = Log::mysql();
    // The second insert takes the value that the first transaction, which has to wait, frees.
    log.transaction(&[(&second, delete(row(&[1, 7, 0])))]);
    log.transaction(&[(&second, insert(row(&[2, 7, 0])))]);
    log.transaction(&[(&second, insert(row(&[3, 9, 0])))]);
    let mut group = group(log.keyed(&[&second]));
    group.deferred = vec![DeferredPart::Rows(vec![true]), DeferredPart::Nothing, DeferredPart::Nothing];
    let plan = plan(&group, true);
    assert_eq!(shown(&plan.independent), "+3,9,0");
    assert_eq!(shown(&plan.deferred), "-1,7,0 | +2,7,0");
}

/// Two inserts merged would have one time, of an insert and an update the insert's would be lost.
#[test]
fn rows_that_show_the_time_of_their_change_keep_it() {
    let r = |id: i32, v: i32| row(&[id, v]);
    let mut table = TestTable::new(1, "plain", "id:int v:int", &[&[0]]);
    table.def.timed = vec![TimedColumn { column: 2, on_update: false }];
    check(&table, &[vec![insert(r(1, 5))], vec![update(r(1, 5), r(1, 6))]], "+1,5 | 1,5>1,6");
    let mut log = Log::mysql();
    for id in 1..=3 {
        log.transaction(&[(&table, insert(r(id, 5)))]);
    }
    let mut transactions = log.keyed(&[&table]);
    let Body::Items(items) = &mut transactions[2].body else { panic!("held in memory") };
    let Item::Rows(rows) = &mut items[0] else { panic!("rows") };
    rows.timestamp += 3_600;
    let group = group(transactions);
    assert_eq!(plan(&group, true).independent.iter().map(|batch| batch.rows.len()).collect::<Vec<_>>(), [2, 1]);
}
