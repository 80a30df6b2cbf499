//! `--copy`: rows first. What of a run's arguments holds for the copy, and for the channel's run over the log of the copy's time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use apply::mysql::{BinlogChoice, MySqlTarget, RowsAs, RowsChoice};
use binlog::gtids::GtidState;
use channel::source::Source;
use channel::spec::{RelaySpec, Replica, Span, Spec};
use channel::start::StartRequest;
use channel::start::wrong_start::WrongStart;
use channel::stop_condition::StopCondition;
use copy::{
    CopyEnd, CopyLimits, CopyPart, CopyPlace, CopyRequest, CopySource, CopyTarget, LagGate, LogPart, Measures, Plan,
    RunningChannel,
};
use engine::intake::Filter;
use wire::ConnectOptions;

use super::target::{TargetArgs, account_statements};
use super::values::Gtids;
use crate::cli::connect::{self, End};
use crate::cli::copy::{ShownCopy, part_of_copy};
use crate::cli::exit::Usage;
use crate::cli::feed::{FeedArgs, server_id};
use crate::cli::signals::Ending;

/// `--max-lag`, `--replica`. Asks each replica.
pub(super) fn lag_gate(seconds_max: Option<u64>, replicas: &[String], feed: &FeedArgs) -> Result<Option<LagGate>> {
    let Some(seconds_max) = seconds_max else { return Ok(None) };
    let options = |url: &String| connect::options(End::Target, url, feed.target_defaults_file.as_deref());
    let gate = LagGate::new(seconds_max, replicas.iter().map(options).collect::<Result<_>>()?);
    gate.check()?;
    Ok(Some(gate))
}

/// `--rows-from`.
pub(super) fn rows_server(url: &str, feed: &FeedArgs, ending: &Ending) -> Result<ConnectOptions> {
    let mut options = connect::options(End::Source, url, feed.source_defaults_file.as_deref())?;
    options.limits.interrupt = ending.interrupt();
    Ok(options)
}

/// What a copy depends on beside its channel.
pub(super) struct FirstCopy<'a> {
    /// Of the copy: the channel's, if it is new.
    pub channel: &'a str,
    /// What the channel takes already; `None`: nothing, it is new.
    pub already: Option<&'a Filter>,
    /// Another server than the source that rows are read from.
    pub rows: Option<&'a ConnectOptions>,
    pub writing: &'a TargetArgs,
    pub feed: &'a FeedArgs,
    pub limits: CopyLimits<'a>,
    /// `None`: it is no server.
    pub target: Option<&'a ConnectOptions>,
    pub address: &'a str,
    pub stop: &'a Arc<AtomicBool>,
}

impl FirstCopy<'_> {
    /// What would be copied. Changes nothing.
    pub fn plan(&self, spec: &Spec) -> Result<Plan> {
        copy::plan(&self.request(spec, &Measures::default())?).map_err(anyhow::Error::new)
    }

    /// Until the channel can go on. `running`: the channel to which tables are added.
    pub fn run(&self, spec: &Spec, running: Option<&mut dyn RunningChannel>) -> Result<CopyEnd> {
        let measures = Arc::new(Measures::default());
        let request = self.request(spec, &measures)?;
        let options = request.target.options;
        let shown = ShownCopy {
            measures: &measures,
            // A channel that runs is shown there.
            listen: if running.is_some() { None } else { self.feed.http()? },
            stop: self.stop,
            spec: &mut |following| self.spec(spec, options, following),
        };
        shown.run(&request, running)
    }

    fn request<'s>(&'s self, spec: &'s Spec, measures: &'s Measures) -> Result<CopyRequest<'s>> {
        let (Source::Live(source), Some(target)) = (&spec.source, self.target) else {
            return Err(only_servers().into());
        };
        Ok(CopyRequest {
            source: CopySource { log: source, rows: self.rows },
            target: CopyTarget { options: target, logged: self.logged(), accounts: account_statements(self.writing) },
            channel: self.channel,
            part: CopyPart { taken: spec.part.as_deref(), already: self.already },
            workers: spec.applying.workers,
            limits: self.limits,
            server_id: server_id(&format!("{} copy", self.channel), self.address),
            memory_bytes: self.feed.memory,
            measures,
            stop: self.stop,
        })
    }

    /// The source's GTIDs come when all rows are there: until then nothing goes into the target's log.
    pub fn logged(&self) -> BinlogChoice {
        match self.writing.gtids {
            Gtids::Local => BinlogChoice::Yes,
            Gtids::Preserve => BinlogChoice::No,
        }
    }

    /// Of the run over the log of the copy's time.
    fn spec(&self, spec: &Spec, options: &ConnectOptions, following: &LogPart) -> Result<Spec> {
        let rows = RowsChoice::Is(RowsAs::Overwriting);
        let target = MySqlTarget::connect_for_copy(options.clone(), self.channel, self.logged(), rows);
        let target = target.map_err(anyhow::Error::new)?;
        target.set_reconnect_for(self.feed.connect_retry());
        target.set_account_statements(account_statements(self.writing));
        target.set_hidden_triggers(self.writing.rows.hidden_triggers());
        let start = match (&following.from.gtids, &following.from.position) {
            (GtidState::None, Some(position)) => StartRequest::Position(position.clone()),
            (gtids, _) => StartRequest::Gtids(gtids.clone()),
        };
        let RelaySpec { dir, contents, bytes_max, sync } = &spec.relay;
        let Replica { server_id, retry_for, .. } = spec.replica;
        // The channel reads the log beside it.
        let (dir, server_id) = match self.already {
            None => (dir.clone(), server_id),
            Some(_) => (dir_beside(dir), self::server_id(&format!("{} log", self.channel), self.address)),
        };
        Ok(Spec {
            source: spec.source.clone(),
            log_fs: Arc::clone(&spec.log_fs),
            target: Arc::new(target),
            on_target: GtidState::None,
            span: Span {
                start,
                wrong_start: WrongStart::Known,
                until: stop_at(&following.to),
                of_copy: true,
                ..Span::default()
            },
            applying: spec.applying.clone(),
            relay: RelaySpec { dir, contents: *contents, bytes_max: *bytes_max, sync: *sync },
            replica: Replica { server_id, retry_for, ..Replica::default() },
            part: Some(Arc::new(part_of_copy(following, spec.part.as_deref())?)),
            part_changed: true,
        })
    }
}

/// Where a run that has to come to the place ends.
pub(super) fn stop_at(place: &CopyPlace) -> StopCondition {
    StopCondition {
        position: place.position.clone(),
        source_end: Some(place.gtids.clone()).filter(|gtids| !gtids.is_empty()),
        ..StopCondition::default()
    }
}

/// The relay log of a copy beside that of its channel.
fn dir_beside(dir: &Path) -> PathBuf {
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push("+");
    dir.with_file_name(name)
}

pub(super) fn only_servers() -> Usage {
    Usage("--copy: from a live source, into a server: mysql://…".to_owned())
}

/// Of a copy beside a channel that is done.
pub(super) fn remove_relay_log(spec: &Spec) {
    let dir = dir_beside(&spec.relay.dir);
    if let Err(error) = std::fs::remove_dir_all(&dir)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!("{}: {error}", dir.display());
    }
}
