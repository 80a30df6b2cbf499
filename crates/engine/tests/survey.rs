//! Logs that real servers wrote, read for what they say: whatever [`engine::intake`] makes of them is found here, too.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unreachable,
    clippy::unwrap_used,
    reason = "a test"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlog::LogPosition;
use binlog::encode::{self, FormatSpec, Head, RowsSpec, TableMapSpec};
use binlog::{Bitmap, Checksum, Column, ColumnKind, Flavour, Framer, Kind, MySqlGtid, RowsKind, Step};
use engine::intake::Assembler;
use engine::survey::totals::Costs;
use engine::survey::{Cause, Cut, Cutter, Definitions, Depth, Piece, Problem, Totals, scan};
use engine::transaction::{BarrierCause, Item, Tags, Transaction};

fn logs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../binlog/tests/golden");
    let servers = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let files = servers.flat_map(|server| std::fs::read_dir(server).unwrap().map(|entry| entry.unwrap().path()));
    let mut logs: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|ext| ext == "binlog")).collect();
    logs.sort();
    assert!(logs.len() > 10, "golden files are missing");
    logs
}

fn assembled(bytes: &[u8]) -> Vec<Transaction> {
    let mut framer = Framer::new();
    framer.push(bytes.to_vec().into());
    let mut assembler = Assembler::new(1 << 30);
    let mut transactions = Vec::new();
    while let Step::Event { event, offset } = framer.next() {
        let format = framer.format().unwrap().clone();
        let (start, end) =
            (LogPosition::new("f.000001", offset), LogPosition::new("f.000001", offset + event.bytes().len() as u64));
        transactions.extend(assembler.event(&event, &format, &start, &end).unwrap());
    }
    transactions
}

/// Pieces of a file that arrives in chunks of `chunk` bytes, and what is wrong with it.
fn cut(bytes: &[u8], chunk: usize) -> (Vec<Piece>, Vec<Problem>) {
    let mut cutter = Cutter::new(Arc::new(Definitions::default()));
    let (mut pieces, mut problems, mut at) = (Vec::new(), Vec::new(), 0);
    loop {
        match cutter.next() {
            Cut::Piece(piece) => pieces.push(piece),
            Cut::NeedMore(_) if at < bytes.len() => {
                let end = (at + chunk).min(bytes.len());
                cutter.buffer().extend_from_slice(&bytes[at..end]);
                at = end;
            }
            Cut::NeedMore(_) => {
                let (piece, problem) = cutter.finish();
                pieces.extend(piece);
                problems.extend(problem);
                return (pieces, problems);
            }
            Cut::Skip { bytes, .. } => at += bytes as usize,
            Cut::Failed(problem) => {
                problems.push(problem);
                return (pieces, problems);
            }
        }
    }
}

fn sums(bytes: &[u8], chunk: usize, depth: Depth) -> (Totals, Vec<Problem>) {
    let (pieces, mut problems) = cut(bytes, chunk);
    let mut totals = Totals::new(depth, Costs::default());
    totals.begin_file(0, &"f.000001".into(), false);
    for piece in &pieces {
        let scanned = scan(piece, depth);
        problems.extend(scanned.problems.iter().cloned());
        totals.add(&scanned, None);
    }
    totals.finish();
    (totals, problems)
}

#[test]
fn what_the_assembler_finds_is_found() {
    for log in logs() {
        let bytes = std::fs::read(&log).unwrap();
        let (pieces, problems) = cut(&bytes, 777);
        assert_eq!(problems, [], "{}", log.display());
        let records: Vec<_> = pieces
            .iter()
            .flat_map(|piece| {
                let scanned = scan(piece, Depth::Keys);
                assert_eq!(scanned.problems, [], "{}", log.display());
                scanned.records
            })
            .collect();
        let transactions = assembled(&bytes);
        assert_eq!(records.len(), transactions.len(), "{}", log.display());
        for (record, transaction) in records.iter().zip(&transactions) {
            let place = format!("{} at {}", log.display(), transaction.start);
            assert_eq!((record.start, record.end), (transaction.start.offset, transaction.end.offset), "{place}");
            assert_eq!(record.gtid, transaction.gtid, "{place}");
            // The assembler does not look at the session of statements inside a MariaDB transaction.
            let session = transaction.tags.session.max(record.tags.session);
            assert_eq!(record.tags, Tags { session, ..transaction.tags }, "{place}");
            assert!([0, session].contains(&transaction.tags.session), "{place}");
            let rows: usize = transaction
                .items()
                .iter()
                .map(|item| match item {
                    Item::Rows(rows) => rows.event.images(&rows.map).map(Result::unwrap).count(),
                    Item::Statement(_) => 0,
                })
                .sum();
            assert_eq!(record.rows(), rows as u64, "{place}");
            // ROLLBACK TO SAVEPOINT alone makes no barrier here: what it undid is not in the log, or counts as changed.
            let undone = matches!(transaction.barrier, Some(BarrierCause::Statement)) && rows > 0;
            // The assembler does not know engines.
            let kept = record.barrier == Some(Cause::NonTransactional);
            assert!(undone || kept || record.barrier.is_some() == transaction.barrier.is_some(), "{place}");
        }
    }
}

#[test]
fn how_it_arrives_does_not_matter() {
    for log in logs() {
        let bytes = std::fs::read(&log).unwrap();
        let look = |chunk| {
            let (mut totals, problems) = sums(&bytes, chunk, Depth::Keys);
            let exact = totals.exact.totals().clone();
            (
                totals.transactions,
                totals.traffic,
                totals.events,
                totals.source,
                exact.levels,
                exact.critical_us,
                problems,
            )
        };
        let whole = look(1 << 20);
        assert_eq!(whole, look(1), "{}", log.display());
        assert_eq!(whole, look(4096), "{}", log.display());
        let (quick, _) = sums(&bytes, 1 << 20, Depth::Traffic);
        assert_eq!((quick.transactions, quick.traffic), (whole.0, whole.1), "{}", log.display());
    }
}

/// Every byte of a small log damaged, and the log cut off everywhere: never a panic, always a word about it.
#[test]
fn damage_is_named_and_the_rest_is_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../binlog/tests/golden");
    for name in [
        "mysql-9.7/rows.binlog",
        "mariadb-10.11/rows.binlog",
        "mysql-5.6.14/statement.binlog",
        "mysql-9.7/payload.binlog",
    ] {
        let bytes = std::fs::read(root.join(name)).unwrap();
        let (whole, problems) = sums(&bytes, 4096, Depth::Keys);
        assert_eq!(problems, [], "{name}");
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            let (totals, problems) = sums(&damaged, 4096, Depth::Keys);
            assert!(totals.transactions <= whole.transactions + 1, "{name}: byte {at}");
            // A flag that the checksum leaves out: the log counts as in use.
            let unseen = (4 + 17..4 + 19).contains(&at) || !crc(name);
            assert!(unseen || !problems.is_empty(), "{name}: byte {at} is damaged and nobody says so");
        }
        for end in 0..bytes.len() {
            let (totals, problems) = sums(&bytes[..end], 4096, Depth::Keys);
            assert!(totals.transactions <= whole.transactions, "{name}: cut at {end}");
            let clean = problems.is_empty();
            assert!(!clean || totals.events > 0, "{name}: cut at {end}");
        }
    }
}

/// Logs whose events are summed.
fn crc(name: &str) -> bool {
    !name.starts_with("mysql-5.6")
}

/// A transaction of `events` rows events with 100 rows each among two small ones; after the first rows event stands an event
/// of `large` bytes, if not 0, of which only the header is real.
fn with_large_transaction(events: u32, large: usize) -> Vec<u8> {
    let spec = FormatSpec::new("8.0.36", Flavour::MySql, Checksum::Off);
    let head = Head::new(1_700_000_000, 1, Checksum::Off);
    let columns = [Column::new(ColumnKind::LONG, 0, false), Column::new(ColumnKind::VARCHAR, 800, false)];
    let full = Bitmap::full(columns.len());
    let map = TableMapSpec {
        table_id: 90,
        flags: 1,
        schema: "s",
        table: "t",
        columns: &columns,
        primary_key: None,
        metadata: true,
    };
    let rows = RowsSpec {
        kind: RowsKind::Write,
        table_id: 90,
        flags: 1,
        version: 2,
        extra: &[],
        before_columns: &full,
        after_columns: &full,
        partial_json: false,
    };
    let image = |id: u32| [&[0][..], &id.to_le_bytes(), &700_u16.to_le_bytes(), &[b'x'; 700]].concat();
    let mut log = binlog::MAGIC.to_vec();
    log.extend(encode::format_description(&head, &spec));
    for (gno, events) in [(1, 1), (2, events), (3, 1)] {
        let gtid = MySqlGtid {
            uuid: [3; 16],
            gno,
            last_committed: gno as i64 - 1,
            sequence_number: gno as i64,
            ..MySqlGtid::default()
        };
        log.extend(encode::mysql_gtid(&head, &gtid));
        log.extend(encode::query(&head, 7, 0, 0, "s", &[], b"BEGIN"));
        log.extend(encode::table_map(&head, &map));
        for event in 0..events {
            let images: Vec<Vec<u8>> = (0..100).map(|row| image(event * 100 + row)).collect();
            let images: Vec<&[u8]> = images.iter().map(Vec::as_slice).collect();
            log.extend(encode::rows_v(&head, &rows, &images));
            if gno == 2 && event == 0 && large > 0 {
                let at = log.len();
                let small = encode::rows_v(&head, &rows, &images);
                log.extend(&small[..binlog::HEADER_LEN]);
                log[at + 9..at + 13].copy_from_slice(&(large as u32).to_le_bytes());
                log.resize(at + large, 0);
            }
        }
        log.extend(encode::xid(&head, gno));
    }
    log
}

#[test]
fn a_transaction_larger_than_a_piece_counts_once() {
    let log = with_large_transaction(700, 0);
    let (pieces, problems) = cut(&log, 1 << 20);
    assert_eq!(problems, []);
    assert!(pieces.len() > 2 && pieces.iter().any(|piece| piece.continued.is_some()), "{}", pieces.len());
    for depth in [Depth::Traffic, Depth::Keys] {
        let (mut totals, problems) = sums(&log, 1 << 20, depth);
        assert_eq!(problems, []);
        assert_eq!((totals.transactions, totals.traffic.inserts), (3, 100 + 70_000 + 100));
        assert_eq!(totals.largest[0].rows, 70_000);
        assert_eq!(totals.source.amil(), Some(1.0));
        // The table's keys are not known: one after the other.
        assert_eq!(totals.exact.totals().levels, if depth == Depth::Keys { 3 } else { 0 });
    }
}

#[test]
fn an_event_too_large_to_look_into_is_named_and_counted() {
    const LARGE: usize = (64 << 20) + 1000;
    let log = with_large_transaction(3, LARGE);
    let (pieces, _) = cut(&log, 1 << 20);
    let header = pieces.iter().find_map(|piece| piece.too_large.as_ref()).unwrap();
    assert_eq!((header.kind, header.event_len as usize), (Kind::WRITE_ROWS, LARGE));
    assert!(pieces.iter().all(|piece| piece.bytes.len() < 2 << 20));
    let (totals, problems) = sums(&log, 1 << 20, Depth::Keys);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].what.contains("not looked into"), "{problems:?}");
    assert_eq!((totals.transactions, totals.traffic.inserts), (3, 500));
    assert_eq!(totals.bytes as usize, log.len() - binlog::MAGIC.len());
    assert!(totals.largest[0].bytes as usize > LARGE);
}

/// A log of two transactions: one with these events behind its GTID, and a small one.
fn with_first(events: &[Vec<u8>]) -> Vec<u8> {
    let head = Head::new(1_700_000_000, 1, Checksum::Off);
    let mut log = binlog::MAGIC.to_vec();
    log.extend(encode::format_description(&head, &FormatSpec::new("8.0.36", Flavour::MySql, Checksum::Off)));
    for gno in 1..=2 {
        log.extend(encode::mysql_gtid(&head, &MySqlGtid { uuid: [3; 16], gno, ..MySqlGtid::default() }));
        if gno == 1 {
            log.extend(events.concat());
        } else {
            log.extend(encode::query(&head, 7, 0, 0, "s", &[], b"BEGIN"));
            log.extend(encode::xid(&head, gno));
        }
    }
    log
}

/// A compressed transaction ends inside its one event, even if nobody looks into that.
#[test]
fn a_payload_too_large_to_look_into_is_a_whole_transaction() {
    const LARGE: usize = (64 << 20) + 1000;
    let head = Head::new(1_700_000_000, 1, Checksum::Off);
    let mut payload = encode::event(Kind::TRANSACTION_PAYLOAD, &head, &[]);
    payload[9..13].copy_from_slice(&(LARGE as u32).to_le_bytes());
    payload.resize(LARGE, 0);
    let (totals, problems) = sums(&with_first(&[payload]), 1 << 20, Depth::Keys);
    assert_eq!(totals.transactions, 2, "{problems:?}");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].what.contains("not looked into"), "{problems:?}");
    assert!(totals.largest[0].bytes as usize > LARGE);
}

/// A statement that is cut, with the data that it loads, ends with itself: it is no block that a COMMIT would end.
#[test]
fn a_load_data_larger_than_a_piece_counts_once() {
    let head = Head::new(1_700_000_000, 1, Checksum::Off);
    let block = [&7_u32.to_le_bytes()[..], &vec![b'x'; 400_000]].concat();
    let mut events = vec![encode::event(Kind::BEGIN_LOAD_QUERY, &head, &block)];
    events.extend((0..60).map(|_| encode::event(Kind::APPEND_BLOCK, &head, &block)));
    let text = b"LOAD DATA INFILE 'f' INTO TABLE t";
    let post_header =
        [&[7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0][..], &[7, 0, 0, 0, 10, 0, 0, 0, 20, 0, 0, 0, 0]].concat();
    events.push(encode::event(Kind::EXECUTE_LOAD_QUERY, &head, &[&post_header[..], b"s\0", text].concat()));
    let log = with_first(&events);
    assert!(cut(&log, 1 << 20).0.len() > 1);
    let (totals, problems) = sums(&log, 1 << 20, Depth::Keys);
    assert_eq!(problems, []);
    assert_eq!(totals.transactions, 2);
}

/// The transaction that an incident has taken its GTID from is there, with nothing in it.
#[test]
fn an_incident_ends_what_its_gtid_has_begun() {
    let head = Head::new(1_700_000_000, 1, Checksum::Off);
    let incident = encode::event(Kind::INCIDENT, &head, &[1, 0, 4, b'l', b'o', b's', b't']);
    let (totals, problems) = sums(&with_first(&[incident]), 1 << 20, Depth::Keys);
    assert_eq!(problems.iter().map(|problem| problem.what.contains("incident")).collect::<Vec<_>>(), [true]);
    assert_eq!(totals.transactions, 2);
}

/// `cat binlog.0000* > all` is read as the files one by one are, and no event counts that is not there.
#[test]
fn files_that_were_put_together_are_read_on() {
    for log in logs() {
        let bytes = std::fs::read(&log).unwrap();
        let (one, none) = sums(&bytes, 1 << 20, Depth::Keys);
        assert_eq!(none, [], "{}", log.display());
        for chunk in [1 << 20, 777] {
            let (both, problems) = sums(&[bytes.as_slice(), &bytes].concat(), chunk, Depth::Keys);
            let what = |totals: &Totals| (totals.transactions, totals.events, totals.bytes, totals.traffic.rows());
            let (transactions, events, bytes, rows) = what(&one);
            assert_eq!(problems, [], "{}", log.display());
            assert_eq!(what(&both), (2 * transactions, 2 * events, 2 * bytes, 2 * rows), "{}", log.display());
        }
    }
}

/// A length field that reaches beyond the file's end: the event is not counted, whatever its size.
#[test]
fn an_event_that_reaches_beyond_the_end_is_torn() {
    let log = logs().into_iter().next().unwrap();
    let mut bytes = std::fs::read(&log).unwrap();
    let (whole, _) = sums(&bytes, 1 << 20, Depth::Keys);
    let at = bytes.len();
    for length in [100_u32, 900_000_000] {
        bytes.truncate(at);
        let mut header = [0_u8; 19];
        header[4] = Kind::XID.0;
        header[9..13].copy_from_slice(&length.to_le_bytes());
        bytes.extend(header);
        let mut cutter = Cutter::new(Arc::new(Definitions::default())).ending_at(bytes.len() as u64);
        cutter.buffer().extend_from_slice(&bytes);
        let (mut events, mut problem) = (0, None);
        while problem.is_none() {
            match cutter.next() {
                Cut::Piece(piece) => events += scan(&piece, Depth::Keys).events,
                Cut::NeedMore(_) => {
                    let (piece, torn) = cutter.finish();
                    events += piece.map_or(0, |piece| scan(&piece, Depth::Keys).events);
                    problem = torn;
                }
                Cut::Skip { .. } => panic!("counted, though it is not there"),
                Cut::Failed(failed) => problem = Some(failed),
            }
        }
        let what = format!("the file ends inside an event: 19 of at least {length} bytes are there");
        assert_eq!((events, problem), (whole.events, Some(Problem::new(at as u64, what))));
    }
}

/// A MariaDB server that encrypts its logs sends them in clear, with the event that says so.
#[test]
fn what_is_sent_in_clear_is_read() {
    let mut bytes = binlog::MAGIC.to_vec();
    let spec = FormatSpec::new("10.11.6-MariaDB-log", Flavour::MariaDb, Checksum::Crc32);
    bytes.extend(encode::format_description(&Head::new(0, 1, Checksum::Crc32), &spec));
    bytes.extend(encode::event(Kind::START_ENCRYPTION, &Head::new(0, 1, Checksum::Crc32), &[1; 17]));
    bytes.extend(encode::query(
        &Head::new(1_700_000_000, 1, Checksum::Crc32),
        7,
        0,
        0,
        "s",
        &[],
        b"CREATE TABLE t (a INT)",
    ));
    let (totals, problems) = sums(&bytes, 1 << 20, Depth::Keys);
    assert_eq!((totals.transactions, problems.len()), (0, 1), "{problems:?}");
    let mut cutter = Cutter::new(Arc::new(Definitions::default())).in_clear();
    cutter.buffer().extend_from_slice(&bytes);
    assert!(matches!(cutter.next(), Cut::NeedMore(_)));
    let (piece, problem) = cutter.finish();
    assert_eq!((piece.map(|piece| scan(&piece, Depth::Keys).records.len()), problem), (Some(1), None));
}

/// Nor for transactions that are larger than a piece may be.
#[test]
fn large_transactions_are_cut_at_the_same_places() {
    let mut bytes = binlog::MAGIC.to_vec();
    let head = Head::new(1_700_000_000, 1, Checksum::Crc32);
    let spec = FormatSpec::new("8.0.36", Flavour::MySql, Checksum::Crc32);
    bytes.extend(encode::format_description(&head, &spec));
    for gno in 1..=2 {
        bytes.extend(encode::mysql_gtid(&head, &MySqlGtid { uuid: [3; 16], gno, ..MySqlGtid::default() }));
        bytes.extend(encode::query(&head, 1, 0, 0, "s", &[], b"BEGIN"));
        (0..45).for_each(|_| bytes.extend(encode::event(Kind::IGNORABLE, &head, &vec![0; 400_000])));
        bytes.extend(encode::xid(&head, gno));
    }
    let places = |chunk| cut(&bytes, chunk).0.iter().map(|piece| (piece.offset, piece.bytes.len())).collect::<Vec<_>>();
    let whole = places(bytes.len());
    assert!(whole.len() >= 3, "{whole:?}");
    assert_eq!(whole, places(1 << 20));
    // As a live server sends them: event by event.
    assert_eq!(whole, places(400_023));
}

/// Small pieces, as between rotations that come often, have each key but once or twice: it is named all the same.
#[test]
fn keys_of_small_pieces_are_named() {
    let pieces = logs().into_iter().flat_map(|log| cut(&std::fs::read(log).unwrap(), 1 << 20).0);
    let small: Vec<_> = pieces
        .filter(|piece| piece.bytes.len() < 64 << 10)
        .map(|piece| scan(&piece, Depth::Keys))
        .filter(|scanned| scanned.writes.len() == 1)
        .collect();
    assert!(!small.is_empty(), "no golden log has a piece with one key");
    for scanned in small {
        assert_eq!(scanned.names.len(), 1, "{:?}", scanned.records);
    }
}

/// See `logs/README.md`.
fn small_log(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs").join(name)).unwrap()
}

/// After SET TIMESTAMP a statement's time is not when it began: nothing ran for years.
#[test]
fn no_statement_runs_for_years() {
    for (name, stated) in [("exec_time.000001", 95_567_581), ("exec_time_mariadb.000001", 95_567_923)] {
        let (mut totals, problems) = sums(&small_log(name), 4096, Depth::Keys);
        assert_eq!(problems, [], "{name}");
        let ran: Vec<u64> = totals.barriers.values().map(|blocker| blocker.exec_us).collect();
        assert!(ran.iter().all(|&us| us < 1000), "{name}: {ran:?}");
        assert_eq!(
            (totals.longest.len(), totals.other_clock.count, totals.other_clock.seconds),
            (0, 1, stated),
            "{name}"
        );
        // Two DDL and what the others cost.
        assert!(totals.exact.totals().critical_us < 40_000, "{name}: {:?}", totals.exact.totals());
        let (first, last) = (totals.first_time_us.unwrap(), totals.last_time_us.unwrap());
        assert!(last - first < 2_000_000, "{name}: from {first} to {last}");
    }
}

/// What comes first waits for nothing. It is a barrier all the same, and no large transaction.
#[test]
fn a_first_ddl_is_a_barrier() {
    let (mut totals, problems) = sums(&small_log("first_ddl.000001"), 4096, Depth::Keys);
    assert_eq!(problems, []);
    let by = &totals.exact.totals().critical_by;
    let barrier = |cause: Cause| engine::quality::exact::Link::Barrier(cause.number());
    assert_eq!(by.get(&engine::quality::exact::Link::Large), None, "{by:?}");
    assert_eq!(by.get(&barrier(Cause::Database)), Some(&10_000), "{by:?}");
}

/// A column that comes in the middle leaves the keys what they are: rows that share none can be changed side by side.
#[test]
fn keys_outlive_an_alter() {
    for name in ["keys_kept.000001", "keys_lost.000001"] {
        let (mut totals, problems) = sums(&small_log(name), 4096, Depth::Keys);
        assert_eq!(problems, [], "{name}");
        let table = totals.tables.values().find(|table| table.name == "t").unwrap();
        assert_eq!((table.traffic.rows(), table.order_by_table), (3, None), "{name}");
        assert_eq!(totals.exact.totals().width_max, 3, "{name}");
    }
}
