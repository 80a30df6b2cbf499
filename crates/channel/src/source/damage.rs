//! Damaged events from the source: how often one is asked for again. Asks for nothing itself.

use binlog::LogPosition;
use engine::failure::{Failure, FailureKind};

use super::stream_end::StreamEnd;

/// The receiver pauses between two tries, longer and longer: all of them take about a quarter of a minute.
const TRIES_MAX: u32 = 8;

#[derive(Debug, Default)]
pub struct Damage {
    /// The end of the last whole transaction before it.
    behind: Option<LogPosition>,
    tries: u32,
}

impl Damage {
    /// An event came damaged, `behind` the last whole transaction received. What came between the two is no progress: it comes with each try.
    pub fn seen(&mut self, behind: Option<LogPosition>, why: String) -> StreamEnd {
        if self.behind != behind {
            *self = Self { behind, tries: 0 };
        }
        self.tries += 1;
        if self.tries < TRIES_MAX {
            return StreamEnd::Lost(why);
        }
        let place = match &self.behind {
            Some(behind) => {
                format!("in the source's log, in the transaction that begins at {behind}, or between it and the next")
            }
            None => "in the source's log, before the end of the first transaction that was asked for".to_owned(),
        };
        StreamEnd::Failed(
            Failure::new(FailureKind::Refused, format!("{why} (the same {} times)", self.tries)).at(place).remedy(
                "the source's log file is damaged there, or something between the two servers changes it: look with mysqlbinlog \
                 --verify-binlog-checksum on the source. If the file is damaged, load the target anew from a copy of the source, and start \
                 where that was taken with a new --channel and --start or --start-gtid; else run the same command again",
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> LogPosition {
        LogPosition::new("b.000007", offset)
    }

    #[test]
    fn one_place_is_tried_so_often_and_no_more() {
        let mut damage = Damage::default();
        let mut seen = |offset| damage.seen(Some(at(offset)), "a broken event".to_owned());
        assert!((1..TRIES_MAX).all(|_| matches!(seen(100), StreamEnd::Lost(_))));
        // Something came in between: what was damaged there came whole at last.
        assert!((1..TRIES_MAX).all(|_| matches!(seen(200), StreamEnd::Lost(_))));
        let StreamEnd::Failed(failure) = seen(200) else { panic!("it goes on for ever") };
        assert!(failure.place.contains("b.000007:200") && !failure.remedy.is_empty(), "{failure}");
    }
}
