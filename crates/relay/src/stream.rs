//! What a receiver has to know of the stream it writes, to resume it: where the last event ended, where the last whole
//! transaction ended, which GTIDs have come.
//!
//! Where transactions begin and end says [`Boundary`]. Nothing here judges, orders or applies anything.

use crate::gtids::Gtids;
use binlog::LogPosition;
use binlog::boundary::{Boundary, Open, Step};
use binlog::gtids::Gtid;
use binlog::{Corruption, Event, FormatDescription, Kind, MariaDbGtid, MySqlGtid};
use std::fmt::Write;
use std::sync::Arc;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stream {
    transaction: Boundary,
    /// Of the transaction that is open.
    pending: Option<Gtid>,
    gtids: Gtids,
    boundary: Option<LogPosition>,
    end: Option<LogPosition>,
}

impl Stream {
    pub(crate) fn starting_with(gtids: Gtids) -> Self {
        Stream { gtids, ..Stream::default() }
    }

    /// After the last event.
    pub(crate) fn end(&self) -> Option<&LogPosition> {
        self.end.as_ref()
    }

    /// After the last whole transaction.
    pub(crate) fn boundary(&self) -> Option<&LogPosition> {
        self.boundary.as_ref()
    }

    pub(crate) fn gtids(&self) -> &Gtids {
        &self.gtids
    }

    pub(crate) fn in_transaction(&self) -> bool {
        !self.transaction.is_between()
    }

    /// The stream comes again from `at`: an open transaction is void.
    pub(crate) fn restart(&mut self, at: &LogPosition) {
        self.transaction.restart();
        self.pending = None;
        self.end = Some(at.clone());
        self.boundary = Some(at.clone());
    }

    /// Takes note of an event that ends at `end` of `file`.
    pub(crate) fn observe(
        &mut self,
        event: &Event,
        format: &FormatDescription,
        file: &Arc<str>,
        end: u64,
    ) -> Result<(), Corruption> {
        let step = match event.kind() {
            Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED => {
                let gtid = MySqlGtid::decode(event, format)?;
                self.pending = Gtid::of_mysql(&gtid).filter(|_| gtid.gno > 0);
                self.transaction.gtid()
            }
            Kind::MARIADB_GTID => {
                let gtid = MariaDbGtid::decode(event, format)?;
                self.pending = Some(Gtid::of_mariadb(&gtid));
                self.transaction.mariadb_gtid(gtid.flags)
            }
            _ => self.transaction.event(event, format),
        };
        match step {
            Step::Ends { .. } | Step::EndsNothing => {
                if let Some(gtid) = self.pending.take() {
                    self.gtids.insert(&gtid);
                }
            }
            // Its server did not finish what was open.
            Step::NewLog { .. } => self.pending = None,
            Step::Aside | Step::Inside | Step::Begins { .. } => {}
        }
        set(&mut self.end, file, end);
        if self.transaction.is_between() {
            set(&mut self.boundary, file, end);
        }
        Ok(())
    }

    /// For a segment's header: lines of `name value`.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        let open = match self.transaction.open() {
            Open::No => "no",
            Open::Statement => "statement",
            Open::Block => "block",
        };
        // Writing to a String does not fail.
        let _ = writeln!(text, "open {open}");
        let _ = writeln!(text, "gtids {}", self.gtids);
        if let Some(gtid) = &self.pending {
            let _ = writeln!(text, "pending {gtid}");
        }
        for (name, position) in [("boundary", &self.boundary), ("end", &self.end)] {
            if let Some(position) = position {
                let _ = writeln!(text, "{name} {} {}", position.offset, position.file);
            }
        }
        text
    }

    pub(crate) fn from_text(text: &str) -> Option<Stream> {
        let mut stream = Stream::default();
        let position = |value: &str| {
            let (offset, file) = value.split_once(' ')?;
            Some(LogPosition::new(file, offset.parse().ok()?))
        };
        for line in text.lines() {
            let (name, value) = line.split_once(' ')?;
            match name {
                "open" => {
                    stream.transaction = Boundary::resumed(match value {
                        "no" => Open::No,
                        "statement" => Open::Statement,
                        "block" => Open::Block,
                        _ => return None,
                    });
                }
                "gtids" => stream.gtids = Gtids::parse(value)?,
                "pending" => stream.pending = Some(value.parse().ok()?),
                "boundary" => stream.boundary = Some(position(value)?),
                "end" => stream.end = Some(position(value)?),
                _ => return None,
            }
        }
        Some(stream)
    }
}

fn set(slot: &mut Option<LogPosition>, file: &Arc<str>, offset: u64) {
    match slot {
        Some(position) => {
            if !Arc::ptr_eq(&position.file, file) {
                position.file = file.clone();
            }
            position.offset = offset;
        }
        None => *slot = Some(LogPosition { file: file.clone(), offset }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As earlier versions have written it into the headers of segments.
    #[test]
    fn text_stays_readable() {
        for open in ["no", "statement", "block"] {
            let text = format!("open {open}\ngtids 0-1-7\npending 0-1-8\nboundary 400 b.000001\nend 900 b.000001\n");
            let stream = Stream::from_text(&text).expect("a stream");
            assert_eq!(stream.to_text(), text);
            assert_eq!(stream.in_transaction(), open != "no");
            assert_eq!(stream.boundary(), Some(&LogPosition::new("b.000001", 400)));
        }
        assert_eq!(Stream::from_text("open maybe\n"), None);
        assert_eq!(Stream::from_text("open no\ngtids \n"), Some(Stream::default()));
    }
}
