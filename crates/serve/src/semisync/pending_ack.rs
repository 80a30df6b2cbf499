//! The acknowledgement that the source waits for. Pure.
//!
//! An acknowledgement of a position covers everything before it. So only the last position counts, on both sides.

use binlog::LogPosition;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct PendingAck {
    /// Behind the last event that the source waits for.
    asked: Option<LogPosition>,
    told: Option<LogPosition>,
}

impl PendingAck {
    pub(super) fn asked(&mut self, behind: LogPosition) {
        self.asked = Some(behind);
    }

    /// The source waits, and may be told when more is durable.
    pub(super) fn is_waited_for(&self) -> bool {
        self.asked > self.told
    }

    /// What is to be told now, if anything. `confirmed`: none without others that have to have it.
    pub(super) fn next(&mut self, durable: &LogPosition, confirmed: Option<&LogPosition>) -> Option<LogPosition> {
        let asked = self.asked.as_ref().filter(|_| self.is_waited_for())?;
        let at = asked.min(durable).min(confirmed.unwrap_or(durable));
        if self.told.as_ref().is_some_and(|told| at <= told) {
            return None;
        }
        self.told = Some(at.clone());
        self.told.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> LogPosition {
        LogPosition::new("b.000002", offset)
    }

    #[test]
    fn told_is_what_was_asked_for_and_is_durable_everywhere() {
        let mut due = PendingAck::default();
        assert_eq!(due.next(&at(900), None), None);
        due.asked(at(100));
        due.asked(at(300));
        assert_eq!(due.next(&at(200), None), Some(at(200)));
        assert_eq!(due.next(&at(200), None), None);
        assert!(due.is_waited_for());
        assert_eq!(due.next(&at(400), None), Some(at(300)));
        assert!(!due.is_waited_for());
        assert_eq!(due.next(&at(500), None), None);
        due.asked(at(600));
        let before = LogPosition::new("b.000001", 9000);
        assert_eq!(due.next(&at(700), Some(&before)), None);
        assert_eq!(due.next(&at(700), Some(&at(550))), Some(at(550)));
        assert_eq!(due.next(&at(700), Some(&at(800))), Some(at(600)));
    }
}
