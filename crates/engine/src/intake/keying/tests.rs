use binlog::encode::RowsSpec;
use proptest::prelude::*;

use super::*;
use crate::schema::{ForeignKey, TableOrderCause};
use crate::testing::{
    FakeCatalogue, Log, Row as Values, RowChange, TestTable, Value, decode, delete, insert, int, text, update,
};
use crate::transaction::TableUse;

fn two_keys() -> TestTable {
    TestTable::new(1, "t", "id:int u:int? v:int", &[&[0], &[1]])
}

fn row(values: &[i32]) -> Values {
    values.iter().map(|&value| int(value)).collect()
}

fn columns(width: usize, present: &[usize]) -> Bitmap {
    Bitmap::from_fn(width, |column| present.contains(&column))
}

/// One transaction with one change whose images have only these columns.
fn partial(table: &TestTable, before: &[usize], after: &[usize], change: RowChange) -> WriteSet {
    let width = table.columns.len();
    let mut log = Log::mysql();
    log.begin().map(table).rows_event(table, &columns(width, before), &columns(width, after), 1, &[change]).xid();
    log.keyed(&[table]).remove(0).write_set
}

fn whole(table: &TestTable, change: RowChange) -> WriteSet {
    let all: Vec<usize> = (0..table.columns.len()).collect();
    partial(table, &all, &all, change)
}

fn hashes(set: &WriteSet) -> &[u64] {
    set.unique_hashes(&set.rows[0])
}

fn is_wild(set: &WriteSet) -> bool {
    let by_table = set.tables.iter().any(|table| table.access == TableAccess::WriteAll);
    assert_eq!(set.rows[0].wild, by_table);
    by_table
}

/// `=` the same value before and after, `>` another, `+` only after, `-` only before, `.` neither.
fn shape(set: &WriteSet) -> String {
    let pair = |pair: &[u64]| match (pair[0], pair[1]) {
        (0, 0) => '.',
        (0, _) => '+',
        (_, 0) => '-',
        (before, after) if before == after => '=',
        _ => '>',
    };
    let wild = if is_wild(set) { " wild" } else { "" };
    hashes(set).chunks_exact(2).map(pair).collect::<String>() + wild
}

#[test]
fn full_images() {
    let table = two_keys();
    assert_eq!(shape(&whole(&table, insert(row(&[1, 7, 0])))), "++");
    assert_eq!(shape(&whole(&table, delete(row(&[1, 7, 0])))), "--");
    assert_eq!(shape(&whole(&table, update(row(&[1, 7, 0]), row(&[1, 7, 9])))), "==");
    assert_eq!(shape(&whole(&table, update(row(&[1, 7, 0]), row(&[1, 8, 0])))), "=>");
    assert_eq!(shape(&whole(&table, update(row(&[1, 7, 0]), row(&[2, 7, 0])))), ">=");
    // NULLs never collide.
    assert_eq!(shape(&whole(&table, insert(vec![int(1), Value::Null, int(0)]))), "+.");
    assert_eq!(shape(&whole(&table, update(vec![int(1), Value::Null, int(0)], row(&[1, 7, 0])))), "=+");
    assert_eq!(shape(&whole(&table, update(row(&[1, 7, 0]), vec![int(1), Value::Null, int(0)]))), "=-");
}

/// Each row: columns before, columns after, the change, what is known of it.
#[test]
fn minimal_images() {
    let table = two_keys();
    let of = |before: &[usize], after: &[usize], change| shape(&partial(&table, before, after, change));
    let (old, new) = (row(&[1, 7, 0]), row(&[1, 8, 9]));
    assert_eq!(of(&[0], &[2], update(old.clone(), new.clone())), "=.");
    // Which value becomes free is not known.
    assert_eq!(of(&[0], &[1], update(old.clone(), new.clone())), "=+ wild");
    assert_eq!(of(&[0], &[], delete(old.clone())), "-. wild");
    // Which value the default is, is not known.
    assert_eq!(of(&[], &[0, 2], insert(new.clone())), "+. wild");
    assert_eq!(of(&[], &[0, 1], insert(new.clone())), "++");
    // Which row it is, is not known.
    assert_eq!(of(&[2], &[2], update(old.clone(), new.clone())), ".. wild");
    assert_eq!(of(&[], &[], insert(new.clone())), ".. wild");
    // NOBLOB: the key's columns are there, others may not be.
    assert_eq!(of(&[0, 1], &[0, 1], update(old, new)), "=>");
    let pair = TestTable::new(1, "t", "a:int b:int v:int", &[&[0], &[0, 1]]);
    let of = |before: &[usize], after: &[usize], change| shape(&partial(&pair, before, after, change));
    assert_eq!(of(&[0], &[2], update(row(&[1, 2, 3]), row(&[1, 2, 4]))), "=.");
    assert_eq!(of(&[0], &[1], update(row(&[1, 2, 3]), row(&[1, 5, 4]))), "=. wild");
}

#[test]
fn tables_without_a_usable_key() {
    let keyless = TestTable::new(1, "t", "a:int? b:int?", &[]);
    assert_eq!(shape(&whole(&keyless, insert(row(&[1, 2])))), " wild");
    let nullable = TestTable::new(1, "t", "a:int? b:int?", &[&[0]]);
    assert_eq!(shape(&whole(&nullable, insert(row(&[1, 2])))), "+ wild");
    let unknown = TestTable::new(1, "t", "a:int", &[&[0]]);
    let mut log = Log::mysql();
    log.transaction(&[(&unknown, insert(row(&[1])))]);
    let set = &log.keyed(&[])[0].write_set;
    assert!(is_wild(set));
}

/// Values that the collation calls equal, and those that it does not.
#[test]
fn strings() {
    let same = |kind: &str, a: &str, b: &str| {
        let table = TestTable::new(1, "t", &format!("n:{kind}"), &[&[0]]);
        let of = |value: &str| hashes(&whole(&table, insert(vec![text(value)])))[1];
        assert!(of(a) != 0 && of(b) != 0);
        of(a) == of(b)
    };
    assert!(same("ci", "abc", "ABC"));
    assert!(same("ci", "abc", "abc  "));
    assert!(same("ci", "é", "E"));
    assert!(!same("ci", "abc", "abd"));
    assert!(!same("bin", "abc", "ABC"));
    assert!(same("bin", "abc", "abc "));
    // What is not known of a collation is ordered by table. (An unassigned character.)
    let mut table = TestTable::new(1, "t", "n:ci", &[&[0]]);
    table.def.columns[0].key_class =
        crate::keys::classify(&crate::keys::DataType::VarChar, "utf8mb4", "utf8mb4_0900_as_cs");
    assert_eq!(shape(&whole(&table, insert(vec![text("abc")]))), "+");
    assert_eq!(shape(&whole(&table, insert(vec![text("a\u{378}c")]))), ". wild");
    assert_eq!(shape(&whole(&table, update(vec![text("a\u{378}c")], vec![text("b")]))), "+ wild");
}

#[test]
fn prefixes() {
    let mut table = TestTable::new(1, "t", "id:int n:bin", &[&[0], &[1]]);
    table.def.unique_keys[1].parts[0].prefix = Some(2);
    let of = |value: &str| hashes(&whole(&table, insert(vec![int(1), text(value)])))[3];
    assert_eq!(of("éab"), of("éac"));
    assert_ne!(of("éab"), of("eab"));
    assert_eq!(of("a"), of("a "));
}

/// Where a key's value ends counts, and so do table and index.
#[test]
fn different_keys_do_not_meet() {
    let pair = TestTable::new(1, "t", "a:bin b:bin", &[&[0, 1], &[1, 0]]);
    let of = |table: &TestTable, a: &str, b: &str| hashes(&whole(table, insert(vec![text(a), text(b)]))).to_vec();
    assert_ne!(of(&pair, "ab", "c")[1], of(&pair, "a", "bc")[1]);
    assert_ne!(of(&pair, "x", "x")[1], of(&pair, "x", "x")[3]);
    let other = TestTable::new(2, "other", "a:bin b:bin", &[&[0, 1], &[1, 0]]);
    assert_ne!(of(&pair, "x", "x")[1], of(&other, "x", "x")[1]);
}

fn family() -> (TestTable, TestTable) {
    let parent = TestTable::new(1, "parent", "id:int code:int v:int", &[&[0], &[1]]);
    let mut child = TestTable::new(2, "child", "id:int p:int? v:int", &[&[0]]);
    child.def.foreign_keys.push(ForeignKey {
        name: "fk".to_owned(),
        columns: vec![1],
        parent: parent.def.id,
        parent_key: Some(1),
        classes: vec![parent.def.columns[1].key_class],
    });
    child.def.has_relations = true;
    (parent, child)
}

fn keyed_with(tables: &[&TestTable], table: &TestTable, change: RowChange) -> WriteSet {
    let mut log = Log::mysql();
    log.transaction(&[(table, change)]);
    log.keyed(tables).remove(0).write_set
}

#[test]
fn references() {
    let (parent, child) = family();
    let tables = [&parent, &child];
    let key = hashes(&keyed_with(&tables, &parent, insert(row(&[1, 7, 0]))))[3];
    let of = |change| {
        let set = keyed_with(&tables, &child, change);
        assert!(!is_wild(&set));
        set.reference_hashes(&set.rows[0]).to_vec()
    };
    assert_eq!(of(insert(row(&[5, 7, 0]))), [key]);
    assert_eq!(of(delete(row(&[5, 7, 0]))), [key]);
    assert_eq!(of(insert(vec![int(5), Value::Null, int(0)])), [0; 0]);
    assert_eq!(of(update(row(&[5, 7, 0]), row(&[5, 7, 1]))), [0; 0]);
    assert_eq!(of(update(vec![int(5), Value::Null, int(0)], row(&[5, 7, 1]))), [key]);
    assert_eq!(of(update(row(&[5, 8, 0]), row(&[5, 7, 1]))).len(), 2);
}

#[test]
fn references_that_are_not_known_read_the_parent() {
    let reads_all = |tables: &[&TestTable], child: &TestTable, before: &[usize], after: &[usize], change: RowChange| {
        let width = child.columns.len();
        let mut log = Log::mysql();
        log.begin().map(child).rows_event(child, &columns(width, before), &columns(width, after), 1, &[change]).xid();
        let set = log.keyed(tables).remove(0).write_set;
        set.tables.contains(&TableUse { table: TableId(1), access: TableAccess::ReadAll })
    };
    let (parent, mut child) = family();
    let tables = [&parent, &child];
    let all = [0, 1, 2];
    assert!(!reads_all(&tables, &child, &all, &all, insert(row(&[5, 7, 0]))));
    // Minimal images: not there, and a default may be; or not there, and not changed.
    assert!(reads_all(&tables, &child, &[], &[0], insert(row(&[5, 7, 0]))));
    assert!(reads_all(&tables, &child, &[0], &[], delete(row(&[5, 7, 0]))));
    assert!(reads_all(&tables, &child, &[0], &[1], update(row(&[5, 7, 0]), row(&[5, 8, 0]))));
    assert!(!reads_all(&tables, &child, &[0], &[2], update(row(&[5, 7, 0]), row(&[5, 7, 1]))));
    // A key of the parent that is not unique, or of which not all is known.
    child.def.foreign_keys[0].parent_key = None;
    assert!(reads_all(&[&parent, &child], &child, &all, &all, insert(row(&[5, 7, 0]))));
    child.def.foreign_keys[0].parent_key = Some(1);
    child.def.foreign_keys[0].classes.clear();
    assert!(reads_all(&[&parent, &child], &child, &all, &all, insert(row(&[5, 7, 0]))));
}

#[test]
fn cascades_write_the_children() {
    let (mut parent, child) = family();
    parent.def.cascades_to = vec![child.def.id];
    parent.def.cascade_columns = vec![1];
    let writes = |change| {
        let set = keyed_with(&[&parent, &child], &parent, change);
        set.tables.contains(&TableUse { table: child.def.id, access: TableAccess::WriteAll })
    };
    assert!(writes(delete(row(&[1, 7, 0]))));
    assert!(writes(update(row(&[1, 7, 0]), row(&[1, 8, 0]))));
    assert!(!writes(update(row(&[1, 7, 0]), row(&[1, 7, 1]))));
    assert!(!writes(insert(row(&[1, 7, 0]))));
    // A column that no unique key has: InnoDB takes any index for a parent's.
    parent.def.cascade_columns = vec![2];
    let writes = |before: &[usize], after: &[usize], change| {
        let mut log = Log::mysql();
        log.begin().map(&parent).rows_event(&parent, &columns(3, before), &columns(3, after), 1, &[change]).xid();
        let set = log.keyed(&[&parent, &child]).remove(0).write_set;
        set.tables.contains(&TableUse { table: child.def.id, access: TableAccess::WriteAll })
    };
    let all = [0, 1, 2];
    assert!(writes(&all, &all, update(row(&[1, 7, 0]), row(&[1, 7, 1]))));
    assert!(!writes(&all, &all, update(row(&[1, 7, 0]), row(&[1, 8, 0]))));
    // Minimal images: only what changed comes after.
    assert!(writes(&[0], &[2], update(row(&[1, 7, 0]), row(&[1, 7, 1]))));
    parent.def.cascade_columns = vec![0];
    let writes = |after: &[usize], change| {
        let mut log = Log::mysql();
        log.begin().map(&parent).rows_event(&parent, &columns(3, &[0]), &columns(3, after), 1, &[change]).xid();
        let set = log.keyed(&[&parent, &child]).remove(0).write_set;
        set.tables.contains(&TableUse { table: child.def.id, access: TableAccess::WriteAll })
    };
    assert!(!writes(&[2], update(row(&[1, 7, 0]), row(&[1, 7, 1]))));
    assert!(writes(&[0], update(row(&[1, 7, 0]), row(&[2, 7, 0]))));
}

/// The catalogue's columns are not those of the log: what stands where is not known.
#[test]
fn another_number_of_columns() {
    let logged = TestTable::new(1, "t", "new:int id:int v:int", &[&[1]]);
    let (parent, child) = family();
    let mut known = TestTable::new(1, "t", "id:int v:int", &[&[0]]);
    known.def.foreign_keys = child.def.foreign_keys.clone();
    known.def.foreign_keys[0].parent = TableId(7);
    let mut log = Log::mysql();
    log.transaction(&[(&logged, insert(row(&[1, 2, 3])))]);
    let transactions = log.keyed(&[&known, &parent]);
    let set = &transactions[0].write_set;
    assert!(is_wild(set));
    assert!(set.tables.contains(&TableUse { table: TableId(7), access: TableAccess::ReadAll }));
    let Item::Rows(item) = &transactions[0].items()[0] else { panic!("no rows") };
    let table = item.table.as_ref().unwrap();
    assert_eq!(table.order_by_table, Some(TableOrderCause::ColumnsDiffer));
    assert!(!table.is_keyed());
}

#[test]
fn tables_that_can_not_be_rolled_back_run_alone() {
    let mut table = two_keys();
    table.def.transactional = false;
    let mut log = Log::mysql();
    log.transaction(&[(&table, insert(row(&[1, 2, 3])))]);
    assert_eq!(log.keyed(&[&table])[0].barrier, Some(BarrierCause::NonTransactional));
}

/// The options of a partial update belong to the after image, the key is found behind them.
#[test]
fn partial_json() {
    let table = TestTable::new(1, "t", "id:int j:json?", &[&[0]]);
    let full = Bitmap::full(2);
    let (before, after) = (vec![int(1), text("aa")], vec![int(1), text("bb")]);
    let mut rows = table.image(&full, &before);
    let options = rows.len();
    rows.extend([1, 1]); // value options: partial; the first JSON column is a diff
    rows.extend(table.image(&full, &after));
    let mut log = Log::mysql();
    log.begin().map(&table);
    let spec = RowsSpec {
        kind: RowsKind::Update,
        table_id: 101,
        flags: 1,
        version: 2,
        extra: &[],
        before_columns: &full,
        after_columns: &full,
        partial_json: true,
    };
    let bytes = binlog::encode::rows(&log.head, &spec, &rows);
    log.push(bytes).xid();
    let transactions = log.keyed(&[&table]);
    let set = &transactions[0].write_set;
    assert_eq!(shape(set), "=");
    assert_eq!(set.rows[0].after, options as u32..rows.len() as u32);
    assert_eq!(set.rows[0].before, 0..options as u32);
}

#[test]
fn rows_that_can_not_be_walked_are_an_error() {
    let table = two_keys();
    let full = Bitmap::full(3);
    let mut log = Log::mysql();
    log.begin().map(&table);
    let spec = RowsSpec {
        kind: RowsKind::Write,
        table_id: 101,
        flags: 1,
        version: 2,
        extra: &[],
        before_columns: &full,
        after_columns: &full,
        partial_json: false,
    };
    let mut rows = table.image(&full, &row(&[1, 2, 3]));
    rows.pop();
    let bytes = binlog::encode::rows(&log.head, &spec, &rows);
    log.push(bytes).xid();
    let mut transaction = log.assemble().unwrap().remove(0);
    let outcome = Keying::new(1).key(&mut transaction, &mut FakeCatalogue::new(&[&table]));
    assert!(matches!(outcome, Err(KeyingError::Rows { .. })), "{outcome:?}");
}

#[test]
fn the_seed_counts() {
    let table = two_keys();
    let mut log = Log::mysql();
    log.transaction(&[(&table, insert(row(&[1, 2, 3])))]);
    let of = |seed| {
        let mut transaction = log.assemble().unwrap().remove(0);
        Keying::new(seed).key(&mut transaction, &mut FakeCatalogue::new(&[&table])).unwrap();
        transaction.write_set.hashes
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

proptest! {
    /// Events of several rows: each row has its images and its own hashes, equal values equal ones.
    #[test]
    fn rows_of_an_event(rows in prop::collection::vec((0i32..5, prop::option::of(0i32..5), any::<i32>()), 1..12)) {
        let table = two_keys();
        let values: Vec<Values> =
            rows.iter().map(|&(id, u, v)| vec![int(id), u.map_or(Value::Null, int), int(v)]).collect();
        let mut log = Log::mysql();
        let changes: Vec<RowChange> = values.iter().cloned().map(insert).collect();
        log.begin().rows(&table, &changes).xid();
        let transactions = log.keyed(&[&table]);
        let set = &transactions[0].write_set;
        let Item::Rows(item) = &transactions[0].items()[0] else { panic!("no rows") };
        prop_assert_eq!(&item.rows, &(0..values.len()));
        for (row, expected) in set.rows.iter().zip(&values) {
            let image = &item.event.rows[row.after.start as usize..row.after.end as usize];
            prop_assert_eq!(&decode(&item.map, &item.event.after_columns, image), expected);
        }
        for (a, left) in set.rows.iter().zip(&values) {
            for (b, right) in set.rows.iter().zip(&values) {
                for key in 0..2 {
                    let (x, y) = (set.unique_hashes(a)[2 * key + 1], set.unique_hashes(b)[2 * key + 1]);
                    let equal = left[key] == right[key] && left[key] != Value::Null;
                    prop_assert_eq!(x == y && x != 0, equal);
                }
            }
        }
    }
}
