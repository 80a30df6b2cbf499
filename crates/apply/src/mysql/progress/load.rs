//! What the bookkeeping tables hold of one channel. Only reads.

use engine::failure::{Failure, FailureKind};
use wire::{Connection, Row};

use super::intent::Intents;
use super::statements::{MARK_COLUMNS, read_mark};
use super::stops;
use super::tables::{COPY_TABLES, SCHEMA, SELECTIONS};
use crate::ChannelRecord;
use crate::mysql::server::errors::{FENCE_COLUMN, failed, if_there};
use crate::mysql::server::sql::quote;

pub struct StoredChannel {
    pub opened: ChannelRecord,
    /// Number of the last lease that was taken.
    pub epoch: u64,
    pub intents: Intents,
}

/// Whether rows of the channel are being copied.
pub fn is_copying(connection: &mut Connection, channel: &str) -> Result<bool, Failure> {
    let count =
        connection.scalar(format!("SELECT COUNT(*) FROM {SCHEMA}.{} WHERE channel={}", COPY_TABLES[0], quote(channel)));
    Ok(if_there(count)?.flatten().is_some_and(|count| count != "0"))
}

/// `None`: the target has never heard of the channel.
pub fn read(connection: &mut Connection, channel: &str) -> Result<Option<StoredChannel>, Failure> {
    let skips = stops::skips(connection, channel)?;
    let channel = quote(channel);
    let row = connection.row(format!(
        "SELECT {MARK_COLUMNS},{FENCE_COLUMN},intent,source,started FROM {SCHEMA}.progress WHERE channel={channel}"
    ));
    let Some(row) = if_there(row)?.flatten() else { return Ok(None) };
    let ranges = connection
        .rows(format!("SELECT first_seq,last_seq FROM {SCHEMA}.islands WHERE channel={channel} ORDER BY first_seq"))
        .map_err(failed)?;
    let bad = |why: String| Failure::new(FailureKind::Refused, format!("{SCHEMA}.progress: {why}"));
    let number = |row: &Row, at: usize| row.required::<u64>(at).map_err(|error| bad(error.to_string()));
    let mark = read_mark(&row).map_err(bad)?;
    let text = row.text(6).map_err(failed)?;
    let intents = text.map(Intents::required).transpose()?.unwrap_or_default();
    let mut opened = ChannelRecord { intent: text.map(str::to_owned), skips, ..ChannelRecord::default() };
    let part = connection.scalar(format!("SELECT selection FROM {SCHEMA}.{SELECTIONS} WHERE channel={channel}"));
    opened.part = if_there(part)?.flatten();
    for range in &ranges {
        let (first, last) = (number(range, 0)?, number(range, 1)?);
        if last > mark.seq {
            opened.committed_ranges.push((first, last));
        }
    }
    if number(&row, 8)? == 1 {
        opened.mark = Some(mark);
        opened.source = row.text(7).map_err(failed)?.map(str::to_owned);
    }
    Ok(Some(StoredChannel { opened, epoch: number(&row, 5)?, intents }))
}
