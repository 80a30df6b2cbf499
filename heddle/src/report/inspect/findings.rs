//! From measures to advice: what holds a replica back, the worst first, and what to do about it.

use super::model::{BarrierReport, Finding, HotTable, InspectReport};
use crate::report::numbers::{bytes, counted, duration, percent, thousands};

/// Shares of the critical path below this are not told.
const SHARE_MIN: f64 = 0.05;
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
    // What happened goes before what is so all the time.
    long(report, &mut findings);
    tags(report, &mut findings);
    one_schema(report, &mut findings);
    if report.flavour == "mysql" {
        fallbacks(report, &mut findings);
        rotations(report, &mut findings);
    }
    findings
}

fn share_of(report: &InspectReport, name: &str) -> f64 {
    report.exact.as_ref().and_then(|exact| exact.critical_path_by.get(name)).copied().unwrap_or(0.0)
}

/// With a critical path as short as this there is nothing to gain, whatever its shares.
fn is_wide(report: &InspectReport) -> bool {
    report.exact.as_ref().and_then(|exact| exact.speedup_max).is_some_and(|speedup| speedup >= 100.0)
}

/// Rows of one table have one cause: they are told together.
fn hot_keys(report: &InspectReport, findings: &mut Vec<Finding>) {
    if is_wide(report) {
        return;
    }
    let told = findings.len();
    for table in report.hot_tables.iter().filter(|table| table.critical_share >= SHARE_MIN) {
        findings.push(hot_rows(table, report.transactions));
    }
    // Many tables, none of which stands out.
    let share = share_of(report, "key");
    if findings.len() == told && share >= SPREAD_SHARE_MIN {
        let names: Vec<&str> =
            report.hot_tables.iter().filter_map(|table| table.name.as_deref()).take(TABLES_TOLD).collect();
        let most = if names.is_empty() { String::new() } else { format!(", most of them in {}", names.join(", ")) };
        findings.push(Finding {
            kind: "hot_key".to_owned(),
            title: "rows that several transactions change, none of them much more than others".to_owned(),
            evidence: format!("{} of the critical path waits for them{most}", percent(share)),
            advice: "More workers than the width above do not help: transactions that share rows take turns, each pair on other rows. Shorter \
                     transactions and fewer rows in each make the chains shorter; grouping merges changes of one row."
                .to_owned(),
            critical_share: Some(share),
            example: report.hot_tables.first().and_then(|table| table.example.clone()),
        });
    }
}

/// From which share on chains over rows of many tables are told.
const SPREAD_SHARE_MIN: f64 = 0.2;

const HOT_ROWS: &str = "No number of workers helps here: spread the row over several (a counter in slots, summed when read), collect \
    changes before they are written, or let one target transaction carry many of the source's (grouping), which merges them.";

fn hot_rows(table: &HotTable, transactions: u64) -> Finding {
    let error = if table.error > 0 { format!(" (at most {} more)", thousands(table.error)) } else { String::new() };
    let (rows, it) = if table.rows == 1 { ("hot row", "it") } else { ("hot rows", "them") };
    let name = table.name.as_deref().unwrap_or("tables whose keys were not decoded");
    let mut values = table.values.clone();
    let more = table.rows - values.len();
    if more > 0 && !values.is_empty() {
        values.push(format!("{} more", thousands(more as u64)));
    }
    let values = if values.is_empty() { String::new() } else { format!(", {}", values.join(" · ")) };
    Finding {
        kind: "hot_key".to_owned(),
        title: format!("{rows}: {name}{values}"),
        // One transaction may change several of the rows.
        evidence: format!(
            "{} {}{error}, {} of all, one after the other; {} of the critical path waits for {it}",
            thousands(table.transactions),
            if table.rows == 1 { "transactions change it" } else { "changes by transactions that share them" },
            percent(table.transactions as f64 / transactions.max(1) as f64),
            percent(table.critical_share)
        ),
        advice: HOT_ROWS.to_owned(),
        critical_share: Some(table.critical_share),
        example: table.example.clone(),
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
            example: table.example.clone(),
        });
    }
}

fn foreign_keys(report: &InspectReport, findings: &mut Vec<Finding>) {
    let share = share_of(report, "foreign_key");
    if share < SHARE_MIN || is_wide(report) {
        return;
    }
    // Parents that change only once in a while are not among those that are counted.
    let parents = report.hot_tables.iter().filter(|table| table.reference_share > 0.0);
    let worst = parents.max_by(|a, b| a.reference_share.total_cmp(&b.reference_share));
    let of =
        worst.and_then(|table| table.name.as_deref()).map_or_else(String::new, |name| format!(", mostly in {name}"));
    findings.push(Finding {
        kind: "foreign_key".to_owned(),
        title: format!("rows wait for the parents that they refer to{of}"),
        evidence: format!("{} of the critical path follows a change of a parent row", percent(share)),
        advice:
            "Parents that change as often as their children are written (a counter in the parent row) are the usual \
                 reason: move what changes into another table."
                .to_owned(),
        critical_share: Some(share),
        example: worst.and_then(|table| table.example.clone()),
    });
}

fn large(report: &InspectReport, findings: &mut Vec<Finding>) {
    let share = share_of(report, "large_transaction");
    let Some(largest) = report.slowest_transaction.as_ref().filter(|_| share >= SHARE_MIN) else { return };
    findings.push(Finding {
        kind: "large_transaction".to_owned(),
        title: "large transactions".to_owned(),
        evidence: format!(
            "{} of the critical path is transactions much larger than most (fifty times, or a second and more); the largest has {}, {}",
            percent(share),
            counted(largest.rows, "row"),
            bytes(largest.bytes)
        ),
        advice: "A replica starts it only when it is complete, and everything behind it that commits in order waits. Write in \
                 chunks of a few hundred rows with a commit after each (pt-archiver, LIMIT in a loop)."
            .to_owned(),
        critical_share: Some(share),
        example: Some(largest.example.clone()),
    });
}

fn barriers(report: &InspectReport, barrier: &BarrierReport, findings: &mut Vec<Finding>) {
    let share = barrier.critical_share.unwrap_or(0.0);
    // New files are told by their size: `rotations`.
    if (share < SHARE_MIN && barrier.seconds == 0) || barrier.cause == "rotation" {
        return;
    }
    let tables = match barrier.cause {
        "non_transactional" => named(report, &["non_transactional"]),
        _ => String::new(),
    };
    let tables = if tables.is_empty() { tables } else { format!(": {tables}") };
    let of = percent(barrier.count as f64 / report.transactions.max(1) as f64);
    let ran = match barrier.seconds {
        0 => String::new(),
        seconds => format!(", ran {} on the source", duration(seconds as f64)),
    };
    findings.push(Finding {
        kind: barrier.cause.to_owned(),
        title: format!("barriers: {}{tables}", barrier.title),
        evidence: format!(
            "{}, {of} of all{ran}; {} of the critical path",
            counted(barrier.count, "transaction"),
            percent(share)
        ),
        advice: barrier.advice.to_owned(),
        critical_share: Some(share),
        example: Some(barrier.example.clone()),
    });
}

/// The tables that are ordered as a whole for one of these reasons, the busiest first.
fn named(report: &InspectReport, reasons: &[&str]) -> String {
    let mut tables: Vec<_> = report
        .tables
        .iter()
        .filter(|table| table.ordered_as_a_whole.is_some_and(|reason| reasons.contains(&reason)))
        .collect();
    tables.sort_by_key(|table| std::cmp::Reverse(table.transactions));
    let mut names: Vec<String> =
        tables.iter().take(TABLES_TOLD).map(|table| format!("{}.{}", table.schema, table.table)).collect();
    if tables.len() > TABLES_TOLD {
        names.push(format!("{} more", tables.len() - TABLES_TOLD));
    }
    names.join(", ")
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
    let waits = if share >= SHARE_MIN {
        format!("; {} of the critical path waits for these tables", percent(share))
    } else {
        String::new()
    };
    findings.push(Finding {
        kind: "keys_unknown".to_owned(),
        title: format!("key columns are not known here: {}", named(report, &["keys_unknown", "definition_differs"])),
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

/// Workers by schema, which is all that MySQL has before 5.7, and its default until 8.0.26.
fn one_schema(report: &InspectReport, findings: &mut Vec<Finding>) {
    const BUSY_SHARE_MIN: f64 = 0.8;
    let version = report.files.iter().filter_map(|file| file.server_version.as_deref()).next_back().unwrap_or_default();
    if report.flavour != "mysql" || !["5.", "8.0."].iter().any(|begin| version.starts_with(begin)) {
        return;
    }
    let Some((schema, share)) = report.busiest_schema.as_ref().filter(|(_, share)| *share >= BUSY_SHARE_MIN) else {
        return;
    };
    // Who has but one, and tags, does without workers by schema.
    if *share >= 1.0 && report.amil.is_some() {
        return;
    }
    findings.push(Finding {
        kind: "one_schema".to_owned(),
        title: format!("nearly all changes are in one schema: {schema}"),
        evidence: format!(
            "{} of the rows; workers by schema (MySQL 5.6, replica_parallel_type=DATABASE) make a replica at most {:.1} times as fast",
            percent(*share),
            1.0 / share
        ),
        advice: "replica_parallel_type=LOGICAL_CLOCK (MySQL 5.7 and later) does not go by schemas.".to_owned(),
        critical_share: None,
        example: None,
    });
}

fn fallbacks(report: &InspectReport, findings: &mut Vec<Finding>) {
    for fallback in &report.writeset_fallbacks {
        let of = fallback.count as f64 / report.transactions.max(1) as f64;
        let told = match fallback.cause {
            "foreign_key" => of >= SHARE_MIN,
            "history_full" | "large_write_set" => of >= 0.001,
            "no_key" => of >= SHARE_MIN && !findings.iter().any(|finding| finding.kind == "table_without_key"),
            _ => false,
        };
        if !told {
            continue;
        }
        findings.push(Finding {
            kind: format!("writeset_{}", fallback.cause),
            title: format!("MySQL's WRITESET falls back: {}", fallback.title),
            evidence: format!("{}, {} of all", counted(fallback.count, "transaction"), percent(of)),
            advice: fallback.advice.to_owned(),
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
    let details = report.barrier_details.iter().find(|barrier| barrier.cause == "rotation");
    findings.push(Finding {
        kind: "rotation".to_owned(),
        title: "binary log files are small".to_owned(),
        evidence: format!(
            "{} in a file on average; at each new file MySQL's replicas wait for all before",
            counted(each, "transaction")
        ),
        advice: "Raise max_binlog_size, and do not FLUSH LOGS often.".to_owned(),
        critical_share: None,
        example: details.map(|barrier| barrier.example.clone()),
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
        advice: "Its statements are that old when they come, so a replica's lag by timestamps jumps by as much, however few rows it has, \
                 and its locks were held for so long. Commit earlier; wait for people and other services outside of transactions."
            .to_owned(),
        critical_share: None,
        example: Some(longest.example.clone()),
    });
}
