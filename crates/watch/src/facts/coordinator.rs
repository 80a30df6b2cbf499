//! MySQL's own statistics of the coordinator: note MY-010559 of the error log, at most every 120 seconds and only with `log_error_verbosity=3`; and the table
//! of the component `replication_applier_metrics` where it is installed. Pure: text in, numbers out.

use serde::Serialize;

use crate::facts::period::{StatusSample, number, text};
use crate::questions::{METRICS, NOTES};

/// What the coordinator waited for, since it started (the note), by its own reckoning.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CoordinatorStatistics {
    /// When the server wrote it, seconds since 1970.
    pub logged_seconds: f64,
    /// Since the note before.
    pub elapsed_seconds: u64,
    /// In that time, or since the applier started where there is one note only.
    pub events_assigned: u64,
    pub events_per_second: f64,
    pub queues_filled: u64,
    pub waited_queue_full: u64,
    pub waited_total_size: u64,
    /// Of the time between two notes, as a share.
    pub clock_conflicts_share: f64,
    pub workers_occupied_count: u64,
    pub workers_occupied_share: f64,
}

/// The numbers of one note: totals since the applier started, but for `elapsed`.
#[derive(Clone, Debug, Default, PartialEq)]
struct Note {
    channel: String,
    elapsed_s: u64,
    events: u64,
    filled: u64,
    queue_full: u64,
    total_size: u64,
    conflicts_ns: u64,
    occupied: u64,
    occupied_ns: u64,
}

fn parse(data: &str) -> Option<Note> {
    let (_, rest) = data.split_once("statistics for channel '")?;
    let (channel, _) = rest.split_once('\'')?;
    // The last number has the words of the one before it, too.
    let last = |words: &str| {
        let (_, behind) = data.rsplit_once(words)?;
        let digits = behind.trim_start_matches([' ', '=']);
        digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    Some(Note {
        channel: channel.to_owned(),
        elapsed_s: last("seconds elapsed")?,
        events: last("events assigned")?,
        filled: last("filled over overrun level")?,
        queue_full: last("Worker queue full")?,
        total_size: last("due the total size")?,
        conflicts_ns: last("at clock conflicts")?,
        occupied: last("(count) when Workers occupied")?,
        occupied_ns: last("waited when Workers occupied")?,
    })
}

/// Of the newest note of the channel, beside the one before it.
pub fn statistics(look: &StatusSample, channel: &str) -> Option<CoordinatorStatistics> {
    let rows = look.rows(NOTES).iter().filter(|row| text(row, "code") == "MY-010559");
    let mut notes = rows.filter_map(|row| Some((number::<f64>(row, "logged_s")?, parse(text(row, "data"))?)));
    let mut notes = notes.by_ref().filter(|(_, note)| note.channel == channel);
    let (logged_seconds, now) = notes.next()?;
    // Counters begin again when the applier starts.
    let before = notes.next().map(|(_, note)| note).filter(|before| before.events <= now.events).unwrap_or_default();
    let seconds = now.elapsed_s.max(1) as f64;
    let share = |now: u64, before: u64| (now.saturating_sub(before) as f64 / 1e9 / seconds).min(1.0);
    let events = now.events.saturating_sub(before.events);
    Some(CoordinatorStatistics {
        logged_seconds,
        elapsed_seconds: now.elapsed_s,
        events_assigned: events,
        events_per_second: events as f64 / seconds,
        queues_filled: now.filled.saturating_sub(before.filled),
        waited_queue_full: now.queue_full.saturating_sub(before.queue_full),
        waited_total_size: now.total_size.saturating_sub(before.total_size),
        clock_conflicts_share: share(now.conflicts_ns, before.conflicts_ns),
        workers_occupied_count: now.occupied.saturating_sub(before.occupied),
        workers_occupied_share: share(now.occupied_ns, before.occupied_ns),
    })
}

/// What the component counted in a period: shares of the coordinator's time, and of all workers' together for the commit order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ApplierMetrics {
    pub transactions_committed: u64,
    pub transactions_pending: Option<u64>,
    pub bytes_pending: Option<u64>,
    pub no_work_share: f64,
    pub workers_busy_share: f64,
    pub dependency_share: f64,
    pub queue_full_share: f64,
    /// Seconds that all workers together waited for their turn to commit, for each second.
    pub commit_order_seconds: f64,
}

pub fn metrics(before: &StatusSample, after: &StatusSample, channel: &str, seconds: f64) -> Option<ApplierMetrics> {
    let of =
        |look: &'_ StatusSample| look.rows(METRICS).iter().find(|row| text(row, "CHANNEL_NAME") == channel).cloned();
    let (before, now) = (of(before)?, of(after)?);
    let grown = |name: &str| {
        let (from, to): (u64, u64) = (number(&before, name).unwrap_or(0), number(&now, name).unwrap_or(0));
        to.saturating_sub(from)
    };
    // Times are in nanoseconds.
    let each = |name: &str| grown(name) as f64 / 1e9 / seconds;
    let share = |name: &str| each(name).min(1.0);
    Some(ApplierMetrics {
        transactions_committed: grown("TRANSACTIONS_COMMITTED_COUNT"),
        transactions_pending: number(&now, "TRANSACTIONS_PENDING_COUNT"),
        bytes_pending: number(&now, "TRANSACTIONS_PENDING_SIZE_BYTES_SUM"),
        no_work_share: share("WAITS_FOR_WORK_FROM_SOURCE_SUM_TIME"),
        workers_busy_share: share("WAITS_FOR_AVAILABLE_WORKER_SUM_TIME"),
        dependency_share: share("WAITS_COMMIT_SCHEDULE_DEPENDENCY_SUM_TIME"),
        queue_full_share: (each("WAITS_FOR_WORKER_QUEUE_MEMORY_SUM_TIME") + each("WAITS_WORKER_QUEUES_FULL_SUM_TIME"))
            .min(1.0),
        commit_order_seconds: each("WAITS_DUE_TO_COMMIT_ORDER_SUM_TIME"),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The notes of the document of 2025.
    const FIRST: &str = "Multi-threaded replica statistics for channel '': seconds elapsed = 250; events assigned = 13313; worker queues filled over overrun level = 0; waited due a Worker queue full = 0; waited due the total size = 0; waited at clock conflicts = 7565719600 waited (count) when Workers occupied = 44 waited when Workers occupied = 1489733600";
    const SECOND: &str = "Multi-threaded replica statistics for channel '': seconds elapsed = 120; events assigned = 466945; worker queues filled over overrun level = 0; waited due a Worker queue full = 0; waited due the total size = 0; waited at clock conflicts = 55769034800 waited (count) when Workers occupied = 15175 waited when Workers occupied = 69850249500";

    fn row(logged: &str, data: &str) -> BTreeMap<String, String> {
        let pairs = [("logged_s", logged), ("code", "MY-010559"), ("data", data)];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn the_notes_of_the_document() {
        let mut look = StatusSample::default();
        look.answers.insert(NOTES.to_owned(), vec![row("120", SECOND), row("0", FIRST)]);
        let found = statistics(&look, "").unwrap();
        assert_eq!(found.events_assigned, 466_945 - 13_313);
        assert_eq!(found.workers_occupied_count, 15_175 - 44);
        assert!((found.clock_conflicts_share - 0.4017).abs() < 0.001, "{found:?}");
        assert!((found.workers_occupied_share - 0.5697).abs() < 0.001, "{found:?}");
        look.answers.insert(NOTES.to_owned(), vec![row("0", FIRST)]);
        assert_eq!(statistics(&look, "").unwrap().events_assigned, 13_313);
        assert_eq!(statistics(&look, "other"), None);
        assert_eq!(parse("Replica SQL thread initialized"), None);
    }
}
