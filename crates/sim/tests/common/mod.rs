//! Reads generated logs with the `binlog` crate's decoders, which share no code with what wrote the rows.

use std::collections::BTreeMap;

use binlog::{
    Event, FormatDescription, Framer, Kind, MySqlGtid, PreviousGtids, Query, RowsEvent, RowsKind, Step, TableMap, Xid,
    value,
};
use bytes::Bytes;
use sim::LogFile;

/// A row as text, and its table and primary key as text.
pub type TextRow = Vec<String>;
pub type RowName = (String, TextRow);

/// One transaction as the log has it.
#[derive(Debug, Default)]
pub struct Logged {
    pub gtid: MySqlGtid,
    pub ddl: Option<String>,
    pub changes: Vec<(RowName, Option<TextRow>, Option<TextRow>)>,
}

/// One file, checked for what holds in every file: positions, lengths, how it begins and ends.
#[derive(Debug)]
pub struct Read {
    pub previous: PreviousGtids,
    pub transactions: Vec<Logged>,
    /// Where it says the log goes on.
    pub next_file: Option<String>,
}

/// Reads one file to its end.
pub fn read(file: &LogFile) -> Read {
    let mut framer = Framer::new();
    framer.push(Bytes::copy_from_slice(&file.bytes));
    let mut events = Vec::new();
    loop {
        match framer.next() {
            Step::Event { event, offset } => {
                assert_eq!(
                    u64::from(event.header().log_pos),
                    offset + event.bytes().len() as u64,
                    "{:?}",
                    event.kind()
                );
                events.push(event);
            }
            Step::NeedMore { .. } => break,
            Step::Corrupt(corrupt) => panic!("{}: {corrupt}", file.name),
        }
    }
    assert_eq!(framer.finish(), binlog::Finish::Clean);
    let format = framer.format().unwrap().clone();
    let [description, previous, middle @ .., last] = &events[..] else { panic!("{} events", events.len()) };
    assert_eq!(description.kind(), Kind::FORMAT_DESCRIPTION);
    let next_file = match last.kind() {
        Kind::ROTATE => Some(String::from_utf8(last.body()[8..].to_vec()).unwrap()),
        Kind::STOP => None,
        other => panic!("the last event is {other:?}"),
    };
    let transactions = read_transactions(middle, &format);
    assert_eq!(transactions.len() as u64, file.transactions);
    Read { previous: PreviousGtids::decode(previous, &format).unwrap(), transactions, next_file }
}

fn read_transactions(events: &[Event], format: &FormatDescription) -> Vec<Logged> {
    let mut transactions: Vec<Logged> = Vec::new();
    let mut lengths: Vec<u64> = Vec::new();
    let mut maps: BTreeMap<u64, TableMap> = BTreeMap::new();
    for event in events {
        if event.kind() == Kind::GTID {
            let gtid = MySqlGtid::decode(event, format).unwrap();
            transactions.push(Logged { gtid, ..Logged::default() });
            lengths.push(0);
        }
        let transaction = transactions.last_mut().unwrap();
        *lengths.last_mut().unwrap() += event.bytes().len() as u64;
        match event.kind() {
            Kind::GTID => {}
            Kind::QUERY => {
                let query = Query::decode(event, format).unwrap();
                if query.sql[..] != b"BEGIN"[..] {
                    transaction.ddl = Some(String::from_utf8(query.sql.to_vec()).unwrap());
                }
            }
            Kind::TABLE_MAP => {
                let map = TableMap::decode(event, format).unwrap();
                maps.insert(map.table_id, map);
            }
            Kind::XID => {
                Xid::decode(event, format).unwrap();
            }
            kind if kind.is_rows() => {
                let rows = RowsEvent::decode(event, format).unwrap();
                let map = &maps[&rows.table_id];
                transaction.changes.extend(changes(&rows, map));
                if rows.flags & RowsEvent::STMT_END != 0 {
                    maps.clear();
                }
            }
            other => panic!("{other:?} in a transaction"),
        }
    }
    for (transaction, length) in transactions.iter().zip(lengths) {
        assert_eq!(transaction.gtid.transaction_length, Some(length));
    }
    transactions
}

fn changes(rows: &RowsEvent, map: &TableMap) -> Vec<(RowName, Option<TextRow>, Option<TextRow>)> {
    let text = |range: std::ops::Range<usize>| -> TextRow {
        let all = if rows.kind == RowsKind::Delete { &rows.before_columns } else { &rows.after_columns };
        let values = binlog::table_map::columns(map, all, &rows.rows[range]);
        let texts = values.map(|value| {
            let value = value.unwrap();
            let column = &map.columns[value.column];
            value.value.map_or("NULL".to_owned(), |raw| value::display(column, raw, false))
        });
        texts.collect()
    };
    let all = rows.images(map).map(|images| {
        let images = images.unwrap();
        let (before, after) = (images.before.map(text), images.after.map(text));
        let key = map.primary_key.as_ref().unwrap().iter();
        let row = after.as_ref().or(before.as_ref()).unwrap();
        let name = (format!("{}.{}", map.schema, map.table), key.map(|part| row[part.column].clone()).collect());
        (name, before, after)
    });
    all.collect()
}
