//! The sentence: what limits the channel now, how much, what would help, and when it will have caught up. Rules over facts, the most certain first; no rule
//! names a cause without evidence, and "unknown" is allowed.

use std::time::Duration;

use engine::quality::Forecast;
use serde::{Deserialize, Serialize};

use super::Facts;
use super::fact_values::{Absence, KnownLag};
use super::facts::place;
use super::lanes::{IDLE, Lane, WAITS_FOR_LOCK};
use crate::words::{self, capital, full_stop};
use output::numbers::counted;

/// Behind by less than this, a channel keeps up.
pub const KEEPS_UP_S: f64 = 2.0;
/// What a group does is worth a sentence when it takes longer.
const LONG_S: f64 = 1.0;
/// A part of the workers' time that limits.
const LIMITS: f64 = 0.3;
/// A commit that takes longer, with few rows, is slow by itself.
const SLOW_COMMIT_S: f64 = 0.05;
const FEW_ROWS: f64 = 500.0;
/// A row that is found by a key takes less.
const LONG_ROW_S: f64 = 0.002;
/// Where another process would stop for the same reason.
const OBSTACLE_REMEDY: &str =
    "mend it as heddle status says; then start a process of the channel, or heddle channel takeover";
/// So much that was received and not read says that reading is behind.
const UNREAD_BYTES: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    #[default]
    Ok,
    /// It is behind, and goes on.
    Behind,
    /// Somebody should look.
    Warning,
    /// It does not go on by itself.
    Stopped,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verdict {
    pub level: Level,
    /// One word, for programs.
    pub cause: String,
    /// Of the workers' time, 0 to 1.
    pub share: Option<f64>,
    /// For people.
    pub sentence: String,
    /// What would help; empty: nothing is to be done.
    pub remedy: String,
    pub seconds_left: Option<f64>,
    /// Microseconds since 1970.
    pub caught_up_at_us: Option<u64>,
}

pub fn verdict(facts: &Facts) -> Verdict {
    let mut verdict = standby(facts)
        .or_else(|| trouble(facts))
        .or_else(|| held_up(facts))
        .or_else(|| source_is_lost(facts))
        .or_else(|| down(facts))
        .or_else(|| searches(facts))
        .or_else(|| slow_commits(facts))
        .unwrap_or_else(|| keeps_up(facts).unwrap_or_else(|| limits(facts)));
    if let (KnownLag::Behind(lag), false) = (facts.lag, matches!(verdict.level, Level::Ok | Level::Stopped)) {
        if let Some(left) = facts.left.filter(|left| *left > 0) {
            verdict.sentence += &format!(" {} left.", counted(left, "transaction"));
        }
        match facts.forecast {
            Forecast::In(left) if lag >= KEEPS_UP_S => {
                let at = facts.clock_us + (left * 1e6) as u64;
                verdict.seconds_left = Some(left);
                verdict.caught_up_at_us = Some(at);
                verdict.sentence += &format!(
                    " At this rate it will have caught up in {}, at {} UTC.",
                    words::time(left),
                    words::clock(at)
                );
            }
            Forecast::Never if lag >= KEEPS_UP_S => {
                verdict.sentence += " At this rate it does not catch up: more comes than is applied.";
            }
            Forecast::In(_) | Forecast::Never | Forecast::CaughtUp | Forecast::Unknown => {}
        }
    }
    verdict
}

fn say(level: Level, cause: &str, sentence: String, remedy: &str) -> Verdict {
    Verdict { level, cause: cause.to_owned(), sentence, remedy: remedy.to_owned(), ..Verdict::default() }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Another process has the channel: what this one does is to receive.
fn standby(facts: &Facts) -> Option<Verdict> {
    let waiting = facts.standby.as_ref()?;
    let lost = facts.target_lost.as_ref().map(|lost| ("target", lost));
    let lost = lost.or(facts.source_lost.as_ref().map(|lost| ("source", lost)));
    if let Some((server, lost)) = lost {
        let sentence = format!("Standby: {}. The {server} {}.", waiting.said(), absent(facts, lost));
        return Some(say(Level::Warning, "standby", sentence, &format!("start the {server}, or mend the network")));
    }
    Some(match &waiting.obstacle {
        None => say(Level::Ok, "standby", format!("Standby: {}.", waiting.said()), ""),
        Some(why) => say(Level::Warning, "standby", format!("Standby: {}.", full_stop(why)), OBSTACLE_REMEDY),
    })
}

/// It does not go on: an error, an operator, the target.
fn trouble(facts: &Facts) -> Option<Verdict> {
    if let Some(stopped) = &facts.stopped {
        let at = if stopped.place.is_empty() { String::new() } else { format!(" at {}", stopped.place) };
        let cause = if stopped.kind.eq_ignore_ascii_case("divergence") { "divergence" } else { "error" };
        let what = if cause == "divergence" { "Stopped: source and target differ" } else { "Stopped with an error" };
        return Some(say(
            Level::Stopped,
            cause,
            format!("{what}{at}: {}.", full_stop(&stopped.message)),
            &stopped.remedy,
        ));
    }
    if facts.paused {
        let wait =
            if facts.outstanding > 0 { format!("; {} transactions wait", facts.outstanding) } else { String::new() };
        let remedy = format!("heddle channel resume {} --to TARGET, or SIGUSR2", facts.channel);
        return Some(say(Level::Warning, "paused", format!("Paused by an operator{wait}."), &remedy));
    }
    if let Some(lost) = &facts.target_lost {
        let sentence = format!("The target {}.", absent(facts, lost));
        return Some(say(Level::Warning, "target_lost", sentence, "start the target, or mend the network"));
    }
    if let Some((message, tries, since)) = &facts.retried {
        let said = words::retried(message, *tries, *since);
        return Some(say(
            Level::Warning,
            "retry",
            format!("{}.", capital(full_stop(&said))),
            "see the error; Heddle goes on by itself once the target takes it",
        ));
    }
    None
}

/// The first group in the log's order is held up: a lock, a DDL, a table without a key.
fn held_up(facts: &Facts) -> Option<Verdict> {
    let first = facts
        .lanes
        .iter()
        .filter(|lane| lane.is_first && !lane.state.is_empty())
        .max_by(|a, b| a.group.age_s.total_cmp(&b.group.age_s));
    let first = first.filter(|lane| lane.group.age_s >= LONG_S)?;
    let at = place(&first.group.gtid, &first.group.position);
    let of = if at.is_empty() { String::new() } else { format!(" ({at})") };
    lock(facts, first, &of).or_else(|| ddl(facts, first, &of)).or_else(|| keyless(facts, first, &of))
}

fn lock(facts: &Facts, first: &Lane, of: &str) -> Option<Verdict> {
    let waits = |holder: &&channel::snapshot::LockHolder| {
        !holder.is_own && (holder.worker == Some(first.worker) || holder.worker.is_none())
    };
    let mut holders: Vec<_> = facts.holders.iter().filter(waits).collect();
    // Who does nothing with it is to blame before who works.
    holders.sort_by_key(|holder| (holder.session == 0, !holder.statement.is_empty()));
    let holder = holders.first()?;
    let table = if first.group.subject.is_empty() { String::new() } else { format!(" for {}", first.group.subject) };
    let (who, remedy) = if holder.session == 0 {
        ("another session holds".to_owned(), "see SHOW FULL PROCESSLIST on the target for who holds it".to_owned())
    } else {
        let does = if holder.statement.is_empty() {
            format!("idle in a transaction for {}", words::time(holder.seconds as f64))
        } else {
            format!("runs {}", holder.statement)
        };
        let who = format!("session {} of the target holds ({}, {does})", holder.session, holder.account);
        (who, format!("end that transaction: KILL {} on the target", holder.session))
    };
    let share = if facts.shares.lock > 0.0 {
        format!("; {} of the workers' time waits for locks", percent(facts.shares.lock))
    } else {
        String::new()
    };
    let sentence = format!(
        "Worker {}{of} waits {}{table} for a lock that {who}{share}; more workers do not help.",
        first.worker,
        words::time(first.group.age_s)
    );
    let share = Some(facts.shares.lock).filter(|share| *share > 0.0);
    Some(Verdict { share, ..say(Level::Warning, "target_lock", sentence, &remedy) })
}

fn ddl(facts: &Facts, first: &Lane, of: &str) -> Option<Verdict> {
    let barrier = first.group.barrier.as_deref()?;
    if first.state == WAITS_FOR_LOCK {
        return None;
    }
    let what = if first.group.subject.is_empty() { barrier.replace('_', " ") } else { first.group.subject.clone() };
    let rest = (1.0 - facts.shares.applying).clamp(0.0, 1.0);
    let sentence = format!(
        "{what}{of} runs alone for {}: nothing runs beside it ({}), and the other workers wait; more workers do not help.",
        words::time(first.group.age_s),
        barrier.replace('_', " ")
    );
    let remedy = match barrier {
        "ddl" => "it ends by itself; for large tables use an online schema change tool (docs/schema-change-tools.md)",
        "huge" => "it ends by itself; smaller transactions on the source run in parallel",
        "statement" => "binlog_format=ROW on the source lets it run in parallel",
        _ => "it ends by itself",
    };
    let cause = if barrier == "ddl" { "ddl" } else { "barrier" };
    Some(Verdict { share: Some(rest), ..say(Level::Behind, cause, sentence, remedy) })
}

fn keyless(facts: &Facts, first: &Lane, of: &str) -> Option<Verdict> {
    let table = first.group.keyless.as_ref()?;
    let sentence = format!(
        "{table} has neither a primary nor a unique key: the target searches the table for each row of {} rows{of}, for {} so far, one transaction after the other.",
        first.group.rows,
        words::time(first.group.age_s)
    );
    let remedy = format!("give {table} a primary key");
    Some(Verdict { share: Some(facts.shares.applying), ..say(Level::Behind, "no_key", sentence, &remedy) })
}

fn source_is_lost(facts: &Facts) -> Option<Verdict> {
    let lost = facts.source_lost.as_ref()?;
    let left = if facts.outstanding > 0 {
        format!("{} received transactions are still to be applied", facts.outstanding)
    } else {
        "all that was received is applied".to_owned()
    };
    let sentence = format!("The source {}; {left}. What it has written since is not known here.", absent(facts, lost));
    Some(say(
        Level::Warning,
        "source_lost",
        sentence,
        "start the source, or mend the network; Heddle goes on by itself",
    ))
}

/// Since when a server is absent, with what error, and when Heddle tries again.
fn absent(facts: &Facts, lost: &Absence) -> String {
    let since = lost.time.map_or_else(String::new, |time| {
        let began = facts.clock_us.saturating_sub(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        format!(" since {} UTC ({})", words::clock_with_seconds(began), words::time(time.as_secs_f64()))
    });
    let why = if lost.why.is_empty() { String::new() } else { format!(": {}", full_stop(&lost.why)) };
    let next = lost.next_try.map_or_else(
        || "Heddle tries again".to_owned(),
        |next| format!("next try in {}", words::time(next.as_secs_f64())),
    );
    format!("can not be reached{since}{why}; {next}")
}

fn down(facts: &Facts) -> Option<Verdict> {
    facts.is_down.then(|| say(Level::Stopped, "not_running", "Not running.".to_owned(), "start its command again"))
}

/// It is behind, and the target searches a table for each row: many short groups, in place of one long one. How much of a group's time its commit takes is not known.
fn searches(facts: &Facts) -> Option<Verdict> {
    let lag = match facts.lag {
        KnownLag::Behind(lag) if lag >= KEEPS_UP_S => words::lag(Duration::from_secs_f64(lag)),
        _ => return None,
    };
    let busy = facts.shares.busy();
    let running = facts.lanes.iter().filter(|lane| !lane.state.is_empty() && lane.state != IDLE);
    let (keyless, others): (Vec<&Lane>, Vec<&Lane>) = running.partition(|lane| lane.group.keyless.is_some());
    let table = keyless.first().filter(|_| keyless.len() >= others.len())?.group.keyless.as_ref()?;
    let groups = facts.rate / facts.commits.transactions.max(1.0);
    let row_s = busy * facts.lanes.len() as f64 / (groups * facts.commits.rows.max(1.0)).max(1e-9);
    (busy >= LIMITS && row_s >= LONG_ROW_S).then(|| {
        let sentence = format!(
            "{lag} behind: {table} has neither a primary nor a unique key: the target searches the table for each row. With the commits a row takes {:.0} ms, in {} of the workers' time.",
            row_s * 1e3,
            percent(busy)
        );
        behind("no_key", busy, capital(&sentence), &format!("give {table} a primary key"))
    })
}

/// Few rows, and each commit takes long: the disk, or the network, of the target.
fn slow_commits(facts: &Facts) -> Option<Verdict> {
    let commits = facts.commits;
    let is_slow = commits.groups >= 2 && commits.seconds >= SLOW_COMMIT_S && commits.rows <= FEW_ROWS;
    if !is_slow || facts.shares.busy() < LIMITS {
        return None;
    }
    let lag = match facts.lag {
        KnownLag::Behind(lag) if lag >= KEEPS_UP_S => format!("{} behind: ", words::lag(Duration::from_secs_f64(lag))),
        _ => String::new(),
    };
    let sentence = capital(&format!(
        "{lag}each commit on the target takes {:.0} ms for {:.0} rows: its disk, or the network, is slow; {} of the workers' time goes there.",
        commits.seconds * 1e3,
        commits.rows,
        percent(facts.shares.busy())
    ));
    let remedy = "a faster disk for the target's logs, or less durability there (innodb_flush_log_at_trx_commit=2, sync_binlog=0: an outage of the machine then loses commits)";
    let level = if lag.is_empty() { Level::Ok } else { Level::Behind };
    Some(Verdict { share: Some(facts.shares.busy()), ..say(level, "slow_commit", sentence, remedy) })
}

fn keeps_up(facts: &Facts) -> Option<Verdict> {
    match facts.lag {
        KnownLag::Behind(lag) if lag >= KEEPS_UP_S => return None,
        KnownLag::Unknown if facts.outstanding > 0 || facts.rate > 0.0 => return None,
        KnownLag::Unknown if !facts.lanes.is_empty() && facts.lanes.iter().any(|lane| !lane.group.gtid.is_empty()) => {
            return None;
        }
        KnownLag::Unknown if facts.is_starting => {
            let sentence = "Starting: connecting to both ends, and reading where the channel is.".to_owned();
            return Some(say(Level::Ok, "starting", sentence, ""));
        }
        KnownLag::Unknown => {
            return Some(say(Level::Ok, "idle", "Nothing to do: nothing was received yet.".to_owned(), ""));
        }
        KnownLag::Behind(_) | KnownLag::CaughtUp => {}
    }
    if facts.rate <= 0.0 && facts.lag == KnownLag::CaughtUp {
        return Some(say(
            Level::Ok,
            "idle",
            "Nothing to do: everything that the source has sent is applied.".to_owned(),
            "",
        ));
    }
    let lag = match facts.lag {
        KnownLag::Behind(lag) => format!("{lag:.1} s behind"),
        _ => "caught up".to_owned(),
    };
    let sentence = format!(
        "Keeps up: {lag}, {:.0} transactions/s, the workers are busy {} of the time.",
        facts.rate,
        percent(facts.shares.busy())
    );
    Some(say(Level::Ok, "keeps_up", sentence, ""))
}

/// It is behind: where does the workers' time go?
fn limits(facts: &Facts) -> Verdict {
    let fed = || if facts.shares.no_work >= 0.5 { not_fed(facts) } else { None };
    let of = waits(facts).or_else(fed).or_else(|| applying(facts)).or_else(|| largest(facts));
    let mut verdict = of.unwrap_or_else(|| {
        let sentence = format!("what limits is not known ({:.0} transactions/s).", facts.rate);
        behind("unknown", 0.0, sentence, "heddle inspect looks into the log")
    });
    let lag = match facts.lag {
        KnownLag::Behind(lag) => format!("{} behind: ", words::lag(Duration::from_secs_f64(lag))),
        _ => String::new(),
    };
    verdict.sentence = capital(&format!("{lag}{}", verdict.sentence));
    verdict
}

/// No part is large enough to limit by itself: the largest ones, with what would make the first of them smaller.
fn largest(facts: &Facts) -> Option<Verdict> {
    const WORTH_SAYING: f64 = 0.05;
    let shares = &facts.shares;
    let mut parts = [
        (shares.applying, "target", "goes to the target", "the target's processors or disk: look there"),
        (
            shares.commit_order,
            "commit_order",
            "waits for the turn to commit",
            "fewer --workers, or --commit-order relaxed",
        ),
        (
            shares.dependency,
            "dependency",
            "waits for earlier transactions that change the same rows",
            "heddle inspect names the rows and tables",
        ),
        (shares.lock, "lock", "waits for locks of other sessions", "see SHOW FULL PROCESSLIST on the target"),
        (shares.retry, "retry", "tries again what has failed", "heddle status names the error"),
        (shares.barrier, "barrier", "waits beside transactions that run alone", "see the barriers by cause"),
        (shares.memory, "memory", "has nothing to do because reading waits for memory", "a larger --memory"),
        (
            shares.gathering,
            "commit_order",
            "waits while earlier transactions commit",
            "--grouping auto commits many together",
        ),
        (shares.no_work, "no_work", "has nothing to do", "see the stages: what comes later than the stage before"),
    ];
    parts.sort_by(|one, other| other.0.total_cmp(&one.0));
    let (share, cause, _, remedy) = *parts.first().filter(|part| part.0 > 0.0)?;
    let of = parts.iter().filter(|part| part.0 >= WORTH_SAYING).take(3);
    let list: Vec<String> = of.map(|(share, _, words, _)| format!("{} {words}", percent(*share))).collect();
    let hot = facts.hot.as_ref().filter(|hot| hot.share >= 0.2);
    let row = hot.map_or_else(String::new, |hot| {
        format!("; {} of the transactions wait for one row: {}", percent(hot.share), hot.row)
    });
    let sentence = format!("nothing limits alone; of the workers' time {}{row}.", list.join(", "));
    Some(behind(cause, share, sentence, remedy))
}

fn behind(cause: &str, share: f64, sentence: String, remedy: &str) -> Verdict {
    Verdict { share: Some(share), ..say(Level::Behind, cause, sentence, remedy) }
}

/// The workers wait for something.
fn waits(facts: &Facts) -> Option<Verdict> {
    let shares = &facts.shares;
    // Where each commits in its turn, what comes next gathers meanwhile.
    let waits = shares.dependency + shares.commit_order + shares.gathering;
    let row = facts.hot.as_ref().filter(|hot| hot.share >= 0.2 && waits >= LIMITS);
    if let Some(hot) = row {
        let sentence = format!(
            "{} of the workers' time waits, and {} of the transactions wait for one row: {}; more workers do not help.",
            percent(waits),
            percent(hot.share),
            hot.row
        );
        let remedy = "spread or batch the changes of that row on the source; with --grouping auto they are merged";
        return Some(behind("hot_row", waits, sentence, remedy));
    }
    if shares.memory >= LIMITS {
        let sentence = format!(
            "{} of the workers' time has nothing to do because reading waits for memory ({} MiB are full).",
            percent(shares.memory),
            facts.memory_max_bytes >> 20
        );
        return Some(behind("memory", shares.memory, sentence, "a larger --memory"));
    }
    if shares.dependency >= LIMITS {
        let sentence = format!(
            "{} of the workers' time waits for earlier transactions that change the same rows ({} of the transactions do); more workers do not help.",
            percent(shares.dependency),
            percent(facts.waiting_share)
        );
        return Some(behind("dependency", shares.dependency, sentence, "heddle inspect names the rows and tables"));
    }
    if shares.barrier >= LIMITS {
        let sentence =
            format!("{} of the workers' time waits beside transactions that run alone.", percent(shares.barrier));
        let remedy =
            "see the barriers by cause: statements need binlog_format=ROW, large tables an online schema change tool";
        return Some(behind("barrier", shares.barrier, sentence, remedy));
    }
    if shares.gathering >= LIMITS {
        let sentence = format!(
            "{} of the workers' time waits while earlier transactions commit, in the source's order; more workers do not help.",
            percent(shares.gathering)
        );
        let remedy = "--grouping auto commits many together; --commit-order relaxed, if readers of the target may see transactions out of order";
        return Some(behind("commit_order", shares.gathering, sentence, remedy));
    }
    (shares.commit_order >= LIMITS).then(|| {
        let sentence = format!("{} of the workers' time waits for the turn to commit.", percent(shares.commit_order));
        let remedy = "--commit-order relaxed, if readers of the target may see transactions out of order";
        behind("commit_order", shares.commit_order, sentence, remedy)
    })
}

fn applying(facts: &Facts) -> Option<Verdict> {
    let share = Some(facts.shares.applying).filter(|share| *share >= LIMITS)?;
    let sentence = format!(
        "the target executes {} of the workers' time ({:.0} rows in each of {:.0} groups/s of {} workers).",
        percent(share),
        facts.commits.rows,
        facts.rate / facts.commits.transactions.max(1.0),
        facts.lanes.len()
    );
    let remedy = if facts.shares.busy() > 0.9 {
        "more --workers, while the target's processors and disk have room"
    } else {
        "the target's processors or disk: look there"
    };
    Some(behind("target", share, sentence, remedy))
}

/// The workers have nothing to do although the channel is behind.
fn not_fed(facts: &Facts) -> Option<Verdict> {
    let share = facts.shares.no_work;
    if facts.unread_bytes >= UNREAD_BYTES {
        let sentence = format!(
            "reading limits: {} of the workers' time has nothing to do, and {} MiB of the relay log are not read.",
            percent(share),
            facts.unread_bytes >> 20
        );
        return Some(behind("reading", share, sentence, "a faster processor for heddle: one thread reads"));
    }
    (facts.received_lag_s >= KEEPS_UP_S).then(|| {
        let sentence = format!(
            "the receiver limits: what comes from the source is {} old, and {} of the workers' time has nothing to do.",
            words::time(facts.received_lag_s),
            percent(share)
        );
        behind("receiver", share, sentence, "the network from the source, or the source's own load")
    })
}
