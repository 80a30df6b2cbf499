//! What every replica's last look said, and an hour of lag and rates: for who looks over HTTP. Bounded; it asks nobody.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::report::Report;

/// Points of a channel's history: an hour of one in five seconds.
const POINTS_MAX: usize = 720;
const POINT_EVERY: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug, Default)]
pub struct Board(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By the replica's number in the order of the command.
    looks: BTreeMap<usize, ReplicaReports>,
    /// By replica and channel.
    histories: BTreeMap<(String, String), VecDeque<Point>>,
}

/// The last look at a replica: a report for each channel.
#[derive(Clone, Debug)]
pub struct ReplicaReports {
    pub at_ms: u64,
    pub reports: Vec<Report>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Point {
    at_ms: u64,
    lag_seconds: Option<f64>,
    applied_per_second: Option<f64>,
}

#[derive(Serialize)]
struct ChannelEntry<'a> {
    looked_ms: u64,
    history: &'a VecDeque<Point>,
    #[serde(flatten)]
    report: &'a Report,
}

impl Board {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a look at the replica of this number.
    pub fn take(&self, replica: usize, reports: &[Report]) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.take_at(replica, reports, u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    }

    fn take_at(&self, replica: usize, reports: &[Report], at_ms: u64) {
        let mut state = self.state();
        for report in reports {
            let key = (report.identity.replica.clone(), report.identity.channel.clone());
            let history = state.histories.entry(key).or_default();
            let is_due = history.back().is_none_or(|last| at_ms >= last.at_ms + POINT_EVERY.as_millis() as u64);
            if !is_due {
                continue;
            }
            if history.len() >= POINTS_MAX {
                history.pop_front();
            }
            history.push_back(Point {
                at_ms,
                lag_seconds: report.behind.lag_seconds,
                applied_per_second: report.behind.applied_per_second,
            });
        }
        state.looks.insert(replica, ReplicaReports { at_ms, reports: reports.to_vec() });
        let State { looks, histories } = &mut *state;
        // Channels that are no more.
        histories.retain(|(replica, channel), _| {
            let mut all = looks.values().flat_map(|look| &look.reports);
            all.any(|report| {
                report.identity.replica == *replica
                    && (report.identity.channel == *channel || report.identity.channel.is_empty())
            })
        });
    }

    /// The last looks, in the order of the command.
    pub fn looks(&self) -> Vec<ReplicaReports> {
        self.state().looks.values().cloned().collect()
    }

    /// A JSON array: each channel's report as `--json` has it, with `looked_ms` and `history`.
    pub fn json(&self) -> serde_json::Result<String> {
        let state = self.state();
        let none = VecDeque::new();
        let mut all = Vec::new();
        for look in state.looks.values() {
            for report in &look.reports {
                let key = (report.identity.replica.clone(), report.identity.channel.clone());
                let history = state.histories.get(&key).unwrap_or(&none);
                all.push(ChannelEntry { looked_ms: look.at_ms, history, report });
            }
        }
        serde_json::to_string(&all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(channel: &str, lag: f64) -> Report {
        let mut report = Report::unknown("mysql://r:3306".to_owned(), "no");
        channel.clone_into(&mut report.identity.channel);
        report.behind.lag_seconds = Some(lag);
        report
    }

    #[test]
    fn the_history_is_bounded() {
        let board = Board::default();
        for second in 0..10_000_u64 {
            board.take_at(0, &[report("a", second as f64)], second * 1000);
        }
        let shown: serde_json::Value = serde_json::from_str(&board.json().unwrap()).unwrap();
        let history = shown[0]["history"].as_array().unwrap();
        assert_eq!(history.len(), POINTS_MAX);
        assert_eq!((&history[719]["at_ms"], &history[719]["lag_seconds"]), (&9_995_000.into(), &9995.0.into()));
        assert_eq!((&shown[0]["looked_ms"], &shown[0]["severity"]), (&9_999_000.into(), &"unknown".into()));
    }

    #[test]
    fn a_replica_that_is_away_keeps_its_history_and_a_channel_that_is_no_more_does_not() {
        let board = Board::default();
        let histories = || board.state().histories.keys().map(|(_, channel)| channel.clone()).collect::<Vec<_>>();
        board.take_at(0, &[report("a", 1.0), report("b", 1.0)], 0);
        board.take_at(0, &[report("", 0.0)], 10_000);
        assert_eq!(histories(), ["", "a", "b"]);
        board.take_at(0, &[report("b", 1.0)], 20_000);
        assert_eq!(histories(), ["b"]);
    }
}
