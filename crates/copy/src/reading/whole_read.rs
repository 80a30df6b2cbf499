//! Tables that are read in one consistent read, the last of their round: those without a key, and those whose rows foreign keys change unseen.

use std::thread;
use std::time::Duration;

use apply::mysql::server::errors::failed;
use engine::failure::Failure;
use engine::windows::{Low, Window};
use wire::{Connection, Error};

use super::worker::place_rows;
use super::{ReadContext, ReadEnd, of_source, stopped};
use crate::chunk::{ChunkKey, ChunkQuery, TableDefinition, TableName};
use crate::definitions::show_create;
use crate::place;
use crate::scan::LateTables;
use crate::source::source_failure;
use crate::source::{self, LowSource, Windows};

/// A window in which nothing is logged is looked for so often: then nothing of the tables can be in it.
const QUIET_ATTEMPTS: u32 = 50;

/// The last read of a round.
#[derive(Debug)]
pub struct WholeRead {
    pub window: Window,
    pub late: LateTables,
    /// Redefined meanwhile.
    pub redefined: Vec<(TableDefinition, String)>,
}

/// Reads the tables in one state of the source, and places them into tables that are empty. Without tables it only says where the source is.
///
/// # Errors
/// Of either end: the round's last step begins anew.
pub fn read_whole(
    context: &ReadContext<'_>,
    windows: &mut Windows,
    tables: &[TableDefinition],
    prepare: &mut dyn FnMut(&mut Connection, &TableDefinition, &str) -> Result<(), Failure>,
) -> Result<WholeRead, Failure> {
    let mut source = source::connect(context.source).map_err(source_failure)?;
    let (late, snapshot): (Vec<_>, Vec<_>) = tables.iter().partition(|table| !table.is_transactional());
    let mut ends = TableReads { context, redefined: Vec::new() };
    // The late ones are made before, and read first: the less time lies between the begin and their reads, the less may have changed them.
    ends.each(&late, |table| make(context, &mut source, table, prepare))?;
    let window = begin(windows, &mut source, tables.is_empty()).map_err(source_failure)?;
    ends.each(&late, |table| place(context, &mut source, table))?;
    let names: Vec<TableName> = late.iter().map(|table| table.name.clone()).collect();
    let end = (!late.is_empty()).then(|| windows.high(&mut source).map_err(source_failure)).transpose()?;
    ends.each(&snapshot, |table| {
        make(context, &mut source, table, prepare)?;
        place(context, &mut source, table)
    })?;
    source.execute("COMMIT").map_err(source_failure)?;
    Ok(WholeRead { window, late: LateTables { names, end }, redefined: ends.redefined })
}

/// Steps over tables. One that is another meanwhile is left out of the next step.
struct TableReads<'a> {
    context: &'a ReadContext<'a>,
    redefined: Vec<(TableDefinition, String)>,
}

impl TableReads<'_> {
    fn each(
        &mut self,
        tables: &[&TableDefinition],
        mut step: impl FnMut(&TableDefinition) -> Result<(), ReadEnd>,
    ) -> Result<(), Failure> {
        for &table in tables {
            if self.context.is_stopping() {
                return Err(stopped());
            }
            if self.redefined.iter().any(|(other, _)| other.name == table.name) {
                continue;
            }
            match step(table) {
                Ok(()) => {}
                Err(ReadEnd::Redefined(why)) => self.redefined.push((table.clone(), why)),
                Err(ReadEnd::Failed(failure)) => return Err(failure),
            }
        }
        Ok(())
    }
}

/// With tables: in a moment in which the source logs nothing, if there is one.
fn begin(windows: &mut Windows, source: &mut Connection, is_only_asked: bool) -> Result<Window, Error> {
    let is_exact = windows.low_source() == LowSource::Snapshot;
    for _ in 0..QUIET_ATTEMPTS {
        let before = windows.high(source)?;
        let window = windows.begin(source)?;
        // What was logged before and is not visible yet is in the window, too: the log decides.
        if is_only_asked || is_exact || window.high == before || matches!(window.low, Low::Position(_)) {
            return Ok(window);
        }
        source.execute("ROLLBACK")?;
        thread::sleep(Duration::from_millis(7));
    }
    windows.begin(source)
}

/// An empty table of the target, in place of what an earlier attempt has left.
fn make(
    context: &ReadContext<'_>,
    source: &mut Connection,
    table: &TableDefinition,
    prepare: &mut dyn FnMut(&mut Connection, &TableDefinition, &str) -> Result<(), Failure>,
) -> Result<(), ReadEnd> {
    let Some(definition) = show_create(source, &table.name).map_err(of_source)? else {
        return Err(ReadEnd::Redefined("it is gone".to_owned()));
    };
    prepare(&mut place::connect(context.target)?, table, &definition)?;
    Ok(())
}

fn place(context: &ReadContext<'_>, source: &mut Connection, table: &TableDefinition) -> Result<(), ReadEnd> {
    if matches!(table.key, ChunkKey::Whole) && table.rows > 1_000_000 {
        tracing::warn!(
            "{} has no key of columns without NULL, and about {} rows: it is read in one consistent read, which keeps old row versions on the source meanwhile",
            table.name,
            table.rows
        );
    }
    let target = &mut place::connect(context.target)?;
    target.execute("START TRANSACTION").map_err(failed)?;
    context.state.check(target)?;
    let query = ChunkQuery { table, after: None, until: None, limit: None };
    let (placed, _) = place_rows(source, target, table, &query.sql(), context)?;
    target.execute("COMMIT").map_err(failed)?;
    context.measures.placed(placed.rows, placed.bytes);
    context.measures.table_is_placed();
    Ok(())
}
