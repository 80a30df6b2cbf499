//! `--standby`: waits for the channel, has it, and waits again when another process has taken it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use channel::errors::{chain, kind};
use channel::monitor::Monitor;
use channel::spec::Spec;
use channel::standby::{Turn, WaitEnd, wait};
use engine::failure::FailureKind;
use observe::http::{Http, ServedChannel};
use observe::summary::Summary;
use wire::ConnectOptions;

use crate::cli::feed::{self, FeedArgs};
use crate::cli::signals::Ending;

/// Each process has its own: of two streams with one number a source ends the older.
pub fn server_id(channel: &str, address: &str, relay_dir: &Path) -> u32 {
    feed::server_id(&format!("{channel} {} {}", feed::host(), relay_dir.display()), address)
}

/// What a run needs, its target connected.
pub struct PreparedRun {
    pub spec: Arc<Spec>,
    /// Of the target.
    pub address: String,
    /// Source and target, for people.
    pub route: String,
    /// How to connect to the target; `None`: it is no server.
    pub options: Option<ConnectOptions>,
}

/// How this process comes to its turns.
pub struct Turns<'a> {
    pub channel: &'a str,
    pub feed: &'a FeedArgs,
    pub ending: &'a Ending,
    /// Connects to the target.
    pub prepare: &'a dyn Fn() -> Result<PreparedRun>,
    /// Has the channel, until its end or another process takes it.
    pub run: &'a dyn Fn(PreparedRun) -> Result<Summary>,
}

impl Turns<'_> {
    /// Until it is asked to end, or the channel ends in its turn: that run. `None`: it has ended while it waited.
    pub fn run(&self) -> Result<Option<Summary>> {
        let mut turn = Turn::First;
        let mut prepared = (self.prepare)()?;
        self.ending.watch()?;
        loop {
            if self.wait(&prepared, turn)? == WaitEnd::Stopped {
                tracing::info!("stopped while it waited for the channel");
                return Ok(None);
            }
            // What it has learnt of the target may be long ago.
            prepared = (self.prepare)()?;
            let run = (self.run)(prepared);
            let lost = match &run {
                Ok(summary) => summary.error.as_ref().is_some_and(|error| error.failure_kind == FailureKind::Fenced),
                Err(error) => kind(error) == FailureKind::Fenced,
            };
            if !lost || self.ending.interrupt().is_asked() {
                return run.map(Some);
            }
            let why;
            (turn, why) = match run {
                Ok(summary) => (
                    if summary.handed_over { Turn::HandedOver } else { Turn::Lost },
                    summary.error.map_or_else(String::new, |error| error.message),
                ),
                Err(error) => (Turn::Lost, chain(&error)),
            };
            tracing::info!("this process waits for the channel again: {why}");
            self.ending.go_on();
            prepared = (self.prepare)()?;
        }
    }

    fn wait(&self, prepared: &PreparedRun, turn: Turn) -> Result<WaitEnd> {
        let monitor = Arc::new(Monitor::default());
        let shown = || ServedChannel {
            channel: self.channel.to_owned(),
            route: prepared.route.clone(),
            monitor: Arc::clone(&monitor),
            log_source: None,
        };
        let _http = self.feed.http()?.map(|listen| Http::start(listen, shown())).transpose()?;
        wait(&prepared.spec, &monitor, &self.ending.stop, turn)
    }
}
