//! Table definitions as the target has them, read when a table is first seen and after each DDL on it.

mod cache;
mod definition;
mod hidden_columns;
mod history;
pub(super) mod mismatch;
mod open_tables;
mod periods;
mod relations;
pub(super) mod sql_table;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use binlog::{ColumnKind, Flavour, TableMap};
use engine::definition_change::{DefinitionChange, is_among};
use engine::failure::{Failure, FailureKind};
use engine::keys::KeyClass;
use engine::schema::{
    BarrierReason, Catalogue, CatalogueError, ForeignKey, KeyPart, Leftovers, Table, TableId, TableOrderCause,
    UniqueKey,
};
use wire::Connection;

use self::cache::DefinitionCache;
use self::definition::Definition;
pub(in crate::mysql) use self::hidden_columns::HiddenColumn;
use self::open_tables::OpenTables;
pub use self::relations::cascades;
use self::relations::{Relation, Relations};
use super::rows::ambiguous_rows;
use super::rows::blackholes::Blackhole;
use super::rows::hidden_keys::HiddenKey;
use super::rows::quirks::TableQuirks;
use super::rows::sequences::Sequence;
use super::rows::table_mapping::Name;
use super::server::account_tables::is_account_table;
use super::server::errors::failed;
use super::server::sql::quote;
use super::session::channel::ChannelContext;
use crate::retry::until_reached;

pub struct MySqlCatalogue {
    connection: Connection,
    reconnect: Box<dyn Fn() -> Result<Connection, Failure> + Send>,
    ids: HashMap<Name, TableId>,
    tables: HashMap<TableId, Arc<Table>>,
    /// What was read since the last DDL, of tables in use and of their neighbours.
    definitions: DefinitionCache,
    /// Foreign keys of the whole server.
    relations: Option<Arc<Relations>>,
    /// The tables whose foreign keys are to be read again.
    changed: HashSet<Name>,
    /// Where what writing rows has to know is put; `None`: nothing has to be known.
    quirks: Option<Arc<TableQuirks>>,
    /// Tables whose lookups ([`ambiguous_rows`]) are among these, with the width of their rows.
    lookups: HashMap<Name, usize>,
    open_tables: OpenTables,
    /// Transactions get the source's GTIDs.
    keeps_gtids: bool,
    /// See [`super::server::info::TargetInfo::knows_generated_keys`].
    knows_generated_keys: bool,
}

/// The channel's catalogue of its target. It finds out what writing rows has to know of some tables.
pub fn of_channel(channel: &Arc<ChannelContext>) -> Result<MySqlCatalogue, Failure> {
    let connection = channel.connector.connect()?;
    let own = Arc::clone(channel);
    let reconnect = move || until_reached(own.reconnect_for(), || own.connector.connect());
    let mut catalogue = MySqlCatalogue::new(connection, Box::new(reconnect));
    catalogue.quirks = Some(Arc::clone(&channel.quirks));
    catalogue.open_tables = catalogue.read_open_tables();
    catalogue.knows_generated_keys = channel.info().knows_generated_keys();
    catalogue.keeps_gtids = channel.info().flavour == Flavour::MariaDb && channel.gtids.are_preserved();
    Ok(catalogue)
}

/// The column of the rows that is the definition's at `at`: a key that the server has made is the first column of the one that has it.
fn image_column<'a>(definition: &Definition, map: &'a TableMap, at: usize) -> Option<&'a binlog::Column> {
    let at = match (HiddenColumn::of(map), definition.has_generated_key()) {
        (HiddenColumn::GeneratedKey, false) => at + 1,
        (HiddenColumn::Nothing, true) if definition.columns.len() == map.columns.len() + 1 => at.checked_sub(1)?,
        _ => at,
    };
    map.columns.get(at)
}

/// The most schemas that are searched for neighbours of a table.
const SCHEMAS: usize = 128;

/// If the foreign keys of more tables than this have changed, all are read again.
const CHANGED_MAX: usize = 100;

/// How often the connection may be lost during one query: more often than that, it is the query.
const LOST_MAX: u32 = 20;

/// The message says what to do.
fn refused(what: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Refused, what)
}

impl MySqlCatalogue {
    pub fn new(connection: Connection, reconnect: Box<dyn Fn() -> Result<Connection, Failure> + Send>) -> Self {
        Self {
            connection,
            reconnect,
            ids: HashMap::new(),
            tables: HashMap::new(),
            definitions: DefinitionCache::default(),
            relations: None,
            changed: HashSet::new(),
            quirks: None,
            lookups: HashMap::new(),
            open_tables: OpenTables::default(),
            keeps_gtids: false,
            knows_generated_keys: false,
        }
    }

    /// A server that does not know the settings has no instances.
    fn read_open_tables(&mut self) -> OpenTables {
        if self.connection.server().flavour == Flavour::MariaDb {
            return OpenTables::default();
        }
        let rows = self.rows(open_tables::SQL).unwrap_or_default();
        let number = |at: usize| rows.first().and_then(|row| row.required(at).ok());
        number(0)
            .zip(number(1))
            .map_or_else(OpenTables::default, |(tables, instances)| OpenTables::new(tables, instances))
    }

    fn id(&mut self, name: &Name) -> TableId {
        let next = TableId(self.ids.len() as u32);
        *self.ids.entry(name.clone()).or_insert(next)
    }

    /// Asks the target, again on a new connection when the old one is gone, and again when somebody has ended the query.
    fn rows(&mut self, sql: &str) -> Result<Vec<wire::Row>, Failure> {
        let mut lost = 0;
        loop {
            match self.connection.rows(sql) {
                Err(error) if error.is_connection_lost() && lost < LOST_MAX => {
                    lost += 1;
                    self.connection = (self.reconnect)()?;
                }
                other => return other.map_err(failed),
            }
        }
    }

    pub(super) fn load(&mut self, name: &Name, width: usize, hidden: HiddenColumn) -> Result<Table, Failure> {
        let (id, (schema, table)) = (self.id(name), name);
        let Some(definition) = self.definition(name)? else {
            return Ok(Table::unknown(id, schema, table, TableOrderCause::NotInCatalogue));
        };
        // MariaDB's row images hold a hidden hash for each unique key that is too long for an index.
        let is_shifted = (hidden == HiddenColumn::GeneratedKey) != definition.has_generated_key();
        let leaves_key_out = is_shifted && hidden == HiddenColumn::GeneratedKey && self.knows_generated_keys;
        if is_shifted && hidden == HiddenColumn::GeneratedKey && !leaves_key_out && definition.columns.len() < width {
            return Err(refused(format!(
                "the source's server has given the table a primary key of its own, my_row_id, which the target lacks and a client can not leave out: ALTER \
                 TABLE {schema}.{table} ADD my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY FIRST on the target, while it has none of the \
                 source's rows; or drop the column on the source"
            )));
        }
        if definition.columns.len() + definition.hidden_columns + usize::from(leaves_key_out) < width {
            return Err(refused(format!(
                "the target's table has {} columns, the source's {width}: values would be lost; make the definitions equal",
                definition.columns.len()
            )));
        }
        self.set_quirks(name, &definition, width)?;
        if let Some(quirks) = self.quirks.clone() {
            quirks.hidden_keys.set(name, leaves_key_out.then_some(HiddenKey));
            if quirks.describes_for_sql() {
                let table = sql_table::describe(&mut |sql| self.rows(sql), name, &definition, width, hidden)?;
                quirks.sql_tables.set(name, Some(table));
            }
        }
        self.check_case(name)?;
        let relations = self.relations()?;
        let mut cause = definition.cause;
        let mut foreign_keys = Vec::new();
        for relation in relations.of_child(name) {
            match self.foreign_key(relation, &definition)? {
                Some(key) => foreign_keys.push(key),
                None => cause = cause.or(Some(TableOrderCause::ForeignKeyUnknown)),
            }
        }
        let cascades_to = relations.descendants(name).iter().map(|name| self.id(name)).collect();
        let cascade_columns = relations.cascade_columns(name, &definition.columns);
        let is_referenced = relations.of_parent(name).next().is_some();
        let has_relations = is_referenced || relations.of_child(name).next().is_some();
        let (columns, unique_keys) = match definition.hidden_period() {
            Some(whole) if whole.0.len() == width => whole,
            _ => (definition.columns.clone(), definition.unique_keys.clone()),
        };
        let known = Table {
            id,
            schema: schema.clone(),
            name: table.clone(),
            has_relations,
            is_referenced,
            columns,
            unique_keys,
            foreign_keys,
            cascades_to,
            cascade_columns,
            transactional: definition.transactional,
            works_out: definition.works_out && self.connection.server().flavour == Flavour::MySql,
            // A sequence may share a transaction where the source's GTIDs are not kept. It does not go back when that is rolled back, but to apply
            // it again sets the same values.
            barrier: definition
                .barrier
                .filter(|why| *why != BarrierReason::Sequence || self.keeps_gtids)
                .or_else(|| history::is_made_here(definition.row_end, width).then_some(BarrierReason::TimeHistory))
                .or_else(|| is_account_table(schema, table).then_some(BarrierReason::Accounts)),
            timed: definition.timed.clone(),
            lookup_columns: definition.lookup_columns().filter(|_| !has_relations),
            order_by_table: cause,
            leftovers: self.quirks.as_ref().map_or(Leftovers::None, |quirks| quirks.leftovers()),
        };
        // Where the server leaves a key out, the source's columns are not where the target's are.
        let is_aligned = known.columns.len() == width && !(is_shifted && self.knows_generated_keys);
        let known = if is_aligned { known } else { known.without_columns() };
        if let Some(quirks) = &self.quirks {
            quirks.set_key_columns(name, &known);
        }
        Ok(known)
    }

    /// A server that does not tell upper from lower case has a table's foreign keys under another name than the log has. They would not be found.
    fn check_case(&mut self, name: &Name) -> Result<(), Failure> {
        if !self.relations()?.has_only_lower_case_of(name) {
            return Ok(());
        }
        let setting = self.rows("SELECT @@lower_case_table_names")?;
        if setting.first().and_then(|row| row.get(0)) == Some(b"0") {
            return Ok(());
        }
        Err(refused(
            "the source's name has capitals, the target (lower_case_table_names) does not tell them from small letters, and the table is in a foreign key there, \
             which would not be seen: rename the table on the source in small letters, or drop its foreign keys on the target",
        ))
    }

    /// MariaDB's format from before MySQL 5.6 has types that do not say how long a fraction is: values would be read with a wrong length.
    fn check_fractions(&self, name: &Name, map: &TableMap) -> Result<(), Failure> {
        let Some(definition) = self.definitions.get(name) else { return Ok(()) };
        let old = |at: &&usize| {
            let kind = image_column(definition, map, **at).map(|column| column.kind);
            matches!(kind, Some(ColumnKind::TIME | ColumnKind::DATETIME | ColumnKind::TIMESTAMP))
        };
        let Some(found) = definition.fractions.iter().find(old) else { return Ok(()) };
        let column = definition.columns.get(*found).map_or("", |column| column.name.as_str());
        Err(refused(format!(
            "the source has column {column} in MariaDB's old format (mysql56_temporal_format=OFF), whose length the log does not say: set the \
             variable to ON on the source, ALTER TABLE … FORCE there, and load the target's table anew"
        )))
    }

    /// MariaDB's JSON is a LONGTEXT. A server says no more than "unknown error" when such a value is to become MySQL's JSON.
    fn check_json(&self, name: &Name, map: &TableMap) -> Result<(), Failure> {
        // As SQL, text becomes JSON.
        if self.quirks.as_ref().is_some_and(|quirks| quirks.writes_sql()) {
            return Ok(());
        }
        let Some(definition) = self.definitions.get(name) else { return Ok(()) };
        let other =
            |at: &&usize| image_column(definition, map, **at).is_some_and(|column| column.kind != ColumnKind::JSON);
        let Some(found) = definition.json.iter().find(other) else { return Ok(()) };
        let column = definition.columns.get(*found).map_or("", |column| column.name.as_str());
        Err(refused(format!(
            "column {column} is JSON on the target and is not on the source (MariaDB's JSON is a LONGTEXT), whose values can not be applied: \
             ALTER TABLE … MODIFY {column} LONGTEXT on the target, and run the same command again"
        )))
    }

    fn set_quirks(&mut self, name: &Name, definition: &Definition, width: usize) -> Result<(), Failure> {
        let Some(quirks) = self.quirks.clone() else { return Ok(()) };
        if self.connection.server().flavour == Flavour::MySql {
            quirks.blackholes.set(name, definition.swallows_rows.then(Blackhole::default));
            return Ok(());
        }
        quirks.sequences.set(name, (definition.barrier == Some(BarrierReason::Sequence)).then_some(Sequence));
        quirks.set_row_end(name, definition.row_end);
        let uncertain = |key: &UniqueKey| {
            let part = |part: &KeyPart| {
                part.column >= width || definition.columns.get(part.column).is_none_or(|column| column.nullable)
            };
            key.parts.iter().any(part)
        };
        let may_be = !definition.unique_keys.is_empty() && definition.unique_keys.iter().all(uncertain);
        if may_be && self.lookups.get(name) == Some(&width) {
            return Ok(());
        }
        let lookup = if may_be { ambiguous_rows::read(&mut |sql| self.rows(sql), name, width)? } else { None };
        quirks.lookups.set(name, lookup);
        self.lookups.insert(name.clone(), width);
        Ok(())
    }

    fn read(&mut self, place: &str) -> Result<HashMap<Name, Definition>, Failure> {
        let periods = self.connection.server().flavour == Flavour::MariaDb;
        definition::read(&mut |sql| self.rows(sql), place, periods)
    }

    fn forget_all(&mut self) {
        self.tables.clear();
        self.definitions = DefinitionCache::default();
        self.relations = None;
        self.changed.clear();
        self.lookups.clear();
        if let Some(quirks) = &self.quirks {
            quirks.forget(|_| true);
        }
    }

    /// `None`: there is no such table.
    fn definition(&mut self, name: &Name) -> Result<Option<Arc<Definition>>, Failure> {
        if let Some(found) = self.definitions.get(name) {
            return Ok(Some(Arc::clone(found)));
        }
        let at_once = self.definitions.missed(name);
        if at_once > 1 {
            // Where many tables are in use, their neighbours will be.
            let place = self.neighbours(name, at_once)?;
            let read = self.read(&place)?;
            read.into_iter().for_each(|(name, read)| self.definitions.add(name, Arc::new(read)));
            if let Some(found) = self.definitions.get(name) {
                return Ok(Some(Arc::clone(found)));
            }
        }
        let place = format!("TABLE_SCHEMA={} AND TABLE_NAME={}", quote(&name.0), quote(&name.1));
        let mut read = self.read(&place)?;
        // A server that does not tell upper from lower case may spell it in another way.
        let found = read.remove(name).or_else(|| read.into_values().next()).map(Arc::new);
        if let Some(found) = &found {
            self.definitions.add(name.clone(), Arc::clone(found));
        }
        Ok(found)
    }

    /// The condition for a table and its neighbours by name, `tables` at most: whole schemas where the table's own is not larger than that, else those
    /// of its schema that follow it.
    fn neighbours(&mut self, name: &Name, tables: usize) -> Result<String, Failure> {
        let own = quote(&name.0);
        let next = self.rows(&format!(
            "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME>{own} ORDER BY SCHEMA_NAME LIMIT {SCHEMAS}"
        ))?;
        let next = next.iter().filter_map(|row| row.text(0).ok().flatten()).map(quote);
        let schemas: Vec<String> = std::iter::once(own.clone()).chain(next).collect();
        let counts = self.rows(&format!(
            "SELECT TABLE_SCHEMA, COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ({}) GROUP BY TABLE_SCHEMA",
            schemas.join(",")
        ))?;
        let mut counted = Vec::new();
        for row in &counts {
            counted.push((quote(row.required_text(0).map_err(failed)?), row.required::<usize>(1).map_err(failed)?));
        }
        // The table's own schema first.
        counted.sort_by_key(|(schema, _)| *schema != own);
        let mut room = tables;
        let mut chosen = Vec::new();
        for (schema, count) in counted {
            if let Some(left) = room.checked_sub(count) {
                room = left;
                chosen.push(schema);
            }
        }
        if chosen.contains(&own) {
            return Ok(format!("TABLE_SCHEMA IN ({})", chosen.join(",")));
        }
        let place = format!("TABLE_SCHEMA={own} AND TABLE_NAME>={}", quote(&name.1));
        let last = self.rows(&format!(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE {place} ORDER BY TABLE_NAME LIMIT {},1",
            tables - 1
        ))?;
        let last = last.first().and_then(|row| row.text(0).ok().flatten());
        Ok(last.map_or(place.clone(), |last| format!("{place} AND TABLE_NAME<={}", quote(last))))
    }

    fn relations(&mut self) -> Result<Arc<Relations>, Failure> {
        let relations = match self.relations.clone() {
            Some(known) if self.changed.is_empty() => return Ok(known),
            Some(known) if self.changed.len() <= CHANGED_MAX => {
                let changed = self.changed.clone();
                Arc::new(known.read_again(&changed, &mut |sql| self.rows(sql))?)
            }
            _ => Arc::new(Relations::read(&mut |sql| self.rows(sql))?),
        };
        self.changed.clear();
        self.relations = Some(Arc::clone(&relations));
        Ok(relations)
    }

    /// `None`: columns that are not where they should be.
    fn foreign_key(&mut self, relation: &Relation, child: &Definition) -> Result<Option<ForeignKey>, Failure> {
        let position = |name: &String| child.columns.iter().position(|column| column.name == *name);
        let columns: Option<Vec<usize>> = relation.child_columns.iter().map(position).collect();
        let Some(columns) = columns else { return Ok(None) };
        let parent = self.id(&relation.parent);
        let Some(definition) = self.definition(&relation.parent)? else {
            // A parent that does not exist (foreign_key_checks=0) has no rows to wait for.
            return Ok(Some(ForeignKey {
                name: relation.name.clone(),
                columns,
                parent,
                parent_key: None,
                classes: Vec::new(),
            }));
        };
        let wanted: Option<Vec<usize>> = relation
            .parent_columns
            .iter()
            .map(|name| definition.columns.iter().position(|column| column.name == *name))
            .collect();
        let key = wanted.as_ref().and_then(|wanted| {
            definition.unique_keys.iter().position(|key| {
                key.parts.iter().all(|part| part.prefix.is_none())
                    && key.parts.iter().map(|part| part.column).eq(wanted.iter().copied())
            })
        });
        let classes: Vec<KeyClass> = wanted
            .unwrap_or_default()
            .iter()
            .filter_map(|&column| definition.columns.get(column).map(|column| column.key_class))
            .collect();
        // Values of the child have to become the same bytes as the parent's.
        let same = columns
            .iter()
            .map(|&at| child.columns.get(at).map(|column| column.key_class))
            .eq(classes.iter().copied().map(Some));
        let parent_key = key.filter(|_| definition.cause.is_none() && same);
        Ok(Some(ForeignKey { name: relation.name.clone(), columns, parent, parent_key, classes }))
    }
}

impl Catalogue for MySqlCatalogue {
    fn table(&mut self, map: &TableMap) -> Result<Arc<Table>, CatalogueError> {
        let name = (map.schema.clone(), map.table.clone());
        let id = self.id(&name);
        if let Some(table) = self.tables.get(&id) {
            return Ok(Arc::clone(table));
        }
        let known = self.load(&name, map.columns.len(), HiddenColumn::of(map));
        let table = known
            .and_then(|table| {
                self.check_fractions(&name, map)?;
                self.check_json(&name, map)?;
                Ok(table)
            })
            .map_err(|why| CatalogueError { schema: name.0, table: name.1, why: Box::new(why) })?;
        if let Some(cause) = table.order_by_table {
            tracing::info!("{}.{} is ordered by table: {}", table.schema, table.name, cause.as_str());
        }
        let table = Arc::new(table);
        self.tables.insert(id, Arc::clone(&table));
        if let Some(message) = self.open_tables.too_many(self.tables.len()) {
            tracing::info!("{message}");
        }
        Ok(table)
    }

    fn has_table(&mut self, schema: &str, table: &str) -> bool {
        if self.definitions.get(&(schema.to_owned(), table.to_owned())).is_some() {
            return true;
        }
        let sql = format!(
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA={} AND TABLE_NAME={} AND TABLE_TYPE IN ('BASE TABLE','SYSTEM VERSIONED')",
            quote(schema),
            quote(table)
        );
        self.rows(&sql).is_ok_and(|rows| !rows.is_empty())
    }

    fn invalidate(&mut self, what: &DefinitionChange) {
        let (names, schemas, relations) = match what {
            DefinitionChange::Nothing => return,
            DefinitionChange::Tables { names, schemas, relations } => (names, schemas, relations),
            DefinitionChange::Everything => return self.forget_all(),
        };
        let is_one = |name: &Name| is_among(names, schemas, &name.0, &name.1);
        self.definitions.forget(is_one, names.iter().map(|named| (named.schema.clone(), named.name.clone())));
        self.lookups.retain(|name, _| !is_one(name));
        let concerned = self.relations.as_ref().map(|known| known.concerned(is_one)).unwrap_or_default();
        if *relations || !concerned.is_empty() {
            self.changed.extend(concerned);
            self.changed.extend(names.iter().map(|named| (named.schema.clone(), named.name.clone())));
            // What follows from them may be anywhere.
            self.tables.clear();
        } else {
            self.tables.retain(|_, table| !is_among(names, schemas, &table.schema, &table.name));
        }
        if let Some(quirks) = &self.quirks {
            quirks.forget(is_one);
        }
    }
}
