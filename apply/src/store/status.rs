//! The progress of a store's channels, for a store that no channel has open.

use std::path::Path;

use engine::failure::Failure;

use super::files::{Files, failure};
use super::{decode_mark, keys, now_us, read_islands};
use crate::status::{ChannelStatus, LastApplied, gaps};

pub fn status(path: &Path) -> Result<Vec<ChannelStatus>, Failure> {
    let files = Files::open(path, false)?;
    let prefix = keys::marks();
    let mut channels = Vec::new();
    for entry in files.data.prefix(&prefix) {
        let (key, value) = entry.into_inner().map_err(|error| failure(path, &error))?;
        let channel = String::from_utf8_lossy(key.get(prefix.len()..).unwrap_or_default()).into_owned();
        let (mark, applied_time_us) = decode_mark(&files, &value)?;
        let source = files.data.get(keys::source(&channel)).map_err(|error| failure(path, &error))?;
        let islands = read_islands(&files, &channel)?.into_iter().filter(|(_, last)| *last > mark.seq);
        let islands: Vec<(u64, u64)> = islands.collect();
        channels.push(ChannelStatus {
            low_water: mark.seq,
            gaps: gaps(mark.seq, &islands),
            islands,
            source: source.map(|source| String::from_utf8_lossy(&source).into_owned()).unwrap_or_default(),
            source_position: mark.position.as_ref().map(ToString::to_string),
            gtid_set: mark.gtids.to_string(),
            last: LastApplied::new(mark.commit_time_us, applied_time_us, now_us()),
            // Whoever runs has the store open, and this would not have got in.
            running: false,
            owner: String::new(),
            intent: None,
            source_reached: None,
            source_lost_seconds: None,
            in_flight: Some(Vec::new()),
            channel,
        });
    }
    Ok(channels)
}
