//! Up to where a file can be read; and, where tags are made anew, up to where replicas are sent it: nothing without its tag. Files get theirs one after the other, the oldest
//! first.

use std::cmp::Ordering;

/// Up to where a file can be read now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Behind its last durable byte.
    pub end: u64,
    /// More of it may come.
    pub grows: bool,
    /// The inventory is closed: nothing more comes at all.
    pub is_closed: bool,
    /// More of it is here, and has no tags yet.
    pub awaits_tags: bool,
}

/// The series and the number of a file.
pub(super) type Place = (u64, Option<u64>);

/// Up to where tags are made anew.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tagged {
    /// The file that is under way.
    pub place: Place,
    /// Before this all have theirs.
    pub end: u64,
    /// Up to here the log was looked at: what is between has none because its transaction has not ended.
    pub seen: u64,
}

impl Tagged {
    /// Of a file's extent what can be sent.
    pub fn limit(&self, place: Place, extent: Extent) -> Extent {
        match place.cmp(&self.place) {
            Ordering::Less => extent,
            Ordering::Equal if self.end >= extent.end => extent,
            Ordering::Equal => Extent { end: self.end, grows: true, awaits_tags: self.seen < extent.end, ..extent },
            Ordering::Greater => Extent { end: 0, grows: true, awaits_tags: extent.end > 0, ..extent },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_tags_is_not_sent() {
        let whole = Extent { end: 100, grows: false, is_closed: false, awaits_tags: false };
        let tagged = Tagged { place: (1, Some(7)), end: 60, seen: 80 };
        let check = |place: Place, end: u64, grows: bool, awaits: bool| {
            let found = tagged.limit(place, whole);
            assert_eq!((found.end, found.grows, found.awaits_tags), (end, grows, awaits), "{place:?}");
        };
        check((0, Some(9)), 100, false, false);
        check((1, Some(6)), 100, false, false);
        check((1, Some(7)), 60, true, true);
        check((1, Some(8)), 0, true, true);
        check((2, Some(1)), 0, true, true);
        let all = Tagged { end: 100, ..tagged }.limit((1, Some(7)), whole);
        assert_eq!(all, whole);
        // The last transaction has not ended.
        let seen = Tagged { seen: 100, ..tagged }.limit((1, Some(7)), whole);
        assert!(seen.grows && !seen.awaits_tags);
    }
}
