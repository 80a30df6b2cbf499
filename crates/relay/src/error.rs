//! What can go wrong with logs on disk, each with the file, the offset and what an operator can do.

use binlog::LogPosition;
pub(crate) use binlog::errno::is_full;
use std::io;
use std::path::{Path, PathBuf};

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the relay log or of a binary log file. Offsets are bytes from the start of the named file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// There is no space for more of the relay log. Nothing is lost: the same call may be made again once there is.
    #[error(
        "the disk is full, cannot write {path}: free some space, or give the relay log a limit that fits (--relay-max-bytes) or another disk (--relay-dir)"
    )]
    DiskFull {
        /// The segment.
        path: PathBuf,
    },
    /// A write or an fsync failed earlier: what is on disk is unknown from there on.
    #[error("the relay log cannot be used any more ({cause}): received events can't be trusted; restart")]
    Unusable {
        /// The first failure.
        cause: String,
        /// See [`Error::may_pass`].
        passes: bool,
    },
    /// Another process has the directory.
    #[error("the relay log in {dir} is used by another process")]
    Locked {
        /// The relay log's directory.
        dir: PathBuf,
    },
    /// A part of the relay log is damaged that was durable before.
    #[error(
        "relay log segment {path} is damaged at offset {offset}: {reason}. \
         Remove the relay log directory to receive its events again"
    )]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
    /// The log was written by a Heddle that has another format for it.
    #[error(
        "relay log segment {path} was written by another version of heddle: finish with that one what only this log has (a rescue that was \
         begun), or remove the relay log directory to receive its events again"
    )]
    OtherVersion {
        /// The first segment that is so.
        path: PathBuf,
    },
    /// A segment in the middle is not there.
    #[error("relay log segment {path} is missing. Remove the relay log directory to receive its events again")]
    MissingSegment {
        /// The segment that should exist.
        path: PathBuf,
    },
    /// The directory holds the events of another source.
    #[error("the relay log in {dir} was received from `{found}`, not from `{wanted}`: use another directory")]
    OtherSource {
        /// The relay log's directory.
        dir: PathBuf,
        /// The source it was written for.
        found: String,
        /// The source asked for.
        wanted: String,
    },
    /// A position lies before everything that the log still has.
    #[error("position {wanted} is no longer in the log, which starts at {first}")]
    Purged {
        /// The position asked for.
        wanted: LogPosition,
        /// The oldest there is.
        first: LogPosition,
    },
    /// A position that the log does not have.
    #[error("position {wanted} cannot be read: {reason}")]
    NoSuchPosition {
        /// The position asked for.
        wanted: LogPosition,
        /// Why.
        reason: String,
    },
    /// An event was given before any format description event.
    #[error("the stream from {file} does not begin with a format description event")]
    NoFormat {
        /// The source's file.
        file: String,
    },
    /// An event was given whose position lies before the end of the previous one.
    #[error("the source went back: an event at {found} follows {last}; reconnect with restart() to allow that")]
    WentBack {
        /// The end of what was received.
        last: LogPosition,
        /// The start of the event.
        found: LogPosition,
    },
    /// An event that is larger than its reader holds at once.
    #[error("{position}: an event of {bytes} bytes: at most {limit} are held at once")]
    EventTooLarge {
        /// Its position in the source.
        position: LogPosition,
        /// Its length.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// An event that breaks the binary log's own rules.
    #[error("event at {position} cannot be understood: {reason}")]
    BadEvent {
        /// Its position in the source.
        position: LogPosition,
        /// What is wrong.
        reason: String,
    },
    /// The file does not begin like a binary log.
    #[error("{path} is not a binary log: {reason}")]
    NotABinaryLog {
        /// The file.
        path: PathBuf,
        /// What was found instead.
        reason: String,
    },
    /// The file was compressed after the server wrote it.
    #[error("{path} is compressed and was not read: decompress it first")]
    Compressed {
        /// The file.
        path: PathBuf,
    },
    /// The file is encrypted on disk.
    #[error(
        "{path} is encrypted: binary log files can only be read in place when the server wrote them in clear; \
         replicate from the live server, which sends them in clear"
    )]
    Encrypted {
        /// The file.
        path: PathBuf,
    },
    /// The file ends in the middle of an event.
    #[error(
        "{path} ends in the middle of an event that starts at offset {offset}: {reason}. \
         The copy is incomplete or its server crashed: copy it again"
    )]
    TornTail {
        /// The file.
        path: PathBuf,
        /// Where the incomplete event starts.
        offset: u64,
        /// What is there, what would be needed.
        reason: String,
    },
    /// The file holds bytes that no server writes.
    #[error("{path} is corrupt at offset {offset}: {reason}")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
    /// The next file given is not the one that the log names as its successor.
    #[error("{path} continues in `{expected}` (says its last event), but the next file given is {found}")]
    WrongNextFile {
        /// The file that ends.
        path: PathBuf,
        /// The successor's name.
        expected: String,
        /// The file given instead.
        found: PathBuf,
    },
    /// A file says that there were transactions before it which the file before does not have.
    #[error(
        "{path} ends before transactions that {next} begins after ({missing}). The copy of {path} is incomplete: copy it again"
    )]
    Unfinished {
        /// The file that ends too early.
        path: PathBuf,
        /// The next one.
        next: PathBuf,
        /// Their GTIDs; of MariaDB's the last of each domain and server.
        missing: String,
    },
    /// The copy of a file that its server still wrote, and another file follows.
    #[error(
        "{path} was copied while its server still wrote it, so transactions may be missing before {next} (the log has no GTIDs that would tell): \
         copy it again"
    )]
    StillWritten {
        /// The file that may end too early.
        path: PathBuf,
        /// The next one.
        next: PathBuf,
    },
    /// A file that is followed by one that its server went on to, and does not say so itself.
    #[error(
        "{path} ends early: {next} is what its server went on to, and no event of {path} says so (the log has no GTIDs that would tell what is \
         missing). The copy of {path} is incomplete: copy it again"
    )]
    CutShort {
        /// The file that ends too early.
        path: PathBuf,
        /// The next one.
        next: PathBuf,
    },
    /// A number is missing in a series of binary logs.
    #[error("binary log {missing} is missing: it belongs between {before} and {after}")]
    Gap {
        /// The name of the first file that is not there.
        missing: String,
        /// The file before the gap.
        before: PathBuf,
        /// The file after the gap.
        after: PathBuf,
    },
    /// A directory has the logs of several series.
    #[error("{dir} has binary logs of several names ({names}): give the index file of one of them, or the files")]
    Ambiguous {
        /// The directory.
        dir: PathBuf,
        /// The base names.
        names: String,
    },
    /// There are no binary logs where some were expected.
    #[error("no binary logs in {path}")]
    NoLogs {
        /// The directory or index file.
        path: PathBuf,
    },
}

impl Error {
    /// Whether the same call may succeed later without a restart.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::DiskFull { .. })
    }

    /// Whether the same may succeed later, after a restart at the latest, without a change by a person: [`binlog::errno`].
    pub fn may_pass(&self) -> bool {
        match self {
            Error::DiskFull { .. } => true,
            Error::Io { source, .. } => binlog::errno::is_passing(source),
            Error::Unusable { passes, .. } => *passes,
            _ => false,
        }
    }

    /// What to do where the system has refused; `None`: the message says it, or it is of another kind.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Error::Io { source, .. } => Some(binlog::errno::remedy(source)),
            _ => None,
        }
    }
}

/// Names the file and the attempt for an error of the system.
pub(crate) trait IoContext<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { action, path: path.to_path_buf(), source })
    }
}
