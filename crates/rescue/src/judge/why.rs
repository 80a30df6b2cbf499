//! Why the native applier lags, from its settings, its status and a sample of the source's log; and what to set before the hand-back. Pure.
//!
//! The first reason is the one to act on first.

use serde::Serialize;

use crate::backlog::{Backlog, CatchUpTime};
use crate::server::Server;
use output::numbers::{about, bytes, counted, percent};
use replica::settings::{ServerVersion, Setting, WORKERS, named};
use replica::status::ReplicaStatus;

/// What the source's log is like, as far as it was looked at.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct LogSample {
    pub transactions: u64,
    /// Transactions that may run at a time, by the source's tags (MariaDB: its group commits).
    pub parallel: Option<f64>,
    /// Of all transactions, those that are statements.
    pub statement_share: f64,
}

/// One reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// Stable: `applier_stopped`, `one_worker`, `workers_by_schema`, `parallel_mode`, `source_tags`, `statements`, `durable_commits`, `small_buffer_pool`.
    pub reason: &'static str,
    /// In the words of a sentence.
    pub what: String,
    /// `replica`, `source`, or empty where nothing is to be set.
    pub server: &'static str,
    /// What to do; empty: nothing.
    pub change: String,
    /// What makes it outlive a restart; empty: it is not to, or does.
    pub keep: String,
}

/// With fewer transactions at a time than this, workers have nothing to do.
const PARALLEL_MIN: f64 = 2.0;
/// Of the transactions, statements that hold up the rest.
const STATEMENTS_MIN: f64 = 0.2;
/// MySQL's and MariaDB's default, in bytes.
const BUFFER_POOL_DEFAULT: u64 = 128 << 20;

/// The worst first. Empty: nothing explains it.
pub fn reasons(server: &Server, status: &ReplicaStatus, sample: Option<&LogSample>) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if !status.applier_runs {
        reasons.push(Reason {
            reason: "applier_stopped",
            what: "its applier is stopped, until heddle starts it at the hand-back".to_owned(),
            server: "",
            change: String::new(),
            keep: String::new(),
        });
    }
    let native = ServerVersion { mariadb: server.flavour_is_mariadb, version: server.version };
    if server.workers <= 1 {
        reasons.push(Reason::set(
            "one_worker",
            format!("one worker applies all transactions in turn ({}={})", native.workers(), server.workers),
            &native.parallel(WORKERS),
            native,
        ));
    } else {
        parallelism(server, native, sample, &mut reasons);
    }
    if let Some(sample) = sample.filter(|sample| sample.statement_share >= STATEMENTS_MIN) {
        reasons.push(Reason::set(
            "statements",
            format!(
                "{} of the transactions are statements, beside which nothing runs",
                percent(sample.statement_share)
            ),
            &[Setting { server: "source", setting: "binlog_format=ROW".to_owned() }],
            native,
        ));
    }
    machine(server, &mut reasons);
    reasons
}

impl Reason {
    fn set(reason: &'static str, what: String, settings: &[Setting], native: ServerVersion) -> Self {
        let server = settings.first().map_or("", |setting| setting.server);
        let change = if settings.is_empty() { String::new() } else { format!("SET GLOBAL {}", named(settings)) };
        let keep = native.kept(settings.iter().map(|setting| setting.setting.as_str()));
        Self { reason, what, server, change, keep }
    }
}

/// Several workers that have nothing to do.
fn parallelism(server: &Server, native: ServerVersion, sample: Option<&LogSample>, reasons: &mut Vec<Reason>) {
    let workers = server.workers;
    let kind = server.speed_setting(&["replica_parallel_type", "slave_parallel_type"]);
    let mode = server.speed_setting(&["slave_parallel_mode"]);
    let parallel = sample.and_then(|sample| sample.parallel).filter(|&parallel| parallel < PARALLEL_MIN);
    if let Some((name, "DATABASE")) = kind {
        let settings = [Setting { server: "replica", setting: format!("{name}=LOGICAL_CLOCK") }];
        let what = format!("its {workers} workers go by schema ({name}=DATABASE), so that one schema has one worker");
        reasons.push(Reason::set("workers_by_schema", what, &settings, native));
    } else if let Some((name, mode @ ("conservative" | "minimal" | "none"))) = mode {
        let groups =
            parallel.map_or_else(String::new, |size| format!(", and the source's groups have {size:.1} on average"));
        let settings = [Setting { server: "replica", setting: format!("{name}=optimistic") }];
        let what = format!("{name}={mode} lets at most the transactions of one group commit run at a time{groups}");
        reasons.push(Reason::set("parallel_mode", what, &settings, native));
    } else if let Some(parallel) = parallel.filter(|_| !server.flavour_is_mariadb) {
        let what = format!(
            "the source's tags let {parallel:.1} transactions run at a time, whatever its {workers} workers could do"
        );
        let settings: Vec<Setting> = native.writeset().into_iter().collect();
        reasons.push(Reason::set("source_tags", what, &settings, native));
    }
}

/// What each commit and each row waits for.
fn machine(server: &Server, reasons: &mut Vec<Reason>) {
    let value = |name: &str| server.speed_setting(&[name]).map(|(_, value)| value);
    let logs = server.log_bin && server.log_replica_updates && value("sync_binlog") == Some("1");
    if server.workers <= 1 && value("innodb_flush_log_at_trx_commit") == Some("1") {
        reasons.push(Reason {
            reason: "durable_commits",
            what: format!("each of its commits waits for {}", if logs { "two syncs" } else { "a sync" }),
            server: "replica",
            change: format!(
                "SET GLOBAL innodb_flush_log_at_trx_commit=2{}, if a crash of the machine may cost you the replica",
                if logs { ", sync_binlog=0" } else { "" }
            ),
            keep: String::new(),
        });
    }
    let pool = value("innodb_buffer_pool_size").and_then(|value| value.parse::<u64>().ok());
    if let Some(bytes) = pool.filter(|&bytes| bytes <= BUFFER_POOL_DEFAULT) {
        let megabytes = bytes >> 20;
        reasons.push(Reason {
            reason: "small_buffer_pool",
            what: format!("innodb_buffer_pool_size is {megabytes} MiB, so that rows may have to be read from the disk"),
            server: "replica",
            change: "raise innodb_buffer_pool_size to what the machine's memory allows".to_owned(),
            keep: String::new(),
        });
    }
}

/// In one sentence: how far behind, why, how long heddle takes, what to set on which server.
pub fn verdict(backlog: &Backlog, reasons: &[Reason]) -> String {
    let behind = match (backlog.behind_seconds, backlog.behind_transactions, backlog.behind_bytes) {
        _ if backlog.applied_within_seconds.is_some() => return not_behind(backlog),
        (Some(0), Some(waiting @ 1..), _) => counted(waiting, "transaction"),
        (Some(0), ..) | (None, Some(0), _) => return format!("The replica is not behind; {}.", heddle(backlog)),
        (Some(seconds), ..) => about(seconds),
        (None, Some(transactions), _) => counted(transactions, "transaction"),
        (None, None, Some(left)) => format!("{} of the source's log", bytes(left)),
        (None, None, None) => "for an unknown time".to_owned(),
    };
    let stands = match (reasons.first().map(|reason| reason.reason), backlog.native_left()) {
        (Some("applier_stopped"), _) => String::new(),
        (_, CatchUpTime::In(seconds)) => format!(" and would catch up by itself in about {}", about(seconds)),
        (_, CatchUpTime::Never) => " and does not catch up by itself".to_owned(),
        (_, CatchUpTime::Unknown(_)) => String::new(),
    };
    let why = reasons.first().map_or_else(
        || "nothing in its settings explains it, so look at the log with heddle inspect".to_owned(),
        |reason| reason.what.clone(),
    );
    // Too small a pool is a suspicion: advice only where nothing else explains the lag.
    let acts = |(at, reason): &(usize, &Reason)| {
        !reason.change.is_empty() && (*at == 0 || reason.reason != "small_buffer_pool")
    };
    let change = reasons.iter().enumerate().find(acts).map_or_else(String::new, |(_, reason)| {
        format!("; before the hand-back, on the {}: {}", reason.server, reason.change)
    });
    format!("The replica is {behind} behind{stands}: {why}; {}{change}.", heddle(backlog))
}

fn not_behind(backlog: &Backlog) -> String {
    let within = backlog.applied_within_seconds.unwrap_or(0.0);
    if within < 1.0 {
        return "The replica is not behind: it has all that the source had less than a second before.".to_owned();
    }
    format!("The replica is {within:.1} s behind: all that the source had at the beginning of this look is applied.")
}

fn heddle(backlog: &Backlog) -> String {
    match backlog.heddle_left() {
        CatchUpTime::In(seconds) => format!("heddle needs about {}", about(seconds)),
        CatchUpTime::Never => "heddle does not catch up either at the rate that was measured".to_owned(),
        CatchUpTime::Unknown(why) => format!("how long heddle needs is not known ({why})"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{server, status};
    use super::*;

    fn with(workers: u64, speed: &[(&str, &str)]) -> Server {
        let speed = speed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Server { workers, speed, ..server() }
    }

    #[test]
    fn why_it_lags() {
        let check = |server: &Server, sample: &LogSample, expected: &[(&str, &str)]| {
            let found = reasons(server, &status(("", "")), Some(sample));
            assert_eq!(found.len(), expected.len(), "{found:#?}");
            for (found, (reason, change)) in found.iter().zip(expected) {
                assert_eq!(found.reason, *reason, "{found:#?}");
                assert!(found.change.contains(change), "{found:#?}");
            }
        };
        let parallel = |size: f64| LogSample { transactions: 1_000, parallel: Some(size), statement_share: 0.0 };
        let mariadb = |workers: u64, version, speed: &[(&str, &str)]| Server {
            flavour_is_mariadb: true,
            version,
            ..with(workers, speed)
        };
        check(&with(1, &[]), &parallel(9.0), &[("one_worker", "SET GLOBAL replica_parallel_workers=16")]);
        let flush = &[("innodb_flush_log_at_trx_commit", "1"), ("innodb_buffer_pool_size", "134217728")];
        let one = [("one_worker", "=16"), ("durable_commits", "commit=2, if"), ("small_buffer_pool", "raise")];
        check(&with(0, flush), &parallel(1.0), &one);
        check(&with(4, &[("innodb_flush_log_at_trx_commit", "1")]), &parallel(9.0), &[]);
        check(&with(4, &[]), &parallel(1.1), &[("source_tags", "")]);
        let old = Server { version: (8, 0, 20), ..with(8, &[("slave_parallel_type", "DATABASE")]) };
        check(&old, &parallel(1.1), &[("workers_by_schema", "slave_parallel_type=LOGICAL_CLOCK")]);
        let old = Server { version: (8, 0, 20), ..with(8, &[("slave_parallel_type", "LOGICAL_CLOCK")]) };
        check(&old, &parallel(1.1), &[("source_tags", "binlog_transaction_dependency_tracking=WRITESET")]);
        let conservative = &[("slave_parallel_mode", "conservative")];
        check(&mariadb(0, (10, 11, 6), conservative), &parallel(1.1), &[("one_worker", "slave_parallel_threads=16")]);
        check(&mariadb(8, (10, 4, 0), conservative), &parallel(1.1), &[("parallel_mode", "optimistic")]);
        check(&mariadb(8, (10, 11, 6), &[("slave_parallel_mode", "optimistic")]), &parallel(1.1), &[]);
        let statements = LogSample { statement_share: 0.5, ..parallel(9.0) };
        check(&with(8, &[]), &statements, &[("statements", "binlog_format=ROW")]);
    }

    #[test]
    fn in_one_sentence() {
        let reason = reasons(&with(1, &[]), &status(("", "")), None);
        let check = |backlog: &Backlog, reasons: &[Reason], expected: &str| {
            assert_eq!(verdict(backlog, reasons), expected);
        };
        let backlog = Backlog {
            behind_seconds: Some(7_300),
            applied_within_seconds: None,
            behind_transactions: None,
            behind_bytes: Some(1_000),
            native_bytes_per_second: Some(5),
            source_bytes_per_second: Some(10),
            heddle_bytes_per_second: Some(20),
            heddle_estimate_missing: None,
        };
        check(
            &backlog,
            &reason,
            "The replica is 2 h behind and does not catch up by itself: one worker applies all transactions in turn (replica_parallel_workers=1); \
             heddle needs about 100 s; before the hand-back, on the replica: SET GLOBAL replica_parallel_workers=16.",
        );
        let missing = Backlog {
            heddle_bytes_per_second: None,
            heddle_estimate_missing: Some("no privilege".to_owned()),
            ..backlog.clone()
        };
        check(
            &missing,
            &[],
            "The replica is 2 h behind and does not catch up by itself: nothing in its settings explains it, so look at the log with heddle \
             inspect; how long heddle needs is not known (no privilege).",
        );
        let stopped = reasons(&with(1, &[]), &status(("Replica_SQL_Running: Yes", "Replica_SQL_Running: No")), None);
        let unknown = Backlog { behind_seconds: None, behind_transactions: Some(1), ..backlog };
        let said = verdict(&unknown, &stopped);
        assert!(
            said.starts_with(
                "The replica is 1 transaction behind: its applier is stopped, until heddle starts it at the hand-back; heddle needs about 100 s; before"
            ),
            "{said}"
        );
        let none = Backlog { behind_seconds: Some(0), behind_transactions: Some(0), behind_bytes: Some(0), ..unknown };
        check(&none, &reason, "The replica is not behind; heddle needs about 0 s.");
        let seen = Backlog { behind_seconds: None, applied_within_seconds: Some(0.2), ..none.clone() };
        check(&seen, &reason, "The replica is not behind: it has all that the source had less than a second before.");
        // MariaDB's Seconds_Behind_Master is 0 as soon as all is handed out.
        let handed_out = Backlog { behind_transactions: Some(7), ..none };
        assert!(verdict(&handed_out, &reason).starts_with("The replica is 7 transactions behind"));
    }
}
