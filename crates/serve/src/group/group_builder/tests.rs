use binlog::encode::{self, Head};
use binlog::{Checksum, Event, Kind, MariaDbGtid, MySqlGtid, RowsEvent};

use super::Replica::{Behind, CaughtUp};
use super::*;

const UUID: [u8; 16] = [7; 16];
const LIMITS: Limits = Limits { transactions: 4, bytes: 10_000 };

fn format(flavour: Flavour) -> FormatDescription {
    let version = if flavour == Flavour::MySql { "9.7.0" } else { "10.11.6-MariaDB-log" };
    encode::FormatSpec::new(version, flavour, Checksum::Crc32).describe()
}

fn head() -> Head {
    Head::new(1_700_000_000, 1, Checksum::Crc32).at(1000)
}

/// A body that begins with a table's number and flags, as those of table maps and rows events do.
fn of_table(kind: Kind, number: u64, flags: u16, rest: &[u8]) -> Vec<u8> {
    let mut body = number.to_le_bytes()[..6].to_vec();
    body.extend_from_slice(&flags.to_le_bytes());
    body.extend_from_slice(rest);
    encode::event(kind, &head(), &body)
}

fn map(number: u64, table: &str) -> Vec<u8> {
    let mut names = b"\x01d\0".to_vec();
    names.push(table.len() as u8);
    names.extend_from_slice(table.as_bytes());
    names.extend_from_slice(&[0, 1, 3, 0, 1]);
    of_table(Kind::TABLE_MAP, number, 1, &names)
}

fn rows(kind: Kind, number: u64, flags: u16, rest: &[u8]) -> Vec<u8> {
    of_table(kind, number, flags | RowsEvent::STMT_END, rest)
}

fn gtid(number: u64) -> Vec<u8> {
    waiting(number, number as i64 - 1)
}

fn waiting(number: u64, last_committed: i64) -> Vec<u8> {
    let gtid = MySqlGtid {
        uuid: UUID,
        gno: number,
        last_committed,
        sequence_number: number as i64,
        immediate_commit_timestamp_us: Some(1),
        transaction_length: Some(300),
        immediate_server_version: Some(90_700),
        ..MySqlGtid::default()
    };
    encode::mysql_gtid(&head(), &gtid)
}

fn begin() -> Vec<u8> {
    encode::query(&head(), 5, 0, 0, "d", &[], b"BEGIN")
}

/// A transaction that updates one row.
fn update(number: u64) -> Vec<Vec<u8>> {
    vec![
        gtid(number),
        begin(),
        map(90, "t"),
        rows(Kind::UPDATE_ROWS, 90, 0, &number.to_le_bytes()),
        encode::xid(&head(), number),
    ]
}

fn ddl(number: u64) -> Vec<Vec<u8>> {
    vec![gtid(number), encode::query(&head(), 5, 0, 0, "d", &[], b"CREATE TABLE x (a INT)")]
}

fn gather(flavour: Flavour, first: FirstTransaction) -> GroupBuilder {
    GroupBuilder::new(flavour, format(flavour), LIMITS, first)
}

fn take(gather: &mut GroupBuilder, transactions: &[Vec<Vec<u8>>], replica: Replica) {
    for event in transactions.iter().flatten() {
        gather.event(event, replica).unwrap();
    }
}

fn events(gather: &mut GroupBuilder) -> Vec<Event> {
    let (ready, _) = gather.ready();
    let mut rest = Bytes::from(std::mem::take(ready));
    let mut events = Vec::new();
    while !rest.is_empty() {
        let length = Header::parse(&rest).unwrap().event_len as usize;
        events.push(Event::parse(rest.split_to(length), Checksum::Crc32).unwrap());
    }
    events
}

fn groups(gather: &mut GroupBuilder) -> Vec<Vec<String>> {
    let (_, formed) = gather.ready();
    std::mem::take(formed).iter().map(|group| group.gtids.iter().map(ToString::to_string).collect()).collect()
}

fn names(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.kind().name()).collect()
}

#[test]
fn transactions_become_one_with_the_last_gtid() {
    let mut gather = gather(Flavour::MySql, FirstTransaction::Any);
    take(&mut gather, &[update(11), update(12), update(13)], Behind);
    assert!(events(&mut gather).is_empty(), "held");
    gather.flush().unwrap();
    let sent = events(&mut gather);
    let rows_event = Kind::UPDATE_ROWS.name();
    assert_eq!(names(&sent), ["GTID", "QUERY", "TABLE_MAP", rows_event, rows_event, rows_event, "XID"]);
    let first = MySqlGtid::decode(&sent[0], &format(Flavour::MySql)).unwrap();
    assert_eq!((first.gno, first.last_committed, first.sequence_number), (13, 10, 11));
    let length: usize = sent.iter().map(|event| event.bytes().len()).sum();
    assert_eq!(first.transaction_length, Some(length as u64));
    assert!(sent.iter().all(|event| event.header().log_pos == sent[6].header().log_pos));
    let ends: Vec<bool> = sent[3..6].iter().map(|event| event.body()[6] & 1 == 1).collect();
    assert_eq!(ends, [false, false, true]);
    let rows: Vec<&[u8]> = sent[3..6].iter().map(|event| &event.body()[8..]).collect();
    assert_eq!(rows, [11u64.to_le_bytes(), 12u64.to_le_bytes(), 13u64.to_le_bytes()]);
    assert_eq!(groups(&mut gather), [[11, 12, 13].map(|number| format!("{}:{number}", uuid()))]);
    // Numbers go on behind the group.
    take(&mut gather, &[update(14)], CaughtUp);
    let next = MySqlGtid::decode(&events(&mut gather)[0], &format(Flavour::MySql)).unwrap();
    assert_eq!((next.gno, next.last_committed, next.sequence_number), (14, 11, 12));
}

/// A tag says: all up to there. So who waits for a transaction of its own group waits for all before the group as well.
#[test]
fn a_group_waits_for_all_that_its_members_wait_for() {
    let waits_for = |of_members: [i64; 3]| {
        let mut gather = gather(Flavour::MySql, FirstTransaction::Any);
        let members = (11..).zip(of_members).map(|(number, last_committed)| {
            let mut events = update(number);
            events[0] = waiting(number, last_committed);
            events
        });
        take(&mut gather, &members.collect::<Vec<_>>(), Behind);
        gather.flush().unwrap();
        MySqlGtid::decode(&events(&mut gather)[0], &format(Flavour::MySql)).unwrap().last_committed
    };
    assert_eq!(waits_for([5, 5, 5]), 5);
    assert_eq!(waits_for([5, 8, 2]), 8);
    // The last one waits for 12, with that for 10.
    assert_eq!(waits_for([5, 5, 12]), 10);
    assert_eq!(waits_for([5, 11, 2]), 10);
}

fn uuid() -> String {
    let set: binlog::gtids::GtidSet = {
        let mut set = binlog::gtids::GtidSet::default();
        set.add(&UUID, "", 1);
        set
    };
    set.to_string().split(':').next().unwrap().to_owned()
}

#[test]
fn a_group_has_limits() {
    let mut gather = gather(Flavour::MySql, FirstTransaction::Any);
    take(&mut gather, &(11..=19).map(update).collect::<Vec<_>>(), Behind);
    gather.flush().unwrap();
    assert_eq!(groups(&mut gather).iter().map(Vec::len).collect::<Vec<_>>(), [4, 4]);
    // One that is larger than a group may be: as it is.
    let mut large = update(20);
    large[3] = rows(Kind::UPDATE_ROWS, 90, 0, &vec![1; 20_000]);
    take(&mut gather, &[update(21), large, update(22)], Behind);
    gather.flush().unwrap();
    assert!(groups(&mut gather).is_empty());
    assert_eq!(events(&mut gather).iter().filter(|event| event.kind() == Kind::XID).count(), 3 + 3);
}

#[test]
fn what_is_not_rows_alone_stands_alone() {
    let mut gather = gather(Flavour::MySql, FirstTransaction::Any);
    let mut with_statement = update(13);
    with_statement.insert(2, encode::query(&head(), 5, 0, 0, "d", &[], b"SAVEPOINT a"));
    let mut of_myisam = update(14);
    of_myisam[4] = encode::query(&head(), 5, 0, 0, "d", &[], b"COMMIT");
    let mut other_session = update(17);
    other_session[1] = encode::query(&head(), 5, 0, 0, "d", &[1, 0, 0, 0, 0, 0, 0, 0, 1], b"BEGIN");
    let all = [update(11), update(12), with_statement, of_myisam, ddl(15), update(16), other_session, update(18)];
    take(&mut gather, &all, Behind);
    gather.flush().unwrap();
    assert_eq!(groups(&mut gather).iter().map(Vec::len).collect::<Vec<_>>(), [2]);
    let expected: usize = all[2..].iter().map(Vec::len).sum();
    assert_eq!(events(&mut gather).len(), 6 + expected);
}

#[test]
fn statements_stay_apart_where_a_server_can_not_take_them_as_one() {
    let mut gather = gather(Flavour::MySql, FirstTransaction::Any);
    let one = |number, rest: Vec<Vec<u8>>| {
        let mut events = vec![gtid(number), begin()];
        events.extend(rest);
        events.push(encode::xid(&head(), number));
        events
    };
    let unchecked = RowsEvent::NO_FOREIGN_KEY_CHECKS;
    let all = [
        one(11, vec![map(90, "t"), rows(Kind::WRITE_ROWS, 90, 0, b"a")]),
        one(12, vec![map(91, "u"), rows(Kind::DELETE_ROWS, 91, 0, b"b")]),
        // Other flags, then the same table under another number.
        one(13, vec![map(90, "t"), rows(Kind::WRITE_ROWS, 90, unchecked, b"c")]),
        one(14, vec![map(95, "t"), rows(Kind::WRITE_ROWS, 95, unchecked, b"d")]),
    ];
    take(&mut gather, &all, Behind);
    let kinds = names(&events(&mut gather)).join(" ");
    let (write, delete) = (Kind::WRITE_ROWS.name(), Kind::DELETE_ROWS.name());
    let expected = format!("GTID QUERY TABLE_MAP TABLE_MAP {write} {delete} TABLE_MAP {write} TABLE_MAP {write} XID");
    assert_eq!(kinds, expected);
}

fn of_mariadb(number: u64, kind: Kind) -> Vec<Vec<u8>> {
    flagged(number, kind, MariaDbGtid::FL_ALLOW_PARALLEL | MariaDbGtid::FL_WAITED)
}

fn flagged(number: u64, kind: Kind, flags: u8) -> Vec<Vec<u8>> {
    let gtid = MariaDbGtid {
        domain_id: 0,
        server_id: 1,
        seq_no: number,
        flags: MariaDbGtid::FL_TRANSACTIONAL | flags,
        commit_id: Some(5),
        ..MariaDbGtid::default()
    };
    let (gtid, xid) = (encode::mariadb_gtid(&head(), &gtid), encode::xid(&head(), number));
    vec![gtid, map(90, "t"), rows(kind, 90, 0, b"x"), xid]
}

/// Foreign keys: what was opened for an insertion is not open for a deletion.
#[test]
fn a_mariadb_statement_keeps_its_kind() {
    let mut gather = gather(Flavour::MariaDb, FirstTransaction::Any);
    let (write, delete) = (Kind::WRITE_ROWS_V1, Kind::DELETE_ROWS_V1);
    take(
        &mut gather,
        &[of_mariadb(1, write), of_mariadb(2, write), of_mariadb(3, delete), of_mariadb(4, write)],
        Behind,
    );
    let sent = events(&mut gather);
    let (write, delete) = (write.name(), delete.name());
    let expected = ["MARIADB_GTID", "TABLE_MAP", write, write, "TABLE_MAP", delete, write, "XID"].map(str::to_owned);
    assert_eq!(names(&sent), expected);
    let gtid = MariaDbGtid::decode(&sent[0], &format(Flavour::MariaDb)).unwrap();
    assert_eq!((gtid.seq_no, gtid.commit_id), (4, None));
    assert_eq!(gtid.flags, MariaDbGtid::FL_TRANSACTIONAL | MariaDbGtid::FL_ALLOW_PARALLEL);
}

#[test]
fn one_that_may_not_run_beside_others_speaks_for_its_group() {
    let mut gather = gather(Flavour::MariaDb, FirstTransaction::Any);
    let kind = Kind::WRITE_ROWS_V1;
    take(&mut gather, &[of_mariadb(1, kind), flagged(2, kind, 0), of_mariadb(3, kind), of_mariadb(4, kind)], Behind);
    let sent = events(&mut gather);
    let gtid = MariaDbGtid::decode(&sent[0], &format(Flavour::MariaDb)).unwrap();
    assert_eq!((gtid.seq_no, gtid.flags), (4, MariaDbGtid::FL_TRANSACTIONAL));
}

/// A replica that was cut off counts the events that it has.
#[test]
fn what_may_be_there_in_part_is_sent_again_as_it_was() {
    let all: Vec<_> = (1..=5).map(|number| of_mariadb(number, Kind::UPDATE_ROWS_V1)).collect();
    let first = FirstTransaction::Group { first: "0-1-1".parse().unwrap(), last: "0-1-3".parse().unwrap() };
    let mut again = gather(Flavour::MariaDb, first.clone());
    // Not behind, and not more than before.
    take(&mut again, &all, CaughtUp);
    assert_eq!(groups(&mut again), [["0-1-1", "0-1-2", "0-1-3"]]);
    assert_eq!(events(&mut again).len(), 1 + 1 + 3 + 1 + 2 * 4);

    let mut single = gather(Flavour::MariaDb, FirstTransaction::Single);
    take(&mut single, &all, Behind);
    single.flush().unwrap();
    assert_eq!(groups(&mut single), [["0-1-2", "0-1-3", "0-1-4", "0-1-5"]]);

    let mut elsewhere = gather(Flavour::MariaDb, first.clone());
    take(&mut elsewhere, &all[3..], Behind);
    elsewhere.flush().unwrap();
    assert!(groups(&mut elsewhere).is_empty());

    let mut other = gather(Flavour::MariaDb, first);
    take(&mut other, &all[..1], Behind);
    assert!(other.flush().unwrap_err().to_string().contains("0-1-1 to 0-1-3"));
}

/// It has no clock at a fixed place, and its length depends on its numbers.
#[test]
fn a_gtid_with_a_tag_says_how_long_its_transaction_is() {
    let mut gather = gather(Flavour::MySql, FirstTransaction::Any);
    let tagged = |number: u64| {
        let gtid = MySqlGtid {
            uuid: UUID,
            tag: "t".to_owned(),
            gno: number,
            last_committed: number as i64 - 1,
            sequence_number: number as i64,
            immediate_commit_timestamp_us: Some(1),
            immediate_server_version: Some(90_700),
            ..MySqlGtid::default()
        };
        let mut events = update(number);
        let of_rest: usize = events.iter().skip(1).map(Vec::len).sum();
        for _ in 0..3 {
            let length = Some((events[0].len() + of_rest) as u64);
            events[0] = encode::mysql_gtid(&head(), &MySqlGtid { transaction_length: length, ..gtid.clone() });
        }
        events
    };
    take(&mut gather, &[update(100), update(101), tagged(102), tagged(103)], Behind);
    take(&mut gather, &[tagged(104), ddl(105), tagged(106)], CaughtUp);
    let format = format(Flavour::MySql);
    let (mut lengths, mut said) = (Vec::new(), Vec::new());
    for event in events(&mut gather) {
        if binlog::boundary::is_gtid(event.kind()) {
            let gtid = MySqlGtid::decode(&event, &format).unwrap();
            said.push((gtid.gno, gtid.sequence_number, gtid.transaction_length.unwrap()));
            lengths.push(0);
        }
        *lengths.last_mut().unwrap() += event.bytes().len() as u64;
    }
    let numbers: Vec<_> = said.iter().map(|(number, sequence, _)| (*number, *sequence)).collect();
    assert_eq!(numbers, [(103, 100), (104, 101), (105, 102), (106, 103)]);
    for ((number, _, length), is) in said.iter().zip(&lengths) {
        assert!(*number == 105 || length == is, "{number}: {length}, is {is}");
    }
}

fn of_domain(domain_id: u32, number: u64, table: &str) -> Vec<Vec<u8>> {
    let flags = MariaDbGtid::FL_TRANSACTIONAL | MariaDbGtid::FL_ALLOW_PARALLEL;
    let gtid = MariaDbGtid { domain_id, server_id: 1, seq_no: number, flags, ..MariaDbGtid::default() };
    let (gtid, xid) = (encode::mariadb_gtid(&head(), &gtid), encode::xid(&head(), number));
    vec![gtid, map(90, table), rows(Kind::WRITE_ROWS_V1, 90, 0, &[7; 200]), xid]
}

/// A replica with workers applies each domain by itself: what follows in another domain must not overtake what was only made to end later.
#[test]
fn domains_that_share_a_table_are_not_grouped() {
    let run = |domain, from: u64, table| (from..from + 4).map(move |number| of_domain(domain, number, table));
    let sent = |second: &'static str| {
        let mut gather = gather(Flavour::MariaDb, FirstTransaction::Any).with(Domains::Several);
        // The last ones are so many that enough of the log is known behind the others.
        let all = run(1, 1, "a").chain(run(2, 1, second)).chain((0..20).flat_map(|at| run(2, 10 + 4 * at, "c")));
        take(&mut gather, &all.collect::<Vec<_>>(), Behind);
        let formed = groups(&mut gather);
        (formed.iter().filter(|group| group[0] == "1-1-1").count(), formed.len())
    };
    let (of_first, all) = sent("b");
    assert!(of_first == 1 && all > 5, "{of_first} {all}");
    let (of_first, with_shared) = sent("a");
    assert_eq!((of_first, with_shared), (0, all - 2));
    // A second domain that turns up later.
    let mut gather = gather(Flavour::MariaDb, FirstTransaction::Any);
    take(&mut gather, &run(1, 1, "a").chain([of_domain(1, 9, "a"), of_domain(2, 1, "a")]).collect::<Vec<_>>(), Behind);
    gather.flush().unwrap();
    assert_eq!(groups(&mut gather), [["1-1-1", "1-1-2", "1-1-3", "1-1-4"]]);
}
