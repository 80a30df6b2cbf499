//! A log built from nothing reads back, and patched events are those that would have been built.

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

use std::path::Path;

use binlog::encode::{self, FormatSpec, Head, RowsSpec, StatusVarsBuilder, TableMapSpec};
use binlog::heartbeat::Heartbeat;
use binlog::patch::{ClockRoom, Patch, PatchError, with_logical_clock};
use binlog::rows::{RowsEvent, RowsKind};
use binlog::{
    Bitmap, Checksum, Column, ColumnKind, Event, Flavour, FormatDescription, Framer, Header, KeyPart, Kind, MySqlGtid,
    PreviousGtids, Step, TableMap,
};
use bytes::Bytes;

fn head() -> Head {
    Head::new(1_700_000_000, 7, Checksum::Crc32)
}

/// A log as MySQL 8.4 would write it. Also left in the test folder, for the stock `mysqlbinlog`.
fn build() -> Vec<u8> {
    let mut log = binlog::MAGIC.to_vec();
    let mut push = |build: &dyn Fn(&Head) -> Vec<u8>| {
        let event = build(&head().at(log.len() as u64));
        log.extend(event);
    };
    push(&|head| encode::format_description(head, &FormatSpec::new("8.4.3", Flavour::MySql, Checksum::Crc32)));
    push(&|head| encode::previous_gtids(head, &PreviousGtids { entries: vec![] }));
    let mut columns = [
        Column::new(ColumnKind::LONGLONG, 0, false),
        Column::new(ColumnKind::VARCHAR, 400, true),
        Column::new(ColumnKind::NEWDECIMAL, 0x0a02, true),
    ];
    for (column, name) in columns.iter_mut().zip(["id", "name", "price"]) {
        column.name = Some(name.to_owned());
        column.visible = Some(true);
    }
    columns[0].unsigned = Some(true);
    columns[1].collation = Some(255);
    columns[2].unsigned = Some(false);
    for number in 1..=3u64 {
        let gtid = MySqlGtid {
            uuid: [0x11; 16],
            tag: if number == 3 { "tag".to_owned() } else { String::new() },
            gno: number,
            last_committed: number as i64 - 1,
            sequence_number: number as i64,
            immediate_commit_timestamp_us: Some(1_700_000_000_000_000),
            original_commit_timestamp_us: Some(1_700_000_000_000_000 - number),
            transaction_length: Some(300),
            immediate_server_version: Some(80_403),
            original_server_version: Some(80_403),
            ..MySqlGtid::default()
        };
        push(&|head| encode::mysql_gtid(head, &gtid));
        let vars = StatusVarsBuilder::new().flags2(0).sql_mode(0).catalog_std().charset(255, 255, 255).finish();
        push(&|head| encode::query(head, 5, 0, 0, "shop", &vars, b"BEGIN"));
        push(&|head| {
            encode::table_map(
                head,
                &TableMapSpec {
                    table_id: 99,
                    flags: 1,
                    schema: "shop",
                    table: "item",
                    columns: &columns,
                    primary_key: Some(&[KeyPart { column: 0, prefix: 0 }]),
                    metadata: true,
                },
            )
        });
        let full = Bitmap::full(3);
        let mut row = vec![0xfc]; // null bits: unused ones set, as servers do … column 2 is NULL
        row.extend(number.to_le_bytes());
        row.extend(5u16.to_le_bytes());
        row.extend(b"hello");
        let kind = [RowsKind::Write, RowsKind::Update, RowsKind::Delete][number as usize % 3];
        let spec = RowsSpec {
            kind,
            table_id: 99,
            flags: RowsEvent::STMT_END,
            version: 2,
            extra: &[],
            before_columns: &full,
            after_columns: &full,
            partial_json: false,
        };
        let rows = if kind == RowsKind::Update { row.repeat(2) } else { row };
        push(&|head| encode::rows(head, &spec, &rows));
        push(&|head| encode::xid(head, number));
    }
    push(&|head| encode::rotate(head, 4, "binlog.000002"));
    log
}

#[test]
fn a_built_log_reads_back() {
    let log = build();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("built.binlog");
    std::fs::write(file, &log).unwrap();
    let mut framer = Framer::new();
    framer.push(log.into());
    let full = Bitmap::full(3);
    let mut table = None;
    let mut seen = Vec::new();
    while let Step::Event { event, offset } = framer.next() {
        let format = framer.format().unwrap();
        assert_eq!(u64::from(event.header().log_pos), offset + event.bytes().len() as u64);
        if event.kind() == Kind::TABLE_MAP {
            table = Some(TableMap::decode(&event, format).unwrap());
        }
        if event.kind().is_rows() {
            let rows = RowsEvent::decode(&event, format).unwrap();
            let table = table.as_ref().unwrap();
            for images in rows.images(table) {
                let images = images.unwrap();
                let image = images.before.or(images.after).unwrap();
                let columns = table.layout().columns(&full, &rows.rows[image]).map(|value| {
                    let value = value.unwrap();
                    let column = &table.columns[value.column];
                    value.value.map_or("NULL".to_owned(), |raw| binlog::value::display(column, raw, false))
                });
                seen.push(format!("{:?} {}", rows.kind, columns.collect::<Vec<_>>().join(" ")));
            }
        }
        if matches!(event.kind(), Kind::GTID | Kind::GTID_TAGGED) {
            let gtid = MySqlGtid::decode(&event, format).unwrap();
            seen.push(format!("{}:{}", gtid.tag, gtid.gno));
        }
    }
    assert_eq!(framer.finish(), binlog::Finish::Clean);
    let want = [":1", "Update 1 hello NULL", ":2", "Delete 2 hello NULL", "tag:3", "Write 3 hello NULL"];
    assert_eq!(seen, want);
}

#[test]
fn patched_is_built() {
    for checksum in [Checksum::Off, Checksum::Crc32] {
        for anonymous in [false, true] {
            let head = Head { checksum, ..head() };
            let gtid = |last_committed, sequence_number| MySqlGtid {
                last_committed,
                sequence_number,
                anonymous,
                immediate_commit_timestamp_us: Some(5),
                ..MySqlGtid::default()
            };
            let mut event = encode::mysql_gtid(&head, &gtid(1, 2));
            let other = Head { timestamp: 9, server_id: 8, flags: 0x20, offset: Some(1000), ..head };
            let want = encode::mysql_gtid(&other, &gtid(-3, 1 << 40));
            let mut patch = Patch::new(&mut event, checksum).unwrap();
            patch.logical_clock(-3, 1 << 40).unwrap();
            patch.timestamp(9).server_id(8).flags(0x20).log_pos(1000 + want.len() as u32).finish();
            assert_eq!(event, want);
            Event::parse(event.into(), checksum).unwrap();
        }
    }
    let mut xid = encode::xid(&head(), 1);
    let mut patch = Patch::new(&mut xid, Checksum::Crc32).unwrap();
    assert_eq!(patch.logical_clock(1, 2).err(), Some(PatchError::Kind(Kind::XID)));
    assert_eq!(Patch::new(&mut [0; 20], Checksum::Crc32).err(), Some(PatchError::TooShort));
}

/// The length stays: servers take a number that is written longer than it need be.
#[test]
fn a_gtid_with_a_tag_is_patched_where_there_is_room() {
    for checksum in [Checksum::Off, Checksum::Crc32] {
        let spec = FormatSpec::new("9.7.0", Flavour::MySql, checksum);
        let gtid = |last_committed| MySqlGtid {
            uuid: [200; 16],
            tag: "app".to_owned(),
            gno: 70_000,
            last_committed,
            sequence_number: 70_001,
            immediate_commit_timestamp_us: Some(5),
            original_commit_timestamp_us: Some(5),
            ..MySqlGtid::default()
        };
        for (old, new, fits) in
            [(70_000, 3, true), (70_000, 69_000, true), (70_000, 1 << 20, false), (0, 63, true), (0, 64, false)]
        {
            let bytes = encode::mysql_gtid(&Head { checksum, ..head() }, &gtid(old));
            let mut event = bytes.clone();
            let mut patch = Patch::new(&mut event, checksum).unwrap();
            let Some(ClockRoom::UpTo(most)) = patch.clock_room() else { panic!("no clock") };
            assert_eq!(new <= most, fits, "{old} {new} {most}");
            match patch.last_committed(new) {
                Ok(patch) => patch.finish(),
                Err(error) => assert_eq!(error, PatchError::TooLarge(new)),
            }
            let event = Event::parse(event.into(), checksum).unwrap();
            let read = MySqlGtid::decode(&event, &spec.describe()).unwrap();
            assert_eq!(read.last_committed, if fits { new } else { old });
            assert_eq!(MySqlGtid { last_committed: old, ..read }, gtid(old));
            assert_eq!(event.bytes().len(), bytes.len());
            assert!(Patch::new(&mut bytes.clone(), checksum).unwrap().logical_clock(1, 2).is_err());
        }
    }
}

/// As MySQL 5.7 writes the same.
#[test]
fn a_gtid_of_mysql_5_6_gets_a_clock() {
    for checksum in [Checksum::Off, Checksum::Crc32] {
        let spec = FormatSpec::new("5.7.22-log", Flavour::MySql, checksum);
        let gtid = MySqlGtid { uuid: [7; 16], gno: 9, flags: 1, ..MySqlGtid::default() };
        let mut old = encode::mysql_gtid(&Head { checksum, ..head() }, &gtid);
        let sum = checksum.len();
        old.truncate(19 + 25);
        old.resize(19 + 25 + sum, 0);
        let length = old.len() as u32;
        old[9..13].copy_from_slice(&length.to_le_bytes());
        binlog::patch::fix_checksum(&mut old, checksum);
        let log_pos = old[13..17].to_vec();
        assert_eq!(Patch::new(&mut old, checksum).unwrap().clock_room(), Some(ClockRoom::Nothing));
        assert!(Patch::new(&mut old, checksum).unwrap().last_committed(1).is_err());

        let new = with_logical_clock(&old, checksum, 4, 6).unwrap();
        assert_eq!((new.len(), &new[13..17]), (old.len() + 17, &log_pos[..]));
        let event = Event::parse(new.clone().into(), checksum).unwrap();
        let read = MySqlGtid::decode(&event, &spec.describe()).unwrap();
        assert_eq!(read, MySqlGtid { last_committed: 4, sequence_number: 6, ..gtid });
        assert!(with_logical_clock(&new, checksum, 4, 6).is_err(), "it has one");
        assert!(with_logical_clock(&old[..20], checksum, 4, 6).is_err());
    }
}

#[test]
fn the_in_use_flag_is_not_summed() {
    let spec = FormatSpec { in_use: true, ..FormatSpec::new("8.4.3", Flavour::MySql, Checksum::Crc32) };
    let open = encode::format_description(&head(), &spec);
    let closed = encode::format_description(&head(), &FormatSpec { in_use: false, ..spec });
    assert_ne!(open, closed);
    assert_eq!(open[open.len() - 4..], closed[closed.len() - 4..]);
    for (bytes, in_use) in [(&open, true), (&closed, false)] {
        let (_, format) = FormatDescription::decode(&Bytes::copy_from_slice(bytes)).unwrap();
        assert_eq!(format.in_use, in_use);
    }
    // Patching another field keeps it so.
    let mut patched = open.clone();
    Patch::new(&mut patched, Checksum::Crc32).unwrap().server_id(99).finish();
    let (event, format) = FormatDescription::decode(&patched.into()).unwrap();
    assert_eq!((event.header().server_id, format.in_use), (99, true));
    assert_eq!(event.header().flags & Header::FLAG_BINLOG_IN_USE, 1);
}

#[test]
fn heartbeats() {
    let format = FormatSpec::new("8.4.3", Flavour::MySql, Checksum::Crc32).describe();
    for (bytes, position) in [
        (encode::heartbeat(&head(), 1234, "binlog.000009"), 1234),
        (encode::heartbeat_v2(&head(), 1 << 33, "binlog.000009"), 1 << 33),
    ] {
        let event = Event::parse(bytes.into(), Checksum::Crc32).unwrap();
        let want = Heartbeat { file: "binlog.000009".to_owned(), position };
        assert_eq!(Heartbeat::decode(&event, &format).unwrap(), want);
    }
}
