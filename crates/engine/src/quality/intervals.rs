//! Average modified interval length (AMIL) of logical clock tags.
//!
//! Each transaction has a `sequence_number` and a `last_committed`, the number of the latest transaction that it has to
//! follow; the difference is the length of its interval. MySQL's coordinator itself waits for `last_committed`, so a
//! transaction can not start before those in front of it could: a smaller `last_committed` counts as the largest one seen
//! so far ("modified"). The numbers begin again with each binary log file.
//! From "Parallel Replication in MySQL 5.7 and 8.0 by Booking.com" (2018).

/// Sums of interval lengths. Two of them add up when the second begins with a new file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Intervals {
    /// Transactions with tags.
    pub transactions: u64,
    /// Sum of `sequence_number - max(last_committed so far)`.
    pub modified_sum: u64,
    /// Sum of `sequence_number - last_committed`.
    pub unmodified_sum: u64,
    /// The largest `last_committed` of the file so far.
    highest: i64,
}

impl Intervals {
    /// A new file: its numbers begin again.
    pub fn rotate(&mut self) {
        self.highest = 0;
    }

    /// Counts one transaction; returns its modified interval length. One without tags (`sequence_number` 0) or with tags
    /// that are no interval (`last_committed` not before `sequence_number`) is not counted.
    pub fn add(&mut self, last_committed: i64, sequence_number: i64) -> Option<u64> {
        let unmodified = sequence_number.checked_sub(last_committed).filter(|&length| length > 0)?;
        if sequence_number <= 0 || last_committed < 0 {
            return None;
        }
        // Where files are missing the numbers may go back: an interval is never shorter than 1.
        self.highest = self.highest.max(last_committed).min(sequence_number - 1);
        let modified = (sequence_number - self.highest) as u64;
        self.transactions += 1;
        self.modified_sum += modified;
        self.unmodified_sum += unmodified as u64;
        Some(modified)
    }

    /// Average modified interval length. `None` without tags.
    pub fn amil(&self) -> Option<f64> {
        self.mean(self.modified_sum)
    }

    /// Average interval length as tagged: what an applier could use that lets transactions overtake a blocked one.
    pub fn unmodified(&self) -> Option<f64> {
        self.mean(self.unmodified_sum)
    }

    /// The size of equally parallel group commits: the intervals of a group of n sum up to n(n+1)/2, so n = 2·AMIL − 1.
    pub fn pseudo_group_size(&self) -> Option<f64> {
        self.amil().map(pseudo_group_size)
    }

    fn mean(&self, sum: u64) -> Option<f64> {
        (self.transactions > 0).then(|| sum as f64 / self.transactions as f64)
    }
}

/// See [`Intervals::pseudo_group_size`].
pub fn pseudo_group_size(amil: f64) -> f64 {
    2.0 * amil - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (last_committed, sequence_number) → lengths one by one, modified; average modified and not.
    fn check(tags: &[(i64, i64)], modified: &[u64], amil: f64, unmodified: f64) {
        let mut intervals = Intervals::default();
        let lengths: Vec<u64> = tags.iter().filter_map(|&(last, seq)| intervals.add(last, seq)).collect();
        assert_eq!(lengths, modified);
        let near = |a: Option<f64>, b: f64| a.is_some_and(|a| (a - b).abs() < 1e-12);
        assert!(near(intervals.amil(), amil), "{:?}", intervals.amil());
        assert!(near(intervals.unmodified(), unmodified), "{:?}", intervals.unmodified());
    }

    #[test]
    fn a_group_commit_of_three_is_one_of_three() {
        // The document's group: 6203..6206. Lengths 1, 2, 3: their sum is 3·4/2, AMIL 2, pseudo group size 3.
        let tags = [(6203, 6204), (6203, 6205), (6203, 6206)];
        check(&tags, &[1, 2, 3], 2.0, 2.0);
        assert_eq!(pseudo_group_size(2.0), 3.0);
        for n in 1..100_u64 {
            let mut intervals = Intervals::default();
            (1..=n as i64).for_each(|at| assert_eq!(intervals.add(50, 50 + at), Some(at as u64)));
            assert_eq!(intervals.modified_sum, n * (n + 1) / 2);
            assert_eq!(intervals.pseudo_group_size(), Some(n as f64));
        }
    }

    #[test]
    fn the_document_s_first_example() {
        let tags = [(6201, 6203), (6203, 6204), (6203, 6205), (6203, 6206), (6205, 6207)];
        check(&tags, &[2, 1, 2, 3, 2], 2.0, 2.0);
    }

    #[test]
    fn the_document_s_example_of_modified_intervals() {
        // 93136 is tagged 93124 and can not start before 93131 is done: last_committed=93124 is modified to 93131.
        let tags = [
            (93_124, 93_131),
            (93_131, 93_132),
            (93_131, 93_133),
            (93_131, 93_134),
            (93_131, 93_135),
            (93_124, 93_136),
            (93_131, 93_137),
            (93_131, 93_138),
            (93_132, 93_139),
            (93_138, 93_140),
        ];
        check(&tags, &[7, 1, 2, 3, 4, 5, 6, 7, 7, 2], 4.4, 5.1);
    }

    #[test]
    fn the_document_s_example_of_write_sets() {
        // An intermediate master that is single-threaded, before and after binlog_transaction_dependency_tracking=WRITESET.
        let before = [(6695, 6696), (6696, 6697), (6697, 6698), (6698, 6699), (6699, 6700)];
        check(&before, &[1, 1, 1, 1, 1], 1.0, 1.0);
        let after = [(6700, 6701), (6700, 6702), (6700, 6703), (6700, 6704), (6704, 6705), (6700, 6706)];
        check(&after, &[1, 2, 3, 4, 1, 2], 13.0 / 6.0, 17.0 / 6.0);
        // The page as it is printed, in one stream.
        let page = [before.as_slice(), after.as_slice()].concat();
        check(&page, &[1, 1, 1, 1, 1, 1, 2, 3, 4, 1, 2], 18.0 / 11.0, 2.0);
    }

    #[test]
    fn the_document_s_example_of_write_sets_further_on() {
        // Its next page, without what "[...]" leaves out.
        let page = [
            (6700, 6766),
            (6752, 6767),
            (6753, 6768),
            (6700, 6769),
            (6700, 6783),
            (6768, 6784),
            (6784, 6785),
            (6785, 6786),
            (6785, 6787),
            (6785, 6860),
            (6842, 6861),
            (6843, 6862),
            (6785, 6863),
        ];
        check(&page, &[66, 15, 15, 16, 30, 16, 1, 1, 2, 75, 19, 19, 20], 295.0 / 13.0, 459.0 / 13.0);
    }

    #[test]
    fn the_document_of_2016_s_example() {
        // "Parallel replication, an inventory": intervals of 5.7 before they had a sliding begin are group commits. Of the first group's ten
        // the last two are printed, of the second's the first two and the last two.
        check(
            &[(0, 9), (0, 10), (10, 11), (10, 12), (10, 19), (10, 20)],
            &[9, 10, 1, 2, 9, 10],
            41.0 / 6.0,
            41.0 / 6.0,
        );
        // With what the dots stand for: two groups of ten.
        let groups: Vec<(i64, i64)> = (1..=20).map(|seq| ((seq - 1) / 10 * 10, seq)).collect();
        let lengths: Vec<u64> = (1..=10).chain(1..=10).collect();
        check(&groups, &lengths, 5.5, 5.5);
        assert_eq!(pseudo_group_size(5.5), 10.0);
    }

    #[test]
    fn the_document_s_script_gives_the_same() {
        // The awk of "Intervals Quality": `if ($12 < max) {$12 = max;} else {max = $12;}`, and `Rotate` sets max to 0.
        let script = |tags: &[(i64, i64)]| -> u64 {
            let mut max = 0;
            tags.iter()
                .map(|&(last, seq)| {
                    max = max.max(last);
                    (seq - max) as u64
                })
                .sum()
        };
        proptest::proptest!(|(backs in proptest::collection::vec(1_i64..50, 1..300))| {
            let tags: Vec<(i64, i64)> = (1..).zip(&backs).map(|(seq, &back)| ((seq - back).max(0), seq)).collect();
            let mut intervals = Intervals::default();
            tags.iter().for_each(|&(last, seq)| { intervals.add(last, seq); });
            proptest::prop_assert_eq!(intervals.modified_sum, script(&tags));
        });
    }

    #[test]
    fn files_begin_again_and_what_is_not_tagged_does_not_count() {
        let mut intervals = Intervals::default();
        assert_eq!(intervals.amil(), None);
        assert_eq!(intervals.add(0, 0), None);
        assert_eq!(intervals.add(9, 9), None);
        assert_eq!(intervals.add(i64::MIN, i64::MAX), None);
        assert_eq!(intervals.add(99, 100), Some(1));
        intervals.rotate();
        assert_eq!(intervals.add(0, 1), Some(1));
        assert_eq!(intervals.add(0, 2), Some(2));
        assert_eq!(intervals.transactions, 3);
        // A file is missing in between and nobody said so: still no interval of less than one.
        assert_eq!(intervals.add(50, 51), Some(1));
        assert_eq!(intervals.add(0, 1), Some(1));
    }
}
