//! Reads event by event, and decides which transactions are held back for a group and which bytes are sent. Pure.

use binlog::boundary::{Boundary, Opener as TransactionStart, Step};
use binlog::gtids::Gtid;
use binlog::{Flavour, FormatDescription, Header};
use bytes::{Bytes, BytesMut};

use super::clock::Clock;
use super::member::{self, Member, Opener};
use super::open_group::{FormedGroup, Group, Limits, write_tagged};
use super::statement::TableKey;
use super::window::{HeldGroup, TouchedTables, Window};

/// What the first transaction or group of a stream must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstTransaction {
    /// MySQL: a replica forgets what it has of a transaction that was cut off.
    Any,
    /// MariaDB: a replica may have a part of the transaction that comes first, and takes the rest.
    Single,
    /// Likewise of a group: the same again, if the log goes on with it.
    Group { first: Gtid, last: Gtid },
}

/// Whether a replica is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replica {
    /// Groups are worth it.
    Behind,
    CaughtUp,
}

/// Whether a group is sent for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    First,
    /// As it was sent before: the replica may have a part of it.
    Again,
}

/// MariaDB: the domains of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domains {
    One,
    Several,
}

/// The group that a replica may have a part of can not be made again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the group {first} to {last}, of which the replica may have a part, cannot be made again from this log. Run STOP SLAVE; START SLAVE on the replica: then it forgets that part"
)]
pub struct GroupMismatch {
    first: Gtid,
    last: Gtid,
}

/// What is done with the events of the open transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenMode {
    Hold,
    Pass,
}

/// See the module.
#[derive(Debug)]
pub struct GroupBuilder {
    flavour: Flavour,
    format: FormatDescription,
    limits: Limits,
    boundary: Boundary,
    mode: OpenMode,
    /// Of the open transaction, while it is held.
    open: BytesMut,
    group: Group,
    clock: Clock,
    first: FirstTransaction,
    /// The group that is made again ends with this one.
    until: Option<(Gtid, Gtid)>,
    /// MariaDB: of the open transaction.
    domain: Option<u32>,
    /// There are several domains.
    window: Option<Window>,
    ready: Vec<u8>,
    formed: Vec<FormedGroup>,
}

impl GroupBuilder {
    pub fn new(flavour: Flavour, format: FormatDescription, limits: Limits, first: FirstTransaction) -> Self {
        Self {
            flavour,
            format,
            limits,
            boundary: Boundary::default(),
            mode: OpenMode::Pass,
            open: BytesMut::new(),
            group: Group::default(),
            clock: Clock::default(),
            first,
            until: None,
            domain: None,
            window: None,
            ready: Vec::new(),
            formed: Vec::new(),
        }
    }

    /// Sets the log's domains.
    pub fn with(mut self, domains: Domains) -> Self {
        self.window = (domains == Domains::Several).then(|| Window::new(self.limits.bytes));
        self
    }

    /// A file begins, described so; what was held is in [`GroupBuilder::ready`].
    pub fn begin_file(&mut self, format: FormatDescription) -> Result<(), GroupMismatch> {
        self.flush()?;
        (self.format, self.clock) = (format, Clock::default());
        Ok(())
    }

    /// What can be sent now, whole events; and the groups in it, which are to be noted before.
    pub fn ready(&mut self) -> (&mut Vec<u8>, &mut Vec<FormedGroup>) {
        (&mut self.ready, &mut self.formed)
    }

    /// Something is held back.
    pub fn holds(&self) -> bool {
        let is_free = self.window.as_ref().is_none_or(Window::is_empty);
        !is_free || !self.open.is_empty() || self.group.len() > 0
    }

    /// Nothing was sent of the transaction that is open, if one is.
    pub fn has_sent_whole(&self) -> bool {
        self.mode == OpenMode::Hold || self.is_between()
    }

    fn is_between(&self) -> bool {
        self.boundary.is_between()
    }

    /// The next event is so large that it is sent by itself, as it is.
    pub fn large(&mut self, header: &Header) -> Result<(), GroupMismatch> {
        self.flush()?;
        self.mode = OpenMode::Pass;
        self.boundary.unread(header.kind);
        Ok(())
    }

    /// The next event.
    pub fn event(&mut self, event: &[u8], replica: Replica) -> Result<(), GroupMismatch> {
        self.next(event, replica)?;
        if let Some(window) = &mut self.window {
            window.release(&mut self.ready, &mut self.formed);
        }
        Ok(())
    }

    fn next(&mut self, event: &[u8], replica: Replica) -> Result<(), GroupMismatch> {
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
                if self.mode == OpenMode::Hold { self.end() } else { Ok(()) }
            }
            Step::Aside if self.is_between() => {
                self.close_group()?;
                self.pass(event);
                Ok(())
            }
            Step::Aside => self.inside(event),
        }
    }

    /// Makes everything that is held ready to send.
    pub fn flush(&mut self) -> Result<(), GroupMismatch> {
        self.close_group()?;
        if let Some(window) = &mut self.window {
            window.release_all(&mut self.ready, &mut self.formed);
        }
        Ok(())
    }

    /// Nothing is added to the group any more.
    fn close_group(&mut self) -> Result<(), GroupMismatch> {
        if let Some((first, last)) = &self.until {
            return Err(GroupMismatch { first: first.clone(), last: last.clone() });
        }
        self.flush_group(Delivery::First);
        if !self.open.is_empty() {
            let open = std::mem::take(&mut self.open).freeze();
            self.touch(TouchedTables::Unknown);
            self.write(&open);
            self.mode = OpenMode::Pass;
        }
        Ok(())
    }

    fn flush_group(&mut self, sending: Delivery) {
        let group = std::mem::take(&mut self.group);
        let Some(window) = &mut self.window else {
            self.formed.extend(group.write(&mut self.clock, &self.format, &mut self.ready));
            return;
        };
        let domain = group.domain();
        let (tables, singles) = (group.tables().collect(), group.singles());
        let mut written = Vec::new();
        match group.write(&mut self.clock, &self.format, &mut written) {
            Some(formed) => window.group(HeldGroup {
                domain,
                tables,
                singles,
                group: written,
                formed,
                is_again: sending == Delivery::Again,
            }),
            None => window.events(&singles),
        }
    }

    /// Events that are sent as they are, but for their tag.
    fn write(&mut self, events: &Bytes) {
        match &mut self.window {
            Some(window) => window.events(events),
            None => write_tagged(events, &mut self.clock, &self.format, &mut self.ready),
        }
    }

    /// What the open transaction touches.
    fn touch(&mut self, touched: TouchedTables<'_>) {
        if let (Some(window), Some(domain)) = (&mut self.window, self.domain) {
            window.touch(domain, touched);
        }
    }

    /// A transaction of this domain begins.
    fn enter(&mut self, domain: u32) {
        if self.window.is_none() && self.domain.is_some_and(|last| last != domain) {
            self.window = Some(Window::new(self.limits.bytes));
        }
        self.domain = Some(domain);
    }

    fn begins(&mut self, by: TransactionStart, event: &[u8], replica: Replica) -> Result<OpenMode, GroupMismatch> {
        // The one before may have no end.
        if by != TransactionStart::Gtid || !self.open.is_empty() {
            self.close_group()?;
        }
        if by != TransactionStart::Gtid {
            return Ok(OpenMode::Pass);
        }
        if self.flavour == Flavour::MariaDb
            && let Some((_, Opener::MariaDb(gtid))) = member::opener(&Bytes::copy_from_slice(event), &self.format)
        {
            self.enter(gtid.domain_id);
        }
        match std::mem::replace(&mut self.first, FirstTransaction::Any) {
            FirstTransaction::Any => {}
            FirstTransaction::Single => return Ok(OpenMode::Pass),
            FirstTransaction::Group { first, last } => {
                let opener = member::opener(&Bytes::copy_from_slice(event), &self.format);
                let is_same = opener.and_then(|(_, opener)| opener.gtid()) == Some(first.clone());
                self.until = is_same.then_some((first, last));
                return Ok(if is_same { OpenMode::Hold } else { OpenMode::Pass });
            }
        }
        if replica == Replica::Behind || self.until.is_some() {
            return Ok(OpenMode::Hold);
        }
        self.flush()?;
        Ok(OpenMode::Pass)
    }

    fn inside(&mut self, event: &[u8]) -> Result<(), GroupMismatch> {
        if self.mode == OpenMode::Pass {
            self.pass(event);
            return Ok(());
        }
        self.open.extend_from_slice(event);
        if self.until.is_some() || self.open.len() + self.group.bytes() <= self.limits.bytes {
            return Ok(());
        }
        if self.open.len() > self.limits.bytes {
            return self.close_group();
        }
        self.flush_group(Delivery::First);
        Ok(())
    }

    fn end(&mut self) -> Result<(), GroupMismatch> {
        let raw = std::mem::take(&mut self.open).freeze();
        let bytes_max = self.limits.bytes.max(raw.len());
        let Some(member) = Member::of(raw.clone(), &self.format, self.flavour, bytes_max) else {
            self.close_group()?;
            self.touch(TouchedTables::Unknown);
            self.write(&raw);
            return Ok(());
        };
        if !self.group.takes(&member, &self.format) {
            self.close_group()?;
        }
        if self.window.is_some() {
            let tables: Vec<TableKey> = member.tables().collect();
            self.touch(TouchedTables::Tables(&tables));
        }
        self.group.add(member, self.flavour);
        match &self.until {
            Some((_, last)) if self.group.last().as_ref() == Some(last) => {
                self.until = None;
                self.flush_group(Delivery::Again);
            }
            None if self.group.len() >= self.limits.transactions || self.group.bytes() >= self.limits.bytes => {
                self.flush_group(Delivery::First);
            }
            _ => {}
        }
        Ok(())
    }

    fn pass(&mut self, event: &[u8]) {
        if let Some(window) = &mut self.window {
            window.events(event);
        } else if Header::parse(event).is_some_and(|header| binlog::boundary::is_gtid(header.kind)) {
            write_tagged(&Bytes::copy_from_slice(event), &mut self.clock, &self.format, &mut self.ready);
        } else {
            self.ready.extend_from_slice(event);
        }
    }
}

#[cfg(test)]
mod tests;
