//! The steps: look, note, serve, point the replica to Heddle, wait until it has caught up, point it back.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use binlog::Flavour;
use binlog::gtids::{GtidSet, GtidState};
use relay::fs::RealFs;
use serve::group::{Limits, unsaid};
use serve::mirror::Upstream;
use wire::{ConnectOptions, Connection};

use super::lag::Lag;
use super::note::{At, Folder, Note};
use super::stream::{Serving, Stream};
use crate::replica::ask;
use crate::replica::status::{Positioning, Receiver, ReplicaStatus};
use crate::report::out::chain;
use crate::rescue::handback;
use crate::rescue::judge::{self, Findings};
use crate::rescue::look;
use crate::rescue::report::Outcome;
use crate::rescue::request::ViaServe;
use crate::rescue::run::Rescue;
use crate::rescue::state::{self, Place, Saved};
use apply::mysql::server::sql::quote;
use channel::source::state::{self as source_state, SourceState};

/// As `heddle serve --group auto`.
const GROUPS: Limits = Limits { transactions: usize::MAX, bytes: 1 << 20 };
/// How long the native applier is watched to say how fast it is.
const SAMPLE: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(250);
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// So long the replica may not reach Heddle.
const UNREACHED_MAX: Duration = Duration::from_secs(120);
/// So long the end of a group may take on its way.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

impl Rescue<'_> {
    pub(in crate::rescue) fn run_via_serve(&mut self, via: &ViaServe) -> Result<()> {
        // Nothing is written here, so nothing has to be kept out of the binary log.
        self.logged = true;
        self.say(&format!("replica   {}", self.report.replica));
        self.no_other_rescue()?;
        let folder = Folder::new((self.request.relay_dir)(&self.progress)?);
        let status = look::channel(&mut self.control, &self.native)?;
        let noted = folder.read()?;
        if let Some(note) = &noted {
            self.is_of(note, &folder)?;
            let heddle = At { host: via.host.clone(), port: via.port };
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
            let serving = Serving {
                source: Upstream {
                    options: source.clone(),
                    server_id: (self.request.server_id)(&self.progress),
                    retry_for: self.request.connect_retry,
                },
                dir: &folder.mirror(),
                first: self.first_file(&source)?,
                limits: (!self.request.abort).then_some(GROUPS),
                user: note.saved.config.get("source_user").map_or("", String::as_str),
            };
            let mut stream = Stream::start(serving, via)?;
            self.catch_up(&note, &source, &mut stream)?;
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

    fn points_to(&mut self, at: &At) -> Result<bool> {
        let status = look::channel(&mut self.control, &self.native)?;
        Ok((status.host, status.port) == (at.host.clone(), at.port))
    }

    fn own_name(&mut self) -> Result<String> {
        let name = if self.server.flavour_is_mariadb { "server_id" } else { "server_uuid" };
        Ok(self.control.scalar(format!("SELECT @@global.{name}"))?.unwrap_or_default())
    }

    /// Looks, judges, tells. `None`: nothing is done.
    fn look_via_serve(&mut self, status: &ReplicaStatus, via: &ViaServe) -> Result<Option<Note>> {
        let channels = ask::channels(&mut self.control, &self.native)?;
        let connection = look::connection_settings(&mut self.control, &self.native)?;
        let mut settings = look::applier_settings(&mut self.control, &self.native)?;
        settings.extend(connection.clone());
        let mut findings = Findings::default();
        judge::via_serve(&self.server, &channels, status, &settings, via.tls.as_ref(), &mut findings);
        let source = (self.request.source)(status, &mut self.control)?;
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
        if self.request.dry_run {
            self.say("nothing was changed; leave --dry-run out to start");
            return Ok(None);
        }
        Ok(Some(Note {
            replica: self.own_name()?,
            channel: self.native.channel.clone(),
            source: At { host: status.host.clone(), port: status.port },
            heddle: At { host: via.host.clone(), port: via.port },
            saved: Saved {
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
    ) -> Result<look::Backlog> {
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
            && let Err(why) = look::source_has(&mut source, &seen, &place)?
        {
            findings.refused.push(format!(
                "{why}: a stream can not begin there. If the replica has received it, heddle rescue without --via reads its relay logs"
            ));
        }
        let mut backlog = look::backlog(&mut self.control, options, &self.native, &self.server.gtids.clone(), SAMPLE)?;
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
        let applied = look::channel(&mut self.control, &self.native)?.applied;
        let Some(applied) = applied else { return Ok(None) };
        let mut source = Connection::connect(options).context("source")?;
        let seen = SourceState::read(&mut source).context("source")?;
        let Some(at) = seen.logs.iter().position(|log| **log == *applied.file) else { return Ok(None) };
        if seen.flavour == Flavour::MySql {
            return Ok(Some(applied.file));
        }
        // A position says nothing of domains that are applied beside it.
        let has = look::executed(&mut self.control, Flavour::MariaDb, "")?;
        for log in seen.logs.iter().take(at + 1).rev() {
            let begins = source.scalar(format!("SELECT BINLOG_GTID_POS({}, 4)", quote(log)))?.unwrap_or_default();
            if has.contains_state(&begins.parse().context("BINLOG_GTID_POS")?) {
                return Ok(Some(log.as_str().into()));
            }
        }
        Ok(None)
    }

    /// The channel points to Heddle and runs.
    fn point_to_heddle(&mut self, note: &Note) -> Result<()> {
        if self.points_to(&note.heddle)? {
            // It may be waiting for its next try to connect.
            self.control.execute(self.native.stop_receiver()).context("stopping the receiver")?;
        } else {
            self.repoint(&note.heddle, note).context("pointing the replica to heddle")?;
            self.say(&format!("pointed   to heddle at {}; its applier goes on from there", note.heddle));
        }
        self.control.execute(self.native.start()).context("starting native replication")?;
        Ok(())
    }

    fn repoint(&mut self, to: &At, note: &Note) -> Result<()> {
        self.control.execute(self.native.stop()).context("stopping native replication")?;
        let positioning = match note.saved.config.get("using_gtid").map(String::as_str) {
            Some("Current_Pos") => Positioning::CurrentPos,
            _ => Positioning::Gtid,
        };
        // MySQL shows it elsewhere.
        let heartbeat = note.saved.heartbeat().or(note.saved.connection.get("heartbeat_interval").map(String::as_str));
        let statement = self.native.repoint(&to.host, to.port, positioning, heartbeat);
        self.control.execute(&statement).with_context(|| statement.clone()).map(drop)
    }

    /// Until it is near enough.
    fn catch_up(&mut self, note: &Note, source: &ConnectOptions, stream: &mut Stream) -> Result<()> {
        self.point_to_heddle(note)?;
        if self.request.abort {
            return Ok(());
        }
        let mut watch = Watch { options: source, source: None, lag: Lag::default() };
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
                self.control.execute(self.native.start()).context("starting native replication")?;
            }
            if watch.lag.now(&has).is_some_and(|lag| lag <= self.request.lag) {
                return Ok(());
            }
            if told.elapsed() >= TOLD_EVERY {
                told = Instant::now();
                let behind = status.behind_s.map_or_else(|| "?".to_owned(), |seconds| seconds.to_string());
                self.say(&format!("behind    {behind} s by the replica's own reckoning"));
            }
            sleep(POLL);
        }
    }

    fn request_ends(&self) -> bool {
        self.signalled.load(Ordering::Relaxed)
    }

    /// The channel, and what is applied. The replica may have been restarted meanwhile.
    fn look_again(&mut self) -> Result<(ReplicaStatus, GtidState)> {
        let since = Instant::now();
        loop {
            let seen = look::channel(&mut self.control, &self.native).and_then(|status| {
                Ok((status, look::executed(&mut self.control, self.server.flavour(), &self.server.gtid_mode)?))
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

    /// At a place where all that was received is applied, and every transaction has its GTID.
    fn point_back(&mut self, note: &Note, folder: &Folder, stream: &mut Stream) -> Result<()> {
        loop {
            self.control.execute(self.native.stop_receiver()).context("stopping the receiver")?;
            let has = self.drained(stream)?;
            let missing = self.settled(note, &folder.mirror(), has)?;
            if missing.is_empty() {
                break;
            }
            tracing::info!("what adds {missing} to the replica's gtid_purged has not come yet");
            self.control.execute(self.native.start_receiver()).context("starting the receiver")?;
            self.wait_a_moment(stream)?;
        }
        self.repoint(&note.source, note).context("pointing the replica back to its source")?;
        self.say(&format!("pointed   back to its source at {}", note.source));
        Ok(())
    }

    fn wait_a_moment(&mut self, stream: &mut Stream) -> Result<()> {
        sleep(Duration::from_secs(1));
        stream.check()?;
        ensure!(!self.request_ends(), "ended by a signal");
        Ok(())
    }

    /// All that was received is applied; what that is.
    fn drained(&mut self, stream: &mut Stream) -> Result<GtidState> {
        loop {
            let (status, has) = self.look_again()?;
            fails(&status)?;
            let received = match self.server.flavour() {
                // Its workers may still be at work when the coordinator waits.
                Flavour::MySql => status.received_gtids.parse::<GtidSet>().map(GtidState::MySql),
                Flavour::MariaDb => Ok(GtidState::None),
            };
            let received = received.map_err(|error| anyhow!("Retrieved_Gtid_Set: {error}"))?;
            if status.applier_waits && has.contains_state(&received) {
                return Ok(has);
            }
            if !status.applier_runs {
                self.control.execute(self.native.start_applier()).context("starting the applier")?;
            }
            stream.check()?;
            ensure!(!self.request_ends(), "ended by a signal");
            sleep(POLL);
        }
    }

    /// MySQL: of the groups that the replica has, the GTIDs that it does not say. Mostly none after a moment.
    fn settled(&mut self, note: &Note, mirror: &Path, mut has: GtidState) -> Result<GtidSet> {
        let since = Instant::now();
        loop {
            let GtidState::MySql(said) = &has else { return Ok(GtidSet::default()) };
            let missing = unsaid(&RealFs, mirror, &note.replica, said).map_err(anyhow::Error::new)?;
            if missing.is_empty() || since.elapsed() > SETTLED_WITHIN {
                return Ok(missing);
            }
            sleep(POLL);
            has = self.look_again()?.1;
        }
    }

    /// Native replication runs by itself, and nothing of Heddle is left.
    fn over(&mut self, note: &Note, folder: &Folder, began: Instant) -> Result<()> {
        handback::start(&mut self.control, &self.native)?;
        let status = look::channel(&mut self.control, &self.native)?;
        let settings = look::connection_settings(&mut self.control, &self.native)?;
        self.report.changed_settings = handback::differences(&note.saved, &status, &settings);
        for line in &self.report.changed_settings {
            tracing::warn!("a setting of native replication is not as it was: {line}");
        }
        folder.remove();
        self.report.outcome = Outcome::HandedBack;
        self.report.goes_on_at = Some(format!(
            "GTIDs {}",
            look::executed(&mut self.control, self.server.flavour(), &self.server.gtid_mode)?
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
fn fails(status: &ReplicaStatus) -> Result<()> {
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

/// Asks the source what it has.
struct Watch<'a> {
    options: &'a ConnectOptions,
    source: Option<Connection>,
    lag: Lag,
}

impl Watch<'_> {
    fn ask(&mut self, flavour: Flavour) {
        if !self.lag.wants_more() {
            return;
        }
        match self.answer(flavour) {
            Ok((at, executed)) => self.lag.source_has(at, executed),
            Err(error) => {
                self.source = None;
                tracing::debug!("asking the source what it has: {}", chain(&error));
            }
        }
    }

    fn answer(&mut self, flavour: Flavour) -> Result<(Instant, GtidState)> {
        let connection = match &mut self.source {
            Some(open) => open,
            empty => {
                let mut options = self.options.clone();
                options.limits.read_timeout = Some(Duration::from_secs(10));
                empty.insert(Connection::connect(&options)?)
            }
        };
        let at = Instant::now();
        Ok((at, source_state::end(connection, flavour, true)?.1))
    }
}
