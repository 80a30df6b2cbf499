//! Jain's index of fairness: how evenly work was spread.

/// (Σx)² ÷ (n·Σx²): 1 when all are equal, 1/n when one has everything. `None` when there is nothing to share.
pub fn jain_index(shares: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0_u64, 0.0, 0.0);
    for share in shares {
        count += 1;
        sum += share;
        squares += share * share;
    }
    (squares > 0.0).then(|| sum * sum / (count as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_one_to_one_over_n() {
        assert_eq!(jain_index([5.0, 5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain_index([7.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain_index([1.0, 2.0, 3.0]), Some(36.0 / 42.0));
        assert_eq!(jain_index([0.0, 0.0]), None);
        assert_eq!(jain_index([]), None);
    }
}
