//! The statements that read rows: digests of chunks, rows of chunks, rows by key, and sums of whole tables. Pure.
//!
//! # Digest of a chunk
//! `SHA2(GROUP_CONCAT(row's text))`: the texts of all rows, in the order of the key's index, under one SHA-256. Nothing can cancel out, as it can in sums. A target
//! without such an index sorts the texts by the key. An order that differs (nothing promises the index's) only makes the digests differ: then the rows decide, each by its own key.
//!
//! # Sums of a table without a key
//! Each row's SHA-256 is cut into a bucket and two numbers of 60 bits, which are summed exactly. Equal sums and counts of two different sets of rows need two
//! independent coincidences of 60 bits each. A row that is there twice counts twice, other than with XOR.

use apply::mysql::server::sql::{hex, identifier};

use super::tables::canonical::Piece;
use super::tables::plan::{ChunkKey, ComparedColumn, Key, KeyColumn, KeyKind, Side, TablePlan};

/// Rows behind `after` up to `until`, as the key's index orders them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Range {
    pub after: Option<Key>,
    pub until: Option<Key>,
}

/// Hexadecimal digits of a hash that name a bucket.
const BUCKET_DIGITS: usize = 3;

fn literal(column: &KeyColumn, value: &[u8]) -> String {
    let is_number = |byte: &u8| byte.is_ascii_digit() || b"-.".contains(byte);
    let is_time = |byte: &u8| byte.is_ascii_digit() || b"-:. ".contains(byte);
    let text = || String::from_utf8_lossy(value).into_owned();
    match &column.kind {
        KeyKind::Number if !value.is_empty() && value.iter().all(is_number) => text(),
        KeyKind::Quoted if value.iter().all(is_time) => format!("'{}'", text()),
        KeyKind::Text(charset) if value.is_empty() => format!("_{charset} ''"),
        KeyKind::Text(charset) => format!("_{charset} {}", hex(value)),
        KeyKind::Number | KeyKind::Quoted | KeyKind::Bytes => hex(value),
    }
}

/// Behind a key, or up to it, as the index orders them. Row constructors are slow in MySQL 5.7, so it is written out.
fn bound(key: &ChunkKey, at: &Key, end: End) -> String {
    let mut sql = String::new();
    let last = key.columns.len().saturating_sub(1);
    for (number, (column, value)) in key.columns.iter().zip(at).enumerate() {
        let (name, value) = (identifier(&column.name), literal(column, value));
        let sign = match (end, column.is_descending) {
            (End::After, false) | (End::Until, true) => ">",
            (End::After, true) | (End::Until, false) => "<",
        };
        if number == last {
            let or_equal = if end == End::Until { "=" } else { "" };
            sql += &format!("{name}{sign}{or_equal}{value}");
        } else {
            sql += &format!("{name}{sign}{value} OR ({name}={value} AND (");
        }
    }
    sql + &"))".repeat(last)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    After,
    Until,
}

fn condition(key: &ChunkKey, range: &Range) -> String {
    let after = range.after.as_ref().map(|at| format!("({})", bound(key, at, End::After)));
    let until = range.until.as_ref().map(|at| format!("({})", bound(key, at, End::Until)));
    let parts: Vec<String> = after.into_iter().chain(until).collect();
    if parts.is_empty() { String::new() } else { format!(" WHERE {}", parts.join(" AND ")) }
}

fn from(plan: &TablePlan, side: Side) -> String {
    let name = plan.name(side).sql();
    match plan.key.as_ref().and_then(|key| key.index(side)) {
        Some(index) => format!("{name} FORCE INDEX ({})", identifier(index)),
        None => name,
    }
}

/// The order of the key, as the source's index has it.
fn order(key: &ChunkKey) -> String {
    let column = |column: &KeyColumn| {
        let direction = if column.is_descending { " DESC" } else { "" };
        format!("{}{direction}", identifier(&column.name))
    };
    format!("ORDER BY {}", key.columns.iter().map(column).collect::<Vec<_>>().join(","))
}

/// The text of a row, as arguments of `CONCAT` or `GROUP_CONCAT`.
fn row_text(plan: &TablePlan, side: Side) -> String {
    let nulls = |column: &ComparedColumn| match side {
        Side::Source => column.nulls[0],
        Side::Target => column.nulls[1],
    };
    let pieces = plan.columns.iter().filter_map(|column| Some(column.piece(side)?.arguments(nulls(column))));
    let pieces: Vec<String> = pieces.flatten().collect();
    if pieces.is_empty() { "''".to_owned() } else { pieces.join(",") }
}

fn hash(plan: &TablePlan, side: Side) -> String {
    format!("SHA2(CONCAT({}),256)", row_text(plan, side))
}

/// The key's values, as [`Key`] has them.
fn key_columns(key: &ChunkKey) -> String {
    let column = |column: &KeyColumn| match column.kind {
        KeyKind::Text(_) => format!("CAST({} AS BINARY)", identifier(&column.name)),
        KeyKind::Number | KeyKind::Quoted | KeyKind::Bytes => identifier(&column.name),
    };
    key.columns.iter().map(column).collect::<Vec<_>>().join(",")
}

/// The key of the row at which a chunk of so many rows ends; no row: it is the last chunk.
pub fn chunk_end(plan: &TablePlan, key: &ChunkKey, after: Option<&Key>, rows: u64) -> String {
    let range = Range { after: after.cloned(), until: None };
    format!(
        "SELECT {} FROM {}{} {} LIMIT 1 OFFSET {}",
        key_columns(key),
        from(plan, Side::Source),
        condition(key, &range),
        order(key),
        rows.saturating_sub(1)
    )
}

/// Two columns: the number of rows, their digest.
pub fn digest(plan: &TablePlan, key: &ChunkKey, side: Side, range: &Range) -> String {
    let sorted = if key.is_sorted(side) { format!(" {}", order(key)) } else { String::new() };
    format!(
        "SELECT COUNT(*),SHA2(GROUP_CONCAT({}{sorted} SEPARATOR ''),256) FROM {}{}",
        row_text(plan, side),
        from(plan, side),
        condition(key, range)
    )
}

/// Of each row: the key, its hash, and what is fetched of it.
pub fn rows(plan: &TablePlan, key: &ChunkKey, side: Side, range: &Range) -> String {
    format!("SELECT {} FROM {}{}", row_columns(plan, key, side), from(plan, side), condition(key, range))
}

/// The same of the row with this key, as the server's collation finds it.
pub fn row(plan: &TablePlan, key: &ChunkKey, side: Side, at: &Key) -> String {
    format!("SELECT {} FROM {} WHERE {}", row_columns(plan, key, side), from(plan, side), is_key(key, at))
}

pub fn is_key(key: &ChunkKey, at: &Key) -> String {
    let same =
        |(column, value): (&KeyColumn, &Vec<u8>)| format!("{}={}", identifier(&column.name), literal(column, value));
    key.columns.iter().zip(at).map(same).collect::<Vec<_>>().join(" AND ")
}

/// The source's row with this key, as [`row`] has it, and more of it.
pub fn row_and(plan: &TablePlan, key: &ChunkKey, at: &Key, more: &str) -> String {
    let columns = row_columns(plan, key, Side::Source);
    format!("SELECT {columns},{more} FROM {} WHERE {}", from(plan, Side::Source), is_key(key, at))
}

fn row_columns(plan: &TablePlan, key: &ChunkKey, side: Side) -> String {
    let mut columns = vec![key_columns(key), hash(plan, side)];
    columns.extend(plan.columns.iter().filter_map(|column| column.fetched(side)).map(str::to_owned));
    columns.join(",")
}

/// What a difference shows of a value: two columns for each compared column, one to compare, one to show.
const SHOWN_BYTES: usize = 200;

fn shown(plan: &TablePlan, side: Side) -> String {
    let column = |column: &ComparedColumn| {
        let (same, value) = match (column.piece(side), column.fetched(side)) {
            (Some(Piece::Long(sql)), _) => (format!("SHA2({sql},256)"), sql.clone()),
            (Some(piece), _) => (piece.expression().to_owned(), piece.expression().to_owned()),
            (None, sql) => (sql.unwrap_or("NULL").to_owned(), sql.unwrap_or("NULL").to_owned()),
        };
        format!("{same},LENGTH({value}),LEFT({value},{SHOWN_BYTES})")
    };
    plan.columns.iter().map(column).collect::<Vec<_>>().join(",")
}

/// Of each compared column: what is compared, its length, its beginning.
pub fn values(plan: &TablePlan, key: &ChunkKey, side: Side, at: &Key) -> String {
    format!("SELECT {} FROM {} WHERE {}", shown(plan, side), from(plan, side), is_key(key, at))
}

/// The same of a row with this hash.
pub fn values_by_hash(plan: &TablePlan, side: Side, hash_digits: &str) -> String {
    format!("SELECT {} FROM {} WHERE {}='{hash_digits}' LIMIT 1", shown(plan, side), from(plan, side), hash(plan, side))
}

/// Of each bucket: its name, the number of its rows, two sums.
pub fn sums(plan: &TablePlan, side: Side) -> String {
    let number = |from: usize| format!("SUM(CAST(CONV(SUBSTR(h,{from},15),16,10) AS UNSIGNED))");
    format!(
        "SELECT LEFT(h,{BUCKET_DIGITS}) b,COUNT(*),{},{} FROM (SELECT {} h FROM {}) r GROUP BY b",
        number(1 + BUCKET_DIGITS),
        number(1 + BUCKET_DIGITS + 15),
        hash(plan, side),
        from(plan, side)
    )
}

/// Of the rows of these buckets: each hash, how often it is there.
pub fn bucket_rows(plan: &TablePlan, side: Side, buckets: &[String]) -> String {
    hashes(plan, side, &format!("LEFT(h,{BUCKET_DIGITS})"), buckets)
}

/// How often these hashes are there.
pub fn hash_counts(plan: &TablePlan, side: Side, wanted: &[String]) -> String {
    hashes(plan, side, "h", wanted)
}

fn hashes(plan: &TablePlan, side: Side, what: &str, wanted: &[String]) -> String {
    let wanted: Vec<String> = wanted.iter().map(|digits| format!("'{digits}'")).collect();
    format!(
        "SELECT h,COUNT(*) FROM (SELECT {} h FROM {}) r WHERE {what} IN ({}) GROUP BY h",
        hash(plan, side),
        from(plan, side),
        wanted.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::super::tables::definition::TableName;
    use super::super::tables::plan::TargetOrder;
    use super::*;

    fn key(kinds: &[KeyKind], descending: &[usize]) -> ChunkKey {
        let column = |(ordinal, kind): (usize, &KeyKind)| KeyColumn {
            name: ["a", "b", "c"][ordinal].to_owned(),
            kind: kind.clone(),
            unsigned: false,
            ordinal,
            is_descending: descending.contains(&ordinal),
        };
        let columns = kinds.iter().enumerate().map(column).collect();
        ChunkKey { index: "PRIMARY".to_owned(), columns, target: TargetOrder::Index("PRIMARY".to_owned()) }
    }

    fn at(values: &[&[u8]]) -> Option<Key> {
        (!values.is_empty()).then(|| values.iter().map(|value| value.to_vec()).collect())
    }

    #[test]
    fn ends_of_a_chunk() {
        let check = |kinds: &[KeyKind], after: &[&[u8]], until: &[&[u8]], expected: &str| {
            let range = Range { after: at(after), until: at(until) };
            assert_eq!(condition(&key(kinds, &[]), &range).replace('`', ""), expected);
        };
        use KeyKind::{Bytes, Number, Quoted};
        let text = KeyKind::Text("latin1".to_owned());
        check(&[Number], &[], &[], "");
        check(&[Number], &[b"-5"], &[b"7"], " WHERE (a>-5) AND (a<=7)");
        check(&[Number, text.clone()], &[b"1", b"x"], &[], " WHERE (a>1 OR (a=1 AND (b>_latin1 0x78)))");
        check(
            &[Bytes, Quoted, Number],
            &[],
            &[b"\x00", b"2024-01-01", b"3"],
            " WHERE (a<0x00 OR (a=0x00 AND (b<'2024-01-01' OR (b='2024-01-01' AND (c<=3)))))",
        );
        check(&[text], &[b""], &[], " WHERE (a>_latin1 '')");
        // What a server says that is no number does not get into a statement as it is.
        check(&[Number], &[b"1 OR 1"], &[], " WHERE (a>0x31204F522031)");
    }

    #[test]
    fn indexes_that_go_down() {
        let check = |descending: &[usize], condition_: &str, order_: &str| {
            let key = key(&[KeyKind::Number, KeyKind::Number], descending);
            let range = Range { after: at(&[b"1", b"2"]), until: at(&[b"5", b"6"]) };
            assert_eq!(condition(&key, &range).replace('`', ""), format!(" WHERE {condition_}"));
            assert_eq!(order(&key).replace('`', ""), format!("ORDER BY {order_}"));
        };
        check(&[], "(a>1 OR (a=1 AND (b>2))) AND (a<5 OR (a=5 AND (b<=6)))", "a,b");
        check(&[0, 1], "(a<1 OR (a=1 AND (b<2))) AND (a>5 OR (a=5 AND (b>=6)))", "a DESC,b DESC");
        check(&[1], "(a>1 OR (a=1 AND (b<2))) AND (a<5 OR (a=5 AND (b>=6)))", "a,b DESC");
    }

    #[test]
    fn a_target_without_that_index_sorts() {
        let mut plan = TablePlan {
            source: TableName::new("d", "t"),
            target: TableName::new("e", "t"),
            columns: Vec::new(),
            key: None,
            rows_estimate: 0,
            row_bytes: 0,
            width: 1,
            cascading_parents: Vec::new(),
            notes: Vec::new(),
        };
        let mut check = |target: TargetOrder, expected: &str| {
            let key = ChunkKey { target, ..key(&[KeyKind::Number], &[0]) };
            plan.key = Some(key.clone());
            let sql = digest(&plan, &key, Side::Target, &Range::default()).replace('`', "");
            assert_eq!(sql, format!("SELECT COUNT(*),SHA2(GROUP_CONCAT({expected}"));
            let sql = digest(&plan, &key, Side::Source, &Range::default()).replace('`', "");
            assert_eq!(sql, "SELECT COUNT(*),SHA2(GROUP_CONCAT('' SEPARATOR ''),256) FROM d.t FORCE INDEX (PRIMARY)");
        };
        check(TargetOrder::Index("u".to_owned()), "'' SEPARATOR ''),256) FROM e.t FORCE INDEX (u)");
        check(TargetOrder::Sorted("u".to_owned()), "'' ORDER BY a DESC SEPARATOR ''),256) FROM e.t FORCE INDEX (u)");
        check(TargetOrder::AnyIndex, "'' ORDER BY a DESC SEPARATOR ''),256) FROM e.t");
    }
}
