//! How fast logs are framed, checked and walked, in memory on one core.
//!
//! `cargo run --release -p heddle-binlog --example walk -- [FILE]`: a log of your own, or a generated one of 256 MiB.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unreachable,
    clippy::unwrap_used,
    reason = "an example"
)]

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

use binlog::encode::{self, FormatSpec, Head, RowsSpec, TableMapSpec};
use binlog::rows::{RowsEvent, RowsKind};
use binlog::{Bitmap, Checksum, Column, ColumnKind, Event, Flavour, Framer, Kind, Step, TableMap};
use bytes::Bytes;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let log = match std::env::args().nth(1) {
        Some(path) => Bytes::from(std::fs::read(path)?),
        None => generate(256 << 20),
    };

    let start = Instant::now();
    let mut framer = Framer::new();
    for at in (0..log.len()).step_by(1 << 20) {
        framer.push(log.slice(at..log.len().min(at + (1 << 20))));
    }
    let mut events: Vec<Event> = Vec::new();
    loop {
        match framer.next() {
            Step::Event { event, .. } => events.push(event),
            Step::NeedMore { .. } => break,
            Step::Corrupt(corrupt) => return Err(corrupt.into()),
        }
    }
    report("framing and checksums", log.len(), start, events.len(), "events");
    let format = framer.format().cloned().ok_or("no format description")?;

    // Table maps repeat: decode one when its bytes change, as the engine does.
    let start = Instant::now();
    let mut maps: HashMap<u64, TableMap> = HashMap::new();
    let (mut rows, mut bytes) = (0, 0);
    for event in &events {
        if event.kind() == Kind::TABLE_MAP {
            if !maps.values().any(|map| map.raw == event.body()) {
                let map = TableMap::decode(event, &format)?;
                maps.insert(map.table_id, map);
            }
        } else if event.kind().is_rows() {
            let decoded = RowsEvent::decode(event, &format)?;
            let map = maps.get(&decoded.table_id).ok_or("no table map")?;
            for images in decoded.images(map) {
                black_box(images?);
                rows += 1;
            }
            bytes += decoded.rows.len();
        }
    }
    report("finding row images", bytes, start, rows, "rows");

    let start = Instant::now();
    let mut values = 0;
    for event in events.iter().filter(|event| event.kind().is_rows()) {
        let decoded = RowsEvent::decode(event, &format)?;
        let map = maps.get(&decoded.table_id).ok_or("no table map")?;
        for images in decoded.images(map) {
            let images = images?;
            let sides = [(images.before, &decoded.before_columns), (images.after, &decoded.after_columns)];
            for (range, present) in sides {
                let image = range.and_then(|range| decoded.rows.get(range));
                for value in image.into_iter().flat_map(|image| map.layout().columns(present, image)) {
                    black_box(value?);
                    values += 1;
                }
            }
        }
    }
    report("images and every column", bytes, start, values, "values");
    Ok(())
}

fn report(what: &str, bytes: usize, start: Instant, count: usize, unit: &str) {
    let seconds = start.elapsed().as_secs_f64();
    let (gb_s, million_s) = (bytes as f64 / seconds / 1e9, count as f64 / seconds / 1e6);
    println!("{what:<24} {gb_s:>6.2} GB/s  {million_s:>7.2} million {unit}/s  ({count} in {seconds:.3} s)");
}

/// Single-row updates of a table like sysbench's (id, k, c CHAR(120), pad CHAR(60)), summed.
fn generate(len: usize) -> Bytes {
    let head = Head::new(1, 1, Checksum::Crc32);
    let mut log = binlog::MAGIC.to_vec();
    let format = FormatSpec::new("8.4.3", Flavour::MySql, Checksum::Crc32);
    log.extend(encode::format_description(&head.at(4), &format));
    let columns = [
        Column::new(ColumnKind::LONG, 0, false),
        Column::new(ColumnKind::LONG, 0, false),
        Column::new(ColumnKind::STRING, 0xfe78, false),
        Column::new(ColumnKind::STRING, 0xfe3c, false),
    ];
    let map = TableMapSpec {
        table_id: 7,
        flags: 1,
        schema: "sbtest",
        table: "sbtest1",
        columns: &columns,
        primary_key: None,
        metadata: false,
    };
    let full = Bitmap::full(columns.len());
    let spec = RowsSpec {
        kind: RowsKind::Update,
        table_id: 7,
        flags: RowsEvent::STMT_END,
        version: 2,
        extra: &[],
        before_columns: &full,
        after_columns: &full,
        partial_json: false,
    };
    let mut id = 0u32;
    while log.len() < len {
        id += 1;
        let mut image = vec![0xf0];
        image.extend(id.to_le_bytes());
        image.extend(id.wrapping_mul(2_654_435_761).to_le_bytes());
        image.push(120);
        image.extend([b'c'; 119]);
        image.push(id as u8);
        image.push(60);
        image.extend([b'p'; 60]);
        log.extend(encode::table_map(&head.at(log.len() as u64), &map));
        let rows = encode::rows_v(&head.at(log.len() as u64), &spec, &[&image, &image]);
        log.extend(rows);
        log.extend(encode::xid(&head.at(log.len() as u64), id.into()));
    }
    log.into()
}
