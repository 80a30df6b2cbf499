//! Whether each file goes on where the one before it ended. A copy that was made while the server wrote the file, or that was cut short, may end
//! early, between two transactions: nothing in it says so.
//!
//! A file begins with the GTIDs of the files before it (`PREVIOUS_GTIDS`, MariaDB's GTID list). Where there are no GTIDs the next file's format
//! description says how the server came to it: see [`Ending`]. What a crash left can then not always be told from what was cut: that is said in the
//! log, and reading goes on.

use super::cursor::{FileCursor, FileStep};
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::reader::LocatedEvent;
use binlog::{Ending, Kind, LoggedGtids, NextFile};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that is read.
#[derive(Debug, Default)]
pub(crate) struct Continuity {
    gtids: LoggedGtids,
    /// Of the first file that has been read, for which `gtids` lack a part.
    skipped: Option<SkippedPart>,
    /// The file before, until the next has said what it begins after.
    before: Option<PathBuf>,
    /// How it ended, until the next file's first event has been seen.
    ended: Option<Ending>,
    events: u64,
    /// Its list has been seen, or stands in what was skipped.
    complete: bool,
    /// Its list is MariaDB's.
    lists_last: bool,
    ending: Ending,
}

#[derive(Debug)]
struct SkippedPart {
    path: PathBuf,
    to: u64,
}

/// What was skipped.
struct Part {
    ending: Ending,
    /// It says which GTIDs were before it.
    lists: bool,
}

impl Continuity {
    /// Reading starts in the middle of a file.
    pub(crate) fn starting_at(path: &Path, offset: u64) -> Self {
        let skipped = Some(SkippedPart { path: path.to_owned(), to: offset });
        Self { skipped, complete: true, events: 1, ..Self::default() }
    }

    /// Takes note of an event of the file at `path`. After an error the same event may come again.
    pub(crate) fn observe(&mut self, fs: &Arc<dyn Fs>, path: &Path, located: &LocatedEvent) -> Result<()> {
        let (event, format) = (&located.event, &located.format);
        let kind = event.kind();
        let bad = |corrupt: binlog::Corruption| Error::Corrupt {
            path: path.to_owned(),
            offset: located.position.offset + corrupt.offset,
            reason: corrupt.what.to_string(),
        };
        match (kind, self.events) {
            (Kind::FORMAT_DESCRIPTION, 0) => self.check_end(path, located)?,
            // Elsewhere it is one that a replica was sent.
            (Kind::PREVIOUS_GTIDS | Kind::MARIADB_GTID_LIST, 1) => {
                self.lists_last = kind == Kind::MARIADB_GTID_LIST;
                if let Some(list) = LoggedGtids::of_list(event, format).map_err(bad)? {
                    self.begin(fs, path, list, &format.server_version)?;
                }
            }
            (Kind::GTID | Kind::GTID_TAGGED | Kind::MARIADB_GTID, _) => {
                self.gtids.observe(event, format).map_err(bad)?;
            }
            _ => {}
        }
        self.ending.observe(event.header(), format);
        self.events += 1;
        Ok(())
    }

    /// The file at `path` has ended, another comes.
    pub(crate) fn end(&mut self, fs: &Arc<dyn Fs>, path: &Path) {
        let mut ending = self.ending;
        if self.skipped.as_ref().is_some_and(|skipped| skipped.path == path) && !ending.is_told_by_gtids() {
            // What can not be read there nobody has asked for.
            ending = self.add_skipped(fs).map(|part| part.ending).unwrap_or_default().and(ending);
        }
        self.before = Some(path.to_owned());
        self.ended = Some(ending);
        (self.events, self.lists_last, self.ending) = (0, false, Ending::default());
    }

    /// Judges the file before by the first event of that at `path`.
    fn check_end(&mut self, path: &Path, located: &LocatedEvent) -> Result<()> {
        let (Some(before), Some(ended)) = (&self.before, self.ended) else { return Ok(()) };
        let (before, next) = (before.clone(), path.to_owned());
        match ended.followed_by(located.event.header(), &located.format) {
            NextFile::Whole => {}
            NextFile::StillWritten => return Err(Error::StillWritten { path: before, next }),
            NextFile::Cut => return Err(Error::CutShort { path: before, next }),
            NextFile::CrashedOrCut => tracing::warn!(
                "{} ends as a crash of its server leaves it, or as an incomplete copy (there are no GTIDs that would tell), and {} begins with \
                 a start of the server: compare its size with the server's own file, or with SHOW BINARY LOGS there",
                before.display(),
                next.display()
            ),
        }
        self.ended = None;
        Ok(())
    }

    fn begin(&mut self, fs: &Arc<dyn Fs>, path: &Path, list: LoggedGtids, server_version: &str) -> Result<()> {
        if let Some(before) = self.before.clone().filter(|_| self.complete && !list.without(&self.gtids).is_empty()) {
            let whole = self.add_skipped(fs).is_some_and(|part| part.lists);
            let missing = list.without(&self.gtids);
            if whole && !missing.is_empty() && !(self.gtids.is_empty() && lists_purged(server_version)) {
                let missing = if self.lists_last { format!("up to {missing}") } else { missing.to_string() };
                return Err(Error::Unfinished { path: before, next: path.to_owned(), missing });
            }
        }
        (self.before, self.skipped, self.complete, self.gtids) = (None, None, true, list);
        Ok(())
    }

    /// The GTIDs before the place where reading began, if it began in the middle of this or the last file; gives how that part ends. `None`: it can not
    /// be read, and nobody has asked for what is there.
    fn add_skipped(&mut self, fs: &Arc<dyn Fs>) -> Option<Part> {
        let Some(skipped) = &self.skipped else { return Some(Part { ending: Ending::default(), lists: true }) };
        let read = || -> Result<Option<(LoggedGtids, Part)>> {
            let mut cursor = FileCursor::open(fs.clone(), &skipped.path, "".into())?;
            let (mut gtids, mut part) = (LoggedGtids::default(), Part { ending: Ending::default(), lists: false });
            loop {
                match (cursor.next()?, cursor.located()) {
                    (FileStep::Event, Some(located)) if located.position.offset < skipped.to => {
                        let (event, format) = (&located.event, &located.format);
                        part.ending.observe(event.header(), format);
                        match LoggedGtids::of_list(event, format) {
                            Ok(Some(list)) => {
                                gtids.merge(&list);
                                part.lists = true;
                            }
                            Ok(None) if gtids.observe(event, format).is_ok() => {}
                            _ => return Ok(None),
                        }
                    }
                    _ => return Ok(Some((gtids, part))),
                }
            }
        };
        let (gtids, part) = read().ok().flatten()?;
        if part.lists {
            self.gtids.merge(&gtids);
        }
        Some(part)
    }
}

/// MySQL 5.6 writes what is set as `gtid_purged`, which it takes only while there are no others, into the next list.
fn lists_purged(server_version: &str) -> bool {
    server_version.starts_with("5.")
}
