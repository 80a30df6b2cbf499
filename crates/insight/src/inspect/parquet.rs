//! One row a transaction, as Parquet: for DuckDB, Spark, ClickHouse.
//!
//! Files of a bounded number of rows, `transactions-00000.parquet` and so on. Not compressed beyond dictionaries: what
//! reads such files compresses better when it rewrites them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use engine::quality::Link;
use engine::survey::Sink;
use engine::survey::totals::TransactionFacts;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// Rows of a row group and of a file.
const GROUP_ROWS: usize = 100_000;
const FILE_ROWS: usize = 50_000_000;

/// Name, type and whether it may be null, in the order of [`Writer::transaction`].
const SCHEMA: &str = "message transaction {
    required int64 number;
    required byte_array file (UTF8);
    required int64 position;
    required int64 end_position;
    optional byte_array gtid (UTF8);
    required int64 commit_time (TIMESTAMP(MICROS,true));
    required int64 duration_seconds;
    required int64 exec_seconds;
    required int64 bytes;
    required int64 unpacked_bytes;
    required int64 inserts;
    required int64 updates;
    required int64 deletes;
    required int64 tables;
    optional int64 last_committed;
    optional int64 sequence_number;
    optional int64 commit_id;
    required int64 domain;
    optional int64 session;
    optional byte_array barrier (UTF8);
    optional byte_array statement (UTF8);
    optional int64 source_parent;
    optional int64 writeset_parent;
    optional int64 writeset_session_parent;
    optional int64 exact_level;
    optional byte_array exact_waits_for (UTF8);
}";

enum Column {
    Number(Vec<i64>),
    MaybeNumber(Vec<i64>, Vec<i16>),
    Text(Vec<ByteArray>),
    MaybeText(Vec<ByteArray>, Vec<i16>),
}

/// Writes what the sums see.
pub struct Writer<'a> {
    dir: PathBuf,
    /// The file of the last transaction, and its name.
    log: (Option<u32>, ByteArray),
    columns: Vec<Column>,
    rows: usize,
    file: Option<SerializedFileWriter<File>>,
    file_number: usize,
    file_rows: usize,
    failed: Option<anyhow::Error>,
    enough: &'a AtomicBool,
}

impl<'a> Writer<'a> {
    /// Into a folder that is new or empty. After a failure `enough` is set.
    pub fn new(dir: &Path, enough: &'a AtomicBool) -> Result<Self> {
        let at = || format!("--parquet {}", dir.display());
        std::fs::create_dir_all(dir).with_context(at)?;
        if std::fs::read_dir(dir).with_context(at)?.next().is_some() {
            bail!("{}: the folder is not empty; name a new one", at());
        }
        Ok(Self {
            dir: dir.to_owned(),
            log: (None, ByteArray::new()),
            columns: columns()?,
            rows: 0,
            file: None,
            file_number: 0,
            file_rows: 0,
            failed: None,
            enough,
        })
    }

    /// Ends the last file.
    pub fn finish(mut self) -> Result<()> {
        if self.failed.is_none() {
            let done = self.write_group().and_then(|()| self.close());
            self.failed = done.err();
        }
        match self.failed {
            Some(error) => Err(error).with_context(|| format!("--parquet {}", self.dir.display())),
            None => Ok(()),
        }
    }

    fn write_group(&mut self) -> Result<()> {
        if self.file.is_none() {
            let schema = Arc::new(parse_message_type(SCHEMA)?);
            let path = self.dir.join(format!("transactions-{:05}.parquet", self.file_number));
            let file = File::create(&path).with_context(|| path.display().to_string())?;
            let properties = Arc::new(WriterProperties::builder().build());
            self.file = Some(SerializedFileWriter::new(file, schema, properties)?);
            self.file_number += 1;
            self.file_rows = 0;
        }
        let columns = std::mem::replace(&mut self.columns, columns()?);
        let rows = std::mem::take(&mut self.rows);
        let Some(file) = &mut self.file else { return Ok(()) };
        if rows > 0 {
            write(file, &columns)?;
            self.file_rows += rows;
        }
        if self.file_rows >= FILE_ROWS {
            self.close()?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        if let Some(file) = self.file.take() {
            file.close()?;
        }
        Ok(())
    }
}

fn write(file: &mut SerializedFileWriter<File>, columns: &[Column]) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for column in columns {
        let Some(mut writer) = group.next_column()? else { break };
        match column {
            Column::Number(values) => writer.typed::<Int64Type>().write_batch(values, None, None)?,
            Column::MaybeNumber(values, levels) => {
                writer.typed::<Int64Type>().write_batch(values, Some(levels), None)?
            }
            Column::Text(values) => writer.typed::<ByteArrayType>().write_batch(values, None, None)?,
            Column::MaybeText(values, levels) => {
                writer.typed::<ByteArrayType>().write_batch(values, Some(levels), None)?
            }
        };
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

/// Empty columns as the schema has them.
fn columns() -> Result<Vec<Column>> {
    let schema = parse_message_type(SCHEMA)?;
    let columns = schema.get_fields().iter().map(|field| {
        let text = field.get_physical_type() == parquet::basic::Type::BYTE_ARRAY;
        match (text, field.is_optional()) {
            (false, false) => Column::Number(Vec::new()),
            (false, true) => Column::MaybeNumber(Vec::new(), Vec::new()),
            (true, false) => Column::Text(Vec::new()),
            (true, true) => Column::MaybeText(Vec::new(), Vec::new()),
        }
    });
    Ok(columns.collect())
}

/// One value on its way into a column.
enum Cell {
    Number(Option<u64>),
    Text(Option<ByteArray>),
}

#[expect(clippy::unreachable, reason = "the schema and the list of cells are both in this file")]
fn push(column: &mut Column, cell: Cell) {
    match (column, cell) {
        (Column::Number(values), Cell::Number(value)) => values.push(value.unwrap_or(0) as i64),
        (Column::MaybeNumber(values, levels), Cell::Number(value)) => {
            levels.push(i16::from(value.is_some()));
            values.extend(value.map(|value| value as i64));
        }
        (Column::Text(values), Cell::Text(value)) => values.push(value.unwrap_or_default()),
        (Column::MaybeText(values, levels), Cell::Text(value)) => {
            levels.push(i16::from(value.is_some()));
            values.extend(value);
        }
        _ => unreachable!("a cell of another type than its column: the schema and the list of cells differ"),
    }
}

impl Sink for Writer<'_> {
    fn transaction(&mut self, seen: &TransactionFacts<'_>) {
        if self.failed.is_some() {
            return;
        }
        let record = seen.record;
        let text = |text: &str| ByteArray::from(text.as_bytes().to_vec());
        if self.log.0 != Some(seen.file) {
            self.log = (Some(seen.file), text(seen.file_name));
        }
        let (number, maybe) = (|value: u64| Cell::Number(Some(value)), Cell::Number);
        let mut tables: Vec<_> = seen.uses.iter().map(|table_use| table_use.table).collect();
        tables.sort_unstable();
        tables.dedup();
        let keyed = seen.placed.number > 0;
        let waits_for = match seen.placed.link {
            Link::Free => None,
            link => Some(crate::inspect::report::build::link_name(link)),
        };
        let tagged = record.tags.sequence_number > 0;
        let cells = [
            number(seen.number),
            Cell::Text(Some(self.log.1.clone())),
            number(record.start),
            number(record.end),
            Cell::Text(record.gtid.as_ref().map(|gtid| text(&gtid.to_string()))),
            number(record.commit_time_us),
            number(seen.measured.open_seconds.into()),
            number(seen.measured.exec_us / 1_000_000),
            number(record.bytes),
            number(record.unpacked_bytes),
            number(record.inserts),
            number(record.updates),
            number(record.deletes),
            number(tables.len() as u64),
            maybe(tagged.then_some(record.tags.last_committed as u64)),
            maybe(tagged.then_some(record.tags.sequence_number as u64)),
            maybe(record.tags.commit_id),
            number(record.tags.domain.into()),
            maybe((record.tags.session != 0).then_some(record.tags.session.into())),
            Cell::Text(record.barrier.map(|cause| text(cause.as_str()))),
            Cell::Text(record.text.as_deref().map(text)),
            maybe(seen.source_parent),
            maybe(seen.writeset.map(|tagged| tagged.parent)),
            maybe(seen.session.map(|tagged| tagged.parent)),
            maybe(keyed.then_some(seen.placed.level.into())),
            Cell::Text(waits_for.as_deref().map(text)),
        ];
        self.columns.iter_mut().zip(cells).for_each(|(column, cell)| push(column, cell));
        self.rows += 1;
        if self.rows >= GROUP_ROWS
            && let Err(error) = self.write_group()
        {
            self.failed = Some(error);
            self.enough.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::quality::exact::ChainPosition;
    use engine::survey::Record;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    #[test]
    fn what_is_written_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let enough = AtomicBool::new(false);
        let path = dir.path().join("out");
        let mut writer = Writer::new(&path, &enough).unwrap();
        let tables = hashbrown::HashMap::default();
        for number in 1..=3_u64 {
            let record = Record { start: 4 * number, inserts: number, ..Record::default() };
            writer.transaction(&TransactionFacts {
                number,
                file: 0,
                file_name: &"binlog.000001".into(),
                record: &record,
                writes: &[],
                reads: &[],
                server: &[],
                measured: engine::survey::MeasuredTransaction::default(),
                uses: &[],
                tables: &tables,
                placed: ChainPosition::default(),
                follows: &[],
                source_parent: (number > 1).then_some(number - 1),
                writeset: None,
                session: None,
            });
        }
        writer.finish().unwrap();
        let file = File::open(path.join("transactions-00000.parquet")).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 3);
        let rows: Vec<String> = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        assert!(rows[2].contains("number: 3") && rows[2].contains("binlog.000001"), "{rows:?}");
        assert!(rows[0].contains("source_parent: null") && rows[1].contains("source_parent: 1"), "{rows:?}");
        // Never over files that are there.
        assert!(Writer::new(&path, &enough).is_err());
    }
}
