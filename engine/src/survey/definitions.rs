//! Table definitions without a server to ask: from a schema dump, from DDL in the log, from table maps.
//!
//! What is not surely known is left out; a table without a definition, and without a primary key in its table map, is
//! ordered as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use binlog::TableMap;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::table_id;
use crate::keys::{DataType, KeyClass, classify, logged};
use crate::schema::{
    Catalogue, CatalogueError, Column, ForeignKey, KeyPart, Table, TableId, TableOrderCause, UniqueKey,
};
use crate::sql::create_table::{self, KeyDefinition, KeyPartDefinition, ReferenceAction, TableDefinition};
use crate::sql::{self, Class, DdlKind, ObjectName, SqlMode, alterations};

/// The definitions at one place of a log. Cheap to copy.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    tables: BTreeMap<Arc<ObjectName>, Arc<TableDefinition>>,
}

impl Definitions {
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    pub fn get(&self, schema: &str, table: &str) -> Option<&Arc<TableDefinition>> {
        self.tables.get(&ObjectName::new(schema, table))
    }

    /// What a statement does to definitions; true when it may have done anything.
    pub fn execute(&mut self, sql: &[u8], schema: &str, mode: SqlMode) -> bool {
        let statement = sql::classify(sql, schema, mode);
        let Class::Ddl { kind } = statement.class else { return false };
        let first = statement.tables.first();
        match kind {
            DdlKind::CreateTable { temporary: true, .. } | DdlKind::DropTable { temporary: true, .. } => return false,
            DdlKind::CreateTable { like, if_not_exists, .. } => {
                let Some(name) = first else { return false };
                if if_not_exists && self.get(&name.schema, &name.name).is_some() {
                    return false;
                }
                let model = statement.tables.get(1).filter(|_| like);
                let definition = match model {
                    Some(model) => self.get(&model.schema, &model.name).map(|definition| (**definition).clone()),
                    None => create_table::parse(sql, schema, mode),
                };
                self.set(name, definition);
            }
            DdlKind::AlterTable => self.alter(sql, schema, mode, first),
            DdlKind::RenameTable => {
                for (from, to) in alterations::renames(sql, schema, mode).unwrap_or_default() {
                    self.rename(&from, &to);
                }
            }
            DdlKind::DropTable { .. } => statement.tables.iter().for_each(|name| self.set(name, None)),
            DdlKind::DropDatabase => self.tables.retain(|name, _| !statement.schemas.contains(&name.schema)),
            DdlKind::CreateIndex if contains_word(sql, b"UNIQUE") => {
                statement.tables.iter().for_each(|name| self.set(name, None));
            }
            DdlKind::DropIndex => self.drop_index(sql, first),
            _ => return false,
        }
        true
    }

    fn set(&mut self, name: &ObjectName, definition: Option<TableDefinition>) {
        match definition {
            Some(definition) => {
                let _ = self.tables.insert(Arc::new(name.clone()), Arc::new(definition));
            }
            None => {
                let _ = self.tables.remove(name);
            }
        }
    }

    fn rename(&mut self, from: &ObjectName, to: &ObjectName) {
        let definition = self.tables.remove(from);
        if let Some(definition) = definition {
            self.tables.insert(Arc::new(to.clone()), definition);
        }
    }

    fn alter(&mut self, sql: &[u8], schema: &str, mode: SqlMode, first: Option<&ObjectName>) {
        match alterations::alteration(sql, schema, mode) {
            Some(found) => {
                let harmless =
                    !["UNIQUE", "PRIMARY", "COLUMN", "CHANGE", "MODIFY", "DROP", "PARTITION", "AFTER", "FIRST"]
                        .iter()
                        .any(|word| contains_word(sql, word.as_bytes()))
                        && !found.primary_key
                        && !found.columns
                        && only_adds_keys(sql);
                if !harmless {
                    let added =
                        self.get(&found.table.schema, &found.table.name).and_then(|known| added(known, sql, mode));
                    self.set(&found.table, added);
                }
                if let Some(to) = &found.renamed_to {
                    self.rename(&found.table, to);
                }
            }
            None => first.into_iter().for_each(|name| self.set(name, None)),
        }
    }

    /// `DROP INDEX name ON table`.
    fn drop_index(&mut self, sql: &[u8], table: Option<&ObjectName>) {
        let Some(name) = table else { return };
        let Some(definition) = self.tables.get(name) else { return };
        let named = |key: &KeyDefinition| key.name.as_ref().is_none_or(|name| contains_word(sql, name.as_bytes()));
        let touched = contains_word(sql, b"PRIMARY") || definition.unique_keys.iter().any(named);
        if touched {
            self.set(name, None);
        }
    }
}

/// Words are compared without case; quotes around them do not matter.
fn contains_word(sql: &[u8], word: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'$' || *byte >= 0x80;
    sql.split(|byte| !is_name(byte)).any(|part| part.eq_ignore_ascii_case(word))
}

/// Whether each ADD of an ALTER TABLE is followed by a word that is no column.
fn only_adds_keys(sql: &[u8]) -> bool {
    let words: Vec<&[u8]> =
        sql.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').filter(|word| !word.is_empty()).collect();
    let keys: [&[u8]; 7] = [b"INDEX", b"KEY", b"FULLTEXT", b"SPATIAL", b"CHECK", b"VECTOR", b"VERSIONING"];
    let is = |word: Option<&&[u8]>, one: &[u8]| word.is_some_and(|word| word.eq_ignore_ascii_case(one));
    !words
        .iter()
        .enumerate()
        .any(|(at, word)| word.eq_ignore_ascii_case(b"ADD") && !keys.iter().any(|key| is(words.get(at + 1), key)))
}

/// The definition after an ALTER TABLE that does nothing but add one column at the end.
fn added(known: &TableDefinition, sql: &[u8], mode: SqlMode) -> Option<TableDefinition> {
    let others = [
        "UNIQUE",
        "PRIMARY",
        "CHANGE",
        "MODIFY",
        "DROP",
        "PARTITION",
        "AFTER",
        "FIRST",
        "RENAME",
        "CONSTRAINT",
        "KEY",
        "INDEX",
    ];
    if others.iter().any(|word| contains_word(sql, word.as_bytes())) {
        return None;
    }
    let upper = sql.to_ascii_uppercase();
    let mut places = upper.windows(5).enumerate().filter(|(_, window)| *window == b" ADD ").map(|(at, _)| at + 5);
    let (Some(at), None) = (places.next(), places.next()) else { return None };
    let mut clause = sql.get(at..)?.trim_ascii();
    if clause.get(..7).is_some_and(|word| word.eq_ignore_ascii_case(b"COLUMN ")) {
        clause = clause.get(7..)?;
    }
    // Read as the only column of a table; further clauses of the ALTER make that fail.
    let made = [b"CREATE TABLE t (".as_slice(), clause, b")"].concat();
    let parsed = create_table::parse(&made, "", mode)?;
    if parsed.columns.len() != 1 || parsed.primary_key.is_some() || !parsed.unique_keys.is_empty() {
        return None;
    }
    let mut definition = known.clone();
    definition.columns.extend(parsed.columns);
    Some(definition)
}

/// One foreign key, from its parent's side.
#[derive(Debug)]
struct Child {
    table: TableId,
    /// Its rows change along with the parent's.
    acts: bool,
    parent_columns: Vec<String>,
}

/// By parent.
type Children = HashMap<TableId, Vec<Child>, FixedState>;

/// [`Catalogue`] over [`Definitions`] and table maps.
#[derive(Debug)]
pub struct LogCatalogue {
    definitions: Arc<Definitions>,
    /// Foreign keys of all tables by parent. Made when first needed.
    children: Option<Children>,
}

impl LogCatalogue {
    pub fn new(definitions: Arc<Definitions>) -> Self {
        Self { definitions, children: None }
    }

    fn children(&mut self) -> &Children {
        let definitions = &self.definitions;
        self.children.get_or_insert_with(|| {
            let mut children = Children::default();
            for (name, definition) in &definitions.tables {
                for key in &definition.foreign_keys {
                    let acts = key.on_delete != ReferenceAction::Restrict || key.on_update != ReferenceAction::Restrict;
                    let parent = table_id(&key.parent.schema, &key.parent.name);
                    let table = table_id(&name.schema, &name.name);
                    let child = Child { table, acts, parent_columns: key.parent_columns.clone() };
                    children.entry(parent).or_default().push(child);
                }
            }
            children
        })
    }

    fn is_referenced(&mut self, table: TableId) -> bool {
        self.children().contains_key(&table)
    }

    fn cascades_to(&mut self, table: TableId) -> Vec<TableId> {
        let children = self.children();
        let mut found: Vec<TableId> = Vec::new();
        let mut next = vec![table];
        while let Some(at) = next.pop() {
            for child in children.get(&at).into_iter().flatten() {
                if child.acts && !found.contains(&child.table) {
                    found.push(child.table);
                    next.push(child.table);
                }
            }
        }
        found
    }

    /// Columns that cascading keys refer to; all of them when one does not say which, or by a name that is not there.
    fn cascade_columns(&mut self, table: TableId, columns: &[Column]) -> Vec<usize> {
        let position = |name: &String| columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
        let mut found = Vec::new();
        for child in self.children().get(&table).into_iter().flatten().filter(|child| child.acts) {
            match child.parent_columns.iter().map(position).collect::<Option<Vec<usize>>>() {
                Some(parts) if !parts.is_empty() => found.extend(parts),
                _ => return (0..columns.len()).collect(),
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn described(&mut self, map: &TableMap, definition: &TableDefinition) -> Table {
        let id = table_id(&map.schema, &map.table);
        let columns: Vec<Column> = map
            .columns
            .iter()
            .zip(&definition.columns)
            .map(|(logged, defined)| Column {
                name: defined.name.clone(),
                unsigned: defined.unsigned,
                nullable: defined.nullable,
                key_class: class(logged, defined, definition),
            })
            .collect();
        let (mut functional, mut keys) = (false, Vec::new());
        for key in definition.primary_key.iter().chain(&definition.unique_keys) {
            match unique(key, definition) {
                Some(key) => keys.push(key),
                None => functional = true,
            }
        }
        let nullable =
            |key: &UniqueKey| key.parts.iter().any(|part| columns.get(part.column).is_none_or(|c| c.nullable));
        // The key that identifies a row comes first.
        let identifying = (definition.primary_key.is_some() && !keys.is_empty()).then_some(0);
        let identifying = identifying.or_else(|| keys.iter().position(|key| !nullable(key)));
        if let Some(at) = identifying {
            let key = keys.remove(at);
            keys.insert(0, key);
        }
        let coarse = |key: &UniqueKey| {
            key.parts.iter().any(|part| columns.get(part.column).is_none_or(|c| c.key_class == KeyClass::Coarse))
        };
        let transactional = definition.engine.as_deref().is_none_or(|engine| {
            !["myisam", "aria", "memory", "csv", "archive", "merge", "mrg_myisam"]
                .iter()
                .any(|name| engine.eq_ignore_ascii_case(name))
        });
        let cause = if !transactional {
            Some(TableOrderCause::NotTransactional)
        } else if identifying.is_none() {
            Some(TableOrderCause::NoUniqueKey)
        } else if functional {
            Some(TableOrderCause::FunctionalKey)
        } else {
            keys.iter().any(coarse).then_some(TableOrderCause::KeyNotNormalised)
        };
        let foreign_keys: Vec<ForeignKey> =
            definition.foreign_keys.iter().map(|key| self.foreign_key(key, definition, &columns)).collect();
        let cascades_to = self.cascades_to(id);
        let cascade_columns = self.cascade_columns(id, &columns);
        Table {
            id,
            schema: map.schema.clone(),
            name: map.table.clone(),
            has_relations: !foreign_keys.is_empty() || self.is_referenced(id),
            is_referenced: self.is_referenced(id),
            columns,
            unique_keys: keys,
            foreign_keys,
            cascades_to,
            cascade_columns,
            transactional,
            works_out: false,
            alone: None,
            timed: Vec::new(),
            lookup_columns: None,
            order_by_table: cause,
        }
    }

    fn foreign_key(
        &self,
        key: &create_table::ForeignKeyDefinition,
        child: &TableDefinition,
        columns: &[Column],
    ) -> ForeignKey {
        let place = |name: &String| child.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
        let own: Vec<usize> = key.columns.iter().filter_map(place).collect();
        let parent_key = self.definitions.get(&key.parent.schema, &key.parent.name).and_then(|parent| {
            let names = |definition: &KeyDefinition| {
                definition.parts.len() == key.parent_columns.len()
                    && definition.parts.iter().zip(&key.parent_columns).all(|(part, wanted)| {
                        matches!(part, KeyPartDefinition::Column { name, prefix: None } if name.eq_ignore_ascii_case(wanted))
                    })
            };
            let keys = parent.primary_key.iter().chain(&parent.unique_keys);
            // The order of [`LogCatalogue::described`]: only sure when the primary key comes first.
            parent.primary_key.as_ref()?;
            keys.enumerate().find(|(_, definition)| names(definition)).map(|(at, _)| at)
        });
        let classes = own.iter().filter_map(|&at| columns.get(at)).map(|column| column.key_class).collect();
        ForeignKey {
            name: key.name.clone().unwrap_or_default(),
            parent: table_id(&key.parent.schema, &key.parent.name),
            parent_key: parent_key.filter(|_| own.len() == key.columns.len()),
            columns: own,
            classes,
        }
    }
}

/// Columns of a key by their place; `None` when one is an expression or not there.
fn unique(key: &KeyDefinition, definition: &TableDefinition) -> Option<UniqueKey> {
    let part = |part: &KeyPartDefinition| match part {
        KeyPartDefinition::Column { name, prefix } => {
            let column = definition.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))?;
            Some(KeyPart { column, prefix: *prefix })
        }
        KeyPartDefinition::Expression => None,
    };
    let parts = key.parts.iter().map(part).collect::<Option<Vec<KeyPart>>>()?;
    let first = || parts.first().and_then(|part| definition.columns.get(part.column)).map(|column| column.name.clone());
    let name = key.name.clone().or_else(first).unwrap_or_default();
    Some(UniqueKey { name, parts })
}

/// The table map's collation is the truth; older servers log none, then what the definition states counts.
fn class(logged: &binlog::Column, defined: &create_table::ColumnDefinition, table: &TableDefinition) -> KeyClass {
    let by_map = logged::key_class(logged);
    let is_text = matches!(defined.data_type, DataType::Char | DataType::VarChar | DataType::Text);
    if by_map != KeyClass::Coarse || !is_text {
        return if is_text { by_map } else { classify(&defined.data_type, "", "") };
    }
    let charset = defined.charset.as_deref().or(table.charset.as_deref()).unwrap_or("");
    let collation = match (&defined.collation, &defined.charset) {
        (Some(collation), _) => Some(collation.as_str()),
        (None, Some(_)) => None,
        (None, None) => table.collation.as_deref(),
    };
    let charset = match (charset, collation) {
        ("", Some(collation)) => collation.split('_').next().unwrap_or(""),
        (charset, _) => charset,
    };
    // Only where the default is the same on all servers.
    let default = match charset.to_ascii_lowercase().as_str() {
        "latin1" => "latin1_swedish_ci",
        "ascii" => "ascii_general_ci",
        "utf8" | "utf8mb3" => "utf8mb3_general_ci",
        _ => "",
    };
    classify(&defined.data_type, charset, collation.unwrap_or(default))
}

impl Catalogue for LogCatalogue {
    fn table(&mut self, map: &TableMap) -> Result<Arc<Table>, CatalogueError> {
        let id = table_id(&map.schema, &map.table);
        let definitions = Arc::clone(&self.definitions);
        let known = definitions.get(&map.schema, &map.table);
        if let Some(definition) = known.filter(|definition| definition.columns.len() == map.columns.len()) {
            return Ok(Arc::new(self.described(map, definition)));
        }
        Ok(Arc::new(match &map.primary_key {
            Some(parts) if !parts.is_empty() => {
                let prefix = |part: &binlog::KeyPart| (part.prefix > 0).then_some(part.prefix);
                let parts = parts.iter().map(|part| KeyPart { column: part.column, prefix: prefix(part) });
                Table::from_map(id, map, Some(parts.collect()))
            }
            // With full metadata columns have names, and there is no key.
            _ if map.columns.iter().all(|column| column.name.is_some()) => {
                Table::unknown(id, &map.schema, &map.table, TableOrderCause::NoUniqueKey)
            }
            _ => {
                let cause =
                    if known.is_some() { TableOrderCause::ColumnsDiffer } else { TableOrderCause::NotInCatalogue };
                Table::unknown(id, &map.schema, &map.table, cause)
            }
        }))
    }

    fn invalidate(&mut self, _: &crate::redefined::Redefined) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(statements: &[&str]) -> Definitions {
        let mut definitions = Definitions::default();
        for sql in statements {
            definitions.execute(sql.as_bytes(), "s", SqlMode::default());
        }
        definitions
    }

    #[test]
    fn statements_change_definitions() {
        const CREATE: &str = "CREATE TABLE t (id INT PRIMARY KEY, a INT, UNIQUE u (a))";
        let columns = |definitions: &Definitions, table: &str| definitions.get("s", table).map(|d| d.columns.len());
        for (statements, table, expect) in [
            (vec![CREATE], "t", Some(2)),
            (vec![CREATE, "CREATE TABLE c LIKE t"], "c", Some(2)),
            (vec![CREATE, "DROP TABLE t"], "t", None),
            (vec![CREATE, "RENAME TABLE t TO x"], "x", Some(2)),
            (vec![CREATE, "ALTER TABLE t RENAME TO x"], "x", Some(2)),
            (vec![CREATE, "ALTER TABLE t ADD INDEX k (a)"], "t", Some(2)),
            (vec![CREATE, "ALTER TABLE t ENGINE=InnoDB"], "t", Some(2)),
            (vec![CREATE, "CREATE INDEX k_1 ON t (a)"], "t", Some(2)),
            (vec![CREATE, "ALTER TABLE t ADD COLUMN b VARCHAR(10) NOT NULL DEFAULT ''"], "t", Some(3)),
            (vec![CREATE, "ALTER TABLE t ADD b INT, ADD c INT"], "t", None),
            (vec![CREATE, "ALTER TABLE t ADD b INT FIRST"], "t", None),
            (vec![CREATE, "ALTER TABLE t ADD UNIQUE (a)"], "t", None),
            (vec![CREATE, "ALTER TABLE t MODIFY a BIGINT"], "t", None),
            (vec![CREATE, "CREATE UNIQUE INDEX k ON t (a)"], "t", None),
            (vec![CREATE, "DROP INDEX u ON t"], "t", None),
            (vec![CREATE, "DROP INDEX other ON t"], "t", Some(2)),
            (vec![CREATE, "DROP DATABASE s"], "t", None),
            (vec![CREATE, "TRUNCATE t"], "t", Some(2)),
            (vec!["CREATE TABLE t SELECT 1"], "t", None),
        ] {
            assert_eq!(columns(&after(&statements), table), expect, "{statements:?}");
        }
    }
}
