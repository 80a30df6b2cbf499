//! Sends file after file, each up to its durable end; then waits for more.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlog::{Checksum, FIRST_OFFSET, FormatDescription, Header, Kind, LogPosition, MariaDbGtidList};
use wire::server::{EventReply, Peer, PeerError, ServerError};

use super::artificial_events::{self, ClearedFields};
use super::context::{Context, DumpError, fatal};
use super::filter::{FollowUp, Verdict};
use super::group_sender::{GroupSender, LogGrowth};
use super::old_replica::{self, GTIDS, ReplacedEvent, ReplicaCapabilities};
use super::outgoing_events::OutgoingEvents;
use super::request::{DumpStart, MarkedEvents, Request, Vendor, WaitMode};
use super::start::{Filter, Start};
use crate::inventory::{Extent, FileStart, LogFile, LogReader, ReadError, SourceFacts};
use crate::retag::value::EventGrowth;
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
    groups: Option<GroupSender>,
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
        outgoing: OutgoingEvents::default(),
        groups,
    };
    let mut at = Some((start.file, start.offset, start.has_first));
    while let Some((file, offset, has_first)) = at.take() {
        match sender.file(&file, offset, has_first)? {
            FileEnd::File => {}
            FileEnd::Stream => return Ok(sender.peer.end()?),
            FileEnd::Replaced { at } => {
                let source = context.inventory.source();
                return Err(replaced(source.as_deref(), &first, &LogPosition::new(Arc::clone(&file.name), at)));
            }
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

/// In the words of the source's version. MariaDB's number lets a replica come again.
fn replaced(source: Option<&SourceFacts>, first: &(Arc<str>, u64), last: &LogPosition) -> DumpError {
    let is_mariadb = source.is_some_and(SourceFacts::is_mariadb);
    let (code, what) = if is_mariadb && source.is_some_and(|source| source.at_least(10, 2, 0)) {
        (4052, "A slave with the same server_uuid/server_id is already connected")
    } else if source.is_some_and(SourceFacts::says_replica) {
        (1236, "A replica with the same server_uuid/server_id as this replica has connected to the source")
    } else {
        (1236, "A slave with the same server_uuid/server_id as this slave has connected to the master")
    };
    let ((file, offset), (path, at)) = (first, (if is_mariadb { "" } else { "./" }, last));
    DumpError::Refused(ServerError::new(
        code,
        "HY000",
        format!(
            "{what}; the first event '{file}' at {offset}, the last event read from '{path}{}' at {}, the last byte read from '{path}{}' at {}.",
            at.file, at.offset, at.file, at.offset
        ),
    ))
}

/// Inside of an event a replica can not be told: it loses its connection, and is told when it asks for the event again.
fn unreadable(file: &LogFile, at: u64, error: ReadError) -> DumpError {
    tracing::error!("a replica's stream ends inside of the event at {}:{at}: {error}", file.name);
    file.is_broken_at(at, error.to_string());
    DumpError::Gone(PeerError::Gone { during: "reading an event for it", source: io::Error::other(error) })
}

enum FileEnd {
    /// The next file follows.
    File,
    /// The replica has all that it wanted.
    Stream,
    /// It has come again on another connection; all before `at` was read.
    Replaced { at: u64 },
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
    outgoing: OutgoingEvents,
    /// The replica is sent groups.
    groups: Option<GroupSender>,
}

impl Sender<'_> {
    fn file(&mut self, file: &LogFile, offset: u64, has_first: bool) -> Result<FileEnd, DumpError> {
        let rotate = artificial_events::rotate(self.server_id, self.checksum, &file.name, offset);
        self.peer.event(&rotate)?;
        let extent = self.context.inventory.sendable(file);
        let Some(start) = self.start_of(file, extent)? else { return Ok(FileEnd::Stream) };
        self.format(&start, offset, has_first)?;
        if let Some(groups) = &mut self.groups {
            groups.begin_file(self.peer, &start.format, offset.max(start.after_format), self.server_id)?;
        }
        let by_gtid = !matches!(self.request.start, DumpStart::Position(_));
        let growth = if by_gtid { EventGrowth::MayGrow } else { EventGrowth::AsItIs };
        self.outgoing = OutgoingEvents::of(self.context.inventory, file, self.checksum, growth);
        let mut reader = file.reader(if offset > FIRST_OFFSET { offset } else { start.after_format })?;
        loop {
            let extent = self.context.inventory.sendable(file);
            if reader.offset() >= extent.end {
                if !extent.grows {
                    self.send_held()?;
                    return Ok(FileEnd::File);
                }
                if let Some(ended) = self.wait(file, &mut reader)? {
                    return Ok(ended);
                }
                continue;
            }
            if let Some(groups) = &mut self.groups {
                groups.has_waiting(extent.end - reader.offset());
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
            _ if offset > FIRST_OFFSET => ClearedFields::CreatedAndPosition,
            // Its position stays: an applier with workers knows by it that the stream has begun anew, and lets go of a transaction that was cut off
            // (`exec_relay_log_event`, sql/rpl_replica.cc). Without it the rest of the stream goes to a worker that is inside of it.
            Filter::MySql(_) if has_first => ClearedFields::Created,
            Filter::MariaDb(filter) if !filter.has_all_places() => ClearedFields::Created,
            _ => ClearedFields::Nothing,
        };
        let event = artificial_events::format(&start.format_event, self.checksum, cleared);
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
    ) -> Result<Option<FileEnd>, DumpError> {
        // Behind what was left out.
        let mut left_out: Option<u64> = None;
        while reader.offset() < until {
            let at = reader.offset();
            let Some(peeked) = reader.peek(end)? else { break };
            let header = peeked.header;
            self.timestamp = header.timestamp;
            let (verdict, then) = match &mut self.filter {
                Filter::Nothing => (Verdict::Send, FollowUp::GoOn),
                Filter::MySql(filter) => (filter.take(&peeked, format)?, FollowUp::GoOn),
                Filter::MariaDb(filter) if filter.is_done() => (Verdict::Send, FollowUp::GoOn),
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
                FollowUp::GoOn => {}
                FollowUp::GtidList => self.gtid_list(0, reader.offset())?,
                FollowUp::UntilReached => {
                    self.gtid_list(MariaDbGtidList::FLAG_UNTIL_REACHED, reader.offset())?;
                    return Ok(Some(FileEnd::Stream));
                }
            }
        }
        self.last_sent = Instant::now();
        if let Some(behind) = left_out {
            self.jumped_to(file, behind)?;
        }
        self.take_replies()?;
        let at = reader.offset();
        Ok(self.context.is_replaced().then_some(FileEnd::Replaced { at }))
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
            Vendor::MariaDb { annotate, capability: capability @ ..GTIDS } => {
                Some(ReplicaCapabilities { capability, annotate })
            }
            Vendor::MariaDb { .. } | Vendor::MySql { .. } => None,
        };
        let is_as_it_is =
            !OutgoingEvents::changes(header.kind) && (old.is_none() || old_replica::is_for_all(header.kind));
        if is_as_it_is && LogReader::is_large(header.event_len.into()) {
            let wants = if asks { EventReply::Reply } else { EventReply::Nothing };
            if let Some(groups) = &mut self.groups {
                groups.large(self.peer, &header)?;
            }
            return self.large_event(reader, file, header.event_len as usize, wants);
        }
        let Some(event) = reader.next(end)? else { return Ok(()) };
        let instead;
        let sent = match old.map(|known| old_replica::passed(event, self.checksum, known)) {
            None | Some(ReplacedEvent::AsItIs) => self.outgoing.event(event, at)?,
            Some(ReplacedEvent::Instead(other)) => {
                instead = other;
                instead.as_slice()
            }
            Some(ReplacedEvent::LeftOut) => return Ok(()),
        };
        if let Some(groups) = &mut self.groups {
            return groups.event(self.peer, sent);
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
        wants: EventReply,
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
        if self.request.marked == MarkedEvents::LeftOut && header.flags & Header::FLAG_SKIP_REPLICATION != 0 {
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
        let event =
            artificial_events::heartbeat(self.request.vendor, self.server_id, self.checksum, &file.name, offset);
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
            let event = artificial_events::gtid_list(self.server_id, self.checksum, filter.state(), flags, offset);
            self.peer.event(&event)?;
        }
        Ok(())
    }

    /// What an event made up for a place says of it; all before it was sent.
    fn shown(&mut self, offset: u64) -> Result<u64, DumpError> {
        self.send_held()?;
        Ok(match &mut self.groups {
            Some(groups) => groups.shown(offset),
            None => offset + self.outgoing.longer_by(),
        })
    }

    fn send_held(&mut self) -> Result<(), DumpError> {
        self.groups.as_mut().map_or(Ok(()), |groups| groups.flush(self.peer))
    }

    /// It does not want to wait, and has what is here.
    fn is_at_end(&self, file: &LogFile) -> bool {
        self.request.waiting == WaitMode::End && !self.context.inventory.sendable(file).awaits_tags
    }

    /// For how long transactions are held back for a group, at the end of what is here.
    fn at_end(&mut self) -> Result<Option<Duration>, DumpError> {
        let growth = if self.context.inventory.more_is_coming() { LogGrowth::Expected } else { LogGrowth::Unknown };
        self.groups.as_mut().map_or(Ok(None), |groups| groups.at_end(self.peer, growth))
    }

    /// Until there is more, or a reason to end.
    fn wait(&mut self, file: &LogFile, reader: &mut LogReader) -> Result<Option<FileEnd>, DumpError> {
        let mut held_for = self.at_end()?;
        self.peer.flush()?;
        if self.is_at_end(file) {
            return Ok(Some(FileEnd::Stream));
        }
        let began = Instant::now();
        loop {
            let heartbeat_in = self.request.heartbeat.map(|period| period.saturating_sub(self.last_sent.elapsed()));
            let at_most = [heartbeat_in, held_for].into_iter().flatten().fold(STEP, Duration::min);
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
                return Ok(Some(FileEnd::Stream));
            }
            if self.context.is_replaced() {
                return Ok(Some(FileEnd::Replaced { at: reader.offset() }));
            }
            if self.request.heartbeat.is_some_and(|period| self.last_sent.elapsed() >= period) {
                self.heartbeat(file, reader.offset())?;
                self.peer.flush()?;
            }
            if held_for.is_some() {
                held_for = self.at_end()?;
                self.peer.flush()?;
            }
            if began.elapsed() > RESTS_AFTER {
                reader.rest();
                self.peer.rest();
            }
        }
    }
}
