//! Every decoder on every event, and every value of every row: no panic, no endless loop, no memory that a length field claims.
#![no_main]

use std::collections::HashMap;

use binlog::rows::RowsEvent;
use binlog::{Event, FormatDescription, TableMap, TransactionPayload};
use libfuzzer_sys::fuzz_target;

fn decode_all(event: &Event, f: &FormatDescription, tables: &mut HashMap<u64, TableMap>) {
    let _ = binlog::Query::decode(event, f);
    let _ = binlog::rotate::Rotate::decode(event, f);
    let _ = binlog::intvar::IntVar::decode(event, f);
    let _ = binlog::rand::Rand::decode(event, f);
    let _ = binlog::user_var::UserVar::decode(event, f);
    let _ = binlog::xid::Xid::decode(event, f);
    let _ = binlog::load_data::LoadBlock::decode(event, f);
    let _ = binlog::load_data::ExecuteLoadQuery::decode(event, f);
    let _ = binlog::load_data::DeleteFile::decode(event, f);
    let _ = binlog::rows_query::RowsQuery::decode(event, f);
    let _ = binlog::incident::Incident::decode(event, f);
    let _ = binlog::heartbeat::Heartbeat::decode(event, f);
    let _ = binlog::MySqlGtid::decode(event, f);
    let _ = binlog::PreviousGtids::decode(event, f);
    let _ = binlog::XaPrepare::decode(event, f);
    let _ = binlog::MariaDbGtid::decode(event, f);
    let _ = binlog::MariaDbGtidList::decode(event, f);
    let _ = binlog::gtid_list::BinlogCheckpoint::decode(event, f);
    let _ = FormatDescription::decode(event.bytes());
    if let Ok(payload) = TransactionPayload::decode(event, f)
        && let Ok(events) = payload.events(1 << 20)
    {
        events.for_each(drop);
    }
    if let Ok(map) = TableMap::decode(event, f) {
        tables.insert(map.table_id, map);
    }
    let Ok(rows) = RowsEvent::decode(event, f) else { return };
    for table in tables.values().take(4) {
        for images in rows.images(table).flatten().take(1000) {
            for (range, present) in [(images.before, &rows.before_columns), (images.after, &rows.after_columns)] {
                let Some(range) = range else { continue };
                for value in table.layout().columns(present, &rows.rows[range]).flatten() {
                    binlog::value::display(&table.columns[value.column], value.value.unwrap_or_default(), false);
                }
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((format, events)) = heddle_binlog_fuzz::events(input) else { return };
    let mut tables = HashMap::new();
    for event in &events {
        decode_all(event, &format, &mut tables);
    }
});
