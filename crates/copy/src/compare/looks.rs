//! The exact part: rows that differed are read again on both servers, with the places of the log that [`super::log::verdict`] needs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use wire::Row;

use super::chunks::key_of;
use super::log::follow::{Ends, Waiter};
use super::log::place::{self, High, SourceLog};
use super::log::touches::{self, Interest, Touches};
use super::log::verdict::{Look, ServerLook, Verdict, judge};
use super::server::Server;
use super::sql::{self, Range};
use super::tables::fetched_values as document;
use super::tables::plan::{ChunkKey, ComparedColumn, Key, Side, TablePlan};
use crate::source::begin_snapshot;

/// Hashes that one statement asks for.
const HASHES_MAX: usize = 200;
/// Looks at a row until it is left unsettled, and the pauses between them.
const LOOKS_MAX: u32 = 12;
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Without a log nothing says whether somebody writes: so many looks have to show the same.
const LOOKS_WITHOUT_LOG: u32 = 3;

/// A row to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Candidate {
    Row {
        table: usize,
        at: Key,
    },
    /// A row of a table without a key, by its hash.
    Hash {
        table: usize,
        digits: String,
    },
}

impl Candidate {
    pub fn table(&self) -> usize {
        match self {
            Self::Row { table, .. } | Self::Hash { table, .. } => *table,
        }
    }
}

/// What a server has of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowState {
    /// Its key as this server has it: a collation may find another one than was asked for.
    pub key: Key,
    /// Hash and what was fetched; or the number of copies.
    pub content: Vec<u8>,
}

/// What came of a candidate.
pub struct CandidateOutcome {
    pub candidate: Candidate,
    pub source: Option<RowState>,
    pub target: Option<RowState>,
    pub verdict: Verdict,
}

pub struct Looker<'a> {
    pub source: Server,
    pub target: Server,
    pub waiter: Waiter<'a>,
    pub ends: &'a Ends,
    pub log: SourceLog,
    pub server_id: u32,
    pub plans: &'a [TablePlan],
    pub stop: &'a AtomicBool,
}

impl Looker<'_> {
    pub fn high(&mut self) -> Result<High> {
        let log = self.log;
        self.source.again(|connection| place::high(connection, log))
    }

    /// The rows of a chunk that differ, each side read once.
    pub fn differing_rows(&mut self, table: usize, range: &Range) -> Result<(Vec<Candidate>, u64)> {
        let Some((plan, key)) = self.plans.get(table).and_then(|plan| Some((plan, plan.key.as_ref()?))) else {
            return Ok((Vec::new(), 0));
        };
        let statement = |side| sql::rows(plan, key, side, range);
        let states = |rows: Vec<Row>| -> BTreeMap<Key, Vec<u8>> {
            rows.iter().map(|row| (key_of(row, key), content(row, plan, key.columns.len()))).collect()
        };
        let source = states(self.source.rows(&statement(Side::Source))?);
        let high = self.high()?;
        self.waiter.wait(&mut self.target, &high)?;
        let target = states(self.target.rows(&statement(Side::Target))?);
        let missing = source.iter().filter(|(at, state)| target.get(*at) != Some(*state)).map(|(at, _)| at);
        let extra = target.keys().filter(|at| !source.contains_key(*at));
        let found = missing.chain(extra).map(|at| Candidate::Row { table, at: at.clone() }).collect();
        Ok((found, source.len() as u64))
    }

    /// The rows of a table without a key that differ, by their hashes.
    pub fn differing_hashes(&mut self, table: usize) -> Result<(Vec<Candidate>, u64)> {
        let Some(plan) = self.plans.get(table) else { return Ok((Vec::new(), 0)) };
        let sums = |rows: Vec<Row>| -> BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>> {
            let sums = |row: &Row| (1..row.len()).map(|at| row.get(at).map(<[u8]>::to_vec)).collect();
            rows.iter().map(|row| (row.get(0).unwrap_or_default().to_vec(), sums(row))).collect()
        };
        let source_rows = self.source.rows(&sql::sums(plan, Side::Source))?;
        let mut count = 0_u64;
        for row in &source_rows {
            count += row.required::<u64>(1)?;
        }
        let source = sums(source_rows);
        let high = self.high()?;
        self.waiter.wait(&mut self.target, &high)?;
        let target = sums(self.target.rows(&sql::sums(plan, Side::Target))?);
        let buckets = source.keys().chain(target.keys()).filter(|bucket| source.get(*bucket) != target.get(*bucket));
        let mut buckets: Vec<String> = buckets.map(|bucket| String::from_utf8_lossy(bucket).into_owned()).collect();
        buckets.sort();
        buckets.dedup();
        let mut found = Vec::new();
        for some in buckets.chunks(HASHES_MAX) {
            let source = hash_counts(self.source.rows(&sql::bucket_rows(plan, Side::Source, some))?);
            let high = self.high()?;
            self.waiter.wait(&mut self.target, &high)?;
            let target = hash_counts(self.target.rows(&sql::bucket_rows(plan, Side::Target, some))?);
            let all = source.keys().chain(target.keys().filter(|digits| !source.contains_key(*digits)));
            let differ = all.filter(|digits| source.get(*digits) != target.get(*digits));
            found.extend(differ.map(|digits| Candidate::Hash { table, digits: digits.clone() }));
        }
        Ok((found, count))
    }

    /// Looks at these until each was equal once, or differs surely, or has been looked at often.
    pub fn settle(&mut self, mut candidates: Vec<Candidate>) -> Result<Vec<CandidateOutcome>> {
        let (mut settled, mut pause) = (Vec::new(), PAUSE);
        for look in 1..=LOOKS_MAX {
            let looked = self.look(candidates, look)?;
            // What a stopped target lacks does not come.
            let is_last = look == LOOKS_MAX || (self.waiter.is_stopped() && look >= LOOKS_WITHOUT_LOG);
            let mut left = Vec::new();
            for one in looked {
                match one.verdict {
                    Verdict::Equal => {}
                    Verdict::Unknown if !is_last => left.push(one.candidate),
                    Verdict::Unknown | Verdict::Different => settled.push(one),
                }
            }
            candidates = left;
            if candidates.is_empty() {
                break;
            }
            if self.stop.load(Ordering::Relaxed) {
                bail!("stopped by a signal");
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
        Ok(settled)
    }

    fn look(&mut self, candidates: Vec<Candidate>, look: u32) -> Result<Vec<CandidateOutcome>> {
        let (low, source) = self.source_states(&candidates)?;
        let high = self.high()?;
        let reached = self.waiter.wait(&mut self.target, &high)?;
        // What is not reached may be known in GTIDs alone.
        let applied = if reached { None } else { self.waiter.applied(&mut self.target)?.position };
        let is_placed = reached || applied.is_some();
        let target = self.states(Side::Target, &candidates)?;
        let differing = || candidates.iter().zip(&source).zip(&target).filter(|((_, source), target)| source != target);
        let touches = match low {
            Some(low) if is_placed && differing().next().is_some() => {
                let places: ServerLook = Look { low, high: high.position, applied, end: self.high()?.position };
                Some(self.touches(&places, differing().map(|((candidate, _), _)| candidate))?)
            }
            _ => None,
        };
        let one = |((candidate, source), target): ((Candidate, Option<RowState>), Option<RowState>)| {
            let touched = || match &touches {
                None if self.log == SourceLog::Absent => look < LOOKS_WITHOUT_LOG,
                None => true,
                Some(touches) => self.is_touched(touches, &candidate, [source.as_ref(), target.as_ref()]),
            };
            let verdict = judge(source.as_ref(), target.as_ref(), touched);
            CandidateOutcome { candidate, source, target, verdict }
        };
        Ok(candidates.into_iter().zip(source).zip(target).map(one).collect())
    }

    fn is_touched(&self, touches: &Touches, candidate: &Candidate, states: [Option<&RowState>; 2]) -> bool {
        let Some(plan) = self.plans.get(candidate.table()) else { return true };
        match (candidate, &plan.key) {
            (Candidate::Row { at, .. }, Some(key)) => {
                let found = states.into_iter().flatten().map(|state| &state.key);
                touches.touches(&plan.source, key, found.chain(std::iter::once(at)))
            }
            _ => touches.touches_any(&plan.source),
        }
    }

    fn touches<'c>(&self, places: &ServerLook, candidates: impl Iterator<Item = &'c Candidate>) -> Result<Touches> {
        let mut interest = Interest::default();
        let mut tables: Vec<usize> = candidates.map(Candidate::table).collect();
        tables.sort_unstable();
        tables.dedup();
        for plan in tables.into_iter().filter_map(|table| self.plans.get(table)) {
            interest.add(&plan.source, plan.key.as_ref(), plan.width, &plan.cascading_parents);
        }
        let (start, end) = places.window();
        touches::read(&self.ends.source, self.server_id, &start, &end, &interest)
    }

    /// What the source has, and a place of which it has seen everything.
    fn source_states(
        &mut self,
        candidates: &[Candidate],
    ) -> Result<(Option<binlog::LogPosition>, Vec<Option<RowState>>)> {
        let log = self.log;
        match log {
            SourceLog::Absent => Ok((None, self.states(Side::Source, candidates)?)),
            SourceLog::MySqlGtids | SourceLog::MySqlPositions => {
                let low = self.source.again(|connection| place::low(connection, log))?;
                Ok((Some(low), self.states(Side::Source, candidates)?))
            }
            SourceLog::MariaDb => {
                // If the connection is lost and made anew, the reads see more than the snapshot, never less.
                let low = self.source.again(|connection| Ok(begin_snapshot(connection)?))?;
                let states = self.states(Side::Source, candidates)?;
                self.source.again(|connection| Ok(connection.execute("COMMIT")?))?;
                Ok((Some(low), states))
            }
        }
    }

    fn states(&mut self, side: Side, candidates: &[Candidate]) -> Result<Vec<Option<RowState>>> {
        let plans = self.plans;
        let server = match side {
            Side::Source => &mut self.source,
            Side::Target => &mut self.target,
        };
        let counts = counts_of_hashes(server, plans, side, candidates)?;
        let mut states = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            states.push(match candidate {
                Candidate::Row { table, at } => {
                    match plans.get(*table).and_then(|plan| Some((plan, plan.key.as_ref()?))) {
                        Some((plan, key)) => {
                            let rows = server.rows(&sql::row(plan, key, side, at))?;
                            rows.first().map(|row| row_state(row, plan, key))
                        }
                        None => None,
                    }
                }
                Candidate::Hash { table, digits } => counts
                    .get(&(*table, digits.as_str()))
                    .map(|count| RowState { key: Key::new(), content: count.to_string().into_bytes() }),
            });
        }
        Ok(states)
    }
}

/// How often a server has the rows of tables without a key.
fn counts_of_hashes<'c>(
    server: &mut Server,
    plans: &[TablePlan],
    side: Side,
    candidates: &'c [Candidate],
) -> Result<BTreeMap<(usize, &'c str), u64>> {
    let mut wanted: BTreeMap<usize, BTreeMap<String, &'c str>> = BTreeMap::new();
    for candidate in candidates {
        if let Candidate::Hash { table, digits } = candidate {
            wanted.entry(*table).or_default().insert(digits.clone(), digits.as_str());
        }
    }
    let mut counts = BTreeMap::new();
    for (table, digits) in wanted {
        let Some(plan) = plans.get(table) else { continue };
        let all: Vec<String> = digits.keys().cloned().collect();
        for some in all.chunks(HASHES_MAX) {
            for (hash, count) in hash_counts(server.rows(&sql::hash_counts(plan, side, some))?) {
                if let Some(digits) = digits.get(&hash) {
                    counts.insert((table, *digits), count);
                }
            }
        }
    }
    Ok(counts)
}

fn hash_counts(rows: Vec<Row>) -> BTreeMap<String, u64> {
    let one = |row: &Row| {
        let digits = String::from_utf8_lossy(row.get(0).unwrap_or_default()).into_owned();
        (digits, row.parse(1).ok().flatten().unwrap_or(0))
    };
    rows.iter().map(one).collect()
}

/// A row as [`sql::row`] has it.
pub fn row_state(row: &Row, plan: &TablePlan, key: &ChunkKey) -> RowState {
    RowState { key: key_of(row, key), content: content(row, plan, key.columns.len()) }
}

/// What is compared of a row behind its key: the hash, then what was fetched, in one form.
fn content(row: &Row, plan: &TablePlan, key_columns: usize) -> Vec<u8> {
    let mut content = row.get(key_columns).unwrap_or_default().to_vec();
    for (number, kind) in plan.columns.iter().filter_map(ComparedColumn::fetched_kind).enumerate() {
        match row.get(key_columns + 1 + number).map(|text| document::canonical(kind, text)) {
            None => content.push(b'N'),
            Some(text) => {
                content.extend_from_slice(format!("{}:", text.len()).as_bytes());
                content.extend_from_slice(&text);
            }
        }
    }
    content
}
