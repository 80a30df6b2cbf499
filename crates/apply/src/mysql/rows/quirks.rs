//! What has to be known of some tables to write their rows. The catalogue finds it out when it reads their definitions.

use std::sync::{Arc, OnceLock};

use binlog::{Bitmap, RowsKind, TableMap};
use engine::compact::Batch;
use engine::failure::Failure;
use engine::schema::{Leftovers, Table};
use wire::Connection;

use super::ambiguous_rows::Lookup;
use super::blackholes::Blackhole;
use super::hidden_keys::HiddenKey;
use super::hidden_triggers::HiddenTriggers;
use super::row_end::{self, RowEnd};
use super::sequences::{self, CompletedRow, Sequence};
use super::sql::table::SqlTable;
use super::table_mapping::{Name, TableMapping};
use super::writer::RowsAs;
use crate::mysql::server::bookkeeping::SCHEMA;
use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::privileges::RowsWritten;
use crate::mysql::server::shown_triggers::ShownTriggers;

/// Reads a table by a source's table map. `None`: the target does not show it.
pub type SqlLoader = fn(&mut Connection, &TableMap) -> Result<Option<SqlTable>, Failure>;

/// Most of it is MariaDB's.
#[derive(Debug)]
pub struct TableQuirks {
    /// As what the channel's rows are written.
    pub rows_as: RowsAs,
    /// Where rows are written as SQL, or the target keeps deleted ones: the tables in use.
    pub sql_tables: TableMapping<SqlTable>,
    /// Reads one that is not among them.
    sql_loader: OnceLock<SqlLoader>,
    /// Of which tables the account is shown the triggers, where rows are written as SQL.
    shown_triggers: OnceLock<ShownTriggers>,
    hidden_triggers: OnceLock<HiddenTriggers>,
    /// Tables whose rows the server could take for others.
    pub lookups: TableMapping<Lookup>,
    pub sequences: TableMapping<Sequence>,
    /// MySQL's.
    pub blackholes: TableMapping<Blackhole>,
    /// MySQL's.
    pub hidden_keys: TableMapping<HiddenKey>,
    /// Primary keys' columns of transactional tables, see [`engine::schema::Table::lookup_columns`]: for rows that are written without their definition at hand.
    pub key_columns: TableMapping<Bitmap>,
    /// Whether tables may have rows that the source has deleted.
    leftovers: OnceLock<Leftovers>,
    /// `None`: the target's rows end no later than any source's.
    row_ends: Option<TableMapping<RowEnd>>,
}

impl TableQuirks {
    pub fn new(info: &TargetInfo, rows_as: RowsAs) -> Self {
        let row_ends = row_end::is_later(info).then(TableMapping::default);
        Self {
            rows_as,
            sql_tables: TableMapping::default(),
            sql_loader: OnceLock::new(),
            shown_triggers: OnceLock::new(),
            hidden_triggers: OnceLock::new(),
            lookups: TableMapping::default(),
            sequences: TableMapping::default(),
            blackholes: TableMapping::default(),
            hidden_keys: TableMapping::default(),
            key_columns: TableMapping::default(),
            leftovers: OnceLock::new(),
            row_ends,
        }
    }

    /// Rows of other tables are written as they are in the log.
    pub fn set_key_columns(&self, name: &Name, table: &Table) {
        let may_be_cut = table.transactional && table.barrier.is_none();
        self.key_columns.set(name, table.lookup_columns.clone().filter(|_| may_be_cut));
    }

    /// There is nothing to do for these rows, see `rows/blackholes.rs`.
    pub fn leaves_out(&self, batch: &Batch<'_>) -> bool {
        batch.kind != RowsKind::Write && self.blackholes.get(batch.map).is_some()
    }

    /// As [`leaves_out`](Self::leaves_out), for rows that are about to be written: a table's first ones are said in the log.
    pub fn skips(&self, batch: &Batch<'_>) -> bool {
        let is_left_out = self.leaves_out(batch);
        if is_left_out
            && let Some(warning) = self.blackholes.get(batch.map).and_then(|known| known.first_warning(batch.map))
        {
            tracing::warn!("{warning}");
        }
        is_left_out
    }

    /// A row of a sequence that lacks columns.
    pub fn is_incomplete(&self, batch: &Batch<'_>) -> bool {
        sequences::lacks_columns(batch) && self.sequences.get(batch.map).is_some()
    }

    /// What takes the place of an incomplete row, once everything that comes before it is executed.
    pub fn complete(&self, batch: &Batch<'_>, connection: &mut Connection) -> Result<Option<CompletedRow>, Failure> {
        self.is_incomplete(batch).then(|| sequences::complete(batch, |sql| connection.rows(sql))).transpose()
    }

    /// Only the first time counts.
    pub fn set_sql_loader(&self, loader: SqlLoader) {
        let _ = self.sql_loader.set(loader);
    }

    /// The table as rows as SQL need to know it, if somebody has read it since its last change.
    pub fn sql_table(&self, map: &TableMap) -> Option<Arc<SqlTable>> {
        self.sql_tables.get(map).filter(|table| table.columns.len() == map.columns.len())
    }

    /// The same, read from the target.
    pub fn load_sql_table(
        &self,
        map: &TableMap,
        connection: &mut Connection,
    ) -> Result<Option<Arc<SqlTable>>, Failure> {
        let Some(load) = self.sql_loader.get() else { return Ok(None) };
        self.sql_tables.set(&(map.schema.clone(), map.table.clone()), load(connection, map)?);
        Ok(self.sql_tables.get(map))
    }

    /// Only the first time counts.
    pub fn set_shown_triggers(&self, shown: ShownTriggers) {
        let _ = self.shown_triggers.set(shown);
    }

    /// Before anything is applied; only the first time counts.
    pub fn set_hidden_triggers(&self, what: HiddenTriggers) {
        let _ = self.hidden_triggers.set(what);
    }

    /// The account is shown no table's triggers, and nobody says that a table has none.
    pub fn hides_all_triggers(&self) -> bool {
        self.shown_triggers.get().is_some_and(ShownTriggers::is_nothing)
            && self.hidden_triggers.get().is_none_or(|hidden| *hidden == HiddenTriggers::Refused)
    }

    /// Rows as SQL would fire triggers of the table that the account is not shown, if there are any, and nobody says that there are none.
    pub fn hides_triggers(&self, map: &TableMap) -> bool {
        let is_hidden = self.shown_triggers.get().is_some_and(|shown| !shown.has(&map.schema, &map.table));
        let are_none = || self.hidden_triggers.get().is_some_and(|hidden| hidden.are_none_on(&map.schema, &map.table));
        is_hidden && map.schema != SCHEMA.name() && !are_none()
    }

    pub fn written(&self) -> RowsWritten {
        if self.writes_sql() { RowsWritten::AsStatements } else { RowsWritten::AsEvents }
    }

    pub fn writes_sql(&self) -> bool {
        self.rows_as != RowsAs::Binlog
    }

    /// Before anything is applied; only the first time counts.
    pub fn set_leftovers(&self, leftovers: Leftovers) {
        let _ = self.leftovers.set(leftovers);
    }

    pub fn leftovers(&self) -> Leftovers {
        self.leftovers.get().copied().unwrap_or_default()
    }

    /// Of a table: there are none in Heddle's own, and a sequence has one row.
    pub fn leftovers_of(&self, map: &TableMap) -> Leftovers {
        let leftovers = self.leftovers();
        if leftovers == Leftovers::None || map.schema == SCHEMA.name() || self.sequences.get(map).is_some() {
            return Leftovers::None;
        }
        leftovers
    }

    /// Whether what rows as SQL need to know of a table is needed.
    pub fn describes_for_sql(&self) -> bool {
        self.writes_sql() || self.leftovers() == Leftovers::Kept
    }

    pub fn set_row_end(&self, name: &Name, row_end: Option<RowEnd>) {
        if let Some(row_ends) = &self.row_ends {
            row_ends.set(name, row_end);
        }
    }

    /// Where rows of the table have an end that may be earlier than the target's.
    pub fn row_end(&self, map: &TableMap) -> Option<Arc<RowEnd>> {
        self.row_ends.as_ref()?.get(map)
    }

    pub fn forget(&self, is_one: impl Fn(&Name) -> bool) {
        self.sql_tables.forget(&is_one);
        self.lookups.forget(&is_one);
        self.sequences.forget(&is_one);
        self.blackholes.forget(&is_one);
        self.hidden_keys.forget(&is_one);
        self.key_columns.forget(&is_one);
        if let Some(row_ends) = &self.row_ends {
            row_ends.forget(&is_one);
        }
    }
}
