//! What `heddle retag` says: one transaction a line, and a summary.

use std::collections::BTreeMap;

use engine::retag::{NewTag, Tag};
use serde::Serialize;
use serve::retag::{Parallelism, Summary};

use output::numbers::{counted, percent, thousands};

/// One transaction, as in JSON.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    pub file: &'a str,
    pub position: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gtid: Option<String>,
    #[serde(flatten)]
    pub tag: TagLine,
    /// What it waits for: `key`, `ddl`, `after_barrier`, `history`, `source` …
    pub waits_for: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<&'a str>,
    pub rows: u64,
}

/// By vendor.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum TagLine {
    MySql { sequence_number: i64, source_last_committed: Option<i64>, last_committed: i64 },
    MariaDb { source_commit_id: Option<u64>, commit_id: Option<u64>, waited: bool },
}

impl<'a> Line<'a> {
    pub fn new(file: &'a str, tag: &'a NewTag) -> Self {
        Self {
            file,
            position: tag.gtid_at,
            gtid: tag.gtid.as_ref().map(ToString::to_string),
            tag: match tag.tag {
                Tag::LogicalClock { sequence_number, source, last_committed } => {
                    TagLine::MySql { sequence_number, source_last_committed: source, last_committed }
                }
                Tag::CommitGroup { source, new } => TagLine::MariaDb {
                    source_commit_id: source.commit_id,
                    commit_id: new.commit_id,
                    waited: new.waited,
                },
            },
            waits_for: tag.cause.as_str(),
            what: tag.why.as_deref(),
            rows: tag.rows,
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let gtid = self.gtid.as_deref().unwrap_or("-");
        let what = self.what.map(|what| format!(" {what}")).unwrap_or_default();
        let tag = match self.tag {
            TagLine::MySql { sequence_number, source_last_committed, last_committed } => {
                let source = source_last_committed.map_or_else(|| "-".to_owned(), |source| source.to_string());
                format!("sequence_number={sequence_number} last_committed={source} -> {last_committed}")
            }
            TagLine::MariaDb { source_commit_id, commit_id, waited } => {
                let id = |id: Option<u64>| id.map_or_else(|| "-".to_owned(), |id| format!("{id:x}"));
                let waited = if waited { " waited" } else { "" };
                format!("commit_id={} -> {}{waited}", id(source_commit_id), id(commit_id))
            }
        };
        format!("{}:{} {gtid} {tag}  {}{what}", self.file, self.position, self.waits_for)
    }
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
        Self {
            files: summary.files,
            transactions: summary.tags.transactions,
            changed: summary.tags.changed,
            source: summary.tags.source(),
            retagged: summary.tags.retagged(),
            waits_for: summary.tags.causes.iter().collect(),
            unknown_tables,
            history_forgotten: summary.forgotten,
        }
    }

    /// The verdict first, then what it rests on.
    pub fn text(&self) -> String {
        let done = format!(
            "{} of {} tags changed in {}",
            thousands(self.changed),
            thousands(self.transactions),
            counted(self.files, "file")
        );
        let mut lines = match self.source.zip(self.retagged) {
            Some((
                Parallelism::MySql { amil, pseudo_group_size },
                Parallelism::MySql { amil: amil_now, pseudo_group_size: group_now },
            )) => vec![
                format!(
                    "{done}: average interval {amil:.1} before, {amil_now:.1} now (the larger, the more runs in parallel)."
                ),
                format!("Pseudo group size {pseudo_group_size:.1} before, {group_now:.1} now."),
            ],
            Some((Parallelism::MariaDb { group_size }, Parallelism::MariaDb { group_size: now })) => {
                vec![format!("{done}: {group_size:.1} transactions in a commit group before, {now:.1} now.")]
            }
            _ => vec![format!("{done}.")],
        };
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
        "group" => "nothing: they run beside those before them".to_owned(),
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
