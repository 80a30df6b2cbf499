//! What came of rows: taken one by one, named, repaired if that is asked for, and recorded.

use std::collections::BTreeSet;

use anyhow::Result;
use wire::Row;

use super::log::verdict::Verdict;
use super::looks::{Candidate, CandidateOutcome, Looker, RowState};
use super::repair::{Repair, RepairOutcome, Writer};
use super::report::{self, ColumnDifference, Kind, RowDifference, RowRepair, ShowValues, TableReport, Value};
use super::request::Request;
use super::sql;
use super::state::{Journal, PairOfKeys, TableProgress};
use super::tables::fetched_values;
use super::tables::plan::{ComparedColumn, DefinitionDifference, KeyKind, Plan, Side, TablePlan};

/// A suspect whose rows are among the candidates.
pub struct PendingSuspect {
    pub table: usize,
    pub number: u64,
    /// That were counted with it.
    pub rows: u64,
}

/// What a comparison has found so far.
pub struct Results<'a> {
    pub tables: Vec<TableReport>,
    request: &'a Request,
    /// Two keys that a collation takes for one name the same pair of rows; and rows come again when a comparison goes on.
    seen: BTreeSet<(usize, PairOfKeys)>,
    pub journal: &'a Journal,
    /// With repair, from the first row on.
    writer: Option<Writer>,
}

impl<'a> Results<'a> {
    pub fn new(plan: &Plan, request: &'a Request, journal: &'a Journal) -> Self {
        let table = |plan: &TablePlan| TableReport {
            source: plan.source.to_string(),
            target: plan.target.to_string(),
            notes: plan.notes.clone(),
            ..TableReport::default()
        };
        Self { tables: plan.tables.iter().map(table).collect(), request, seen: BTreeSet::new(), journal, writer: None }
    }

    /// What an interrupted comparison has found of a table.
    pub fn go_on(&mut self, at: usize, found: &TableProgress) {
        let Some(table) = self.tables.get_mut(at) else { return };
        table.has_more = found.is_full;
        for (keys, difference) in &found.differences {
            if self.seen.insert((at, keys.clone())) {
                table.differences.push(difference.clone());
            }
        }
    }

    /// Settles all candidates; then their suspects are done with, unless a row of the table never came to rest.
    pub fn settle_all(
        &mut self,
        looker: &mut Looker<'_>,
        candidates: &mut Vec<Candidate>,
        pending: &mut Vec<PendingSuspect>,
    ) -> Result<()> {
        self.settle(looker, std::mem::take(candidates))?;
        for suspect in pending.drain(..) {
            let is_at_rest = self.tables.get(suspect.table).is_some_and(|table| table.unsettled == 0);
            if let Some(plan) = looker.plans.get(suspect.table).filter(|_| is_at_rest) {
                self.journal.settled(plan, suspect.number, suspect.rows)?;
            }
        }
        Ok(())
    }

    pub fn is_full(&self, table: usize) -> bool {
        self.tables.get(table).is_some_and(|table| table.has_more)
    }

    pub fn add_rows(&mut self, table: usize, rows: u64) {
        if let Some(table) = self.tables.get_mut(table) {
            table.rows += rows;
        }
    }

    pub fn settle(&mut self, looker: &mut Looker<'_>, mut candidates: Vec<Candidate>) -> Result<()> {
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
        let keys = keys(&settled);
        if self.seen.contains(&(at, keys.clone())) {
            return Ok(());
        }
        if table.differences.len() >= self.request.differences_max {
            table.has_more = true;
            return self.journal.full(plan);
        }
        if let Some(mut difference) = difference(looker, plan, &settled, self.request.show_values)? {
            if let Some(mode) = self.request.repair {
                difference.repair = Some(repair(looker, &mut self.writer, plan, settled, mode, &self.request.target)?);
            }
            self.journal.different(plan, &keys, &difference)?;
            self.seen.insert((at, keys));
            table.differences.push(difference);
        }
        Ok(())
    }

    pub fn into_tables(mut self, plan: &Plan) -> Vec<TableReport> {
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

fn keys(settled: &CandidateOutcome) -> PairOfKeys {
    match &settled.candidate {
        Candidate::Row { .. } => {
            [&settled.source, &settled.target].map(|state| state.as_ref().map(|state| state.key.clone()))
        }
        Candidate::Hash { digits, .. } => [Some(vec![digits.clone().into_bytes()]), None],
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
