//! What a store says of itself: its tables, its channels, and what a crash has left in the staging keyspace.

use std::time::{SystemTime, UNIX_EPOCH};

use binlog::gtids::GtidState;
use engine::Seq;
use engine::failure::{Failure, FailureKind};
use engine::progress::Mark;

use super::files::{Files, failure};
use super::tables::Tables;
use super::{keys, pending_rows, progress};
use crate::ChannelRecord;

/// A committed transaction in the staging keyspace is applied, one that was cut short is forgotten.
pub fn finish_staged(files: &Files) -> Result<(), Failure> {
    let finish = || {
        if files.data.contains_key(keys::staged())? { pending_rows::replay(files) } else { pending_rows::clear(files) }
    };
    finish().map_err(|error| failure(&files.path, &error))
}

pub fn load_tables(files: &Files) -> Result<Tables, Failure> {
    let mut tables = Tables::default();
    for prefix in [keys::versions(), keys::tables(), keys::garbage()] {
        for entry in files.data.prefix(prefix) {
            let (key, value) = entry.into_inner().map_err(|error| failure(&files.path, &error))?;
            tables.load(&key, &value).map_err(|why| {
                Failure::new(FailureKind::Refused, format!("the store {} is damaged: {why}", files.path.display()))
            })?;
        }
    }
    Ok(tables)
}

/// What a store knows of a channel.
pub fn known(files: &Files, channel: &str) -> Result<ChannelRecord, Failure> {
    let mark = read_channel_mark(files, channel)?;
    let source = files.data.get(keys::source(channel)).map_err(|error| failure(&files.path, &error))?;
    let part = files.data.get(keys::part(channel)).map_err(|error| failure(&files.path, &error))?;
    let low_water = mark.as_ref().map_or(0, |mark| mark.seq);
    Ok(ChannelRecord {
        is_copying: false,
        skips: Vec::new(),
        prepared: Vec::new(),
        committed_ranges: read_committed_ranges(files, channel)?
            .into_iter()
            .filter(|(_, last)| *last > low_water)
            .collect(),
        source: source.map(|source| String::from_utf8_lossy(&source).into_owned()),
        part: part.map(|part| String::from_utf8_lossy(&part).into_owned()),
        mark,
        executed: GtidState::None,
        intent: None,
        keeps_branches: false,
    })
}

pub fn read_channel_mark(files: &Files, channel: &str) -> Result<Option<Mark>, Failure> {
    let value = files.data.get(keys::progress(channel)).map_err(|error| failure(&files.path, &error))?;
    value.map(|value| decode_mark(files, &value)).transpose().map(|mark| mark.map(|(mark, _)| mark))
}

pub fn decode_mark(files: &Files, value: &[u8]) -> Result<(Mark, u64), Failure> {
    progress::decode(value).map_err(|why| {
        let message = format!("the progress in the store {} is damaged: {why}", files.path.display());
        Failure::new(FailureKind::Refused, message)
    })
}

pub fn read_committed_ranges(files: &Files, channel: &str) -> Result<Vec<(Seq, Seq)>, Failure> {
    let mut ranges = Vec::new();
    for entry in files.data.prefix(keys::committed_ranges(channel)) {
        let (key, value) = entry.into_inner().map_err(|error| failure(&files.path, &error))?;
        let last = value.first_chunk().map(|bytes| Seq::from_be_bytes(*bytes));
        if let (Some(first), Some(last)) = (keys::committed_range_first(&key), last) {
            ranges.push((first, last));
        }
    }
    Ok(ranges)
}

/// Microseconds since the epoch; for people only.
pub fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
