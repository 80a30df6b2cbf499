//! Opens a relay log, or begins one, and repairs what a crash has torn.

use super::RelayWriter;
use crate::active::ActiveSegment;
use crate::error::{Error, IoContext, Result};
use crate::fs::{DirLock, Fs};
use crate::gtids::Gtids;
use crate::log_state::{LogState, PublishedEnd, SEGMENT_BYTES_LIMIT};
use crate::options::Options;
use crate::recover::{self, LogOnDisk, Recovery};
use crate::relay_handle::RelayHandle;
use crate::segment::{self, Name};
use crate::stream::Stream;
use binlog::LogPosition;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The log on disk of what was received from one source.
pub struct RelayLog;

impl RelayLog {
    /// Opens the relay log in `dir`, or begins one, and repairs what a crash has torn (see [`RelayWriter::recovery`]).
    ///
    /// # Errors
    /// [`Error::Locked`] when another process has it, [`Error::OtherSource`], [`Error::Damaged`] or
    /// [`Error::MissingSegment`] when it cannot be trusted.
    pub fn open(fs: Arc<dyn Fs>, dir: &Path, options: Options) -> Result<(RelayWriter, RelayHandle)> {
        fs.create_dir_all(dir).during("create", dir)?;
        let lock = lock(&*fs, dir)?;
        make_private(&*fs, dir)?;
        let found = recover::scan(&*fs, dir, &options.source)?;
        RelayWriter::start(fs, dir, options, lock, found)
    }

    /// Removes all events from the relay log in `dir`, whatever state it is in, and nothing else: for a log whose
    /// contents are of no use any more. The next opening begins anew.
    ///
    /// # Errors
    /// [`Error::Locked`] when a process has it open (a [`RelayWriter`] of this process, too), or what the system says.
    pub fn clear(fs: &dyn Fs, dir: &Path) -> Result<()> {
        fs.create_dir_all(dir).during("create", dir)?;
        let _lock = lock(fs, dir)?;
        let mut segments = Vec::new();
        for name in fs.list(dir).during("list", dir)? {
            match segment::classify(&name) {
                Name::Segment(number) => segments.push((number, dir.join(name))),
                Name::Partial => segments.push((0, dir.join(name))),
                Name::Other => {}
            }
        }
        // Oldest first, each durable before the next: what a crash leaves is still a log without a gap.
        segments.sort();
        for (_, path) in segments {
            fs.remove(&path).during("remove", &path)?;
            fs.sync_dir(dir).during("sync", dir)?;
        }
        Ok(())
    }
}

/// A log of an earlier version, or one that was copied, may be everybody's to read. So may a directory that has other things in it: that is its user's
/// matter.
fn make_private(fs: &dyn Fs, dir: &Path) -> Result<()> {
    let names = fs.list(dir).during("list", dir)?;
    let is_own = |name: &String| name == LOCK || segment::classify(name) != Name::Other;
    let own = names.iter().filter(|name| is_own(name)).map(|name| dir.join(name));
    let whole = names.iter().all(is_own).then(|| dir.to_path_buf());
    for path in own.chain(whole) {
        if let Err(error) = fs.make_private(&path) {
            tracing::warn!("{} can be read by others, and that can not be changed: {error}", path.display());
        }
    }
    Ok(())
}

const LOCK: &str = "lock";

/// Takes the relay directory for this process.
fn lock(fs: &dyn Fs, dir: &Path) -> Result<DirLock> {
    let path = dir.join(LOCK);
    fs.lock(&path).map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => Error::Locked { dir: dir.to_path_buf() },
        _ => Error::Io { action: "lock", path, source },
    })
}

impl RelayWriter {
    fn start(
        fs: Arc<dyn Fs>,
        dir: &Path,
        mut options: Options,
        lock: DirLock,
        found: LogOnDisk,
    ) -> Result<(Self, RelayHandle)> {
        // A full log must have segments that can be purged, and a segment's offsets must fit the published word.
        let segment_bytes_max = options.segment_bytes_max.min(options.relay_bytes_max / 4);
        options.segment_bytes_max = segment_bytes_max.clamp(4096, SEGMENT_BYTES_LIMIT);
        let bad_gtids = |reason: &str| Error::NoSuchPosition {
            wanted: LogPosition::new("", 0),
            reason: format!("`{}` {reason}", options.gtids),
        };
        let gtids = Gtids::parse(&options.gtids).ok_or_else(|| bad_gtids("is not a set of GTIDs"))?;
        let mut recovery = Recovery { segments: found.segments.len(), ..Recovery::default() };
        for path in found.partial {
            fs.remove(&path).during("remove", &path)?;
            recovery.removed.push(path);
        }
        if !recovery.removed.is_empty() {
            fs.sync_dir(dir).during("sync", dir)?;
        }
        // The directory's own name; where its parent cannot be opened there is nothing to be done about that.
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        let _ = fs.sync_dir(parent.unwrap_or(Path::new(".")));
        let shared = Arc::new(LogState::new(fs.clone(), dir));
        for info in found.segments {
            shared.grow(info.bytes);
            shared.add_segment(info);
        }
        let mut writer = RelayWriter {
            fs,
            dir: dir.to_path_buf(),
            options,
            shared: shared.clone(),
            recovery,
            active: None,
            number: 0,
            format: None,
            stream: Stream::starting_with(gtids),
            restarting: false,
            file: Arc::from(""),
            begun: None,
            failed: None,
            _lock: lock,
        };
        if let Some(last) = found.last {
            let path = segment::path(dir, last.number);
            let mut file = writer.fs.open_append(&path).during("open", &path)?;
            if last.len < last.file_len {
                file.set_len(last.len).during("truncate", &path)?;
                shared.shrink(last.file_len - last.len);
                writer.recovery.cut = Some((path.clone(), last.len, last.file_len - last.len));
                tracing::warn!(segment = %path.display(), offset = last.len, bytes = last.file_len - last.len,
                    "cut the torn end of the relay log");
            }
            // What a process that died had written may not be on disk yet. Nor may its names.
            file.sync_data().during("sync", &path)?;
            writer.fs.sync_dir(dir).during("sync", dir)?;
            writer.number = last.number;
            writer.format = Some((last.format, last.format_event));
            writer.stream = last.stream;
            writer.file = last.source_file.clone();
            let published = PublishedEnd { number: last.number, offset: last.len };
            shared.record_durable(writer.stream.end());
            shared.publish(published);
            if !last.sealed {
                let active = ActiveSegment::resume(last.number, path, file, last.len, last.records, last.source_file);
                writer.active = Some(active);
            }
        }
        Ok((writer, RelayHandle { inner: shared }))
    }
}
