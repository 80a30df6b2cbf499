//! What a target's tables look like, as far as ordering and applying need to know.
//!
//! Never reads a server: a shell fills these in (see [`Catalogue`](super::Catalogue)).

use binlog::{Bitmap, RowsKind, TableMap};

use crate::keys::{KeyClass, logged};

/// Stands for one (schema, table) name for the life of a channel, also across DDL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u32);

/// One column, in the order of the row image.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub unsigned: bool,
    pub nullable: bool,
    /// How values of this column become comparable key bytes.
    pub key_class: KeyClass,
}

/// A column of a key; `prefix` in characters (bytes for binary strings), `None` for the whole column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPart {
    pub column: usize,
    pub prefix: Option<u32>,
}

/// A unique index, the primary key included; or the columns whose equal values may keep two rows out of one table (MariaDB's `WITHOUT OVERLAPS`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueKey {
    pub name: String,
    pub parts: Vec<KeyPart>,
}

/// A reference from this table (the child) to a unique key of another.
#[derive(Clone, Debug)]
pub struct ForeignKey {
    pub name: String,
    /// Columns of the child, in the order of the parent's key parts.
    pub columns: Vec<usize>,
    pub parent: TableId,
    /// Which of the parent's [`Table::unique_keys`] is referenced. `None`: not a unique key, or one that is
    /// not known: the reference then counts as a read of the whole parent table.
    pub parent_key: Option<usize>,
    /// Normalisation of the parent's columns, in key order: both sides must give the same bytes.
    pub classes: Vec<KeyClass>,
}

/// Why the rows of a table are ordered by table instead of by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableOrderCause {
    NoUniqueKey,
    /// A key column whose equality is not known exactly (collation or type).
    KeyNotNormalised,
    /// A unique key over an expression, or one that has columns which are not in the row image.
    FunctionalKey,
    /// The target does not say what the table looks like.
    NotInCatalogue,
    /// The definition known does not have the columns that the source's table map has.
    ColumnsDiffer,
    /// A foreign key whose parent's key is not known.
    ForeignKeyUnknown,
    /// The engine is not transactional: its changes can not be rolled back.
    NotTransactional,
}

impl TableOrderCause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoUniqueKey => "no unique key without NULLs",
            Self::KeyNotNormalised => "a key column whose collation or type is not handled yet",
            Self::FunctionalKey => "a unique key over an expression",
            Self::NotInCatalogue => "not in the target's catalogue",
            Self::ColumnsDiffer => "its columns differ from the source's",
            Self::ForeignKeyUnknown => "a foreign key to a key that is not known",
            Self::NotTransactional => "its engine is not transactional",
        }
    }
}

/// Why a table's rows share a target transaction with nothing but those of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierReason {
    /// A sequence, whose row is logged beside the transaction and would take the GTID that is kept.
    Sequence,
    /// MariaDB's history with numbers of transactions (`ROW START` of type `BIGINT UNSIGNED`): what one transaction changes twice leaves no history.
    TransactionHistory,
    /// MariaDB's history with times that are not in the log, as only the target's table is versioned: each change leaves a version of its own, from its own
    /// time on. A session counts the changes of a second, so all of them are applied by one.
    TimeHistory,
    /// MariaDB's history in partitions that are filled one after the other (`PARTITION BY SYSTEM_TIME LIMIT`), or made when they are needed (`AUTO`):
    /// which one is looked for once for each change of the source.
    HistoryPartitions,
    /// A table of the server's accounts: what is done to heddle's own is taken back.
    Accounts,
}

/// A column to which the target gives the time of the change, or what follows from it, where the row has no value for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedColumn {
    /// As in the target's definition: beyond the row image's where the source has no such column.
    pub column: usize,
    /// Also when the row is updated; otherwise only when it is inserted.
    pub on_update: bool,
}

/// Whether the target may have rows that the source's table has lost (`--leave-out`). A row that comes with a unique value of such a one takes its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leftovers {
    #[default]
    None,
    Kept,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub id: TableId,
    pub schema: String,
    pub name: String,
    pub columns: Vec<Column>,
    /// The key that identifies a row comes first: the primary key, else the first unique key without
    /// nullable columns. Empty when there is none: see `order_by_table`.
    pub unique_keys: Vec<UniqueKey>,
    pub foreign_keys: Vec<ForeignKey>,
    /// Tables whose rows may change unseen when a row here is deleted or its referenced key changes
    /// (ON DELETE/UPDATE CASCADE, SET NULL), transitively.
    pub cascades_to: Vec<TableId>,
    /// Columns, ascending, that the foreign keys behind `cascades_to` refer to: an update of one of them cascades. They need
    /// not be those of a unique key.
    pub cascade_columns: Vec<usize>,
    /// It is a child or a parent in some foreign key: its rows keep their order inside a group.
    pub has_relations: bool,
    /// It is a parent: foreign keys of some table refer to it.
    pub is_referenced: bool,
    pub transactional: bool,
    /// The server works out values of it, or of its indexes, when it applies rows, and takes what it needs of the session for it (MySQL).
    pub works_out: bool,
    /// Its rows share a target transaction with nothing but those of their own.
    pub barrier: Option<BarrierReason>,
    /// Columns with a default that follows from the time, or with `ON UPDATE`.
    pub timed: Vec<TimedColumn>,
    /// The primary key's columns, where the target needs no others of a full before image to find a row, to change or to delete it.
    pub lookup_columns: Option<Bitmap>,
    pub order_by_table: Option<TableOrderCause>,
    pub leftovers: Leftovers,
}

impl Table {
    /// What a table map alone says, and a primary key: `None` if there is none. Other unique keys and foreign keys are in no table
    /// map.
    pub fn from_map(id: TableId, map: &TableMap, primary_key: Option<Vec<KeyPart>>) -> Self {
        let columns = map.columns.iter().enumerate().map(|(at, column)| Column {
            name: column.name.clone().unwrap_or_else(|| format!("@{}", at + 1)),
            unsigned: column.unsigned == Some(true),
            nullable: column.nullable,
            key_class: logged::key_class(column),
        });
        let columns: Vec<Column> = columns.collect();
        let is_coarse =
            |part: &KeyPart| columns.get(part.column).is_none_or(|column| column.key_class == KeyClass::Coarse);
        let order_by_table = match &primary_key {
            None => Some(TableOrderCause::NoUniqueKey),
            Some(parts) if parts.iter().any(is_coarse) => Some(TableOrderCause::KeyNotNormalised),
            Some(_) => None,
        };
        let unique_keys = primary_key.into_iter().map(|parts| UniqueKey { name: "PRIMARY".to_owned(), parts });
        Self {
            columns,
            unique_keys: unique_keys.collect(),
            has_relations: false,
            is_referenced: false,
            order_by_table,
            ..Self::unknown(id, &map.schema, &map.table, TableOrderCause::NoUniqueKey)
        }
    }

    /// A table of which nothing but the name is known.
    pub fn unknown(id: TableId, schema: &str, name: &str, cause: TableOrderCause) -> Self {
        Self {
            id,
            schema: schema.to_owned(),
            name: name.to_owned(),
            columns: Vec::new(),
            unique_keys: Vec::new(),
            foreign_keys: Vec::new(),
            cascades_to: Vec::new(),
            cascade_columns: Vec::new(),
            has_relations: true,
            is_referenced: true,
            transactional: true,
            works_out: false,
            barrier: None,
            timed: Vec::new(),
            lookup_columns: None,
            order_by_table: Some(cause),
            leftovers: Leftovers::None,
        }
    }

    /// The table as one whose columns are not those of the log: no position in it means anything. What it refers to, and what refers to it, still counts.
    #[must_use]
    pub fn without_columns(&self) -> Self {
        let foreign_keys = self.foreign_keys.iter().map(|key| ForeignKey { parent_key: None, ..key.clone() }).collect();
        Self {
            columns: Vec::new(),
            unique_keys: Vec::new(),
            foreign_keys,
            has_relations: true,
            lookup_columns: None,
            order_by_table: Some(TableOrderCause::ColumnsDiffer),
            ..self.clone()
        }
    }

    /// Whether the target gives such a row, after its change, the time of the event or what follows from it. `present`: the columns of the row image
    /// after the change.
    pub fn takes_time(&self, kind: RowsKind, present: &Bitmap) -> bool {
        let is_given = |timed: &TimedColumn| match kind {
            RowsKind::Write => true,
            RowsKind::Update => timed.on_update,
            RowsKind::Delete => false,
        };
        self.timed.iter().any(|timed| is_given(timed) && !present.get(timed.column))
    }

    /// Whether rows can be told apart by key, so that a group may merge and reorder them.
    pub fn is_keyed(&self) -> bool {
        self.order_by_table.is_none() && !self.unique_keys.is_empty()
    }
}
