//! What a comparison found: as text, and as JSON.

use std::fmt::Write as _;

use binlog::text::escape_bytes;
use output::numbers::{counted, per_second, thousands};
use serde::{Deserialize, Serialize};

/// Whether values are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShowValues {
    /// Only how long they are.
    #[default]
    Masked,
    Shown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    MissingOnTarget,
    OnlyOnTarget,
    Values,
}

/// A value of a row, or that there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// `None`: NULL.
    pub bytes: Option<u64>,
    /// Its beginning. `None`: it is not shown, or NULL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDifference {
    pub column: String,
    pub source: Value,
    pub target: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowDifference {
    pub kind: Kind,
    /// Names and values of the key's columns; without a key the row's hash.
    pub key: Vec<(String, String)>,
    /// Of a row that both have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnDifference>,
    /// Of a table without a key: how often each server has the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies: Option<(u64, u64)>,
    /// With repair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<RowRepair>,
}

/// What would make the row equal, or has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowRepair {
    /// The statement for the target; or why there is none.
    pub sql: Result<String, String>,
    /// It was executed, and the row is equal.
    pub is_done: bool,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct TableReport {
    pub source: String,
    pub target: String,
    /// That were read on the source.
    pub rows: u64,
    pub differences: Vec<RowDifference>,
    /// The rest of the table was not looked at: there are more.
    pub has_more: bool,
    /// Rows that differed whenever they were looked at, and were changed in the log each time.
    pub unsettled: u64,
    /// The target lacks these columns, or (none named) the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_on_target: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl TableReport {
    pub fn is_different(&self) -> bool {
        let is_repaired = |row: &RowDifference| row.repair.as_ref().is_some_and(|repair| repair.is_done);
        !self.differences.iter().all(is_repaired) || self.missing_on_target.is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Equal,
    Different,
    /// Rows differed, and all of them were repaired.
    Repaired,
    /// Nothing differs that could be compared, and some rows could not.
    Unsettled,
}

#[derive(Debug, Serialize)]
pub struct Report {
    pub outcome: Outcome,
    pub source: String,
    pub target: String,
    /// Who brings changes to the target.
    pub follower: String,
    pub rows: u64,
    /// Of these, what an interrupted comparison had read, on which this one went on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_before: Option<u64>,
    pub seconds: f64,
    pub tables: Vec<TableReport>,
    pub only_on_target: Vec<String>,
}

pub fn outcome(tables: &[TableReport]) -> Outcome {
    if tables.iter().any(TableReport::is_different) {
        Outcome::Different
    } else if tables.iter().any(|table| table.unsettled > 0) {
        Outcome::Unsettled
    } else if tables.iter().any(|table| !table.differences.is_empty()) {
        Outcome::Repaired
    } else {
        Outcome::Equal
    }
}

const SHOWN_BYTES: usize = 200;

/// Bytes for people: text stays text.
pub fn shown(bytes: &[u8]) -> String {
    escape_bytes(bytes, SHOWN_BYTES)
}

impl Report {
    /// For people: what is not equal, then a line about all.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for table in &self.tables {
            write_table(&mut out, table);
        }
        if !self.only_on_target.is_empty() {
            let _ = writeln!(out, "only on the target, not compared: {}", self.only_on_target.join(", "));
        }
        let different = self.tables.iter().filter(|table| table.is_different()).count();
        let verdict = match self.outcome {
            Outcome::Equal => "equal".to_owned(),
            Outcome::Different => format!("DIFFERENT: {different} of {} tables", self.tables.len()),
            Outcome::Repaired => "equal now, as all rows that differed were repaired".to_owned(),
            Outcome::Unsettled => "nothing differs, but some rows never came to rest".to_owned(),
        };
        let read = self.rows.saturating_sub(self.rows_before.unwrap_or(0));
        let rate = if self.seconds > 0.0 { read as f64 / self.seconds } else { 0.0 };
        let before = self.rows_before.map_or_else(String::new, |rows| format!(", {} before", counted(rows, "row")));
        let _ = writeln!(
            out,
            "{verdict}: {} in {}{before}, {:.1} s ({} rows/s), {}",
            counted(self.rows, "row"),
            counted(self.tables.len() as u64, "table"),
            self.seconds,
            per_second(rate),
            self.follower
        );
        out
    }
}

fn write_table(out: &mut String, table: &TableReport) {
    let name = if table.source == table.target {
        table.source.clone()
    } else {
        format!("{} ({} on the target)", table.source, table.target)
    };
    for note in &table.notes {
        let _ = writeln!(out, "{name}: {note}");
    }
    match &table.missing_on_target {
        Some(columns) if columns.is_empty() => {
            let _ = writeln!(out, "{name}: the target does not have it");
        }
        Some(columns) => {
            let _ = writeln!(out, "{name}: the target lacks {}", columns.join(", "));
        }
        None => {}
    }
    for row in &table.differences {
        let key: Vec<String> = row.key.iter().map(|(column, value)| format!("{column}={value}")).collect();
        let _ = write!(out, "{name} {}: ", key.join(", "));
        let _ = match (row.kind, row.copies) {
            (_, Some((source, target))) => writeln!(out, "{source} times on the source, {target} times on the target"),
            (Kind::MissingOnTarget, None) => writeln!(out, "missing on the target"),
            (Kind::OnlyOnTarget, None) => writeln!(out, "only on the target"),
            (Kind::Values, None) => {
                let columns: Vec<String> = row.columns.iter().map(column_text).collect();
                writeln!(out, "{}", columns.join("; "))
            }
        };
        let _ = match row.repair.as_ref().map(|repair| (&repair.sql, repair.is_done)) {
            Some((Ok(sql), false)) => writeln!(out, "  {sql};"),
            Some((Ok(_), true)) => writeln!(out, "  repaired"),
            Some((Err(why), _)) => writeln!(out, "  not repaired: {why}"),
            None => Ok(()),
        };
    }
    if table.has_more {
        let _ = writeln!(out, "{name}: more rows differ; the rest of it was not compared (--max-differences)");
    }
    if table.unsettled > 0 {
        let _ =
            writeln!(out, "{name}: {} rows not compared, they were changed at each look", thousands(table.unsettled));
    }
}

fn column_text(column: &ColumnDifference) -> String {
    let value = |value: &Value| match (&value.bytes, &value.text) {
        (None, _) => "NULL".to_owned(),
        (Some(_), Some(text)) => format!("{text:?}"),
        (Some(bytes), None) => format!("*** ({bytes} bytes)"),
    };
    format!("{} is {} on the source, {} on the target", column.column, value(&column.source), value(&column.target))
}
