//! How long transactions and their statements ran on the source, as far as a log can tell.
//!
//! A statement's event says how many seconds lie between its own time and the clock of the server that logged it (`exec_time`). That is how long the
//! statement ran, but only where its time is when it began: not after SET TIMESTAMP, not in a replica's own log (there it is the lag), not in
//! a log that was made by feeding another one through mysqlbinlog. So what is stated is bounded by what can not be otherwise: commit times, what the same
//! session did before, the start of the server, and what many statements can not have done beside each other.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::Record;

const SECOND_US: u64 = 1_000_000;
/// No statement and no transaction is believed to have run for so long.
const LONGEST_US: u64 = 7 * 24 * 3600 * SECOND_US;
/// Sessions that are told apart; more, and all are forgotten.
const SESSIONS_MAX: usize = 100_000;
/// So many transactions in a row that seem to have run for so long that they would all have to run beside each other: then their times are of another clock.
const IN_A_ROW: usize = 32;

/// What is believed of one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredTransaction {
    /// That its longest statement ran.
    pub exec_us: u64,
    /// From its first statement to its commit.
    pub open_seconds: u32,
    /// The log states more than is possible: so many seconds.
    pub stated: Option<u32>,
}

/// Over the transactions of a log, in its order.
#[derive(Debug, Default)]
pub struct Durations {
    /// The clock of the server that logged them is at least here.
    clock_us: u64,
    started_us: u64,
    /// When the last transaction of each session ended.
    sessions: HashMap<u32, u64, FixedState>,
    /// Of the last ones: the clock, and how far their own times were behind it.
    behind: VecDeque<(u64, u64)>,
}

impl Durations {
    /// What comes is from a file that was begun at this time, by a server that started then, if that is known; in microseconds since 1970, 0: not known.
    pub fn file(&mut self, begun_us: u64, started_us: u64) {
        self.clock_us = self.clock_us.max(begun_us);
        if started_us > 0 {
            self.started_us = started_us;
            self.sessions.clear();
        }
    }

    /// The next transaction.
    pub fn measure(&mut self, record: &Record) -> MeasuredTransaction {
        // On the clock by which its statements began.
        let own_clock = record.original_commit_us == 0 && !record.replicated;
        let end_us = match record.original_commit_us {
            0 if own_clock && record.ended_us > 0 => record.ended_us,
            0 => record.commit_time_us,
            original => original,
        };
        let mut most_us = LONGEST_US;
        if let Some(&before) = self.sessions.get(&record.tags.session).filter(|_| record.tags.session != 0) {
            most_us = most_us.min(end_us.saturating_sub(before));
        }
        if own_clock && self.started_us > 0 {
            most_us = most_us.min(end_us.saturating_sub(self.started_us));
        }
        if own_clock && self.is_behind(record) {
            most_us = 0;
        }
        let stated_us = u64::from(record.exec_seconds) * SECOND_US;
        let possible_us = Self::possible(record, end_us).min(if most_us == LONGEST_US { u64::MAX } else { most_us });
        let exec_us = if possible_us >= LONGEST_US { 0 } else { possible_us.min(stated_us) };
        let open_us = u64::from(record.duration_seconds) * SECOND_US;
        let open_us = if open_us >= LONGEST_US { 0 } else { open_us.min(most_us) };
        self.note(record, end_us, own_clock);
        MeasuredTransaction {
            exec_us,
            open_seconds: (open_us / SECOND_US) as u32,
            // Seconds are counted where they begin: one more or less says nothing.
            stated: (stated_us > exec_us + SECOND_US).then_some(record.exec_seconds),
        }
    }

    /// How long its longest statement can have run, by its own times.
    fn possible(record: &Record, end_us: u64) -> u64 {
        let began_us = u64::from(record.exec_began) * SECOND_US;
        match (record.exec_seconds, record.original_commit_us) {
            (0, _) => 0,
            // A second began while it ran, no more is said; commit times may say more.
            (1, 0) => 0,
            (1, _) => end_us.saturating_sub(began_us + SECOND_US),
            (seconds, 0) if !record.replicated => u64::from(seconds) * SECOND_US,
            (_, 0) => 0,
            _ => end_us.saturating_sub(began_us),
        }
    }

    /// Whether it is one of many whose times lie behind the server's clock by more than they can have run.
    fn is_behind(&self, record: &Record) -> bool {
        let least = self.behind.iter().map(|&(_, behind_us)| behind_us).min().unwrap_or(0);
        let first = self.behind.front().map_or(0, |&(clock_us, _)| clock_us);
        let now = self.clock_us.max(record.ended_us);
        self.behind.len() >= IN_A_ROW && least > 2 * SECOND_US && now.saturating_sub(first) < least / 2
    }

    fn note(&mut self, record: &Record, end_us: u64, own_clock: bool) {
        let mut ended_us = end_us;
        if own_clock {
            self.clock_us = self.clock_us.max(record.ended_us);
            ended_us = ended_us.max(self.clock_us);
            let behind_us = self.clock_us.saturating_sub(u64::from(record.began) * SECOND_US);
            if self.behind.len() >= IN_A_ROW {
                self.behind.pop_front();
            }
            self.behind.push_back((self.clock_us, behind_us));
        }
        if record.tags.session != 0 {
            if self.sessions.len() >= SESSIONS_MAX && !self.sessions.contains_key(&record.tags.session) {
                self.sessions.clear();
            }
            self.sessions.insert(record.tags.session, ended_us);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: u32 = 1_700_000_000;

    fn us(seconds: f64) -> u64 {
        (f64::from(T) * 1e6 + seconds * 1e6).round() as u64
    }

    /// A statement of `session` that began at `T + began`, by the time that it states, and was logged `exec` seconds after that.
    fn statement(session: u32, began: i64, exec: u32) -> Record {
        let began = (i64::from(T) + began) as u32;
        let mut record = Record { began, exec_began: began, exec_seconds: exec, ..Record::default() };
        record.tags.session = session;
        record.ended_us = u64::from(began + exec) * SECOND_US;
        record.commit_time_us = u64::from(began) * SECOND_US;
        record
    }

    /// With the commit times that MySQL 8 logs.
    fn committed(mut record: Record, original: f64) -> Record {
        (record.original_commit_us, record.commit_time_us) = (us(original), us(original));
        record.duration_seconds = (us(original) / SECOND_US) as u32 - record.began;
        record
    }

    #[test]
    fn what_is_stated_is_believed_where_it_can_be() {
        let mut durations = Durations::default();
        assert_eq!(
            durations.measure(&statement(1, 0, 5)),
            MeasuredTransaction { exec_us: 5 * SECOND_US, ..MeasuredTransaction::default() }
        );
        // In the session it began when the one before had ended.
        assert_eq!(durations.measure(&statement(1, 5, 3600)).exec_us, 3600 * SECOND_US);
        // Another session was open all the while.
        assert_eq!(durations.measure(&statement(2, -100, 3705)).exec_us, 3705 * SECOND_US);
        // One second begun is no second.
        assert_eq!(durations.measure(&statement(2, 3605, 1)), MeasuredTransaction::default());
        assert_eq!(durations.measure(&committed(statement(3, 4000, 1), 4001.7)).exec_us, 700_000);
        assert_eq!(durations.measure(&committed(statement(3, 4001, 1), 4002.001)).exec_us, 1_000);
    }

    #[test]
    fn a_session_does_one_thing_after_the_other() {
        // SET TIMESTAMP: by its own time it began a thousand days before.
        let far = 1000 * 86_400;
        let mut durations = Durations::default();
        durations.measure(&committed(statement(1, 0, 0), 0.25));
        let measured = durations.measure(&committed(statement(1, -far, far as u32), 0.251));
        assert_eq!(measured, MeasuredTransaction { exec_us: 1_000, open_seconds: 0, stated: Some(far as u32) });
        let mut durations = Durations::default();
        durations.measure(&statement(1, 0, 0));
        assert_eq!(durations.measure(&statement(1, -7200, 7201)).exec_us, 1_000_000);
        // Nothing ran before its server, and nothing for weeks.
        let mut durations = Durations::default();
        durations.file(us(0.0), us(-60.0));
        assert_eq!(durations.measure(&statement(1, -7200, 7201)).exec_us, 61 * SECOND_US);
        assert_eq!(Durations::default().measure(&statement(1, -far, far as u32)).exec_us, 0);
    }

    #[test]
    fn a_replica_s_lag_is_no_duration() {
        // Committed on the source after 3 s, on the replica a day later.
        let mut record = committed(statement(1, 0, 86_400), 3.5);
        record.replicated = true;
        assert_eq!(Durations::default().measure(&record).exec_us, 3_500_000);
        let replicated = Record { replicated: true, ..statement(1, 0, 86_400) };
        let measured = Durations::default().measure(&replicated);
        assert_eq!((measured.exec_us, measured.stated), (0, Some(86_400)));
    }

    /// A log that was fed through mysqlbinlog, by sessions that come once.
    #[test]
    fn many_can_not_have_run_so_long_beside_each_other() {
        let mut durations = Durations::default();
        let measured: Vec<u64> =
            (0..100).map(|n| durations.measure(&statement(n + 1, i64::from(n), 10_000)).exec_us).collect();
        assert!(measured.iter().skip(IN_A_ROW).all(|&us| us == 0), "{measured:?}");
        // Long ones, one after the other.
        let mut durations = Durations::default();
        assert!(
            (0..100).all(|n| durations.measure(&statement(n + 1, i64::from(n) * 60, 60)).exec_us == 60 * SECOND_US)
        );
    }
}
