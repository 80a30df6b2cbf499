//! What has to be known of a target's table to write its rows as SQL. The catalogue finds it out when it reads the definition.

use binlog::{Column, ColumnKind, RowsKind, TableMap};
use engine::schema::{KeyPart, UniqueKey};

use crate::mysql::server::sql::identifier;

/// How a column's values are written and compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// A whole number or a DECIMAL.
    Number,
    /// FLOAT, DOUBLE.
    Approximate,
    /// What is compared as an unsigned number: YEAR, BIT, ENUM, SET.
    Unsigned,
    /// DATE, TIME, DATETIME.
    Time,
    /// Its text depends on the session's time zone.
    Timestamp,
    Text {
        charset: String,
        collation: String,
    },
    Bytes,
    /// BINARY: filled up with zeros, which a row image does not have.
    FixedBytes {
        len: usize,
    },
    /// MySQL's.
    Json,
    Geometry,
    /// MariaDB's INET4 and INET6.
    Address {
        bytes: usize,
    },
    /// MariaDB's.
    Uuid,
    /// A type of which nothing is known here.
    Other,
}

/// A column's type as the target's `information_schema` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnType {
    /// In small letters.
    pub text: String,
    pub charset: String,
    pub collation: String,
    pub is_generated: bool,
}

impl ColumnType {
    /// `decimal` of `decimal(10,2) unsigned`.
    fn word(&self) -> &str {
        self.text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default()
    }

    /// The numbers in parentheses.
    fn numbers(&self) -> Vec<usize> {
        let inside =
            self.text.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inside, _)| inside);
        inside.split(',').map_while(|number| number.trim().parse().ok()).collect()
    }

    fn first_number(&self) -> usize {
        self.numbers().first().copied().unwrap_or(0)
    }

    fn form(&self) -> Form {
        let text = || Form::Text { charset: self.charset.clone(), collation: self.collation.clone() };
        match self.word() {
            "tinyint" | "smallint" | "mediumint" | "int" | "integer" | "bigint" | "decimal" | "numeric" => Form::Number,
            "float" | "double" | "real" => Form::Approximate,
            "year" | "bit" | "enum" | "set" => Form::Unsigned,
            "date" | "time" | "datetime" => Form::Time,
            "timestamp" => Form::Timestamp,
            "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" if !self.charset.is_empty() => text(),
            // MariaDB shows its JSON as LONGTEXT.
            "json" => Form::Json,
            "binary" => Form::FixedBytes { len: self.numbers().first().copied().unwrap_or(1) },
            "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "vector" => Form::Bytes,
            "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring" | "multipolygon"
            | "geometrycollection" | "geomcollection" => Form::Geometry,
            "inet4" => Form::Address { bytes: 4 },
            "inet6" => Form::Address { bytes: 16 },
            "uuid" => Form::Uuid,
            _ => Form::Other,
        }
    }

    /// What the server would cut or round without an error, although its session is strict.
    fn loses(&self, logged: &Column) -> bool {
        let digits = usize::from(logged.meta & 0xff);
        match (logged.real_kind(), self.word()) {
            (ColumnKind::NEWDECIMAL, "decimal" | "numeric") => self.numbers().get(1).copied().unwrap_or(0) < digits,
            (ColumnKind::NEWDECIMAL, word) => {
                digits > 0
                    && matches!(word, "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "float" | "double")
            }
            (ColumnKind::DOUBLE, word) => matches!(word, "float" | "decimal" | "numeric" | "int" | "bigint"),
            (ColumnKind::FLOAT, word) => !matches!(word, "float" | "double"),
            // One is an instant, the other depends on where it is read.
            (ColumnKind::TIMESTAMP | ColumnKind::TIMESTAMP2, word) if word != "timestamp" => true,
            (ColumnKind::DATETIME | ColumnKind::DATETIME2, "timestamp") => true,
            (ColumnKind::TIMESTAMP2 | ColumnKind::DATETIME2 | ColumnKind::TIME2, _) => self.first_number() < digits,
            // The number of a member says nothing in a column of another kind.
            (ColumnKind::ENUM, word) => word != "enum",
            (ColumnKind::SET, word) => word != "set",
            (ColumnKind::BIT, word) => word != "bit",
            (ColumnKind::LONGLONG | ColumnKind::LONG, word) => matches!(word, "float" | "double"),
            (ColumnKind::STRING | ColumnKind::VARCHAR | ColumnKind::VAR_STRING, "char" | "varchar") => {
                // Blanks at the end would be cut. A character has at least one byte.
                logged.max_len() as usize > self.first_number() * bytes_of_character(&self.charset)
            }
            _ => false,
        }
    }
}

/// At most.
fn bytes_of_character(charset: &str) -> usize {
    match charset {
        "utf8mb4" | "utf16" | "utf16le" | "utf32" | "gb18030" => 4,
        "utf8" | "utf8mb3" | "ujis" | "eucjpms" => 3,
        "ucs2" | "gbk" | "big5" | "sjis" | "cp932" | "euckr" | "gb2312" => 2,
        _ => 1,
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlColumn {
    /// Quoted.
    pub name: String,
    pub form: Form,
    pub nullable: bool,
    pub unsigned: bool,
    /// It takes the time of a change to its row, where the change does not set it.
    pub on_update: bool,
}

/// A trigger of the target's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    pub name: String,
    /// `INSERT`, `UPDATE` or `DELETE`.
    pub event: String,
}

/// What makes statements on a table differ from row events.
#[derive(Clone, Debug, Default)]
pub struct Traits {
    /// Rows may be unique in a way that is not known.
    pub is_unique_otherwise: bool,
    pub triggers: Vec<Trigger>,
    /// By a foreign key.
    pub refers_to_itself: bool,
    /// It keeps the history of its rows (MariaDB's `WITH SYSTEM VERSIONING`).
    pub is_versioned: bool,
}

/// A table of the target's, by the columns of the source's row images.
#[derive(Debug, Default)]
pub struct SqlTable {
    /// Quoted, with its schema.
    pub name: String,
    /// `None`: the target works it out, or has no such column that a statement could name.
    pub columns: Vec<Option<SqlColumn>>,
    /// Columns of the key that identifies a row; `None`: there is none that is whole, without NULLs and in the row image.
    pub key: Option<Vec<usize>>,
    /// Columns of unique keys.
    pub unique_columns: Vec<usize>,
    /// Those of whole columns that the row image has: their columns.
    pub unique_keys: Vec<Vec<usize>>,
    pub traits: Traits,
    /// Quoted: columns of the target's own that take the time of a change.
    pub own_on_update: Vec<String>,
    /// Types by the columns of the row images, beside `columns`.
    types: Vec<ColumnType>,
}

/// What of a definition makes an [`SqlTable`].
pub struct TableDescription<'a> {
    pub name: &'a (String, String),
    pub columns: &'a [engine::schema::Column],
    pub types: &'a [ColumnType],
    pub unique_keys: &'a [UniqueKey],
    /// Those of them whose equal values no two rows have.
    pub exact_keys: Vec<&'a UniqueKey>,
    /// Columns with `ON UPDATE`.
    pub on_update: Vec<usize>,
    pub traits: Traits,
    /// Columns of the source's row image.
    pub width: usize,
    /// Where the definition's first column is in the row image; below 0: some of the definition's come before the image's first one.
    pub first: isize,
}

impl SqlTable {
    pub fn new(described: &TableDescription<'_>) -> Self {
        let (mut columns, mut types) = (Vec::new(), Vec::new());
        let definition_of = |image: usize| image.checked_add_signed(-described.first);
        for image in 0..described.width {
            let found = definition_of(image)
                .and_then(|at| Some((at, described.columns.get(at)?, described.types.get(at)?)))
                .filter(|(_, _, kind)| !kind.is_generated);
            columns.push(found.map(|(at, column, kind)| SqlColumn {
                name: identifier(&column.name),
                form: kind.form(),
                nullable: column.nullable,
                unsigned: column.unsigned,
                on_update: described.on_update.contains(&at),
            }));
            types.push(found.map(|(_, _, kind)| kind.clone()).unwrap_or_default());
        }
        let image_of = |at: usize| at.checked_add_signed(described.first);
        let is_whole = |key: &&UniqueKey| {
            key.parts.iter().all(|part| {
                let column = image_of(part.column).and_then(|image| columns.get(image)?.as_ref());
                part.prefix.is_none() && column.is_some_and(|column| !column.nullable && column.form != Form::Other)
            })
        };
        let is_of_image = |part: &KeyPart| {
            let column = image_of(part.column).and_then(|image| columns.get(image)?.as_ref());
            part.prefix.is_none() && column.is_some_and(|column| column.form != Form::Other)
        };
        let of_image = described.exact_keys.iter().filter(|key| key.parts.iter().all(is_of_image));
        let unique_keys = of_image.map(|key| key.parts.iter().filter_map(|part| image_of(part.column)).collect());
        let unique_keys: Vec<Vec<usize>> = unique_keys.collect();
        let key = described.unique_keys.iter().find(is_whole);
        let key = key.map(|key| key.parts.iter().filter_map(|part| image_of(part.column)).collect());
        let unique_columns = described.unique_keys.iter().flat_map(|key| &key.parts);
        Self {
            name: format!("{}.{}", identifier(&described.name.0), identifier(&described.name.1)),
            key,
            unique_columns: unique_columns.filter_map(|part| image_of(part.column)).collect(),
            unique_keys,
            own_on_update: described
                .on_update
                .iter()
                .filter(|at| image_of(**at).is_none_or(|image| image >= described.width))
                .filter_map(|at| Some(identifier(&described.columns.get(*at)?.name)))
                .collect(),
            traits: described.traits.clone(),
            columns,
            types,
        }
    }

    /// The first column that could not hold the source's values whole: its name, its type here.
    pub fn loses(&self, map: &TableMap) -> Option<(String, String)> {
        let mut columns = self.columns.iter().zip(&self.types).zip(&map.columns);
        columns.find_map(|((column, kind), logged)| {
            let column = column.as_ref()?;
            kind.loses(logged).then(|| (column.name.clone(), kind.text.clone()))
        })
    }

    /// The triggers that such a change would fire.
    pub fn fired_by(&self, kind: RowsKind) -> Vec<&str> {
        let event = match kind {
            RowsKind::Write => "INSERT",
            RowsKind::Update => "UPDATE",
            RowsKind::Delete => "DELETE",
        };
        self.traits
            .triggers
            .iter()
            .filter(|trigger| trigger.event == event)
            .map(|trigger| trigger.name.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, charset: &str) -> ColumnType {
        ColumnType { text: text.to_owned(), charset: charset.to_owned(), ..ColumnType::default() }
    }

    #[test]
    fn types_that_would_lose_something() {
        for (kind, meta, text, charset, loses) in [
            (ColumnKind::NEWDECIMAL, 0x0a02, "decimal(10,2)", "", false),
            (ColumnKind::NEWDECIMAL, 0x0a02, "decimal(12,1)", "", true),
            (ColumnKind::NEWDECIMAL, 0x0a00, "bigint", "", false),
            (ColumnKind::DATETIME2, 6, "datetime(6)", "", false),
            (ColumnKind::DATETIME2, 6, "datetime(3)", "", true),
            (ColumnKind::DATETIME2, 0, "datetime", "", false),
            (ColumnKind::TIMESTAMP2, 3, "timestamp", "", true),
            (ColumnKind::DOUBLE, 8, "float", "", true),
            (ColumnKind::FLOAT, 4, "double", "", false),
            (ColumnKind::TIMESTAMP2, 0, "datetime", "", true),
            (ColumnKind::DATETIME2, 0, "timestamp", "", true),
            (ColumnKind::VARCHAR, 40, "varchar(10)", "utf8mb4", false),
            (ColumnKind::VARCHAR, 44, "varchar(10)", "utf8mb4", true),
            (ColumnKind::ENUM, 0xf701, "varchar(9)", "latin1", true),
            (ColumnKind::LONG, 0, "bigint", "", false),
        ] {
            assert_eq!(of(text, charset).loses(&Column::new(kind, meta, true)), loses, "{kind} {meta} {text}");
        }
    }

    #[test]
    fn forms() {
        for (text, form) in [
            ("int(11) unsigned", Form::Number),
            ("enum('a','b(')", Form::Unsigned),
            ("binary(16)", Form::FixedBytes { len: 16 }),
            ("vector(3)", Form::Bytes),
            ("inet6", Form::Address { bytes: 16 }),
            ("something", Form::Other),
        ] {
            assert_eq!(of(text, "").form(), form, "{text}");
        }
    }
}
