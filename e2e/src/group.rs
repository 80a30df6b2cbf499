//! A group of three members on this machine: MySQL 9.7 with its group replication. Members are killed, leave and join again; what they miss they take from the others' logs.

use crate::patience::until;
use crate::server::{MYSQL_9_7, PASSWORD, Server, USER, free_port};
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;

const MEMBERS: usize = 3;
const NAME: &str = "5ca1ab1e-0000-4000-8000-000000000052";

/// Who takes changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primaries {
    Single,
    Multi,
}

#[derive(Debug)]
pub struct Group {
    pub members: Vec<Server>,
}

impl Group {
    /// Starts the members; the first one is the primary. `more`: options of each.
    pub fn start(primaries: Primaries, more: &[&str]) -> Result<Group> {
        let ports = (0..MEMBERS).map(|_| free_port()).collect::<Result<Vec<u16>>>()?;
        let seeds = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect::<Vec<_>>().join(",");
        let begin = |port: &u16, data: Option<&Path>| {
            let single = if primaries == Primaries::Single { "ON" } else { "OFF" };
            let checks = if primaries == Primaries::Single { "OFF" } else { "ON" };
            let mut options = vec![
                "--plugin-load-add=group_replication.so".to_owned(),
                "--gtid-mode=ON".to_owned(),
                "--enforce-gtid-consistency=ON".to_owned(),
                format!("--loose-group-replication-group-name={NAME}"),
                format!("--loose-group-replication-local-address=127.0.0.1:{port}"),
                format!("--loose-group-replication-group-seeds={seeds}"),
                "--loose-group-replication-ip-allowlist=127.0.0.1/8".to_owned(),
                "--loose-group-replication-start-on-boot=OFF".to_owned(),
                "--loose-group-replication-recovery-get-public-key=ON".to_owned(),
                "--loose-group-replication-member-expel-timeout=0".to_owned(),
                format!("--loose-group-replication-single-primary-mode={single}"),
                format!("--loose-group-replication-enforce-update-everywhere-checks={checks}"),
                "--report-host=127.0.0.1".to_owned(),
            ];
            options.extend(more.iter().map(|&one| one.to_owned()));
            let words: Vec<&str> = options.iter().map(String::as_str).collect();
            Server::start_from(MYSQL_9_7, &words, data)
        };
        let members = ports.iter().map(|port| begin(port, None)).collect::<Result<Vec<_>>>()?;
        let group = Group { members };
        for (at, member) in group.members.iter().enumerate() {
            // What each of them has executed by itself is nothing that the group knows.
            member.execute(&format!(
                "RESET BINARY LOGS AND GTIDS; CHANGE REPLICATION SOURCE TO SOURCE_USER='{USER}', SOURCE_PASSWORD='{PASSWORD}' \
                 FOR CHANNEL 'group_replication_recovery'"
            ))?;
            if at == 0 {
                group.bootstrap(at)?;
            } else {
                group.join(at)?;
            }
        }
        group.wait_for_all()?;
        Ok(group)
    }

    /// The member, from 0.
    pub fn member(&self, at: usize) -> Result<&Server> {
        self.members.get(at).context("there is no such member")
    }

    fn bootstrap(&self, at: usize) -> Result<()> {
        self.member(at)?.execute(
            "SET GLOBAL group_replication_bootstrap_group=ON; START GROUP_REPLICATION; SET GLOBAL group_replication_bootstrap_group=OFF",
        )
    }

    /// A member that runs joins the others.
    pub fn join(&self, at: usize) -> Result<()> {
        self.member(at)?.execute("START GROUP_REPLICATION")
    }

    /// Starts a member that was killed; it joins the others.
    pub fn revive(&self, at: usize) -> Result<()> {
        self.member(at)?.restart(&[])?;
        self.join(at)
    }

    /// Freezes members, or lets them go on.
    pub fn signal(&self, members: &[usize], signal: Signal) -> Result<()> {
        for &at in members {
            let pid = self.member(at)?.pid().and_then(Pid::from_raw).context("a member does not run")?;
            kill_process(pid, signal)?;
        }
        Ok(())
    }

    /// Until each member sees all of them in step.
    pub fn wait_for_all(&self) -> Result<()> {
        for member in &self.members {
            until(format!("port {} sees all members", member.port), || {
                let online = member.scalar(
                    "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE MEMBER_STATE='ONLINE'",
                )?;
                Ok(online == MEMBERS.to_string())
            })?;
        }
        Ok(())
    }

    /// The primary, as a member that runs sees it.
    pub fn primary(&self) -> Result<usize> {
        for member in self.members.iter().filter(|member| member.pid().is_some()) {
            let port = member.rows(
                "SELECT MEMBER_PORT FROM performance_schema.replication_group_members WHERE MEMBER_ROLE='PRIMARY' AND MEMBER_STATE='ONLINE'",
            )?;
            let port = port.first().and_then(|row| row.first()).cloned().unwrap_or_default();
            if let Some(at) = self.members.iter().position(|one| one.port.to_string() == port) {
                return Ok(at);
            }
        }
        anyhow::bail!("the group has no primary")
    }

    /// All members as one TARGET or SOURCE.
    pub fn url(&self) -> String {
        crate::server::url_of(&self.members)
    }
}
