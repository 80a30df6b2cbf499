//! Rules over recorded periods of real servers, as they were and with one thing changed; and their table in docs/watch.md.

use super::*;
use crate::facts::period::{Period, ReceivedGtids, Role};
use crate::facts::source::{HotRows, Parallelism, SimulatedSpeed, SourceFacts, SourceServer};
use crate::facts::trend;
use crate::questions::{BY_WORKER, CLOCK, CONNECTION, COUNTERS, KEYLESS, LOCKS, NOTES, RESCUER, STATUS, VARIABLES};
use crate::report::Report;
use crate::report::text;
use crate::rules::finding::Severity;
use engine::quality::forecast::Forecast;
use insight::simulate::scenario::Scenario;

const LIMITS: Limits = Limits { warn_s: 60.0, critical_s: 600.0 };

/// Recorded with `heddle watch --once --record`, then shortened.
macro_rules! recorded {
    ($name:literal) => {
        serde_json::from_str::<Period>(include_str!(concat!("../recorded/", $name, ".json"))).expect($name)
    };
}

fn found(period: &Period) -> Vec<&'static str> {
    let seen = ChannelFacts::new(period, "").expect("a period");
    findings(&seen, LIMITS).iter().map(|finding| finding.rule).collect()
}

fn finding(period: &Period, rule: &str) -> Finding {
    let seen = ChannelFacts::new(period, "").expect("a period");
    let all = findings(&seen, LIMITS);
    let names: Vec<_> = all.iter().map(|finding| finding.rule).collect();
    all.iter().find(|finding| finding.rule == rule).cloned().unwrap_or_else(|| panic!("no {rule} in {names:?}"))
}

fn verdict(period: &Period) -> String {
    Report::new(&ChannelFacts::new(period, "").expect("a period"), LIMITS).verdict
}

/// Four workers, a backlog, and nothing that a rule names: the coordinator reads.
fn busy() -> Period {
    let mut period = recorded!("mysql-workers-busy");
    states(
        &mut period,
        Role::Coordinator,
        &["Reading event from the relay log", "Waiting for Replica Worker queue", "Reading event from the relay log"],
    );
    states(
        &mut period,
        Role::Worker,
        &["Applying batch of row changes (update)", "Waiting for an event from Coordinator"],
    );
    period
}

/// Each thread of a role has these states in turn.
fn states(period: &mut Period, role: Role, states: &[&str]) {
    for (at, sample) in period.samples.iter_mut().enumerate() {
        for thread in sample.threads.iter_mut().filter(|thread| thread.role == role) {
            thread.state = states[at % states.len()].to_owned();
        }
    }
}

fn set(period: &mut Period, question: &str, name: &str, before: u64, after: u64) {
    for (look, value) in [(&mut period.before, before), (&mut period.after, after)] {
        let rows = look.answers.entry(question.to_owned()).or_default();
        rows.retain(|row| row.get("Variable_name").is_none_or(|own| own != name));
        let pairs = [("Variable_name", name.to_owned()), ("Value", value.to_string())];
        rows.push(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
    }
}

fn variable(period: &mut Period, name: &str, value: u64) {
    set(period, VARIABLES, name, value, value);
}

fn column(period: &mut Period, name: &str, value: &str) {
    for look in [&mut period.before, &mut period.after] {
        for row in look.answers.get_mut(STATUS).expect("a status") {
            row.insert(name.to_owned(), value.to_owned());
        }
    }
}

fn rows(period: &mut Period, question: &str, columns: &[(&str, &str)]) {
    let row = columns.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    period.after.answers.insert(question.to_owned(), vec![row]);
}

#[test]
fn recorded_states_are_named() {
    for (period, expected) in [
        (recorded!("mysql-one-worker"), &["more_workers"][..]),
        (recorded!("mysql-dependency"), &["dependency", "fewer_workers", "hot_rows"]),
        (recorded!("mysql-workers-busy"), &["more_workers"]),
        (recorded!("mysql-large"), &["large_transaction"]),
        (recorded!("mysql-ddl"), &["ddl"]),
        (recorded!("mysql-blocked"), &["blocked"]),
        (recorded!("mysql-no-key"), &["table_without_key", "dependency"]),
        (recorded!("mysql-stopped"), &["stopped"]),
        (recorded!("mariadb-catches-up"), &["commit_order"]),
        (recorded!("mariadb-dependency"), &["dependency", "fewer_workers"]),
        (busy(), &[]),
    ] {
        assert_eq!(found(&period), expected, "{}", verdict(&period));
    }
}

/// The state of PmaControl#150, here with its source: 64 workers, one of which has the transaction that the next one depends on.
#[test]
fn the_first_sentence_names_what_the_replica_waits_for() {
    let mut period = recorded!("mysql-dependency");
    let first = verdict(&period);
    for part in [
        "s behind",
        "waits for one that it depends on",
        "the row s.hot",
        "63 of 64 workers had no work",
        "more workers do not help",
    ] {
        assert!(first.contains(part), "{part}: {first}");
    }
    // Without the source the row is not known; the state is.
    period.source = None;
    let first = verdict(&period);
    assert!(first.contains("waits for one that it depends on") && !first.contains("s.hot"), "{first}");
    // A source that tags by commits: write sets help.
    period.version = (8, 0, 36);
    assert!(
        verdict(&period).contains("on the source: SET GLOBAL binlog_transaction_dependency_tracking=WRITESET"),
        "{}",
        verdict(&period)
    );
    let report = Report::new(&ChannelFacts::new(&period, "").unwrap(), LIMITS);
    assert!(report.applier.jain.is_some_and(|jain| jain < 0.1) && report.applier.workers.len() == 64);
}

/// The same state in MariaDB's conservative mode: every worker holds a transaction, and one of 64 can go on. Its Seconds_Behind is 0 when all is handed out.
#[test]
fn workers_that_wait_are_not_busy() {
    let mut period = recorded!("mariadb-dependency");
    for seconds in ["3", "0"] {
        column(&mut period, "Seconds_Behind_Master", seconds);
        let first = verdict(&period);
        for part in [
            "s behind",
            "waits for one that it depends on",
            "of 64 workers had nothing that they could begin",
            "more workers do not help",
        ] {
            assert!(first.contains(part), "{part}: {first}");
        }
        assert_eq!(found(&period), ["dependency", "fewer_workers"], "with {seconds}");
    }
    let report = Report::new(&ChannelFacts::new(&period, "").unwrap(), LIMITS);
    // The server says 0; what was received at the beginning of the period is not applied at its end.
    assert_eq!(report.behind.lag_from, "looks");
    assert!(report.behind.lag_seconds.is_some_and(|lag| lag >= period.seconds()), "{:?}", report.behind.lag_seconds);
    assert!(report.applier.busy_workers < 2.0 && report.applier.jain.is_some_and(|jain| jain < 0.2));
}

/// How long what waits takes is said beside the lag, and never as one.
#[test]
fn a_forecast_is_no_lag() {
    let mut period = recorded!("mariadb-dependency");
    column(&mut period, "Seconds_Behind_Master", "43");
    period.received = vec![
        ReceivedGtids {
            at_s: period.before.at_s - 100.0,
            channel: "other".to_owned(),
            gtids: "0-1-999999999".to_owned(),
        },
        ReceivedGtids { at_s: period.before.at_s - 9.0, channel: String::new(), gtids: String::new() },
    ];
    let report = |period: &Period| Report::new(&ChannelFacts::new(period, "").unwrap(), LIMITS);
    let behind = report(&period).behind;
    assert_eq!((behind.lag_seconds, behind.lag_from), (Some(43.0), "server"));
    assert!(behind.backlog_seconds.is_some_and(|seconds| seconds > 0.0), "{behind:?}");
    // What an earlier look saw received waits for longer than the server says.
    let waiting = ChannelFacts::new(&period, "").unwrap().before.received_gtids;
    period.received.push(ReceivedGtids { at_s: period.after.at_s - 60.0, channel: String::new(), gtids: waiting });
    let behind = report(&period).behind;
    assert_eq!((behind.lag_seconds.map(f64::round), behind.lag_from), (Some(60.0), "looks"));
}

/// A source that was restored from its own log: its transactions were committed a week ago for the first time, and by it just now.
#[test]
fn the_direct_sources_commit_counts() {
    let mut period = recorded!("mysql-dependency");
    let worker = |period: &mut Period, name: &str, value: &str| {
        for row in period.after.answers.get_mut(BY_WORKER).expect("workers") {
            if row.get("APPLYING_TRANSACTION").is_some_and(|gtid| !gtid.is_empty()) {
                row.insert(name.to_owned(), value.to_owned());
            }
        }
    };
    let now = period.after.first(CLOCK, "now").expect("a clock").to_owned();
    worker(&mut period, "APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP", "2020-01-01 00:00:00.000000");
    worker(&mut period, "APPLYING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP", &now);
    let behind = Report::new(&ChannelFacts::new(&period, "").unwrap(), LIMITS).behind;
    assert_eq!((behind.lag_seconds, behind.lag_from), (Some(0.0), "commit_times"));
}

/// A lag that grows is a warning however small, and the first line, the state and the code say the same.
#[test]
fn a_lag_that_grows_is_no_ok() {
    let mut period = recorded!("mysql-one-worker");
    column(&mut period, "Seconds_Behind_Source", "34");
    period.after.answers.remove(BY_WORKER);
    period.after.answers.remove(CONNECTION);
    let seen = ChannelFacts::new(&period, "").unwrap();
    let report = Report::new(&seen, LIMITS);
    let grows = trend::of(&seen).left == Forecast::Never;
    assert_eq!(report.severity == Severity::Warning, grows, "{}", report.verdict);
    assert_eq!(report.verdict.contains("falls further behind"), grows, "{}", report.verdict);
    let line = text::plugin_line(&[&report], report.severity, LIMITS);
    assert!(
        line.starts_with(if grows {
            "WARNING - The replica is 34 s behind"
        } else {
            "OK - The replica is 34 s behind"
        }),
        "{line}"
    );
    let (_, numbers) = line.split_once(" | ").expect("numbers");
    assert!(numbers.starts_with("'lag'=34.0s;60;600;0 ") && !line.contains('\n'), "{line}");
}

/// While a rescue has the replica nobody is told to start its applier.
#[test]
fn an_unfinished_rescue() {
    for stopped in [recorded!("mysql-stopped"), busy()] {
        let mut period = stopped;
        column(&mut period, "SQL_Delay", "2147483647");
        column(&mut period, "Last_SQL_Errno", "0");
        let said = finding(&period, "rescue_unfinished");
        assert_eq!((said.severity, found(&period)), (Severity::Critical, vec!["rescue_unfinished"]));
        let first = verdict(&period);
        assert!(
            first.contains("run it again, or with --abort") && first.contains("heddle rescue mysql://admin@"),
            "{first}"
        );
        assert!(!first.contains("START") && !first.contains("on purpose"), "{first}");
        rows(&mut period, RESCUER, &[("channel", ""), ("session", "17")]);
        let said = finding(&period, "rescue_unfinished");
        assert!(said.severity == Severity::Warning && said.statement.is_empty(), "{said:?}");
    }
}

/// Commits that wait for the disk in most of one worker's time: what was measured to give more comes first.
#[test]
fn what_gives_more_comes_first() {
    let mut period = recorded!("mysql-one-worker");
    states(
        &mut period,
        Role::Worker,
        &["waiting for handler commit", "waiting for handler commit", "waiting for handler commit", "Applying"],
    );
    for (name, value) in [("innodb_flush_log_at_trx_commit", 1), ("sync_binlog", 1)] {
        variable(&mut period, name, value);
    }
    assert_eq!(found(&period), ["durability", "more_workers"], "{}", verdict(&period));
    let workers = finding(&period, "more_workers");
    assert_eq!(workers.change.keep, "SET PERSIST replica_parallel_workers=16");
    // What is to be set back is not kept.
    assert_eq!(finding(&period, "durability").change.keep, "");
}

#[test]
fn threads_that_do_not_run() {
    let stopped = recorded!("mysql-stopped");
    let said = finding(&stopped, "stopped");
    assert_eq!(said.severity, Severity::Critical);
    assert!(said.cause.contains("1062") && said.cause.contains("repair it first"), "{}", said.cause);
    let mut period = busy();
    column(&mut period, "Replica_IO_Running", "No");
    assert!(finding(&period, "stopped").cause.contains("somebody stopped it"));
    column(&mut period, "Replica_IO_Running", "Connecting");
    assert!(!found(&period).contains(&"stopped"), "it is about to connect");
    column(&mut period, "Last_IO_Errno", "2003");
    column(&mut period, "Last_IO_Error", "error connecting to source");
    let said = finding(&period, "stopped");
    assert!(said.cause.contains("cannot connect") && said.statement.is_empty(), "{said:?}");
}

#[test]
fn the_commit_order_and_durability() {
    let mut period = busy();
    states(&mut period, Role::Worker, &["Waiting for preceding transaction to commit"]);
    let said = finding(&period, "commit_order");
    assert!(said.statement.contains("SET GLOBAL replica_preserve_commit_order=OFF") && said.share > 0.9, "{said:?}");
    assert!(!found(&period).contains(&"more_workers"), "who waits needs no help");
    states(&mut period, Role::Worker, &["waiting for handler commit"]);
    assert!(!found(&period).contains(&"durability"), "nothing is durable here");
    variable(&mut period, "innodb_flush_log_at_trx_commit", 1);
    let said = finding(&period, "durability");
    assert!(said.statement.contains("innodb_flush_log_at_trx_commit=2"), "{said:?}");
    states(&mut period, Role::Coordinator, &["Replica has read all relay log; waiting for more updates"]);
    assert_eq!(found(&period), [""; 0], "it keeps up");
}

#[test]
fn queues_and_the_coordinator() {
    let mut period = busy();
    states(&mut period, Role::Coordinator, &["Waiting for Replica Workers to free pending events"]);
    assert!(finding(&period, "queue_full").statement.contains("replica_pending_jobs_size_max="));
    states(&mut period, Role::Coordinator, &["Reading event from the relay log"]);
    assert!(finding(&period, "coordinator").cause.contains("one thread"));
}

#[test]
fn the_redo_log_and_the_buffer_pool() {
    let mut period = busy();
    variable(&mut period, "innodb_redo_log_capacity", 8 << 20);
    set(&mut period, COUNTERS, "Innodb_redo_log_logical_size", 0, 1 << 20);
    assert!(!found(&period).contains(&"redo_log"));
    set(&mut period, COUNTERS, "Innodb_redo_log_logical_size", 0, 7 << 20);
    assert_eq!(finding(&period, "redo_log").statement, format!("SET GLOBAL innodb_redo_log_capacity={}", 32 << 20));
    let mut period = busy();
    let now = period.after.first("clock", "now_s").unwrap().to_owned();
    rows(&mut period, NOTES, &[("code", "MY-013865"), ("logged_s", &now), ("data", "Redo log writer is waiting")]);
    assert_eq!(finding(&period, "redo_log").severity, Severity::Warning);

    let mut period = busy();
    set(&mut period, COUNTERS, "Innodb_buffer_pool_reads", 0, 5);
    assert!(!found(&period).contains(&"buffer_pool"));
    set(&mut period, COUNTERS, "Innodb_buffer_pool_reads", 0, 50_000);
    assert!(finding(&period, "buffer_pool").statement.starts_with("SET GLOBAL innodb_buffer_pool_size="));
}

#[test]
fn tables_without_a_key() {
    let mut period = busy();
    set(&mut period, COUNTERS, "Innodb_rows_read", 0, 1_000_000);
    set(&mut period, COUNTERS, "Innodb_rows_updated", 0, 100);
    set(&mut period, COUNTERS, "Innodb_rows_deleted", 0, 0);
    assert!(wants_keyless_tables(&period));
    assert!(!found(&period).contains(&"table_without_key"), "somebody reads, and every table has a key");
    rows(&mut period, KEYLESS, &[("table_schema", "shop"), ("table_name", "log"), ("table_rows", "10000")]);
    let said = finding(&period, "table_without_key");
    assert!(said.cause.contains("shop.log") && said.statement.starts_with("ALTER TABLE `shop`.`log`"), "{said:?}");
    set(&mut period, COUNTERS, "Innodb_rows_updated", 0, 1_000_000);
    assert!(!wants_keyless_tables(&period) && !found(&period).contains(&"table_without_key"));
}

#[test]
fn who_holds_the_lock() {
    let period = recorded!("mysql-blocked");
    let said = finding(&period, "blocked");
    assert!(said.statement.starts_with("KILL ") && said.evidence.iter().any(|line| line.contains("s.hot")), "{said:?}");
    // Between workers it is no session to end.
    let mut period = recorded!("mysql-blocked");
    let is_worker = |thread: &&crate::facts::period::Thread| thread.role == Role::Worker;
    let sessions: Vec<String> = period
        .samples
        .last()
        .expect("a sample")
        .threads
        .iter()
        .filter(is_worker)
        .map(|thread| thread.session.to_string())
        .collect();
    for row in period.after.answers.get_mut(LOCKS).expect("locks") {
        row.insert("holds".to_owned(), sessions.last().expect("a worker").clone());
    }
    assert!(!found(&period).contains(&"blocked"));
}

fn of_source(pseudo: f64, writeset: f64) -> SourceFacts {
    SourceFacts {
        server: SourceServer { version: (8, 0, 36), ..SourceServer::default() },
        transactions: 10_000,
        parallelism: Parallelism {
            amil: Some(f64::midpoint(pseudo, 1.0)),
            pseudo_group_size: Some(pseudo),
            pseudo_group_size_writeset: Some(writeset),
            ..Parallelism::default()
        },
        simulated: SimulatedSpeed {
            what_if: vec![Scenario { policy: "mysql-writeset".to_owned(), workers: 16, times: 3.5 }],
            heddle_times: Some(20.0),
            predictions_off: None,
        },
        ..SourceFacts::default()
    }
}

fn of_version(version: (u16, u16, u16), is_replica: bool) -> SourceFacts {
    SourceFacts { server: SourceServer { version, is_replica, ..SourceServer::default() }, ..of_source(1.2, 30.0) }
}

#[test]
fn what_the_source_could_do() {
    let mut period = busy();
    period.source = Some(of_source(1.2, 30.0));
    let said = finding(&period, "source_tags");
    assert!(said.statement.contains("WRITESET") && said.effect.contains("3.5 times"), "{said:?}");
    period.source = Some(of_source(1.2, 1.5));
    assert!(!found(&period).contains(&"source_tags"), "write sets give nothing");
    period.source = Some(of_version((5, 7, 20), false));
    assert!(finding(&period, "source_tags").statement.contains("binlog_group_commit_sync_delay"));
    period.source = Some(of_version((9, 7, 0), true));
    states(&mut period, Role::Coordinator, &["Waiting for dependent transaction to commit"]);
    assert!(!found(&period).contains(&"source_tags"));
    assert!(finding(&period, "intermediate").statement.contains("heddle serve"));
    period.source = Some(SourceFacts {
        hot: vec![HotRows { rows: "the row shop.orders id=17".to_owned(), share: 0.7 }],
        ..of_source(1.2, 1.5)
    });
    assert!(finding(&period, "hot_rows").cause.contains("shop.orders id=17"));
}

#[test]
fn the_receiver_and_the_delay() {
    let mut period = recorded!("mysql-workers-busy");
    states(&mut period, Role::Coordinator, &["Replica has read all relay log; waiting for more updates"]);
    states(&mut period, Role::Worker, &["Waiting for an event from Coordinator"]);
    assert_eq!(found(&period), [""; 0]);
    let (file, offset) = {
        let seen = ChannelFacts::new(&period, "").unwrap();
        let received = seen.status.received.clone().unwrap();
        (received.file.to_string(), received.offset)
    };
    period.source = Some(SourceFacts { logs: vec![(file, offset + (64 << 20))], ..SourceFacts::default() });
    let said = finding(&period, "receiver");
    assert!(said.statement.contains("zstd") && said.cause.contains("not the applier"), "{said:?}");
    period.source = None;
    column(&mut period, "SQL_Delay", "3600");
    let said = finding(&period, "delayed");
    assert_eq!((said.severity, said.cause.contains("on purpose")), (Severity::Ok, true));
}

#[test]
fn a_lag_that_grows_needs_a_rescue() {
    let mut period = busy();
    let low = Limits { warn_s: 1.0, critical_s: 600.0 };
    let rescue = |period: &Period| {
        let seen = ChannelFacts::new(period, "").unwrap();
        findings(&seen, low).into_iter().find(|finding| finding.rule == "rescue")
    };
    assert!(rescue(&period).is_none(), "it has caught up in seconds");
    // Far more comes than is applied.
    let row = period.after.answers.get_mut(STATUS).expect("a status").first_mut().expect("a channel");
    let uuid = row.get("Source_UUID").cloned().expect("a uuid");
    row.insert("Retrieved_Gtid_Set".to_owned(), format!("{uuid}:1-90000000"));
    period.source = Some(of_source(1.2, 30.0));
    let said = rescue(&period).expect("a finding");
    assert!(said.cause.contains("does not catch up") && said.statement.contains("heddle rescue"), "{said:?}");
}

/// Pages' places for the table.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/watch.md");
const BEGIN: &str = "<!-- rules -->\n";
const END: &str = "<!-- end of rules -->";

#[test]
fn the_page_has_every_rule() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("docs/watch.md has no place for the rules");
    let (_, after) = rest.split_once(END).expect("docs/watch.md has no end of the rules");
    let made = format!("{before}{BEGIN}| Rule | Looks at | Advises |\n|---|---|---|\n{}{END}{after}", table());
    if std::env::var_os("HEDDLE_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &made).unwrap();
    } else {
        assert!(page == made, "HEDDLE_WRITE_DOCS=1 cargo test -p heddle --bins the_page_has_every_rule writes it");
    }
    let mut names: Vec<_> = ALL.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len(), "a name twice");
}
