//! The first part of a rescue: asks both servers, judges, tells, and notes on the replica that a rescue begins.

mod estimate;

use anyhow::{Context, Result, anyhow, bail};
use wire::{ConnectOptions, Connection};

use crate::backlog::{self, Backlog, CatchUpTime};
use crate::handover::steering::{Steering, grants};
use crate::judge::{self, Findings, LogSample};
use crate::relay_logs;
use crate::report::Outcome;
use crate::run::Rescue;
use crate::server;
use crate::state::{self, Place, Record, SavedChannel};
use apply::Target;
use apply::checks::Checks;
use apply::mysql::progress::SCHEMA;
use channel::errors::chain;
use channel::start::source_state::SourceState;
use output::numbers::about;
use replica::statements::NativeChannel;
use replica::status::{Positioning, Receiver, ReplicaStatus};

/// How long the native applier is watched to say how fast it is.
const SAMPLE: std::time::Duration = std::time::Duration::from_secs(3);

impl Rescue<'_> {
    /// Looks, judges, and notes that a rescue begins. `None`: it does not.
    pub(super) fn begin(&mut self) -> Result<Option<Record>> {
        let statuses = replica::questions::channels(&mut self.control, &self.native)?;
        let status = server::channel(&mut self.control, &self.native)?;
        let mut findings = Findings::default();
        if self.steering != Steering::Statements {
            findings.refused.push(judge::CANNOT_HOLD.to_owned());
            return Ok(self.refuse(findings));
        }
        self.logged = judge::logged(&self.server, self.request.log_bin);
        judge::replica(&self.server, &statuses, &status, self.logged, &mut findings);
        judge::applier(&server::applier_settings(&mut self.control, &self.native)?, &mut findings);
        let source = (self.request.source)(&status, &mut self.control)?;
        self.ask_source(&source, &status, &mut findings)?;
        self.check_account(&mut findings)?;
        self.report.findings = findings;
        self.tell(&status);
        if !self.report.findings.refused.is_empty() {
            self.report.outcome = Outcome::Refused;
            self.say("nothing was changed");
            return Ok(None);
        }
        if self.is_not_behind(&status) {
            return Ok(None);
        }
        if self.request.dry_run {
            self.say("nothing was changed; leave --dry-run out to start");
            return Ok(None);
        }
        self.prepare()?;
        // A heddle that was killed while this one looked may have begun: what it had sent is done by now.
        if let Some(record) = state::read(&mut self.control, &self.native.channel)? {
            if record.saved.logged != self.logged {
                bail!(
                    "another heddle has begun this rescue with another --log-bin: run the same command again to go on with it"
                );
            }
            self.report.continued = Some(record.phase.name());
            self.report.outcome = Outcome::Unfinished;
            return Ok(Some(record));
        }
        let saved = SavedChannel {
            heddle: env!("CARGO_PKG_VERSION").to_owned(),
            server: self.server.describe(),
            config: status.config.clone(),
            connection: server::connection_settings(&mut self.control, &self.native)?,
            delay_s: status.delay_s,
            receiver_ran: status.receiver != Receiver::Stopped,
            applier_ran: status.applier_runs,
            super_read_only: self.server.super_read_only,
            schema_existed: state::schema_in_use(&mut self.control)?,
            logged: self.logged,
            from_relay_logs: self.copied_bytes.is_some(),
            copied_to: None,
            copied_from: None,
        };
        let begin = state::begin(&self.native.channel, &self.progress, &saved)?;
        self.report.outcome = Outcome::Unfinished;
        self.control.execute(begin).with_context(|| format!("making {SCHEMA}.rescue"))?;
        let record = state::read(&mut self.control, &self.native.channel)?;
        record.map(Some).ok_or_else(|| anyhow!("{SCHEMA}.rescue does not hold what was written"))
    }

    /// Without a look: the verdict would be of no use.
    fn refuse<T>(&mut self, findings: Findings) -> Option<T> {
        self.report.findings = findings;
        self.report.outcome = Outcome::Refused;
        self.tell_findings();
        self.say("nothing was changed");
        None
    }

    /// Nobody has to rescue it, which is said.
    pub(super) fn is_not_behind(&self, status: &ReplicaStatus) -> bool {
        let within = self.report.backlog.as_ref().and_then(|backlog| backlog.applied_within_seconds);
        let runs = status.applier_runs && status.receiver == Receiver::Connected;
        let is_near = within.is_some_and(|seconds| seconds <= self.request.lag.as_secs_f64());
        let healthy = is_near && runs && !self.request.anyway;
        if healthy {
            self.say(&format!(
                "nothing was changed: both replication threads run, and the lag is at most {:.1} s (--until-lag {:.1} s). To take over all the same: --anyway",
                within.unwrap_or(0.0),
                self.request.lag.as_secs_f64()
            ));
        }
        healthy
    }

    fn ask_source(&mut self, options: &ConnectOptions, status: &ReplicaStatus, findings: &mut Findings) -> Result<()> {
        let mut source =
            Connection::connect(options).with_context(|| format!("source {} (see --source)", options.address()))?;
        let state = SourceState::read(&mut source).context("source")?;
        judge::source(&self.server, status, &state, findings);
        if state.flavour == self.server.flavour() {
            self.look_for_what_comes_next(&mut source, &state, status, findings)?;
        }
        if state.flavour == binlog::Flavour::MariaDb {
            // In this order: the source is being written, and what comes last can only have grown.
            let logged = source.scalar("SELECT @@global.gtid_binlog_state")?.unwrap_or_default();
            let last = source.scalar("SELECT @@global.gtid_binlog_pos")?.unwrap_or_default();
            judge::order(&logged, &last.parse().context("gtid_binlog_pos")?, &self.server, findings);
        }
        self.look_for_ring(&mut source, &state, findings)?;
        let theirs = format!("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema='{SCHEMA}'");
        if source.scalar(theirs)?.is_some_and(|count| count != "0") {
            findings.refused.push(format!(
                "the source has a schema {SCHEMA} of its own, which native replication brings to this replica: heddle keeps its progress \
                 in the same place"
            ));
        }
        let here = status.applied.as_ref().map(|position| position.file.to_string());
        let file = here.filter(|file| state.logs.contains(file));
        let (backlog, sample) = self.measure_backlog(options, file)?;
        self.check_room(&backlog, findings)?;
        self.report.reasons = judge::reasons(&self.server, status, sample.as_ref());
        self.report.verdict = judge::verdict(&backlog, &self.report.reasons);
        self.report.backlog = Some(backlog);
        Ok(())
    }

    /// In the source's logs, or in the replica's relay logs, or nowhere.
    fn look_for_what_comes_next(
        &mut self,
        source: &mut Connection,
        state: &SourceState,
        status: &ReplicaStatus,
        findings: &mut Findings,
    ) -> Result<()> {
        let gtids = self.server.gtids.clone();
        let place = Place { positioning: status.positioning, gtids, position: status.applied.clone() };
        let Err(why) = backlog::source_has(source, state, &place)? else { return Ok(()) };
        let received = relay_logs::received_place(&place, status)?;
        let later = backlog::source_has(source, state, &received)?;
        let logs = relay_logs::find(&mut self.control, self.request, &self.server, status);
        match (later, logs) {
            (Ok(()), Ok(logs)) => {
                findings.notes.push(format!(
                    "{why}: what comes next is read from the replica's relay logs, {:.1} MB, which are copied first",
                    logs.bytes as f64 / 1e6
                ));
                self.copied_bytes = Some(logs.bytes);
            }
            (Err(why), _) => findings
                .refused
                .push(format!("{why}, and the replica has not received it either: load the replica anew from a copy")),
            (Ok(()), Err(error)) => findings.refused.push(format!(
                "{why}. What comes next is in the replica's relay logs only; {}. Otherwise let the native applier go on",
                chain(&error)
            )),
        }
        Ok(())
    }

    fn look_for_ring(&mut self, source: &mut Connection, state: &SourceState, findings: &mut Findings) -> Result<()> {
        let native = NativeChannel { flavour: state.flavour, version: source.server().version, channel: String::new() };
        let own = self.own_identity()?;
        match replica::questions::channels(source, &native) {
            Ok(sources) if sources.iter().any(|status| status.source_identity.as_ref() == Some(&own)) => {
                findings.refused.push("source and replica replicate from each other: open the ring first".to_owned());
            }
            Ok(_) => {}
            // MariaDB has a privilege of its own for this, which the account need not have: a ring is seen while applying, too.
            Err(error) => findings
                .warnings
                .push(format!("whether the source replicates from this replica could not be asked: {}", chain(&error))),
        }
        Ok(())
    }

    /// How far the replica is behind, how long both appliers may take, and what the log is like. `file`: the source's log that comes next,
    /// if it has it.
    fn measure_backlog(
        &mut self,
        options: &ConnectOptions,
        file: Option<String>,
    ) -> Result<(Backlog, Option<LogSample>)> {
        let (replica, server_id) = (&self.request.replica, (self.request.server_id)(&self.progress));
        let (control, native, gtids) = (&mut self.control, &self.native, &self.server.gtids);
        let (backlog, estimate) = std::thread::scope(|scope| {
            let estimate = scope.spawn(|| estimate::measure(replica, options, file, server_id));
            let backlog = backlog::measure(control, options, native, gtids, SAMPLE);
            (backlog, estimate.join().unwrap_or_else(|_| Err(anyhow!("it has panicked: this is a bug in heddle"))))
        });
        let mut backlog = backlog?;
        let (sample, rate) = match estimate {
            Ok(estimate) => (Some(estimate.log), estimate.bytes_per_second),
            Err(error) => (None, Err(error)),
        };
        match rate {
            Ok(bytes) => backlog.heddle_bytes_per_second = Some(bytes),
            Err(error) => backlog.heddle_estimate_missing = Some(chain(&error)),
        }
        Ok((backlog, sample))
    }

    /// On the disk of heddle's relay log.
    fn check_room(&self, backlog: &Backlog, findings: &mut Findings) -> Result<()> {
        let received = backlog.behind_bytes.unwrap_or(0).min(self.request.relay_bytes_max);
        let needed = received.max(self.copied_bytes.unwrap_or(0));
        let dir = (self.request.relay_dir)(&self.progress)?;
        if let Some(free) = free_bytes(&dir)
            && free < needed
        {
            findings.refused.push(format!(
                "heddle's relay log in {} may need {} MB, and {} MB are free: name another --relay-dir, or a smaller --relay-max-bytes",
                dir.display(),
                needed >> 20,
                free >> 20
            ));
        }
        Ok(())
    }

    /// As the source's replication status would name this replica.
    fn own_identity(&mut self) -> Result<String> {
        if self.server.flavour_is_mariadb {
            return Ok(format!("mariadb-server-{}", self.server.server_id));
        }
        Ok(self.control.scalar("SELECT @@global.server_uuid")?.unwrap_or_default())
    }

    /// What the account lacks for applying, as far as its grants say it.
    fn check_account(&mut self, findings: &mut Findings) -> Result<()> {
        judge::account(&self.server, &grants(&mut self.control)?, findings);
        let mut report = Checks { workers: self.request.workers, ..Checks::default() };
        match self.target() {
            Ok(target) => target.check(None, &mut report),
            Err(error) => report.problems.push(format!("the account on the replica: {}", chain(&error))),
        }
        findings.refused.append(&mut report.problems);
        findings.warnings.append(&mut report.warnings);
        Ok(())
    }

    pub(super) fn tell(&self, status: &ReplicaStatus) {
        self.say(&format!("verdict   {}", self.report.verdict));
        let by = match status.positioning {
            Positioning::File => "file and position",
            Positioning::Gtid | Positioning::CurrentPos => "GTIDs",
        };
        let position = status.applied.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
        self.say(&format!(
            "source    {}@{}:{}, by {by}; applied up to {position}",
            status.user, status.host, status.port
        ));
        let speed: Vec<String> = self.server.speed.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.say(&format!("settings  {}", speed.join(" ")));
        if let Some(backlog) = &self.report.backlog {
            let number = |value: Option<u64>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
            let megabytes =
                backlog.behind_bytes.map_or_else(|| "?".to_owned(), |bytes| format!("{:.1}", bytes as f64 / 1e6));
            self.say(&format!(
                "behind    {} s, {} transactions, {megabytes} MB of the source's binary log",
                number(backlog.behind_seconds),
                number(backlog.behind_transactions),
            ));
            let rate =
                |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), |bytes| format!("{:.2}", bytes as f64 / 1e6));
            let left = |left: CatchUpTime| match left {
                CatchUpTime::In(seconds) => format!("will have caught up in about {}", about(seconds)),
                CatchUpTime::Never => "does not catch up at this rate".to_owned(),
                CatchUpTime::Unknown(why) => format!("when it has caught up is not known: {why}"),
            };
            if status.applier_runs {
                self.say(&format!(
                    "native    applies {} MB/s, the source writes {} MB/s: {}",
                    rate(backlog.native_bytes_per_second),
                    rate(backlog.source_bytes_per_second),
                    left(backlog.native_left())
                ));
            } else {
                self.say("native    the applier is stopped");
            }
            match &backlog.heddle_estimate_missing {
                Some(why) => self.say(&format!("heddle    no estimate: {why}")),
                None => self.say(&format!(
                    "heddle    would apply roughly {} MB/s (from a sample of the log, and of rows in a temporary table): {}",
                    rate(backlog.heddle_bytes_per_second),
                    left(backlog.heddle_left())
                )),
            }
        }
        self.tell_reasons();
        self.tell_findings();
    }

    /// Beside the first, which is in the verdict.
    fn tell_reasons(&self) {
        for reason in &self.report.reasons {
            let change = match reason.change.as_str() {
                "" => String::new(),
                change => format!("; on the {}: {change}", reason.server),
            };
            let keep = if reason.keep.is_empty() { String::new() } else { format!("; to keep it: {}", reason.keep) };
            self.say(&format!("why       {}{change}{keep}", reason.what));
        }
    }

    fn tell_findings(&self) {
        let Findings { refused, warnings, notes } = &self.report.findings;
        for (sign, lines) in [("note     ", notes), ("warning  ", warnings), ("REFUSED  ", refused)] {
            for line in lines {
                self.say(&format!("{sign} {line}"));
            }
        }
    }
}

/// Free for this user on the file system of the nearest folder that exists.
fn free_bytes(dir: &std::path::Path) -> Option<u64> {
    let existing = dir.ancestors().find(|one| one.exists())?;
    let stat = rustix::fs::statvfs(existing).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}
