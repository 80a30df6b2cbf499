//! The key by which a table is read in chunks, from what `SHOW INDEX` or `information_schema.STATISTICS` says.

use wire::{Connection, Error, Row};

/// A column of the key, by its place among the [columns](super::TableDefinition::columns) that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyColumn {
    pub column: usize,
    /// The index goes from the greatest to the least.
    pub is_descending: bool,
}

/// How a table is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkKey {
    /// In the order of this unique index, whose columns have no NULL.
    Index { name: String, columns: Vec<KeyColumn> },
    /// It has none: the table is one chunk.
    Whole,
}

/// A part of an index.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexPart {
    pub index: String,
    pub is_unique: bool,
    /// `None`: an expression.
    pub column: Option<String>,
    pub has_prefix: bool,
    pub is_nullable: bool,
    pub is_descending: bool,
    /// The optimizer, and who names it in a query, can use it.
    pub is_usable: bool,
}

impl IndexPart {
    /// What [`IndexPart::read`] reads of `information_schema.STATISTICS`, under the names that `SHOW INDEX` has.
    pub fn of_statistics(connection: &Connection) -> &'static str {
        let server = connection.server();
        match (server.is_mariadb(), server.at_least(8, 0, 0), server.at_least(10, 6, 0)) {
            (true, _, true) => {
                "INDEX_NAME AS Key_name, NON_UNIQUE, COLUMN_NAME, SUB_PART, NULLABLE AS `Null`, COLLATION, INDEX_TYPE, IGNORED"
            }
            (false, true, _) => {
                "INDEX_NAME AS Key_name, NON_UNIQUE, COLUMN_NAME, SUB_PART, NULLABLE AS `Null`, COLLATION, INDEX_TYPE, IS_VISIBLE AS Visible"
            }
            _ => "INDEX_NAME AS Key_name, NON_UNIQUE, COLUMN_NAME, SUB_PART, NULLABLE AS `Null`, COLLATION, INDEX_TYPE",
        }
    }

    /// Of a row of `SHOW INDEX`, or of [`IndexPart::of_statistics`].
    pub fn read(row: &Row) -> Result<Self, Error> {
        let text = |name: &str| Ok::<_, Error>(row.text(name)?.unwrap_or_default().to_owned());
        let optional = |name: &str| row.text(name).ok().flatten().unwrap_or_default().to_owned();
        Ok(Self {
            index: text("Key_name")?,
            is_unique: text("Non_unique")? == "0",
            column: row.text("Column_name")?.map(str::to_owned),
            has_prefix: row.text("Sub_part")?.is_some(),
            is_nullable: text("Null")? == "YES",
            is_descending: row.text("Collation")? == Some("D"),
            is_usable: optional("Visible") != "NO"
                && optional("Ignored") != "YES"
                && text("Index_type")?.eq_ignore_ascii_case("BTREE"),
        })
    }
}

/// A column of a [`UniqueIndex`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexColumn {
    pub name: String,
    pub is_descending: bool,
}

/// An index by which a table can be read in chunks: unique, over whole columns without NULL, and a query can name it (`FORCE INDEX`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UniqueIndex {
    pub name: String,
    pub columns: Vec<IndexColumn>,
}

/// The indexes of a table that are fit for chunks, the primary key first.
pub(crate) fn unique_indexes(parts: &[IndexPart]) -> Vec<UniqueIndex> {
    let mut names: Vec<&str> = Vec::new();
    for part in parts.iter().filter(|part| part.is_unique) {
        if !names.contains(&part.index.as_str()) {
            names.push(&part.index);
        }
    }
    names.sort_by_key(|name| *name != "PRIMARY");
    let column = |part: &IndexPart| {
        let is_fit = !part.has_prefix && !part.is_nullable && part.is_usable;
        let name = part.column.clone().filter(|_| is_fit)?;
        Some(IndexColumn { name, is_descending: part.is_descending })
    };
    let index = |name: &str| {
        let columns = parts.iter().filter(|part| part.index == name).map(column).collect::<Option<_>>()?;
        Some(UniqueIndex { name: name.to_owned(), columns })
    };
    names.into_iter().filter_map(index).collect()
}

/// The primary key; else the first unique index over whole columns without NULL. `names`: the columns that are read, in their order.
pub(super) fn choose(parts: &[IndexPart], names: &[String]) -> ChunkKey {
    let columns_of = |index: &UniqueIndex| -> Option<Vec<KeyColumn>> {
        let column = |wanted: &IndexColumn| {
            let column = names.iter().position(|name| name.eq_ignore_ascii_case(&wanted.name))?;
            Some(KeyColumn { column, is_descending: wanted.is_descending })
        };
        index.columns.iter().map(column).collect()
    };
    let found = unique_indexes(parts).into_iter().find_map(|index| Some((columns_of(&index)?, index.name)));
    found.map_or(ChunkKey::Whole, |(columns, name)| ChunkKey::Index { name, columns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(index: &str, column: &str) -> IndexPart {
        IndexPart {
            index: index.to_owned(),
            is_unique: true,
            column: Some(column.to_owned()),
            is_usable: true,
            ..IndexPart::default()
        }
    }

    #[track_caller]
    fn check(parts: &[IndexPart], expected: Option<(&str, &[usize])>) {
        let names = ["a", "b", "c"].map(str::to_owned);
        let found = match choose(parts, &names) {
            ChunkKey::Index { name, columns } => Some((name, columns.iter().map(|key| key.column).collect())),
            ChunkKey::Whole => None,
        };
        let expected = expected.map(|(name, columns)| (name.to_owned(), columns.to_vec()));
        assert_eq!(found, expected);
    }

    #[test]
    fn the_key_of_a_table() {
        check(&[], None);
        check(&[part("u", "b"), part("PRIMARY", "c"), part("PRIMARY", "a")], Some(("PRIMARY", &[2, 0])));
        check(&[IndexPart { is_nullable: true, ..part("u", "a") }, part("v", "b")], Some(("v", &[1])));
        check(&[IndexPart { has_prefix: true, ..part("u", "a") }], None);
        check(&[IndexPart { column: None, ..part("u", "a") }], None);
        check(&[IndexPart { is_unique: false, ..part("i", "a") }], None);
        check(&[IndexPart { is_usable: false, ..part("u", "a") }], None);
        // Worked out by the server, and not read.
        check(&[part("u", "generated")], None);
    }
}
