//! Whether each file goes on where the one before it ended. A copy that was made while the server wrote the file may end early, between two
//! transactions: nothing in it says so.
//!
//! A file begins with the GTIDs of the files before it (`PREVIOUS_GTIDS`, MariaDB's GTID list). Where there are no GTIDs a mark in the format
//! description says that the server had not closed the file; a MySQL server that has crashed takes it away when it starts again.

use super::cursor::{FileCursor, FileStep};
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::reader::Located;
use binlog::{Kind, LoggedGtids};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that is read.
#[derive(Debug, Default)]
pub(crate) struct Continuity {
    gtids: LoggedGtids,
    /// Of the first file that has been read, for which `gtids` lack a part.
    skipped: Option<Skipped>,
    /// The file before, until the next has said what it begins after.
    before: Option<PathBuf>,
    events: u64,
    /// Its list has been seen, or stands in what was skipped.
    complete: bool,
    /// The next file will tell what is missing in this one.
    has_gtids: bool,
    in_use: bool,
    closed: bool,
}

#[derive(Debug)]
struct Skipped {
    path: PathBuf,
    to: u64,
}

impl Continuity {
    /// Reading starts in the middle of a file.
    pub(crate) fn starting_at(path: &Path, offset: u64, in_use: bool) -> Self {
        let skipped = Some(Skipped { path: path.to_owned(), to: offset });
        Self { skipped, in_use, complete: true, events: 1, ..Self::default() }
    }

    /// Takes note of an event of the file at `path`. After an error the same event may come again.
    pub(crate) fn observe(&mut self, fs: &Arc<dyn Fs>, path: &Path, located: &Located) -> Result<()> {
        let (event, format) = (&located.event, &located.format);
        let kind = event.kind();
        let bad = |corrupt: binlog::Corrupt| Error::Corrupt {
            path: path.to_owned(),
            offset: located.position.offset + corrupt.offset,
            reason: corrupt.what.to_string(),
        };
        match (kind, self.events) {
            (Kind::FORMAT_DESCRIPTION, 0) => self.in_use = format.in_use,
            // Elsewhere it is one that a replica was sent.
            (Kind::PREVIOUS_GTIDS | Kind::MARIADB_GTID_LIST, 1) => {
                // MariaDB leaves the mark on a file that it wrote when it crashed; all of its transactions have GTIDs.
                self.has_gtids = kind == Kind::MARIADB_GTID_LIST;
                if let Some(list) = LoggedGtids::of_list(event, format).map_err(bad)? {
                    self.begin(fs, path, list, &format.server_version)?;
                }
            }
            (Kind::GTID | Kind::GTID_TAGGED | Kind::MARIADB_GTID, _) => {
                self.gtids.observe(event, format).map_err(bad)?;
                self.has_gtids = true;
            }
            _ => {}
        }
        self.closed = matches!(kind, Kind::ROTATE | Kind::STOP);
        self.events += 1;
        Ok(())
    }

    /// The file at `path` has ended, that at `next` comes.
    pub(crate) fn end(&mut self, fs: &Arc<dyn Fs>, path: &Path, next: &Path) -> Result<()> {
        let is_open = self.in_use && !self.closed;
        if is_open && !self.has_gtids && self.add_skipped(fs) != Some(true) {
            return Err(Error::StillWritten { path: path.to_owned(), next: next.to_owned() });
        }
        self.before = Some(path.to_owned());
        (self.events, self.has_gtids, self.in_use, self.closed) = (0, false, false, false);
        Ok(())
    }

    fn begin(&mut self, fs: &Arc<dyn Fs>, path: &Path, list: LoggedGtids, server_version: &str) -> Result<()> {
        if let Some(before) = self.before.clone().filter(|_| self.complete && !list.without(&self.gtids).is_empty()) {
            let whole = self.add_skipped(fs).is_some();
            let missing = list.without(&self.gtids);
            if whole && !missing.is_empty() && !(self.gtids.is_empty() && lists_purged(server_version)) {
                let missing = if self.has_gtids { format!("up to {missing}") } else { missing.to_string() };
                return Err(Error::Unfinished { path: before, next: path.to_owned(), missing });
            }
        }
        (self.before, self.skipped, self.complete, self.gtids) = (None, None, true, list);
        Ok(())
    }

    /// The GTIDs before the place where reading began, if it began in the middle of this or the last file; says whether that file has such. `None`: they can
    /// not be had, and nobody has asked for what is there.
    fn add_skipped(&mut self, fs: &Arc<dyn Fs>) -> Option<bool> {
        let Some(skipped) = &self.skipped else { return Some(false) };
        let read = || -> Result<Option<(LoggedGtids, bool)>> {
            let mut cursor = FileCursor::open(fs.clone(), &skipped.path, "".into())?;
            let (mut gtids, mut list_kind) = (LoggedGtids::default(), None);
            loop {
                match (cursor.next()?, cursor.located()) {
                    (FileStep::Event, Some(located)) if located.position.offset < skipped.to => {
                        let (event, format) = (&located.event, &located.format);
                        match LoggedGtids::of_list(event, format) {
                            Ok(Some(list)) => {
                                gtids.merge(&list);
                                list_kind = Some(event.kind());
                            }
                            Ok(None) if gtids.observe(event, format).is_ok() => {}
                            _ => return Ok(None),
                        }
                    }
                    _ => return Ok(list_kind.map(|kind| (gtids, kind == Kind::MARIADB_GTID_LIST))),
                }
            }
        };
        let (gtids, is_mariadb) = read().ok().flatten()?;
        let has_gtids = is_mariadb || !gtids.is_empty();
        self.gtids.merge(&gtids);
        Some(has_gtids)
    }
}

/// MySQL 5.6 writes what is set as `gtid_purged`, which it takes only while there are no others, into the next list.
fn lists_purged(server_version: &str) -> bool {
    server_version.starts_with("5.")
}
