//! Rows are looked for in tables that no unique key tells the rows of: each change reads the table.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::period::{Period, StatusSample, text};
use crate::facts::states::Activity;
use crate::questions::{COUNTERS, KEYLESS, TABLES};
use crate::rules::finding::{ActionTarget, Finding, Limits, Severity};
use crate::rules::rule::{Rule, by_lag};
use output::numbers::thousands;

pub const RULE: Rule = Rule {
    name: "table_without_key",
    looks_at: "rows read for each row changed; then the tables without a unique key",
    advice: "a primary key, on the source",
    check,
};

/// Rows read for each row changed; with a key it is about one.
const READ_MIN: f64 = 50.0;
/// And in all: a small table does not matter.
const ROWS_MIN: u64 = 20_000;

/// Rows read and changed in a period. MariaDB from 10.5 on has no numbers of its storage engine: those of all engines.
fn rows(period: &Period) -> Option<(u64, u64)> {
    let of = |name: &str| {
        let value = |look: &StatusSample| look.named(COUNTERS, name)?.parse::<u64>().ok();
        Some(value(&period.after)?.saturating_sub(value(&period.before)?))
    };
    let sum = |read, updated, deleted| Some((of(read)?, of(updated)? + of(deleted)?));
    sum("Innodb_rows_read", "Innodb_rows_updated", "Innodb_rows_deleted")
        .or_else(|| sum("Handler_read_rnd_next", "Handler_update", "Handler_delete"))
}

/// Whether it is worth while to ask which tables have no key.
pub fn is_suspected(period: &Period) -> bool {
    rows(period).is_some_and(|(read, changed)| read >= ROWS_MIN && read as f64 >= READ_MIN * changed.max(1) as f64)
}

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    if !is_suspected(seen.period) {
        return None;
    }
    let (read, changed) = rows(seen.period)?;
    let keyless = seen.period.after.rows(KEYLESS);
    let name = |row: &replica::questions::Record| format!("{}.{}", text(row, "table_schema"), text(row, "table_name"));
    let all: Vec<String> = keyless.iter().map(name).collect();
    // The tables that the applier has open, where the server says it; MariaDB's threads show the statement.
    let open = seen.period.after.rows(TABLES).iter().map(|row| text(row, "table_name").to_owned());
    let open: Vec<String> = open.filter(|table| all.contains(table)).collect();
    let words =
        seen.workers.iter().map(|worker| format!("{} {}", worker.last_state, worker.last_info)).collect::<String>();
    let named = |table: &&String| table.split_once('.').is_some_and(|(_, name)| words.contains(name));
    let table = open.first().or_else(|| all.iter().find(named)).or_else(|| all.first().filter(|_| all.len() == 1))?;
    let applies = 1.0 - seen.work_share(Activity::NoWork).min(seen.coordinator_share(Activity::NoWork));
    if applies < 0.3 {
        return None;
    }
    let rows_of_it = keyless.iter().find(|row| name(row) == *table).map_or("?", |row| text(row, "table_rows"));
    let invisible = match (seen.period.mariadb, seen.period.version) {
        (true, version) if version >= (10, 3, 0) => " INVISIBLE",
        (false, version) if version >= (8, 0, 23) => " INVISIBLE",
        _ => "",
    };
    let quoted = table.split_once('.').map_or_else(|| table.clone(), |(schema, name)| format!("`{schema}`.`{name}`"));
    let auto = if seen.period.mariadb { "BIGINT NOT NULL" } else { "BIGINT UNSIGNED NOT NULL" };
    let attributes = if seen.period.mariadb {
        format!("{auto}{invisible} AUTO_INCREMENT PRIMARY KEY")
    } else {
        format!("{auto} AUTO_INCREMENT PRIMARY KEY{invisible}")
    };
    Some(Finding {
        severity: by_lag(seen, limits).max(Severity::Warning),
        cause: format!("rows of {table} are looked for without a unique key, so that each change reads the table"),
        share: applies,
        evidence: vec![
            format!(
                "{} rows read for {} rows updated or deleted in {:.0} s",
                thousands(read),
                thousands(changed),
                seen.seconds
            ),
            format!("{table} has no unique key and about {rows_of_it} rows"),
        ],
        server: ActionTarget::Source,
        statement: format!("ALTER TABLE {quoted} ADD COLUMN heddle_id {attributes}"),
        risk:
            "it rebuilds the table on the source, then on the replica; use an online schema change tool for a large one"
                .to_owned(),
        effect: "one row read for each row changed".to_owned(),
        ..Finding::default()
    })
}
