//! The GTIDs of all complete durable transactions. Each question reads on from where the last one ended.

use std::sync::Arc;

use binlog::boundary::{Boundary, Step};
use binlog::{Event, Kind, LogPosition, MariaDbGtid, MySqlGtid};
use bytes::Bytes;

use super::file::{FileStart, LogFile};
use super::gtids::{DomainGtid, Gtids};
use super::reader::{EventHead, ReadError};

/// See the module.
#[derive(Debug)]
pub(super) struct Tip {
    file: Arc<LogFile>,
    offset: u64,
    gtids: Gtids,
    boundary: Boundary,
    /// Of the transaction that is open.
    open: Option<AnnouncedGtid>,
}

#[derive(Debug, Clone)]
pub(super) enum AnnouncedGtid {
    MySql(MySqlGtid),
    MariaDb(DomainGtid),
}

impl Tip {
    /// Reads on to the end of the last file. `files`: all files, with their readable lengths.
    pub(super) fn advance(tip: Option<Tip>, files: &[(Arc<LogFile>, u64)]) -> Result<Option<Tip>, ReadError> {
        let Some((last, end)) = files.last() else { return Ok(None) };
        if let Some(mut tip) = tip
            && tip.file.name == last.name
            && tip.offset <= *end
        {
            tip.read_to(*end)?;
            return Ok(Some(tip));
        }
        // Back to the last file that says what was before it.
        for (index, (file, end)) in files.iter().enumerate().rev() {
            let Some(start) = file.start(*end)? else { continue };
            let is_first = index == 0;
            let Some(gtids) = start.gtids.clone().or_else(|| is_first.then_some(Gtids::None)) else { continue };
            let mut tip = Tip::at(file, &start, gtids);
            tip.read_to(*end)?;
            for (file, end) in files.iter().skip(index + 1) {
                if let Some(start) = file.start(*end)? {
                    tip = Tip::at(file, &start, tip.gtids);
                    tip.read_to(*end)?;
                }
            }
            return Ok(Some(tip));
        }
        Ok(None)
    }

    fn at(file: &Arc<LogFile>, start: &FileStart, gtids: Gtids) -> Self {
        Self { file: Arc::clone(file), offset: start.after_format, gtids, boundary: Boundary::default(), open: None }
    }

    pub(super) fn position(&self) -> LogPosition {
        LogPosition::new(Arc::clone(&self.file.name), self.offset)
    }

    pub(super) fn gtids(&self) -> &Gtids {
        &self.gtids
    }

    fn read_to(&mut self, end: u64) -> Result<(), ReadError> {
        if self.offset >= end {
            return Ok(());
        }
        let Some(start) = self.file.start(end)? else { return Ok(()) };
        let mut reader = self.file.reader(self.offset)?;
        while let Some(peeked) = reader.peek(end)? {
            let announced = announced(&peeked, &start);
            let step = self.boundary.raw(&peeked.header, peeked.body(start.format.checksum), &start.format);
            match announced {
                Err(reason) => return Err(reader.bogus(reason)),
                Ok(Some(gtid)) => self.open = Some(gtid),
                Ok(None) => {}
            }
            if matches!(step, Step::Ends { .. } | Step::EndsNothing) {
                match self.open.take() {
                    Some(AnnouncedGtid::MySql(gtid)) => self.gtids.add_mysql(&gtid),
                    Some(AnnouncedGtid::MariaDb(gtid)) => self.gtids.add_mariadb(gtid),
                    None => {}
                }
            }
            reader.skip()?;
            self.offset = reader.offset();
        }
        Ok(())
    }
}

/// The GTID that an event announces, if it does.
pub(super) fn announced(peeked: &EventHead<'_>, start: &FileStart) -> Result<Option<AnnouncedGtid>, String> {
    let event = match peeked.header.kind {
        Kind::GTID | Kind::GTID_TAGGED | Kind::ANONYMOUS_GTID | Kind::MARIADB_GTID => {
            Event::parse(Bytes::copy_from_slice(peeked.bytes), start.format.checksum)
                .map_err(|error| error.to_string())?
        }
        _ => return Ok(None),
    };
    if event.kind() == Kind::MARIADB_GTID {
        let gtid = MariaDbGtid::decode(&event, &start.format).map_err(|error| error.to_string())?;
        return Ok(Some(AnnouncedGtid::MariaDb(DomainGtid::of(&gtid))));
    }
    let gtid = MySqlGtid::decode(&event, &start.format).map_err(|error| error.to_string())?;
    Ok(Some(AnnouncedGtid::MySql(gtid)))
}
