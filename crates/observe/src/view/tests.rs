//! The sentence in every state: as facts say it.

use std::time::Duration;

use channel::snapshot::{HotRow, LockHolder};
use engine::quality::Forecast;

use super::Facts;
use super::fact_values::{Absence, Commits, KnownLag, StandbyFacts, StopCause};
use super::lanes::{APPLYING, Lane, LaneGroup, RUNS_ALONE, WAITS_FOR_LOCK};
use super::shares::Shares;
use super::verdict::{Level, verdict};

fn facts() -> Facts {
    Facts { channel: "orders".to_owned(), lag: KnownLag::CaughtUp, clock_us: 1_700_000_000_000_000, ..Facts::default() }
}

fn behind(lag_s: f64) -> Facts {
    Facts {
        lag: KnownLag::Behind(lag_s),
        rate: 500.0,
        forecast: Forecast::In(15.0),
        lanes: vec![Lane::default(); 4],
        ..facts()
    }
}

fn first(state: &str) -> Lane {
    Lane {
        worker: 2,
        state: state.to_owned(),
        is_first: true,
        group: LaneGroup {
            gtid: "0-1-17".to_owned(),
            position: "b.000001:400".to_owned(),
            age_s: 12.0,
            subject: "shop.orders".to_owned(),
            ..LaneGroup::default()
        },
        ..Lane::default()
    }
}

fn lost(seconds: u64, why: &str, next_try: Option<u64>) -> Absence {
    let (time, next_try) = (Some(Duration::from_secs(seconds)), next_try.map(Duration::from_secs));
    Absence { time, why: why.to_owned(), next_try }
}

/// Level, cause, and what the sentence has.
fn check(facts: Facts, level: Level, cause: &str, parts: &[&str]) {
    let verdict = verdict(&facts);
    assert_eq!((verdict.level, verdict.cause.as_str()), (level, cause), "{verdict:?}");
    for part in parts {
        assert!(verdict.sentence.contains(part) || verdict.remedy.contains(part), "{part}: {verdict:?}");
    }
}

#[test]
fn nothing_to_do_and_keeping_up() {
    check(facts(), Level::Ok, "idle", &["everything that the source has sent is applied"]);
    let starting = Facts { is_starting: true, lag: KnownLag::Unknown, ..facts() };
    check(starting, Level::Ok, "starting", &["connecting to both ends"]);
    check(Facts { lag: KnownLag::Unknown, ..facts() }, Level::Ok, "idle", &["nothing was received yet"]);
    let shares = Shares { applying: 0.1, no_work: 0.9, ..Shares::default() };
    check(Facts { rate: 120.0, shares, ..facts() }, Level::Ok, "keeps_up", &["caught up, 120 transactions/s", "10 %"]);
    check(Facts { shares, ..behind(0.4) }, Level::Ok, "keeps_up", &["0.4 s behind"]);
}

#[test]
fn who_waits_for_a_channel() {
    let waiting = StandbyFacts {
        owner: "7@a".to_owned(),
        obstacle: None,
        received: "b.000001:400".to_owned(),
        behind_bytes: Some(12),
    };
    let of = |waiting: StandbyFacts| Facts { standby: Some(waiting), is_starting: true, ..facts() };
    let said = ["7@a has the channel", "received up to b.000001:400, 12 bytes behind the source"];
    check(of(waiting.clone()), Level::Ok, "standby", &said);
    let new = StandbyFacts { received: String::new(), behind_bytes: None, ..waiting.clone() };
    check(of(new), Level::Ok, "standby", &["nothing received yet"]);
    let blocked =
        StandbyFacts { obstacle: Some("the channel has stopped with an error".to_owned()), ..waiting.clone() };
    check(of(blocked), Level::Warning, "standby", &["has stopped with an error", "heddle channel takeover"]);
    let deaf = Facts { source_lost: Some(lost(3, "refused", None)), ..of(waiting) };
    check(deaf, Level::Warning, "standby", &["Standby: 7@a has", "The source can not be reached"]);
}

#[test]
fn what_stops_it() {
    let stopped = StopCause {
        kind: "Divergence".to_owned(),
        message: "Duplicate entry '7'".to_owned(),
        place: "GTID 0-1-9, b.000001:4".to_owned(),
        remedy: "repair the row".to_owned(),
    };
    check(
        Facts { stopped: Some(stopped), ..behind(50.0) },
        Level::Stopped,
        "divergence",
        &["source and target differ at GTID 0-1-9", "Duplicate entry", "repair the row"],
    );
    check(
        Facts { paused: true, outstanding: 7, ..facts() },
        Level::Warning,
        "paused",
        &["7 transactions wait", "channel resume orders"],
    );
    check(
        Facts { target_lost: Some(lost(9, "Connection refused", Some(2))), ..facts() },
        Level::Warning,
        "target_lost",
        &["The target can not be reached since 22:13:11 UTC (9 s): Connection refused; next try in 2 s."],
    );
    let retried = Some(("the table is full".to_owned(), 3, Duration::from_secs(5)));
    check(
        Facts { retried, ..behind(5.0) },
        Level::Warning,
        "retry",
        &["Trying again (3 failures in 5 s): the table is full."],
    );
    check(Facts { is_down: true, ..facts() }, Level::Stopped, "not_running", &["Not running"]);
    check(
        Facts { source_lost: Some(lost(4, "", None)), ..facts() },
        Level::Warning,
        "source_lost",
        &["source can not be reached since 22:13:16 UTC (4 s); Heddle tries again; all that was received is applied"],
    );
}

#[test]
fn a_lock_names_its_holder() {
    let holder = LockHolder {
        worker: Some(2),
        session: 4711,
        account: "app@db1".to_owned(),
        seconds: 40,
        ..LockHolder::default()
    };
    let lanes = vec![first(WAITS_FOR_LOCK)];
    let held = Facts { lanes: lanes.clone(), holders: vec![holder.clone()], ..behind(12.0) };
    check(
        held,
        Level::Warning,
        "target_lock",
        &[
            "GTID 0-1-17",
            "shop.orders",
            "session 4711 of the target holds (app@db1, idle in a transaction for 40 s)",
            "KILL 4711",
        ],
    );
    let unknown = LockHolder { session: 0, ..holder.clone() };
    check(
        Facts { lanes: lanes.clone(), holders: vec![unknown], ..behind(12.0) },
        Level::Warning,
        "target_lock",
        &["another session", "PROCESSLIST"],
    );
    // Groups of the channel's own wait for each other all the time.
    let own = LockHolder { is_own: true, ..holder };
    assert_ne!(verdict(&Facts { lanes, holders: vec![own], ..behind(12.0) }).cause, "target_lock");
}

#[test]
fn what_runs_alone_and_what_has_no_key() {
    let alone =
        LaneGroup { barrier: Some("ddl".to_owned()), subject: "ALTER TABLE t ADD x INT".to_owned(), ..first("").group };
    let alone = Lane { group: alone, ..first(RUNS_ALONE) };
    check(
        Facts { lanes: vec![alone], ..behind(12.0) },
        Level::Behind,
        "ddl",
        &["ALTER TABLE t ADD x INT (GTID 0-1-17, b.000001:400) runs alone for 12 s"],
    );
    let keyless = LaneGroup { keyless: Some("shop.log".to_owned()), rows: 900, ..first("").group };
    let keyless = Lane { group: keyless, ..first(APPLYING) };
    check(
        Facts { lanes: vec![keyless], ..behind(12.0) },
        Level::Behind,
        "no_key",
        &["shop.log has neither", "900 rows", "primary key"],
    );
}

#[test]
fn what_limits_when_it_is_behind() {
    let of = |shares: Shares| Facts { shares, ..behind(30.0) };
    let hot = Some(HotRow { row: "update of shop.orders key (id=17)".to_owned(), share: 0.9 });
    let waits = Shares { applying: 0.2, dependency: 0.5, commit_order: 0.3, ..Shares::default() };
    check(
        Facts { hot: hot.clone(), ..of(waits) },
        Level::Behind,
        "hot_row",
        &[
            "80 %",
            "90 % of the transactions wait for one row: update of shop.orders key (id=17)",
            "more workers do not help",
        ],
    );
    check(of(Shares { dependency: 0.6, applying: 0.4, ..Shares::default() }), Level::Behind, "dependency", &["60 %"]);
    check(
        of(Shares { commit_order: 0.6, applying: 0.4, ..Shares::default() }),
        Level::Behind,
        "commit_order",
        &["--commit-order relaxed"],
    );
    let in_turn = Shares { gathering: 0.76, applying: 0.24, ..Shares::default() };
    check(
        of(in_turn),
        Level::Behind,
        "commit_order",
        &["76 %", "while earlier transactions commit", "--grouping auto"],
    );
    check(Facts { hot: hot.clone(), ..of(in_turn) }, Level::Behind, "hot_row", &["key (id=17)", "--grouping auto"]);
    check(of(Shares { barrier: 0.6, applying: 0.4, ..Shares::default() }), Level::Behind, "barrier", &["run alone"]);
    check(of(Shares { memory: 0.6, applying: 0.4, ..Shares::default() }), Level::Behind, "memory", &["--memory"]);
    check(
        of(Shares { applying: 0.97, no_work: 0.03, ..Shares::default() }),
        Level::Behind,
        "target",
        &["97 %", "more --workers", "it will have caught up in 15 s, at 22:13 UTC"],
    );
    let idle = Shares { no_work: 0.9, applying: 0.1, ..Shares::default() };
    check(Facts { unread_bytes: 50 << 20, ..of(idle) }, Level::Behind, "reading", &["50 MiB of the relay log"]);
    check(Facts { received_lag_s: 20.0, ..of(idle) }, Level::Behind, "receiver", &["20 s old"]);
    // Short groups, each of which searches a table without a key; and the same where a row takes no time.
    let keyless = LaneGroup { keyless: Some("shop.log".to_owned()), rows: 1, ..LaneGroup::default() };
    let keyless = Lane { group: keyless, state: APPLYING.to_owned(), ..Lane::default() };
    for (rate, cause, part) in [(100.0, "no_key", "a row takes 10 ms"), (1000.0, "target", "100 %")] {
        let commits = Commits { groups: 100, seconds: 0.9 / rate, rows: 1.0, transactions: 1.0 };
        let shares = Shares { applying: 1.0, ..Shares::default() };
        let lanes = vec![keyless.clone()];
        check(Facts { rate, lanes, commits, ..of(shares) }, Level::Behind, cause, &[part]);
    }
    // A hot row that nobody waits for is no cause. The largest part is named, and without any there is no cause.
    check(
        Facts { hot: hot.clone(), ..of(idle) },
        Level::Behind,
        "no_work",
        &["90 % has nothing to do, 10 % goes to the target"],
    );
    let never = Facts { forecast: Forecast::Never, left: Some(1234), ..of(idle) };
    check(never, Level::Behind, "no_work", &["1,234 transactions left. At this rate it does not catch up"]);
    let unknown = verdict(&Facts { forecast: Forecast::Unknown, ..of(idle) });
    assert!(!unknown.sentence.contains("at this rate") && unknown.seconds_left.is_none(), "{unknown:?}");
    let many = Shares { dependency: 0.28, commit_order: 0.27, applying: 0.25, no_work: 0.2, ..Shares::default() };
    let row = "90 % of the transactions wait for one row";
    check(Facts { hot, ..of(many) }, Level::Behind, "hot_row", &[row]);
    check(
        of(many),
        Level::Behind,
        "dependency",
        &["nothing limits alone", "28 % waits for earlier", "27 % waits for the turn"],
    );
    check(of(Shares::default()), Level::Behind, "unknown", &["not known"]);
}

#[test]
fn slow_commits_are_named_while_it_keeps_up_too() {
    let commits = Commits { groups: 10, seconds: 0.2, rows: 3.0, transactions: 3.0 };
    let shares = Shares { applying: 0.9, no_work: 0.1, ..Shares::default() };
    check(
        Facts { shares, commits, rate: 20.0, ..facts() },
        Level::Ok,
        "slow_commit",
        &["Each commit on the target takes 200 ms for 3 rows"],
    );
    check(Facts { shares, commits, ..behind(9.0) }, Level::Behind, "slow_commit", &["9.0 s behind: each commit"]);
    let large = Commits { rows: 9000.0, ..commits };
    check(Facts { commits: large, shares, ..behind(9.0) }, Level::Behind, "target", &[]);
}
