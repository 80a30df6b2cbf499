//! Tables whose deleted rows the target keeps: deletes are left out, and rows that come take the place of those that were kept.

use binlog::RowsKind;

use super::*;
use crate::schema::Leftovers;
use crate::testing::key_of;

fn keeping(mut tables: Vec<TestTable>) -> Vec<TestTable> {
    tables.iter_mut().for_each(|table| table.def.leftovers = Leftovers::Kept);
    tables
}

/// Rows that have a unique value of `after` go; not the one that is changed.
fn clear(model: &mut Model, table: &Table, change: &RowChange) {
    let rows = model.rows.entry(table.id).or_default();
    let is_changed = |key: &crate::schema::UniqueKey| {
        change.kind == RowsKind::Write || key_of(table, key, &change.before) != key_of(table, key, &change.after)
    };
    for key in table.unique_keys.iter().filter(|key| is_changed(key)) {
        let taken = key_of(table, key, &change.after);
        rows.retain(|row| taken.is_none() || key_of(table, key, row) != taken);
    }
}

/// As both writers do it: a batch of inserts makes way for all of them at once, updates one by one.
fn write(model: &mut Model, batch: &Batch<'_>) -> Result<(), RowRefusal> {
    let table = batch.table.unwrap();
    let changes: Vec<RowChange> = batch.rows.iter().map(|images| change_of(batch, images)).collect();
    if batch.kind == RowsKind::Write {
        changes.iter().for_each(|change| clear(model, table, change));
    }
    for change in &changes {
        if batch.kind == RowsKind::Update {
            clear(model, table, change);
        }
        model.apply(table, change)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn a_group_leaves_what_its_transactions_would_leave(
        which in prop::collection::vec(0usize..7, 1..4),
        before in ops(),
        after in ops(),
        sizes in prop::collection::vec(1usize..12, 1..4),
    ) {
        let tables = keeping(choose(tables(), &which));
        let mut start = Model::default();
        run(&before, &tables, &mut start);
        let mut done = run(&after, &tables, &mut start.clone());
        done.iter_mut().for_each(|changes| changes.retain(|(_, change)| change.kind != RowsKind::Delete));
        let mut expected = start.clone();
        for (table, change) in done.iter().flatten() {
            clear(&mut expected, &tables[*table].def, change);
            prop_assert_eq!(expected.apply(&tables[*table].def, change), Ok(()));
        }
        for merge in [true, false] {
            let mut target = start.clone();
            for transactions in cut(keyed(&done, &tables), &sizes) {
                let group = group(transactions);
                let plan = plan(&group, merge);
                prop_assert_eq!(plan.independent.iter().try_for_each(|batch| write(&mut target, batch)), Ok(()), "merge {}", merge);
            }
            prop_assert_eq!(target.sorted(), expected.sorted());
        }
    }
}

#[test]
fn rows_that_come_again_are_one() {
    let mut plain = TestTable::new(1, "plain", "id:int v:int", &[&[0]]);
    plain.def.leftovers = Leftovers::Kept;
    let r = |id, v| row(&[id, v]);
    check(&plain, &[vec![insert(r(1, 5))], vec![insert(r(1, 6))]], "+1,6");
    check(&plain, &[vec![update(r(1, 5), r(1, 6))], vec![insert(r(1, 7))]], "1,5>1,7");
    let mut second = TestTable::new(2, "second", "id:int u:int? v:int", &[&[0], &[1]]);
    second.def.leftovers = Leftovers::Kept;
    let r = |id, u, v| row(&[id, u, v]);
    check(&second, &[vec![insert(r(1, 7, 0))], vec![insert(r(2, 7, 0))]], "+1,7,0 | +2,7,0");
    check(&second, &[vec![insert(r(1, 7, 0))], vec![insert(r(2, 8, 0))]], "+1,7,0 +2,8,0");
}
