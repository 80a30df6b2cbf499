//! Where the replica's channel points: to Heddle, and back to its source at a place where nothing is missing.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use binlog::Flavour;
use binlog::gtids::{GtidSet, GtidState};
use relay::fs::RealFs;
use serve::group::unsaid;
use wire::{ConnectOptions, Connection};

use super::note::{Address, Folder, Note};
use super::run::{POLL, fails};
use super::stream::Stream;
use crate::handover::steering::Steering;
use crate::judge::{self, Findings, GivenPassword};
use crate::request::ViaServe;
use crate::run::Rescue;
use crate::server;
use channel::errors::chain;
use replica::procedures::{Encryption, SourceLogin};
use replica::status::{Positioning, ReplicaStatus};

/// So long the end of a group may take on its way.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

impl Rescue<'_> {
    pub(super) fn points_to(&mut self, at: &Address) -> Result<bool> {
        let status = server::channel(&mut self.control, &self.native)?;
        Ok((status.host, status.port) == (at.host.clone(), at.port))
    }

    /// A replica that is steered by procedures: what they need.
    pub(super) fn judge_procedures(
        &mut self,
        source: &ConnectOptions,
        status: &ReplicaStatus,
        via: &ViaServe,
        findings: &mut Findings,
    ) {
        if self.steering == Steering::Statements {
            return;
        }
        let given = if via.password.is_some() { GivenPassword::Yes } else { GivenPassword::No };
        judge::procedures(status, self.server.flavour(), given, findings);
        findings.notes.extend(self.steering.describe(self.server.flavour()));
        if let Some(password) = &via.password {
            let account =
                ConnectOptions { user: status.user.clone(), password: Some(password.clone()), ..source.clone() };
            // With a wrong one the replica could not come back.
            if let Err(error) = Connection::connect(&account) {
                findings.refused.push(format!(
                    "the replication account {} can not log in to the source from here with the password in HEDDLE_REPLICA_PASSWORD, and the way back needs it: {}",
                    status.user,
                    chain(&anyhow!(error))
                ));
            }
        }
    }

    /// The channel points to Heddle and runs.
    pub(super) fn point_to_heddle(&mut self, note: &Note) -> Result<()> {
        if self.points_to(&note.heddle)? {
            // It may be waiting for its next try to connect.
            self.steering.stop_receiver(&mut self.control, &self.native)?;
        } else {
            self.repoint(&note.heddle, note).context("pointing the replica to heddle")?;
            self.say(&format!("pointed   to heddle at {}; its applier goes on from there", note.heddle));
        }
        self.steering.start(&mut self.control, &self.native)
    }

    fn repoint(&mut self, to: &Address, note: &Note) -> Result<()> {
        self.steering.stop(&mut self.control, &self.native)?;
        let Steering::Procedures(procedures) = &self.steering else { return self.repoint_by_statement(to, note) };
        let text = |name: &str| note.saved.config.get(name).map_or("", String::as_str);
        let password = self.request.via.as_ref().and_then(|via| via.password.as_ref());
        let login = SourceLogin {
            host: &to.host,
            port: to.port,
            user: text("source_user"),
            password: password
                .context("the password of the replication account is needed: HEDDLE_REPLICA_PASSWORD")?
                .expose(),
            tls: if text("source_ssl_allowed") == "Yes" { Encryption::On } else { Encryption::Off },
        };
        let executed = server::executed(&mut self.control, self.server.flavour(), &self.server.gtid_mode)?;
        let call = procedures.repoint(&login, &executed.to_string());
        let name = procedures.set_source();
        self.control.execute(&call).with_context(|| format!("CALL {name}"))?;
        // It may say so in a row only, and do nothing.
        let status = server::channel(&mut self.control, &self.native)?;
        let now = Address { host: status.host, port: status.port };
        ensure!(
            now == *to,
            "{name} was called for the source {to}, and the replica's source is {now}: execute the CALL yourself to see what it says"
        );
        Ok(())
    }

    fn repoint_by_statement(&mut self, to: &Address, note: &Note) -> Result<()> {
        let positioning = match note.saved.config.get("using_gtid").map(String::as_str) {
            Some("Current_Pos") => Positioning::CurrentPos,
            _ => Positioning::Gtid,
        };
        // MySQL shows it elsewhere.
        let heartbeat = note.saved.heartbeat().or(note.saved.connection.get("heartbeat_interval").map(String::as_str));
        let statement = self.native.repoint(&to.host, to.port, positioning, heartbeat);
        self.control.execute(&statement).with_context(|| statement.clone()).map(drop)
    }

    /// At a place where all that was received is applied, and every transaction has its GTID.
    pub(super) fn point_back(&mut self, note: &Note, folder: &Folder, stream: &mut Stream) -> Result<()> {
        loop {
            self.steering.stop_receiver(&mut self.control, &self.native)?;
            let (has, within) = match self.steering {
                Steering::Statements => (self.drained(stream)?, SETTLED_WITHIN),
                // What was received and not applied comes again from the source, by GTID.
                Steering::Procedures(_) => (self.look_again()?.1, Duration::ZERO),
            };
            let missing = self.settled(note, &folder.mirror(), has, within)?;
            if missing.is_empty() {
                break;
            }
            tracing::info!("the statement that adds {missing} to the replica's gtid_purged has not arrived yet");
            self.steering.start_receiver(&mut self.control, &self.native)?;
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
    fn settled(&mut self, note: &Note, mirror: &Path, mut has: GtidState, within: Duration) -> Result<GtidSet> {
        let since = Instant::now();
        loop {
            let GtidState::MySql(said) = &has else { return Ok(GtidSet::default()) };
            let missing = unsaid(&RealFs, mirror, &note.replica, said).map_err(anyhow::Error::new)?;
            if missing.is_empty() || since.elapsed() >= within {
                return Ok(missing);
            }
            sleep(POLL);
            has = self.look_again()?.1;
        }
    }
}
