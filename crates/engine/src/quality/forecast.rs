//! When an applier will have caught up: from the transactions and bytes that are left, and the rate at which both shrink.
//!
//! Lag is another thing: the time since the commit of the oldest transaction that is not applied. A forecast from lag is wrong: an hour in which the
//! source wrote nothing is applied in no time. Pure: time is an argument.

use std::collections::VecDeque;

/// Samples that are closer together count as one.
const SPACING_S: f64 = 1.0;
/// More are forgotten, the oldest first.
const SAMPLES_MAX: usize = 128;
/// The rate of the last seconds comes first: a load that has ended says nothing of what comes.
const RECENT_S: f64 = 10.0;
/// Large groups and transactions shrink the backlog in steps. Then a longer time says more.
const LONG_S: f64 = 60.0;
/// No rate is known before.
const SPAN_MIN_S: f64 = 2.0;
/// That a backlog grows is said only of so long a time.
const GROWS_AFTER_S: f64 = 10.0;

/// What is left at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BacklogSample {
    /// Seconds of any clock that never goes back.
    pub at_s: f64,
    /// Transactions of the source that are not applied; `None`: not known.
    pub transactions: Option<u64>,
    /// Their bytes in the source's log; `None`: not known.
    pub bytes: Option<u64>,
    /// Of transactions, or of bytes: moves when anything is applied.
    pub applied: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Forecast {
    /// What is left is not known, or it has not been looked at for long enough, or nothing is applied at the moment.
    #[default]
    Unknown,
    /// Nothing is left.
    CaughtUp,
    /// In so many seconds, at this rate.
    In(f64),
    /// Transactions are applied, and what is left does not shrink.
    Never,
}

impl Forecast {
    pub fn seconds(self) -> Option<f64> {
        match self {
            Self::CaughtUp => Some(0.0),
            Self::In(seconds) => Some(seconds),
            Self::Unknown | Self::Never => None,
        }
    }
}

/// What was left during the last minutes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BacklogHistory(VecDeque<BacklogSample>);

impl BacklogHistory {
    /// Samples come in the order of time.
    pub fn add(&mut self, sample: BacklogSample) {
        let before = self.0.len().checked_sub(2).and_then(|at| self.0.get(at));
        if before.is_some_and(|before| sample.at_s - before.at_s < SPACING_S) {
            self.0.pop_back();
        }
        if self.0.len() >= SAMPLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(sample);
    }

    pub fn forecast(&self) -> Forecast {
        let Some(now) = self.0.back() else { return Forecast::Unknown };
        if now.transactions.or(now.bytes) == Some(0) {
            return Forecast::CaughtUp;
        }
        let recent = self.before(now, RECENT_S);
        let long = self.before(now, LONG_S);
        let mut rates = [recent, long].into_iter().flatten();
        if let Some(seconds) = rates.find_map(|before| seconds_left(before, now)) {
            return Forecast::In(seconds);
        }
        match (recent, long) {
            (Some(recent), Some(long)) if grows(recent, now) && grows(long, now) => Forecast::Never,
            _ => Forecast::Unknown,
        }
    }

    /// The latest sample that is `age_s` older than `now`, else the oldest.
    fn before(&self, now: &BacklogSample, age_s: f64) -> Option<&BacklogSample> {
        let is_old = |sample: &&BacklogSample| now.at_s - sample.at_s >= age_s;
        let found = self.0.iter().rev().find(is_old).or_else(|| self.0.front());
        found.filter(|sample| now.at_s - sample.at_s >= SPAN_MIN_S)
    }
}

/// By transactions and by bytes, as far as they are known and shrink; of two the later.
fn seconds_left(before: &BacklogSample, now: &BacklogSample) -> Option<f64> {
    let span_s = now.at_s - before.at_s;
    let left = |before: Option<u64>, now: Option<u64>| {
        let (before, now) = (before?, now?);
        let gone = before.checked_sub(now).filter(|gone| *gone > 0)?;
        Some(now as f64 * span_s / gone as f64)
    };
    let by = [left(before.transactions, now.transactions), left(before.bytes, now.bytes)];
    by.into_iter().flatten().max_by(f64::total_cmp)
}

fn grows(before: &BacklogSample, now: &BacklogSample) -> bool {
    let more = |before: Option<u64>, now: Option<u64>| before.zip(now).is_some_and(|(before, now)| now > before);
    now.at_s - before.at_s >= GROWS_AFTER_S
        && now.applied > before.applied
        && (more(before.transactions, now.transactions) || more(before.bytes, now.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Second, transactions left, bytes left, applied.
    type Row = (f64, Option<u64>, Option<u64>, u64);

    fn check(rows: &[Row], expected: Forecast) {
        let mut history = BacklogHistory::default();
        for &(at_s, transactions, bytes, applied) in rows {
            history.add(BacklogSample { at_s, transactions, bytes, applied });
        }
        assert_eq!(history.forecast(), expected, "{rows:?}");
    }

    /// A sample a second, each `left` by the second.
    fn seconds(from: u32, to: u32, left: impl Fn(u64) -> u64) -> Vec<Row> {
        (from..=to).map(|at| (f64::from(at), Some(left(at.into())), None, at.into())).collect()
    }

    #[test]
    fn what_is_left_and_how_fast_it_shrinks() {
        check(&[], Forecast::Unknown);
        check(&[(0.0, Some(9), Some(900), 1)], Forecast::Unknown);
        check(&[(0.0, Some(0), None, 1)], Forecast::CaughtUp);
        check(&[(0.0, None, Some(0), 1)], Forecast::CaughtUp);
        // Shrinking: 100 a second, 9,000 left.
        check(&seconds(0, 10, |at| 10_000 - 100 * at), Forecast::In(90.0));
        // Not looked at for long enough.
        check(&seconds(0, 1, |at| 10_000 - 100 * at), Forecast::Unknown);
        // Small transactions are behind the large ones: the later of the two counts.
        check(&[(0.0, Some(1000), Some(1000), 0), (10.0, Some(900), Some(500), 100)], Forecast::In(90.0));
        // One measure alone is known.
        check(&[(0.0, None, Some(1000), 0), (10.0, None, Some(500), 100)], Forecast::In(10.0));
        check(&[(0.0, Some(1000), None, 0), (10.0, None, Some(500), 100)], Forecast::Unknown);
        check(&[(0.0, None, None, 0), (10.0, None, None, 100)], Forecast::Unknown);
        // One of the two shrinks.
        check(&[(0.0, Some(1000), Some(1000), 0), (10.0, Some(500), Some(1100), 100)], Forecast::In(10.0));
    }

    #[test]
    fn it_never_catches_up_only_while_the_backlog_grows() {
        check(&seconds(0, 60, |at| 1000 + 50 * at), Forecast::Never);
        check(&seconds(0, 5, |at| 1000 + 50 * at), Forecast::Unknown);
        // A stall: nothing is applied, whether more comes or not.
        let stalls = |rows: Vec<Row>| rows.into_iter().map(|row| (row.0, row.1, row.2, 7)).collect::<Vec<_>>();
        check(&stalls(seconds(0, 60, |at| 1000 + 50 * at)), Forecast::Unknown);
        check(&stalls(seconds(0, 60, |_| 1000)), Forecast::Unknown);
        // It is as large as it was.
        check(&seconds(0, 60, |_| 1000), Forecast::Unknown);
    }

    #[test]
    fn what_came_before_does_not_count_for_long() {
        // The load has ended: 100 more a second for a minute, then 200 less.
        let mut rows = seconds(0, 60, |at| 100 * at);
        rows.extend(seconds(61, 71, |at| 6000 - 200 * (at - 60)));
        check(&rows, Forecast::In(19.0));
        // A large transaction is under way: nothing has gone for fifteen seconds, and 100 a second in the minute before.
        let mut rows = seconds(0, 60, |at| 10_000 - 100 * at);
        rows.extend(seconds(61, 75, |_| 4000));
        check(&rows, Forecast::In(4000.0 / (4500.0 / 60.0)));
    }

    #[test]
    fn idle_gaps_in_the_log_do_not_matter() {
        // Lag says 1 h until the last transaction is applied; what is left says 10 s.
        check(&[(0.0, Some(2000), Some(200_000), 0), (10.0, Some(1000), Some(100_000), 1000)], Forecast::In(10.0));
    }

    #[test]
    fn samples_are_few() {
        let mut history = BacklogHistory::default();
        for at in 0..100_000_u32 {
            let left = Some(u64::from(200_000 - at));
            let sample =
                BacklogSample { at_s: f64::from(at) / 4.0, transactions: left, bytes: None, applied: at.into() };
            history.add(sample);
        }
        assert_eq!(history.0.len(), SAMPLES_MAX);
        let left = history.forecast().seconds().unwrap();
        assert!((left - 100_001.0 / 4.0).abs() < 1.0, "{left}");
    }
}
