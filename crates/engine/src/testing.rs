//! What the tests of several modules share: tables, logs about them as real events, the transactions in those, and a
//! model of a database that checks every row at once, as InnoDB does.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use binlog::encode::{self, FormatSpec, Head, RowsSpec, TableMapSpec};
use binlog::{
    Bitmap, Checksum, ColumnKind, Event, Flavour, FormatDescription, MariaDbGtid, MySqlGtid, RowsKind, TableMap,
    XaPrepare, XaXid,
};
use bytes::Bytes;

use crate::compact::{Batch, Images};
use crate::intake::Keying;
use crate::intake::{AssembleError, Assembler};
use crate::keys::{DataType, Fold, KeyClass, classify};
use crate::schema::{
    Catalogue, CatalogueError, Column, KeyPart, Leftovers, Table, TableId, TableOrderCause, UniqueKey,
};
use crate::transaction::Transaction;
use binlog::LogPosition;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    Null,
    Int(i32),
    Text(String),
}

pub type Row = Vec<Value>;

pub fn int(value: i32) -> Value {
    Value::Int(value)
}

pub fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// A table on both sides: as the log shows it and as the catalogue does.
#[derive(Clone, Debug)]
pub struct TestTable {
    pub def: Table,
    pub columns: Vec<binlog::Column>,
}

impl TestTable {
    /// `columns` such as `id:int a:int? t:ci?`: name, type (`int`, `ci`, `bin`, `json`), `?` for nullable. `keys` are the
    /// unique ones, the identifying first.
    pub fn new(id: u32, name: &str, columns: &str, keys: &[&[usize]]) -> Self {
        let mut logged = Vec::new();
        let mut defined = Vec::new();
        for column in columns.split_whitespace() {
            let (column, nullable) = (column.trim_end_matches('?'), column.ends_with('?'));
            let (column, kind) = column.split_once(':').unwrap();
            let text = |collation| classify(&DataType::VarChar, "utf8mb4", collation);
            let (kind, meta, key_class) = match kind {
                "int" => (ColumnKind::LONG, 0, classify(&DataType::Int { bytes: 4, unsigned: false }, "", "")),
                "ci" => (ColumnKind::VARCHAR, 200, text("utf8mb4_general_ci")),
                "bin" => (ColumnKind::VARCHAR, 200, text("utf8mb4_bin")),
                "json" => (ColumnKind::JSON, 4, classify(&DataType::Json, "", "")),
                other => panic!("no type {other}"),
            };
            logged.push(binlog::Column::new(kind, meta, nullable));
            defined.push(Column { name: column.to_owned(), unsigned: false, nullable, key_class });
        }
        let unique_keys: Vec<UniqueKey> = keys
            .iter()
            .enumerate()
            .map(|(index, parts)| UniqueKey {
                name: if index == 0 { "PRIMARY".to_owned() } else { format!("u{index}") },
                parts: parts.iter().map(|&column| KeyPart { column, prefix: None }).collect(),
            })
            .collect();
        let identified = unique_keys.first().is_some_and(|key| key.parts.iter().all(|p| !defined[p.column].nullable));
        let coarse = keys.concat().iter().any(|&column| defined[column].key_class == KeyClass::Coarse);
        let order_by_table = match (identified, coarse) {
            (false, _) => Some(TableOrderCause::NoUniqueKey),
            (true, true) => Some(TableOrderCause::KeyNotNormalised),
            (true, false) => None,
        };
        let def = Table {
            id: TableId(id),
            schema: "shop".to_owned(),
            name: name.to_owned(),
            columns: defined,
            unique_keys,
            foreign_keys: Vec::new(),
            cascades_to: Vec::new(),
            cascade_columns: Vec::new(),
            has_relations: false,
            is_referenced: false,
            transactional: true,
            works_out: false,
            barrier: None,
            timed: Vec::new(),
            lookup_columns: None,
            order_by_table,
            leftovers: Leftovers::None,
        };
        Self { def, columns: logged }
    }

    fn map_id(&self) -> u64 {
        u64::from(self.def.id.0) + 100
    }

    pub fn image(&self, present: &Bitmap, row: &Row) -> Vec<u8> {
        let mut nulls = vec![0_u8; present.count().div_ceil(8)];
        let mut values = Vec::new();
        for (ordinal, column) in present.iter().enumerate() {
            match &row[column] {
                Value::Null => nulls[ordinal / 8] |= 1 << (ordinal % 8),
                Value::Int(value) => values.extend(value.to_le_bytes()),
                Value::Text(value) => {
                    let length = value.len() as u32;
                    let prefix = if self.columns[column].kind == ColumnKind::JSON { 4 } else { 1 };
                    values.extend(&length.to_le_bytes()[..prefix]);
                    values.extend(value.bytes());
                }
            }
        }
        nulls.extend(values);
        nulls
    }
}

/// The values of an image; columns that are not in it are NULL.
pub fn decode(map: &TableMap, present: &Bitmap, image: &[u8]) -> Row {
    let mut row = vec![Value::Null; map.columns.len()];
    for column in binlog::table_map::columns(map, present, image) {
        let column = column.unwrap();
        if let Some(bytes) = column.value {
            row[column.column] = match map.columns[column.column].kind {
                ColumnKind::LONG => Value::Int(i32::from_le_bytes(bytes.try_into().unwrap())),
                _ => Value::Text(String::from_utf8(bytes.to_vec()).unwrap()),
            };
        }
    }
    row
}

/// One change: before (empty for an insert) and after (empty for a delete).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    pub kind: RowsKind,
    pub before: Row,
    pub after: Row,
}

pub fn insert(after: Row) -> RowChange {
    RowChange { kind: RowsKind::Write, before: Vec::new(), after }
}

pub fn update(before: Row, after: Row) -> RowChange {
    RowChange { kind: RowsKind::Update, before, after }
}

pub fn delete(before: Row) -> RowChange {
    RowChange { kind: RowsKind::Delete, before, after: Vec::new() }
}

/// A log file in the making.
pub struct Log {
    pub format: FormatDescription,
    pub head: Head,
    offset: u64,
    gno: u64,
    pub events: Vec<(Event, LogPosition, LogPosition)>,
}

impl Log {
    pub fn new(flavour: Flavour) -> Self {
        let version = match flavour {
            Flavour::MySql => "8.0.36",
            Flavour::MariaDb => "10.11.6-MariaDB-log",
        };
        let spec = FormatSpec::new(version, flavour, Checksum::Crc32);
        let head = Head::new(1_700_000_000, 1, Checksum::Crc32);
        let mut log = Self { format: spec.describe(), head, offset: 4, gno: 0, events: Vec::new() };
        log.push(encode::format_description(&head, &spec));
        log
    }

    pub fn mysql() -> Self {
        Self::new(Flavour::MySql)
    }

    pub fn push(&mut self, bytes: Vec<u8>) -> &mut Self {
        let event = Event::parse(Bytes::from(bytes), Checksum::Crc32).unwrap();
        let start = self.offset;
        self.offset += event.bytes().len() as u64;
        let at = |offset| LogPosition::new("binlog.000001", offset);
        self.events.push((event, at(start), at(self.offset)));
        self
    }

    pub fn gtid(&mut self) -> &mut Self {
        self.gno += 1;
        let bytes = match self.format.flavour {
            Flavour::MySql => {
                let gtid = MySqlGtid { uuid: [7; 16], gno: self.gno, ..MySqlGtid::default() };
                encode::mysql_gtid(&self.head, &gtid)
            }
            Flavour::MariaDb => {
                encode::mariadb_gtid(&self.head, &MariaDbGtid { seq_no: self.gno, ..MariaDbGtid::default() })
            }
        };
        self.push(bytes)
    }

    pub fn begin(&mut self) -> &mut Self {
        self.gtid();
        match self.format.flavour {
            Flavour::MySql => self.query("BEGIN"),
            Flavour::MariaDb => self,
        }
    }

    pub fn query(&mut self, sql: &str) -> &mut Self {
        self.query_in("shop", sql)
    }

    pub fn query_in(&mut self, schema: &str, sql: &str) -> &mut Self {
        let bytes = encode::query(&self.head, 9, 0, 0, schema, &[], sql.as_bytes());
        self.push(bytes)
    }

    pub fn map(&mut self, table: &TestTable) -> &mut Self {
        let spec = TableMapSpec {
            table_id: table.map_id(),
            flags: 1,
            schema: &table.def.schema,
            table: &table.def.name,
            columns: &table.columns,
            primary_key: None,
            metadata: false,
        };
        let bytes = encode::table_map(&self.head, &spec);
        self.push(bytes)
    }

    /// A statement: its table map, and one rows event with full images.
    pub fn rows(&mut self, table: &TestTable, changes: &[RowChange]) -> &mut Self {
        let width = table.columns.len();
        self.map(table).rows_event(table, &Bitmap::full(width), &Bitmap::full(width), 1, changes)
    }

    pub fn rows_event(
        &mut self,
        table: &TestTable,
        before_columns: &Bitmap,
        after_columns: &Bitmap,
        flags: u16,
        changes: &[RowChange],
    ) -> &mut Self {
        let kind = changes[0].kind;
        let mut rows = Vec::new();
        for change in changes {
            assert_eq!(change.kind, kind);
            if kind != RowsKind::Write {
                rows.extend(table.image(before_columns, &change.before));
            }
            if kind != RowsKind::Delete {
                rows.extend(table.image(after_columns, &change.after));
            }
        }
        let spec = RowsSpec {
            kind,
            table_id: table.map_id(),
            flags,
            version: 2,
            extra: &[],
            before_columns,
            after_columns,
            partial_json: false,
        };
        let bytes = encode::rows(&self.head, &spec, &rows);
        self.push(bytes)
    }

    pub fn xid(&mut self) -> &mut Self {
        let bytes = encode::xid(&self.head, self.gno);
        self.push(bytes)
    }

    /// The end of what prepares the branch of this name, format 1, without a qualifier.
    pub fn xa_prepare(&mut self, name: &'static str, one_phase: bool) -> &mut Self {
        let xid = XaXid { format_id: 1, gtrid: Bytes::from_static(name.as_bytes()), bqual: Bytes::new() };
        let bytes = encode::xa_prepare(&self.head, &XaPrepare { one_phase, xid });
        self.push(bytes)
    }

    /// A branch of MySQL, prepared.
    pub fn branch(&mut self, name: &'static str, changes: &[(&TestTable, RowChange)]) -> &mut Self {
        self.gtid().query(&format!("XA START '{name}'"));
        for (table, change) in changes {
            self.rows(table, std::slice::from_ref(change));
        }
        self.query(&format!("XA END '{name}'")).xa_prepare(name, false)
    }

    /// One transaction of single-row statements.
    pub fn transaction(&mut self, changes: &[(&TestTable, RowChange)]) -> &mut Self {
        self.begin();
        for (table, change) in changes {
            self.rows(table, std::slice::from_ref(change));
        }
        self.xid()
    }

    pub fn assemble_with(&self, assembler: &mut Assembler) -> Result<Vec<Transaction>, AssembleError> {
        let mut transactions = Vec::new();
        for (event, start, end) in &self.events {
            transactions.extend(assembler.event(event, &self.format, start, end)?);
        }
        Ok(transactions)
    }

    pub fn assemble(&self) -> Result<Vec<Transaction>, AssembleError> {
        self.assemble_with(&mut Assembler::new(1 << 30))
    }

    /// The transactions with their write sets, numbered from 1.
    pub fn keyed(&self, tables: &[&TestTable]) -> Vec<Transaction> {
        let mut catalogue = FakeCatalogue::new(tables);
        let mut keying = Keying::new(1);
        let mut transactions = self.assemble().unwrap();
        for (seq, transaction) in (1..).zip(&mut transactions) {
            transaction.seq = seq;
            keying.key(transaction, &mut catalogue).unwrap();
        }
        transactions
    }
}

pub struct FakeCatalogue {
    tables: HashMap<(String, String), Arc<Table>>,
}

impl FakeCatalogue {
    pub fn new(tables: &[&TestTable]) -> Self {
        let named = |table: &&TestTable| {
            let name = (table.def.schema.clone(), table.def.name.clone());
            (name, Arc::new(table.def.clone()))
        };
        Self { tables: tables.iter().map(named).collect() }
    }
}

impl Catalogue for FakeCatalogue {
    fn table(&mut self, map: &TableMap) -> Result<Arc<Table>, CatalogueError> {
        let name = (map.schema.clone(), map.table.clone());
        Ok(self.tables.get(&name).cloned().unwrap_or_else(|| {
            Arc::new(Table::unknown(TableId(9_999), &name.0, &name.1, TableOrderCause::NotInCatalogue))
        }))
    }

    fn invalidate(&mut self, _: &crate::definition_change::DefinitionChange) {}
}

/// Why a row could not be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowRefusal {
    Missing(String, Row),
    Duplicate(String, Row),
}

/// A database: its tables' rows, unique keys checked row by row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    pub rows: BTreeMap<TableId, Vec<Row>>,
}

/// As the table's indexes compare the value.
pub fn folded(table: &Table, column: usize, value: &Value) -> Value {
    let ignores_case =
        matches!(&table.columns[column].key_class, KeyClass::Text(text) if !matches!(text.fold, Fold::Bytes));
    match value {
        Value::Text(text) if ignores_case => Value::Text(text.to_lowercase()),
        other => other.clone(),
    }
}

/// The value of one key; `None` when a part is NULL.
pub fn key_of(table: &Table, key: &UniqueKey, row: &Row) -> Option<Vec<Value>> {
    let parts: Vec<Value> = key.parts.iter().map(|part| folded(table, part.column, &row[part.column])).collect();
    (!parts.contains(&Value::Null)).then_some(parts)
}

fn identity(table: &Table) -> Option<&UniqueKey> {
    let nullable = |part: &KeyPart| table.columns[part.column].nullable;
    table.unique_keys.first().filter(|key| !key.parts.iter().any(nullable))
}

impl Model {
    fn find(&self, table: &Table, before: &Row) -> Result<usize, RowRefusal> {
        let same = |row: &Row| match identity(table) {
            Some(key) => key_of(table, key, row) == key_of(table, key, before),
            None => row == before,
        };
        let rows = self.rows.get(&table.id).map_or(&[][..], Vec::as_slice);
        rows.iter().position(same).ok_or_else(|| RowRefusal::Missing(table.name.clone(), before.clone()))
    }

    fn check_unique(&self, table: &Table, row: &Row) -> Result<(), RowRefusal> {
        let rows = self.rows.get(&table.id).map_or(&[][..], Vec::as_slice);
        for key in &table.unique_keys {
            let value = key_of(table, key, row);
            if value.is_some() && rows.iter().any(|other| key_of(table, key, other) == value) {
                return Err(RowRefusal::Duplicate(format!("{}.{}", table.name, key.name), row.clone()));
            }
        }
        Ok(())
    }

    pub fn apply(&mut self, table: &Table, change: &RowChange) -> Result<(), RowRefusal> {
        let mut replaced = None;
        if change.kind != RowsKind::Write {
            let at = self.find(table, &change.before)?;
            replaced = self.rows.get_mut(&table.id).map(|rows| rows.remove(at));
        }
        if change.kind != RowsKind::Delete {
            if let Err(refused) = self.check_unique(table, &change.after) {
                self.rows.entry(table.id).or_default().extend(replaced);
                return Err(refused);
            }
            self.rows.entry(table.id).or_default().push(change.after.clone());
        }
        Ok(())
    }

    pub fn apply_batch(&mut self, batch: &Batch<'_>) -> Result<(), RowRefusal> {
        let table = batch.table.unwrap();
        batch.rows.iter().try_for_each(|images| self.apply(table, &change_of(batch, images)))
    }

    /// The rows in an order that does not depend on how they came.
    pub fn sorted(&self) -> BTreeMap<TableId, Vec<Row>> {
        let mut tables = self.rows.clone();
        tables.retain(|_, rows| !rows.is_empty());
        tables.values_mut().for_each(|rows| rows.sort());
        tables
    }
}

pub fn change_of(batch: &Batch<'_>, images: &Images<'_>) -> RowChange {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    if batch.kind != RowsKind::Write {
        before = decode(batch.map, batch.before_columns, images.before);
    }
    if batch.kind != RowsKind::Delete {
        after = decode(batch.map, batch.after_columns, images.after);
    }
    RowChange { kind: batch.kind, before, after }
}
