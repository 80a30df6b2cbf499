//! The progress of a store's channels, for a store that no channel has open.

use std::path::Path;

use engine::failure::Failure;

use super::files::{Files, failure};
use super::keys;
use super::records::{decode_mark, now_us, read_committed_ranges};
use crate::status::{ChannelStatus, LastTransaction};

pub fn status(path: &Path) -> Result<Vec<ChannelStatus>, Failure> {
    let files = Files::open(path)?;
    let prefix = keys::marks();
    let mut channels = Vec::new();
    for entry in files.data.prefix(&prefix) {
        let (key, value) = entry.into_inner().map_err(|error| failure(path, &error))?;
        let channel = String::from_utf8_lossy(key.get(prefix.len()..).unwrap_or_default()).into_owned();
        let (mark, applied_time_us) = decode_mark(&files, &value)?;
        let source = files.data.get(keys::source(&channel)).map_err(|error| failure(path, &error))?;
        let ranges =
            read_committed_ranges(&files, &channel)?.into_iter().filter(|(_, last)| *last > mark.seq).collect();
        channels.push(ChannelStatus {
            source: source.map(|source| String::from_utf8_lossy(&source).into_owned()).unwrap_or_default(),
            source_position: mark.position.as_ref().map(ToString::to_string),
            gtid_set: mark.gtids.to_string(),
            last: LastTransaction::new(mark.commit_time_us, applied_time_us, now_us()),
            // Whoever runs has the store open, and this would not have got in.
            running: false,
            in_flight: Some(Vec::new()),
            ..ChannelStatus::new(channel, mark.seq, ranges)
        });
    }
    Ok(channels)
}
