//! Rows that MariaDB's row applier could take for others. Heddle asks for them before each change, so that the channel stops instead of changing
//! the wrong row.
//!
//! MariaDB (10.1 to 11.8 at least, its own replicas included; `Rows_log_event::find_row` and `find_key`) looks for a row by the index that its
//! statistics call the best, and compares what it has found with the row that it looks for, but for a table whose first index is unique: if that one's
//! columns are not NULL in the first row that the index leads to, this row is taken. With a primary key, or a unique key without NULLs, it is the index
//! that is used. With NULLs it need not be:
//!
//! ```text
//! t (a INT NULL UNIQUE, b INT, KEY (b)): (1, 9), (2, 9)     DELETE of (2, 9) by index b: (1, 9) is gone
//! ```
//!
//! The index is the first one (unique keys come first), unless the statistics say that another leads to fewer rows for a value. By the first one the server
//! finds the right row: with values in all its columns it leads to one row, and rows with NULLs are compared. So nothing has to be asked of
//! rows as long as the statistics are for the first index, which they are unless most of its values are NULL.
//!
//! Never changes anything, and never decides which row it was: where there is another one that an index could lead to, that is an error.

use std::ops::Range;

use binlog::image::{Bitmap, RowLayout};
use binlog::{Column, ColumnKind, Corruption, TableMap, value};
use engine::compact::{Batch, Images};
use engine::failure::{Failure, FailureKind};
use wire::Row;

use super::images::Shape;
use super::table_mapping::Name;
use crate::mysql::server::errors::failed;
use crate::mysql::server::sql::{identifier, quote};

/// The indexes of one table.
#[derive(Debug)]
pub struct Lookup {
    /// For messages.
    name: String,
    /// Quoted, with its schema.
    table: String,
    schema_and_table: Name,
    indexes: Vec<Index>,
    /// The server's first index, by which it finds every row; `None`: the first one is of another kind.
    first_key: Option<String>,
}

#[derive(Debug)]
struct Index {
    unique: bool,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    /// In the row image.
    column: usize,
    /// Quoted.
    name: String,
    /// In characters, or bytes.
    prefix: Option<u32>,
    nullable: bool,
    form: Form,
}

/// How a value of a column is compared as the index compares it.
#[derive(Debug)]
enum Form {
    Number {
        unsigned: bool,
    },
    Approximate,
    Quoted,
    Timestamp,
    Ordinal,
    Bits,
    Text {
        charset: String,
    },
    Bytes,
    /// Filled up with zeros.
    FixedBytes,
    Unknown,
}

/// What the table's indexes are, if rows could be taken for others. `width`: columns of the row image.
pub fn read(
    rows: &mut dyn FnMut(&str) -> Result<Vec<Row>, Failure>,
    (schema, table): &Name,
    width: usize,
) -> Result<Option<Lookup>, Failure> {
    let sql = format!(
        "SELECT s.INDEX_NAME, s.NON_UNIQUE, s.COLUMN_NAME, s.SUB_PART, c.ORDINAL_POSITION, c.IS_NULLABLE, c.DATA_TYPE, \
         COALESCE(c.CHARACTER_SET_NAME,''), c.COLUMN_TYPE LIKE '%unsigned%' FROM information_schema.STATISTICS s \
         JOIN information_schema.COLUMNS c ON c.TABLE_SCHEMA=s.TABLE_SCHEMA AND c.TABLE_NAME=s.TABLE_NAME AND c.COLUMN_NAME=s.COLUMN_NAME \
         WHERE s.TABLE_SCHEMA={} AND s.TABLE_NAME={} AND s.INDEX_TYPE NOT IN ('FULLTEXT','SPATIAL') ORDER BY s.INDEX_NAME, s.SEQ_IN_INDEX",
        quote(schema),
        quote(table)
    );
    let mut indexes: Vec<(String, Index)> = Vec::new();
    for row in &rows(&sql)? {
        let text = |at: usize| row.required_text(at).map_err(failed);
        let position: usize = row.required(4).map_err(failed)?;
        let part = Part {
            column: position.saturating_sub(1),
            name: identifier(text(2)?),
            prefix: row.parse(3).map_err(failed)?,
            nullable: text(5)? == "YES",
            form: Form::of(text(6)?, text(7)?, text(8)? == "1"),
        };
        let name = text(0)?;
        match indexes.last_mut().filter(|(last, _)| last == name) {
            Some((_, index)) => index.parts.push(part),
            None => indexes.push((name.to_owned(), Index { unique: text(1)? == "0", parts: vec![part] })),
        }
    }
    let first_key = first_key(rows, (schema, table))?.filter(|first| {
        indexes
            .iter()
            .any(|(name, index)| name == first && index.unique && index.parts.iter().all(|part| part.column < width))
    });
    let indexes: Vec<Index> = indexes.into_iter().map(|(_, index)| index).collect();
    // The server finds every row by a unique key without NULLs, if the image has all of it.
    let certain = |index: &Index| index.unique && index.parts.iter().all(|part| !part.nullable && part.column < width);
    if indexes.len() < 2 || !indexes.iter().any(|index| index.unique) || indexes.iter().any(certain) {
        return Ok(None);
    }
    let quoted = format!("{}.{}", identifier(schema), identifier(table));
    Ok(Some(Lookup {
        name: format!("{schema}.{table}"),
        table: quoted,
        schema_and_table: (schema.clone(), table.clone()),
        indexes,
        first_key,
    }))
}

/// The first index, as the server has them in order, if it can be read by ranges.
fn first_key(
    rows: &mut dyn FnMut(&str) -> Result<Vec<Row>, Failure>,
    (schema, table): (&str, &str),
) -> Result<Option<String>, Failure> {
    let shown = rows(&format!("SHOW INDEX FROM {}.{}", identifier(schema), identifier(table)))?;
    let Some(first) = shown.first() else { return Ok(None) };
    let text = |at: usize| first.required_text(at).map_err(failed);
    Ok((text(10)? == "BTREE").then_some(text(2)?.to_owned()))
}

impl Form {
    fn of(data_type: &str, charset: &str, unsigned: bool) -> Form {
        match data_type.to_ascii_lowercase().as_str() {
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "year" => Form::Number { unsigned },
            "float" | "double" => Form::Approximate,
            "date" | "datetime" | "time" => Form::Quoted,
            "timestamp" => Form::Timestamp,
            "enum" | "set" => Form::Ordinal,
            "bit" => Form::Bits,
            "binary" => Form::FixedBytes,
            "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Form::Bytes,
            "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" if !charset.is_empty() => {
                Form::Text { charset: charset.to_owned() }
            }
            _ => Form::Unknown,
        }
    }

    /// The column's side, and the value's.
    fn sides(&self, name: &str, column: &Column, raw: &[u8]) -> Option<(String, String)> {
        let plain = || name.to_owned();
        Some(match self {
            Form::Number { unsigned } => {
                let text = value::display(column, raw, *unsigned);
                let is_number =
                    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || b"-.".contains(&byte));
                (plain(), is_number.then_some(text)?)
            }
            Form::Approximate => {
                let number = match column.real_kind() {
                    ColumnKind::FLOAT => f32::from_le_bytes(raw.try_into().ok()?).into(),
                    ColumnKind::DOUBLE => f64::from_le_bytes(raw.try_into().ok()?),
                    _ => return None,
                };
                (format!("({name}+0e0)"), format!("{number:e}"))
            }
            Form::Quoted => (plain(), quote(&value::display(column, raw, false))),
            Form::Timestamp => {
                let seconds = match column.real_kind() {
                    ColumnKind::TIMESTAMP2 => u32::from_be_bytes(raw.get(..4)?.try_into().ok()?),
                    ColumnKind::TIMESTAMP => u32::from_le_bytes(raw.try_into().ok()?),
                    _ => return None,
                };
                let text = value::display(column, raw, false);
                let fraction = text.split_once('.').map_or(String::new(), |(_, digits)| format!(".{digits}"));
                (format!("UNIX_TIMESTAMP({name})"), format!("{seconds}{fraction}"))
            }
            Form::Ordinal | Form::Bits => {
                let big_endian = matches!(self, Form::Bits);
                let push = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
                let number = if big_endian { raw.iter().fold(0, push) } else { raw.iter().rev().fold(0, push) };
                (format!("({name}+0)"), (raw.len() <= 8).then_some(number)?.to_string())
            }
            Form::Text { charset } => (plain(), format!("_{charset} {}", hexadecimal(raw))),
            Form::Bytes => (plain(), hexadecimal(raw)),
            Form::FixedBytes => (plain(), format!("RPAD({}, LENGTH({name}), X'00')", hexadecimal(raw))),
            Form::Unknown => return None,
        })
    }
}

fn hexadecimal(raw: &[u8]) -> String {
    format!("X'{}'", hex::encode_upper(raw))
}

/// A column of a row image.
#[derive(Clone, Copy)]
enum Seen<'a> {
    Absent,
    Null,
    Bytes(&'a [u8]),
}

impl Part {
    /// That the column has this value, as far as that can be said.
    fn equals(&self, map: &TableMap, values: &[Seen<'_>]) -> Option<String> {
        let raw = match values.get(self.column)? {
            Seen::Absent => return None,
            Seen::Null => return Some(format!("{} IS NULL", self.name)),
            Seen::Bytes(raw) => raw,
        };
        let (column, literal) = self.form.sides(&self.name, map.columns.get(self.column)?, raw)?;
        Some(match self.prefix {
            Some(length) => format!("LEFT({column},{length}) <=> LEFT({literal},{length})"),
            None => format!("{column} <=> {literal}"),
        })
    }

    fn is_null(&self, values: &[Seen<'_>]) -> bool {
        matches!(values.get(self.column), Some(Seen::Null))
    }

    fn is_bytes(&self, values: &[Seen<'_>]) -> bool {
        matches!(values.get(self.column), Some(Seen::Bytes(_)))
    }
}

impl Lookup {
    /// Asks whether an index could lead to another row than the one that is to be changed.
    fn question(&self, map: &TableMap, values: &[Seen<'_>]) -> String {
        let unique = || self.indexes.iter().filter(|index| index.unique);
        let filled = |index: &Index| index.parts.iter().all(|part| part.is_bytes(values));
        let all =
            |conditions: Vec<String>| if conditions.is_empty() { "TRUE".to_owned() } else { conditions.join(" AND ") };
        // Rows that are not compared: at least one of the unique keys, the first one of which it may be, has no NULL.
        let taken: Vec<String> = unique()
            .map(|index| all(index.parts.iter().map(|part| format!("{} IS NOT NULL", part.name)).collect()))
            .map(|condition| format!("({condition})"))
            .collect();
        // The right one has the same values in a unique key.
        let others: Vec<String> = unique()
            .filter(|index| filled(index))
            .filter_map(|index| index.parts.iter().map(|part| part.equals(map, values)).collect::<Option<Vec<_>>>())
            .map(|conditions| format!(" AND NOT ({})", conditions.join(" AND ")))
            .collect();
        // Where that can not be said, the right one may be the first.
        let may_be_taken = |index: &Index| !index.parts.iter().any(|part| part.is_null(values));
        let another = if others.is_empty() && unique().any(may_be_taken) { " LIMIT 1,1" } else { "" };
        // Of no use to the server is an index that begins with a column of the target's own.
        let usable = |index: &Index| index.parts.first().is_some_and(|part| part.column < values.len());
        let leads: Vec<String> = self
            .indexes
            .iter()
            .filter(|index| usable(index) && !(index.unique && filled(index)))
            .map(|index| all(index.parts.iter().filter_map(|part| part.equals(map, values)).collect()))
            .map(|condition| {
                let (table, taken, others) = (&self.table, taken.join(" OR "), others.concat());
                format!("EXISTS(SELECT 1 FROM {table} WHERE {condition} AND ({taken}){others}{another})")
            })
            .collect();
        format!("SELECT {}", if leads.is_empty() { "0".to_owned() } else { leads.join(" OR ") })
    }

    /// Whether the server now looks for rows by the first index: no other one leads to fewer rows. `rows`: asks the target.
    ///
    /// # Errors
    /// The target does not answer.
    pub fn is_by_first_key(&self, rows: impl FnOnce(String) -> Result<Vec<Row>, wire::Error>) -> Result<bool, Failure> {
        let Some(first) = &self.first_key else { return Ok(false) };
        // The numbers of the engine, which the row applier goes by; not those of ANALYZE … PERSISTENT. They are of the last column of an index, and of the rows.
        let sql = format!(
            "SET STATEMENT use_stat_tables='NEVER' FOR SELECT s.INDEX_NAME, COALESCE(s.CARDINALITY,0), COALESCE(t.TABLE_ROWS,0), s.SEQ_IN_INDEX \
             FROM information_schema.STATISTICS s JOIN information_schema.TABLES t ON t.TABLE_SCHEMA=s.TABLE_SCHEMA AND t.TABLE_NAME=s.TABLE_NAME \
             WHERE s.TABLE_SCHEMA={} AND s.TABLE_NAME={}",
            quote(&self.schema_and_table.0),
            quote(&self.schema_and_table.1)
        );
        let mut of_first = (0, 0);
        let mut of_others = 0;
        let mut table_rows = 0;
        for row in &rows(sql).map_err(failed)? {
            let number = |at: usize| row.required::<u64>(at).map_err(failed);
            let (values, part) = (number(1)?, number(3)?);
            table_rows = number(2)?;
            if row.required_text(0).map_err(failed)? == first {
                of_first = of_first.max((part, values));
            } else {
                of_others = of_others.max(values);
            }
        }
        Ok(leads_to_fewest(of_first.1, of_others, table_rows))
    }

    /// The statistics were for the first index when they were asked for, and are not any more.
    pub fn has_changed(&self) -> Failure {
        let message = format!("the statistics of {}'s indexes have changed while its rows were changed", self.name);
        Failure::new(FailureKind::Conflict, message)
    }

    fn ambiguous(&self) -> Failure {
        let message = format!(
            "MariaDB could take another row of {} for the one that the source changed: the source's rows have no key without NULLs, and an index \
             that the server may look by leads to several",
            self.name
        );
        Failure::new(FailureKind::Refused, message).remedy(
            "drop the indexes that are not unique on the target, or give the table a primary key of columns that the source has, too; then run the \
             same command again. MariaDB's own replicas may change the wrong row here",
        )
    }
}

/// Whether no other index leads to fewer rows than the first one. The numbers of values are quotients without their fractions (rows / rows for each value), so
/// equal ones say that the numbers of rows for each value are equal only where they are large enough.
fn leads_to_fewest(of_first: u64, of_others: u64, table_rows: u64) -> bool {
    of_first > of_others || of_first == of_others && of_first.saturating_mul(of_first) >= table_rows && of_first > 0
}

/// Changes rows one after the other, each after its question. `ask_and_apply` returns false if the server could take another row for it.
pub fn one_by_one(
    lookup: &Lookup,
    batch: &Batch<'_>,
    ask_and_apply: &mut dyn FnMut(&str, &Batch<'_>) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let shape = Shape::of(batch, batch.before_columns);
    let corrupt = |error: Corruption| Failure::new(FailureKind::Refused, format!("a row of {}: {error}", lookup.name));
    for images in &batch.rows {
        let joined = [images.before, images.after].concat();
        let mut at = 0;
        while let Some(row) = shape.row(&joined, at).map_err(corrupt)? {
            at = row.after.end;
            let image = |place: Range<usize>| joined.get(place).unwrap_or_default();
            let (before, after) = (image(row.before), image(row.after));
            let values = values(shape.layout, batch.before_columns, before).map_err(corrupt)?;
            let question = lookup.question(batch.map, &values);
            if !ask_and_apply(&question, &batch.with_row(Images { before, after }))? {
                return Err(lookup.ambiguous());
            }
        }
    }
    Ok(())
}

fn values<'a>(layout: &'a RowLayout, present: &'a Bitmap, image: &'a [u8]) -> Result<Vec<Seen<'a>>, Corruption> {
    let mut values = vec![Seen::Absent; layout.width()];
    for column in layout.columns(present, image) {
        let column = column?;
        if let Some(slot) = values.get_mut(column.column) {
            *slot = column.value.map_or(Seen::Null, Seen::Bytes);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_index_is_used_unless_another_leads_to_fewer_rows() {
        for (of_first, of_others, table_rows, expected) in [
            // Each value once, and the other index shared.
            (3, 1, 3, true),
            (300, 300, 300, true),
            // Most values are NULL.
            (4, 301, 303, false),
            // Quotients that may hide a difference.
            (2, 2, 5, false),
            (0, 0, 0, false),
        ] {
            assert_eq!(
                leads_to_fewest(of_first, of_others, table_rows),
                expected,
                "{of_first} {of_others} {table_rows}"
            );
        }
    }
}
