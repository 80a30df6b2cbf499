//! MySQL's tags of what is sent. In a file `sequence_number` has to go up by one from transaction to transaction, or a replica applies them serially
//! (`Mts_submode_logical_clock::schedule_next_event`). A group has one number, so later numbers are smaller than the source's. Pure.

/// Over one file.
#[derive(Debug, Default)]
pub(super) struct Clock {
    runs: Vec<Run>,
}

/// Consecutive numbers of the source.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: i64,
    last: i64,
    /// What `first` became.
    becomes: i64,
    /// All of it is one transaction of the replica.
    is_group: bool,
}

impl Run {
    fn at(&self, number: i64) -> i64 {
        if self.is_group { self.becomes } else { self.becomes + (number.min(self.last) - self.first) }
    }
}

impl Clock {
    /// The tag of what is sent next, which is `first..=last` of the source and waits for `last_committed`. Without a tag it stays so.
    pub fn tag(&mut self, last_committed: i64, first: i64, last: i64) -> (i64, i64) {
        if first <= 0 {
            return (last_committed, first);
        }
        let number = self.runs.last().map_or(first, |run| run.at(run.last) + 1);
        let waits_for = self.becomes(last_committed).min(number - 1);
        let is_group = last > first;
        match self.runs.last_mut() {
            Some(run) if !is_group && !run.is_group && run.last + 1 == first => run.last = last,
            _ => self.runs.push(Run { first, last, becomes: number, is_group }),
        }
        (waits_for, number)
    }

    /// What a number of the source is here: that of the latest transaction up to there.
    fn becomes(&self, number: i64) -> i64 {
        let behind = self.runs.partition_point(|run| run.first <= number);
        let run = behind.checked_sub(1).and_then(|index| self.runs.get(index));
        run.map_or(number, |run| run.at(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_up_by_one() {
        let mut clock = Clock::default();
        // From the middle of a file on: what is before was sent earlier.
        assert_eq!(clock.tag(90, 101, 101), (90, 101));
        assert_eq!(clock.tag(101, 102, 102), (101, 102));
        // A group, and one that waits for a transaction in the middle of it.
        assert_eq!(clock.tag(101, 103, 110), (101, 103));
        assert_eq!(clock.tag(105, 111, 111), (103, 104));
        assert_eq!(clock.tag(110, 112, 112), (103, 105));
        assert_eq!(clock.tag(111, 113, 113), (104, 106));
        assert_eq!(clock.tag(102, 114, 120), (102, 107));
        // Behind transactions that the replica has already.
        assert_eq!(clock.tag(125, 131, 131), (107, 108));
    }

    #[test]
    fn none_stays_none() {
        assert_eq!(Clock::default().tag(0, 0, 0), (0, 0));
    }
}
