use binlog::encode::{self, FormatSpec};
use binlog::{Bitmap, Checksum, Flavour, Header, XaXid};

use super::statements::CONTEXT_MAX;
use super::*;
use crate::intake::selection::{BOOKKEEPING_SCHEMA, Filter, Renames, Rules, Selection};
use crate::intake::tables::MAPS_MAX;
use crate::testing::{Log, TestTable, insert, int, text, update};
use crate::transaction::{BarrierCause, Body};
use bytes::Bytes;

fn table() -> TestTable {
    TestTable::new(1, "t", "id:int v:int", &[&[0]])
}

fn ours() -> TestTable {
    let mut table = TestTable::new(2, "branches", "channel:bin xid:bin", &[&[0, 1]]);
    table.def.schema = BOOKKEEPING_SCHEMA.to_owned();
    table
}

fn one() -> crate::testing::RowChange {
    insert(vec![int(1), int(2)])
}

fn shown(transaction: &Transaction) -> String {
    let item = |item: &Item| match item {
        Item::Rows(rows) => format!("{:?} {}", rows.event.kind, rows.map.table),
        Item::Statement(statement) => String::from_utf8_lossy(&statement.query.sql).into_owned(),
    };
    let gtid = transaction.gtid.as_ref().map(ToString::to_string);
    let gtid = gtid.as_ref().map_or("-", |gtid| gtid.rsplit([':', '-']).next().unwrap());
    let barrier = transaction.barrier.map_or("-", BarrierCause::as_str);
    let items: Vec<String> = transaction.items().iter().map(item).collect();
    let items = if matches!(transaction.body, Body::Spilled { .. }) { "spilled".to_owned() } else { items.join("; ") };
    format!("{gtid} [{barrier}] {items}")
}

fn check(log: &Log, expected: &[&str]) {
    check_with(&mut Assembler::new(1 << 30), log, expected);
}

fn check_with(assembler: &mut Assembler, log: &Log, expected: &[&str]) {
    let transactions = log.assemble_with(assembler).unwrap();
    assert_eq!(transactions.iter().map(shown).collect::<Vec<_>>(), expected);
    assert!(assembler.is_between_transactions());
    // Without gaps: where one ends, or behind it, the next starts.
    for pair in transactions.windows(2) {
        assert!(pair[0].end <= pair[1].start && pair[0].start < pair[0].end);
    }
}

fn check_error(log: &Log, expected: &str) {
    let error = log.assemble().unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

fn format_description(log: &mut Log, created: u32, offset: Option<u64>) {
    let mut spec = FormatSpec::new("8.0.36", Flavour::MySql, Checksum::Crc32);
    spec.created = created;
    let head = encode::Head { offset, ..log.head };
    log.push(encode::format_description(&head, &spec));
    log.format.created = created;
}

#[test]
fn mysql() {
    let t = table();
    let mut log = Log::mysql();
    log.transaction(&[(&t, one()), (&t, one())]);
    log.gtid().query("CREATE TABLE x (a INT)");
    // An empty transaction has its GTID.
    log.begin().query("COMMIT");
    // A table that can not be rolled back.
    log.begin().rows(&t, &[one()]).query("COMMIT");
    log.begin().query("INSERT INTO t VALUES (1,2)").xid();
    log.begin().query("INSERT INTO m VALUES (1,2)").query("ROLLBACK");
    check(
        &log,
        &[
            "1 [-] Write t; Write t",
            "2 [ddl] CREATE TABLE x (a INT)",
            "3 [-] ",
            "4 [-] Write t",
            "5 [statement] INSERT INTO t VALUES (1,2)",
            "6 [statement] INSERT INTO m VALUES (1,2); ROLLBACK",
        ],
    );
}

#[test]
fn mysql_without_gtids() {
    let t = table();
    let mut log = Log::mysql();
    log.query("BEGIN").rows(&t, &[one()]).xid();
    log.query("DROP TABLE x");
    log.query("BEGIN").rows(&t, &[one()]).query("COMMIT");
    let head = log.head;
    log.push(encode::intvar(&head, binlog::intvar::IntVar::InsertId(7))).query("CREATE TABLE y SELECT 1");
    check(&log, &["- [-] Write t", "- [ddl] DROP TABLE x", "- [-] Write t", "- [ddl] CREATE TABLE y SELECT 1"]);
    let last = log.assemble().unwrap().pop().unwrap();
    let Item::Statement(statement) = &last.items()[0] else { panic!("no statement") };
    assert!(matches!(statement.context[..], [Context::InsertId(7)]));
    assert_eq!(last.start, log.events[log.events.len() - 2].1, "its context is part of it");
}

#[test]
fn anonymous() {
    let t = table();
    let mut log = Log::mysql();
    for clock in 1..3 {
        let gtid =
            MySqlGtid { anonymous: true, last_committed: clock - 1, sequence_number: clock, ..MySqlGtid::default() };
        let bytes = encode::mysql_gtid(&log.head, &gtid);
        log.push(bytes).query("BEGIN").rows(&t, &[one()]).xid();
    }
    check(&log, &["- [-] Write t", "- [-] Write t"]);
    let transactions = log.assemble().unwrap();
    assert_eq!((transactions[1].tags.last_committed, transactions[1].tags.sequence_number), (1, 2));
}

fn mariadb_gtid(log: &mut Log, gtid: MariaDbGtid) {
    let bytes = encode::mariadb_gtid(&log.head, &gtid);
    log.push(bytes);
}

#[test]
fn mariadb() {
    let t = table();
    let mut log = Log::new(Flavour::MariaDb);
    log.transaction(&[(&t, one())]);
    let ddl = MariaDbGtid::FL_STANDALONE | MariaDbGtid::FL_DDL;
    mariadb_gtid(&mut log, MariaDbGtid { seq_no: 2, flags: ddl, ..MariaDbGtid::default() });
    log.query("CREATE TABLE x (a INT)");
    // CREATE … SELECT: the statement and the rows.
    mariadb_gtid(&mut log, MariaDbGtid { seq_no: 3, domain_id: 5, commit_id: Some(9), ..MariaDbGtid::default() });
    log.query("CREATE TABLE `y` (a INT)").rows(&t, &[one()]).xid();
    // Tables that can not be rolled back.
    mariadb_gtid(&mut log, MariaDbGtid { seq_no: 4, ..MariaDbGtid::default() });
    log.rows(&t, &[one()]).query("COMMIT");
    check(
        &log,
        &[
            "1 [-] Write t",
            "2 [ddl] CREATE TABLE x (a INT)",
            "3 [ddl] CREATE TABLE `y` (a INT); Write t",
            "4 [-] Write t",
        ],
    );
    let tags = log.assemble().unwrap()[2].tags;
    assert_eq!((tags.domain, tags.commit_id), (5, Some(9)));
}

#[test]
fn mariadb_alter_in_two_phases_happens_where_it_succeeds() {
    let t = table();
    let mut log = Log::new(Flavour::MariaDb);
    let phase = |log: &mut Log, seq_no, flags_extra, sql: &str| {
        let start = (flags_extra != MariaDbGtid::FL_EXTRA_START_ALTER).then_some(2);
        let gtid = MariaDbGtid { seq_no, flags: 41, flags_extra, start_alter_seq_no: start, ..MariaDbGtid::default() };
        mariadb_gtid(log, gtid);
        log.query(sql);
    };
    let alter = "ALTER TABLE t ADD COLUMN x INT";
    phase(&mut log, 2, MariaDbGtid::FL_EXTRA_START_ALTER, alter);
    mariadb_gtid(&mut log, MariaDbGtid { seq_no: 3, flags: 12, ..MariaDbGtid::default() });
    log.rows(&t, &[one()]).xid();
    phase(&mut log, 4, MariaDbGtid::FL_EXTRA_COMMIT_ALTER, alter);
    phase(&mut log, 5, MariaDbGtid::FL_EXTRA_START_ALTER, "ALTER TABLE t a syntax of tomorrow");
    phase(&mut log, 6, MariaDbGtid::FL_EXTRA_ROLLBACK_ALTER, "ALTER TABLE t a syntax of tomorrow");
    check(&log, &["2 [-] ", "3 [-] Write t", "4 [ddl] ALTER TABLE t ADD COLUMN x INT", "5 [-] ", "6 [-] "]);
}

#[test]
fn xa() {
    let t = table();
    let mut log = Log::mysql();
    for one_phase in [true, false] {
        log.gtid().query("XA START X'78',X'',1").rows(&t, &[one()]).query("XA END X'78',X'',1");
        log.xa_prepare("x", one_phase);
    }
    log.gtid().query("XA START X'78',X'',1").rows(&t, &[one()]).query("COMMIT");
    log.gtid().query("XA COMMIT X'78',X'',1");
    log.gtid().query("XA ROLLBACK X'78',X'',1");
    // Another cause that it is alone does not keep the branch.
    for statement in ["INSERT INTO t VALUES (1,2)", "A STATEMENT OF TOMORROW"] {
        log.gtid().query("XA START X'78',X'',1").query(statement).query("XA END X'78',X'',1");
        log.xa_prepare("x", true);
    }
    log.transaction(&[(&t, one())]);
    check(
        &log,
        &[
            "1 [-] Write t",
            "2 [xa] XA START X'78',X'',1; Write t; XA END X'78',X'',1",
            "3 [-] Write t",
            "4 [xa] XA COMMIT X'78',X'',1",
            "5 [xa] XA ROLLBACK X'78',X'',1",
            "6 [statement] INSERT INTO t VALUES (1,2)",
            "7 [unknown] A STATEMENT OF TOMORROW",
            "8 [-] Write t",
        ],
    );
}

#[test]
fn xa_of_mariadb() {
    let t = table();
    let xid = Some(XaXid { format_id: 1, gtrid: Bytes::from_static(b"x"), bqual: Bytes::new() });
    let mut log = Log::new(Flavour::MariaDb);
    let gtid =
        MariaDbGtid { seq_no: 1, flags: MariaDbGtid::FL_PREPARED_XA, xid: xid.clone(), ..MariaDbGtid::default() };
    mariadb_gtid(&mut log, gtid);
    log.rows(&t, &[one()]).query("XA END X'78',X'',1");
    log.xa_prepare("x", false);
    let gtid = MariaDbGtid { seq_no: 2, flags: MariaDbGtid::FL_COMPLETED_XA, xid, ..MariaDbGtid::default() };
    mariadb_gtid(&mut log, gtid);
    log.query("XA COMMIT X'78',X'',1");
    log.transaction(&[(&t, one())]);
    check(&log, &["1 [xa] Write t; XA END X'78',X'',1", "2 [xa] XA COMMIT X'78',X'',1", "1 [-] Write t"]);
}

#[test]
fn savepoints() {
    let t = table();
    let mut log = Log::mysql();
    log.begin().rows(&t, &[one()]).query("SAVEPOINT `s`").rows(&t, &[one()]).xid();
    log.begin().rows(&t, &[one()]).query("SAVEPOINT `s`").rows(&t, &[one()]).query("ROLLBACK TO `s`").xid();
    check(&log, &["1 [-] Write t; Write t", "2 [statement] Write t; SAVEPOINT `s`; Write t; ROLLBACK TO `s`"]);
}

/// MySQL's CREATE … SELECT since 8.0.21.
#[test]
fn create_select() {
    let t = table();
    let mut log = Log::mysql();
    log.begin().query("CREATE TABLE `t` (id INT, v INT) START TRANSACTION").rows(&t, &[one()]).xid();
    check(&log, &["1 [ddl] CREATE TABLE `t` (id INT, v INT) START TRANSACTION; Write t"]);
    // Also when it is large: what comes after it has to see the new definition.
    check_with(&mut Assembler::new(200), &log, &["1 [ddl] spilled"]);
}

/// The events as they stand in a payload: without checksums.
fn payload(log: &mut Log, build: impl FnOnce(&mut Log)) {
    let mut inner = Log::mysql();
    build(&mut inner);
    let mut events = Vec::new();
    for (event, ..) in inner.events.iter().skip(1) {
        let mut bytes = event.without_checksum().to_vec();
        let length = (bytes.len() as u32).to_le_bytes();
        bytes[9..13].copy_from_slice(&length);
        events.extend(bytes);
    }
    let mut body = vec![2, 3, 0xfc, 255, 0]; // algorithm: none
    body.push(1);
    let mut length = Vec::new();
    encode::write_lenenc(&mut length, events.len() as u64);
    encode::write_lenenc_bytes(&mut body, &length);
    body.push(0);
    body.extend(events);
    let bytes = encode::event(Kind::TRANSACTION_PAYLOAD, &log.head, &body);
    log.push(bytes);
}

#[test]
fn payloads() {
    let t = table();
    let mut log = Log::mysql();
    log.gtid();
    payload(&mut log, |inner| {
        inner.query("BEGIN").rows(&t, &[one()]).rows(&t, &[update(vec![int(1), int(2)], vec![int(1), int(3)])]).xid();
    });
    log.transaction(&[(&t, one())]);
    check(&log, &["1 [-] Write t; Update t", "2 [-] Write t"]);
    let mut log = Log::mysql();
    log.gtid();
    payload(&mut log, |inner| {
        inner.query("BEGIN").xid().query("BEGIN");
    });
    check_error(&log, "after the end of a compressed transaction");
}

/// What counts is the memory that a transaction takes, not its bytes in the log.
#[test]
fn compressed_transactions_spill_by_what_they_hold() {
    let t = table();
    let mut log = Log::mysql();
    log.gtid();
    payload(&mut log, |inner| {
        inner.query("BEGIN").rows(&t, &vec![one(); 1000]).xid();
    });
    let plain = log.assemble().unwrap()[0].bytes;
    let mut compressed = Log::mysql();
    compressed.gtid();
    let inside = payload_of_zstd(&log);
    compressed.push(inside);
    let transaction = compressed.assemble().unwrap().remove(0);
    assert!(transaction.bytes >= 9000 && transaction.bytes <= plain, "{} {plain}", transaction.bytes);
    check_with(&mut Assembler::new(5000), &compressed, &["1 [huge] spilled"]);
}

/// Of a large one only an event at a time is there: it is let go of, and read again in pieces, as other transactions are.
#[test]
fn a_compressed_transaction_is_many_pieces() {
    use crate::intake::{Pieces, PlacedEvent};
    let t = table();
    let mut log = Log::mysql();
    log.gtid();
    payload(&mut log, |inner| {
        inner.query("BEGIN");
        (0..4).for_each(|_| _ = inner.rows(&t, &vec![one(); 200_000]));
        inner.xid();
    });
    let packed = payload_of_zstd(&log);
    let mut compressed = Log::mysql();
    compressed.gtid();
    compressed.push(packed);
    let pieces = |limit: u64| {
        let (mut pieces, mut found) = (Pieces::inflating_at_most(limit), Vec::new());
        for (event, start, end) in compressed.events.iter().skip(1) {
            let placed = PlacedEvent { event, format: &compressed.format, start, end };
            pieces.event(placed, |error| error, &mut |items| {
                found.push(items.len());
                Ok(())
            })?;
        }
        Ok::<_, AssembleError>(found)
    };
    assert_eq!(pieces(64 << 20).unwrap(), [3, 1]);
    check_with(&mut Assembler::new(1 << 20), &compressed, &["1 [huge] spilled"]);
    // What does not fit at once is a clear error, before it is there.
    let too_large = |error: &AssembleError| {
        matches!(error, AssembleError::TooLarge { bytes: 1_800_000..2_000_000, limit: 1_048_576, .. })
            && error.to_string().contains("at most 1048576 are held at once")
    };
    let error = pieces(1 << 20).unwrap_err();
    assert!(too_large(&error), "{error}");
    let error = compressed.assemble_with(&mut Assembler::new(1 << 30).inflating_at_most(1 << 20)).unwrap_err();
    assert!(too_large(&error), "{error}");
}

/// The payload event of the log again, compressed.
fn payload_of_zstd(log: &Log) -> Vec<u8> {
    let event = &log.events.last().unwrap().0;
    let payload = TransactionPayload::decode(event, &log.format).unwrap();
    let packed = zstd::encode_all(&payload.payload[..], 3).unwrap();
    let mut body = vec![2, 1, 0, 3];
    let mut length = Vec::new();
    encode::write_lenenc(&mut length, payload.payload.len() as u64);
    encode::write_lenenc_bytes(&mut body, &length);
    body.push(0);
    body.extend(packed);
    encode::event(Kind::TRANSACTION_PAYLOAD, &log.head, &body)
}

fn load_block(log: &mut Log, kind: Kind, file: u32, data: &[u8]) {
    let mut body = file.to_le_bytes().to_vec();
    body.extend(data);
    let bytes = encode::event(kind, &log.head, &body);
    log.push(bytes);
}

fn execute_load(log: &mut Log, file: u32, sql: &str) {
    let mut body = Vec::new();
    body.extend(9_u32.to_le_bytes());
    body.extend(0_u32.to_le_bytes());
    body.push(4);
    body.extend(0_u16.to_le_bytes());
    body.extend(0_u16.to_le_bytes());
    body.extend(file.to_le_bytes());
    let start = sql.find("'f'").unwrap() as u32;
    body.extend(start.to_le_bytes());
    body.extend((start + 3).to_le_bytes());
    body.push(1);
    body.extend(b"shop\0");
    body.extend(sql.bytes());
    let bytes = encode::event(Kind::EXECUTE_LOAD_QUERY, &log.head, &body);
    log.push(bytes);
}

#[test]
fn load_data() {
    const SQL: &str = "LOAD DATA INFILE 'f' INTO TABLE t";
    let mut log = Log::mysql();
    log.begin();
    load_block(&mut log, Kind::BEGIN_LOAD_QUERY, 3, b"1\t2\n");
    load_block(&mut log, Kind::APPEND_BLOCK, 3, b"3\t4\n");
    execute_load(&mut log, 3, SQL);
    log.xid();
    // Outside of a transaction it is one by itself.
    load_block(&mut log, Kind::BEGIN_LOAD_QUERY, 4, b"5\t6\n");
    execute_load(&mut log, 4, SQL);
    log.begin().query("COMMIT");
    check(&log, &[&format!("1 [load_data] {SQL}"), &format!("- [load_data] {SQL}"), "2 [-] "]);
    let transactions = log.assemble().unwrap();
    let Item::Statement(statement) = &transactions[0].items()[0] else { panic!("no statement") };
    let file = statement.file.as_ref().unwrap();
    assert_eq!((file.data.as_slice(), file.duplicates), (&b"1\t2\n3\t4\n"[..], 1));
    assert_eq!(&statement.query.sql[file.name_range.clone()], b"'f'");
    assert_eq!(transactions[1].start, log.events[7].1, "its file is part of it");

    let mut log = Log::mysql();
    log.begin();
    execute_load(&mut log, 3, SQL);
    check_error(&log, "is not in the log");
    let mut log = Log::mysql();
    log.begin();
    load_block(&mut log, Kind::APPEND_BLOCK, 3, b"1");
    check_error(&log, "did not begin");
}

#[test]
fn load_data_of_an_earlier_transaction() {
    const SQL: &str = "LOAD DATA INFILE 'f' INTO TABLE t";
    // It becomes a part of the next one; whose the data are only the statement says.
    let mut log = Log::new(Flavour::MariaDb);
    log.begin();
    load_block(&mut log, Kind::BEGIN_LOAD_QUERY, 3, b"1\t2\n");
    log.query("COMMIT").begin().query("INSERT INTO t VALUES (7)").xid().begin();
    execute_load(&mut log, 3, SQL);
    log.xid().begin();
    execute_load(&mut log, 3, SQL);
    check_error(&log, "is not in the log");
    log.events.truncate(log.events.len() - 2);
    check(&log, &["2 [statement] INSERT INTO t VALUES (7)", &format!("3 [load_data] {SQL}")]);
    let transactions = log.assemble().unwrap();
    assert_eq!(transactions[0].start, log.events[1].1);
    assert_eq!(transactions[1].start, log.events[7].1);
    let Item::Statement(statement) = &transactions[1].items()[0] else { panic!("no statement") };
    assert_eq!(statement.file.as_ref().unwrap().data, b"1\t2\n");

    // With a GTID of a set it stays by itself.
    let mut log = Log::mysql();
    log.begin();
    load_block(&mut log, Kind::BEGIN_LOAD_QUERY, 3, b"1");
    log.query("COMMIT").begin();
    execute_load(&mut log, 3, SQL);
    log.xid();
    check(&log, &["1 [-] ", &format!("2 [load_data] {SQL}")]);
}

#[test]
fn large_transactions_are_let_go() {
    let t = table();
    let mut log = Log::mysql();
    log.begin();
    for _ in 0..20 {
        log.rows(&t, &[one()]);
    }
    log.query("INSERT INTO t VALUES (1,2)");
    let mut taken_back = Log::mysql();
    taken_back.events.clone_from(&log.events);
    log.xid();
    taken_back.query("ROLLBACK");
    for (log, end) in [(&log, false), (&taken_back, true)] {
        let body = &log.assemble_with(&mut Assembler::new(1000)).unwrap()[0].body;
        assert!(matches!(body, Body::Spilled { is_rolled_back, .. } if *is_rolled_back == end), "{body:?}");
    }
    log.transaction(&[(&t, one())]);
    check_with(&mut Assembler::new(1000), &log, &["1 [statement] spilled", "2 [-] Write t"]);
    let rows = |log: &Log| log.assemble_with(&mut Assembler::new(1000)).unwrap()[0].body.spilled_rows();
    assert_eq!(rows(&log), 20, "before and after it is let go of");
    let mut log = Log::mysql();
    log.begin().rows(&t, &vec![one(); 1000]).xid();
    check_with(&mut Assembler::new(1000), &log, &["1 [huge] spilled"]);
    assert_eq!(rows(&log), 1000);
    let bytes: usize = log.events[1..].iter().map(|(event, ..)| event.bytes().len()).sum();
    assert_eq!(log.assemble().unwrap()[0].bytes, bytes as u64);
}

/// A map takes more memory than in the log. It counts for the first transaction that uses it.
#[test]
fn decoded_table_maps_count_once() {
    let (one_table, other) = (table(), TestTable::new(2, "u", "id:int v:int", &[&[0]]));
    let mut log = Log::mysql();
    log.transaction(&[(&one_table, one())]);
    log.transaction(&[(&one_table, one()), (&other, one())]);
    log.transaction(&[(&other, one())]);
    let counted: Vec<u64> = log.assemble().unwrap().iter().map(|transaction| transaction.map_bytes).collect();
    assert!(counted[0] > 2 * 100 && counted[1] == counted[0], "{counted:?}");
    assert_eq!(counted[2], 0);
    let bytes_max = log.assemble().unwrap()[1].bytes + counted[1] - 1;
    check_with(&mut Assembler::new(bytes_max), &log, &["1 [-] Write t", "2 [huge] spilled", "3 [-] Write u"]);
}

#[test]
fn items_can_be_taken_piece_by_piece() {
    let t = table();
    let mut log = Log::mysql();
    log.begin().rows(&t, &[one()]).rows(&t, &[one()]).xid();
    let mut assembler = Assembler::new(u64::MAX);
    let mut taken = 0;
    for (event, start, end) in &log.events {
        if let Some(transaction) = assembler.event(event, &log.format, start, end).unwrap() {
            taken += transaction.items().len();
        }
        taken += assembler.take_items().len();
    }
    assert_eq!(taken, 2);
}

#[test]
fn interrupted_streams() {
    let t = table();
    let mut log = Log::mysql();
    log.begin().rows(&t, &[one()]);
    let mut assembler = Assembler::new(1 << 30);
    assert!(log.assemble_with(&mut assembler).unwrap().is_empty());
    assert!(!assembler.is_between_transactions());
    assembler.restart();
    assert!(assembler.is_between_transactions());
    check_with(&mut assembler, Log::mysql().transaction(&[(&t, one())]), &["1 [-] Write t"]);
}

#[test]
fn the_same_transaction_again() {
    let t = table();
    let mut log = Log::mysql();
    log.begin().rows(&t, &[one()]);
    let again: Vec<_> = log.events[1..3].iter().map(|(event, ..)| event.bytes().to_vec()).collect();
    again.into_iter().for_each(|event| {
        log.push(event);
    });
    log.rows(&t, &[one()]).xid();
    check(&log, &["1 [-] Write t"]);
    check_error(Log::mysql().begin().rows(&t, &[one()]).begin(), "has not ended");
}

/// A server that died has rolled back what it had not finished: its next log says that it is the first since a start.
#[test]
fn logs_that_end_in_a_transaction() {
    let t = table();
    let cut = |created: u32, offset: Option<u64>| {
        let mut log = Log::mysql();
        log.query("BEGIN").rows(&t, &[one()]);
        format_description(&mut log, created, offset);
        log.query("BEGIN").rows(&t, &[one()]).xid();
        log
    };
    check(&cut(1_700_000_000, Some(4)), &["- [-] Write t"]);
    check_error(&cut(0, Some(4)), "a log begins");
    // Made up by a server that goes on in the middle of a file: no log ends here.
    check_error(&cut(1_700_000_000, None), "has not ended");
}

/// Temporary tables end with the server. A file that is only read again, or rotated to, is no start of it.
#[test]
fn starts_of_the_source() {
    let starts = |created: u32, file: Option<&str>| {
        let mut log = Log::mysql();
        log.query("CREATE TABLE x (a INT)");
        let first = log.events.len();
        format_description(&mut log, created, Some(4));
        log.query("CREATE TABLE y (a INT)");
        for (_, start, end) in log.events.iter_mut().skip(first) {
            if let Some(file) = file {
                start.file = Arc::from(file);
                end.file = Arc::from(file);
            }
        }
        log.assemble().unwrap().iter().map(|transaction| transaction.source_starts).collect::<Vec<_>>()
    };
    assert_eq!(starts(1_700_000_000, Some("another.000002")), [0, 1]);
    assert_eq!(starts(0, Some("another.000002")), [0, 0]);
    assert_eq!(starts(1_700_000_000, None), [0, 0]);
}

#[test]
fn what_does_not_belong_together() {
    let t = table();
    check_error(Log::mysql().rows(&t, &[one()]), "outside any transaction");
    check_error(Log::mysql().xid(), "did not begin");
    check_error(Log::mysql().query("BEGIN").rows(&t, &[one()]).query("BEGIN"), "has not ended");
    let full = Bitmap::full(2);
    check_error(Log::mysql().begin().rows_event(&t, &full, &full, 1, &[one()]), "without its table map");
    let wide = TestTable::new(1, "t", "id:int v:int w:int", &[&[0]]);
    let three = Bitmap::full(3);
    let row = insert(vec![int(1), int(2), int(3)]);
    check_error(Log::mysql().begin().map(&t).rows_event(&wide, &three, &three, 1, &[row]), "whose table map has 2");
}

#[test]
fn unknown_events() {
    let mut log = Log::mysql();
    let known = log.head;
    log.push(encode::event(Kind(99), &known.with_flags(Header::FLAG_IGNORABLE), b"what"));
    check(&log, &[]);
    log.push(encode::event(Kind(99), &known, b"what"));
    check_error(&log, "event type 99");
    let mut log = Log::mysql();
    log.push(encode::event(Kind::INCIDENT, &known, &[1, 0, 4, b'l', b'o', b's', b't']));
    check_error(&log, "lost");
}

/// Rows events that only end a statement.
#[test]
fn dummy_rows() {
    let t = table();
    let none = Bitmap::full(0);
    for table_id in [0x00ff_ffff, 0xffff_ffff, 0xffff_ffff_ffff] {
        let mut log = Log::mysql();
        let spec = encode::RowsSpec {
            kind: RowsKind::Write,
            table_id,
            flags: 1,
            version: 2,
            extra: &[],
            before_columns: &none,
            after_columns: &none,
            partial_json: false,
        };
        let dummy = encode::rows(&log.head, &spec, &[]);
        log.begin().rows(&t, &[one()]).push(dummy).xid();
        check(&log, &["1 [-] Write t"]);
    }
}

#[test]
fn bookkeeping_of_a_source_that_is_a_target_is_left_out() {
    let (t, ours) = (table(), ours());
    let mut log = Log::mysql();
    let of_ours = || insert(vec![text("a"), text("b")]);
    log.transaction(&[(&t, one()), (&ours, of_ours())]);
    log.transaction(&[(&ours, of_ours())]);
    log.gtid().query("CREATE TABLE heddle.progress (a INT)");
    log.gtid().query_in("heddle", "DROP TABLE progress");
    log.gtid().query("CREATE DATABASE heddle");
    log.begin().query("UPDATE heddle.progress SET a=1").query("INSERT INTO t VALUES (1,2)").xid();
    check_applied(
        &log,
        &["1 [-] Write t", "2 [-] ", "3 [-] ", "4 [-] ", "5 [-] ", "6 [statement] INSERT INTO t VALUES (1,2)"],
    );
    check_refused(Log::mysql().gtid().query("DROP TABLE heddle.progress, shop.t"), "bookkeeping, and others");
}

#[test]
fn a_part_of_a_source_under_other_names() {
    let (taken, mut left_out) = (table(), TestTable::new(2, "u", "id:int v:int", &[&[0]]));
    left_out.def.schema = "other".to_owned();
    let filter = Filter {
        rules: Rules { only: vec!["shop.t".parse().unwrap()], ..Rules::default() },
        renames: Renames(vec!["shop=x".parse().unwrap()]),
        ..Filter::default()
    };
    let select =
        |spill| Assembler::new(spill).selecting(Selection::applied("heddle").filtered(Some(Arc::new(filter.clone()))));
    let mut log = Log::mysql();
    log.transaction(&[(&taken, one()), (&left_out, one())]);
    log.transaction(&[(&left_out, one())]);
    log.gtid().query_in("shop", "DROP TABLE t, u");
    log.gtid().query_in("shop", "DROP TABLE u");
    log.begin()
        .query("SAVEPOINT a")
        .query_in("shop", "INSERT INTO u VALUES (1,2)")
        .query("ROLLBACK TO SAVEPOINT a")
        .xid();
    log.begin().query_in("shop", "INSERT INTO t SELECT * FROM u").rows(&left_out, &[one()]).xid();
    let expected = ["1 [-] Write t", "2 [-] ", "3 [ddl] DROP TABLE t", "4 [-] ", "5 [-] ", "6 [-] "];
    check_with(&mut select(1 << 30), &log, &expected);
    let transactions = log.assemble_with(&mut select(1 << 30)).unwrap();
    let [Item::Rows(rows)] = transactions[0].items() else { panic!() };
    let renamed = (rows.map.schema.as_str(), rows.map.table.as_str());
    assert_eq!(renamed, ("x", "t"));
    assert!(rows.map.raw.windows(3).any(|bytes| bytes == b"\x01x\0"), "also as it is encoded for a target");
    assert!(transactions[3].left_out[0].contains("DROP TABLE u") && transactions[2].left_out.is_empty());
    let refused: Vec<bool> = transactions.iter().map(|transaction| transaction.refusal.is_some()).collect();
    assert_eq!(refused, [false, false, false, false, false, true]);
    // Rows that are left out need no memory.
    let mut large = Log::mysql();
    large.begin();
    for _ in 0..200 {
        large.rows(&left_out, &[one()]);
    }
    large.xid();
    check_with(&mut select(2000), &large, &["1 [-] "]);
}

#[test]
fn what_is_not_heddles_in_the_schema_of_its_own_is_refused() {
    let mut theirs = TestTable::new(2, "orders", "id:int v:int", &[&[0]]);
    theirs.def.schema = BOOKKEEPING_SCHEMA.to_owned();
    for name in ["orders", "progress"] {
        theirs.def.name = name.to_owned();
        for schema in ["heddle", "HEDDLE"] {
            theirs.def.schema = schema.to_owned();
            let mut log = Log::mysql();
            log.transaction(&[(&theirs, one())]);
            check_refused(&log, &format!("{schema}.{name}, which is not heddle's own"));
            // In another schema than Heddle's own, and where nothing is applied, it is a table as any.
            check(&log, &[&format!("1 [-] Write {name}")]);
            let mut other = Assembler::new(1 << 30).selecting(Selection::applied("books"));
            check_with(&mut other, &log, &[&format!("1 [-] Write {name}")]);
        }
    }
    for sql in [
        "CREATE TABLE heddle.orders (a INT)",
        "INSERT INTO Heddle.orders VALUES (1)",
        "CREATE TRIGGER heddle.x BEFORE UPDATE ON heddle.progress FOR EACH ROW SET NEW.seq=1",
        "CREATE FUNCTION heddle.f() RETURNS INT RETURN 1",
        "DROP VIEW shop.v, heddle.v",
    ] {
        check_refused(Log::mysql().gtid().query(sql), "is not heddle's own");
    }
}

#[test]
fn positions_of_the_sources_own_replication_are_left_out() {
    for name in ["gtid_slave_pos", "gtid_slave_pos_InnoDB", "slave_relay_log_info"] {
        let mut positions = TestTable::new(2, name, "id:int v:int", &[&[0]]);
        positions.def.schema = "mysql".to_owned();
        let mut log = Log::mysql();
        log.transaction(&[(&positions, one()), (&table(), one())]);
        log.begin().query(&format!("DELETE FROM mysql.{name}")).query("INSERT INTO t VALUES (1,2)").xid();
        check_applied(&log, &["1 [-] Write t", "2 [statement] INSERT INTO t VALUES (1,2)"]);
    }
}

fn applied() -> Assembler {
    Assembler::new(1 << 30).selecting(Selection::applied(BOOKKEEPING_SCHEMA))
}

fn check_applied(log: &Log, expected: &[&str]) {
    check_with(&mut applied(), log, expected);
}

fn check_refused(log: &Log, expected: &str) {
    let error = log.assemble_with(&mut applied()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn the_context_of_a_statement() {
    let mut log = Log::mysql();
    let head = log.head;
    log.begin();
    log.push(encode::intvar(&head, binlog::intvar::IntVar::LastInsertId(3)));
    log.push(encode::intvar(&head, binlog::intvar::IntVar::InsertId(4)));
    log.query("INSERT INTO t VALUES (1,2)").query("INSERT INTO t VALUES (3,4)").xid();
    let transaction = log.assemble().unwrap().remove(0);
    let context = |index: usize| match &transaction.items()[index] {
        Item::Statement(statement) => &statement.context,
        Item::Rows(_) => panic!("rows"),
    };
    assert!(matches!(context(0)[..], [Context::LastInsertId(3), Context::InsertId(4)]));
    assert!(context(1).is_empty());
    let mut log = Log::mysql();
    log.begin();
    for _ in 0..=CONTEXT_MAX {
        log.push(encode::intvar(&head, binlog::intvar::IntVar::InsertId(4)));
    }
    check_error(&log, "variables for one statement");
}

/// A table map that was announced is there for the rows that follow, however many tables there are.
#[test]
fn very_many_tables() {
    let mut log = Log::mysql();
    let tables: Vec<TestTable> =
        (0..MAPS_MAX as u32 + 50).map(|id| TestTable::new(id, &format!("t{id}"), "id:int", &[&[0]])).collect();
    let full = Bitmap::full(1);
    for pair in tables.chunks(2) {
        log.begin().map(&pair[0]).map(&pair[1]);
        log.rows_event(&pair[0], &full, &full, 0, &[insert(vec![int(1)])]);
        log.rows_event(&pair[1], &full, &full, 1, &[insert(vec![int(1)])]).xid();
    }
    let mut assembler = Assembler::new(1 << 30);
    assert_eq!(log.assemble_with(&mut assembler).unwrap().len(), tables.len().div_ceil(2));
    assert!(assembler.tables.remembered() <= MAPS_MAX);
}

/// A new log gives its own numbers to tables.
#[test]
fn table_numbers_of_another_log() {
    let t = table();
    let mut other = table();
    other.def.name = "other".to_owned();
    let mut log = Log::mysql();
    log.transaction(&[(&t, one())]);
    format_description(&mut log, 0, Some(4));
    log.transaction(&[(&other, one())]);
    log.transaction(&[(&t, one())]);
    check(&log, &["1 [-] Write t", "2 [-] Write other", "3 [-] Write t"]);
}

/// Without a GTID an XID event does not say that everything could have been rolled back.
#[test]
fn statements_that_take_others() {
    let of = |log: &Log| -> Vec<bool> { log.assemble().unwrap().iter().map(Transaction::takes_others).collect() };
    let mut log = Log::mysql();
    log.begin().query("UPDATE t SET v = 1").xid();
    log.begin().query("UPDATE t SET v = 1").query("SAVEPOINT s").query("ROLLBACK TO s").xid();
    log.begin().query("UPDATE t SET v = 1").query("COMMIT");
    log.begin().query("UPDATE t, u SET t.v = 1, u.v = 2").xid();
    log.query("BEGIN").query("UPDATE t SET v = 1").xid();
    log.begin().query("SELECT f()").xid();
    log.begin().query("DELETE FROM t Returning v").xid();
    log.transaction(&[(&table(), one())]);
    assert_eq!(of(&log), [true, true, false, false, false, false, false, false]);
    let mut log = Log::new(Flavour::MariaDb);
    for (seq_no, flags) in [(1, MariaDbGtid::FL_TRANSACTIONAL), (2, 0)] {
        mariadb_gtid(&mut log, MariaDbGtid { seq_no, flags, ..MariaDbGtid::default() });
        log.query("UPDATE t SET v = 1").xid();
    }
    assert_eq!(of(&log), [true, false]);
}
