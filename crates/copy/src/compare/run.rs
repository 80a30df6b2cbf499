//! One comparison from end to end: two threads read chunks, this one looks at what differs.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded, unbounded};
use wire::{Connection, source};

use super::chunks::{Counters, SourceReader, Spread, Suspect, TargetReader};
use super::log::follow::{Ends, Waiter};
use super::log::place::{Follower, SourceLog};
use super::log::touches::{self, Interest};
use super::looks::{Candidate, Looker};
use super::report::{self, Report};
use super::request::Request;
use super::results::{PendingSuspect, Results};
use super::server::Server;
use super::state::{Header, Journal, TableProgress};
use super::tables::canonical::Printer;
use super::tables::definition as table;
use super::tables::plan::{self, Choice, Plan, TablePlan};

/// Chunks that the source's thread may be ahead.
const CHUNKS_AHEAD: usize = 64;
/// Rows that are looked at together.
const CANDIDATES_MAX: usize = 500;
/// After so long without another suspect, those that there are.
const SETTLE_AFTER: Duration = Duration::from_secs(2);

/// Compares all tables of the choice. Writes on neither server.
pub fn compare(
    request: &Request,
    choice: &dyn Choice,
    counters: &Counters,
    spread: Option<Spread>,
    stop: &AtomicBool,
) -> Result<Report> {
    let began = Instant::now();
    let mut source = Server::connect(&request.source, "source")?;
    let mut target = Server::connect(&request.target, "target")?;
    let (plan, log, identity) = read_plan(&mut source, &mut target, choice)?;
    let (journal, progress) = match &request.state {
        Some(state) => {
            let there = source::identity(target.connection())?;
            let name = |identity: &str, options: &wire::ConnectOptions| format!("{identity} {}", options.address());
            let ends = [name(&identity, &request.source), name(&there, &request.target)];
            let (journal, progress) =
                Journal::open(&state.path, &Header::new(ends, state.options.clone()), &plan.tables)?;
            say_progress(&state.path, &progress);
            (journal, progress)
        }
        None => (Journal::default(), plan.tables.iter().map(|_| TableProgress::default()).collect()),
    };
    let rows_before = progress.iter().map(|table| table.rows).sum();
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
    let mut results = Results::new(&plan, request, &journal);
    read_all(request, &mut looker, &mut results, counters, spread, progress)?;
    let tables = results.into_tables(&plan);
    journal.remove()?;
    Ok(Report {
        outcome: report::outcome(&tables),
        source: request.source.address(),
        target: request.target.address(),
        follower,
        rows: tables.iter().map(|table| table.rows).sum(),
        rows_before: (rows_before > 0).then_some(rows_before),
        seconds: began.elapsed().as_secs_f64(),
        tables,
        only_on_target: plan.only_on_target.iter().map(ToString::to_string).collect(),
    })
}

fn say_progress(path: &Path, progress: &[TableProgress]) {
    let rows: u64 = progress.iter().map(|table| table.rows).sum();
    let begun = progress.iter().filter(|table| table.is_read || table.after.is_some()).count();
    if begun > 0 {
        tracing::info!(
            "going on with the comparison of {}: {rows} rows in {begun} tables were compared",
            path.display()
        );
    }
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

fn read_all(
    request: &Request,
    looker: &mut Looker<'_>,
    results: &mut Results<'_>,
    counters: &Counters,
    spread: Option<Spread>,
    progress: Vec<TableProgress>,
) -> Result<()> {
    let (plans, stop, ends, journal) = (looker.plans, looker.stop, looker.ends, results.journal);
    let is_done: Vec<AtomicBool> =
        progress.iter().map(|table| AtomicBool::new(table.is_read || table.is_full)).collect();
    let rows: Vec<AtomicU64> = progress.iter().map(|table| AtomicU64::new(table.rows)).collect();
    counters.rows.store(progress.iter().map(|table| table.rows).sum(), Ordering::Relaxed);
    let (send_chunks, chunks) = bounded(CHUNKS_AHEAD);
    let (send_suspects, suspects) = unbounded();
    let mut starts = Vec::with_capacity(progress.len());
    for (at, table) in progress.into_iter().enumerate() {
        results.go_on(at, &table);
        for (number, range) in table.suspects {
            let _ = send_suspects.send(Suspect { table: at, range, number });
        }
        starts.push(table.after);
    }
    let server = Server::connect(&request.source, "source")?;
    let log = looker.log;
    let pace = request.pace;
    let reader = SourceReader { server, log, plans, counters, pace, stop, is_done: &is_done, starts, spread, journal };
    let mut server = Server::connect(&request.target, "target")?;
    let waiter = Waiter::new(&mut server, ends, request.server_id.wrapping_add(1), stop)?;
    let follower = TargetReader { server, waiter, plans, counters, pace, stop, rows: &rows, journal };
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
    let (mut candidates, mut pending) = (Vec::new(), Vec::new());
    loop {
        let suspect = match suspects.recv_timeout(SETTLE_AFTER) {
            Ok(suspect) => suspect,
            // Chunks are equal for a while.
            Err(RecvTimeoutError::Timeout) => {
                results.settle_all(looker, &mut candidates, &mut pending)?;
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return results.settle_all(looker, &mut candidates, &mut pending),
        };
        if results.is_full(suspect.table) {
            continue;
        }
        let (found, rows) = match &suspect.range {
            Some(range) => looker.differing_rows(suspect.table, range)?,
            None => looker.differing_hashes(suspect.table)?,
        };
        let is_fetched = looker.plans.get(suspect.table).is_some_and(TablePlan::is_fetched);
        let rows = if suspect.range.is_none() || is_fetched { rows } else { 0 };
        counters.rows.fetch_add(rows, Ordering::Relaxed);
        results.add_rows(suspect.table, rows);
        candidates.extend(found);
        pending.push(PendingSuspect { table: suspect.table, number: suspect.number, rows });
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
}
