//! Where a channel is, for people.

use std::time::Duration;

use apply::status::{ChannelStatus, InFlight};
use binlog::text::escape;

use super::words;

fn in_flight(one: &InFlight) -> String {
    let who = one.worker.map_or_else(|| "statements".to_owned(), |worker| format!("worker {worker}"));
    let doing = match (one.waits_for_lock, one.statement.as_str()) {
        (true, _) => words::WAITS_FOR_LOCK,
        (false, "") => words::WAITS_TO_COMMIT,
        (false, statement) => statement,
    };
    let seconds = one.seconds.map_or_else(String::new, |seconds| format!(", {seconds} s"));
    format!("{who} (connection {}): {doing}, {} rows{seconds}", one.connection, one.rows)
}

pub fn text(status: &ChannelStatus) -> String {
    let mut lines = vec![format!(
        "channel {}: {}",
        status.channel,
        if status.running { format!("running ({})", status.owner) } else { "not running".to_owned() }
    )];
    lines.push(format!(
        "  applied up to   {} (transaction {})",
        words::position(status.source_position.as_deref()),
        status.low_water
    ));
    if !status.gtid_set.is_empty() {
        lines.push(format!("  GTIDs           {}", status.gtid_set.replace('\n', "")));
    }
    let lost = match (status.source_reached, status.source_lost_seconds) {
        (Some(false), seconds) => format!(": {}", words::source_lost(seconds.map(Duration::from_secs))),
        _ => String::new(),
    };
    lines.push(format!("  source          {}{lost}", status.source));
    if let (Some(idle), Some(delay)) = (status.last.idle_seconds, status.last.delay_seconds) {
        let ago = words::lag(Duration::from_secs_f64(idle.max(0.0)));
        lines.push(format!("  last applied    {ago} ago, {delay:.3} s after its commit on the source"));
    }
    if !status.islands.is_empty() {
        lines.push(format!("  above it        {}", ranges(&status.islands)));
        let how = if status.running { "" } else { " (the same command fills them, with --fill-gaps it ends then)" };
        lines.push(format!("  gaps            {}{how}", ranges(&status.gaps)));
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
    lines.iter().map(|line| escape(line)).collect::<Vec<_>>().join("\n")
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
    fn what_is_in_flight_is_named() {
        let one = InFlight {
            worker: Some(3),
            connection: 17,
            seconds: Some(2),
            rows: 500,
            statement: "BINLOG".to_owned(),
            waits_for_lock: false,
        };
        assert_eq!(in_flight(&one), "worker 3 (connection 17): BINLOG, 500 rows, 2 s");
        let other = InFlight { worker: None, statement: String::new(), seconds: None, ..one };
        assert_eq!(in_flight(&other), "statements (connection 17): waits for its turn to commit, 500 rows");
    }

    #[test]
    fn ranges_are_shown_up_to_a_number() {
        let many: Vec<(u64, u64)> = (1..20).map(|at| (at * 3, at * 3 + at % 2)).collect();
        assert!(ranges(&many).ends_with("36 … 7 more up to 58"), "{}", ranges(&many));
    }
}
