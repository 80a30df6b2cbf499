use std::collections::BTreeSet;

use binlog::encode;
use binlog::{HEADER_LEN, MySqlGtid};
use proptest::prelude::*;

use super::*;
use crate::definition_change::DefinitionChange;
use crate::sql::{ObjectName, SqlMode};
use crate::survey::Definitions;
use crate::testing::{Log, RowChange, TestTable, insert, int, update};

const OPTIONS: Options =
    Options { keys_max: 1_000, keep_session_order: false, explain: true, transaction_bytes_max: 1 << 20 };

fn table() -> TestTable {
    TestTable::new(1, "t", "id:int u:int", &[&[0], &[1]])
}

fn definitions() -> Definitions {
    let mut definitions = Definitions::default();
    let sql = b"CREATE TABLE t (id INT NOT NULL, u INT NOT NULL, PRIMARY KEY (id), UNIQUE (u)) ENGINE=InnoDB";
    assert!(definitions.execute(sql, "shop", SqlMode::default()));
    definitions
}

/// A GTID event with these tags.
fn tagged(log: &mut Log, last_committed: i64, sequence_number: i64) -> &mut Log {
    let gtid = MySqlGtid {
        uuid: [7; 16],
        gno: sequence_number as u64,
        last_committed,
        sequence_number,
        ..MySqlGtid::default()
    };
    let bytes = encode::mysql_gtid(&log.head, &gtid);
    log.push(bytes)
}

/// As a source tags that commits one by one.
fn serial(log: &mut Log, number: i64) -> &mut Log {
    tagged(log, number - 1, number)
}

fn row(id: i32) -> RowChange {
    insert(vec![int(id), int(1_000 + id)])
}

fn change(log: &mut Log, change: RowChange) {
    log.query("BEGIN").rows(&table(), &[change]).xid();
}

fn tags_of(log: &Log, tagger: &mut Tagger) -> Vec<NewTag> {
    let tag = |(event, start, end): &_| tagger.event(event, &log.format, start, end).unwrap();
    log.events.iter().filter_map(tag).collect()
}

/// The source's `last_committed`, and the new one.
fn clock(tag: &NewTag) -> (i64, i64) {
    let Tag::LogicalClock { source, last_committed, .. } = tag.tag else { panic!("{tag:?}") };
    (source.expect("tagged"), last_committed)
}

/// (new `last_committed`, why)
fn told(log: &Log, tagger: &mut Tagger) -> Vec<(i64, &'static str)> {
    tags_of(log, tagger).iter().map(|tag| (clock(tag).1, tag.cause.as_str())).collect()
}

fn new() -> Tagger {
    Tagger::new(OPTIONS, definitions(), &[])
}

#[test]
fn only_common_keys_are_waited_for() {
    let mut log = Log::mysql();
    for (number, id) in (1..).zip([1, 2, 3, 2]) {
        change(serial(&mut log, number), row(id));
    }
    // Its old second key is what the fourth inserted.
    change(serial(&mut log, 5), update(vec![int(9), int(1_002)], vec![int(9), int(7)]));
    let tags = tags_of(&log, &mut new());
    let new: Vec<i64> = tags.iter().map(|tag| clock(tag).1).collect();
    assert_eq!(new, [0, 1, 1, 2, 4]);
    assert_eq!(tags[3].why.as_deref(), Some("shop.t id=2"));
    assert!(tags.iter().map(clock).all(|(source, new)| new <= source.max(1)));
    assert_eq!(
        tags[1].gtid_at,
        log.events.iter().filter(|event| event.0.kind().name() == "GTID").nth(1).unwrap().1.offset
    );
}

/// MySQL 5.6 gives no tags: they are counted, as by a source that commits one by one.
#[test]
fn a_log_without_tags_gets_some() {
    let mut log = Log::mysql();
    for (gno, id) in (10..).zip([1, 2, 3, 2]) {
        let gtid = MySqlGtid { uuid: [7; 16], gno, ..MySqlGtid::default() };
        let mut bytes = encode::mysql_gtid(&log.head, &gtid);
        let sum = log.head.checksum;
        bytes.truncate(HEADER_LEN + 25);
        bytes.resize(HEADER_LEN + 25 + sum.len(), 0);
        let length = bytes.len() as u32;
        bytes[9..13].copy_from_slice(&length.to_le_bytes());
        binlog::patch::fix_checksum(&mut bytes, sum);
        change(log.push(bytes), row(id));
    }
    let tags = tags_of(&log, &mut new());
    let expected = [(1, 0), (2, 1), (3, 1), (4, 2)];
    let made = expected.map(|(sequence_number, last_committed)| Tag::LogicalClock {
        sequence_number,
        source: None,
        last_committed,
    });
    assert_eq!(tags.iter().map(|tag| tag.tag).collect::<Vec<_>>(), made);
    assert!(tags.iter().all(NewTag::is_changed));
}

/// GTIDs with tags of their own are written with integers as short as can be.
#[test]
fn a_new_tag_has_to_fit() {
    let mut log = Log::mysql();
    for number in 1..=80 {
        // A source says 0 of what ran before anything of the file had committed.
        let last_committed = if number == 80 { 0 } else { number - 1 };
        let gtid = MySqlGtid {
            uuid: [7; 16],
            tag: "app".to_owned(),
            gno: number as u64,
            last_committed,
            sequence_number: number,
            ..MySqlGtid::default()
        };
        let bytes = encode::mysql_gtid(&log.head, &gtid);
        let id = if number >= 79 { 78 } else { number as i32 };
        change(log.push(bytes), row(id));
    }
    let tags = tags_of(&log, &mut new());
    let last: Vec<_> = tags.iter().skip(76).map(|tag| (clock(tag), tag.cause.as_str())).collect();
    let expected = [((76, 1), "file_begins"), ((77, 1), "file_begins"), ((78, 78), "key"), ((0, 0), "source")];
    assert_eq!(last, expected);
}

#[test]
fn the_sources_tag_counts_where_it_is_lower() {
    let mut log = Log::mysql();
    change(tagged(&mut log, 0, 1), row(1));
    change(tagged(&mut log, 1, 2), row(2));
    // A source says 0 of what ran before anything of the file had committed: appliers wait for all there, and do not for 1.
    change(tagged(&mut log, 0, 3), row(3));
    // As if the source knew better.
    change(tagged(&mut log, 1, 4), row(2));
    assert_eq!(told(&log, &mut new()), [(0, "file_begins"), (1, "file_begins"), (1, "file_begins"), (1, "source")]);
}

#[test]
fn nothing_runs_beside_a_definition() {
    let mut log = Log::mysql();
    change(serial(&mut log, 1), row(1));
    change(serial(&mut log, 2), row(2));
    serial(&mut log, 3).query("CREATE TABLE other (id INT)");
    change(serial(&mut log, 4), row(3));
    change(serial(&mut log, 5), row(4));
    let expected = [(0, "file_begins"), (1, "file_begins"), (2, "ddl"), (3, "after_barrier"), (3, "after_barrier")];
    assert_eq!(told(&log, &mut new()), expected);
}

#[test]
fn what_is_not_known_keeps_its_tag() {
    let mut log = Log::mysql();
    let other = TestTable::new(2, "other", "id:int u:int", &[&[0], &[1]]);
    change(serial(&mut log, 1), row(1));
    change(serial(&mut log, 2), row(2));
    serial(&mut log, 3).query("BEGIN").rows(&other, &[row(3)]).xid();
    change(serial(&mut log, 4), row(4));
    let tags = tags_of(&log, &mut new());
    assert_eq!(told(&log, &mut new())[2..], [(2, "unknown_table"), (3, "after_barrier")]);
    assert_eq!(tags[2].why.as_deref(), Some("shop.other"));
}

/// A table without transactions: the source ends with COMMIT, not with an XID event.
#[test]
fn an_end_without_xid_is_not_known() {
    let mut log = Log::mysql();
    change(serial(&mut log, 1), row(1));
    change(serial(&mut log, 2), row(2));
    serial(&mut log, 3).query("BEGIN").rows(&table(), &[row(3)]).query("COMMIT");
    serial(&mut log, 4).query("BEGIN").query("COMMIT");
    assert_eq!(told(&log, &mut new())[2..], [(2, "unknown_table"), (3, "after_barrier")]);
}

#[test]
fn definitions_of_another_time_do_not_count() {
    let names = vec![ObjectName::new("shop", "T")];
    let later = [DefinitionChange::Tables { names, schemas: Vec::new(), relations: false }];
    let mut log = Log::mysql();
    for number in 1..=3 {
        change(serial(&mut log, number), row(number as i32));
    }
    let mut tagger = Tagger::new(OPTIONS, definitions(), &later);
    assert_eq!(told(&log, &mut tagger)[1..], [(1, "unknown_table"), (2, "unknown_table")]);
    // Behind a statement that says all of it.
    serial(&mut log, 4).query("DROP TABLE t");
    serial(&mut log, 5).query("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, u INT NOT NULL, UNIQUE (u)) ENGINE=InnoDB");
    change(serial(&mut log, 6), row(6));
    change(serial(&mut log, 7), row(7));
    let mut tagger = Tagger::new(OPTIONS, definitions(), &later);
    assert_eq!(told(&log, &mut tagger)[5..], [(5, "after_barrier"), (5, "after_barrier")]);
}

/// Definitions that are read while the log goes on count from the end of the reading on, but for what DDL changed beside it.
#[test]
fn definitions_that_were_read_meanwhile() {
    let mut log = Log::mysql();
    let place = |log: &Log| log.events.last().unwrap().2.clone();
    change(serial(&mut log, 1), row(1));
    change(serial(&mut log, 2), row(2));
    let before_ddl = place(&log);
    serial(&mut log, 3).query("ALTER TABLE t ENGINE=InnoDB");
    let behind_ddl = place(&log);
    change(serial(&mut log, 4), row(4));
    let end = place(&log);
    change(serial(&mut log, 5), row(5));
    change(serial(&mut log, 6), row(6));
    let causes = |from: &binlog::LogPosition, to: &binlog::LogPosition, expect: bool| -> Vec<&'static str> {
        let mut tagger = Tagger::new(OPTIONS, Definitions::default(), &[]);
        if expect {
            tagger.expect_definitions();
        }
        tagger.take_definitions(ReadDefinitions { definitions: definitions(), from: from.clone(), to: to.clone() });
        told(&log, &mut tagger).into_iter().map(|(_, cause)| cause).collect()
    };
    let unknown = "unknown_table";
    assert_eq!(causes(&behind_ddl, &end, true)[3..], [unknown, "after_barrier", "after_barrier"]);
    assert_eq!(causes(&behind_ddl, &behind_ddl, true)[3..], ["after_barrier", "after_barrier", "after_barrier"]);
    assert_eq!(causes(&before_ddl, &end, true)[3..], [unknown, unknown, unknown]);
    assert_eq!(causes(&behind_ddl, &end, false)[3..], [unknown, unknown, unknown]);
    assert_eq!(causes(&before_ddl, &before_ddl, true)[1..4], [unknown, "ddl", "after_barrier"]);
}

/// A table that was read, and that a statement then changes in a way that is not understood, is not known by what was read.
#[test]
fn what_is_not_understood_is_not_known() {
    for statement in ["ALTER TABLE t ADD u INT", "ALTER TABLE T ADD UNIQUE (u)", "CREATE TABLE T (id INT PRIMARY KEY)"]
    {
        let mut log = Log::mysql();
        change(serial(&mut log, 1), row(1));
        serial(&mut log, 2).query(statement);
        change(serial(&mut log, 3), row(3));
        let mut tagger = Tagger::new(OPTIONS, definitions().given(), &[]);
        assert_eq!(told(&log, &mut tagger)[2], (2, "unknown_table"), "{statement}");
    }
}

#[test]
fn definitions_follow_the_log() {
    let mut log = Log::mysql();
    change(serial(&mut log, 1), row(1));
    serial(&mut log, 2).query("ALTER TABLE t DROP INDEX u");
    // The same values of what was a unique key.
    change(serial(&mut log, 3), row(1));
    change(serial(&mut log, 4), insert(vec![int(5), int(1_001)]));
    let expected = [(0, "file_begins"), (1, "ddl"), (2, "after_barrier"), (2, "after_barrier")];
    assert_eq!(told(&log, &mut new()), expected);
}

#[test]
fn gaps_in_the_numbers_stay_barriers() {
    let mut log = Log::mysql();
    change(serial(&mut log, 1), row(1));
    change(serial(&mut log, 2), row(2));
    change(serial(&mut log, 7), row(3));
    change(serial(&mut log, 8), row(1));
    change(serial(&mut log, 9), row(3));
    let expected = [(0, "file_begins"), (1, "file_begins"), (6, "gap"), (7, "key"), (7, "key")];
    assert_eq!(told(&log, &mut new()), expected);
}

/// No server writes such; a forged log may have them.
#[test]
fn numbers_at_their_end() {
    let mut log = Log::mysql();
    change(serial(&mut log, i64::MAX - 1), row(1));
    change(serial(&mut log, i64::MAX), row(1));
    change(serial(&mut log, i64::MIN + 1), row(2));
    let told = told(&log, &mut new());
    assert_eq!(told[1..], [(i64::MAX - 1, "key"), (i64::MIN, "gap")]);
}

#[test]
fn another_file_begins_anew() {
    let mut tagger = new();
    for file in ["binlog.000001", "binlog.000002"] {
        let mut log = Log::mysql();
        for number in 1..=3 {
            change(serial(&mut log, number), row(number as i32));
        }
        for (_, start, end) in &mut log.events {
            (start.file, end.file) = (file.into(), file.into());
        }
        assert_eq!(told(&log, &mut tagger), [(0, "file_begins"), (1, "file_begins"), (1, "file_begins")], "{file}");
    }
}

#[test]
fn sessions_keep_their_order_if_asked() {
    let mut log = Log::mysql();
    for number in 1..=3 {
        // All of session 9, as the log's statements say.
        change(serial(&mut log, number), row(number as i32));
    }
    let mut tagger = Tagger::new(Options { keep_session_order: true, ..OPTIONS }, definitions(), &[]);
    assert_eq!(told(&log, &mut tagger), [(0, "file_begins"), (1, "session"), (2, "session")]);
}

/// For each transaction the last before it that has a common key; 0: none.
fn exact(keys: &[BTreeSet<i32>]) -> Vec<i64> {
    let last = |at: usize| (0..at).rev().find(|&before| !keys[before].is_disjoint(&keys[at]));
    (0..keys.len()).map(|at| last(at).map_or(0, |before| before as i64 + 1)).collect()
}

/// The first transaction that may run beside one which it must follow.
fn wrong(keys: &[BTreeSet<i32>], tags: &[i64]) -> Option<usize> {
    (0..keys.len()).find(|&at| tags[at] < exact(keys)[at])
}

fn tags_for(transactions: &[BTreeSet<i32>], keys_max: usize) -> (Vec<i64>, u64) {
    let mut log = Log::mysql();
    for (number, keys) in (1..).zip(transactions) {
        serial(&mut log, number).query("BEGIN");
        for key in keys {
            log.rows(&table(), &[row(*key)]);
        }
        log.xid();
    }
    let mut tagger = Tagger::new(Options { keys_max, ..OPTIONS }, definitions(), &[]);
    let tags = tags_of(&log, &mut tagger).iter().map(|tag| clock(tag).1).collect();
    (tags, tagger.forgotten())
}

proptest! {
    #[test]
    fn exact_and_as_low_as_can_be(transactions in prop::collection::vec(prop::collection::btree_set(0..40_i32, 1..4), 1..60)) {
        let (tags, forgotten) = tags_for(&transactions, 1_000);
        prop_assert_eq!(forgotten, 0);
        let expected: Vec<i64> = exact(&transactions).iter().enumerate().map(|(at, &tag)| if at == 0 { 0 } else { tag.max(1) }).collect();
        prop_assert_eq!(tags, expected);
    }

    #[test]
    fn what_is_forgotten_is_followed(transactions in prop::collection::vec(prop::collection::btree_set(0..40_i32, 1..4), 1..60), keys_max in 4..30_usize) {
        let (tags, _) = tags_for(&transactions, keys_max);
        prop_assert_eq!(wrong(&transactions, &tags), None);
        prop_assert!(tags.iter().enumerate().all(|(at, &tag)| tag <= at as i64), "never above the source's: {:?}", tags);
    }
}

/// The check above sees a tag that is too low by one.
#[test]
fn a_wrong_tag_is_seen() {
    let transactions: Vec<BTreeSet<i32>> =
        [vec![1], vec![2], vec![2], vec![1]].into_iter().map(BTreeSet::from_iter).collect();
    let (mut tags, _) = tags_for(&transactions, 1_000);
    assert_eq!((tags.as_slice(), wrong(&transactions, &tags)), ([0, 1, 2, 1].as_slice(), None));
    tags[2] -= 1;
    assert_eq!(wrong(&transactions, &tags), Some(2));
}
