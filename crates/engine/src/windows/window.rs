//! The part of a log in which a read lies, and where a transaction of the log is to it.

use binlog::LogPosition;
use binlog::gtids::{Gtid, GtidState};

/// All up to here is in what a read saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Low {
    /// These transactions (MySQL: `gtid_executed` has only what is committed and visible). Of two that change one row, the set must not have only the later one.
    Gtids(GtidState),
    /// All that ends here or before.
    Position(LogPosition),
}

/// Behind `low`, up to `high`: nothing that begins at `high` or later is in what a read saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    pub low: Low,
    pub high: LogPosition,
}

/// Of a transaction to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// In what the read saw.
    Before,
    /// The read may have seen it or not.
    Within,
    /// Not in what the read saw.
    Behind,
}

impl Window {
    /// Where a transaction is that stands in the log from `start` to `end`.
    pub fn side(&self, gtid: Option<&Gtid>, start: &LogPosition, end: &LogPosition) -> Side {
        if *start >= self.high {
            return Side::Behind;
        }
        let is_before = match (&self.low, gtid) {
            (Low::Gtids(seen), Some(gtid)) => seen.contains(gtid),
            (Low::Gtids(_), None) => false,
            (Low::Position(low), _) => end <= low,
        };
        if is_before { Side::Before } else { Side::Within }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> LogPosition {
        LogPosition::new("b.000001", offset)
    }

    #[test]
    fn sides_by_position() {
        let window = Window { low: Low::Position(at(100)), high: at(300) };
        for (start, end, side) in [
            (50, 100, Side::Before),
            (50, 101, Side::Within),
            (100, 200, Side::Within),
            (299, 400, Side::Within),
            (300, 400, Side::Behind),
        ] {
            assert_eq!(window.side(None, &at(start), &at(end)), side, "{start} to {end}");
        }
        let exact = Window { low: Low::Position(at(100)), high: at(100) };
        assert_eq!(exact.side(None, &at(50), &at(100)), Side::Before);
        assert_eq!(exact.side(None, &at(100), &at(200)), Side::Behind);
    }

    #[test]
    fn sides_by_gtid() {
        let set = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7";
        let window = Window { low: Low::Gtids(set.parse().unwrap()), high: at(300) };
        let gtid = |number: u64| format!("3e11fa47-71ca-11e1-9e33-c80aa9429562:{number}").parse::<Gtid>().unwrap();
        // Its place in the log is before, and yet it may not be visible.
        assert_eq!(window.side(Some(&gtid(6)), &at(10), &at(20)), Side::Within);
        assert_eq!(window.side(Some(&gtid(7)), &at(20), &at(30)), Side::Before);
        assert_eq!(window.side(None, &at(20), &at(30)), Side::Within);
        assert_eq!(window.side(Some(&gtid(8)), &at(300), &at(310)), Side::Behind);
    }
}
