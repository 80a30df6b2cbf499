//! Sending: file after file, in each up to what is durable, then waiting for more.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlog::{Checksum, FIRST_OFFSET, FormatDescription, Header, Kind, LogPosition, MariaDbGtidList};
use wire::server::{Peer, PeerError, Wants};

use super::context::{Context, DumpError, fatal};
use super::filter::{Then, Verdict};
use super::grouped::Grouped;
use super::made_up::{self, Cleared};
use super::old_replica::{self, GTIDS, Known, Passed};
use super::passed_on::PassedOn;
use super::request::{By, Marked, Request, Vendor, Waiting};
use super::start::{Filter, Start};
use crate::inventory::{Extent, FileStart, LogFile, LogReader, ReadError};
use crate::retag::value::Room;
use crate::semisync::replies::Replies;

/// How often a wait looks whether the replica is still there.
const STEP: Duration = Duration::from_secs(1);
/// How long there may be nothing to send before memory is given back.
const RESTS_AFTER: Duration = Duration::from_secs(2);
/// Bytes after which it is said how far the replica is.
const TOLD_EVERY: u64 = 4 << 20;

pub(super) fn run(
    peer: &mut Peer,
    request: &Request,
    context: Context<'_>,
    start: Start<'_>,
    grouped: Option<Grouped>,
) -> Result<(), DumpError> {
    let Start { reading, at: start } = start;
    let server_id = context.inventory.source().map_or(0, |facts| facts.server_id());
    let first = (Arc::clone(&start.file.name), start.offset);
    let begin = |replying| {
        let at = LogPosition::new(Arc::clone(&first.0), first.1);
        Replies::begin(peer, replying, context.inventory, at).map_err(|error| fatal(error.to_string()))
    };
    let replies = context.replying.map(begin).transpose()?;
    let mut sender = Sender {
        peer,
        request,
        context,
        server_id,
        // Until a file says how it is summed, what the replica has asked for holds.
        checksum: request.checksum.unwrap_or(Checksum::Off),
        filter: start.filter,
        last_sent: Instant::now(),
        timestamp: 0,
        replies,
        passed_on: PassedOn::default(),
        grouped,
    };
    let mut at = Some((start.file, start.offset, start.has_first));
    while let Some((file, offset, has_first)) = at.take() {
        match sender.file(&file, offset, has_first)? {
            Ended::File => {}
            Ended::Stream => return Ok(sender.peer.end()?),
            Ended::Replaced => return Err(replaced(&first, &file.name)),
        }
        let Some(next) = context.inventory.next_after(&file) else {
            // All that the mirror has of a former source was sent: the replica comes again, as after a source's end, and goes on by GTID.
            if !context.inventory.is_present(&file) {
                return Ok(sender.peer.end()?);
            }
            return Err(fatal("could not find next log"));
        };
        reading.moved_to(&next);
        at = Some((next, FIRST_OFFSET, false));
    }
    Ok(())
}

fn replaced(first: &(Arc<str>, u64), file: &str) -> DumpError {
    fatal(format!(
        "A slave with the same server_uuid/server_id as this slave has connected to the master; the first event '{}' at {}, the last event read from '{file}'.",
        first.0, first.1
    ))
}

/// Inside of an event a replica can not be told: it loses its connection, and is told when it asks for the event again.
fn unreadable(file: &LogFile, at: u64, error: ReadError) -> DumpError {
    tracing::error!("a replica's stream ends inside of the event at {}:{at}: {error}", file.name);
    file.is_broken_at(at, error.to_string());
    DumpError::Gone(PeerError::Gone { during: "reading an event for it", source: io::Error::other(error) })
}

enum Ended {
    /// The next file follows.
    File,
    /// The replica has all that it wanted.
    Stream,
    /// It has come again on another connection.
    Replaced,
}

struct Sender<'a> {
    peer: &'a mut Peer,
    request: &'a Request,
    context: Context<'a>,
    server_id: u32,
    checksum: Checksum,
    filter: Filter,
    last_sent: Instant,
    /// Of the last event.
    timestamp: u32,
    replies: Option<Replies<'a>>,
    passed_on: PassedOn,
    /// The replica is sent groups.
    grouped: Option<Grouped>,
}

impl Sender<'_> {
    fn file(&mut self, file: &LogFile, offset: u64, has_first: bool) -> Result<Ended, DumpError> {
        let rotate = made_up::rotate(self.server_id, self.checksum, &file.name, offset);
        self.peer.event(&rotate)?;
        let extent = self.context.inventory.sendable(file);
        let Some(start) = self.start_of(file, extent)? else { return Ok(Ended::Stream) };
        self.format(&start, offset, has_first)?;
        if let Some(grouped) = &mut self.grouped {
            grouped.begin_file(self.peer, &start.format, offset.max(start.after_format), self.server_id)?;
        }
        let by_gtid = !matches!(self.request.by, By::Position(_));
        let room = if by_gtid { Room::MayGrow } else { Room::AsItIs };
        self.passed_on = PassedOn::of(self.context.inventory, file, self.checksum, room);
        let mut reader = file.reader(if offset > FIRST_OFFSET { offset } else { start.after_format })?;
        loop {
            let extent = self.context.inventory.sendable(file);
            if reader.offset() >= extent.end {
                if !extent.grows {
                    self.send_held()?;
                    return Ok(Ended::File);
                }
                if let Some(ended) = self.wait(file, &mut reader)? {
                    return Ok(ended);
                }
                continue;
            }
            if let Some(grouped) = &mut self.grouped {
                grouped.has_waiting(extent.end - reader.offset());
            }
            // So that who looks sees it move.
            let end = extent.end.min(reader.offset() + TOLD_EVERY);
            if let Some(ended) = self.events(&mut reader, file, &start.format, extent.end, end)? {
                return Ok(ended);
            }
            self.context.progress.sent(&file.name, reader.offset(), self.timestamp);
        }
    }

    /// A new file may be named before its first event is there.
    fn start_of(&mut self, file: &LogFile, mut extent: Extent) -> Result<Option<Arc<FileStart>>, DumpError> {
        loop {
            if let Some(start) = file.start(extent.end)? {
                return Ok(Some(start));
            }
            if !extent.grows || extent.is_closed || self.peer.has_left() {
                return Ok(None);
            }
            self.peer.flush()?;
            extent = self.context.inventory.wait_sendable(file, extent.end, STEP);
        }
    }

    fn format(&mut self, start: &FileStart, offset: u64, has_first: bool) -> Result<(), DumpError> {
        self.checksum = start.format.checksum;
        if self.request.checksum.is_none() && self.checksum != Checksum::Off {
            return Err(fatal(
                "Slave can not handle replication events with the checksum that master is configured to log",
            ));
        }
        let cleared = match &self.filter {
            _ if offset > FIRST_OFFSET => Cleared::CreatedAndPosition,
            // Its position stays: an applier with workers knows by it that the stream has begun anew, and lets go of a transaction that was cut off
            // (`exec_relay_log_event`, sql/rpl_replica.cc). Without it the rest of the stream goes to a worker that is inside of it.
            Filter::MySql(_) if has_first => Cleared::Created,
            Filter::MariaDb(filter) if !filter.has_all_places() => Cleared::Created,
            _ => Cleared::Nothing,
        };
        let event = made_up::format(&start.format_event, self.checksum, cleared);
        Ok(self.peer.event(&event)?)
    }

    /// What can be read, up to an event that ends at `until` or behind it.
    fn events(
        &mut self,
        reader: &mut LogReader,
        file: &LogFile,
        format: &FormatDescription,
        end: u64,
        until: u64,
    ) -> Result<Option<Ended>, DumpError> {
        // Behind what was left out.
        let mut left_out: Option<u64> = None;
        while reader.offset() < until {
            let at = reader.offset();
            let Some(peeked) = reader.peek(end)? else { break };
            let header = peeked.header;
            self.timestamp = header.timestamp;
            let (verdict, then) = match &mut self.filter {
                Filter::Nothing => (Verdict::Send, Then::GoOn),
                Filter::MySql(filter) => (filter.take(&peeked, format)?, Then::GoOn),
                Filter::MariaDb(filter) if filter.is_done() => (Verdict::Send, Then::GoOn),
                Filter::MariaDb(filter) => {
                    let inventory = self.context.inventory;
                    let known = || Ok(inventory.gtids_at_end()?.1.into_mariadb());
                    filter.take(&peeked, format, &known)?
                }
            };
            if verdict == Verdict::LeaveOut || !self.is_for_replica(&header) {
                reader.skip()?;
                if verdict == Verdict::LeaveOut {
                    left_out = Some(reader.offset());
                    self.left_out(file, reader.offset())?;
                }
            } else {
                if let Some(behind) = left_out.take() {
                    self.jumped_to(file, behind)?;
                }
                let length = u64::from(header.event_len);
                let asks = match &mut self.replies {
                    Some(replies) => replies.asks(&peeked, format, at + length, end),
                    None => false,
                };
                self.event(reader, file, header, end, asks)?;
            }
            match then {
                Then::GoOn => {}
                Then::GtidList => self.gtid_list(0, reader.offset())?,
                Then::UntilReached => {
                    self.gtid_list(MariaDbGtidList::FLAG_UNTIL_REACHED, reader.offset())?;
                    return Ok(Some(Ended::Stream));
                }
            }
        }
        self.last_sent = Instant::now();
        if let Some(behind) = left_out {
            self.jumped_to(file, behind)?;
        }
        self.take_replies()?;
        Ok(self.context.is_replaced().then_some(Ended::Replaced))
    }

    /// The next event.
    fn event(
        &mut self,
        reader: &mut LogReader,
        file: &LogFile,
        header: Header,
        end: u64,
        asks: bool,
    ) -> Result<(), DumpError> {
        let at = reader.offset();
        let old = match self.request.vendor {
            Vendor::MariaDb { annotate, capability: capability @ ..GTIDS } => Some(Known { capability, annotate }),
            Vendor::MariaDb { .. } | Vendor::MySql { .. } => None,
        };
        let is_as_it_is = !PassedOn::changes(header.kind) && (old.is_none() || old_replica::is_for_all(header.kind));
        if is_as_it_is && LogReader::is_large(header.event_len.into()) {
            let wants = if asks { Wants::Reply } else { Wants::Nothing };
            if let Some(grouped) = &mut self.grouped {
                grouped.large(self.peer, &header)?;
            }
            return self.large_event(reader, file, header.event_len as usize, wants);
        }
        let Some(event) = reader.next(end)? else { return Ok(()) };
        let instead;
        let sent = match old.map(|known| old_replica::passed(event, self.checksum, known)) {
            None | Some(Passed::AsItIs) => self.passed_on.event(event, at)?,
            Some(Passed::Instead(other)) => {
                instead = other;
                instead.as_slice()
            }
            Some(Passed::LeftOut) => return Ok(()),
        };
        if let Some(grouped) = &mut self.grouped {
            return grouped.event(self.peer, sent);
        }
        let done = if asks { self.peer.event_for_reply(sent) } else { self.peer.event(sent) };
        Ok(done?)
    }

    /// Never whole in memory: many replicas may be sent large events, and take them in slowly.
    fn large_event(
        &mut self,
        reader: &mut LogReader,
        file: &LogFile,
        bytes: usize,
        wants: Wants,
    ) -> Result<(), DumpError> {
        let (mut rest, at) = (bytes, reader.offset());
        if let Some(why) = file.why_broken(at) {
            return Err(fatal(why));
        }
        self.peer.large_event(bytes, wants, |send| {
            while rest > 0 {
                let piece = reader.piece(rest).map_err(|error| unreadable(file, at, error))?;
                rest -= piece.len();
                send(piece)?;
            }
            Ok(())
        })
    }

    /// What a replica of this vendor has not asked for.
    fn is_for_replica(&self, header: &Header) -> bool {
        if self.request.marked == Marked::LeftOut && header.flags & Header::FLAG_SKIP_REPLICATION != 0 {
            return false;
        }
        // The servers' own receivers: most of what is sent.
        !matches!(self.request.vendor, Vendor::MariaDb { annotate: false, capability: GTIDS.. } if header.kind == Kind::ANNOTATE_ROWS)
    }

    /// A long stretch that is not for the replica: it would take the source for dead.
    fn left_out(&mut self, file: &LogFile, offset: u64) -> Result<(), DumpError> {
        if self.request.heartbeat.is_some_and(|period| self.last_sent.elapsed() >= period) {
            self.heartbeat(file, offset)?;
            self.peer.flush()?;
        }
        Ok(())
    }

    /// MySQL: the replica's position moves on over what was left out.
    fn jumped_to(&mut self, file: &LogFile, offset: u64) -> Result<(), DumpError> {
        if matches!(self.request.vendor, Vendor::MySql { .. }) {
            self.heartbeat(file, offset)?;
        }
        Ok(())
    }

    fn heartbeat(&mut self, file: &LogFile, offset: u64) -> Result<(), DumpError> {
        // Never before what the replica has added up.
        let offset = self.shown(offset)?;
        let event = made_up::heartbeat(self.request.vendor, self.server_id, self.checksum, &file.name, offset);
        self.peer.event(&event)?;
        self.last_sent = Instant::now();
        Ok(())
    }

    fn take_replies(&mut self) -> Result<(), DumpError> {
        match &mut self.replies {
            Some(replies) => Ok(replies.take(self.peer)?),
            None => Ok(()),
        }
    }

    fn gtid_list(&mut self, flags: u8, offset: u64) -> Result<(), DumpError> {
        let offset = self.shown(offset)?;
        if let Filter::MariaDb(filter) = &self.filter {
            let event = made_up::gtid_list(self.server_id, self.checksum, filter.state(), flags, offset);
            self.peer.event(&event)?;
        }
        Ok(())
    }

    /// What an event made up for a place says of it; all before it was sent.
    fn shown(&mut self, offset: u64) -> Result<u64, DumpError> {
        self.send_held()?;
        Ok(match &mut self.grouped {
            Some(grouped) => grouped.shown(offset),
            None => offset + self.passed_on.longer_by(),
        })
    }

    fn send_held(&mut self) -> Result<(), DumpError> {
        self.grouped.as_mut().map_or(Ok(()), |grouped| grouped.flush(self.peer))
    }

    /// It does not want to wait, and has what is here.
    fn is_at_end(&self, file: &LogFile) -> bool {
        self.request.waiting == Waiting::End && !self.context.inventory.sendable(file).awaits_tags
    }

    /// Until there is more, or a reason to end.
    fn wait(&mut self, file: &LogFile, reader: &mut LogReader) -> Result<Option<Ended>, DumpError> {
        if let Some(grouped) = &mut self.grouped {
            grouped.caught_up(self.peer)?;
        }
        self.peer.flush()?;
        if self.is_at_end(file) {
            return Ok(Some(Ended::Stream));
        }
        let began = Instant::now();
        loop {
            let heartbeat_in = self.request.heartbeat.map(|period| period.saturating_sub(self.last_sent.elapsed()));
            let at_most = heartbeat_in.map_or(STEP, |left| left.min(STEP));
            let inventory = self.context.inventory;
            let extent = match &self.replies {
                Some(replies) => replies.wait_sendable(self.peer, inventory, file, reader.offset(), at_most),
                None => inventory.wait_sendable(file, reader.offset(), at_most),
            };
            self.take_replies()?;
            if extent.end > reader.offset() || !extent.grows {
                return Ok(None);
            }
            if extent.is_closed || self.peer.has_left() || self.is_at_end(file) {
                return Ok(Some(Ended::Stream));
            }
            if self.context.is_replaced() {
                return Ok(Some(Ended::Replaced));
            }
            if self.request.heartbeat.is_some_and(|period| self.last_sent.elapsed() >= period) {
                self.heartbeat(file, reader.offset())?;
                self.peer.flush()?;
            }
            if began.elapsed() > RESTS_AFTER {
                reader.rest();
                self.peer.rest();
            }
        }
    }
}
