//! `--copy`: rows first. What of a run's arguments holds for the copy, and for the channel's run over the log of the copy's time.

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
use copy::{CopyEnd, CopyLimits, CopyTarget, LagGate, LogPart, Plan};

use wire::ConnectOptions;

use super::target::{TargetArgs, account_statements};
use super::values::Gtids;
use crate::cli::connect::{self, End};
use crate::cli::copy::{Copy, part_of_copy};
use crate::cli::exit::Usage;
use crate::cli::feed::{FeedArgs, server_id};

/// `--max-lag`, `--replica`. Asks each replica.
pub(super) fn lag_gate(seconds_max: Option<u64>, replicas: &[String], feed: &FeedArgs) -> Result<Option<LagGate>> {
    let Some(seconds_max) = seconds_max else { return Ok(None) };
    let options = |url: &String| connect::options(End::Target, url, feed.target_defaults_file.as_deref());
    let gate = LagGate::new(seconds_max, replicas.iter().map(options).collect::<Result<_>>()?);
    gate.check()?;
    Ok(Some(gate))
}

/// What a copy depends on beside its channel.
pub(super) struct FirstCopy<'a> {
    pub channel: &'a str,
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
        self.copy(spec)?.plan()
    }

    /// Until the channel can go on.
    pub fn run(&self, spec: &Spec) -> Result<()> {
        let copy = self.copy(spec)?;
        if copy.run(self.feed.http()?, &mut |following| self.spec(spec, copy.target.options, following))?
            == CopyEnd::Copied
        {
            tracing::info!("copy: all rows are there; the channel goes on");
        }
        Ok(())
    }

    fn copy<'s>(&'s self, spec: &'s Spec) -> Result<Copy<'s>> {
        let (Source::Live(source), Some(target)) = (&spec.source, self.target) else {
            return Err(Usage("--copy: from a live source, into a server: mysql://…".to_owned()).into());
        };
        Ok(Copy {
            source,
            target: CopyTarget { options: target, logged: self.logged() },
            channel: self.channel,
            part: spec.part.as_deref(),
            workers: spec.applying.workers,
            limits: self.limits,
            server_id: server_id(&format!("{} copy", self.channel), self.address),
            memory_bytes: self.feed.memory,
            stop: self.stop,
        })
    }

    /// The source's GTIDs come when all rows are there: until then nothing goes into the target's log.
    fn logged(&self) -> BinlogChoice {
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
        let until = StopCondition {
            position: following.to.position.clone(),
            source_end: Some(following.to.gtids.clone()).filter(|gtids| !gtids.is_empty()),
            ..StopCondition::default()
        };
        let RelaySpec { dir, contents, bytes_max, sync } = &spec.relay;
        let Replica { server_id, retry_for, .. } = spec.replica;
        Ok(Spec {
            source: spec.source.clone(),
            log_fs: Arc::clone(&spec.log_fs),
            target: Arc::new(target),
            on_target: GtidState::None,
            span: Span { start, wrong_start: WrongStart::Known, until, of_copy: true, ..Span::default() },
            applying: spec.applying.clone(),
            relay: RelaySpec { dir: dir.clone(), contents: *contents, bytes_max: *bytes_max, sync: *sync },
            replica: Replica { server_id, retry_for, ..Replica::default() },
            part: Some(Arc::new(part_of_copy(following, spec.part.as_deref())?)),
            part_changed: true,
        })
    }
}
