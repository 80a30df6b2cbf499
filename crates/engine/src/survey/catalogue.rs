//! Tables as definitions and table maps together describe them.
//!
//! A definition counts where it fits the map. A table without one, and without a primary key in its map, is ordered as a whole.

use std::sync::Arc;

use binlog::TableMap;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::fit::{self, HiddenColumn};
use super::{Definitions, table_id};
use crate::keys::{DataType, KeyClass, classify, logged};
use crate::schema::{
    Catalogue, CatalogueError, Column, ForeignKey, KeyPart, Leftovers, Table, TableId, TableOrderCause, UniqueKey,
};
use crate::sql::ObjectName;
use crate::sql::create_table::{self, KeyDefinition, KeyPartDefinition, ReferenceAction, TableDefinition};

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
    /// Only a definition says what keys a table has: a table map does not know its unique and foreign keys.
    surely: bool,
}

impl LogCatalogue {
    pub fn new(definitions: Arc<Definitions>) -> Self {
        Self { definitions, children: None, surely: false }
    }

    /// For who may miss no key.
    pub fn surely(definitions: Arc<Definitions>) -> Self {
        Self { surely: true, ..Self::new(definitions) }
    }

    fn children(&mut self) -> &Children {
        let definitions = &self.definitions;
        self.children.get_or_insert_with(|| {
            let mut children = Children::default();
            for (name, definition) in definitions.iter() {
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

    fn described(&mut self, map: &TableMap, definition: &TableDefinition, beyond: &[HiddenColumn]) -> Table {
        let id = table_id(&map.schema, &map.table);
        let offset = usize::from(beyond.first() == Some(&HiddenColumn::GeneratedKey));
        let mut columns: Vec<Column> = Vec::with_capacity(map.columns.len());
        for (at, logged) in map.columns.iter().enumerate() {
            let defined = at.checked_sub(offset).and_then(|at| definition.columns.get(at));
            columns.push(match defined {
                Some(defined) => Column {
                    name: defined.name.clone(),
                    unsigned: defined.unsigned,
                    // NOT NULL may follow from defaults of the server.
                    nullable: logged.nullable,
                    key_class: class(logged, defined, definition),
                },
                None => fit::hidden(at, logged),
            });
        }
        let row_end = fit::row_end(definition, beyond);
        let (mut functional, mut keys) = (false, Vec::new());
        if offset > 0 {
            keys.push(UniqueKey { name: "PRIMARY".to_owned(), parts: vec![KeyPart { column: 0, prefix: None }] });
        }
        for key in definition.primary_key.iter().chain(&definition.unique_keys) {
            match unique(key, definition) {
                Some(mut key) => {
                    key.parts.iter_mut().for_each(|part| part.column += offset);
                    // Each version of a row has the end of its own time.
                    if let Some(end) = row_end.filter(|end| key.parts.iter().all(|part| part.column != *end)) {
                        key.parts.push(KeyPart { column: end, prefix: None });
                    }
                    keys.push(key);
                }
                None => functional = true,
            }
        }
        let nullable =
            |key: &UniqueKey| key.parts.iter().any(|part| columns.get(part.column).is_none_or(|c| c.nullable));
        // The key that identifies a row comes first.
        let has_primary = definition.primary_key.is_some() || offset > 0;
        let identifying = (has_primary && !keys.is_empty()).then_some(0);
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
            definition.foreign_keys.iter().map(|key| self.foreign_key(key, &columns)).collect();
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
            barrier: None,
            timed: Vec::new(),
            lookup_columns: None,
            order_by_table: cause,
            leftovers: Leftovers::None,
        }
    }

    fn foreign_key(&self, key: &create_table::ForeignKeyDefinition, columns: &[Column]) -> ForeignKey {
        let place = |name: &String| columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
        let own: Vec<usize> = key.columns.iter().filter_map(place).collect();
        let parent_key = self.definitions.candidates(&key.parent).next().and_then(|parent| parent_key(key, parent));
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

/// Which of the parent's keys a foreign key refers to, in the order of [`LogCatalogue::described`]: that is only sure when the primary key comes first. The
/// keys of a table with history have one part more.
fn parent_key(key: &create_table::ForeignKeyDefinition, parent: &TableDefinition) -> Option<usize> {
    parent.primary_key.as_ref().filter(|_| parent.history.is_none())?;
    let is_meant = |definition: &KeyDefinition| {
        definition.parts.len() == key.parent_columns.len()
            && definition.parts.iter().zip(&key.parent_columns).all(|(part, wanted)| {
                matches!(part, KeyPartDefinition::Column { name, prefix: None } if name.eq_ignore_ascii_case(wanted))
            })
    };
    let keys = parent.primary_key.iter().chain(&parent.unique_keys);
    keys.filter(|key| unique(key, parent).is_some()).position(is_meant)
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
        let name = ObjectName::new(&map.schema, &map.table);
        let fitting = |definition| fit::fits(definition, map).map(|beyond| (definition, beyond));
        if let Some((definition, beyond)) = definitions.candidates(&name).find_map(|definition| fitting(definition)) {
            return Ok(Arc::new(self.described(map, definition, &beyond)));
        }
        let is_known = definitions.candidates(&name).next().is_some();
        Ok(Arc::new(match &map.primary_key {
            Some(parts) if !parts.is_empty() && !self.surely => {
                let prefix = |part: &binlog::KeyPart| (part.prefix > 0).then_some(part.prefix);
                let parts = parts.iter().map(|part| KeyPart { column: part.column, prefix: prefix(part) });
                Table::from_map(id, map, Some(parts.collect()))
            }
            // With full metadata columns have names, and there is no key.
            _ if map.columns.iter().all(|column| column.name.is_some()) && !self.surely => {
                Table::unknown(id, &map.schema, &map.table, TableOrderCause::NoUniqueKey)
            }
            _ => {
                let cause = if is_known { TableOrderCause::ColumnsDiffer } else { TableOrderCause::NotInCatalogue };
                Table::unknown(id, &map.schema, &map.table, cause)
            }
        }))
    }

    fn invalidate(&mut self, _: &crate::definition_change::DefinitionChange) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::SqlMode;
    use binlog::encode::{self, FormatSpec, Head, TableMapSpec};
    use binlog::{Checksum, ColumnKind, Event, Flavour, FormatDescription, TableMap};

    /// A table map of `s.t`: `i` INT, `l` BIGINT, `v` VARCHAR, `t` TIMESTAMP(6), `z` a compressed VARCHAR; capitals are NOT NULL.
    fn map(columns: &str) -> TableMap {
        let column = |letter: char| {
            let kind = match letter.to_ascii_lowercase() {
                'i' => ColumnKind::LONG,
                'l' => ColumnKind::LONGLONG,
                'v' => ColumnKind::VARCHAR,
                't' => ColumnKind::TIMESTAMP2,
                _ => ColumnKind::VARCHAR_COMPRESSED,
            };
            let mut column = binlog::Column::new(kind, 0, letter.is_ascii_lowercase());
            column.unsigned =
                (kind == ColumnKind::LONG || kind == ColumnKind::LONGLONG).then_some(kind == ColumnKind::LONGLONG);
            // latin1_swedish_ci
            column.collation = (kind == ColumnKind::VARCHAR).then_some(8);
            column
        };
        let columns: Vec<binlog::Column> = columns.chars().map(column).collect();
        let head = Head::new(0, 1, Checksum::Off);
        let format = encode::format_description(&head, &FormatSpec::new("8.0.36", Flavour::MySql, Checksum::Off));
        let (_, format) = FormatDescription::decode(&format.into()).unwrap();
        let spec = TableMapSpec {
            table_id: 1,
            flags: 1,
            schema: "s",
            table: "t",
            columns: &columns,
            primary_key: None,
            metadata: true,
        };
        let event = Event::parse(encode::table_map(&head, &spec).into(), Checksum::Off).unwrap();
        TableMap::decode(&event, &format).unwrap()
    }

    /// The unique keys by the places of their columns, `-` before those that do not tell rows apart as a table ordered as a whole.
    fn keys(given: &[&str], statements: &[&str], columns: &str) -> Result<Vec<Vec<usize>>, TableOrderCause> {
        let mut definitions = Definitions::default();
        let execute =
            |definitions: &mut Definitions, sql: &str| definitions.execute(sql.as_bytes(), "s", SqlMode::default());
        for sql in given {
            execute(&mut definitions, sql);
        }
        let mut definitions = definitions.given();
        for sql in statements {
            execute(&mut definitions, sql);
        }
        let table = LogCatalogue::new(Arc::new(definitions)).table(&map(columns)).unwrap();
        assert!(table.columns.is_empty() || table.columns.len() == columns.len());
        match table.order_by_table {
            Some(cause) => Err(cause),
            None => {
                Ok(table.unique_keys.iter().map(|key| key.parts.iter().map(|part| part.column).collect()).collect())
            }
        }
    }

    #[test]
    fn keys_come_from_ddl() {
        const T: &str = "CREATE TABLE t (id INT PRIMARY KEY, v INT)";
        for (statements, columns, expected) in [
            (vec![T], "Ii", Ok(vec![vec![0]])),
            (vec![T], "Iii", Err(TableOrderCause::ColumnsDiffer)),
            (vec![T], "Il", Err(TableOrderCause::ColumnsDiffer)),
            (vec![], "Ii", Err(TableOrderCause::NotInCatalogue)),
            (vec![T, "ALTER TABLE t ADD COLUMN c INT AFTER id"], "Iii", Ok(vec![vec![0]])),
            (vec![T, "ALTER TABLE t ADD c INT FIRST, ADD UNIQUE (v)"], "iIi", Ok(vec![vec![1], vec![2]])),
            // NOT NULL is what the rows say: it may follow from a server's settings.
            (vec!["CREATE TABLE t (id INT UNIQUE, v INT)"], "Ii", Ok(vec![vec![0]])),
            (vec!["CREATE TABLE t (id INT UNIQUE, v INT)"], "ii", Err(TableOrderCause::NoUniqueKey)),
            // MariaDB: what is compressed, and what keeps its history.
            (vec!["CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100) COMPRESSED)"], "Iz", Ok(vec![vec![0]])),
            (vec!["CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100))"], "Iz", Err(TableOrderCause::ColumnsDiffer)),
            (vec![T, "ALTER TABLE t ADD SYSTEM VERSIONING"], "IiTT", Ok(vec![vec![0, 3]])),
            (
                vec![T, "ALTER TABLE t ADD SYSTEM VERSIONING", "ALTER TABLE t DROP SYSTEM VERSIONING"],
                "Ii",
                Ok(vec![vec![0]]),
            ),
            (
                vec![
                    "CREATE TABLE t (id INT, rs TIMESTAMP(6) AS ROW START, re TIMESTAMP(6) AS ROW END, v INT UNIQUE, PRIMARY KEY (id), \
                      PERIOD FOR SYSTEM_TIME (rs, re)) WITH SYSTEM VERSIONING",
                ],
                "ITTi",
                Ok(vec![vec![0, 2], vec![3, 2]]),
            ),
            // The hash of a unique key over a long text.
            (
                vec!["CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9) UNIQUE) CHARSET=latin1"],
                "Ivl",
                Ok(vec![vec![0], vec![1]]),
            ),
            (vec![T], "Iil", Err(TableOrderCause::ColumnsDiffer)),
            // MySQL's generated primary key, which no statement names.
            (vec!["CREATE TABLE t (a INT, b INT UNIQUE)"], "Lii", Ok(vec![vec![0], vec![2]])),
            (vec![T], "LIi", Err(TableOrderCause::ColumnsDiffer)),
        ] {
            assert_eq!(keys(&[], &statements, columns), expected, "{statements:?} {columns}");
        }
    }

    /// A schema that was given may be of any time: it counts where it fits, and the log does not say better.
    #[test]
    fn a_schema_that_fits_counts() {
        const NOW: &str = "CREATE TABLE t (id INT PRIMARY KEY, c INT, v INT UNIQUE)";
        for (statements, columns, expected) in [
            (vec![], "Iii", Ok(vec![vec![0], vec![2]])),
            // The log had it another way before.
            (vec!["ALTER TABLE t ADD c INT AFTER id"], "Iii", Ok(vec![vec![0], vec![2]])),
            (vec!["DROP TABLE t", "CREATE TABLE t SELECT 1"], "Iii", Ok(vec![vec![0], vec![2]])),
            (vec!["CREATE TABLE t (id INT, c INT PRIMARY KEY, v INT)"], "iIi", Ok(vec![vec![1]])),
            (vec!["CREATE TABLE t (id INT PRIMARY KEY, v INT)"], "Iii", Ok(vec![vec![0], vec![2]])),
            (vec![], "Ii", Err(TableOrderCause::ColumnsDiffer)),
        ] {
            assert_eq!(keys(&[NOW], &statements, columns), expected, "{statements:?} {columns}");
        }
    }
}
