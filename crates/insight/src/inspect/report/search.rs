//! What `heddle inspect --find` prints: each transaction that has the change, and the command that restores to just before it.

use std::fmt::Write as _;

use binlog::text::escape;
use engine::survey::search::{Change, Content, Field, Hit};
use serde::Serialize;

use output::numbers::{thousands, utc};
use output::shell::shell_quoted;

/// One hit, as JSON has it.
#[derive(Debug, Serialize)]
pub struct HitReport {
    /// Null: the log has no GTIDs.
    gtid: Option<String>,
    file: String,
    /// Of its first event.
    position: u64,
    /// Behind its last event.
    end_position: u64,
    /// UTC.
    time: String,
    changes: Vec<ChangeReport>,
    changes_not_listed: u64,
    /// Applies everything before it to a restored backup.
    command: String,
}

#[derive(Debug, Serialize)]
struct ChangeReport {
    kind: &'static str,
    table: String,
    /// Null: a statement.
    rows: Option<u64>,
    /// The first of them.
    first_rows: Vec<Vec<FieldReport>>,
    statement: Option<String>,
    /// False: the statement may be about other tables.
    sure: bool,
}

#[derive(Debug, Serialize)]
struct FieldReport {
    column: String,
    before: Option<String>,
    after: Option<String>,
}

impl HitReport {
    /// `logs`: what stands behind `--from`.
    pub fn new(file: &str, hit: &Hit, logs: &str) -> Self {
        Self {
            gtid: hit.gtid.as_ref().map(ToString::to_string),
            file: file.to_owned(),
            position: hit.start,
            end_position: hit.end,
            time: utc(hit.commit_time_us),
            changes: hit.changes.iter().map(ChangeReport::new).collect(),
            changes_not_listed: hit.more_changes,
            command: format!(
                "heddle replicate --from {logs} --to mysql://heddle@restore:3306 --start-from BACKUP --until-position {}",
                shell_quoted(&format!("{file}:{}", hit.start))
            ),
        }
    }

    pub fn text(&self) -> String {
        let mut out = String::new();
        let gtid = self.gtid.as_ref().map(|gtid| format!("GTID {gtid}, ")).unwrap_or_default();
        let _ = writeln!(out, "{gtid}{}:{} to {}, {}", escape(&self.file), self.position, self.end_position, self.time);
        for change in &self.changes {
            change.write(&mut out);
        }
        if self.changes_not_listed > 0 {
            let _ = writeln!(out, "  and {} more changes", thousands(self.changes_not_listed));
        }
        let _ = writeln!(out, "  up to just before it: {}", escape(&self.command));
        out
    }
}

impl ChangeReport {
    fn new(change: &Change) -> Self {
        let field = |field: &Field| FieldReport {
            column: field.column.clone(),
            before: field.before.clone(),
            after: field.after.clone(),
        };
        let (rows, first_rows, statement, sure) = match &change.content {
            Content::Rows { count, first } => {
                (Some(*count), first.iter().map(|row| row.iter().map(field).collect()).collect(), None, true)
            }
            Content::Statement { text, is_sure } => (None, Vec::new(), Some(text.clone()), *is_sure),
        };
        Self { kind: change.kind.as_str(), table: change.table.clone(), rows, first_rows, statement, sure }
    }

    fn write(&self, out: &mut String) {
        let _ = write!(out, "  {} {}", self.kind, escape(&self.table));
        if let Some(text) = &self.statement {
            // Escaped already.
            let doubt = if self.sure { "" } else { " (perhaps)" };
            let _ = writeln!(out, "{doubt}: {text}");
            return;
        }
        let rows = self.rows.unwrap_or(0);
        let shown: Vec<String> = self.first_rows.iter().map(|row| row_text(row)).collect();
        let more = if (shown.len() as u64) < rows { "; …" } else { "" };
        let noun = if rows == 1 { "row" } else { "rows" };
        let _ = writeln!(out, ": {} {noun}: {}{more}", thousands(rows), escape(&shown.join("; ")));
    }
}

fn row_text(fields: &[FieldReport]) -> String {
    let one = |field: &FieldReport| match (&field.before, &field.after) {
        (Some(before), Some(after)) if before != after => format!("{}={before} → {after}", field.column),
        (Some(value), _) | (None, Some(value)) => format!("{}={value}", field.column),
        (None, None) => format!("{}=?", field.column),
    };
    fields.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::survey::search::ChangeKind;

    #[test]
    fn a_hit_for_people() {
        let field = |column: &str, before: Option<&str>, after: Option<&str>| Field {
            column: column.to_owned(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
        };
        let rows = |kind, first: Vec<Vec<Field>>, count| Change {
            kind,
            table: "shop.orders".to_owned(),
            content: Content::Rows { count, first },
        };
        let hit = Hit {
            gtid: None,
            start: 625,
            end: 913,
            commit_time_us: 1_795_943_181_000_000,
            changes: vec![
                rows(ChangeKind::Delete, vec![vec![field("id", Some("7"), None)]], 3),
                rows(
                    ChangeKind::Update,
                    vec![vec![field("id", Some("1"), Some("1")), field("a", Some("x"), Some("y"))]],
                    1,
                ),
                Change {
                    kind: ChangeKind::Delete,
                    table: "shop.orders".to_owned(),
                    content: Content::Statement { text: "DELETE o FROM orders o".to_owned(), is_sure: false },
                },
            ],
            more_changes: 0,
        };
        let text = HitReport::new("binlog.000002", &hit, "'my logs'").text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "binlog.000002:625 to 913, 2026-11-29T09:06:21Z",
                "  delete shop.orders: 3 rows: id=7; …",
                "  update shop.orders: 1 row: id=1, a=x → y",
                "  delete shop.orders (perhaps): DELETE o FROM orders o",
                "  up to just before it: heddle replicate --from 'my logs' --to mysql://heddle@restore:3306 --start-from BACKUP --until-position binlog.000002:625",
            ]
        );
    }
}
