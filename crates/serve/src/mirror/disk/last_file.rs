//! Reads the last file of a mirror after a restart: where it ends, and what distinguishes it from another file of the same name. It changes nothing.

use std::io;

use binlog::boundary::Boundary;
use binlog::{Event, FIRST_OFFSET, FormatDescription, Framer, Kind, LogPosition, LoggedGtids, Step};
use bytes::Bytes;
use relay::fs::{ReadFile, read_full};

use crate::mirror::stream::Continuity;

const READ_BYTES: usize = 1 << 20;
/// The format description, MariaDB's START_ENCRYPTION, the list of GTIDs.
const HEAD_EVENTS: usize = 3;
/// A server is asked for a position in four bytes.
const ASKED_MAX: u64 = u32::MAX as u64;

/// The last file: where it ends, and the position from which the source is asked again.
#[derive(Debug, Clone)]
pub struct LastFile {
    /// The end of its last whole event.
    pub end: LogPosition,
    /// The offset of the last event whose position fits into four bytes: the source is asked from there.
    pub again_from: u64,
    /// Its first events. They distinguish it from another file of the same name.
    pub head: Vec<Bytes>,
    /// The GTIDs before `again_from`.
    pub gtids: Continuity,
    /// The end of the last whole transaction, and the GTIDs up to there.
    pub last_boundary: LastBoundary,
    has_list: bool,
    format: Option<FormatDescription>,
}

/// A boundary between two transactions.
#[derive(Debug, Clone)]
pub struct LastBoundary {
    pub end: LogPosition,
    pub gtids: LoggedGtids,
    /// Of the transaction that is open.
    open: LoggedGtids,
    boundary: Boundary,
}

/// Reads a file up to its last whole event.
pub fn scan(file: &dyn ReadFile, name: &str) -> io::Result<LastFile> {
    let mut framer = Framer::new();
    let mut last = LastFile {
        end: LogPosition::new(name, 0),
        again_from: FIRST_OFFSET,
        head: Vec::new(),
        gtids: Continuity::default(),
        last_boundary: LastBoundary {
            end: LogPosition::new(name, 0),
            gtids: LoggedGtids::default(),
            open: LoggedGtids::default(),
            boundary: Boundary::default(),
        },
        has_list: false,
        format: None,
    };
    // They come again.
    let mut waiting = Vec::new();
    let mut read_to = 0;
    loop {
        match framer.next() {
            Step::Event { event, offset } => {
                if let Some(format) = framer.format() {
                    last.last_boundary.found(&event, framer.offset(), format);
                    last.found(event, offset, format, &mut waiting);
                }
                last.end.offset = framer.offset();
            }
            Step::NeedMore { at_least } => {
                let mut chunk = vec![0; READ_BYTES.max(at_least)];
                let read = read_full(file, &mut chunk, read_to)?;
                if read == 0 {
                    break;
                }
                chunk.truncate(read);
                read_to += read as u64;
                framer.push(chunk.into());
            }
            // A crash of the machine may leave anything behind what was durable.
            Step::Corrupt(_) => break,
        }
    }
    last.format = framer.format().cloned();
    Ok(last)
}

impl LastBoundary {
    /// Takes note of the next event, which ends at `end`.
    fn found(&mut self, event: &Event, end: u64, format: &FormatDescription) {
        self.boundary.event(event, format);
        // Both were judged when they came.
        match LoggedGtids::of_list(event, format) {
            Ok(Some(list)) => self.gtids = list,
            _ => {
                let _ = self.open.observe(event, format);
            }
        }
        if self.boundary.is_between() {
            self.gtids.merge(&std::mem::take(&mut self.open));
            self.end.offset = end;
        }
    }
}

impl LastFile {
    /// Whether its first events are there, which show that it follows the file before it.
    pub fn has_begun(&self) -> bool {
        self.format.is_some() && (self.has_list || self.head.len() == HEAD_EVENTS)
    }

    /// Takes note of its next event. `waiting`: what has GTIDs and comes again.
    fn found(&mut self, event: Event, offset: u64, format: &FormatDescription, waiting: &mut Vec<Event>) {
        if self.head.len() < HEAD_EVENTS {
            self.head.push(event.bytes().clone());
        }
        if offset <= ASKED_MAX {
            for before in waiting.drain(..) {
                // It was judged when it came.
                let _ = self.gtids.observe(&before, format);
            }
            self.again_from = offset;
        }
        self.has_list |= matches!(event.kind(), Kind::PREVIOUS_GTIDS | Kind::MARIADB_GTID_LIST);
        let has_gtids =
            [Kind::PREVIOUS_GTIDS, Kind::MARIADB_GTID_LIST, Kind::GTID, Kind::GTID_TAGGED, Kind::MARIADB_GTID];
        if has_gtids.contains(&event.kind()) {
            waiting.push(event);
        }
    }

    /// The file's own: a file without one is not kept.
    pub fn format(&self) -> Option<&FormatDescription> {
        self.format.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &[u8] = include_bytes!("../../../../binlog/tests/golden/mysql-9.7/rows.binlog");

    /// A file of more than 4 GiB is asked for from the last event that a server can be asked for; all that comes from there on is compared.
    #[test]
    fn behind_4_gib_it_is_asked_for_from_before() {
        let mut framer = Framer::new();
        framer.push(Bytes::from_static(GOLDEN));
        let mut events = Vec::new();
        while let Step::Event { event, offset } = framer.next() {
            events.push((event, offset));
        }
        let format = framer.format().unwrap();
        let far = 1 << 32;
        let (mut near, mut waiting) = (scan(&Golden, "b.000001").unwrap(), Vec::new());
        assert_eq!((near.again_from, near.has_begun()), (events.last().unwrap().1, true));
        near = LastFile { gtids: Continuity::default(), head: Vec::new(), ..near };
        for (number, (event, offset)) in events.iter().enumerate() {
            let offset = offset + if number < events.len() / 2 { 0 } else { far };
            near.found(event.clone(), offset, format, &mut waiting);
        }
        let (_, asked) = &events[events.len() / 2 - 1];
        assert_eq!(near.again_from, *asked);
        // What comes again has not been counted: it would be there twice.
        for (event, _) in &events[events.len() / 2 - 1..] {
            near.gtids.observe(event, format).unwrap();
        }
    }

    /// Of a transaction whose end did not come nothing counts.
    #[test]
    fn the_last_whole_transaction() {
        let mut framer = Framer::new();
        framer.push(Bytes::from_static(GOLDEN));
        let mut whole = scan(&Golden, "b.000001").unwrap().last_boundary;
        assert_eq!(whole.end.offset, GOLDEN.len() as u64);
        let all = std::mem::take(&mut whole.gtids);
        let (mut ends, mut before) = (0, LoggedGtids::default());
        while let Step::Event { event, .. } = framer.next() {
            whole.found(&event, framer.offset(), framer.format().unwrap());
            match event.kind() {
                Kind::GTID => before = whole.gtids.clone(),
                Kind::XID => {
                    assert!(whole.end.offset == framer.offset() && whole.gtids != before);
                    ends += 1;
                }
                kind if kind.is_rows() => assert!(whole.end.offset < framer.offset() && whole.gtids == before),
                _ => {}
            }
        }
        assert!(ends > 3 && whole.gtids == all, "{ends}");
    }

    struct Golden;

    impl ReadFile for Golden {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            let rest = GOLDEN.get(offset as usize..).unwrap_or_default();
            let read = rest.len().min(buf.len());
            buf[..read].copy_from_slice(&rest[..read]);
            Ok(read)
        }

        fn len(&self) -> io::Result<u64> {
            Ok(GOLDEN.len() as u64)
        }
    }
}
