use binlog::Flavour;
use proptest::prelude::*;

use super::*;
use crate::Seq;
use crate::intake::Keying;
use crate::testing::{FakeCatalogue, Log, TestTable, insert, int, update};
use crate::transaction::{Body, Tags, Transaction, WriteSet};
use binlog::LogPosition;

fn rules(tracking: DependencyTracking, generation: Generation, history_max: usize) -> Rules {
    Rules { tracking, generation, history_max }
}

fn rows(hashes: &[u64]) -> Subject<'_> {
    Subject { hashes, ..Subject::default() }
}

/// Tags of transactions that commit one after the other.
fn serial(rules: Rules, subjects: &[Subject<'_>]) -> Vec<(i64, i64, Option<Fallback>)> {
    let mut tracker = Tracker::new(rules, 1);
    (1..)
        .zip(subjects)
        .map(|(seq, subject): (Seq, _)| tracker.next(seq - 1, subject))
        .map(|t| (t.last_committed, t.sequence_number, t.fallback))
        .collect()
}

const DDL: Subject<'_> = Subject {
    hashes: &[],
    missing_keys: false,
    referenced: false,
    unknown: false,
    empty: false,
    create_select: false,
    statement: false,
    blocking: false,
    prepares: false,
    completes: false,
    session: 0,
};

/// (last_committed, fallback) of each, with a history of 4.
#[test]
fn the_rules_of_write_sets() {
    use Fallback::*;
    use Generation::*;
    let missing = Subject { missing_keys: true, hashes: &[3], ..DDL };
    let referenced = Subject { referenced: true, hashes: &[1], ..DDL };
    let empty = Subject { empty: true, ..DDL };
    let blocking = Subject { blocking: true, ..DDL };
    let check = |generation, subjects: &[Subject<'_>], expected: &[(i64, Option<Fallback>)]| {
        let got = serial(rules(DependencyTracking::Writeset, generation, 4), subjects);
        let got: Vec<_> = got.into_iter().map(|(parent, _, fallback)| (parent, fallback)).collect();
        assert_eq!(got, expected, "{generation:?} {subjects:?}");
    };
    for generation in [Mysql57, Mysql80, Mysql84] {
        // Independent; the same key; a key from further back.
        check(
            generation,
            &[rows(&[1]), rows(&[2]), rows(&[2]), rows(&[1])],
            &[(0, None), (0, None), (2, None), (1, None)],
        );
        // A DDL follows the one before; all follow the DDL.
        check(
            generation,
            &[rows(&[1]), DDL, rows(&[2]), rows(&[1])],
            &[(0, None), (1, Some(NoWriteSet)), (2, None), (2, None)],
        );
        // Without a key: the commit order's; its other keys are remembered, the history stays.
        check(
            generation,
            &[rows(&[1]), missing, rows(&[3]), rows(&[4])],
            &[(0, None), (1, Some(MissingKeys)), (2, None), (0, None)],
        );
        check(
            generation,
            &[rows(&[1]), referenced, rows(&[2]), rows(&[1])],
            &[(0, None), (1, Some(Referenced)), (2, None), (2, None)],
        );
        // Nothing in it: follows nobody, changes nothing.
        check(generation, &[rows(&[1]), empty, rows(&[1])], &[(0, None), (0, None), (1, None)]);
        // The history is used once more before it is emptied.
        check(
            generation,
            &[rows(&[1, 2]), rows(&[3]), rows(&[1, 4, 5]), rows(&[9])],
            &[(0, None), (0, None), (1, Some(HistoryFull)), (3, None)],
        );
    }
    // One hash twice, as an update of one row gives.
    check(Mysql57, &[rows(&[1, 1]), rows(&[2, 2]), rows(&[3, 3])], &[(0, None), (0, None), (0, None)]);
    check(
        Mysql80,
        &[rows(&[1, 1]), rows(&[2, 2]), rows(&[3, 3]), rows(&[4, 4])],
        &[(0, None), (0, None), (0, None), (0, Some(HistoryFull))],
    );
    // More than a history at once.
    check(Mysql80, &[rows(&[1]), rows(&[9]), rows(&[1, 2, 3, 4, 5])], &[(0, None), (0, None), (1, Some(HistoryFull))]);
    check(Mysql84, &[rows(&[1]), rows(&[9]), rows(&[1, 2, 3, 4, 5])], &[(0, None), (0, None), (2, Some(LargeSet))]);
    let select = Subject { create_select: true, hashes: &[7], ..DDL };
    check(Mysql80, &[rows(&[1]), select], &[(0, None), (0, None)]);
    check(Mysql84, &[rows(&[1]), select], &[(0, None), (1, Some(CreateSelect))]);
    // What comes after a blocking statement follows it at least.
    let parents = |generation| {
        let mut tracker = Tracker::new(rules(DependencyTracking::CommitOrder, generation, 4), 1);
        [(0, rows(&[])), (1, blocking), (1, rows(&[])), (1, rows(&[]))]
            .map(|(parent, subject)| tracker.next(parent, &subject).last_committed)
    };
    assert_eq!(parents(Mysql57), [0, 1, 1, 1]);
    assert_eq!(parents(Mysql84), [0, 1, 2, 2]);
}

#[test]
fn rotation_and_sessions() {
    let mut tracker = Tracker::new(Rules::new(DependencyTracking::WritesetSession), 11);
    let mut next = |rotate: bool, parent: Seq, hash: u64, session: u32| {
        if rotate {
            tracker.rotate();
        }
        let hashes = [hash];
        let tagged = tracker.next(parent, &Subject { hashes: &hashes, session, ..Subject::default() });
        (tagged.last_committed, tagged.sequence_number, tagged.parent)
    };
    assert_eq!(next(false, 10, 1, 7), (0, 1, 10));
    assert_eq!(next(false, 11, 2, 8), (0, 2, 10));
    assert_eq!(next(false, 12, 3, 7), (1, 3, 11));
    // A new log: everything follows its first transaction.
    assert_eq!(next(true, 13, 4, 9), (0, 1, 13));
    assert_eq!(next(false, 14, 5, 0), (1, 2, 14));
    assert_eq!(next(false, 13, 6, 0), (0, 3, 13));
}

fn transaction(seq: Seq, file: &str, tags: Tags) -> Transaction {
    let position = LogPosition::new(file, seq);
    Transaction {
        seq,
        gtid: (tags.commit_id.is_some()).then_some(binlog::gtids::Gtid::MariaDb { domain: 0, server: 1, seq }),
        start: position.clone(),
        end: position,
        tags,
        server_id: 1,
        commit_time_us: 0,
        original_commit_us: 0,
        bytes: 1,
        map_bytes: 0,
        body: Body::Items(Vec::new()),
        rolls_back: true,
        only_changes: false,
        beside_prepared: false,
        unsafe_statements: Vec::new(),
        left_out: Vec::new(),
        refusal: None,
        branch: None,
        session: None,
        source_starts: 0,
        write_set: WriteSet::default(),
        barrier: None,
    }
}

#[test]
fn a_sources_clock_in_our_numbers() {
    let mut clock = SourceClock::default();
    let mut next = |seq, file: &str, last_committed, sequence_number| {
        let tags = Tags { last_committed, sequence_number, ..Tags::default() };
        (clock.next(&transaction(seq, file, tags)), clock.after_gap())
    };
    let known = |seq, gap| (Parent::Known(seq), gap);
    assert_eq!(next(1, "b.1", 0, 1), known(0, true));
    assert_eq!(next(2, "b.1", 0, 2), known(0, false));
    assert_eq!(next(3, "b.1", 1, 3), known(1, false));
    // Filtered: 4 and 5 are missing.
    assert_eq!(next(4, "b.1", 4, 6), known(3, true));
    assert_eq!(next(5, "b.1", 6, 7), known(4, false));
    assert_eq!(next(6, "b.2", 0, 1), known(5, true));
    assert_eq!(next(7, "b.2", 1, 2), known(6, false));
    assert_eq!(next(8, "b.2", 0, 3), known(5, false));
    // Started again in the same file.
    assert_eq!(next(9, "b.2", 0, 1), known(8, true));
    assert_eq!(next(10, "b.2", 0, 0).0, Parent::Untagged);
    let mut clock = SourceClock::default();
    let mut next = |seq, id| clock.next(&transaction(seq, "b.1", Tags { commit_id: Some(id), ..Tags::default() }));
    assert_eq!([next(1, 5), next(2, 5), next(3, 6), next(4, 6)], [0, 0, 2, 2].map(Parent::Known));
}

/// The tags that a tracker writes say the same to a clock that reads them.
fn round_trip(steps: &[(bool, u8, u8)]) {
    let mut tracker = Tracker::new(Rules::new(DependencyTracking::Writeset), 1);
    let mut clock = SourceClock::default();
    let (mut file, mut forgotten) = (1, 0);
    for (seq, &(rotate, hash, back)) in (1..).zip(steps) {
        if rotate {
            file += 1;
            tracker.rotate();
        }
        let tagged = tracker.next((seq - 1_u64).saturating_sub(back.into()), &rows(&[hash.into()]));
        let tags =
            Tags { last_committed: tagged.last_committed, sequence_number: tagged.sequence_number, ..Tags::default() };
        let read = clock.next(&transaction(seq, &format!("b.{file}"), tags));
        // What is forgotten is committed: to follow it is to follow nothing.
        assert_eq!(read, Parent::Known(tagged.parent.max(forgotten)));
        if back == 0 {
            clock.forget_to(tagged.parent);
            forgotten = forgotten.max(tagged.parent);
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(steps in prop::collection::vec((prop::bool::weighted(0.1), 0u8..9, 0u8..4), 1..60)) {
        round_trip(&steps);
    }

    /// Whatever the fallbacks: a transaction follows the last one with a common key, at least through others.
    #[test]
    fn common_keys_are_ordered(
        steps in prop::collection::vec((prop::collection::vec(1u64..9, 0..4), 0u8..12, prop::bool::weighted(0.1)), 1..60),
        history_max in 1usize..12,
        generation in prop_oneof![Just(Generation::Mysql57), Just(Generation::Mysql80), Just(Generation::Mysql84)],
    ) {
        let mut tracker = Tracker::new(rules(DependencyTracking::Writeset, generation, history_max), 1);
        let mut done: Vec<(Seq, &[u64])> = Vec::new();
        for (seq, (hashes, kind, rotate)) in (1..).zip(&steps) {
            if *rotate {
                tracker.rotate();
            }
            let subject = Subject { hashes, referenced: *kind == 1, missing_keys: *kind == 2, unknown: *kind == 3, ..Subject::default() };
            let tagged = tracker.next(seq - 1, &subject);
            prop_assert!(tagged.parent < seq);
            for (other, theirs) in &done {
                let meet = hashes.iter().any(|hash| theirs.contains(hash));
                prop_assert!(!meet || tagged.parent >= *other, "{seq} does not follow {other}");
            }
            done.push((seq, hashes.as_slice()));
        }
    }
}

/// One hash list for each transaction, as keying makes it for a generation.
fn keyed(log: &Log, tables: &[&TestTable], generation: Generation) -> Vec<ServerSet> {
    let mut catalogue = FakeCatalogue::new(tables);
    let mut keying = Keying::new(1).for_tags(generation);
    let mut transactions = log.assemble().unwrap();
    let key = |transaction: &mut Transaction| {
        keying.key(transaction, &mut catalogue).unwrap();
        *transaction.write_set.server.take().unwrap()
    };
    transactions.iter_mut().map(key).collect()
}

#[test]
fn sets_as_the_server_makes_them() {
    let parent = {
        let mut table = TestTable::new(1, "parent", "id:int", &[&[0]]);
        table.def.is_referenced = true;
        table
    };
    let mut child = TestTable::new(2, "child", "id:int p:int? q:int? u:int?", &[&[0], &[3]]);
    let key = |name: &str, columns: &[usize]| crate::schema::ForeignKey {
        name: name.to_owned(),
        columns: columns.to_vec(),
        parent: parent.def.id,
        parent_key: Some(0),
        classes: columns.iter().map(|&column| child.def.columns[column].key_class).collect(),
    };
    child.def.foreign_keys = vec![key("p", &[1, 2])];
    let bare = TestTable::new(3, "bare", "id:int a:int?", &[]);
    let nullable = TestTable::new(4, "nullable", "id:int? a:int?", &[]);
    let null = || crate::testing::Value::Null;
    let mut log = Log::new(Flavour::MySql);
    let row = |id, u| vec![int(id), int(5), int(6), u];
    log.transaction(&[(&parent, insert(vec![int(1)]))]);
    log.transaction(&[(&child, insert(row(1, null())))]);
    log.transaction(&[(&child, update(row(1, null()), row(1, int(9))))]);
    log.transaction(&[(&bare, insert(vec![int(1), int(1)]))]);
    log.transaction(&[(&nullable, insert(vec![int(1), int(1)])), (&parent, insert(vec![int(1)]))]);
    let tables = [&parent, &child, &bare, &nullable];
    let by_key = keyed(&log, &tables, Generation::Mysql84);
    let counts = |sets: &[ServerSet]| {
        sets.iter().map(|set| (set.hashes.len(), set.missing_keys, set.referenced, set.unknown)).collect::<Vec<_>>()
    };
    // Primary key and reference; both images of an update, and the new unique value.
    assert_eq!(
        counts(&by_key),
        [
            (1, false, true, false),
            (2, false, false, false),
            (5, false, false, false),
            (0, true, false, false),
            (1, true, true, false)
        ]
    );
    assert_eq!(by_key[1].hashes, by_key[2].hashes[..2]);
    let by_column = keyed(&log, &tables, Generation::Mysql80);
    assert_eq!(counts(&by_column)[1..3], [(3, false, false, false), (7, false, false, false)]);
}

/// Connections of the source, from the BEGIN of a transaction and from a statement.
#[test]
fn sessions_come_from_the_log() {
    let table = TestTable::new(1, "t", "id:int", &[&[0]]);
    let mut log = Log::new(Flavour::MySql);
    log.transaction(&[(&table, insert(vec![int(1)]))]).gtid().query("CREATE TABLE x (id INT)");
    let sessions: Vec<u32> = log.assemble().unwrap().iter().map(|transaction| transaction.tags.session).collect();
    assert_eq!(sessions, [9, 9]);
}
