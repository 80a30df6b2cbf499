//! Commit groups for MariaDB.

use std::collections::BTreeSet;

use binlog::{Flavour, MariaDbGtid, encode};
use proptest::prelude::*;

use super::*;
use crate::sql::SqlMode;
use crate::survey::Definitions;
use crate::testing::{Log, RowChange, TestTable, insert, int};

const OPTIONS: Options =
    Options { keys_max: 1_000, keep_session_order: false, explain: true, transaction_bytes_max: 1 << 20 };
const USUAL: u8 = MariaDbGtid::FL_TRANSACTIONAL | MariaDbGtid::FL_ALLOW_PARALLEL;

fn table() -> TestTable {
    TestTable::new(1, "t", "id:int u:int", &[&[0], &[1]])
}

fn row(id: i32) -> RowChange {
    insert(vec![int(id), int(1_000 + id)])
}

struct Source {
    log: Log,
    seq_no: u64,
}

impl Source {
    fn new() -> Self {
        Self { log: Log::new(Flavour::MariaDb), seq_no: 0 }
    }

    fn gtid(&mut self, domain_id: u32, flags: u8, commit_id: Option<u64>) -> &mut Log {
        self.seq_no += 1;
        let gtid = MariaDbGtid { domain_id, seq_no: self.seq_no, flags, commit_id, ..MariaDbGtid::default() };
        let bytes = encode::mariadb_gtid(&self.log.head, &gtid);
        self.log.push(bytes)
    }

    fn rows(&mut self, domain: u32, flags: u8, commit_id: Option<u64>, keys: &[i32]) -> &mut Self {
        let changes: Vec<RowChange> = keys.iter().map(|key| row(*key)).collect();
        self.gtid(domain, flags, commit_id).rows(&table(), &changes).xid();
        self
    }

    fn usual(&mut self, commit_id: Option<u64>, keys: &[i32]) -> &mut Self {
        self.rows(0, USUAL, commit_id, keys)
    }

    fn ddl(&mut self, commit_id: Option<u64>) -> &mut Self {
        self.gtid(0, MariaDbGtid::FL_STANDALONE | MariaDbGtid::FL_DDL, commit_id).query("CREATE TABLE other (id INT)");
        self
    }

    fn tags(&self, options: Options, definitions: Definitions) -> Vec<NewTag> {
        let mut tagger = Tagger::new(options, definitions, &[]);
        let tag = |(event, start, end): &_| tagger.event(event, &self.log.format, start, end).unwrap();
        self.log.events.iter().filter_map(tag).collect()
    }

    /// Numbers of groups, and why each began; `waited`.
    fn groups(&self) -> Vec<(usize, &'static str)> {
        numbered(&self.tags(OPTIONS, definitions()))
    }
}

fn definitions() -> Definitions {
    let mut definitions = Definitions::default();
    let sql = b"CREATE TABLE t (id INT NOT NULL, u INT NOT NULL, PRIMARY KEY (id), UNIQUE (u)) ENGINE=InnoDB";
    assert!(definitions.execute(sql, "shop", SqlMode::default()));
    definitions
}

fn marks(tag: &NewTag) -> Marks {
    let Tag::CommitGroup { new, .. } = tag.tag else { panic!("{tag:?}") };
    new
}

/// As a replica sees them, and as it is said.
fn numbered(tags: &[NewTag]) -> Vec<(usize, &'static str)> {
    let (mut number, mut last) = (0, None);
    tags.iter()
        .map(|tag| {
            let id = marks(tag).commit_id;
            let begins = id.is_none() || id != last;
            assert_eq!(begins, marks(tag).begins, "{tag:?}");
            number += usize::from(begins);
            last = id;
            (number, tag.cause.as_str())
        })
        .collect()
}

#[test]
fn a_common_key_ends_a_group() {
    let mut source = Source::new();
    for key in [1, 2, 3, 2, 4, 1] {
        source.usual(None, &[key]);
    }
    let group = "group";
    assert_eq!(source.groups(), [(1, "file_begins"), (1, group), (1, group), (2, "key"), (2, group), (2, group)]);
    let tags = source.tags(OPTIONS, definitions());
    let waited: Vec<bool> = tags.iter().map(|tag| marks(tag).waited).collect();
    assert_eq!(
        waited,
        [false, false, false, true, false, false],
        "neighbours that share a key, and none further apart"
    );
}

#[test]
fn a_definition_is_alone() {
    for id in [None, Some(9)] {
        let mut source = Source::new();
        source.usual(Some(9), &[1]).usual(Some(9), &[2]).ddl(id).usual(Some(9), &[3]).usual(None, &[4]);
        let expected = [(1, "file_begins"), (1, "group"), (2, "ddl"), (3, "after_barrier"), (3, "group")];
        assert_eq!(source.groups(), expected);
        let tags = source.tags(OPTIONS, definitions());
        assert_eq!(marks(&tags[2]).commit_id.is_some(), id.is_some(), "one without an id needs none");
    }
}

#[test]
fn what_is_not_known_keeps_the_sources_groups() {
    let mut source = Source::new();
    for id in [Some(1), Some(1), None, Some(2), Some(2), Some(2)] {
        source.usual(id, &[7]);
    }
    let groups: Vec<usize> = numbered(&source.tags(OPTIONS, Definitions::default())).iter().map(|one| one.0).collect();
    assert_eq!(groups, [1, 1, 2, 3, 3, 3]);
}

#[test]
fn who_must_not_run_beside_others_does_not() {
    let flags = [
        MariaDbGtid::FL_ALLOW_PARALLEL,
        MariaDbGtid::FL_TRANSACTIONAL,
        USUAL | MariaDbGtid::FL_STANDALONE,
        USUAL | MariaDbGtid::FL_DDL,
    ];
    for flags in flags {
        let mut source = Source::new();
        source.usual(None, &[1]).rows(0, flags, None, &[2]).usual(None, &[3]);
        let groups: Vec<usize> = source.groups().iter().map(|one| one.0).collect();
        assert_eq!(groups, [1, 2, 3], "{flags}");
    }
}

#[test]
fn domains_have_groups_of_their_own() {
    let mut source = Source::new();
    for (domain, key) in [(1, 1), (2, 1), (1, 2), (2, 2), (1, 1)] {
        source.rows(domain, USUAL, None, &[key]);
    }
    let tags = source.tags(OPTIONS, definitions());
    let ids: Vec<u64> = tags.iter().map(|tag| marks(tag).commit_id.unwrap()).collect();
    assert!(ids[0] == ids[2] && ids[1] == ids[3] && ids[0] != ids[1], "{ids:?}");
    assert_ne!(ids[4], ids[0]);
}

/// A hostile log has as many as it likes.
#[test]
fn many_domains() {
    let mut source = Source::new();
    for domain in 0..1_000 {
        source.rows(domain, USUAL, None, &[1]);
    }
    let tags = source.tags(OPTIONS, definitions());
    let mut ids: Vec<u64> = tags.iter().skip(64).map(|tag| marks(tag).commit_id.unwrap()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 936, "those that share a state do not run side by side");
}

#[test]
fn a_wait_that_was_none_is_not_said() {
    let mut source = Source::new();
    source.rows(0, USUAL | MariaDbGtid::FL_WAITED, None, &[1]);
    for key in 2..=100 {
        source.usual(None, &[key]);
    }
    source.usual(None, &[1]);
    let tags = source.tags(OPTIONS, definitions());
    assert!(tags.iter().all(|tag| !marks(tag).waited), "what is far back is over");
    assert_eq!(numbered(&tags).last(), Some(&(2, "key")));
    let unknown = source.tags(OPTIONS, Definitions::default());
    assert!(marks(&unknown[0]).waited, "who knows");
}

type Transactions = Vec<(BTreeSet<i32>, bool)>;

/// The groups of a source that puts transactions together which have no common key, and whether pairs of a stretch may be together.
fn source_of(transactions: &Transactions) -> (Source, Vec<u64>) {
    let (mut source, mut ids) = (Source::new(), Vec::new());
    let (mut id, mut seen) = (0, BTreeSet::new());
    for (keys, together) in transactions {
        if !together || !seen.is_disjoint(keys) {
            id += 1;
            seen.clear();
        }
        seen.extend(keys);
        ids.push(id);
        let keys: Vec<i32> = keys.iter().copied().collect();
        source.usual(Some(id), &keys);
    }
    (source, ids)
}

fn some() -> impl Strategy<Value = Transactions> {
    prop::collection::vec((prop::collection::btree_set(0..30_i32, 1..4), any::<bool>()), 1..60)
}

/// The first two of a group that have a common key.
fn wrong(transactions: &Transactions, groups: &[usize]) -> Option<(usize, usize)> {
    let pairs = (0..groups.len()).flat_map(|later| (0..later).map(move |earlier| (earlier, later)));
    pairs.into_iter().find(|&(earlier, later)| {
        groups[earlier] == groups[later] && !transactions[earlier].0.is_disjoint(&transactions[later].0)
    })
}

proptest! {
    #[test]
    fn as_wide_as_can_be_and_never_wrong(transactions in some()) {
        let (source, ids) = source_of(&transactions);
        let groups: Vec<usize> = source.groups().iter().map(|one| one.0).collect();
        prop_assert_eq!(wrong(&transactions, &groups), None);
        for at in 1..groups.len() {
            if groups[at] != groups[at - 1] {
                let mut before = (0..at).filter(|&before| groups[before] == groups[at - 1]);
                let conflicts = before.any(|before| !transactions[before].0.is_disjoint(&transactions[at].0));
                prop_assert!(conflicts, "{} could have joined", at);
            }
        }
        let mut of_source = ids;
        of_source.dedup();
        prop_assert!(groups.last() <= Some(&of_source.len()));
    }

    #[test]
    fn what_is_forgotten_or_unknown_is_never_wrong(transactions in some(), keys_max in 4..30_usize, known in any::<bool>()) {
        let (source, ids) = source_of(&transactions);
        let definitions = if known { definitions() } else { Definitions::default() };
        let tags = source.tags(Options { keys_max, ..OPTIONS }, definitions);
        let groups: Vec<usize> = numbered(&tags).iter().map(|one| one.0).collect();
        prop_assert_eq!(wrong(&transactions, &groups), None);
        let mut of_source = ids;
        of_source.dedup();
        prop_assert!(groups.last() <= Some(&of_source.len()), "never more than the source's");
    }
}

/// The check above sees a group that is too large.
#[test]
fn a_wrong_group_is_seen() {
    let transactions: Transactions = [1, 2, 1].map(|key| (BTreeSet::from([key]), true)).into();
    assert_eq!(wrong(&transactions, &[1, 1, 1]), Some((0, 2)));
    assert_eq!(wrong(&transactions, &[1, 1, 2]), None);
}
