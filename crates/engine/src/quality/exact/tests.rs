use super::*;

const T: TableId = TableId(1);

fn keys<'a>(writes: &'a [u64], tables: &'a [TableUse]) -> TouchedRows<'a> {
    TouchedRows { writes, tables, cost_us: 10, ..TouchedRows::default() }
}

fn by_key() -> [TableUse; 1] {
    [TableUse { table: T, access: TableAccess::Keys }]
}

#[test]
fn a_hot_key_makes_the_chain() {
    let mut exact = ExactModel::default();
    let uses = by_key();
    for n in 0..100_u64 {
        let writes = if n % 4 == 0 { vec![7, 7] } else { vec![1000 + n] };
        let placed = exact.place(&keys(&writes, &uses));
        assert_eq!(placed.level, if n % 4 == 0 { n as u32 / 4 + 1 } else { 1 });
        assert_eq!(placed.parent, if n % 4 == 0 && n > 0 { n as u32 - 3 } else { 0 });
    }
    let totals = exact.totals();
    assert_eq!((totals.transactions, totals.levels, totals.width_max), (100, 25, 76));
    assert_eq!((totals.work_us, totals.critical_us), (1000, 250));
    assert_eq!(totals.width(), Some(4.0));
    assert_eq!(totals.speedup_max(), Some(4.0));
    let (key, counter) = totals.hot.top(5)[0];
    assert_eq!((key, counter.count, counter.value.critical_us), (7, 25, 240));
    assert_eq!(totals.critical_by, BTreeMap::from([(Link::Free, 10), (Link::Key(0), 240)]));
}

/// A lock that is taken and given back: INSERT of a new id and the same name, then DELETE of that row.
#[test]
fn of_several_keys_the_hot_one_is_the_reason() {
    let mut exact = ExactModel::default();
    let uses = by_key();
    for n in 0..100_u64 {
        for _ in 0..2 {
            exact.place(&keys(&[1000 + n, 7], &uses));
        }
    }
    let totals = exact.totals();
    assert_eq!(totals.critical_us, 2000);
    // The first DELETE follows an INSERT whose keys are both as rare.
    assert_eq!(totals.hot.get(7).map(|counter| counter.value.critical_us), Some(1980));
}

#[test]
fn what_is_much_larger_than_most_is_large() {
    // Batches that change the same rows: what holds up is their size, not the rows.
    for (batch_us, large) in [(9_999, false), (10_000, true), (2_000_000, true)] {
        let mut exact = ExactModel::default();
        let uses = by_key();
        for n in 0..100_u64 {
            let cost_us = if n % 20 == 0 { batch_us } else { 150 };
            let writes = [if n % 20 == 0 { 7 } else { 1000 + n }];
            exact.place(&TouchedRows { writes: &writes, tables: &uses, cost_us, ..TouchedRows::default() });
        }
        let by = &exact.totals().critical_by;
        assert_eq!(by.get(&Link::Large).copied(), large.then_some(5 * batch_us), "{by:?}");
    }
    // Where all are like that, none is.
    let mut exact = ExactModel::default();
    let uses = by_key();
    (0..50).for_each(|_| {
        _ = exact.place(&TouchedRows { writes: &[7], tables: &uses, cost_us: 30_000, ..TouchedRows::default() });
    });
    assert_eq!(exact.totals().critical_by.get(&Link::Large), None);
}

#[test]
fn tables_barriers_and_references() {
    let mut exact = ExactModel::default();
    let all = [TableUse { table: T, access: TableAccess::WriteAll }];
    let uses = by_key();
    assert_eq!(exact.place(&keys(&[1], &uses)).level, 1);
    let whole = exact.place(&keys(&[], &all));
    assert_eq!((whole.level, whole.link), (2, Link::Table(T)));
    let after = exact.place(&keys(&[2], &uses));
    assert_eq!((after.level, after.link), (3, Link::Table(T)));
    let barrier = exact.place(&TouchedRows { barrier: Some(3), cost_us: 10, ..TouchedRows::default() });
    assert_eq!((barrier.level, barrier.parent, barrier.link), (4, 3, Link::Barrier(3)));
    let next = exact.place(&keys(&[99], &uses));
    assert_eq!((next.level, next.parent, next.link), (5, 4, Link::Barrier(3)));
    // A child refers to parent 50: it follows the parent's writer, and the parent's next writer follows it.
    assert_eq!(exact.place(&keys(&[50], &uses)).level, 5);
    let child = exact.place(&TouchedRows { writes: &[51], reads: &[50], tables: &uses, cost_us: 1, barrier: None });
    assert_eq!((child.level, child.link), (6, Link::Reference(50)));
    let second = exact.place(&TouchedRows { writes: &[52], reads: &[50], tables: &uses, cost_us: 1, barrier: None });
    assert_eq!(second.level, 6);
    let writer = exact.place(&keys(&[50], &uses));
    assert_eq!((writer.level, writer.parent, writer.link), (7, 8, Link::Key(50)));
}

/// Also where nothing is before it in its window.
#[test]
fn a_barrier_holds_up_by_itself() {
    let mut exact = ExactModel::default();
    let barrier = exact.place(&TouchedRows { barrier: Some(3), cost_us: LARGE_MIN_US, ..TouchedRows::default() });
    assert_eq!((barrier.level, barrier.parent, barrier.link), (1, 0, Link::Barrier(3)));
    let uses = by_key();
    (0..9).for_each(|n| _ = exact.place(&keys(&[n], &uses)));
    let by = &exact.totals().critical_by;
    assert_eq!(by, &BTreeMap::from([(Link::Barrier(3), LARGE_MIN_US + 10)]));
}

#[test]
fn windows_are_apart() {
    let mut exact = ExactModel::new(2, 100);
    let uses = by_key();
    let levels: Vec<u32> = (0..5).map(|_| exact.place(&keys(&[7], &uses)).level).collect();
    assert_eq!(levels, [1, 2, 1, 2, 1]);
    let totals = exact.totals();
    assert_eq!((totals.windows, totals.levels), (3, 5));
    assert_eq!(totals.hot.get(7).map(|counter| counter.count), Some(4));
}

#[test]
fn who_follows_whom_is_told() {
    let mut exact = ExactModel::default();
    let uses = by_key();
    let mut told = Vec::new();
    for writes in [vec![1], vec![2], vec![1, 2]] {
        exact.place_and_tell(&keys(&writes, &uses), |number| told.push(number));
    }
    assert_eq!(told, [1, 2]);
}
