//! How many rows, or statements, a group may hold; and how many transactions that commit one by one share a packet.
//!
//! Both follow how long the groups before took. A group's rows stay locked from its first row to its commit. Readers that
//! lock, and earlier groups, may wait for them. Rows that are found by key take milliseconds for thousands. Rows that each take a
//! scan of the table take minutes, and so may statements. A channel that is to stop finishes the group that runs.

use std::time::Duration;

/// What a group may take from its dispatch to its commit. Where a group opens a thousand tables, a second goes by before its first row is
/// worth it: with less, several workers make groups that are too small.
const HOLD_GOAL: Duration = Duration::from_secs(2);
/// Below it groups grow.
const HOLD_WANTED: Duration = Duration::from_millis(1600);
const ROWS_MIN: usize = 10;
/// The first groups hold no more: how long a row takes is not known yet.
const ROWS_FIRST: usize = 2_000;
const STATEMENTS_FIRST: usize = 50;

/// What a packet may take, for each of its transactions and for the way to the target and back: where it takes longer, either their rows do, or the
/// commits are so slow that packets gain next to nothing.
const PACKET_SHARE_MAX: Duration = Duration::from_millis(5);
const PACKET_WAY_MAX: Duration = Duration::from_millis(20);
/// The first packet after a slow one.
const PACKET_PROBE: usize = 2;
/// So many go by themselves then, before a packet is tried again.
const AFTER_SLOW_PACKET: usize = 256;

#[derive(Clone, Copy, Debug)]
pub struct Pace {
    rows: usize,
    ceiling: usize,
}

impl Pace {
    pub fn new(ceiling: usize) -> Self {
        Self { rows: ceiling.min(ROWS_FIRST), ceiling }
    }

    /// Counts statements in place of rows.
    pub fn of_statements(ceiling: usize) -> Self {
        Self { rows: ceiling.min(STATEMENTS_FIRST), ceiling }
    }

    /// What the next group may hold.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A group of so many rows has committed after this time; returns what the next one may hold.
    pub fn committed(&mut self, rows: usize, held: Duration) -> usize {
        if held > HOLD_GOAL {
            let fitting = rows as f64 * HOLD_GOAL.as_secs_f64() / held.as_secs_f64();
            self.rows = (fitting as usize).clamp(ROWS_MIN.min(self.ceiling), self.rows);
        } else if held < HOLD_WANTED && rows >= self.rows / 2 {
            // Only a group that was nearly full says that there is room for more. A larger one takes less than its share of the time: part of it is for each table, and for
            // the commit.
            let more = (HOLD_WANTED.as_secs_f64() / held.as_secs_f64()).min(2.0);
            self.rows = ((self.rows as f64 * more) as usize).min(self.ceiling);
        }
        self.rows
    }
}

/// How many transactions of the source's order share a packet where each commits by itself.
///
/// Where commits take the time, one connection that sends one after the other is best. Where rows take it (each read from a slow
/// disk, or found by a scan), several connections that apply them ahead of their turn are better.
#[derive(Clone, Copy, Debug)]
pub struct PacketPace {
    most: usize,
    /// Transactions that still go by themselves.
    by_themselves: usize,
    /// The last packet was slow.
    was_slow: bool,
}

impl PacketPace {
    pub fn new(most: usize) -> Self {
        Self { most, by_themselves: 0, was_slow: false }
    }

    /// So many transactions have committed, this time after they were dispatched; returns how many the next packet may hold.
    pub fn committed(&mut self, transactions: usize, took: Duration) -> usize {
        if transactions > 1 {
            let shares = PACKET_SHARE_MAX.saturating_mul(u32::try_from(transactions).unwrap_or(u32::MAX));
            self.was_slow = took > PACKET_WAY_MAX + shares;
            self.by_themselves = if self.was_slow { AFTER_SLOW_PACKET } else { 0 };
        } else {
            self.by_themselves = self.by_themselves.saturating_sub(transactions);
        }
        match (self.by_themselves, self.was_slow) {
            (0, false) => self.most,
            (0, true) => PACKET_PROBE.min(self.most),
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_slow_packet_transactions_go_by_themselves_for_a_while() {
        let mut pace = PacketPace::new(16);
        assert_eq!(pace.committed(16, Duration::from_millis(90)), 16);
        assert_eq!(pace.committed(2, Duration::from_millis(25)), 16, "the way to the target is long, not the commits");
        assert_eq!(pace.committed(1, Duration::from_secs(1)), 16, "no packet: it says nothing of packets");
        assert_eq!(pace.committed(16, Duration::from_millis(110)), 1);
        for _ in 1..AFTER_SLOW_PACKET {
            assert_eq!(pace.committed(1, Duration::from_secs(1)), 1);
        }
        assert_eq!(pace.committed(1, Duration::from_secs(1)), 2, "tried again, with few");
        assert_eq!(pace.committed(2, Duration::from_millis(10)), 16);
    }

    #[test]
    fn slow_groups_shrink_and_fast_ones_grow_back() {
        let mut pace = Pace::new(10_000);
        assert_eq!(pace.rows(), 2_000);
        assert_eq!(pace.committed(2_000, Duration::from_millis(20)), 4_000);
        assert_eq!(pace.committed(2_000, Duration::from_millis(20)), 8_000);
        assert_eq!(pace.committed(8_000, Duration::from_millis(80)), 10_000, "the ceiling");
        assert_eq!(pace.committed(10_000, Duration::from_millis(80)), 10_000);
        assert_eq!(pace.committed(10_000, Duration::from_secs(40)), 500);
        assert_eq!(pace.committed(500, Duration::from_millis(1800)), 500, "within the goal");
        assert_eq!(
            pace.committed(500, Duration::from_millis(1280)),
            625,
            "not to twice as much, which might be too much"
        );
        assert_eq!(pace.committed(625, Duration::from_millis(2500)), 500);
        assert_eq!(pace.committed(5, Duration::from_millis(10)), 500, "a small group says nothing");
        assert_eq!(pace.committed(400, Duration::from_millis(100)), 1_000);
        assert_eq!(pace.committed(1_000, Duration::from_secs(3600)), 10, "never less");
        for _ in 0..20 {
            pace.committed(10_000, Duration::from_millis(1));
        }
        assert_eq!(pace.committed(1, Duration::ZERO), 10_000);
    }
}
