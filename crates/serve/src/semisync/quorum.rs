//! Which part of the log other mirrors have. Pure.
//!
//! A mirror counts once, whatever its connections. The number of members is limited to N of K-of-N: then any N−K+1 of them include one that has every acknowledged commit. Counting a
//! further mirror would break that.

use std::collections::BTreeMap;

use binlog::LogPosition;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Quorum {
    needed: usize,
    of: usize,
    members: BTreeMap<String, Member>,
}

#[derive(Debug, Default)]
struct Member {
    durable: Option<LogPosition>,
    /// Its last stream.
    stream: Option<u64>,
}

/// Whether an attached mirror counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Member,
    /// It has to be kept on disk before it counts.
    New,
    /// There are as many members as were said.
    Stranger,
}

impl Quorum {
    pub(super) fn new(needed: usize, of: usize, members: impl IntoIterator<Item = String>) -> Self {
        Self { needed, of, members: members.into_iter().map(|name| (name, Member::default())).collect() }
    }

    pub(super) fn members(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    pub(super) fn admission(&self, name: &str) -> Admission {
        if self.members.contains_key(name) {
            Admission::Member
        } else if self.members.len() < self.of {
            Admission::New
        } else {
            Admission::Stranger
        }
    }

    /// A stream has begun: everything before this place is there, and no more is known, whatever it was before. An older stream of the mirror counts no more.
    pub(super) fn attached(&mut self, name: &str, stream: u64, at: LogPosition) {
        *self.members.entry(name.to_owned()).or_default() = Member { durable: Some(at), stream: Some(stream) };
    }

    /// What a mirror has stays there when its stream ends.
    pub(super) fn left(&mut self, name: &str, stream: u64) {
        if let Some(member) = self.members.get_mut(name).filter(|member| member.stream == Some(stream)) {
            member.stream = None;
        }
    }

    /// True: it is news.
    pub(super) fn has(&mut self, name: &str, stream: u64, at: LogPosition) -> bool {
        let Some(member) = self.members.get_mut(name).filter(|member| member.stream == Some(stream)) else {
            return false;
        };
        let is_news = member.durable.as_ref().is_none_or(|durable| *durable < at);
        if is_news {
            member.durable = Some(at);
        }
        is_news
    }

    /// Everything before this place is at as many others as are needed.
    pub(super) fn confirmed(&self) -> Option<LogPosition> {
        let mut durable: Vec<&LogPosition> =
            self.members.values().filter_map(|member| member.durable.as_ref()).collect();
        durable.sort_by(|a, b| b.cmp(a));
        self.needed.checked_sub(1).and_then(|index| durable.get(index)).map(|at| (*at).clone())
    }

    /// The number of members with a stream.
    pub(super) fn attached_count(&self) -> usize {
        self.members.values().filter(|member| member.stream.is_some()).count()
    }

    pub(super) fn is_enough(&self) -> bool {
        self.attached_count() >= self.needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> LogPosition {
        LogPosition::new("b.000002", offset)
    }

    #[test]
    fn the_second_best_of_three_is_confirmed() {
        let mut quorum = Quorum::new(2, 3, ["a".to_owned()]);
        assert_eq!((quorum.admission("a"), quorum.admission("b")), (Admission::Member, Admission::New));
        quorum.attached("a", 1, at(4));
        assert_eq!((quorum.confirmed(), quorum.is_enough()), (None, false));
        quorum.attached("b", 2, at(4));
        quorum.attached("c", 3, LogPosition::new("b.000001", 900));
        assert_eq!((quorum.confirmed(), quorum.admission("d")), (Some(at(4)), Admission::Stranger));
        assert!(quorum.has("a", 1, at(500)) && !quorum.has("a", 1, at(400)));
        assert_eq!(quorum.confirmed(), Some(at(4)));
        quorum.has("c", 3, at(300));
        assert_eq!(quorum.confirmed(), Some(at(300)));
        // One that is away keeps what it has; nothing more is heard of it.
        quorum.left("a", 1);
        quorum.left("c", 3);
        assert!(!quorum.has("a", 1, at(600)) && !quorum.has("d", 9, at(600)));
        assert_eq!((quorum.confirmed(), quorum.attached_count(), quorum.is_enough()), (Some(at(300)), 1, false));
    }

    /// A mirror counts once, and one that comes back from an older copy has what it says.
    #[test]
    fn a_mirror_with_two_streams_counts_once() {
        let mut quorum = Quorum::new(2, 2, []);
        quorum.attached("a", 1, at(100));
        quorum.attached("a", 2, at(50));
        assert_eq!((quorum.confirmed(), quorum.attached_count()), (None, 1));
        assert!(!quorum.has("a", 1, at(900)));
        quorum.left("a", 1);
        assert_eq!(quorum.attached_count(), 1);
        quorum.attached("b", 3, at(70));
        assert_eq!(quorum.confirmed(), Some(at(50)));
    }
}
