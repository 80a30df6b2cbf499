//! From measures to advice: what holds a replica back, the worst first, and what to do about it.

use serde::Serialize;

use super::model::{BarrierReport, ExampleReport, HotKeyReport, InspectReport};
use crate::report::numbers::{bytes, duration, percent, thousands};

/// One thing that holds a replica back.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Stable: `hot_key`, `table_without_key`, `keys_unknown`, a barrier's cause, and so on.
    pub kind: String,
    pub title: String,
    pub evidence: String,
    pub advice: String,
    /// Of the critical path; null where it is not measured by that.
    pub critical_share: Option<f64>,
    pub example: Option<ExampleReport>,
}

/// Shares of the critical path below this are not told.
const SHARE_MIN: f64 = 0.05;
/// Keys that are told one by one.
const KEYS_TOLD: usize = 5;
/// Tables that are named in one line.
const TABLES_TOLD: usize = 3;

/// The findings of a report, by their share of the critical path, then those that are not measured by it.
pub fn find(report: &InspectReport) -> Vec<Finding> {
    let mut findings = Vec::new();
    hot_keys(report, &mut findings);
    tables(report, &mut findings);
    foreign_keys(report, &mut findings);
    large(report, &mut findings);
    for barrier in &report.barrier_details {
        barriers(report, barrier, &mut findings);
    }
    unknown_keys(report, &mut findings);
    findings.sort_by(|a, b| b.critical_share.unwrap_or(0.0).total_cmp(&a.critical_share.unwrap_or(0.0)));
    tags(report, &mut findings);
    fallbacks(report, &mut findings);
    rotations(report, &mut findings);
    long(report, &mut findings);
    findings
}

fn share_of(report: &InspectReport, name: &str) -> f64 {
    report.exact.as_ref().and_then(|exact| exact.critical_path_by.get(name)).copied().unwrap_or(0.0)
}

/// With a critical path as short as this there is nothing to gain, whatever its shares.
fn is_wide(report: &InspectReport) -> bool {
    report.exact.as_ref().and_then(|exact| exact.speedup_max).is_some_and(|speedup| speedup >= 100.0)
}

fn hot_keys(report: &InspectReport, findings: &mut Vec<Finding>) {
    if is_wide(report) {
        return;
    }
    // Rows of one table have one cause.
    let mut by_table: Vec<(String, Vec<&HotKeyReport>)> = Vec::new();
    for key in report.hot_keys.iter().filter(|key| key.critical_share >= SHARE_MIN).take(KEYS_TOLD) {
        let table = match (&key.schema, &key.table) {
            (Some(schema), Some(table)) => format!("{schema}.{table}"),
            _ => "a table".to_owned(),
        };
        match by_table.iter_mut().find(|(name, _)| *name == table) {
            Some((_, keys)) => keys.push(key),
            None => by_table.push((table, vec![key])),
        }
    }
    for (table, keys) in by_table {
        findings.push(hot_rows(&table, &keys, report.transactions));
    }
}

fn hot_rows(table: &str, keys: &[&HotKeyReport], transactions: u64) -> Finding {
    let values: Vec<&str> =
        keys.iter().map(|key| key.values.as_deref().unwrap_or("a key that was not decoded")).collect();
    let count: u64 = keys.iter().map(|key| key.transactions).sum();
    let error: u64 = keys.iter().map(|key| key.error).sum();
    let share: f64 = keys.iter().map(|key| key.critical_share).sum();
    let error = if error > 0 { format!(" (at most {} more)", thousands(error)) } else { String::new() };
    let (rows, it) = if keys.len() == 1 { ("hot row", "it") } else { ("hot rows", "them") };
    Finding {
        kind: "hot_key".to_owned(),
        title: format!("{rows}: {table}, {}", values.join(" · ")),
        evidence: format!(
            "{} transactions{error}, {} of all, change {it} one after the other; that is {} of the critical path",
            thousands(count),
            percent(count as f64 / transactions.max(1) as f64),
            percent(share)
        ),
        advice: "No number of workers helps here: spread the row over several (a counter in slots, summed when read), collect \
                 changes before they are written, or let one target transaction carry many of the source's (grouping), which \
                 merges them."
            .to_owned(),
        critical_share: Some(share),
        example: None,
    }
}

fn tables(report: &InspectReport, findings: &mut Vec<Finding>) {
    for table in &report.tables {
        let Some(share) = table.critical_share.filter(|&share| share >= SHARE_MIN) else { continue };
        let name = format!("{}.{}", table.schema, table.table);
        let (kind, title, advice) = match table.ordered_as_a_whole {
            Some("no_key") => (
                "table_without_key",
                format!("{name} has no primary key"),
                "Give it a primary key (an invisible AUTO_INCREMENT column will do). Without one its changes run one after \
                 the other, MySQL's WRITESET falls back to the commit order, and a replica has to look for each row in the \
                 whole table.",
            ),
            // All of them together: `unknown_keys`.
            Some("keys_unknown" | "definition_differs") => continue,
            Some("non_transactional") => {
                ("non_transactional", format!("{name} has an engine without transactions"), "Convert it to InnoDB.")
            }
            Some("key_of_unknown_collation") => (
                "key_of_unknown_collation",
                format!("{name} has a key whose collation is not known here"),
                "What the log says about its text columns is not enough to tell which values are equal; --schema DUMP.sql \
                 may say it. The servers themselves can.",
            ),
            _ => (
                "table_as_a_whole",
                format!("{name} is ordered as a whole"),
                "Changes of it that its keys do not describe (cascading foreign keys, minimal row images, very large \
                 transactions) hold back all others of the table.",
            ),
        };
        findings.push(Finding {
            kind: kind.to_owned(),
            title,
            evidence: format!(
                "{} transactions with {} rows; {} of the critical path waits for it",
                thousands(table.transactions),
                thousands(table.rows),
                percent(share)
            ),
            advice: advice.to_owned(),
            critical_share: Some(share),
            example: None,
        });
    }
}

fn foreign_keys(report: &InspectReport, findings: &mut Vec<Finding>) {
    let share = share_of(report, "foreign_key");
    if share < SHARE_MIN || is_wide(report) {
        return;
    }
    findings.push(Finding {
        kind: "foreign_key".to_owned(),
        title: "rows wait for the parents that they refer to".to_owned(),
        evidence: format!("{} of the critical path follows a change of a parent row", percent(share)),
        advice:
            "Parents that change as often as their children are written (a counter in the parent row) are the usual \
                 reason: move what changes into another table."
                .to_owned(),
        critical_share: Some(share),
        example: None,
    });
}

fn large(report: &InspectReport, findings: &mut Vec<Finding>) {
    let share = share_of(report, "large_transaction");
    let Some(largest) = report.largest_transactions.first().filter(|_| share >= SHARE_MIN) else { return };
    findings.push(Finding {
        kind: "large_transaction".to_owned(),
        title: "large transactions".to_owned(),
        evidence: format!(
            "{} of the critical path is transactions that take a second or more each; the largest has {} rows, {}",
            percent(share),
            thousands(largest.rows),
            bytes(largest.bytes)
        ),
        advice: "A replica starts it only when it is complete, and everything behind it that commits in order waits. Write in \
                 chunks of some thousand rows with a commit after each (pt-archiver, LIMIT in a loop)."
            .to_owned(),
        critical_share: Some(share),
        example: Some(largest.example.clone()),
    });
}

fn barriers(report: &InspectReport, barrier: &BarrierReport, findings: &mut Vec<Finding>) {
    let share = barrier.critical_share.unwrap_or(0.0);
    if share < SHARE_MIN && barrier.seconds == 0 {
        return;
    }
    let of = percent(barrier.count as f64 / report.transactions.max(1) as f64);
    let ran = match barrier.seconds {
        0 => String::new(),
        seconds => format!(", ran {} on the source", duration(seconds as f64)),
    };
    let advice = match barrier.cause {
        "statement" => {
            "Set binlog_format=ROW: statements run one after the other on a replica, and nothing beside them."
        }
        "load_data" => "Set binlog_format=ROW, and load in chunks.",
        "temporary_table" => "Set binlog_format=ROW: temporary tables then leave no trace in the log.",
        "non_transactional" => "Convert the tables to InnoDB.",
        "xa" => {
            "XA transactions run alone here and are ordered by each other on replicas: use plain transactions where one \
                 server takes part."
        }
        "account" => "Accounts and privileges are changed while nothing else runs: not in bulk while the load is high.",
        "unknown" => "Please report these statements: what is not understood has to run alone.",
        "ddl_create_table" | "ddl_drop_table" | "ddl_truncate" => {
            "All before it has to be done, and nothing after it starts before it ends. Tables that are created, emptied or \
             dropped all the time are better kept (DELETE in chunks, partitions prepared ahead)."
        }
        _ => {
            "All before it has to be done, and nothing after it starts before it ends: use an online tool (gh-ost, \
             pt-online-schema-change), ALGORITHM=INSTANT where possible, or run it on each replica with sql_log_bin=0."
        }
    };
    findings.push(Finding {
        kind: barrier.cause.to_owned(),
        title: format!("barriers: {}", barrier.title),
        evidence: format!(
            "{} transactions, {of} of all{ran}; {} of the critical path",
            thousands(barrier.count),
            percent(share)
        ),
        advice: advice.to_owned(),
        critical_share: Some(share),
        example: Some(barrier.example.clone()),
    });
}

/// What is not known may hide more than it shows. Ordered as whole tables they count with the critical path; else they come behind.
fn unknown_keys(report: &InspectReport, findings: &mut Vec<Finding>) {
    let unknown: Vec<_> = report
        .tables
        .iter()
        .filter(|table| matches!(table.ordered_as_a_whole, Some("keys_unknown" | "definition_differs")))
        .collect();
    if unknown.is_empty() {
        return;
    }
    let share: f64 = unknown.iter().filter_map(|table| table.critical_share).sum();
    let rows: u64 = unknown.iter().map(|table| table.rows).sum();
    let mut names: Vec<String> =
        unknown.iter().take(TABLES_TOLD).map(|table| format!("{}.{}", table.schema, table.table)).collect();
    if unknown.len() > TABLES_TOLD {
        names.push(format!("{} more", unknown.len() - TABLES_TOLD));
    }
    let waits = match share >= SHARE_MIN {
        true => format!("; {} of the critical path waits for these tables", percent(share)),
        false => String::new(),
    };
    findings.push(Finding {
        kind: "keys_unknown".to_owned(),
        title: format!("key columns are not known here: {}", names.join(", ")),
        evidence: format!("{} of {} rows{waits}", thousands(rows), thousands(report.rows)),
        advice: "Look again with --schema DUMP.sql (mysqldump --no-data --databases …) or --schema mysql://… before anything else: until \
                 then changes of these tables count as one after the other, and hot rows are not seen. The log does not \
                 have the keys (binlog_row_metadata=MINIMAL, no CREATE TABLE in it)."
            .to_owned(),
        critical_share: (share >= SHARE_MIN).then_some(share),
        example: None,
    });
}

/// What the source's tags give away.
fn tags(report: &InspectReport, findings: &mut Vec<Finding>) {
    let width = report.exact.as_ref().and_then(|exact| exact.width_average);
    if let (Some(source), Some(writeset)) = (report.pseudo_group_size, report.pseudo_group_size_writeset)
        && writeset > 1.5 * source
    {
        findings.push(Finding {
            kind: "tags_commit_order".to_owned(),
            title: "the source's tags hide parallelism that is there".to_owned(),
            evidence: format!("pseudo group size {source:.1} as tagged, {writeset:.1} with WRITESET"),
            advice: "MySQL 5.7.22 to 8.3: binlog_transaction_dependency_tracking=WRITESET (8.4 has nothing else). Without a change \
                     of the source: an intermediate server of 8.0 or later, even single-threaded, tags anew."
                .to_owned(),
            critical_share: None,
            example: None,
        });
    }
    if let (Some(group), Some(width)) = (report.mariadb_group_size, width)
        && report.flavour == "mariadb"
        && width > 2.0 * group
    {
        findings.push(Finding {
            kind: "small_groups".to_owned(),
            title: "group commits are smaller than what could run in parallel".to_owned(),
            evidence: format!("{group:.1} transactions in a group on average, {width:.1} could run beside each other"),
            advice: "slave_parallel_mode=optimistic or aggressive does not need groups. For conservative: \
                     binlog_commit_wait_count and binlog_commit_wait_usec on the source make groups larger, at the price of its \
                     commits' latency."
                .to_owned(),
            critical_share: None,
            example: None,
        });
    }
}

fn fallbacks(report: &InspectReport, findings: &mut Vec<Finding>) {
    for fallback in &report.writeset_fallbacks {
        let of = fallback.count as f64 / report.transactions.max(1) as f64;
        let advice = match fallback.cause {
            "foreign_key" if of >= SHARE_MIN => {
                "A transaction that touches a table which foreign keys refer to is tagged in commit order by MySQL's WRITESET, and the \
                 history is emptied: drop the constraints that the application does not need."
            }
            "history_full" if of >= 0.001 => {
                "Each time the history is full MySQL begins anew: raise binlog_transaction_dependency_history_size, or write \
                 smaller transactions."
            }
            "large_write_set" if of >= 0.001 => {
                "Such a transaction has more rows than binlog_transaction_dependency_history_size: split it."
            }
            "no_key" if of >= SHARE_MIN && !findings.iter().any(|finding| finding.kind == "table_without_key") => {
                "Tables without a primary key are tagged in commit order: give them one."
            }
            _ => continue,
        };
        findings.push(Finding {
            kind: format!("writeset_{}", fallback.cause),
            title: format!("MySQL's WRITESET falls back: {}", fallback.title),
            evidence: format!("{} transactions, {} of all", thousands(fallback.count), percent(of)),
            advice: advice.to_owned(),
            critical_share: None,
            example: Some(fallback.example.clone()),
        });
    }
}

fn rotations(report: &InspectReport, findings: &mut Vec<Finding>) {
    let rotations = report.barriers.get("rotation").copied().unwrap_or(0);
    let each = report.transactions / (rotations + 1);
    if rotations < 3 || each >= 10_000 {
        return;
    }
    findings.push(Finding {
        kind: "rotation".to_owned(),
        title: "binary log files are small".to_owned(),
        evidence: format!(
            "{} transactions in a file on average; at each new file MySQL's replicas wait for all before",
            thousands(each)
        ),
        advice: "Raise max_binlog_size, and do not FLUSH LOGS often.".to_owned(),
        critical_share: None,
        example: None,
    });
}

fn long(report: &InspectReport, findings: &mut Vec<Finding>) {
    const LONG_SECONDS: u32 = 30;
    let Some(longest) = report.longest_transactions.first().filter(|longest| longest.seconds >= LONG_SECONDS) else {
        return;
    };
    findings.push(Finding {
        kind: "long_transaction".to_owned(),
        title: "transactions that were open for long".to_owned(),
        evidence: format!(
            "the longest ran {} on the source before its commit; a replica sees it only then",
            duration(longest.seconds.into())
        ),
        advice: "A replica's lag jumps by what it takes to apply. With commit-order tags nothing beside it was tagged parallel. Commit \
                 earlier."
            .to_owned(),
        critical_share: None,
        example: Some(longest.example.clone()),
    });
}
