//! Keys of everything in the store. The first four bytes are the number of a table; 0 is for what is not a row.

use engine::Seq;

pub const TABLE_BYTES: usize = 4;

fn meta(kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut key = vec![0, 0, 0, 0, kind];
    key.extend_from_slice(rest);
    key
}

/// Marks of all channels start with this, then comes the channel's name.
pub fn marks() -> Vec<u8> {
    meta(b'p', &[])
}

/// The channel's mark.
pub fn progress(channel: &str) -> Vec<u8> {
    meta(b'p', channel.as_bytes())
}

/// The source that the channel is fed from.
pub fn source(channel: &str) -> Vec<u8> {
    meta(b'c', channel.as_bytes())
}

/// The part of the source that the channel takes.
pub fn part(channel: &str) -> Vec<u8> {
    meta(b'f', channel.as_bytes())
}

/// Committed ranges above the mark start with this, then comes their first number.
pub fn committed_ranges(channel: &str) -> Vec<u8> {
    let mut key = meta(b'i', channel.as_bytes());
    // A byte that no name has keeps `a` and `ab` apart.
    key.push(0xff);
    key
}

pub fn committed_range(channel: &str, first: Seq) -> Vec<u8> {
    let mut key = committed_ranges(channel);
    key.extend_from_slice(&first.to_be_bytes());
    key
}

pub fn committed_range_first(key: &[u8]) -> Option<Seq> {
    key.last_chunk().map(|bytes| Seq::from_be_bytes(*bytes))
}

/// Records of tables start with this.
pub fn tables() -> Vec<u8> {
    meta(b't', &[])
}

pub fn table(schema: &str, name: &str) -> Vec<u8> {
    let mut key = meta(b't', schema.as_bytes());
    key.push(0);
    key.extend_from_slice(name.as_bytes());
    key
}

/// Table maps, by their number.
pub fn versions() -> Vec<u8> {
    meta(b'v', &[])
}

pub fn version(number: u32) -> Vec<u8> {
    meta(b'v', &number.to_be_bytes())
}

/// Table numbers whose rows are dropped, but still there.
pub fn garbage() -> Vec<u8> {
    meta(b'g', &[])
}

pub fn garbage_of(table: u32) -> Vec<u8> {
    meta(b'g', &table.to_be_bytes())
}

/// There while the staging keyspace holds a committed transaction.
pub fn staged() -> Vec<u8> {
    meta(b's', &[])
}

/// The number at the end of a key of versions or garbage.
pub fn number(key: &[u8]) -> Option<u32> {
    key.last_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// What the keys of a table's rows start with.
pub fn rows(table: u32) -> [u8; TABLE_BYTES] {
    table.to_be_bytes()
}
