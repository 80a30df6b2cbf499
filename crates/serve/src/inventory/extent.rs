//! How far a file can be read; and, with new tags, how far replicas are sent it: nothing without its tag. Files get their tags one after the other, oldest first. Pure.

use std::cmp::Ordering;

/// How far a file can be read now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The end of the readable part.
    pub end: u64,
    /// The file may grow.
    pub grows: bool,
    /// The inventory is closed: nothing more comes at all.
    pub is_closed: bool,
    /// More of it is here, and has no tags yet.
    pub awaits_tags: bool,
}

/// The series and the number of a file.
pub(super) type Place = (u64, Option<u64>);

/// How far the log has new tags.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TagExtent {
    /// The file that is under way.
    pub place: Place,
    /// All transactions before this offset have their tags.
    pub end: u64,
    /// The tagger has read up to this offset: the transaction in between has not ended yet.
    pub seen: u64,
}

impl TagExtent {
    /// The part of a file's extent that can be sent.
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
        let tagged = TagExtent { place: (1, Some(7)), end: 60, seen: 80 };
        let check = |place: Place, end: u64, grows: bool, awaits: bool| {
            let found = tagged.limit(place, whole);
            assert_eq!((found.end, found.grows, found.awaits_tags), (end, grows, awaits), "{place:?}");
        };
        check((0, Some(9)), 100, false, false);
        check((1, Some(6)), 100, false, false);
        check((1, Some(7)), 60, true, true);
        check((1, Some(8)), 0, true, true);
        check((2, Some(1)), 0, true, true);
        let all = TagExtent { end: 100, ..tagged }.limit((1, Some(7)), whole);
        assert_eq!(all, whole);
        // The last transaction has not ended.
        let seen = TagExtent { seen: 100, ..tagged }.limit((1, Some(7)), whole);
        assert!(seen.grows && !seen.awaits_tags);
    }
}
