//! The definition of a table as DDL says it: columns, keys, foreign keys, options. Data only: reads no SQL.

use crate::keys::DataType;
use crate::sql::ObjectName;

/// What DDL says of a table. Names of keys that the statement leaves out are those that the servers make; nothing else is filled in from server defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDefinition {
    pub name: ObjectName,
    pub temporary: bool,
    pub columns: Vec<ColumnDefinition>,
    pub primary_key: Option<KeyDefinition>,
    pub unique_keys: Vec<KeyDefinition>,
    /// Indexes that are not unique: their names are taken.
    pub other_keys: Vec<KeyDefinition>,
    pub foreign_keys: Vec<ForeignKeyDefinition>,
    /// MariaDB's system versioning.
    pub history: Option<History>,
    pub engine: Option<String>,
    pub charset: Option<String>,
    pub collation: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDefinition {
    pub name: String,
    /// As written, with its length and UNSIGNED, without the attributes behind.
    pub type_text: String,
    pub data_type: DataType,
    pub unsigned: bool,
    /// Only what the column itself states. An empty one is not known: that of a table's default which has changed since.
    pub charset: Option<String>,
    pub collation: Option<String>,
    pub nullable: bool,
    pub auto_increment: bool,
    pub generated: Option<GenerationKind>,
    /// MariaDB: its values are compressed in the row image. Such a column has no index.
    pub compressed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenerationKind {
    Virtual,
    Stored,
    /// MariaDB's system versioning: the times of a row.
    RowStart,
    RowEnd,
}

/// Where MariaDB keeps the times of the rows of a table WITH SYSTEM VERSIONING. The end belongs to each unique key: the history of a row shares the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// In two columns behind the others, which no statement names.
    Hidden,
    /// In columns of the definition, [`GenerationKind::RowStart`] and [`GenerationKind::RowEnd`].
    Columns,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDefinition {
    pub name: Option<String>,
    /// Without the period of MariaDB's `WITHOUT OVERLAPS`: rows that share the others may exclude each other.
    pub parts: Vec<KeyPartDefinition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPartDefinition {
    /// `prefix` in characters, in bytes for binary strings.
    Column {
        name: String,
        prefix: Option<u32>,
    },
    Expression,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKeyDefinition {
    pub name: Option<String>,
    pub columns: Vec<String>,
    pub parent: ObjectName,
    pub parent_columns: Vec<String>,
    pub on_delete: ReferenceAction,
    pub on_update: ReferenceAction,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReferenceAction {
    /// NO ACTION, RESTRICT, or nothing said.
    #[default]
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

impl TableDefinition {
    pub fn empty(name: ObjectName) -> Self {
        Self {
            name,
            temporary: false,
            columns: Vec::new(),
            primary_key: None,
            unique_keys: Vec::new(),
            other_keys: Vec::new(),
            foreign_keys: Vec::new(),
            history: None,
            engine: None,
            charset: None,
            collation: None,
        }
    }

    /// Names of foreign keys that InnoDB made follow the table's.
    pub fn take_name(&mut self, name: &ObjectName) {
        let prefixes = (generated_prefix(&self.name.name), generated_prefix(&name.name));
        for key in &mut self.foreign_keys {
            if let Some(number) = key.name.as_deref().and_then(|own| own.strip_prefix(&prefixes.0)) {
                key.name = Some(format!("{}{number}", prefixes.1));
            }
        }
        self.name = name.clone();
    }

    /// Whether the rows' images hold the columns as the definition names them.
    pub fn is_plain(&self) -> bool {
        self.history.is_none() && !self.columns.iter().any(|column| column.compressed)
    }

    pub(in crate::sql) fn key_names(&self) -> impl Iterator<Item = &str> {
        self.unique_keys.iter().chain(&self.other_keys).filter_map(|key| key.name.as_deref())
    }
}

/// Names of columns and keys are compared without case. Beyond ASCII the servers fold more than this does: such a name is then
/// not found and the statement not understood.
pub(in crate::sql) fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// What the names of foreign keys begin with that InnoDB makes up.
pub(in crate::sql) fn generated_prefix(table: &str) -> String {
    format!("{table}_ibfk_")
}
