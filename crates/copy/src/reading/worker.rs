//! Workers that copy ranges, chunk by chunk: a chunk and how far its range is are placed in one transaction of the target.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use apply::mysql::server::errors::failed;
use engine::failure::{Failure, FailureKind};
use wire::{Connection, Error, Row};

use super::throttle::Throttle;
use super::{ReadContext, ReadEnd, of_source, of_target, stopped};
use crate::bookkeeping::{RangeRecord, ranges_of, record_frontier};
use crate::chunk::{ChunkKey, ChunkQuery, ChunkSize, KeyBound, TableDefinition, key_literal};
use crate::place::{self, PlacedRows, RowPlacer};
use crate::source;
use crate::source::source_failure;

/// How long a chunk should take: the source keeps old versions of rows for no longer.
const CHUNK_TIME: Duration = Duration::from_millis(500);
/// The first chunk of a table has about so many bytes.
const FIRST_CHUNK_BYTES: u64 = 4 << 20;
/// So often a chunk is tried again that was broken off, with longer and longer pauses: about ten minutes.
const ATTEMPTS_MAX: u32 = 600;

/// A range that is not done.
#[derive(Clone, Debug)]
pub struct RangeWork {
    pub table: Arc<TableDefinition>,
    pub range: RangeRecord,
}

/// Copies all of them. Returns the tables that were redefined meanwhile, with what the source said.
///
/// # Errors
/// The first failure of a worker; what is placed stays.
pub fn copy_ranges(
    context: &ReadContext<'_>,
    work: Vec<RangeWork>,
) -> Result<Vec<(Arc<TableDefinition>, String)>, Failure> {
    let workers = context.workers.min(work.len());
    let queue = Mutex::new(VecDeque::from(work));
    let redefined = Mutex::new(Vec::new());
    let failure: Mutex<Option<Failure>> = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                if let Err(failed) = work_off(context, &queue, &redefined, &failure) {
                    locked(&failure).get_or_insert(failed);
                }
            });
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(failure) => Err(failure),
        None => Ok(redefined.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Redefined = Mutex<Vec<(Arc<TableDefinition>, String)>>;

fn work_off(
    context: &ReadContext<'_>,
    queue: &Mutex<VecDeque<RangeWork>>,
    redefined: &Redefined,
    failure: &Mutex<Option<Failure>>,
) -> Result<(), Failure> {
    let throttle = Throttle::new(context.limits.threads_running_max);
    let mut worker = Worker { context, sessions: None, attempts: 0, throttle };
    loop {
        let Some(mut work) = locked(queue).pop_front() else { return Ok(()) };
        let table = Arc::clone(&work.table);
        if locked(redefined).iter().any(|(other, _)| other.name == table.name) {
            continue;
        }
        let is_ending = || context.is_stopping() || locked(failure).is_some();
        match worker.copy(&mut work, &is_ending) {
            Ok(()) => {}
            Err(ReadEnd::Redefined(why)) => locked(redefined).push((table, why)),
            Err(ReadEnd::Failed(failure)) => return Err(failure),
        }
    }
}

struct Sessions {
    source: Connection,
    target: Connection,
}

struct Worker<'a> {
    context: &'a ReadContext<'a>,
    sessions: Option<Sessions>,
    attempts: u32,
    throttle: Throttle,
}

impl Worker<'_> {
    /// The range from its frontier to its end.
    fn copy(&mut self, work: &mut RangeWork, is_ending: &dyn Fn() -> bool) -> Result<(), ReadEnd> {
        let mut size = ChunkSize::new(CHUNK_TIME).of_rows(work.table.row_bytes, FIRST_CHUNK_BYTES);
        while !work.range.is_done {
            if is_ending() {
                return Err(stopped().into());
            }
            match self.wait_for_load(is_ending).and_then(|()| self.chunk(work, &mut size)) {
                Ok(()) => self.attempts = 0,
                Err(ReadEnd::Failed(failure)) if self.tries_again(&failure) => self.read_frontier(work)?,
                Err(end) => {
                    // What is under way on them ends with them.
                    self.sessions = None;
                    return Err(end);
                }
            }
        }
        Ok(())
    }

    /// Connections that were lost, deadlocks, a full disk: the chunk begins anew. What it has placed is rolled back.
    fn tries_again(&mut self, failure: &Failure) -> bool {
        let is_passing = matches!(
            failure.kind,
            FailureKind::Conflict | FailureKind::ConnectionLost | FailureKind::Exhausted | FailureKind::Maintenance
        );
        if !is_passing || self.attempts >= ATTEMPTS_MAX || self.context.is_stopping() {
            return false;
        }
        self.attempts += 1;
        if failure.kind != FailureKind::Conflict {
            tracing::warn!("copy: {}: trying again", failure.message);
        }
        // The transaction that was open ends with its session.
        self.sessions = None;
        thread::sleep(Duration::from_millis(50).saturating_mul(self.attempts).min(Duration::from_secs(1)));
        true
    }

    /// A commit whose answer was lost may have come to its end.
    fn read_frontier(&mut self, work: &mut RangeWork) -> Result<(), ReadEnd> {
        let channel = &self.context.state.channel;
        loop {
            let name = &work.table.name;
            let found = self.sessions().and_then(|sessions| ranges_of(&mut sessions.target, channel, name));
            match found {
                Ok(ranges) => {
                    let number = work.range.number;
                    let Some(range) = ranges.into_iter().find(|range| range.number == number) else {
                        return Err(
                            Failure::new(FailureKind::Fenced, "the copy's ranges are gone from the target").into()
                        );
                    };
                    work.range = range;
                    return Ok(());
                }
                Err(failure) if self.tries_again(&failure) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    fn sessions(&mut self) -> Result<&mut Sessions, Failure> {
        if self.sessions.is_none() {
            let source = source::connect(self.context.source).map_err(source_failure)?;
            self.sessions = Some(Sessions { source, target: place::connect(self.context.target)? });
        }
        self.sessions.as_mut().ok_or_else(stopped)
    }

    fn wait_for_load(&mut self, is_ending: &dyn Fn() -> bool) -> Result<(), ReadEnd> {
        if let Some(lag) = self.context.limits.lag {
            lag.wait(is_ending);
        }
        self.sessions()?;
        let Some(Sessions { source, target }) = &mut self.sessions else { return Ok(()) };
        self.throttle.wait(&mut [source, target], is_ending).map_err(|error| ReadEnd::Failed(source_failure(error)))
    }

    fn chunk(&mut self, work: &mut RangeWork, size: &mut ChunkSize) -> Result<(), ReadEnd> {
        let context = self.context;
        let began = Instant::now();
        let table = Arc::clone(&work.table);
        let range = &work.range;
        let query = ChunkQuery {
            table: &table,
            after: range.frontier.as_ref(),
            until: range.last.as_ref(),
            limit: Some(size.rows()),
        };
        let Sessions { source, target } = self.sessions()?;
        target.execute("START TRANSACTION").map_err(failed)?;
        context.state.check(target)?;
        let (placed, last) = place_rows(source, target, &table, &query.sql(), context)?;
        let after = RangeRecord {
            frontier: last.or_else(|| range.frontier.clone()),
            rows: range.rows + placed.rows,
            is_done: placed.rows < size.rows(),
            ..range.clone()
        };
        let record = record_frontier(&context.state.channel, &table.name, &after);
        place::execute_all(target, &[record, "COMMIT".to_owned()])?;
        context.measures.placed(placed.rows, placed.bytes);
        size.note(placed.rows, began.elapsed());
        work.range = after;
        Ok(())
    }
}

/// One consistent read. Returns the place of its last row in the key, too.
pub(super) fn place_rows(
    source: &mut Connection,
    target: &mut Connection,
    table: &TableDefinition,
    sql: &str,
    context: &ReadContext<'_>,
) -> Result<(PlacedRows, Option<KeyBound>), ReadEnd> {
    let name = context.names.table(&table.name);
    let mut placer = RowPlacer::new(target, table, &name, context.packet_bytes_max);
    let mut refusal = None;
    let mut last: Option<Row> = None;
    let read = source.for_each_row(sql, &mut |row| {
        if let Err(failure) = placer.place(row) {
            refusal = Some(failure);
            return Err(Error::Protocol("the row was not placed".to_owned()));
        }
        last = Some(row.clone());
        Ok(())
    });
    if let Some(failure) = refusal {
        return Err(of_target(failure));
    }
    read.map_err(of_source)?;
    let placed = placer.finish().map_err(of_target)?;
    Ok((placed, last.and_then(|row| bound_of(table, &row))))
}

fn bound_of(table: &TableDefinition, row: &Row) -> Option<KeyBound> {
    let ChunkKey::Index { columns, .. } = &table.key else { return None };
    let value = |column: usize| Some(key_literal(&table.columns.get(column)?.kind, row.get(column)?));
    columns.iter().map(|key| value(key.column)).collect()
}
