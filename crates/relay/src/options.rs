//! How a relay log is kept.

/// Of one relay log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Who the events come from (flavour, server uuid or address…). A directory that holds the events of another
    /// source is refused.
    pub source: String,
    /// A segment is sealed and the next one begun once it has so many bytes; at most a quarter of `relay_bytes_max`.
    pub segment_bytes_max: u64,
    /// Above so many bytes there is no room: see [`RelayWriter::has_room`].
    pub relay_bytes_max: u64,
    /// For a new log: the GTIDs (in the server's text form) that were applied before the stream starts.
    pub gtids: String,
}

impl Default for Options {
    fn default() -> Self {
        Options { source: String::new(), segment_bytes_max: 256 << 20, relay_bytes_max: 10 << 30, gtids: String::new() }
    }
}
