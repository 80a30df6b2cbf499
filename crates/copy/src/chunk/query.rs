//! The statement that reads a chunk. It holds no connection.

use apply::mysql::server::sql::identifier;

use super::definition::{TableDefinition, is_transactional};
use super::key::{ChunkKey, KeyColumn};

/// Values of the key's columns, or of the first of them, as literals ([`key_literal`](super::key_literal)) in the order of the key.
pub type KeyBound = Vec<String>;

/// Rows of a table behind one bound, up to another.
#[derive(Clone, Debug)]
pub struct ChunkQuery<'a> {
    pub table: &'a TableDefinition,
    /// Not this one, but those that the index has behind it. `None`: from the first.
    pub after: Option<&'a KeyBound>,
    /// The last, itself included. `None`: to the end of the table.
    pub until: Option<&'a KeyBound>,
    /// `None`: all of them.
    pub limit: Option<u64>,
}

impl ChunkQuery<'_> {
    /// All [columns](TableDefinition::columns), in the order of the key.
    pub fn sql(&self) -> String {
        let columns: Vec<String> = self.table.columns.iter().map(|column| column.expression()).collect();
        self.selecting(&columns.join(", "))
    }

    /// What of the rows is selected, in the order of the key.
    pub fn selecting(&self, expressions: &str) -> String {
        let mut sql = format!("SELECT {}{expressions} FROM {}", self.buffering(), self.table.name.quoted());
        if let ChunkKey::Index { name, columns } = &self.table.key {
            sql.push_str(&format!(" FORCE INDEX ({})", identifier(name)));
            sql.push_str(&self.condition(columns));
            let order = columns.iter().map(|key| {
                let direction = if key.is_descending { " DESC" } else { "" };
                format!("{}{direction}", self.name(key))
            });
            sql.push_str(&format!(" ORDER BY {}", order.collect::<Vec<_>>().join(", ")));
        }
        if let Some(limit) = self.limit {
            sql.push_str(&format!(" LIMIT {limit}"));
        }
        sql
    }

    /// The same rows, without an order: for sums over a chunk.
    pub fn summing(&self, expressions: &str) -> String {
        let mut sql = format!("SELECT {expressions} FROM {}", self.table.name.quoted());
        if let ChunkKey::Index { name, columns } = &self.table.key {
            sql.push_str(&format!(" FORCE INDEX ({})", identifier(name)));
            sql.push_str(&self.condition(columns));
        }
        sql
    }

    /// A read of any other engine locks its table until the last row is on its way: the server is to keep the rows apart first.
    fn buffering(&self) -> &'static str {
        if is_transactional(&self.table.engine) { "" } else { "SQL_BUFFER_RESULT " }
    }

    fn name(&self, key: &KeyColumn) -> String {
        self.table.columns.get(key.column).map_or_else(String::new, |column| identifier(&column.name))
    }

    fn condition(&self, columns: &[KeyColumn]) -> String {
        let after = self.after.map(|bound| self.beyond(columns, bound, Beyond::After));
        let until = self.until.map(|bound| self.beyond(columns, bound, Beyond::Until));
        let conditions: Vec<String> = after.into_iter().chain(until).collect();
        if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) }
    }

    /// Written out, for old servers read the whole index for `(a, b) > (1, 2)`.
    fn beyond(&self, columns: &[KeyColumn], bound: &KeyBound, side: Beyond) -> String {
        let mut parts = Vec::new();
        for (at, key) in columns.iter().enumerate() {
            let mut conditions: Vec<String> =
                columns.iter().zip(bound).take(at).map(|(key, value)| format!("{}={value}", self.name(key))).collect();
            let sign = match (side, key.is_descending) {
                (Beyond::After, false) | (Beyond::Until, true) => ">",
                (Beyond::After, true) | (Beyond::Until, false) => "<",
            };
            // Of the last column the bound itself, if it is in.
            let or_equal = if side == Beyond::Until && at + 1 == bound.len() { "=" } else { "" };
            let Some(value) = bound.get(at) else { continue };
            conditions.push(format!("{}{sign}{or_equal}{value}", self.name(key)));
            parts.push(format!("({})", conditions.join(" AND ")));
        }
        // What the index needs to begin at the bound, where the server does not see it in the rest.
        let first = match (columns.first(), bound.first(), bound.len()) {
            (Some(key), Some(value), 2..) => {
                let sign = match (side, key.is_descending) {
                    (Beyond::After, false) | (Beyond::Until, true) => ">=",
                    (Beyond::After, true) | (Beyond::Until, false) => "<=",
                };
                format!("{}{sign}{value} AND ", self.name(key))
            }
            _ => String::new(),
        };
        format!("{first}({})", parts.join(" OR "))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Beyond {
    After,
    Until,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{ChunkColumn, TableName, ValueKind};

    fn table(descending: &[bool]) -> TableDefinition {
        let columns = ["a", "b", "v"].map(|name| ChunkColumn {
            name: name.to_owned(),
            data_type: "int".to_owned(),
            collation: String::new(),
            kind: ValueKind::Number,
            is_nullable: false,
        });
        let keys = descending.iter().enumerate();
        let keys: Vec<KeyColumn> = keys.map(|(column, &is_descending)| KeyColumn { column, is_descending }).collect();
        let key = if keys.is_empty() {
            ChunkKey::Whole
        } else {
            ChunkKey::Index { name: "PRIMARY".to_owned(), columns: keys }
        };
        TableDefinition {
            name: TableName::new("d", "t"),
            is_sequence: false,
            engine: "InnoDB".to_owned(),
            columns: columns.to_vec(),
            key,
            rows: 0,
            row_bytes: 0,
        }
    }

    #[track_caller]
    fn check(descending: &[bool], after: Option<&[&str]>, until: Option<&[&str]>, expected: &str) {
        let table = table(descending);
        let bound = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect::<KeyBound>();
        let (after, until) = (after.map(bound), until.map(bound));
        let query = ChunkQuery { table: &table, after: after.as_ref(), until: until.as_ref(), limit: Some(9) };
        assert_eq!(query.sql(), format!("SELECT `a`, `b`, `v` FROM `d`.`t`{expected} LIMIT 9"));
    }

    #[test]
    fn statements() {
        check(&[], None, None, "");
        let one = " FORCE INDEX (`PRIMARY`)";
        check(&[false], None, None, &format!("{one} ORDER BY `a`"));
        check(&[false], Some(&["1"]), Some(&["5"]), &format!("{one} WHERE ((`a`>1)) AND ((`a`<=5)) ORDER BY `a`"));
        check(&[true], Some(&["1"]), None, &format!("{one} WHERE ((`a`<1)) ORDER BY `a` DESC"));
        check(
            &[false, true],
            Some(&["1", "2"]),
            Some(&["3", "4"]),
            &format!(
                "{one} WHERE `a`>=1 AND ((`a`>1) OR (`a`=1 AND `b`<2)) AND `a`<=3 AND ((`a`<3) OR (`a`=3 AND `b`>=4)) ORDER BY `a`, `b` DESC"
            ),
        );
        let my = TableDefinition { engine: "MyISAM".to_owned(), ..table(&[]) };
        let query = ChunkQuery { table: &my, after: None, until: None, limit: None };
        assert_eq!(query.sql(), "SELECT SQL_BUFFER_RESULT `a`, `b`, `v` FROM `d`.`t`");
        check(&[false, false], None, Some(&["3"]), &format!("{one} WHERE ((`a`<=3)) ORDER BY `a`, `b`"));
    }
}
