//! The middle of a rescue: an ordinary channel, from the place where the native applier is held, until the lag is small enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, bail};
use binlog::LogPosition;
use wire::{ConnectOptions, Connection};

use super::filters;
use super::goal::{Goal, Watcher};
use super::relay_logs;
use super::run::Rescue;
use super::state::{Place, Record};
use crate::handover::takeover;
use crate::server;
use apply::Target;
use apply::mysql::progress::SCHEMA;
use channel::monitor::Monitor;
use channel::source::Source;
use channel::spec::{ApplySettings, RelaySpec, Replica, Span, Spec};
use channel::start::source_state::SourceState;
use channel::start::{RelayContents, StartRequest};
use observe::http::{Http, ServedChannel};
use observe::progress::{Kind, Progress};
use observe::summary::{self, Summary};
use replica::status::{Positioning, ReplicaStatus};

impl Rescue<'_> {
    /// ApplierOptions until the goal; false when it was not reached.
    pub(super) fn apply(&mut self, record: &Record) -> Result<bool> {
        let place = record.place()?;
        takeover::check_held(&mut self.control, &self.native, &record.saved, place, &self.server.gtid_mode)?;
        let target = self.target()?;
        let opened = target.open()?;
        let status = server::channel(&mut self.control, &self.native)?;
        // What only the relay logs had has to be applied by Heddle: the native applier would ask the source for it.
        let applied = opened.mark.as_ref().and_then(|mark| mark.position.clone());
        let copied_to = record.saved.copied_to()?.filter(|end| applied.as_ref().is_none_or(|applied| applied < end));
        let goal = match (self.request.abort, opened.intent.as_deref().and_then(intent_seq), &copied_to) {
            (false, ..) => Goal::Lag(self.request.lag),
            (true, _, Some(end)) => {
                self.say(&format!(
                    "the source has purged what comes next: applying what was copied, up to {end}, first"
                ));
                Goal::Position(end.clone())
            }
            (true, None, None) => return Ok(true),
            (true, Some(seq), None) => {
                self.say("a statement that commits by itself was under way: finding out what became of it first");
                Goal::Seq(seq)
            }
        };
        if let Some(end) = &copied_to {
            self.copied(&status, place, applied.as_ref(), end)?;
        }
        let source = (self.request.source)(&status, &mut self.control)?;
        let state = SourceState::read(&mut Connection::connect(&source).context("source")?).context("source")?;
        let start = match (&opened.mark, place.positioning, &place.position) {
            (Some(_), _, _) => StartRequest::Default,
            (None, Positioning::File, Some(position)) if self.server.flavour_is_mariadb => {
                StartRequest::Position(position.clone())
            }
            (None, Positioning::File, Some(position)) => {
                StartRequest::PositionAndGtids(position.clone(), place.gtids.clone())
            }
            (None, Positioning::File, None) => bail!("{SCHEMA}.rescue does not say at which position to start"),
            (None, Positioning::Gtid | Positioning::CurrentPos, _) => StartRequest::Gtids(place.gtids.clone()),
        };
        let part = filters::of_replica(&status.filters).map_err(|refused| anyhow!(refused.join("; ")))?;
        let spec = Spec {
            part,
            on_target: place.gtids.clone(),
            span: Span { start, ..Span::default() },
            applying: self.applying(),
            relay: RelaySpec {
                dir: (self.request.relay_dir)(&self.progress)?,
                contents: if copied_to.is_some() { RelayContents::Copied } else { RelayContents::Nothing },
                bytes_max: self.request.relay_bytes_max,
                sync: self.request.relay_sync,
            },
            replica: Replica {
                server_id: (self.request.server_id)(&self.progress),
                not_from: Some(self.server.server_id),
                retry_for: self.request.connect_retry,
                ..Replica::default()
            },
            ..Spec::new(Source::Live(Box::new(source.clone())), Arc::new(target), self.request.workers)
        };
        let (mut summary, reached) = self.run_channel(&spec, goal, &source, &state)?;
        // It was our own doing.
        summary.stopped &= !reached;
        let failed = summary.error.as_ref().map(|error| {
            let mut text = format!("applying stopped: {}", error.message);
            for (label, more) in [("where", &error.place), ("what to do", &error.remedy)] {
                if !more.is_empty() {
                    text += &format!("\n  {label}: {more}");
                }
            }
            text
        });
        self.say(&summary.text());
        self.report.applied = Some(summary);
        match failed {
            Some(text) => Err(anyhow!(text)),
            None if reached => {
                let opened = spec.target.open()?;
                let applied_to = opened.mark.map_or(0, |mark| mark.seq);
                if opened.intent.as_deref().and_then(intent_seq).is_some_and(|seq| seq > applied_to) {
                    bail!("a statement that commits by itself is still under way");
                }
                Ok(true)
            }
            None => Err(anyhow!("stopped by a signal before the replica had caught up")),
        }
    }

    fn applying(&self) -> ApplySettings {
        ApplySettings {
            memory_bytes: self.request.memory_bytes,
            more_workers: self.request.more_workers,
            retries_max: self.request.retries_max,
            ..ApplySettings::new(self.request.workers)
        }
    }

    /// The relay log has what was copied; on MySQL, which keeps its own while the applier is held, it can be copied again.
    fn copied(
        &mut self,
        status: &ReplicaStatus,
        place: &Place,
        applied: Option<&LogPosition>,
        end: &LogPosition,
    ) -> Result<()> {
        let dir = (self.request.relay_dir)(&self.progress)?;
        let options = relay_logs::options(self.request, status, place)?;
        if relay_logs::holds(&dir, options.clone(), applied, end) {
            return Ok(());
        }
        let lost = || {
            format!(
                "the relay log in {} does not hold what was copied from the replica's relay logs, and the source has it no more: go on where \
                 the rescue began, with the same --relay-dir",
                dir.display()
            )
        };
        if self.server.flavour_is_mariadb {
            bail!(lost());
        }
        let logs = relay_logs::find(&mut self.control, self.request, &self.server, status).with_context(lost)?;
        self.say(&format!(
            "copying   {:.1} MB of the replica's relay logs to {} again",
            logs.bytes as f64 / 1e6,
            dir.display()
        ));
        logs.copy(place, &dir, options).map(|_| ()).with_context(lost)
    }

    fn run_channel(
        &self,
        spec: &Spec,
        goal: Goal,
        source: &ConnectOptions,
        state: &SourceState,
    ) -> Result<(Summary, bool)> {
        let monitor = Arc::new(Monitor::default());
        let [stop, over, reached] = std::array::from_fn(|_| Arc::new(AtomicBool::new(false)));
        let watcher = Watcher {
            goal,
            source: source.clone(),
            flavour: state.flavour,
            gtids: state.gtids,
            monitor: Arc::clone(&monitor),
            signalled: Arc::clone(&self.signalled),
            stop: Arc::clone(&stop),
            over: Arc::clone(&over),
            reached: Arc::clone(&reached),
        };
        let thread = std::thread::Builder::new().name("goal".to_owned()).spawn(move || watcher.run())?;
        let shown = || ServedChannel {
            channel: self.progress.clone(),
            route: format!("{} → {}", source.address(), spec.target.describe()),
            monitor: Arc::clone(&monitor),
            log_source: None,
        };
        let http = self.request.http.clone().map(|listen| Http::start(listen, shown())).transpose()?;
        let progress = Progress::start(&monitor, Kind::Live);
        let summary = summary::run(spec, &monitor, &stop);
        progress.finish();
        if let Some(http) = &http {
            http.end(summary.as_ref().map_or_else(|error| Some(summary::stopped(error)), Summary::stopped));
        }
        over.store(true, Ordering::Relaxed);
        thread.join().map_err(|_| anyhow!("the thread that watches the lag has panicked"))?;
        Ok((summary?, reached.load(Ordering::Relaxed)))
    }
}

/// Number of the transaction that an intent is about.
fn intent_seq(intent: &str) -> Option<u64> {
    intent.strip_prefix("seq=")?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_intent_is_about() {
        assert_eq!(intent_seq("seq=17 item=0 fingerprint=00ff"), Some(17));
        assert_eq!(intent_seq("nonsense"), None);
    }
}
