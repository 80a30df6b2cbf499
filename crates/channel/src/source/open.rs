//! Opens the source of a run, at the place where the run starts: binary log files, or a live server through the relay log.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use binlog::LogPosition;
use binlog::gtids::GtidState;
use engine::failure::{Failure, FailureKind};
use relay::{FileOptions, FilesReader, LogReader, RealFs, RelayHandle, RelayLog};

use crate::errors::chain;
use crate::monitor::Monitor;
use crate::source::purge::RelayPurger;
use crate::source::receiver::Receiver;
use crate::source::remedies;
use crate::source::upstream::Upstream;
use crate::spec::{End, Spec};
use crate::start::source_state::SourceState;
use crate::start::{self, RelayContents, Start, StreamStart};
use crate::stop_condition::{Logs, StopCondition};
use apply::ChannelRecord;
use apply::retry::back_off;
use wire::reach::Reachability;

/// Between two tries to reach a source before the channel begins: whoever asks the process to end does not wait for longer.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Where the events come from in this run.
pub struct OpenSource {
    pub reader: Box<dyn LogReader>,
    pub live: Option<LiveSource>,
    pub until: StopCondition,
    pub start: Start,
    pub identity: String,
    /// What a live source has executed.
    pub source_has: GtidState,
}

/// What a live source needs.
pub struct LiveSource {
    pub receiver: Receiver,
    pub relay: RelayPurger,
}

/// Where a run on files begins and ends.
pub struct PlannedFiles {
    pub start: Start,
    pub at: relay::Start,
    pub until: StopCondition,
}

/// Changes nothing.
pub fn plan_files(spec: &Spec, files: &[PathBuf], opened: &ChannelRecord) -> Result<PlannedFiles> {
    for path in files {
        // A file that cannot be read is named when it is opened.
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            bail!(
                "{} is not a regular file: a channel goes back in its log, which a pipe can not; write it to a file first",
                path.display()
            );
        }
    }
    let names = start::names(files)?;
    let (start, at) = start::files(opened, &names, &spec.span.start)?;
    // A channel that began at a position has not recorded the GTIDs before it.
    let mut until = StopCondition { gtids_incomplete: true, ..spec.span.until.clone() };
    if let Some(last) = names.last().map(|last| LogPosition::new(last.as_str(), 0)) {
        until.check_position(&last, Logs::All)?;
        until.ends_anyway |= until.is_begin_after(&last);
    }
    Ok(PlannedFiles { start, at, until })
}

pub fn files(spec: &Spec, files: &[PathBuf], opened: &ChannelRecord) -> Result<OpenSource> {
    let PlannedFiles { start, at, until } = plan_files(spec, files, opened)?;
    let event_bytes_max = Some(spec.event_memory().event_bytes_max());
    let options = FileOptions { event_bytes_max, ..FileOptions::default() };
    let reader = FilesReader::open_with(Arc::clone(&spec.log_fs), files.to_vec(), at, options)?;
    Ok(OpenSource {
        reader: Box::new(reader),
        live: None,
        until,
        start,
        identity: "files".to_owned(),
        source_has: GtidState::None,
    })
}

/// As [`read_state`], and as a running channel does: a source that is away is waited for, up to `limit`, or until it is time to stop.
pub fn read_state_in_time(
    options: &wire::ConnectOptions,
    limit: Duration,
    told: &Reachability,
    stop: &AtomicBool,
) -> Result<SourceState> {
    let since = Instant::now();
    let mut attempts = 0_u32;
    loop {
        let failed = match read_state(options) {
            Ok(state) => {
                told.reached();
                return Ok(state);
            }
            Err(failed) => failed,
        };
        let is_away = failed
            .downcast_ref::<Failure>()
            .is_some_and(|failure| matches!(failure.kind, FailureKind::ConnectionLost | FailureKind::Maintenance));
        if !is_away || since.elapsed() >= limit || stop.load(Ordering::Relaxed) {
            return Err(failed);
        }
        told.lost(&chain(&failed));
        attempts = attempts.saturating_add(1);
        let pause = back_off(attempts).min(PAUSE_MAX);
        told.tries_in(pause);
        std::thread::sleep(pause);
    }
}

pub fn read_state(options: &wire::ConnectOptions) -> Result<SourceState> {
    let read = || {
        let mut connection = wire::Connection::connect(options).context("source")?;
        let source = SourceState::read(&mut connection).context("source")?;
        connection.close();
        Ok(source)
    };
    read().map_err(remedies::failure)
}

/// Where a run on a live source begins and ends. Changes nothing.
pub fn plan(spec: &Spec, source: &SourceState, opened: &ChannelRecord) -> Result<(Start, StopCondition)> {
    let start = start::live(opened, source, &spec.span.start, &spec.on_target, spec.relay.contents)?;
    let until = StopCondition { gtids_incomplete: !start.by_gtid, ..spec.span.until.clone() };
    until.check_position(&source.end, Logs::SoFar)?;
    if let Some(end) = until.is_of_another_kind(source.flavour) {
        bail!("--until-gtid {end} is a {} GTID, the source is {}", start::kind(end), source.describe());
    }
    Ok((start, until))
}

pub fn server(
    spec: &Spec,
    options: &wire::ConnectOptions,
    source: SourceState,
    opened: &ChannelRecord,
    monitor: &Monitor,
) -> Result<OpenSource> {
    let (start, mut until) = plan(spec, &source, opened)?;
    if source.binlog_format == "STATEMENT" {
        tracing::warn!(
            "the source logs statements (binlog_format=STATEMENT): they are applied one after the other, and some change other rows on the target \
             (UUID(), LIMIT without ORDER BY, …). Set binlog_format=ROW on the source; --unsafe-statements stop ends the channel before such statements"
        );
    }
    // What the source writes from now on is later than that time.
    let is_past = until.time_us.is_some_and(|end| end <= source.now_us);
    if spec.span.end == End::AtSourceEnd || is_past {
        until.no_further_than(&source.end);
        if start.by_gtid && !source.executed.is_empty() {
            until.source_end = Some(source.executed.clone());
        }
    }
    let (receiver, shared) = receiver(spec, options, &source, &start, monitor)?;
    let from = match (shared.first(), &start.mark.position) {
        (Some(_), Some(position)) => relay::Start::At(position.clone()),
        _ => relay::Start::Beginning,
    };
    let reader = shared.reader(from)?.at_most(spec.event_memory().event_bytes_max());
    monitor.measures().begins_at(shared.end());
    Ok(OpenSource {
        reader: Box::new(reader),
        live: Some(LiveSource { receiver, relay: RelayPurger::new(shared) }),
        until,
        identity: source.identity,
        source_has: source.executed,
        start,
    })
}

/// What receives the source's log into the relay log, from where that ends, or from the start.
pub fn receiver(
    spec: &Spec,
    options: &wire::ConnectOptions,
    source: &SourceState,
    start: &Start,
    monitor: &Monitor,
) -> Result<(Receiver, RelayHandle)> {
    let (writer, shared) = open_relay(spec, source, start)?;
    let upstream = Upstream::new(options.clone(), source, spec.replica.server_id, start, spec.event_memory());
    let (signals, measures) = (Arc::clone(monitor.signals()), Arc::clone(monitor.measures()));
    let mut receiver = Receiver::new(upstream, writer, spec.relay.sync, spec.replica.retry_for, signals, measures);
    if spec.replica.has_other_nodes {
        receiver = receiver.of_member();
    }
    monitor.watch_relay(shared.clone());
    Ok((receiver, shared))
}

/// `gtids`: what is applied before a new relay log begins.
pub fn relay_options(identity: &str, bytes_max: u64, gtids: &GtidState) -> relay::Options {
    relay::Options {
        source: identity.to_owned(),
        relay_bytes_max: bytes_max,
        segment_bytes_max: (bytes_max / 8).clamp(1 << 20, 256 << 20),
        gtids: gtids.to_string(),
    }
}

type OpenRelay = (relay::RelayWriter, RelayHandle);

/// The relay log, emptied when it does not hold what comes next.
fn open_relay(spec: &Spec, source: &SourceState, start: &Start) -> Result<OpenRelay> {
    if let Some(found) = usable_relay(spec, source, start)? {
        return Ok(found);
    }
    RelayLog::clear(&RealFs, &spec.relay.dir).context("relay log")?;
    let options = relay_options(&source.identity, spec.relay.bytes_max, &start.mark.gtids);
    RelayLog::open(Arc::new(RealFs), &spec.relay.dir, options).context("relay log")
}

/// Whether the relay log has what comes next, and the source what comes behind it. Opening it cuts off a torn end, as the next run does.
pub fn relay_goes_on(spec: &Spec, source: &SourceState, start: &Start) -> bool {
    if start.is_new || !spec.relay.dir.is_dir() {
        return false;
    }
    let Ok(Some((writer, _))) = usable_relay(spec, source, start) else { return false };
    let Some(point) = writer.resume_position() else { return false };
    let gtids = point.gtids.parse().unwrap_or(GtidState::None);
    let mut behind = start.clone();
    behind.stream = match &start.stream {
        StreamStart::Gtids(_) => StreamStart::Gtids(gtids),
        _ => StreamStart::Position(point.position.clone()),
    };
    behind.mark.position = Some(point.position);
    behind.lacks(source).is_none()
}

/// The relay log if it holds what comes next, or nothing yet.
fn usable_relay(spec: &Spec, source: &SourceState, start: &Start) -> Result<Option<OpenRelay>> {
    let options = relay_options(&source.identity, spec.relay.bytes_max, &start.mark.gtids);
    let opened = match RelayLog::open(Arc::new(RealFs), &spec.relay.dir, options) {
        Err(relay::Error::OtherSource { .. }) if start.is_new => None,
        Err(relay::Error::OtherVersion { .. }) if spec.relay.contents == RelayContents::Nothing => {
            tracing::info!(
                "the relay log in {} is of another version of heddle; it begins anew",
                spec.relay.dir.display()
            );
            None
        }
        Err(relay::Error::OtherSource { found, .. }) if start.instead_of.as_ref() == Some(&found) => {
            tracing::info!("discarding what the relay log in {} has of {found}", spec.relay.dir.display());
            None
        }
        other => Some(other.context("relay log")?),
    };
    if let Some((writer, shared)) = opened {
        let covered = match (&start.mark.position, shared.first(), shared.durable()) {
            _ if start.is_new && spec.relay.contents == RelayContents::Nothing => false,
            (None, Some(_), Some(_)) => spec.relay.contents == RelayContents::Copied,
            (Some(position), Some(first), Some(durable)) => first <= *position && *position <= durable,
            _ => false,
        };
        if covered || shared.first().is_none() && spec.relay.contents == RelayContents::Nothing {
            return Ok(Some((writer, shared)));
        }
        if spec.relay.contents == RelayContents::Copied {
            bail!(
                "the relay log in {} does not hold what comes next, and the source has it no more",
                spec.relay.dir.display()
            );
        }
        if !start.is_new {
            tracing::info!(
                "the relay log in {} does not hold what comes next; it begins anew",
                spec.relay.dir.display()
            );
        }
    }
    Ok(None)
}
