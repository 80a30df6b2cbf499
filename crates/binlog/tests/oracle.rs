//! The same rows as an independent decoder (`mysql_common`) sees, on every golden log that it can decode.

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

use binlog::rows::RowsEvent;
use binlog::{ColumnKind, Kind, MySqlGtid};
use common::{Tables, events, golden_logs};
use mysql_common::Value;
use mysql_common::binlog::EventStreamReader;
use mysql_common::binlog::consts::BinlogVersion;
use mysql_common::binlog::events::EventData;
use mysql_common::binlog::value::BinlogValue;

/// A value as both can tell it; `None` where the two represent a type differently.
fn theirs(value: Option<&BinlogValue<'_>>) -> Option<String> {
    match value {
        None | Some(BinlogValue::Value(Value::NULL)) => Some("NULL".to_owned()),
        Some(BinlogValue::Value(Value::Bytes(bytes))) => Some(format!("{bytes:?}")),
        Some(BinlogValue::Value(Value::Int(number))) => Some(number.to_string()),
        Some(BinlogValue::Value(Value::UInt(number))) => Some(number.to_string()),
        _ => None,
    }
}

fn ours(column: &binlog::Column, value: Option<&[u8]>) -> Option<String> {
    let Some(raw) = value else {
        return Some("NULL".to_owned());
    };
    let text = || binlog::value::display(column, raw, column.unsigned == Some(true));
    match column.real_kind() {
        ColumnKind::TINY | ColumnKind::SHORT | ColumnKind::INT24 | ColumnKind::LONG | ColumnKind::LONGLONG => {
            Some(text())
        }
        ColumnKind::NEWDECIMAL => Some(format!("{:?}", text().into_bytes())),
        ColumnKind::VARCHAR | ColumnKind::BLOB | ColumnKind::STRING => Some(format!("{raw:?}")),
        _ => None,
    }
}

#[test]
fn rows_and_gtids_agree() {
    let (mut rows_seen, mut values_seen, mut gtids_seen) = (0, 0, 0);
    for log in golden_logs() {
        let path = log.to_string_lossy().into_owned();
        // It knows no event type of MariaDB, and no status variables of 9.7 matter here.
        if path.contains("mariadb") {
            continue;
        }
        let bytes = std::fs::read(&log).unwrap();
        let mut mine = events(&bytes).into_iter();
        let mut tables = Tables::default();
        let mut reader = EventStreamReader::new(BinlogVersion::Version4);
        let mut input = &bytes[4..];
        while let Some(event) = reader.read(&mut input).unwrap() {
            let (_, my, format) = mine.next().unwrap();
            assert_eq!(event.header().event_type_raw(), my.kind().0, "{path}");
            tables.see(&my, &format);
            if my.kind() == Kind::GTID {
                let gtid = MySqlGtid::decode(&my, &format).unwrap();
                if let Ok(Some(EventData::GtidEvent(other))) = event.read_data() {
                    assert_eq!((gtid.uuid, gtid.gno), (other.sid(), other.gno()));
                    assert_eq!(gtid.last_committed, other.last_committed() as i64);
                    assert_eq!(gtid.sequence_number, other.sequence_number() as i64);
                    assert_eq!(gtid.immediate_commit_timestamp_us.unwrap_or(0), other.immediate_commit_timestamp());
                    assert_eq!(gtid.transaction_length.unwrap_or(0), other.tx_length());
                    gtids_seen += 1;
                }
            }
            if !my.kind().is_rows() || my.kind() == Kind::PARTIAL_UPDATE_ROWS {
                continue;
            }
            let Some(EventData::RowsEvent(other)) = event.read_data().unwrap() else { panic!("{path}: no rows") };
            let rows = RowsEvent::decode(&my, &format).unwrap();
            let table = &tables.0[&rows.table_id];
            assert_eq!(other.rows_data(), &rows.rows[..], "{path}");
            // It does not see a row without columns.
            if rows.rows.is_empty() {
                continue;
            }
            // It overflows at negative times with a fraction.
            if table.table == "times" {
                continue;
            }
            let their_table = reader.get_tme(other.table_id()).unwrap();
            let mut their_rows = other.rows(their_table);
            for images in rows.images(table) {
                let images = images.unwrap();
                let (before, after) = their_rows.next().unwrap().unwrap();
                rows_seen += 1;
                for (range, present, row) in
                    [(images.before, &rows.before_columns, before), (images.after, &rows.after_columns, after)]
                {
                    assert_eq!(range.is_some(), row.is_some());
                    let (Some(range), Some(row)) = (range, row) else {
                        continue;
                    };
                    for (index, value) in table.layout().columns(present, &rows.rows[range]).enumerate() {
                        let value = value.unwrap();
                        let column = &table.columns[value.column];
                        if let (Some(ours), Some(theirs)) = (ours(column, value.value), theirs(row.as_ref(index))) {
                            // Without the metadata the sign is not known; it takes YEAR's for another column's.
                            let integer = column.unsigned.is_some() || value.value.is_none();
                            let year = table.columns.iter().any(|column| column.kind == ColumnKind::YEAR);
                            let is_text = ours.starts_with('[');
                            if is_text || (integer && !year) {
                                assert_eq!(ours, theirs, "{path} {} column {}", table.table, value.column);
                                values_seen += 1;
                            }
                        }
                    }
                }
            }
            assert!(their_rows.next().is_none());
        }
    }
    assert!(rows_seen > 150 && values_seen > 500 && gtids_seen > 50, "{rows_seen} {values_seen} {gtids_seen}");
}
