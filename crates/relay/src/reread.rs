//! Reads events again from their place: a transaction larger than the memory budget is not kept.
//!
//! It starts where an event began before, and reads nothing behind the last one asked for.

use crate::error::{Error, Result};
use crate::files::cursor::{FileCursor, FileStep};
use crate::place::Place;
use crate::reader::LocatedEvent;
use crate::relay_cursor::{RelayCursor, RelayStep};
use binlog::{FormatDescription, LogPosition};
use std::sync::Arc;

/// Reads the events from the one at `from` up to and with the one at `until` again.
///
/// `format` is the description that came with the first of them. Both places must come from one reader, in this order,
/// and must not have been purged.
///
/// # Errors
/// When the file cannot be opened; the iterator's items are errors when it is damaged. It ends after an error.
pub fn reread(from: &Place, until: &Place, format: Arc<FormatDescription>) -> Result<Reread> {
    let log = &from.log;
    let cursor = match &log.segment {
        Some((dir, number)) => {
            let mut cursor = RelayCursor::open_at(log.fs.clone(), dir, *number, from.offset)?;
            cursor.set_stream(log.source_file.clone(), format);
            RereadCursor::Relay(cursor)
        }
        None => {
            let format = Some(FormatDescription::clone(&format));
            RereadCursor::File(FileCursor::open_at(
                log.fs.clone(),
                &log.path,
                log.source_file.clone(),
                format,
                from.offset,
            )?)
        }
    };
    Ok(Reread { cursor, until: until.clone(), done: false })
}

/// Events read again, in order; see [`reread`].
pub struct Reread {
    cursor: RereadCursor,
    until: Place,
    done: bool,
}

enum RereadCursor {
    Relay(RelayCursor),
    File(FileCursor),
}

impl Reread {
    fn step(&mut self) -> Result<LocatedEvent> {
        let until = &self.until;
        let gone = |reason: &str| Error::NoSuchPosition {
            wanted: LogPosition::new(until.log.source_file.clone(), until.offset),
            reason: reason.to_owned(),
        };
        match &mut self.cursor {
            RereadCursor::Relay(cursor) => loop {
                let limit = cursor.file_len()?;
                match cursor.next(limit)? {
                    RelayStep::Event => return cursor.located().cloned().ok_or_else(|| gone("it is not there")),
                    RelayStep::Sealed => {
                        // Past the segment of `until` there is nothing to look for.
                        if until.log.segment.as_ref().is_none_or(|(_, last)| cursor.number() >= *last) {
                            return Err(gone("the segment ends before it"));
                        }
                        cursor.open_next()?;
                    }
                    RelayStep::Large(_) => {}
                    RelayStep::End => return Err(gone("the segment ends before it")),
                }
            },
            RereadCursor::File(cursor) => loop {
                match cursor.next()? {
                    FileStep::Event => return cursor.located().cloned().ok_or_else(|| gone("it is not there")),
                    FileStep::Large(_) => {}
                    FileStep::Clean | FileStep::Torn(_) => return Err(gone("the file ends before it")),
                }
            },
        }
    }
}

impl Iterator for Reread {
    type Item = Result<LocatedEvent>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let item = self.step();
        self.done = match &item {
            Ok(located) => located.place.offset >= self.until.offset && located.place.log.path == self.until.log.path,
            Err(_) => true,
        };
        Some(item)
    }
}
