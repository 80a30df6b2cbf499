//! From measures to advice: what holds a replica back, the worst first, and what to do about it. What a replica would gain less than
//! [`WEIGHT_MIN`] without is not told.

use super::advice;
use super::model::{BarrierReport, Finding, HotTable, InspectReport};
use output::numbers::{bytes, counted, duration, percent, thousands};
use replica::settings::WORKERS;

/// What a finding has to weigh.
const WEIGHT_MIN: f64 = 0.05;
/// Of all transactions, where nothing else is measured.
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
    for finding in &mut findings {
        finding.weight = finding.critical_share.map(|share| weight(report, share));
    }
    findings.sort_by(|a, b| b.critical_share.unwrap_or(0.0).total_cmp(&a.critical_share.unwrap_or(0.0)));
    // What happened goes before what is so all the time.
    long(report, &mut findings);
    tags(report, &mut findings);
    one_schema(report, &mut findings);
    if report.flavour == "mysql" {
        fallbacks(report, &mut findings);
        rotations(report, &mut findings);
    }
    for finding in &mut findings {
        let (server, change) = advice::remedy(&finding.kind);
        if finding.change.is_empty() {
            (finding.server, finding.change) = (server, change);
        }
        if finding.subject.is_empty() {
            finding.subject.clone_from(&finding.title);
        }
    }
    findings
}

fn share_of(report: &InspectReport, name: &str) -> f64 {
    report.exact.as_ref().and_then(|exact| exact.critical_path_by.get(name)).copied().unwrap_or(0.0)
}

/// Which share of its time a replica with [`WORKERS`] would gain, were this share of the critical path gone. Its time is the critical
/// path's, or that of the work among its workers, whichever is longer.
fn weight(report: &InspectReport, critical_share: f64) -> f64 {
    let Some(speedup) = report.exact.as_ref().and_then(|exact| exact.speedup_max) else { return 0.0 };
    let (path, shared) = (1.0 / speedup.max(1.0), 1.0 / WORKERS as f64);
    1.0 - (path * (1.0 - critical_share)).max(shared) / path.max(shared)
}

fn matters(report: &InspectReport, critical_share: f64) -> bool {
    weight(report, critical_share) >= WEIGHT_MIN
}

/// As far as [`WORKERS`] can use it.
fn usable(parallel: f64) -> f64 {
    parallel.clamp(1.0, WORKERS as f64)
}

/// Rows of one table have one cause: they are told together.
fn hot_keys(report: &InspectReport, findings: &mut Vec<Finding>) {
    let told = findings.len();
    for table in report.hot_tables.iter().filter(|table| matters(report, table.critical_share)) {
        findings.push(hot_rows(table, report.transactions));
    }
    // Many tables, none of which stands out.
    let share = share_of(report, "key");
    if findings.len() == told && share >= SPREAD_SHARE_MIN && matters(report, share) {
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
            server: "application",
            change: "write fewer rows in each transaction",
            ..Finding::default()
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
        subject: format!("the {rows} {name}{values}"),
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
        ..Finding::default()
    }
}

fn tables(report: &InspectReport, findings: &mut Vec<Finding>) {
    for table in &report.tables {
        let Some(share) = table.critical_share.filter(|&share| matters(report, share)) else { continue };
        let name = format!("{}.{}", table.schema, table.table);
        let (kind, title, subject, advice) = match table.ordered_as_a_whole {
            Some("no_key") => (
                "table_without_key",
                format!("{name} has no primary key"),
                format!("the table {name}, which has no primary key"),
                "Give it a primary key (an invisible AUTO_INCREMENT column will do). Without one its changes run one after \
                 the other, MySQL's WRITESET falls back to the commit order, and a replica has to look for each row in the \
                 whole table.",
            ),
            // All of them together: `unknown_keys`.
            Some("keys_unknown" | "definition_differs") => continue,
            Some("non_transactional") => (
                "non_transactional",
                format!("{name} has an engine without transactions"),
                format!("the table {name}, whose engine has no transactions"),
                "Convert it to InnoDB.",
            ),
            Some("key_of_unknown_collation") => (
                "key_of_unknown_collation",
                format!("{name} has a key whose collation is not known here"),
                format!("the table {name}, which has a key of an unknown collation"),
                "What the log says about its text columns is not enough to tell which values are equal; --schema DUMP.sql \
                 may say it. The servers themselves can.",
            ),
            _ => (
                "table_as_a_whole",
                format!("{name} is ordered as a whole"),
                format!("the table {name}, which is ordered as a whole"),
                "Changes of it that its keys do not describe (cascading foreign keys, minimal row images, very large \
                 transactions) hold back all others of the table.",
            ),
        };
        findings.push(Finding {
            kind: kind.to_owned(),
            title,
            subject,
            evidence: format!(
                "{} transactions with {} rows; {} of the critical path waits for it",
                thousands(table.transactions),
                thousands(table.rows),
                percent(share)
            ),
            advice: advice.to_owned(),
            critical_share: Some(share),
            example: table.example.clone(),
            ..Finding::default()
        });
    }
}

fn foreign_keys(report: &InspectReport, findings: &mut Vec<Finding>) {
    let share = share_of(report, "foreign_key");
    if !matters(report, share) {
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
        subject: format!("the parents that rows refer to{of}"),
        evidence: format!("{} of the critical path follows a change of a parent row", percent(share)),
        advice:
            "Parents that change as often as their children are written (a counter in the parent row) are the usual \
                 reason: move what changes into another table."
                .to_owned(),
        critical_share: Some(share),
        example: worst.and_then(|table| table.example.clone()),
        ..Finding::default()
    });
}

fn large(report: &InspectReport, findings: &mut Vec<Finding>) {
    let share = share_of(report, "large_transaction");
    let Some(largest) = report.slowest_transaction.as_ref().filter(|_| matters(report, share)) else { return };
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
        ..Finding::default()
    });
}

fn barriers(report: &InspectReport, barrier: &BarrierReport, findings: &mut Vec<Finding>) {
    let share = barrier.critical_share.unwrap_or(0.0);
    let stalls = barrier.longest_seconds >= STALL_SECONDS;
    // New files are told by their size: `rotations`.
    if (!matters(report, share) && !stalls) || barrier.cause == "rotation" {
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
        seconds if stalls => format!(
            ", ran {} on the source, the longest {}: a replica falls behind by as much",
            duration(seconds as f64),
            duration(barrier.longest_seconds as f64)
        ),
        seconds => format!(", ran {} on the source", duration(seconds as f64)),
    };
    findings.push(Finding {
        kind: barrier.cause.to_owned(),
        title: format!("barriers: {}{tables}", barrier.title),
        subject: format!("{}{tables}", barrier.title),
        evidence: format!(
            "{}, {of} of all{ran}; {} of the critical path",
            counted(barrier.count, "transaction"),
            percent(share)
        ),
        advice: barrier.advice.to_owned(),
        critical_share: Some(share),
        example: Some(barrier.example.clone()),
        ..Finding::default()
    });
}

/// A statement that runs so long by itself holds a replica up, however little of the log it is.
const STALL_SECONDS: u64 = 30;

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

/// They are ordered as whole tables: where that holds nobody up, knowing more would change nothing.
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
    if !matters(report, share) {
        return;
    }
    let rows: u64 = unknown.iter().map(|table| table.rows).sum();
    findings.push(Finding {
        kind: "keys_unknown".to_owned(),
        title: format!("key columns are not known here: {}", named(report, &["keys_unknown", "definition_differs"])),
        subject: format!("tables whose keys are not known here: {}", named(report, &["keys_unknown", "definition_differs"])),
        evidence: format!(
            "{} of {} rows; {} of the critical path waits for these tables",
            thousands(rows),
            thousands(report.rows),
            percent(share)
        ),
        advice: "Look again with --schema DUMP.sql (mysqldump --no-data --databases …) or --schema mysql://… before anything else: until \
                 then changes of these tables count as one after the other, and hot rows are not seen. The log does not \
                 have the keys (binlog_row_metadata=MINIMAL, no CREATE TABLE in it)."
            .to_owned(),
        critical_share: Some(share),
        ..Finding::default()
    });
}

/// What the source's tags give away.
fn tags(report: &InspectReport, findings: &mut Vec<Finding>) {
    let width = report.exact.as_ref().and_then(|exact| exact.width_average);
    if let (Some(source), Some(writeset)) = (report.pseudo_group_size, report.pseudo_group_size_writeset)
        && usable(writeset) > 1.5 * usable(source)
    {
        findings.push(Finding {
            kind: "tags_commit_order".to_owned(),
            title: "the source's tags hide parallelism that is there".to_owned(),
            evidence: format!("pseudo group size {source:.1} as tagged, {writeset:.1} with WRITESET"),
            advice: "MySQL 5.7.22 to 8.3: binlog_transaction_dependency_tracking=WRITESET (8.4 has nothing else). Without a change \
                     of the source: an intermediate server of 8.0 or later, even single-threaded, tags anew."
                .to_owned(),
            ..Finding::default()
        });
    }
    if let (Some(group), Some(width)) = (report.mariadb_group_size, width)
        && report.flavour == "mariadb"
        && usable(width) > 2.0 * usable(group)
    {
        findings.push(Finding {
            kind: "small_groups".to_owned(),
            title: "group commits are smaller than what could run in parallel".to_owned(),
            evidence: format!("{group:.1} transactions in a group on average, {width:.1} could run beside each other"),
            advice: "slave_parallel_mode=optimistic or aggressive does not need groups. For conservative: \
                     binlog_commit_wait_count and binlog_commit_wait_usec on the source make groups larger, at the price of its \
                     commits' latency."
                .to_owned(),
            ..Finding::default()
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
    // Who has but one, and tags, does without workers by schema; and where nothing could run in parallel they change nothing.
    let speedup = report.exact.as_ref().and_then(|exact| exact.speedup_max);
    if (*share >= 1.0 && report.amil.is_some()) || speedup.is_some_and(|speedup| speedup < 1.5) {
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
        ..Finding::default()
    });
}

/// Only where they cost parallelism that is there.
fn fallbacks(report: &InspectReport, findings: &mut Vec<Finding>) {
    if let (Some(writeset), Some(exact)) = (report.pseudo_group_size_writeset, report.pseudo_group_size_exact)
        && usable(exact) <= 1.25 * usable(writeset)
    {
        return;
    }
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
            example: Some(fallback.example.clone()),
            ..Finding::default()
        });
    }
}

fn rotations(report: &InspectReport, findings: &mut Vec<Finding>) {
    let rotations = report.barriers.get("rotation").copied().unwrap_or(0);
    let each = report.transactions / (rotations + 1);
    // At each of them all workers wait until the last is done: about one round of theirs is lost.
    if rotations < 3 || WORKERS as f64 / each.max(1) as f64 <= WEIGHT_MIN {
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
        example: details.map(|barrier| barrier.example.clone()),
        ..Finding::default()
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
        example: Some(longest.example.clone()),
        ..Finding::default()
    });
}
