//! Logs that real servers wrote: everything decodes, values are those that the server's client printed, and what can be
//! encoded comes out byte for byte.

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

mod common;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use binlog::encode::{self, Head};
use binlog::rows::{RowsEvent, RowsKind};
use binlog::{Bitmap, Checksum, Event, Flavour, FormatDescription, Kind, MariaDbGtid, MySqlGtid, Query, TableMap};
use bytes::Bytes;
use common::{Tables, events, flattened, golden_logs};

/// Decodes with the decoder of the event's type; `None` for a type without one.
fn decode(event: &Event, f: &FormatDescription, tables: &Tables) -> Option<String> {
    macro_rules! text {
        ($decoded:expr) => {
            format!("{:?}", $decoded.unwrap_or_else(|error| panic!("{}: {error}", event.kind())))
        };
    }
    Some(match event.kind() {
        Kind::FORMAT_DESCRIPTION => text!(FormatDescription::decode(event.bytes())),
        Kind::QUERY | Kind::QUERY_COMPRESSED => text!(Query::decode(event, f)),
        Kind::ROTATE => text!(binlog::rotate::Rotate::decode(event, f)),
        Kind::INTVAR => text!(binlog::intvar::IntVar::decode(event, f)),
        Kind::RAND => text!(binlog::rand::Rand::decode(event, f)),
        Kind::USER_VAR => text!(binlog::user_var::UserVar::decode(event, f)),
        Kind::XID => text!(binlog::xid::Xid::decode(event, f)),
        Kind::BEGIN_LOAD_QUERY | Kind::APPEND_BLOCK => {
            text!(binlog::load_data::LoadBlock::decode(event, f))
        }
        Kind::EXECUTE_LOAD_QUERY => text!(binlog::load_data::ExecuteLoadQuery::decode(event, f)),
        Kind::DELETE_FILE => text!(binlog::load_data::DeleteFile::decode(event, f)),
        Kind::ROWS_QUERY | Kind::ANNOTATE_ROWS => {
            text!(binlog::rows_query::RowsQuery::decode(event, f))
        }
        Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED => text!(MySqlGtid::decode(event, f)),
        Kind::PREVIOUS_GTIDS => text!(binlog::PreviousGtids::decode(event, f)),
        Kind::XA_PREPARE => text!(binlog::XaPrepare::decode(event, f)),
        Kind::TRANSACTION_PAYLOAD => text!(binlog::TransactionPayload::decode(event, f)),
        Kind::MARIADB_GTID => text!(MariaDbGtid::decode(event, f)),
        Kind::MARIADB_GTID_LIST => text!(binlog::MariaDbGtidList::decode(event, f)),
        Kind::BINLOG_CHECKPOINT => text!(binlog::gtid_list::BinlogCheckpoint::decode(event, f)),
        Kind::TABLE_MAP => text!(TableMap::decode(event, f)),
        Kind::STOP => String::new(),
        kind if kind.is_rows() => {
            let rows = RowsEvent::decode(event, f).unwrap();
            let table = &tables.0[&rows.table_id];
            let mut end = 0;
            for images in rows.images(table) {
                let images = images.unwrap_or_else(|error| panic!("{}: {error}", event.kind()));
                assert_eq!(images.range().start, end);
                end = images.range().end;
                for (range, present) in [(images.before, &rows.before_columns), (images.after, &rows.after_columns)] {
                    let Some(range) = range else { continue };
                    let image = &rows.rows[range];
                    let mut columns = table.layout().columns(present, image);
                    assert_eq!(
                        columns.by_ref().map(|value| value.unwrap().column).collect::<Vec<_>>(),
                        present.iter().collect::<Vec<_>>()
                    );
                    assert_eq!(columns.consumed(), image.len());
                }
            }
            assert_eq!(end, rows.rows.len(), "rows are walked to their end");
            String::new()
        }
        _ => return None,
    })
}

#[test]
fn every_event_decodes() {
    let mut seen = BTreeSet::new();
    for log in golden_logs() {
        let bytes = std::fs::read(&log).unwrap();
        let mut tables = Tables::default();
        for (event, format) in flattened(&bytes) {
            tables.see(&event, &format);
            seen.insert(event.kind());
            assert!(decode(&event, &format, &tables).is_some(), "{}: no decoder for {}", log.display(), event.kind());
        }
    }
    let want = [
        Kind::QUERY,
        Kind::ROTATE,
        Kind::INTVAR,
        Kind::RAND,
        Kind::USER_VAR,
        Kind::XID,
        Kind::BEGIN_LOAD_QUERY,
        Kind::EXECUTE_LOAD_QUERY,
        Kind::TABLE_MAP,
        Kind::WRITE_ROWS,
        Kind::UPDATE_ROWS,
        Kind::DELETE_ROWS,
        Kind::WRITE_ROWS_V1,
        Kind::UPDATE_ROWS_V1,
        Kind::DELETE_ROWS_V1,
        Kind::ROWS_QUERY,
        Kind::ANNOTATE_ROWS,
        Kind::GTID,
        Kind::ANONYMOUS_GTID,
        Kind::GTID_TAGGED,
        Kind::PREVIOUS_GTIDS,
        Kind::XA_PREPARE,
        Kind::PARTIAL_UPDATE_ROWS,
        Kind::TRANSACTION_PAYLOAD,
        Kind::MARIADB_GTID,
        Kind::MARIADB_GTID_LIST,
        Kind::BINLOG_CHECKPOINT,
        Kind::QUERY_COMPRESSED,
        Kind::WRITE_ROWS_COMPRESSED_V1,
        Kind::UPDATE_ROWS_COMPRESSED_V1,
        Kind::DELETE_ROWS_COMPRESSED_V1,
    ];
    for kind in want {
        assert!(seen.contains(&kind), "no golden file has {kind}");
    }
}

/// The same workload on every version.
#[test]
fn every_server_has_every_case() {
    let servers = [
        ("mysql-5.6.14", "anonymous"),
        ("mysql-5.7.22", "anonymous json"),
        ("mysql-8.0.15", "anonymous json columns"),
        ("mysql-8.0.46", "anonymous json columns payload"),
        ("mysql-8.4", "anonymous json columns payload tagged tagged-previous"),
        ("mysql-9.7", "anonymous json columns payload tagged tagged-previous"),
        ("mariadb-10.1", "columns compress"),
        ("mariadb-10.2", "columns compress"),
        ("mariadb-10.6", "columns compress"),
        ("mariadb-10.11", "columns compress"),
        ("mariadb-11.4", "columns compress"),
        ("mariadb-11.8", "columns compress"),
    ];
    let mut want: BTreeSet<String> = BTreeSet::new();
    for (server, more) in servers {
        let cases = "types types-minimal rows statement mixed tables ddl-xa".split(' ').chain(more.split(' '));
        want.extend(cases.map(|case| format!("{server}/{case}.binlog")));
    }
    let root = format!("{}/tests/golden/", env!("CARGO_MANIFEST_DIR"));
    let there: BTreeSet<String> =
        golden_logs().iter().map(|log| log.to_string_lossy().strip_prefix(&root).unwrap().to_owned()).collect();
    assert_eq!(there, want);
}

/// Of one log, each with its table.
fn each_rows_event(log: &Path, mut visit: impl FnMut(&RowsEvent, &TableMap)) {
    let bytes = std::fs::read(log).unwrap();
    let mut tables = Tables::default();
    for (event, format) in flattened(&bytes) {
        tables.see(&event, &format);
        if event.kind().is_rows() {
            let rows = RowsEvent::decode(&event, &format).unwrap();
            visit(&rows, &tables.0[&rows.table_id]);
        }
    }
}

/// What was inserted is what the client printed, for every table that a case prints.
#[test]
fn values_are_the_clients() {
    let mut checked = 0;
    for log in golden_logs() {
        let Ok(printed) = std::fs::read_to_string(log.with_extension("tsv")) else {
            continue;
        };
        let server = log.parent().and_then(|folder| folder.file_name()).unwrap().to_string_lossy().into_owned();
        let mut inserted: HashMap<(String, String), Vec<String>> = HashMap::new();
        each_rows_event(&log, |rows, table| {
            if rows.kind != RowsKind::Write {
                return;
            }
            for images in rows.images(table) {
                let image = &rows.rows[images.unwrap().after.unwrap()];
                let values: Vec<String> = table
                    .layout()
                    .columns(&rows.after_columns, image)
                    .map(|value| {
                        let value = value.unwrap();
                        let column = &table.columns[value.column];
                        // Old servers do not log the sign: both readings are kept.
                        let both = |raw| {
                            [false, true].map(|unsigned| binlog::value::display(column, raw, unsigned)).join("\u{1f}")
                        };
                        value.value.map_or("NULL".to_owned(), both)
                    })
                    .collect();
                inserted.insert((table.table.clone(), values[0].split('\u{1f}').next().unwrap().to_owned()), values);
            }
        });
        for line in printed.lines() {
            let mut fields = line.split('\t').map(unescape);
            let table = fields.next().unwrap();
            let fields: Vec<String> = fields.collect();
            let Some(ours) = inserted.get(&(table.clone(), fields[0].clone())) else {
                panic!("{}: no row {table} {}", log.display(), fields[0]);
            };
            for (index, (ours, theirs)) in ours.iter().zip(&fields).enumerate() {
                // Without the metadata an ENUM or SET is but a number.
                if table == "strings" && matches!(index, 16..=18) && ours.starts_with(|c: char| c.is_ascii_digit()) {
                    continue;
                }
                // Printed as a number (`el+0`): with the metadata it is text, also in latin1.
                if table == "strings" && index == 22 && !ours.starts_with(|c: char| c.is_ascii_digit()) {
                    let text = theirs.parse::<usize>().ok().and_then(|number| LATIN_1_ENUM.get(number - 1));
                    assert_eq!(
                        ours.split('\u{1f}').next(),
                        text.copied().or(Some("NULL")),
                        "{} {table} row {}",
                        log.display(),
                        fields[0]
                    );
                    continue;
                }
                // MySQL 5.7 prints a whole DOUBLE in JSON as if it were an integer.
                let whole = |ours: &str| server.starts_with("mysql-5.7") && ours.strip_suffix(".0") == Some(theirs);
                if !ours.split('\u{1f}').any(|ours| same_value(ours, theirs) || whole(ours)) {
                    panic!("{} {table} row {} column {index}: {ours} instead of {theirs}", log.display(), fields[0]);
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 300, "{checked}");
}

/// Strings that this crate prints as hexadecimal because they are binary or in another character set are compared so.
/// Of `strings.el`
const LATIN_1_ENUM: [&str; 2] = ["é", "ü"];

fn same_value(ours: &str, theirs: &str) -> bool {
    if ours == theirs {
        return true;
    }
    if ours.starts_with("0x") != theirs.starts_with("0x") {
        let (hex, text) = if ours.starts_with("0x") { (ours, theirs) } else { (theirs, ours) };
        // Trailing zero bytes of BINARY columns are not logged.
        let hex = hex.trim_start_matches("0x");
        let text = binlog::value::hex(text.as_bytes());
        let text = text.trim_start_matches("0x");
        return hex.trim_end_matches("00") == text.trim_end_matches("00");
    }
    false
}

fn unescape(field: &str) -> String {
    let mut out = String::new();
    let mut chars = field.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, false) => out.push(c),
            _ => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('0') => out.push('\0'),
                Some(c) => out.push(c),
                None => {}
            },
        }
    }
    out
}

fn head_of(event: &Event, offset: u64) -> Head {
    let header = event.header();
    Head {
        timestamp: header.timestamp,
        server_id: header.server_id,
        flags: header.flags,
        offset: (header.log_pos != 0).then_some(offset),
        checksum: event.checksum(),
    }
}

/// Decode, encode: the same bytes, for every event that has a builder.
#[test]
fn events_survive_a_round_trip() {
    let mut count: HashMap<Kind, usize> = HashMap::new();
    for log in golden_logs() {
        let bytes = std::fs::read(&log).unwrap();
        let mut differ = Vec::new();
        for (offset, event, f) in events(&bytes) {
            let Some(again) = encode_again(&event, &f, offset) else {
                continue;
            };
            *count.entry(event.kind()).or_default() += 1;
            let other_metadata = f.flavour == Flavour::MariaDb || f.version_number() < (8, 0, 21);
            if event.kind() == Kind::TABLE_MAP && other_metadata {
                // MariaDB orders the optional metadata in another way, old MySQL has no signs of YEAR columns.
                let parse = |bytes: Bytes, f: &FormatDescription| {
                    let event = Event::parse(bytes, event.checksum()).unwrap();
                    let mut map = TableMap::decode(&event, f).unwrap();
                    map.raw = Bytes::new();
                    map
                };
                let recent = FormatDescription { server_version: "9.7.0".to_owned(), ..f.clone() };
                assert_eq!(parse(again.into(), &recent), parse(event.bytes().clone(), &f), "{}", log.display());
                continue;
            }
            if again != *event.bytes() {
                differ.push(format!(
                    "{} at {offset} in {}:\n{:02x?}\n{:02x?}",
                    event.kind(),
                    log.display(),
                    again,
                    &event.bytes()[..]
                ));
            }
        }
        assert!(differ.is_empty(), "{}", differ.join("\n"));
    }
    assert!(count.len() >= 18, "{count:?}");
}

fn encode_again(event: &Event, f: &FormatDescription, offset: u64) -> Option<Vec<u8>> {
    let head = head_of(event, offset);
    Some(match event.kind() {
        Kind::FORMAT_DESCRIPTION => {
            // The builder writes what recent servers write.
            let (major, minor, _) = f.version_number();
            let known = match f.flavour {
                Flavour::MySql => (major, minor) == (8, 0) && f.post_header_lens.len() == 41,
                Flavour::MariaDb => (major, minor) >= (10, 5) && f.post_header_lens.len() == 171,
            };
            if !known {
                return None;
            }
            let spec = encode::FormatSpec {
                server_version: f.server_version.clone(),
                flavour: f.flavour,
                checksum: f.checksum,
                created: f.created,
                in_use: f.in_use,
            };
            assert_eq!(&spec.describe(), f);
            encode::format_description(&head, &spec)
        }
        Kind::QUERY => {
            let q = Query::decode(event, f).unwrap();
            let schema = std::str::from_utf8(&q.schema).unwrap();
            encode::query(&head, q.thread_id, q.exec_time, q.error_code, schema, &q.status_vars, &q.sql)
        }
        Kind::ROTATE => {
            let rotate = binlog::rotate::Rotate::decode(event, f).unwrap();
            encode::rotate(&head, rotate.position, &rotate.file)
        }
        Kind::XID => encode::xid(&head, binlog::Xid::decode(event, f).unwrap().0),
        Kind::INTVAR => encode::intvar(&head, binlog::intvar::IntVar::decode(event, f).unwrap()),
        Kind::ROWS_QUERY if event.body().first() != Some(&0) => return None,
        Kind::ROWS_QUERY => encode::rows_query(&head, &binlog::rows_query::RowsQuery::decode(event, f).unwrap().sql),
        Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED => {
            let gtid = MySqlGtid::decode(event, f).unwrap();
            // MySQL 5.6 has no logical clock.
            if event.body().len() < 42 {
                return None;
            }
            encode::mysql_gtid(&head, &gtid)
        }
        // MySQL 5.6 does not flag it as ignorable.
        Kind::PREVIOUS_GTIDS if f.version_number() < (5, 7, 0) => return None,
        Kind::PREVIOUS_GTIDS => encode::previous_gtids(&head, &binlog::PreviousGtids::decode(event, f).unwrap()),
        Kind::XA_PREPARE => encode::xa_prepare(&head, &binlog::XaPrepare::decode(event, f).unwrap()),
        Kind::MARIADB_GTID => encode::mariadb_gtid(&head, &MariaDbGtid::decode(event, f).unwrap()),
        Kind::MARIADB_GTID_LIST => {
            encode::mariadb_gtid_list(&head, &binlog::MariaDbGtidList::decode(event, f).unwrap())
        }
        Kind::TABLE_MAP => {
            let map = TableMap::decode(event, f).unwrap();
            encode::table_map(&head, &map.spec(map.table_id))
        }
        kind if kind.is_rows() && !kind.is_compressed_rows() => {
            let rows = RowsEvent::decode(event, f).unwrap();
            encode::rows(&head, &rows.spec(rows.table_id, rows.flags), &rows.rows)
        }
        _ => return None,
    })
}

#[test]
fn tagged_gtids() {
    let path = format!("{}/tests/golden/mysql-9.7/tagged.binlog", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(path).unwrap();
    let gtids: Vec<MySqlGtid> = events(&bytes)
        .iter()
        .filter(|(_, event, _)| matches!(event.kind(), Kind::GTID | Kind::GTID_TAGGED))
        .map(|(_, event, format)| MySqlGtid::decode(event, format).unwrap())
        .collect();
    let seen: Vec<(&str, u64, i64, i64)> =
        gtids.iter().map(|g| (g.tag.as_str(), g.gno, g.last_committed, g.sequence_number)).collect();
    let long = "a_longer_tag_of_thirty_two_bytes";
    assert_eq!(
        seen.iter().map(|(tag, gno, ..)| (*tag, *gno)).skip(1).take(4).collect::<Vec<_>>(),
        [("tag_one", 1), ("tag_one", 2), (long, 1234567890123), ("", 77)]
    );
    for (index, (_, _, last_committed, sequence_number)) in seen.iter().enumerate() {
        assert_eq!(*sequence_number, index as i64 + 1);
        assert!(*last_committed < *sequence_number);
    }
    assert_eq!(
        gtids[3].uuid,
        [0xaa, 0xaa, 0xaa, 0xaa, 0xbb, 0xbb, 0xcc, 0xcc, 0xdd, 0xdd, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee]
    );
    assert_eq!(gtids[1].immediate_server_version, Some(90704));
}

/// A table map without its optional metadata still describes the same row layout.
#[test]
fn table_maps_without_metadata() {
    for log in golden_logs() {
        let bytes = std::fs::read(&log).unwrap();
        for (event, format) in flattened(&bytes) {
            if event.kind() != Kind::TABLE_MAP {
                continue;
            }
            let map = TableMap::decode(&event, &format).unwrap();
            let bare = map.to_event(&Head::new(1, 1, Checksum::Crc32), 42);
            let bare = Event::parse(Bytes::from(bare), Checksum::Crc32).unwrap();
            let bare = TableMap::decode(&bare, &format).unwrap();
            assert_eq!((bare.table_id, &bare.schema, &bare.table), (42, &map.schema, &map.table));
            assert_eq!(bare.layout(), map.layout());
            assert_eq!(bare.primary_key, None);
        }
    }
}

#[test]
fn full_metadata() {
    for server in
        ["mysql-9.7", "mysql-8.4", "mysql-8.0.46", "mysql-8.0.15", "mariadb-10.6", "mariadb-10.11", "mariadb-11.8"]
    {
        let path = format!("{}/tests/golden/{server}/types.binlog", env!("CARGO_MANIFEST_DIR"));
        let Ok(bytes) = std::fs::read(path) else {
            continue;
        };
        let mut maps: HashMap<String, TableMap> = HashMap::new();
        for (event, format) in flattened(&bytes) {
            if event.kind() == Kind::TABLE_MAP {
                let map = TableMap::decode(&event, &format).unwrap();
                maps.insert(map.table.clone(), map);
            }
        }
        let column = |table: &str, name: &str| {
            let found = maps[table].columns.iter().find(|column| column.name.as_deref() == Some(name));
            found.unwrap_or_else(|| panic!("{server} {table}.{name}")).clone()
        };
        for (name, unsigned) in
            [("t", false), ("tu", true), ("su", true), ("m", false), ("mu", true), ("bu", true), ("bo", false)]
        {
            assert_eq!(column("ints", name).unsigned, Some(unsigned), "{server} ints.{name}");
        }
        for (name, unsigned) in [("f", false), ("fu", true), ("n1", false), ("n5", true), ("n6", false)] {
            assert_eq!(column("numbers", name).unsigned, Some(unsigned), "{server} numbers.{name}");
        }
        for (name, collation) in
            [("v300", Some(8)), ("b", Some(63)), ("vb", Some(63)), ("bl", Some(63)), ("el", Some(8)), ("bi9", None)]
        {
            assert_eq!(column("strings", name).collation, collation, "{server} strings.{name}");
        }
        let utf8mb4 = column("strings", "c").collation;
        assert!(matches!(utf8mb4, Some(45 | 255 | 2304)), "{server} {utf8mb4:?}");
        for name in ["c255", "v", "tt", "tx", "lt", "e", "s", "en"] {
            assert_eq!(column("strings", name).collation, utf8mb4, "{server} strings.{name}");
        }
        let values = |name| column("strings", name).values.unwrap();
        assert_eq!(values("e"), ["red", "green", "b,l"], "{server}");
        assert_eq!(values("s"), ["x", "y", "z"], "{server}");
        assert!(!column("strings", "en").nullable);
        assert_eq!(column("geo", "p").geometry_type, Some(1), "{server}");
        assert_eq!(column("geo", "l").geometry_type, Some(2), "{server}");
        let key = |table: &str| {
            maps[table].primary_key.clone().map(|key| key.iter().map(|p| (p.column, p.prefix)).collect::<Vec<_>>())
        };
        assert_eq!(key("ints"), Some(vec![(0, 0)]), "{server}");
        assert_eq!(key("nokey"), None, "{server}");
        assert_eq!(key("prefixed"), Some(vec![(2, 0), (0, 10), (1, 7)]), "{server}");
    }
}

/// Every second column, and every third, of all images that servers wrote.
#[test]
fn images_cut_to_some_of_their_columns() {
    let mut cut = 0;
    for log in golden_logs() {
        each_rows_event(&log, |rows, table| {
            for images in rows.images(table).map(Result::unwrap) {
                for (range, present) in [(images.before, &rows.before_columns), (images.after, &rows.after_columns)] {
                    let Some(range) = range else { continue };
                    let image = &rows.rows[range];
                    let layout = table.layout();
                    for (step, first) in [(1, 0), (2, 0), (2, 1), (3, 2)] {
                        let wanted =
                            Bitmap::from_fn(layout.width(), |column| present.get(column) && column % step == first);
                        let mut selected = b"before".to_vec();
                        layout.select(present, image, &wanted, &mut selected).unwrap();
                        let mut all = layout.columns(&wanted, &selected[6..]);
                        let found: Vec<_> = all.by_ref().map(Result::unwrap).collect();
                        assert_eq!(all.consumed(), selected.len() - 6);
                        let expected = layout.columns(present, image).map(Result::unwrap);
                        assert_eq!(found, expected.filter(|value| wanted.get(value.column)).collect::<Vec<_>>());
                        cut += usize::from(selected.len() < image.len());
                    }
                    let absent = (0..layout.width()).find(|column| !present.get(*column));
                    if let Some(absent) = absent {
                        let wanted = Bitmap::from_fn(layout.width(), |column| column == absent);
                        assert!(layout.select(present, image, &wanted, &mut Vec::new()).is_err());
                    }
                }
            }
        });
    }
    assert!(cut > 100, "images were cut");
}
