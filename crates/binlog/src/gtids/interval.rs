//! Sorted disjoint intervals of transaction numbers. Knows nothing of sources.

/// Transaction numbers, kept as sorted intervals with both ends included that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Intervals {
    ranges: Vec<(u64, u64)>,
}

impl Intervals {
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Intervals in order, both ends included.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// How many numbers are in here.
    pub fn count(&self) -> u64 {
        self.ranges.iter().fold(0, |sum, (first, last)| sum.saturating_add(last - first).saturating_add(1))
    }

    pub fn contains(&self, number: u64) -> bool {
        self.contains_range(number, number)
    }

    /// Whether all of `first..=last` is in here.
    pub fn contains_range(&self, first: u64, last: u64) -> bool {
        let at = self.ranges.partition_point(|range| range.1 < first);
        self.ranges.get(at).is_some_and(|range| range.0 <= first && last <= range.1)
    }

    /// Adds `first..=last`. Nothing happens when `first > last`. Constant time at the end of the set.
    pub fn add(&mut self, first: u64, last: u64) {
        if first > last {
            return;
        }
        match self.ranges.last_mut() {
            Some(end) if end.0 <= first && first <= end.1.saturating_add(1) => {
                end.1 = end.1.max(last);
                return;
            }
            Some(end) if first <= end.1 => {}
            _ => {
                self.ranges.push((first, last));
                return;
            }
        }
        // Those that overlap or touch become one.
        let from = self.ranges.partition_point(|range| range.1.saturating_add(1) < first);
        let to = self.ranges.partition_point(|range| range.0 <= last.saturating_add(1));
        let joined = match (self.ranges.get(from), to.checked_sub(1).and_then(|end| self.ranges.get(end))) {
            (Some(low), Some(high)) if from < to => (low.0.min(first), high.1.max(last)),
            _ => (first, last),
        };
        self.ranges.splice(from..to.max(from), [joined]);
    }

    pub fn add_all(&mut self, other: &Self) {
        for &(first, last) in &other.ranges {
            self.add(first, last);
        }
    }

    /// Takes out everything that is in `other`. Linear in both.
    pub fn subtract(&mut self, other: &Self) {
        let mut rest = Vec::with_capacity(self.ranges.len());
        let mut holes = other.ranges.iter().copied().peekable();
        for &(mut first, last) in &self.ranges {
            loop {
                while holes.next_if(|hole| hole.1 < first).is_some() {}
                match holes.peek() {
                    Some(&(from, to)) if from <= last => {
                        if first < from {
                            rest.push((first, from - 1));
                        }
                        if to >= last {
                            break;
                        }
                        first = to + 1;
                    }
                    _ => {
                        rest.push((first, last));
                        break;
                    }
                }
            }
        }
        self.ranges = rest;
    }

    pub fn contains_all(&self, other: &Self) -> bool {
        other.ranges.iter().all(|&(first, last)| self.contains_range(first, last))
    }
}
