//! Where a channel is, for people.

use std::time::Duration;

use apply::standby::StandbyStatus;
use apply::status::{ChannelStatus, LastError, OpenWork, PendingWork, State};
use binlog::text::escape;

use crate::view::Facts;
use crate::view::verdict::verdict;
use crate::words;
use output::numbers::counted;

/// A process that waits says something each five seconds.
const SILENT_S: f64 = 20.0;

/// Whether the source was asked how far a channel is behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceQuery {
    No,
    Files,
    /// It is the source of other channels.
    Other(String),
}

fn in_flight(one: &OpenWork) -> String {
    let who = one.worker.map_or_else(|| "statements".to_owned(), |worker| format!("worker {worker}"));
    let doing = match (one.waits_for_lock, one.statement.as_str()) {
        (true, _) => words::WAITS_FOR_LOCK,
        (false, "") => words::WAITS_TO_COMMIT,
        (false, statement) => statement,
    };
    let seconds = one.seconds.map_or_else(String::new, |seconds| format!(", {seconds} s"));
    format!("{who} (connection {}): {doing}, {} rows{seconds}", one.connection, one.rows)
}

/// What it does.
fn doing(status: &ChannelStatus) -> &'static str {
    match status.state {
        State::Stopped => "not running",
        State::Failed => "not running: stopped with an error",
        State::Paused => "paused",
        State::Copying => "copying rows",
        State::WaitsForSource => "waiting for the source",
        State::Retrying => "trying again what failed on the target",
        State::WaitsForLock => "waiting for a lock on the target",
        State::Applying => "applying",
        State::Idle => "nothing to do",
    }
}

/// One line, for a list.
pub fn line(status: &ChannelStatus) -> String {
    let error = match (&status.last_error, status.state) {
        (Some(error), State::Failed) => format!(": {}", error.message),
        _ => status.retrying.as_ref().map_or_else(String::new, |again| format!(": {}", again.message)),
    };
    let at = words::position(status.source_position.as_deref());
    let waiting = match status.standbys.len() {
        0 => String::new(),
        count => format!(", {}", counted(count as u64, "standby")),
    };
    escape(&format!(
        "{}  {}, applied up to {at} (transaction {}){waiting}{error}",
        status.channel,
        doing(status),
        status.low_water
    ))
    .into_owned()
}

/// Why a channel stopped.
/// `state`: of the channel, now.
pub fn error(error: &LastError, now_us: u64, state: State) -> String {
    let is_running = !matches!(state, State::Stopped | State::Failed);
    let passed = match (error.passed, is_running) {
        (true, _) => ", passed: the channel has applied more since",
        (false, true) => ", started again since, nothing applied yet",
        (false, false) => "",
    };
    let ago = words::time(now_us.saturating_sub(error.time_us) as f64 / 1e6);
    let mut lines = vec![format!("  last error      {} ({ago} ago{passed}): {}", time(error.time_us), error.message)];
    if let Some(culprit) = &error.transaction {
        let gtid = if culprit.gtid.is_empty() { String::new() } else { format!("GTID {}, ", culprit.gtid) };
        lines.push(format!("  at              {gtid}{} (transaction {})", culprit.position, culprit.seq));
    }
    if !error.place.is_empty() {
        lines.push(format!("  where           {}", error.place));
    }
    if !error.remedy.is_empty() && passed.is_empty() {
        lines.push(format!("  what to do      {}", error.remedy));
    }
    lines.iter().map(|line| escape(line)).collect::<Vec<_>>().join("\n")
}

pub fn now_us() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_microsecond()).unwrap_or(0)
}

fn time(us: u64) -> String {
    let second = i64::try_from(us / 1_000_000).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    second.map_or_else(|| "at an unknown time".to_owned(), |time| time.to_string())
}

fn behind(lag: &PendingWork) -> String {
    let part = |known: Option<String>, unit: &str| {
        known.map_or_else(|| format!("unknown {unit}"), |known| format!("{known} {unit}"))
    };
    if lag.seconds == Some(0.0) && lag.transactions.is_none_or(|left| left == 0) {
        return "none: everything that the source has is applied".to_owned();
    }
    [
        part(lag.seconds.map(|seconds| format!("at most {seconds:.1}")), "s"),
        part(lag.transactions.map(|number| number.to_string()), "transactions"),
        part(lag.bytes.map(|bytes| bytes.to_string()), "bytes of the source's log"),
    ]
    .join(", ")
}

fn standby(one: &StandbyStatus) -> String {
    let received = match (&one.received_position, one.behind_bytes) {
        (None, _) => "nothing received yet".to_owned(),
        (Some(at), None) => format!("received up to {at}"),
        (Some(at), Some(bytes)) => format!("received up to {at}, {bytes} bytes behind the source"),
    };
    let obstacle = one.obstacle.as_ref().map_or_else(String::new, |why| format!("; does not take it: {why}"));
    let silent = if one.seen_seconds > SILENT_S {
        format!("; says nothing since {}", words::time(one.seen_seconds))
    } else {
        String::new()
    };
    format!("{}@{} since {}, {received}{silent}{obstacle}", one.pid, one.host, time(one.since_us))
}

/// `asked`: what came of asking the source, where there is no lag.
pub fn text(status: &ChannelStatus, asked: &SourceQuery) -> String {
    let owner = if status.running { format!(" ({})", status.owner) } else { String::new() };
    let mut lines = vec![format!("channel {}: {}{owner}", status.channel, doing(status))];
    // The same sentence as the dashboard's, as far as the target alone knows.
    if status.running {
        lines.push(format!("  {}", verdict(&Facts::of_status(status, now_us())).sentence));
    }
    if let Some(node) = &status.node {
        lines.push(format!("  node            {node}"));
    }
    if let Some(selection) = &status.selection {
        lines.push(format!("  selection       {selection}"));
    }
    lines.push(format!(
        "  applied up to   {} (transaction {})",
        words::position(status.source_position.as_deref()),
        status.low_water
    ));
    if !status.gtid_set.is_empty() {
        lines.push(format!("  GTIDs           {}", status.gtid_set.replace('\n', "")));
    }
    let lost = match (status.source_reached, status.source_lost_seconds) {
        (Some(false), seconds) => format!(": {}", words::lost(seconds.map(Duration::from_secs))),
        _ => String::new(),
    };
    lines.push(format!("  source          {}{lost}", status.source));
    if let (Some(idle), Some(delay)) = (status.last.idle_seconds, status.last.delay_seconds) {
        let ago = words::lag(Duration::from_secs_f64(idle.max(0.0)));
        lines.push(format!("  last applied    {ago} ago, {delay:.3} s after its commit on the source"));
    }
    match &status.lag {
        Some(lag) => lines.push(format!("  lag             {}", behind(lag))),
        None => lines.push(format!("  lag             {}", not_known(asked))),
    }
    if !status.islands.is_empty() {
        lines.push(format!("  above it        {}", ranges(&status.islands)));
        let how = if status.running { "" } else { " (the same command fills them, with --fill-gaps it ends then)" };
        lines.push(format!("  gaps            {}{how}", ranges(&status.gaps)));
    }
    for (at, one) in status.standbys.iter().enumerate() {
        lines.push(format!("  {:<15} {}", if at == 0 { "standby" } else { "" }, standby(one)));
    }
    if let Some(again) = &status.retrying {
        let said = words::retried(&again.message, again.tries, Duration::from_secs(again.seconds));
        lines.push(format!("  on the target   {said}"));
    }
    for (at, one) in status.in_flight.iter().flatten().enumerate() {
        lines.push(format!("  {:<15} {}", if at == 0 { "in flight" } else { "" }, in_flight(one)));
    }
    if status.running && status.in_flight.is_none() {
        lines.push(
            "  in flight       not visible here (on a server: the account lacks the PROCESS privilege)".to_owned(),
        );
    }
    if let Some(intent) = &status.intent {
        lines.push(format!("  under way       a statement that commits by itself: {intent}"));
    }
    // Names are others' text.
    let mut text = lines.iter().map(|line| escape(line)).collect::<Vec<_>>().join("\n");
    if let Some(last) = &status.last_error {
        text += "\n";
        text += &error(last, now_us(), status.state);
    }
    text
}

fn not_known(asked: &SourceQuery) -> String {
    match asked {
        SourceQuery::No => "name the source with --from to see it".to_owned(),
        SourceQuery::Files => "not known: --from names files, whose end does not move".to_owned(),
        SourceQuery::Other(server) => {
            format!("not known: --from names the server {server}, which does not feed this channel")
        }
    }
}

/// Ranges that are shown one by one.
const SHOWN: usize = 12;

fn ranges(all: &[(u64, u64)]) -> String {
    let one = |&(first, last): &(u64, u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    let mut text = all.iter().take(SHOWN).map(one).collect::<Vec<_>>().join(" ");
    if let (Some(more @ 1..), Some((_, last))) = (all.len().checked_sub(SHOWN), all.last()) {
        text += &format!(" … {more} more up to {last}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_has_passed_is_not_current() {
        let last = LastError {
            time_us: 1_000_000,
            kind: "Divergence".to_owned(),
            code: Some(1062),
            message: "Duplicate entry".to_owned(),
            place: String::new(),
            remedy: "repair the row".to_owned(),
            passed: false,
            transaction: None,
        };
        let now = error(&last, 121_000_000, State::Failed);
        assert!(
            now.contains("(2 min ago): Duplicate entry") && now.contains("what to do      repair the row"),
            "{now}"
        );
        let passed = error(&LastError { passed: true, ..last.clone() }, 121_000_000, State::Idle);
        assert!(passed.contains("(2 min ago, passed: the channel has applied more since)"), "{passed}");
        assert!(!passed.contains("what to do"), "{passed}");
        let again = error(&last, 121_000_000, State::Idle);
        assert!(again.contains("started again since") && !again.contains("what to do"), "{again}");
    }

    #[test]
    fn a_lag_that_is_not_known_says_why() {
        assert!(not_known(&SourceQuery::No).contains("--from to see it"));
        assert!(not_known(&SourceQuery::Other("uuid".to_owned())).contains("the server uuid, which does not feed"));
    }

    #[test]
    fn a_lag_of_nothing_is_none() {
        let check = |seconds, transactions, bytes, text: &str| {
            assert_eq!(behind(&PendingWork { seconds, transactions, bytes }), text);
        };
        check(Some(0.0), Some(0), Some(0), "none: everything that the source has is applied");
        check(Some(1.25), Some(7), Some(900), "at most 1.2 s, 7 transactions, 900 bytes of the source's log");
        check(Some(1.0), None, None, "at most 1.0 s, unknown transactions, unknown bytes of the source's log");
    }

    #[test]
    fn what_is_in_flight_is_named() {
        let one = OpenWork {
            worker: Some(3),
            connection: 17,
            seconds: Some(2),
            rows: 500,
            statement: "BINLOG".to_owned(),
            waits_for_lock: false,
        };
        assert_eq!(in_flight(&one), "worker 3 (connection 17): BINLOG, 500 rows, 2 s");
        let other = OpenWork { worker: None, statement: String::new(), seconds: None, ..one };
        assert_eq!(in_flight(&other), "statements (connection 17): waits for its turn to commit, 500 rows");
    }

    #[test]
    fn ranges_are_shown_up_to_a_number() {
        let many: Vec<(u64, u64)> = (1..20).map(|at| (at * 3, at * 3 + at % 2)).collect();
        assert!(ranges(&many).ends_with("36 … 7 more up to 58"), "{}", ranges(&many));
    }
}
