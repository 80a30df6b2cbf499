//! One comparison from end to end: two threads read chunks, this one looks at what differs.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use crossbeam_channel::{Receiver, bounded, unbounded};
use wire::{Connection, Row, source};

use super::chunks::{Counters, Pace, SourceReader, Suspect, TargetReader};
use super::log::follow::{Ends, Waiter};
use super::log::place::{Follower, SourceLog};
use super::log::touches::{self, Interest};
use super::log::verdict::Verdict;
use super::looks::{Candidate, CandidateOutcome, Looker, RowState};
use super::repair::{Repair, RepairOutcome, Writer};
use super::report::{self, ColumnDifference, Kind, Report, RowDifference, RowRepair, ShowValues, TableReport, Value};
use super::server::Server;
use super::sql;
use super::tables::canonical::Printer;
use super::tables::definition as table;
use super::tables::fetched_values;
use super::tables::plan::{self, Choice, ComparedColumn, DefinitionDifference, KeyKind, Plan, Side, TablePlan};

/// Chunks that the source's thread may be ahead.
const CHUNKS_AHEAD: usize = 64;
/// Rows that are looked at together.
const CANDIDATES_MAX: usize = 500;

pub struct Request {
    pub source: wire::ConnectOptions,
    pub target: wire::ConnectOptions,
    /// Heddle's or the target's own; `None`: the only one.
    pub channel: Option<String>,
    /// The first of two numbers under which the source's log is read.
    pub server_id: u32,
    pub pace: Pace,
    /// Rows of one table that are named; behind these the rest of the table is left.
    pub differences_max: usize,
    pub show_values: ShowValues,
    /// `None`: nothing is repaired.
    pub repair: Option<Repair>,
}

/// Compares all tables of the choice. Writes on neither server.
pub fn compare(request: &Request, choice: &dyn Choice, counters: &Counters, stop: &AtomicBool) -> Result<Report> {
    let began = Instant::now();
    let mut source = Server::connect(&request.source, "source")?;
    let mut target = Server::connect(&request.target, "target")?;
    let (plan, log, identity) = read_plan(&mut source, &mut target, choice)?;
    let ends = Ends {
        source: request.source.clone(),
        target: request.target.clone(),
        identity,
        channel: request.channel.clone(),
    };
    counters.rows_estimate.store(plan.tables.iter().map(|table| table.rows_estimate).sum(), Ordering::Relaxed);
    let waiter = Waiter::new(&mut target, &ends, request.server_id, stop)?;
    let follower = describe(waiter.follower());
    check_log(&request.source, log, waiter.follower(), request.server_id)?;
    let mut looker =
        Looker { source, target, waiter, ends: &ends, log, server_id: request.server_id, plans: &plan.tables, stop };
    let mut results = Results::new(&plan, request);
    read_all(request, &mut looker, &mut results, counters)?;
    let tables = results.into_tables(&plan);
    Ok(Report {
        outcome: report::outcome(&tables),
        source: request.source.address(),
        target: request.target.address(),
        follower,
        rows: tables.iter().map(|table| table.rows).sum(),
        seconds: began.elapsed().as_secs_f64(),
        tables,
        only_on_target: plan.only_on_target.iter().map(ToString::to_string).collect(),
    })
}

fn describe(follower: &Follower) -> String {
    match follower {
        Follower::Channel(name) => format!("channel {name}"),
        Follower::Native(name) if name.is_empty() => "native replication".to_owned(),
        Follower::Native(name) => format!("native replication channel {name}"),
        Follower::Nobody => "nothing replicates".to_owned(),
    }
}

fn printer(connection: &Connection) -> Printer {
    let server = connection.server();
    let (major, minor, _) = server.version;
    Printer { flavour: server.flavour, major, minor }
}

fn read_plan(source: &mut Server, target: &mut Server, choice: &dyn Choice) -> Result<(Plan, SourceLog, String)> {
    let printers = [printer(source.connection()), printer(target.connection())];
    let log = SourceLog::of(source.connection())?;
    let identity = source::identity(source.connection())?;
    let here = table::read(source.connection()).context("the source's tables")?;
    let there = table::read(target.connection()).context("the target's tables")?;
    let plan = plan::plan(&here, &there, printers, choice).map_err(|error| anyhow!(error))?;
    ensure!(!plan.tables.is_empty() || !plan.differences.is_empty(), "there are no tables to compare");
    Ok((plan, log, identity))
}

/// What differs while somebody replicates is judged by the log: it has to be readable before hours are spent on reading.
fn check_log(options: &wire::ConnectOptions, log: SourceLog, follower: &Follower, server_id: u32) -> Result<()> {
    if log == SourceLog::Absent {
        ensure!(
            *follower == Follower::Nobody,
            "the source has no binary log (log_bin), and the target replicates from somewhere"
        );
        return Ok(());
    }
    let mut connection = Connection::connect(options)?;
    let logs = source::binary_logs(&mut connection)
        .context("the source's logs (needs REPLICATION CLIENT; MariaDB: BINLOG MONITOR)")?;
    let Some(last) = logs.last() else { return Ok(()) };
    let end = source::log_end(&mut connection)?;
    let start = binlog::LogPosition::new(std::sync::Arc::clone(&last.file), binlog::MAGIC.len() as u64);
    let first = binlog::LogPosition::new(std::sync::Arc::clone(&last.file), start.offset + 1);
    touches::read(options, server_id, &start, &first.min(end), &Interest::default()).map(|_| ())
}

fn read_all(request: &Request, looker: &mut Looker<'_>, results: &mut Results<'_>, counters: &Counters) -> Result<()> {
    let (plans, stop, ends) = (looker.plans, looker.stop, looker.ends);
    let is_done: Vec<AtomicBool> = plans.iter().map(|_| AtomicBool::new(false)).collect();
    let rows: Vec<AtomicU64> = plans.iter().map(|_| AtomicU64::new(0)).collect();
    let server = Server::connect(&request.source, "source")?;
    let log = looker.log;
    let reader = SourceReader { server, log, plans, counters, pace: request.pace, stop, is_done: &is_done };
    let mut server = Server::connect(&request.target, "target")?;
    let waiter = Waiter::new(&mut server, ends, request.server_id.wrapping_add(1), stop)?;
    let follower = TargetReader { server, waiter, plans, counters, pace: request.pace, stop, rows: &rows };
    let (send_chunks, chunks) = bounded(CHUNKS_AHEAD);
    let (send_suspects, suspects) = unbounded();
    std::thread::scope(|scope| {
        let others = send_suspects.clone();
        let source = scope.spawn(move || reader.run(&send_chunks, &others));
        let target = scope.spawn(move || follower.run(&chunks, &send_suspects));
        let looked = look_at(looker, results, &suspects, &is_done, counters);
        if looked.is_err() {
            // Both threads end with their next chunk.
            is_done.iter().for_each(|done| done.store(true, Ordering::Relaxed));
        }
        drop(suspects);
        let ended = [source.join(), target.join()].map(|ended| match ended {
            Ok(ended) => ended,
            Err(_) => Err(anyhow!("a reading thread has panicked: this is a bug in heddle")),
        });
        for ended in ended {
            ended?;
        }
        looked
    })?;
    ensure!(!stop.load(Ordering::Relaxed), "stopped by a signal");
    for (table, rows) in results.tables.iter_mut().zip(&rows) {
        table.rows += rows.load(Ordering::Relaxed);
    }
    Ok(())
}

/// Takes what differs until both threads have ended.
fn look_at(
    looker: &mut Looker<'_>,
    results: &mut Results<'_>,
    suspects: &Receiver<Suspect>,
    is_done: &[AtomicBool],
    counters: &Counters,
) -> Result<()> {
    let mut candidates = Vec::new();
    for suspect in suspects {
        if results.is_full(suspect.table) {
            continue;
        }
        let (found, rows) = match &suspect.range {
            Some(range) => looker.differing_rows(suspect.table, range)?,
            None => looker.differing_hashes(suspect.table)?,
        };
        let is_fetched = looker.plans.get(suspect.table).is_some_and(TablePlan::is_fetched);
        if suspect.range.is_none() || is_fetched {
            counters.rows.fetch_add(rows, Ordering::Relaxed);
            results.add_rows(suspect.table, rows);
        }
        candidates.extend(found);
        while candidates.len() >= CANDIDATES_MAX {
            let some = candidates.split_off(candidates.len() - CANDIDATES_MAX);
            results.settle(looker, some)?;
        }
        if results.is_full(suspect.table) {
            if let Some(done) = is_done.get(suspect.table) {
                done.store(true, Ordering::Relaxed);
            }
            candidates.retain(|candidate: &Candidate| candidate.table() != suspect.table);
        }
    }
    results.settle(looker, candidates)
}

struct Results<'a> {
    tables: Vec<TableReport>,
    request: &'a Request,
    /// Two keys that a collation takes for one name the same pair of rows.
    seen: BTreeSet<(usize, Option<plan::Key>, Option<plan::Key>)>,
    /// With repair, from the first row on.
    writer: Option<Writer>,
}

impl<'a> Results<'a> {
    fn new(plan: &Plan, request: &'a Request) -> Self {
        let table = |plan: &TablePlan| TableReport {
            source: plan.source.to_string(),
            target: plan.target.to_string(),
            notes: plan.notes.clone(),
            ..TableReport::default()
        };
        Self { tables: plan.tables.iter().map(table).collect(), request, seen: BTreeSet::new(), writer: None }
    }

    fn is_full(&self, table: usize) -> bool {
        self.tables.get(table).is_some_and(|table| table.has_more)
    }

    fn add_rows(&mut self, table: usize, rows: u64) {
        if let Some(table) = self.tables.get_mut(table) {
            table.rows += rows;
        }
    }

    fn settle(&mut self, looker: &mut Looker<'_>, mut candidates: Vec<Candidate>) -> Result<()> {
        candidates.sort();
        candidates.dedup();
        candidates.retain(|candidate| !self.is_full(candidate.table()));
        if candidates.is_empty() {
            return Ok(());
        }
        let mut all = looker.settle(candidates)?;
        // What is only on the target goes first: it may be in the way of others.
        all.sort_by_key(|settled| settled.source.is_some());
        for settled in all {
            self.take(looker, settled)?;
        }
        Ok(())
    }

    fn take(&mut self, looker: &mut Looker<'_>, settled: CandidateOutcome) -> Result<()> {
        let at = settled.candidate.table();
        let (Some(plan), Some(table)) = (looker.plans.get(at), self.tables.get_mut(at)) else { return Ok(()) };
        if settled.verdict == Verdict::Unknown {
            table.unsettled += 1;
            return Ok(());
        }
        if table.differences.len() >= self.request.differences_max {
            table.has_more = true;
            return Ok(());
        }
        if let Candidate::Row { .. } = settled.candidate {
            let key = |state: &Option<RowState>| state.as_ref().map(|state| state.key.clone());
            if !self.seen.insert((at, key(&settled.source), key(&settled.target))) {
                return Ok(());
            }
        }
        if let Some(mut difference) = difference(looker, plan, &settled, self.request.show_values)? {
            if let Some(mode) = self.request.repair {
                difference.repair = Some(repair(looker, &mut self.writer, plan, settled, mode, &self.request.target)?);
            }
            table.differences.push(difference);
        }
        Ok(())
    }

    fn into_tables(mut self, plan: &Plan) -> Vec<TableReport> {
        for table in &mut self.tables {
            // Numbers by their value, as far as they are some.
            table.differences.sort_by_cached_key(|row| {
                let numbers = row.key.iter().map(|(_, value)| value.parse::<i128>().ok()).collect::<Vec<_>>();
                (numbers, row.key.clone())
            });
        }
        for (name, difference) in &plan.differences {
            let missing = match difference {
                DefinitionDifference::Table => Vec::new(),
                DefinitionDifference::Columns(columns) => columns.clone(),
            };
            let name = name.to_string();
            match self.tables.iter_mut().find(|table| table.source == name) {
                Some(table) => table.missing_on_target = Some(missing),
                None => self.tables.push(TableReport {
                    target: name.clone(),
                    source: name,
                    missing_on_target: Some(missing),
                    ..TableReport::default()
                }),
            }
        }
        self.tables
    }
}

/// Repairs a row, and looks at it again.
fn repair(
    looker: &mut Looker<'_>,
    writer: &mut Option<Writer>,
    plan: &TablePlan,
    settled: CandidateOutcome,
    mode: Repair,
    target: &wire::ConnectOptions,
) -> Result<RowRepair> {
    let (Candidate::Row { at, .. }, Some(key)) = (&settled.candidate, &plan.key) else {
        return Ok(RowRepair { sql: Err("the table has no key".to_owned()), is_done: false });
    };
    let writer = match writer {
        Some(writer) => writer,
        None => writer.insert(Writer::connect(target)?),
    };
    let repaired =
        writer.check_triggers(plan).and_then(|()| writer.repair(&mut looker.source, plan, key, at, &settled, mode));
    let sql = match repaired {
        Ok(RepairOutcome::By(sql)) => Ok(sql),
        Ok(RepairOutcome::Changed) => Err("the row is changed meanwhile: run it again".to_owned()),
        Err(error) => Err(format!("{error:#}")),
    };
    let is_done = sql.is_ok() && mode == Repair::Written && looker.settle(vec![settled.candidate])?.is_empty();
    Ok(RowRepair { sql, is_done })
}

/// `None`: it is equal by now.
fn difference(
    looker: &mut Looker<'_>,
    plan: &TablePlan,
    settled: &CandidateOutcome,
    show: ShowValues,
) -> Result<Option<RowDifference>> {
    let (at, key) = match (&settled.candidate, &plan.key) {
        (Candidate::Row { at, .. }, Some(key)) => (at, key),
        (Candidate::Hash { digits, .. }, _) => {
            return keyless_difference(looker, plan, digits, settled, show).map(Some);
        }
        (Candidate::Row { .. }, None) => return Ok(None),
    };
    let found = settled.source.as_ref().or(settled.target.as_ref()).map_or(at, |state| &state.key);
    let named = key.columns.iter().zip(found).map(|(column, value)| {
        let is_bytes = column.kind == KeyKind::Bytes;
        (column.name.clone(), if is_bytes { binlog::value::hex(value) } else { report::shown(value) })
    });
    let named: Vec<(String, String)> = named.collect();
    let whole =
        |kind| Some(RowDifference { kind, key: named.clone(), columns: Vec::new(), copies: None, repair: None });
    let source = looker.source.rows(&sql::values(plan, key, Side::Source, at))?;
    let target = looker.target.rows(&sql::values(plan, key, Side::Target, at))?;
    Ok(match (source.first(), target.first()) {
        (None, None) => None,
        (Some(_), None) => whole(Kind::MissingOnTarget),
        (None, Some(_)) => whole(Kind::OnlyOnTarget),
        (Some(source), Some(target)) => {
            let columns = differing_columns(plan, source, target, show);
            let row = RowDifference { kind: Kind::Values, key: named.clone(), columns, copies: None, repair: None };
            (!row.columns.is_empty()).then_some(row)
        }
    })
}

fn keyless_difference(
    looker: &mut Looker<'_>,
    plan: &TablePlan,
    digits: &str,
    settled: &CandidateOutcome,
    show: ShowValues,
) -> Result<RowDifference> {
    let copies = |state: &Option<RowState>| {
        state.as_ref().and_then(|state| std::str::from_utf8(&state.content).ok()?.parse().ok()).unwrap_or(0_u64)
    };
    let copies = (copies(&settled.source), copies(&settled.target));
    let (side, server) =
        if copies.0 > 0 { (Side::Source, &mut looker.source) } else { (Side::Target, &mut looker.target) };
    let mut key = vec![("row".to_owned(), digits.chars().take(16).collect())];
    if show == ShowValues::Shown
        && let Some(row) = server.rows(&sql::values_by_hash(plan, side, digits))?.first()
    {
        for (number, column) in plan.columns.iter().enumerate() {
            let text = row.get(3 * number + 2).map_or_else(|| "NULL".to_owned(), report::shown);
            key.push((column.name.clone(), text));
        }
    }
    let kind = if copies.0 > copies.1 { Kind::MissingOnTarget } else { Kind::OnlyOnTarget };
    Ok(RowDifference { kind, key, columns: Vec::new(), copies: Some(copies), repair: None })
}

fn differing_columns(plan: &TablePlan, source: &Row, target: &Row, show: ShowValues) -> Vec<ColumnDifference> {
    let value = |row: &Row, number: usize| Value {
        bytes: row.parse(3 * number + 1).ok().flatten(),
        text: row.get(3 * number + 2).filter(|_| show == ShowValues::Shown).map(report::shown),
    };
    let columns = plan.columns.iter().enumerate().filter(|(number, column)| {
        let of = |row: &Row| {
            let bytes = row.get(3 * number)?;
            Some(column.fetched_kind().map_or_else(|| bytes.to_vec(), |kind| fetched_values::canonical(kind, bytes)))
        };
        of(source) != of(target)
    });
    let difference = |(number, column): (usize, &ComparedColumn)| ColumnDifference {
        column: column.name.clone(),
        source: value(source, number),
        target: value(target, number),
    };
    columns.map(difference).collect()
}
