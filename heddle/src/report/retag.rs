//! What `heddle retag` says: one transaction a line, and a summary.

use std::collections::BTreeMap;

use engine::retag::NewTag;
use serde::Serialize;
use serve::retag::Summary;

use super::numbers::{counted, percent};

/// One transaction, as in JSON.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    pub file: &'a str,
    pub position: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gtid: Option<String>,
    pub sequence_number: i64,
    pub source_last_committed: i64,
    pub last_committed: i64,
    /// What it waits for: `key`, `ddl`, `after_barrier`, `history`, `source` …
    pub waits_for: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<&'a str>,
    pub rows: u64,
}

impl<'a> Line<'a> {
    pub fn new(file: &'a str, tag: &'a NewTag) -> Self {
        Self {
            file,
            position: tag.gtid_at,
            gtid: tag.gtid.as_ref().map(ToString::to_string),
            sequence_number: tag.sequence_number,
            source_last_committed: tag.source,
            last_committed: tag.last_committed,
            waits_for: tag.cause.as_str(),
            what: tag.why.as_deref(),
            rows: tag.rows,
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let gtid = self.gtid.as_deref().unwrap_or("-");
        let what = self.what.map(|what| format!(" {what}")).unwrap_or_default();
        format!(
            "{}:{} {gtid} sequence_number={} last_committed={} -> {}  {}{what}",
            self.file,
            self.position,
            self.sequence_number,
            self.source_last_committed,
            self.last_committed,
            self.waits_for
        )
    }
}

/// AMIL and pseudo group size.
#[derive(Debug, Serialize)]
pub struct Parallelism {
    pub amil: f64,
    pub pseudo_group_size: f64,
}

#[derive(Debug, Serialize)]
pub struct Report {
    pub files: u64,
    pub transactions: u64,
    /// With another tag than the source's.
    pub changed: u64,
    pub source: Option<Parallelism>,
    pub retagged: Option<Parallelism>,
    /// What the transactions wait for, by how many.
    pub waits_for: BTreeMap<&'static str, u64>,
    /// Tables whose keys are not surely known, by their transactions.
    pub unknown_tables: BTreeMap<String, u64>,
    /// How often keys were forgotten for want of memory.
    pub history_forgotten: u64,
}

impl Report {
    pub fn new(summary: &Summary, unknown_tables: BTreeMap<String, u64>) -> Self {
        let parallelism = |intervals: &engine::quality::Intervals| {
            let (amil, pseudo_group_size) = intervals.amil().zip(intervals.pseudo_group_size())?;
            Some(Parallelism { amil, pseudo_group_size })
        };
        Self {
            files: summary.files,
            transactions: summary.transactions,
            changed: summary.changed,
            source: parallelism(&summary.before),
            retagged: parallelism(&summary.after),
            waits_for: summary.causes.iter().collect(),
            unknown_tables,
            history_forgotten: summary.forgotten,
        }
    }

    /// The verdict first, then what it rests on.
    pub fn text(&self) -> String {
        let amil = |one: &Option<Parallelism>| one.as_ref().map_or(0.0, |parallelism| parallelism.amil);
        let mut lines = vec![format!(
            "{} in {} tagged anew: average interval {:.1} before, {:.1} now (the larger, the more runs in parallel).",
            counted(self.transactions, "transaction"),
            counted(self.files, "file"),
            amil(&self.source),
            amil(&self.retagged),
        )];
        let group = |one: &Option<Parallelism>| one.as_ref().map_or(0.0, |parallelism| parallelism.pseudo_group_size);
        lines.push(format!(
            "Pseudo group size {:.1} before, {:.1} now. {} have another tag.",
            group(&self.source),
            group(&self.retagged),
            counted(self.changed, "transaction")
        ));
        lines.push("They wait for:".to_owned());
        let mut causes: Vec<(&str, u64)> = self.waits_for.iter().map(|(cause, count)| (*cause, *count)).collect();
        causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (cause, count) in causes {
            let share = percent(count as f64 / self.transactions.max(1) as f64);
            lines.push(format!("  {:>7}  {}", share, meaning(cause)));
        }
        if !self.unknown_tables.is_empty() {
            let mut tables: Vec<(&String, &u64)> = self.unknown_tables.iter().collect();
            tables.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let names: Vec<&str> = tables.iter().take(5).map(|(name, _)| name.as_str()).collect();
            lines.push(format!(
                "The keys of {} are not surely known ({}{}). With --schema FILE they are: the output of mysqldump --no-data --databases NAME, \
                 if no statement of these files changes the tables.",
                counted(tables.len() as u64, "table"),
                names.join(", "),
                if tables.len() > names.len() { ", …" } else { "" }
            ));
        }
        if self.history_forgotten > 0 {
            lines.push(format!(
                "Keys were forgotten {} for want of memory: --history 1G remembers more.",
                counted(self.history_forgotten, "time")
            ));
        }
        lines.join("\n")
    }
}

fn meaning(cause: &str) -> String {
    match cause {
        "file_begins" => "nothing but the beginning of their file".to_owned(),
        "key" => "a transaction that touches the same key".to_owned(),
        "after_barrier" => "a transaction beside which nothing may run".to_owned(),
        "unknown_table" => "the source's tag: a table's keys are not surely known".to_owned(),
        "history" => "what is further back than the keys that are remembered".to_owned(),
        "session" => "the transaction before them of their session (--keep-session-order)".to_owned(),
        "source" => "the source's tag, which allows more".to_owned(),
        "gap" => "a gap in the source's numbers".to_owned(),
        barrier => format!("everything before: nothing may run beside them ({})", barrier.replace('_', " ")),
    }
}
