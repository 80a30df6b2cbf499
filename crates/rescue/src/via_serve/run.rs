//! The steps: look, note, serve, point the replica to Heddle, wait until it has caught up, point it back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use binlog::Flavour;
use binlog::gtids::GtidState;
use serve::group::Limits;
use serve::mirror::Upstream;
use wire::{ConnectOptions, Connection};

use super::lag::Lag;
use super::note::{Address, Folder, Note};
use super::source_watch::SourceWatch;
use super::stream::{Stream, StreamPlan};
use crate::backlog;
use crate::handover::handback;
use crate::handover::steering::Steering;
use crate::judge::{self, Findings};
use crate::report::Outcome;
use crate::request::ViaServe;
use crate::run::Rescue;
use crate::server;
use crate::state::{self, Place, SavedChannel};
use apply::mysql::server::sql::quote;
use channel::errors::chain;
use channel::start::source_state::SourceState;
use output::numbers::counted;
use replica::questions;
use replica::status::{Receiver, ReplicaStatus};

/// As `heddle serve --group auto`.
const GROUPS: Limits = Limits { transactions: usize::MAX, bytes: 1 << 20 };
/// How long the native applier is watched to say how fast it is.
const SAMPLE: Duration = Duration::from_secs(3);
pub(super) const POLL: Duration = Duration::from_millis(250);
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// From so long behind on transactions are grouped, also those that have just come; nearer than this each is sent by itself at once.
const GROUPED_FROM: Duration = Duration::from_secs(10);
const SINGLE_FROM: Duration = Duration::from_secs(4);
/// So long the replica may not reach Heddle.
const UNREACHED_MAX: Duration = Duration::from_secs(120);
impl Rescue<'_> {
    pub(crate) fn run_via_serve(&mut self, via: &ViaServe) -> Result<()> {
        // Nothing is written here, so nothing has to be kept out of the binary log.
        self.logged = true;
        self.say(&format!("replica   {}", self.report.replica));
        self.no_other_rescue()?;
        let folder = Folder::new((self.request.relay_dir)(&self.progress)?);
        let status = server::channel(&mut self.control, &self.native)?;
        let noted = folder.read()?;
        if let Some(note) = &noted {
            self.is_of(note, &folder)?;
            let heddle = Address { host: via.host.clone(), port: via.port };
            ensure!(
                note.heddle == heddle,
                "the replica points to heddle at {}: listen there (--listen, --advertise), not at {heddle}",
                note.heddle
            );
        }
        let note = match noted {
            Some(note) => {
                self.report.continued = Some("via serve");
                self.report.outcome = Outcome::Unfinished;
                self.say(&format!(
                    "rescue    under way: the replica's source is {}, as it was pointed to heddle",
                    note.source
                ));
                if self.request.dry_run {
                    self.say("nothing was changed; the same command without --dry-run goes on, --abort points it back");
                    return Ok(());
                }
                note
            }
            None if self.request.abort => {
                self.say("no rescue is under way: nothing to hand back, nothing was changed");
                return Ok(());
            }
            None => match self.look_via_serve(&status, via)? {
                Some(note) => note,
                None => return Ok(()),
            },
        };
        self.prepare()?;
        let source = self.source(&status, &note)?;
        folder.write(&note)?;
        self.report.outcome = Outcome::Unfinished;
        let began = Instant::now();
        if self.points_to(&note.heddle)? || !self.request.abort {
            let applier_is_behind = Arc::new(AtomicBool::new(!self.request.abort));
            let serving = StreamPlan {
                source: Upstream {
                    options: source.clone(),
                    server_id: (self.request.server_id)(&self.progress),
                    retry_for: self.request.connect_retry,
                },
                dir: &folder.mirror(),
                first: self.first_file(&source)?,
                limits: (!self.request.abort).then_some(GROUPS),
                user: note.saved.config.get("source_user").map_or("", String::as_str),
                applier_is_behind: Arc::clone(&applier_is_behind),
            };
            let mut stream = Stream::start(serving, via)?;
            self.catch_up(&note, &source, &mut stream, &applier_is_behind)?;
            applier_is_behind.store(false, Ordering::Relaxed);
            self.point_back(&note, &folder, &mut stream)?;
        }
        self.over(&note, &folder, began)
    }

    /// The account need not see Heddle's tables, and mostly there are none.
    fn no_other_rescue(&mut self) -> Result<()> {
        if let Ok(Some(record)) = state::read(&mut self.control, &self.native.channel) {
            bail!(
                "a rescue without --via is under way (phase: {}): go on with it, or end it with --abort",
                record.phase.name()
            );
        }
        Ok(())
    }

    /// What is noted is of this replica, and it still points to where it was pointed.
    fn is_of(&mut self, note: &Note, folder: &Folder) -> Result<()> {
        let own = self.own_name()?;
        if note.replica != own || note.channel != self.native.channel {
            bail!(
                "{} is of another rescue: of the replica {}, channel {:?}. Give another --relay-dir",
                folder.path().display(),
                note.replica,
                note.channel
            );
        }
        if !self.points_to(&note.heddle)? && !self.points_to(&note.source)? {
            bail!(
                "the replica points neither to heddle ({}) nor to its source as it was ({}): somebody has changed it. If that is as it should be, \
                 remove {}",
                note.heddle,
                note.source,
                folder.path().display()
            );
        }
        Ok(())
    }

    fn own_name(&mut self) -> Result<String> {
        let name = if self.server.flavour_is_mariadb { "server_id" } else { "server_uuid" };
        Ok(self.control.scalar(format!("SELECT @@global.{name}"))?.unwrap_or_default())
    }

    /// Looks, judges, tells. `None`: nothing is done.
    fn look_via_serve(&mut self, status: &ReplicaStatus, via: &ViaServe) -> Result<Option<Note>> {
        let channels = questions::channels(&mut self.control, &self.native)?;
        let connection = server::connection_settings(&mut self.control, &self.native)?;
        let mut settings = server::applier_settings(&mut self.control, &self.native)?;
        settings.extend(connection.clone());
        let mut findings = Findings::default();
        judge::via_serve(&self.server, &channels, status, &settings, via.tls.as_ref(), &mut findings);
        let source = (self.request.source)(status, &mut self.control)?;
        self.judge_procedures(&source, status, via, &mut findings);
        let backlog = self.ask_source_of_stream(&source, status, &mut findings)?;
        self.report.reasons = judge::reasons(&self.server, status, None);
        self.report.verdict = judge::verdict(&backlog, &self.report.reasons);
        self.report.backlog = Some(backlog);
        self.report.findings = findings;
        self.tell(status);
        if !self.report.findings.refused.is_empty() {
            self.report.outcome = Outcome::Refused;
            self.say("nothing was changed");
            return Ok(None);
        }
        if self.is_not_behind(status) {
            return Ok(None);
        }
        if self.request.dry_run {
            self.say("nothing was changed; leave --dry-run out to start");
            return Ok(None);
        }
        Ok(Some(Note {
            replica: self.own_name()?,
            channel: self.native.channel.clone(),
            source: Address { host: status.host.clone(), port: status.port },
            heddle: Address { host: via.host.clone(), port: via.port },
            saved: SavedChannel {
                heddle: env!("CARGO_PKG_VERSION").to_owned(),
                server: self.server.describe(),
                config: status.config.clone(),
                connection,
                delay_s: status.delay_s,
                receiver_ran: status.receiver != Receiver::Stopped,
                applier_ran: status.applier_runs,
                super_read_only: false,
                schema_existed: true,
                logged: true,
                from_relay_logs: false,
                copied_to: None,
                copied_from: None,
            },
        }))
    }

    fn ask_source_of_stream(
        &mut self,
        options: &ConnectOptions,
        status: &ReplicaStatus,
        findings: &mut Findings,
    ) -> Result<backlog::Backlog> {
        let mut source =
            Connection::connect(options).with_context(|| format!("source {} (see --source)", options.address()))?;
        let seen = SourceState::read(&mut source).context("source")?;
        judge::source_of_stream(&self.server, status, &seen, findings);
        let place = Place {
            positioning: status.positioning,
            gtids: self.server.gtids.clone(),
            position: status.applied.clone(),
        };
        if seen.flavour == self.server.flavour()
            && let Err(why) = backlog::source_has(&mut source, &seen, &place)?
        {
            let instead = match self.steering {
                Steering::Statements => {
                    "If the replica has received it, heddle rescue without --via reads its relay logs"
                }
                Steering::Procedures(_) => {
                    "The service gives nobody its relay logs: let its own applier go on, or load the replica anew"
                }
            };
            findings.refused.push(format!("{why}: a stream can not begin there. {instead}"));
        }
        let mut backlog =
            backlog::measure(&mut self.control, options, &self.native, &self.server.gtids.clone(), SAMPLE)?;
        backlog.heddle_estimate_missing = Some("the replica's own applier applies the groups".to_owned());
        Ok(backlog)
    }

    /// As it was before the channel was pointed to Heddle.
    fn source(&mut self, status: &ReplicaStatus, note: &Note) -> Result<ConnectOptions> {
        let mut status = status.clone();
        (status.host, status.port) = (note.source.host.clone(), note.source.port);
        (self.request.source)(&status, &mut self.control)
    }

    /// Of the source's files the last one before which the replica has everything. `None`: the oldest that there is.
    fn first_file(&mut self, options: &ConnectOptions) -> Result<Option<Arc<str>>> {
        let applied = server::channel(&mut self.control, &self.native)?.applied;
        let Some(applied) = applied else { return Ok(None) };
        let mut source = Connection::connect(options).context("source")?;
        let seen = SourceState::read(&mut source).context("source")?;
        let Some(at) = seen.logs.iter().position(|log| **log == *applied.file) else { return Ok(None) };
        if seen.flavour == Flavour::MySql {
            return Ok(Some(applied.file));
        }
        // A position says nothing of domains that are applied beside it.
        let has = server::executed(&mut self.control, Flavour::MariaDb, "")?;
        for log in seen.logs.iter().take(at + 1).rev() {
            let begins = source.scalar(format!("SELECT BINLOG_GTID_POS({}, 4)", quote(log)))?.unwrap_or_default();
            if has.contains_state(&begins.parse().context("BINLOG_GTID_POS")?) {
                return Ok(Some(log.as_str().into()));
            }
        }
        Ok(None)
    }

    /// Until it is near enough.
    fn catch_up(
        &mut self,
        note: &Note,
        source: &ConnectOptions,
        stream: &mut Stream,
        applier_is_behind: &AtomicBool,
    ) -> Result<()> {
        self.point_to_heddle(note)?;
        if self.request.abort {
            return Ok(());
        }
        let mut watch = SourceWatch { options: source, source: None, lag: Lag::default() };
        let (mut unreached_since, mut told) = (Instant::now(), Instant::now());
        loop {
            ensure!(!self.request_ends(), "ended by a signal");
            stream.check()?;
            watch.ask(self.server.flavour());
            let (status, has) = self.look_again()?;
            fails(&status)?;
            if status.receiver == Receiver::Connected {
                unreached_since = Instant::now();
            } else if unreached_since.elapsed() > UNREACHED_MAX {
                let why = status.receiver_error.unwrap_or(status.receiver_state);
                bail!(
                    "the replica does not reach heddle at {} since {} s: {why}",
                    note.heddle,
                    UNREACHED_MAX.as_secs()
                );
            }
            if status.receiver == Receiver::Stopped || !status.applier_runs {
                tracing::info!("native replication was stopped (the server restarted?) and is started again");
                self.steering.start(&mut self.control, &self.native)?;
            }
            if let Some(lag) = watch.lag.now(&has) {
                if lag <= self.request.lag {
                    return Ok(());
                }
                if lag >= GROUPED_FROM.max(self.request.lag * 2) {
                    applier_is_behind.store(true, Ordering::Relaxed);
                } else if lag <= SINGLE_FROM.max(self.request.lag) {
                    applier_is_behind.store(false, Ordering::Relaxed);
                }
            }
            if told.elapsed() >= TOLD_EVERY {
                told = Instant::now();
                let behind = status.behind_s.map_or_else(|| "not known".to_owned(), |seconds| seconds.to_string());
                let left = watch.lag.left(&has);
                let left = left.map_or_else(String::new, |left| format!(", {} left", counted(left, "transaction")));
                self.say(&format!("behind    {}: {behind}{left}", self.native.seconds_behind()));
            }
            sleep(POLL);
        }
    }

    pub(super) fn request_ends(&self) -> bool {
        self.signalled.load(Ordering::Relaxed)
    }

    /// The channel, and what is applied. The replica may have been restarted meanwhile.
    pub(super) fn look_again(&mut self) -> Result<(ReplicaStatus, GtidState)> {
        let since = Instant::now();
        loop {
            let seen = server::channel(&mut self.control, &self.native).and_then(|status| {
                Ok((status, server::executed(&mut self.control, self.server.flavour(), &self.server.gtid_mode)?))
            });
            let Err(error) = seen else { return seen };
            if self.request_ends() || since.elapsed() > self.request.connect_retry {
                return Err(error);
            }
            sleep(POLL);
            if let Err(error) = self.refresh() {
                tracing::debug!("the replica can not be reached: {}", chain(&error));
            }
        }
    }

    /// Native replication runs by itself, and nothing of Heddle is left.
    fn over(&mut self, note: &Note, folder: &Folder, began: Instant) -> Result<()> {
        handback::start(&mut self.control, &self.native, &self.steering)?;
        let status = server::channel(&mut self.control, &self.native)?;
        let settings = server::connection_settings(&mut self.control, &self.native)?;
        self.report.changed_settings = handback::differences(&note.saved, &status, &settings);
        for line in &self.report.changed_settings {
            tracing::warn!("a setting of native replication has changed: {line}");
        }
        folder.remove();
        self.report.outcome = Outcome::HandedBack;
        self.report.goes_on_at = Some(format!(
            "GTIDs {}",
            server::executed(&mut self.control, self.server.flavour(), &self.server.gtid_mode)?
        ));
        let behind = status.behind_s.map_or_else(|| "?".to_owned(), |seconds| seconds.to_string());
        self.say(&format!(
            "native replication runs from its source, {behind} s behind; this took {:.1} s",
            began.elapsed().as_secs_f64()
        ));
        self.will_it_lag_again(&status);
        Ok(())
    }
}

/// # Errors
/// The applier has stopped with one, or the receiver with one that trying again does not mend.
pub(super) fn fails(status: &ReplicaStatus) -> Result<()> {
    if let Some(error) = &status.applier_error {
        bail!("the replica's applier has stopped with error {error}: repair it and start it, then go on");
    }
    match &status.receiver_error {
        Some(error) if status.receiver == Receiver::Stopped => {
            bail!("the replica's receiver has stopped with error {error}")
        }
        _ => Ok(()),
    }
}
