//! Event by event: which transactions are held back for a group, and what is sent. Pure.

use binlog::boundary::{Boundary, Opener as By, Step};
use binlog::gtids::Gtid;
use binlog::{Flavour, FormatDescription, Header};
use bytes::{Bytes, BytesMut};

use super::clock::Clock;
use super::forming::{Formed, Group, Limits, write_tagged};
use super::member::{self, Member};

/// What the first transaction of a stream must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum First {
    /// MySQL: a replica forgets what it has of a transaction that was cut off.
    Any,
    /// MariaDB: a replica may have a part of the transaction that comes first, and takes the rest.
    Single,
    /// Likewise of a group: the same again, if the log goes on with it.
    Group { first: Gtid, last: Gtid },
}

/// How a replica stands to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replica {
    /// Groups are worth it.
    Behind,
    CaughtUp,
}

/// The group that a replica may have a part of can not be made again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the group {first} to {last}, of which the replica may have a part, can not be made again from this log: on the replica STOP SLAVE; START SLAVE lets it forget that part"
)]
pub struct NotTheSame {
    first: Gtid,
    last: Gtid,
}

/// What is done with the transaction that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Hold,
    Pass,
}

/// See the module.
#[derive(Debug)]
pub struct Gather {
    flavour: Flavour,
    format: FormatDescription,
    limits: Limits,
    boundary: Boundary,
    mode: Mode,
    /// Of the open transaction, while it is held.
    open: BytesMut,
    group: Group,
    clock: Clock,
    first: First,
    /// The group that is made again ends with this one.
    until: Option<(Gtid, Gtid)>,
    ready: Vec<u8>,
    formed: Vec<Formed>,
}

impl Gather {
    pub fn new(flavour: Flavour, format: FormatDescription, limits: Limits, first: First) -> Self {
        Self {
            flavour,
            format,
            limits,
            boundary: Boundary::default(),
            mode: Mode::Pass,
            open: BytesMut::new(),
            group: Group::default(),
            clock: Clock::default(),
            first,
            until: None,
            ready: Vec::new(),
            formed: Vec::new(),
        }
    }

    /// A file begins, described so; what was held is in [`Gather::ready`].
    pub fn begin_file(&mut self, format: FormatDescription) -> Result<(), NotTheSame> {
        self.flush()?;
        (self.format, self.clock) = (format, Clock::default());
        Ok(())
    }

    /// What can be sent now, whole events; and the groups in it, which are to be noted before.
    pub fn ready(&mut self) -> (&mut Vec<u8>, &mut Vec<Formed>) {
        (&mut self.ready, &mut self.formed)
    }

    /// Nothing was sent of the transaction that is open, if one is.
    pub fn has_sent_whole(&self) -> bool {
        self.mode == Mode::Hold || self.is_between()
    }

    fn is_between(&self) -> bool {
        self.boundary.is_between()
    }

    /// The next event is so large that it is sent by itself, as it is.
    pub fn large(&mut self, header: &Header) -> Result<(), NotTheSame> {
        self.flush()?;
        self.mode = Mode::Pass;
        self.boundary.unread(header.kind);
        Ok(())
    }

    /// The next event.
    pub fn event(&mut self, event: &[u8], replica: Replica) -> Result<(), NotTheSame> {
        let Some(header) = Header::parse(event) else {
            self.pass(event);
            return Ok(());
        };
        let end = event.len().saturating_sub(self.format.checksum.len());
        let body = event.get(binlog::HEADER_LEN..end).unwrap_or_default();
        match self.boundary.raw(&header, body, &self.format) {
            Step::Begins { by, .. } => {
                self.mode = self.begins(by, event, replica)?;
                self.inside(event)
            }
            Step::Inside => self.inside(event),
            Step::Ends { first: true, .. } | Step::EndsNothing | Step::NewLog { .. } => {
                self.flush()?;
                self.pass(event);
                Ok(())
            }
            Step::Ends { .. } => {
                self.inside(event)?;
                if self.mode == Mode::Hold { self.end() } else { Ok(()) }
            }
            Step::Aside if self.is_between() => {
                self.flush()?;
                self.pass(event);
                Ok(())
            }
            Step::Aside => self.inside(event),
        }
    }

    /// All that is held becomes ready, as it is.
    pub fn flush(&mut self) -> Result<(), NotTheSame> {
        if let Some((first, last)) = &self.until {
            return Err(NotTheSame { first: first.clone(), last: last.clone() });
        }
        self.flush_group();
        if !self.open.is_empty() {
            let open = std::mem::take(&mut self.open).freeze();
            write_tagged(&open, &mut self.clock, &self.format, &mut self.ready);
            self.mode = Mode::Pass;
        }
        Ok(())
    }

    fn flush_group(&mut self) {
        let group = std::mem::take(&mut self.group);
        self.formed.extend(group.write(&mut self.clock, &self.format, &mut self.ready));
    }

    fn begins(&mut self, by: By, event: &[u8], replica: Replica) -> Result<Mode, NotTheSame> {
        // The one before may have no end.
        if by != By::Gtid || !self.open.is_empty() {
            self.flush()?;
        }
        if by != By::Gtid {
            return Ok(Mode::Pass);
        }
        match std::mem::replace(&mut self.first, First::Any) {
            First::Any => {}
            First::Single => return Ok(Mode::Pass),
            First::Group { first, last } => {
                let opener = member::opener(&Bytes::copy_from_slice(event), &self.format);
                let is_same = opener.and_then(|(_, opener)| opener.gtid()) == Some(first.clone());
                self.until = is_same.then_some((first, last));
                return Ok(if is_same { Mode::Hold } else { Mode::Pass });
            }
        }
        if replica == Replica::Behind || self.until.is_some() {
            return Ok(Mode::Hold);
        }
        self.flush()?;
        Ok(Mode::Pass)
    }

    fn inside(&mut self, event: &[u8]) -> Result<(), NotTheSame> {
        if self.mode == Mode::Pass {
            self.pass(event);
            return Ok(());
        }
        self.open.extend_from_slice(event);
        if self.until.is_some() || self.open.len() + self.group.bytes() <= self.limits.bytes {
            return Ok(());
        }
        if self.open.len() > self.limits.bytes {
            return self.flush();
        }
        self.flush_group();
        Ok(())
    }

    fn end(&mut self) -> Result<(), NotTheSame> {
        let raw = std::mem::take(&mut self.open).freeze();
        let bytes_max = self.limits.bytes.max(raw.len());
        let Some(member) = Member::of(raw.clone(), &self.format, self.flavour, bytes_max) else {
            self.flush()?;
            write_tagged(&raw, &mut self.clock, &self.format, &mut self.ready);
            return Ok(());
        };
        if !self.group.takes(&member, &self.format) {
            self.flush()?;
        }
        self.group.add(member, self.flavour);
        match &self.until {
            Some((_, last)) if self.group.last().as_ref() == Some(last) => {
                self.until = None;
                self.flush_group();
            }
            None if self.group.len() >= self.limits.transactions || self.group.bytes() >= self.limits.bytes => {
                self.flush_group();
            }
            _ => {}
        }
        Ok(())
    }

    fn pass(&mut self, event: &[u8]) {
        if Header::parse(event).is_some_and(|header| binlog::boundary::is_gtid(header.kind)) {
            write_tagged(&Bytes::copy_from_slice(event), &mut self.clock, &self.format, &mut self.ready);
        } else {
            self.ready.extend_from_slice(event);
        }
    }
}

#[cfg(test)]
mod tests;
