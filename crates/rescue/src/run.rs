//! A rescue from start to end: looks, then goes from phase to phase, wherever the last run came to.
//!
//! The phases are steps of their own (`takeover`, the channel, `handback`); this puts them in order and remembers what to report.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use wire::{ConnectOptions, Connection};

use super::judge;
use super::relay_logs;
use super::report::{Outcome, Report};
use super::request::Request;
use super::state::{self, Phase, Place, Record, SavedChannel};
use crate::handover::handback::{self, AppliedState, GtidNotes};
use crate::handover::lock;
use crate::handover::steering::Steering;
use crate::handover::takeover;
use crate::server::{self, Server};
use apply::Target;
use apply::mysql::progress::SCHEMA;
use apply::mysql::{BinlogChoice, MySqlTarget};
use channel::errors::chain;
use replica::names::progress_channel;
use replica::statements::NativeChannel;

/// One run, with its connection to the replica.
pub(super) struct Rescue<'a> {
    pub(super) request: &'a Request,
    pub(super) signalled: Arc<AtomicBool>,
    pub(super) control: Connection,
    pub(super) server: Server,
    pub(super) native: NativeChannel,
    pub(super) steering: Steering,
    pub(super) progress: String,
    /// What Heddle changes goes into the replica's binary log.
    pub(super) logged: bool,
    /// Bytes of the replica's relay logs, when the source has purged what they hold.
    pub(super) copied_bytes: Option<u64>,
    pub(super) report: Report,
}

/// Runs until native replication runs again, or as far as it comes.
pub fn run(request: &Request, signalled: &Arc<AtomicBool>) -> Report {
    let began = Instant::now();
    let mut report = match Rescue::open(request, signalled) {
        Err(error) => Report { error: Some(chain(&error)), ..Report::default() },
        Ok(mut rescue) => {
            let done = match &request.via {
                Some(via) => rescue.run_via_serve(via),
                None => rescue.run(),
            };
            if let Err(error) = done {
                rescue.report.error = Some(chain(&error));
            }
            rescue.report
        }
    };
    report.seconds = began.elapsed().as_secs_f64();
    report
}

fn connect(options: &ConnectOptions) -> Result<Connection> {
    let mut connection = Connection::connect(options).with_context(|| format!("replica {}", options.address()))?;
    for statement in [
        "SET NAMES utf8mb4",
        "SET SESSION sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
        "SET SESSION autocommit=1",
        "SET SESSION wait_timeout=604800",
    ] {
        connection.execute(statement).with_context(|| statement.to_owned())?;
    }
    Ok(connection)
}

impl<'a> Rescue<'a> {
    fn open(request: &'a Request, signalled: &Arc<AtomicBool>) -> Result<Self> {
        let mut control = connect(&request.replica)?;
        let server = Server::read(&mut control).context("looking at the replica")?;
        let mut native = NativeChannel { flavour: server.flavour(), version: server.version, channel: String::new() };
        let names: Vec<String> =
            replica::questions::channels(&mut control, &native)?.into_iter().map(|status| status.channel).collect();
        native.channel = choose(&names, request.channel.as_deref())?;
        let report = Report {
            replica: format!("{} at {}", server.describe(), request.replica.address()),
            channel: native.channel.clone(),
            ..Report::default()
        };
        let progress = progress_channel(&native.channel);
        let steering = Steering::read(&mut control, &server)?;
        if let Some(how) = steering.describe(server.flavour()) {
            tracing::info!("{how}");
        }
        Ok(Self {
            request,
            signalled: Arc::clone(signalled),
            control,
            server,
            native,
            steering,
            progress,
            logged: false,
            copied_bytes: None,
            report,
        })
    }

    pub(super) fn say(&self, text: &str) {
        self.request.say(text);
    }

    fn run(&mut self) -> Result<()> {
        self.say(&format!("replica   {}{}", self.report.replica, of_channel(&self.native.channel)));
        let record = state::read(&mut self.control, &self.native.channel)?;
        if let Some(record) = &record {
            self.logged = record.saved.logged;
            self.report.continued = Some(record.phase.name());
            self.report.outcome = Outcome::Unfinished;
            self.say(&format!("rescue    began {} (the replica's time), phase: {}", record.began, record.phase.name()));
            if self.request.dry_run {
                self.say("nothing was changed; the same command without --dry-run goes on, --abort hands back");
                return Ok(());
            }
        }
        let record = match record {
            Some(record) => {
                self.prepare()?;
                record
            }
            None if self.request.abort => {
                self.say("no rescue is under way: nothing to hand back, nothing was changed");
                return Ok(());
            }
            None => match self.begin()? {
                Some(record) => record,
                None => return Ok(()),
            },
        };
        self.writable(record).and_then(|record| self.go_on(record))
    }

    /// The session is made ready to change things, and no other heddle does.
    pub(super) fn prepare(&mut self) -> Result<()> {
        if self.server.log_bin && !self.logged {
            self.control.execute("SET SESSION sql_log_bin=0").context("SET SESSION sql_log_bin=0")?;
        }
        lock::take(&mut self.control, &self.progress)
    }

    pub(super) fn target(&self) -> Result<MySqlTarget> {
        let logged = if self.logged { BinlogChoice::Yes } else { BinlogChoice::No };
        let target = MySqlTarget::connect_as_replica(self.request.replica.clone(), &self.progress, logged)?;
        target.set_reconnect_for(self.request.connect_retry);
        Ok(target)
    }

    /// After something that took long: the replica may have been restarted.
    pub(super) fn refresh(&mut self) -> Result<()> {
        if self.control.ping().is_err() {
            self.control = connect(&self.request.replica)?;
            self.prepare()?;
        }
        Ok(())
    }

    /// A restart has switched super_read_only on again.
    fn writable(&mut self, mut record: Record) -> Result<Record> {
        if self.server.super_read_only && self.report.continued.is_some() {
            self.control.execute("SET GLOBAL super_read_only=OFF").context("super_read_only")?;
            record.saved.super_read_only = true;
            state::save(&mut self.control, &self.native.channel, &record.saved)?;
        }
        Ok(record)
    }

    fn go_on(&mut self, mut record: Record) -> Result<()> {
        // What was copied may be nowhere else any more: then only applying it leads back.
        let is_copied = record.saved.copied_to.is_some();
        if record.phase == Phase::TakingOver && self.request.abort && !is_copied && !self.is_held()? {
            let (place, _) = server::place(&mut self.control, &self.native, &self.server.gtid_mode)?;
            let channel = &self.native.channel;
            state::advance(&mut self.control, channel, Phase::TakingOver, Phase::Released, Some(&place))?;
            record.phase = Phase::Released;
        }
        if record.phase == Phase::TakingOver {
            let began = Instant::now();
            let place = self.take_over(&mut record.saved)?;
            let seconds = began.elapsed().as_secs_f64();
            self.report.take_over_seconds = Some(seconds);
            self.say(&format!(
                "taken over in {seconds:.1} s: the native applier is held (its delay is {} s), heddle applies from {}",
                replica::statements::HOLD_S,
                handback::describe(&place, &AppliedState::new(&place, None))
            ));
            (record.place, record.phase) = (Some(place), Phase::Applying);
        }
        if record.phase == Phase::Applying {
            if !self.apply(&record)? {
                return Ok(());
            }
            self.refresh()?;
            state::advance(&mut self.control, &self.native.channel, Phase::Applying, Phase::HandingBack, None)?;
            record.phase = Phase::HandingBack;
        }
        let began = Instant::now();
        if record.phase == Phase::HandingBack {
            self.hand_back(&record)?;
            record.phase = Phase::Released;
        }
        self.release(&record)?;
        self.report.hand_back_seconds = Some(began.elapsed().as_secs_f64());
        Ok(())
    }

    fn is_held(&mut self) -> Result<bool> {
        Ok(server::channel(&mut self.control, &self.native)?.delay_s == replica::statements::HOLD_S)
    }

    fn take_over(&mut self, saved: &mut SavedChannel) -> Result<Place> {
        let (native, server, request) = (&self.native, &self.server, self.request);
        let relay_dir = (request.relay_dir)(&self.progress)?;
        let channel = native.channel.clone();
        let (mut copied, from_relay_logs) = (saved.clone(), saved.from_relay_logs);
        let mut before_hold = |connection: &mut Connection| {
            if !from_relay_logs {
                return Ok(());
            }
            let (place, status) = server::place(connection, native, &server.gtid_mode)?;
            let options = relay_logs::options(request, &status, &place)?;
            let from = place.to_text()?;
            if let Some(end) = copied.copied_to()?
                && copied.copied_from.as_ref() == Some(&from)
                && relay_logs::holds(&relay_dir, options.clone(), None, &end)
            {
                return Ok(());
            }
            let logs = relay_logs::find(connection, request, server, &status)?;
            request.say(&format!(
                "copying   {:.1} MB of the replica's relay logs to {}",
                logs.bytes as f64 / 1e6,
                relay_dir.display()
            ));
            copied.copied_to = Some(logs.copy(&place, &relay_dir, options)?.to_string());
            copied.copied_from = Some(from);
            state::save(connection, &channel, &copied)
        };
        let place =
            takeover::take_over(&mut self.control, native, saved, &server.gtid_mode, server.workers, &mut before_hold)?;
        *saved = copied;
        Ok(place)
    }

    fn hand_back(&mut self, record: &Record) -> Result<()> {
        let place = record.place()?;
        // Takes the channel over: nothing that a killed heddle has left on the server can commit after this.
        let target = self.target()?;
        let opened = target.open()?;
        let applied = AppliedState::new(place, opened.mark.as_ref());
        if !opened.committed_ranges.is_empty() {
            bail!(
                "{SCHEMA}.islands holds transactions above the low water, which a rescue never leaves: it was changed by hand"
            );
        }
        let leaves_hole = !self.logged && self.server.logs_updates();
        let noting = GtidNotes { replica: &self.request.replica, logged: self.logged, leaves_hole };
        let gtid_mode = &self.server.gtid_mode;
        handback::hand_back(&mut self.control, &self.native, &record.saved, place, &applied, gtid_mode, noting)?;
        let goes_on = handback::describe(place, &applied);
        self.say(&format!("handed back: native replication goes on at {goes_on}"));
        self.report.goes_on_at = Some(goes_on);
        Ok(())
    }

    /// Native replication runs, everything else goes.
    fn release(&mut self, record: &Record) -> Result<()> {
        if self.request.abort && self.report.continued == Some(Phase::Released.name()) {
            self.steering.start(&mut self.control, &self.native)?;
        } else {
            handback::start(&mut self.control, &self.native, &self.steering)?;
        }
        let status = server::channel(&mut self.control, &self.native)?;
        let settings = server::connection_settings(&mut self.control, &self.native)?;
        self.report.changed_settings = handback::differences(&record.saved, &status, &settings);
        for line in &self.report.changed_settings {
            tracing::warn!("a setting of native replication has changed: {line}");
        }
        state::finish(&mut self.control, &self.native.channel, &self.progress, &record.saved)?;
        self.report.outcome = Outcome::HandedBack;
        let behind = status.behind_s.map_or_else(|| "?".to_owned(), |seconds| seconds.to_string());
        self.say(&format!("native replication runs, {behind} s behind; heddle's bookkeeping is removed"));
        self.will_it_lag_again(&status);
        let dir = (self.request.relay_dir)(&self.progress)?;
        if dir.is_dir()
            && let Err(error) = relay::RelayLog::clear(&relay::RealFs, &dir)
        {
            tracing::warn!(
                "heddle's relay log in {} is not needed any more and can not be removed: {error}",
                dir.display()
            );
        }
        Ok(())
    }
}

impl Rescue<'_> {
    /// What made the native applier lag and is still so. The rescue is over: what cannot be asked is not worth an error.
    pub(super) fn will_it_lag_again(&mut self, status: &replica::status::ReplicaStatus) {
        let server = match Server::read(&mut self.control) {
            Ok(server) => server,
            Err(error) => return tracing::debug!("looking at the replica: {}", chain(&error)),
        };
        let reasons = judge::reasons(&server, status, None);
        if let Some(reason) = reasons.first().filter(|reason| reason.server == "replica") {
            self.say(&format!(
                "note      it may fall behind again: {}; on the replica, while its applier is stopped: {}",
                reason.what, reason.change
            ));
        }
    }
}

fn choose(names: &[String], asked: Option<&str>) -> Result<String> {
    match (names, asked) {
        ([], _) => bail!("this server is not a replica: it has no replication channel (SHOW REPLICA STATUS is empty)"),
        (names, Some(asked)) if names.iter().any(|name| name == asked) => Ok(asked.to_owned()),
        (names, Some(asked)) => bail!("the replica has no channel {asked:?}; it has {names:?}"),
        ([only], None) => Ok(only.clone()),
        (names, None) => bail!("the replica has several channels, {names:?}: name one with --channel"),
    }
}

fn of_channel(channel: &str) -> String {
    if channel.is_empty() { String::new() } else { format!(", channel {channel}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_channel() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(choose(&names(&[""]), None).unwrap(), "");
        assert_eq!(choose(&names(&["", "east"]), Some("east")).unwrap(), "east");
        assert!(choose(&names(&[]), None).unwrap_err().to_string().contains("not a replica"));
        assert!(choose(&names(&["", "east"]), None).unwrap_err().to_string().contains("--channel"));
        assert!(choose(&names(&[""]), Some("west")).unwrap_err().to_string().contains("west"));
    }
}
