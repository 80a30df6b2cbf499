//! What the fuzz targets share: how an input becomes events.
//!
//! An input is a byte that chooses the format description, then events, each behind its length in two bytes. Lengths in
//! headers are set right and there are no checksums: both are checked before anything else looks at an event, and a fuzzer that
//! had to find them would never get further.

use binlog::{Checksum, Event, FormatDescription};
use bytes::Bytes;

const MYSQL: &[u8] = include_bytes!("../../tests/golden/mysql-9.7/rows.binlog");
const MYSQL_5: &[u8] = include_bytes!("../../tests/golden/mysql-5.6.14/rows.binlog");
const MARIADB: &[u8] = include_bytes!("../../tests/golden/mariadb-11.8/rows.binlog");

/// The first bytes of a log that are not an event.
pub const MAGIC_BYTES: usize = 4;
/// Offset of an event's length in its header.
const LENGTH_AT: usize = 9;

/// The format description that a log begins with.
pub fn format_of(log: &[u8]) -> Option<FormatDescription> {
    let length = u32::from_le_bytes(log.get(MAGIC_BYTES + LENGTH_AT..)?.first_chunk().copied()?) as usize;
    let event = log.get(MAGIC_BYTES..MAGIC_BYTES + length)?;
    let (_, mut format) = FormatDescription::decode(&Bytes::copy_from_slice(event)).ok()?;
    format.checksum = Checksum::Off;
    Some(format)
}

/// The choices of an input's first byte.
pub fn formats() -> Vec<FormatDescription> {
    [MYSQL, MYSQL_5, MARIADB].into_iter().filter_map(format_of).collect()
}

pub fn events(input: &[u8]) -> Option<(FormatDescription, Vec<Event>)> {
    let (&choice, mut rest) = input.split_first()?;
    let mut formats = formats();
    let format = formats.swap_remove(usize::from(choice) % formats.len());
    let mut events = Vec::new();
    while let Some((length, more)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(more.len());
        let (bytes, after) = more.split_at(length);
        let mut bytes = bytes.to_vec();
        if let Some(field) = bytes.get_mut(LENGTH_AT..LENGTH_AT + 4) {
            field.copy_from_slice(&(length as u32).to_le_bytes());
        }
        if let Ok(event) = Event::parse(Bytes::from(bytes), Checksum::Off) {
            events.push(event);
        }
        rest = after;
    }
    Some((format, events))
}
