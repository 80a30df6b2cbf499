//! Columns and unique keys of tables, read from `information_schema`: of one table, or of many with the same three queries.

use std::collections::HashMap;

use binlog::Bitmap;
use engine::failure::Failure;
use engine::keys::{self, KeyClass};
use engine::schema::{BarrierReason, Column, KeyPart, TableOrderCause, TimedColumn, UniqueKey};
use wire::Row;

use super::{history, periods};
use crate::mysql::rows::row_end::{self, RowEnd};
use crate::mysql::rows::sql::table::ColumnType;
use crate::mysql::server::errors::failed;
use crate::mysql::server::sql::identifier;

/// One table, without its relations.
#[derive(Debug, Default)]
pub struct Definition {
    pub columns: Vec<Column>,
    /// Their types, for rows as SQL.
    pub types: Vec<ColumnType>,
    /// The one that identifies a row first.
    pub unique_keys: Vec<UniqueKey>,
    pub transactional: bool,
    /// Its engine keeps nothing.
    pub swallows_rows: bool,
    pub barrier: Option<BarrierReason>,
    /// MariaDB's.
    pub is_versioned: bool,
    /// Of one that is versioned.
    pub row_end: Option<RowEnd>,
    pub cause: Option<TableOrderCause>,
    /// Columns of the row image that `information_schema.COLUMNS` does not show: MariaDB's hidden hash for each unique key that
    /// is too long for an index, and the two ends of a row's time with system versioning.
    pub hidden_columns: usize,
    /// TIME, DATETIME and TIMESTAMP columns with fractional digits.
    pub fractions: Vec<usize>,
    /// Columns whose value may follow from the time of a change.
    pub timed: Vec<TimedColumn>,
    /// MySQL's JSON columns.
    pub json: Vec<usize>,
    /// DATE, DATETIME and TIMESTAMP columns without NULLs.
    instants: Vec<usize>,
    /// A unique key can not be expressed in columns.
    pub functional: bool,
    /// The first column is `my_row_id`, and not visible.
    has_generated_key: bool,
    /// Values, or indexes, are generated from other columns.
    pub works_out: bool,
    /// To change or delete a row the server may need more of it than its primary key and the changed columns: another engine than InnoDB,
    /// generated values or indexes, a full-text index, row versions.
    takes_whole_rows: bool,
}

/// Runs a query.
type Rows<'a> = &'a mut dyn FnMut(&str) -> Result<Vec<Row>, Failure>;
/// By schema and name.
type Definitions = HashMap<(String, String), Definition>;

/// The tables at `place`, a condition on `TABLE_SCHEMA` and `TABLE_NAME`, by schema and name. `periods`: there may be keys `WITHOUT OVERLAPS`.
pub fn read(rows: Rows<'_>, place: &str, periods: bool) -> Result<Definitions, Failure> {
    let mut found = read_tables(rows, place)?;
    if found.is_empty() {
        return Ok(found);
    }
    read_columns(rows, place, &mut found)?;
    read_keys(rows, place, &mut found)?;
    for (name, definition) in &mut found {
        definition.judge();
        definition.read_declaration(rows, name, periods)?;
    }
    Ok(found)
}

fn read_tables(rows: Rows<'_>, place: &str) -> Result<Definitions, Failure> {
    let mut found = Definitions::new();
    let tables =
        format!("SELECT TABLE_NAME, ENGINE, TABLE_TYPE, TABLE_SCHEMA FROM information_schema.TABLES WHERE {place}");
    for row in &rows(&tables)? {
        let text = |index: usize| row.text(index).map_err(failed);
        let (engine, kind) = (text(1)?.unwrap_or("").to_ascii_uppercase(), text(2)?.unwrap_or(""));
        let is_versioned = kind == "SYSTEM VERSIONED";
        let definition = Definition {
            swallows_rows: engine == "BLACKHOLE",
            transactional: matches!(engine.as_str(), "INNODB" | "ROCKSDB" | "TOKUDB" | "NDBCLUSTER" | "BLACKHOLE"),
            barrier: (kind == "SEQUENCE").then_some(BarrierReason::Sequence),
            is_versioned,
            hidden_columns: if is_versioned { 2 } else { 0 },
            takes_whole_rows: engine != "INNODB" || kind != "BASE TABLE",
            ..Definition::default()
        };
        found.insert(name(row, 3)?, definition);
    }
    Ok(found)
}

fn read_columns(rows: Rows<'_>, place: &str, found: &mut Definitions) -> Result<(), Failure> {
    let columns = format!(
        "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COALESCE(CHARACTER_SET_NAME,''), COALESCE(COLLATION_NAME,''), \
         TABLE_SCHEMA, EXTRA, COLUMN_DEFAULT FROM information_schema.COLUMNS WHERE {place} ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
    );
    for row in &rows(&columns)? {
        if let Some(definition) = found.get_mut(&name(row, 6)?) {
            definition.add_column(row)?;
        }
    }
    Ok(())
}

fn read_keys(rows: Rows<'_>, place: &str, found: &mut Definitions) -> Result<(), Failure> {
    let keys = format!(
        "SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME, SUB_PART, INDEX_TYPE, SEQ_IN_INDEX, TABLE_SCHEMA, NON_UNIQUE \
         FROM information_schema.STATISTICS WHERE {place} AND (NON_UNIQUE=0 OR COLUMN_NAME IS NULL OR INDEX_TYPE='FULLTEXT') \
         ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
    );
    for row in &rows(&keys)? {
        if let Some(definition) = found.get_mut(&name(row, 6)?) {
            definition.works_out |= row.text(2).map_err(failed)?.is_none();
            if required(row, 7)? == "0" {
                definition.key_part(row)?;
            } else {
                definition.takes_whole_rows = true;
            }
        }
    }
    Ok(())
}

/// What `SHOW CREATE TABLE` says.
fn declaration(rows: Rows<'_>, (schema, table): &(String, String)) -> Result<Option<String>, Failure> {
    match rows(&format!("SHOW CREATE TABLE {}.{}", identifier(schema), identifier(table))) {
        Ok(rows) => rows.first().map(|row| required(row, 1).map(str::to_owned)).transpose(),
        Err(_) => Ok(None),
    }
}

/// A table's name is in the first column.
fn name(row: &Row, schema: usize) -> Result<(String, String), Failure> {
    Ok((required(row, schema)?.to_owned(), required(row, 0)?.to_owned()))
}

fn required(row: &Row, index: usize) -> Result<&str, Failure> {
    row.required_text(index).map_err(failed)
}

/// `column_type` as `information_schema` has it.
fn has_fraction(column_type: &str) -> bool {
    let lower = column_type.to_ascii_lowercase();
    ["time(", "datetime(", "timestamp("].iter().any(|name| lower.starts_with(name)) && !lower.contains("(0)")
}

/// `column_type` as `information_schema` has it.
fn is_instant(column_type: &str) -> bool {
    let lower = column_type.to_ascii_lowercase();
    lower.starts_with("date") || lower.starts_with("timestamp")
}

/// `extra` as `information_schema` has it: also MySQL's `DEFAULT_GENERATED`, which is a default.
fn is_worked_out(extra: &str) -> bool {
    let upper = extra.to_ascii_uppercase();
    ["VIRTUAL", "STORED", "PERSISTENT"].iter().any(|word| upper.contains(word))
}

/// `extra` of a column `my_row_id` as `information_schema` has it.
fn is_generated_key(extra: &str) -> bool {
    let upper = extra.to_ascii_uppercase();
    upper.contains("INVISIBLE") && upper.contains("AUTO_INCREMENT")
}

/// `default` and `extra` as `information_schema` has them. MySQL 8 says of a default that it is an expression, MariaDB's has a parenthesis then (as a literal may,
/// which does no harm), older ones have no other expression than this.
fn follows_time(default: &str, extra: &str) -> bool {
    let (default, extra) = (default.to_ascii_lowercase(), extra.to_ascii_lowercase());
    default.contains('(')
        || default.starts_with("current_timestamp")
        || ["default_generated", "on update"].iter().any(|word| extra.contains(word))
}

fn column(row: &Row) -> Result<Column, Failure> {
    let kind = required(row, 2)?;
    Ok(Column {
        name: required(row, 1)?.to_owned(),
        unsigned: kind.contains("unsigned"),
        nullable: required(row, 3)? == "YES",
        key_class: keys::classify(&keys::DataType::from_column_type(kind), required(row, 4)?, required(row, 5)?),
    })
}

impl Definition {
    /// The next column, in the order of the table.
    fn add_column(&mut self, row: &Row) -> Result<(), Failure> {
        let (at, kind) = (self.columns.len(), required(row, 2)?);
        if has_fraction(kind) {
            self.fractions.push(at);
        }
        if kind.eq_ignore_ascii_case("json") {
            self.json.push(at);
        }
        if is_instant(kind) && required(row, 3)? == "NO" {
            self.instants.push(at);
        }
        let extra = row.text(7).map_err(failed)?.unwrap_or_default();
        // Of a binary column it may be any bytes.
        let default = String::from_utf8_lossy(row.get(8).unwrap_or_default());
        let is_worked_out = is_worked_out(extra);
        self.works_out |= is_worked_out;
        self.takes_whole_rows |= is_worked_out;
        self.has_generated_key |= at == 0 && required(row, 1)? == "my_row_id" && is_generated_key(extra);
        if follows_time(&default, extra) {
            let on_update = extra.to_ascii_lowercase().contains("on update");
            self.timed.push(TimedColumn { column: at, on_update });
        }
        self.types.push(ColumnType {
            text: kind.to_ascii_lowercase(),
            charset: required(row, 4)?.to_owned(),
            collation: required(row, 5)?.to_owned(),
            is_generated: is_worked_out,
        });
        self.columns.push(column(row)?);
        Ok(())
    }

    /// What only `SHOW CREATE TABLE` says: keys `WITHOUT OVERLAPS` (`periods`: there may be some), and how rows are versioned.
    fn read_declaration(&mut self, rows: Rows<'_>, name: &(String, String), periods: bool) -> Result<(), Failure> {
        let may_have_periods = periods && self.may_have_periods();
        if !may_have_periods && !self.is_versioned {
            return Ok(());
        }
        let declaration = declaration(rows, name)?;
        let declaration = declaration.as_deref();
        // A table that is gone meanwhile, or does not show itself, is taken for one that does: that only makes more transactions wait for each other.
        if may_have_periods && declaration.is_none_or(periods::are_declared) {
            self.add_equalities();
        }
        if self.is_versioned {
            self.row_end = declaration.map(|text| row_end::of_table(text, self.columns.len()));
            self.barrier = declaration.map_or(Some(BarrierReason::TransactionHistory), history::needs_barrier);
        }
        Ok(())
    }

    /// Rows of one index come one after the other.
    fn key_part(&mut self, row: &Row) -> Result<(), Failure> {
        let index = required(row, 1)?;
        let column = row.text(2).map_err(failed)?;
        let prefix: Option<u32> = row.parse(3).map_err(failed)?;
        let first: u32 = row.required(5).map_err(failed)?;
        if first == 1 && required(row, 4)? == "HASH" {
            self.hidden_columns += 1;
        }
        let Some(column) = column.and_then(|name| self.columns.iter().position(|column| column.name == name)) else {
            self.functional = true;
            return Ok(());
        };
        let part = KeyPart { column, prefix };
        match self.unique_keys.last_mut().filter(|key| key.name == index) {
            Some(key) => key.parts.push(part),
            None => self.unique_keys.push(UniqueKey { name: index.to_owned(), parts: vec![part] }),
        }
        Ok(())
    }

    /// As MySQL sees it: whoever makes such a column, or makes it visible.
    pub fn has_generated_key(&self) -> bool {
        self.has_generated_key
    }

    /// See [`engine::schema::Table::lookup_columns`].
    pub fn lookup_columns(&self) -> Option<Bitmap> {
        let key = self.unique_keys.first().filter(|key| key.name == "PRIMARY")?;
        if self.takes_whole_rows || self.functional || self.hidden_columns > 0 {
            return None;
        }
        Some(Bitmap::from_fn(self.columns.len(), |column| key.parts.iter().any(|part| part.column == column)))
    }

    /// Columns and unique keys with the two ends of a row's time, where the table has no columns of its own for them: in the row image they come after all
    /// others, and each unique key has the second one, too (MariaDB's manual, "System-Versioned Tables").
    pub fn hidden_period(&self) -> Option<(Vec<Column>, Vec<UniqueKey>)> {
        let shown = self.columns.len();
        self.row_end.filter(|end| end.column == shown + 1 && self.hidden_columns == 2)?;
        let instant = |name: &str| Column {
            name: name.to_owned(),
            unsigned: false,
            nullable: false,
            key_class: keys::classify(&keys::DataType::from_column_type("timestamp(6)"), "", ""),
        };
        let mut columns = self.columns.clone();
        columns.extend(["row_start", "row_end"].map(instant));
        let mut unique_keys = self.unique_keys.clone();
        for key in &mut unique_keys {
            key.parts.push(KeyPart { column: shown + 1, prefix: None });
        }
        Some((columns, unique_keys))
    }

    fn may_have_periods(&self) -> bool {
        self.unique_keys.iter().any(|key| self.before_period(key).is_some())
    }

    fn before_period<'a>(&self, key: &'a UniqueKey) -> Option<&'a [KeyPart]> {
        periods::before_period(&key.parts, |column| self.instants.contains(&column))
    }

    /// Behind all others, as none of them identifies a row.
    fn add_equalities(&mut self) {
        let equality = |key: &UniqueKey| Some(periods::equality(key, self.before_period(key)?));
        let equalities: Vec<UniqueKey> = self.unique_keys.iter().filter_map(equality).collect();
        self.unique_keys.extend(equalities);
    }

    /// Finds out which key identifies a row, and whether keys tell which transactions may run in parallel.
    fn judge(&mut self) {
        let columns = &self.columns;
        let is_nullable = |key: &UniqueKey| {
            key.parts.iter().any(|part| columns.get(part.column).is_none_or(|column| column.nullable))
        };
        self.unique_keys.sort_by_key(|key| (key.name != "PRIMARY", is_nullable(key)));
        let identified = self.unique_keys.first().is_some_and(|key| !is_nullable(key));
        let coarse = self
            .unique_keys
            .iter()
            .flat_map(|key| &key.parts)
            .any(|part| columns.get(part.column).is_none_or(|column| column.key_class == KeyClass::Coarse));
        self.cause = if !self.transactional {
            Some(TableOrderCause::NotTransactional)
        } else if self.functional {
            Some(TableOrderCause::FunctionalKey)
        } else if !identified {
            Some(TableOrderCause::NoUniqueKey)
        } else if coarse {
            Some(TableOrderCause::KeyNotNormalised)
        } else {
            None
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(change: impl FnOnce(&mut Definition)) -> Option<Vec<usize>> {
        let column = |name: &str| Column {
            name: name.to_owned(),
            unsigned: false,
            nullable: false,
            key_class: KeyClass::Coarse,
        };
        let parts = [2, 0].map(|column| KeyPart { column, prefix: None }).to_vec();
        let mut definition = Definition {
            columns: ["a", "b", "c", "d"].map(column).to_vec(),
            unique_keys: vec![UniqueKey { name: "PRIMARY".to_owned(), parts }],
            transactional: true,
            ..Definition::default()
        };
        change(&mut definition);
        definition.lookup_columns().map(|columns| columns.iter().collect())
    }

    #[test]
    fn a_primary_key_is_enough_where_nothing_else_is_needed() {
        assert_eq!(lookup(|_| ()), Some(vec![0, 2]));
        assert_eq!(lookup(|table| table.unique_keys.clear()), None);
        assert_eq!(lookup(|table| table.unique_keys.iter_mut().for_each(|key| key.name = "u".to_owned())), None);
        assert_eq!(lookup(|table| table.takes_whole_rows = true), None);
        assert_eq!(lookup(|table| table.hidden_columns = 1), None);
        assert_eq!(lookup(|table| table.functional = true), None);
    }

    #[test]
    fn keys_of_a_table_whose_period_is_not_shown() {
        let key =
            |name: &str, column| UniqueKey { name: name.to_owned(), parts: vec![KeyPart { column, prefix: None }] };
        let column = Column { name: "a".to_owned(), unsigned: false, nullable: false, key_class: KeyClass::Coarse };
        let mut definition = Definition {
            columns: vec![column; 2],
            unique_keys: vec![key("PRIMARY", 0), key("u", 1)],
            hidden_columns: 2,
            row_end: Some(RowEnd { column: 3 }),
            ..Definition::default()
        };
        let (columns, keys) = definition.hidden_period().unwrap();
        assert_eq!(columns.len(), 4);
        let parts: Vec<Vec<usize>> =
            keys.iter().map(|key| key.parts.iter().map(|part| part.column).collect()).collect();
        assert_eq!(parts, [vec![0, 3], vec![1, 3]]);
        definition.row_end = Some(RowEnd { column: 1 });
        assert!(definition.hidden_period().is_none());
    }

    #[test]
    fn defaults_that_may_follow_from_the_time() {
        for (default, extra) in [
            ("CURRENT_TIMESTAMP", ""),
            ("CURRENT_TIMESTAMP(6)", "DEFAULT_GENERATED"),
            ("current_timestamp()", ""),
            ("(curdate() + interval 1 day)", ""),
            ("now()", "DEFAULT_GENERATED"),
            ("", "on update CURRENT_TIMESTAMP"),
            ("NULL", "on update current_timestamp()"),
        ] {
            assert!(follows_time(default, extra), "{default} {extra}");
        }
        for (default, extra) in [("", ""), ("NULL", ""), ("'text'", ""), ("7", "INVISIBLE"), ("", "auto_increment")] {
            assert!(!follows_time(default, extra), "{default} {extra}");
        }
    }

    #[test]
    fn values_that_are_worked_out() {
        for extra in ["VIRTUAL", "STORED GENERATED", "PERSISTENT", "VIRTUAL GENERATED INVISIBLE", "stored generated"] {
            assert!(is_worked_out(extra), "{extra}");
        }
        for extra in ["", "auto_increment", "DEFAULT_GENERATED on update CURRENT_TIMESTAMP", "INVISIBLE"] {
            assert!(!is_worked_out(extra), "{extra}");
        }
    }
}
