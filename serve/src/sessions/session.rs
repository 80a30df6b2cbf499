//! One client: login, commands, and the stream in which a replica's connection ends.

use std::net::TcpStream;
use std::sync::Arc;

use wire::server::{Command, DumpFrom, Peer, PeerError, PeerOptions, Registration, ServerError};

use super::groups::{Replica, Wants};
use super::registry::{Identity, Sends};
use super::shared::Shared;
use crate::dump::{self, Context, DumpError, Grouped, Marked, Request};
use crate::inventory::SourceFacts;
use crate::queries::{self, Answer, ReplicaLine, Sessions, Variables, Who, World};
use crate::semisync::replies::Replying;

/// From the connection's begin to its end.
pub(super) fn run(tcp: TcpStream, number: u32, options: &PeerOptions, shared: &Shared) {
    match serve(tcp, number, options, shared) {
        Ok(()) => {}
        Err(error @ PeerError::Denied { .. }) => {
            if let Some(count) = shared.registry.refused() {
                tracing::warn!("{error} ({count} refused since the last such message)");
            }
        }
        Err(error) => tracing::debug!("client {number}: {error}"),
    }
    shared.registry.leave(number);
}

fn serve(tcp: TcpStream, number: u32, options: &PeerOptions, shared: &Shared) -> Result<(), PeerError> {
    let peer = Peer::accept(tcp, number, options, &shared.accounts)?;
    shared.registry.logged_in(number, peer.user());
    let mut session =
        Session { peer, number, shared, variables: Variables::default(), replica: ReplicaLine::default() };
    while session.command()? == Next::Command {}
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Command,
    End,
}

struct Session<'a> {
    peer: Peer,
    number: u32,
    shared: &'a Shared,
    variables: Variables,
    replica: ReplicaLine,
}

impl Session<'_> {
    fn command(&mut self) -> Result<Next, PeerError> {
        match self.peer.command()? {
            Command::Quit => return Ok(Next::End),
            Command::Query(sql) => return self.query(&sql),
            Command::Ping => self.peer.ok()?,
            Command::ResetConnection => {
                self.variables.forget();
                self.peer.ok()?;
            }
            Command::SetOption(_) => self.peer.end()?,
            Command::Statistics => {
                let count = self.shared.registry.list().len();
                self.peer.line(&format!("Uptime: 0  Threads: {count}"))?;
            }
            Command::InitDb(name) => {
                let name = String::from_utf8_lossy(&name).into_owned();
                self.peer.error(&ServerError::new(1049, "42000", format!("Unknown database '{name}'")))?;
            }
            Command::Kill(number) if number == self.number => return Ok(Next::End),
            Command::Kill(number) => {
                if self.shared.registry.kill(number, self.peer.user()) {
                    self.peer.ok()?;
                } else {
                    self.peer.error(&ServerError::new(1094, "HY000", format!("Unknown thread id: {number}")))?;
                }
            }
            Command::RegisterReplica(registration) => {
                self.register(&registration);
                self.peer.ok()?;
            }
            Command::BinlogDump(from) => {
                self.dump(&from)?;
                // As servers do: nothing follows a stream.
                return Ok(Next::End);
            }
            Command::Other(_) => self.peer.error(&ServerError::new(1047, "08S01", "Unknown command"))?,
        }
        Ok(Next::Command)
    }

    fn query(&mut self, sql: &[u8]) -> Result<Next, PeerError> {
        let Some(source) = self.shared.inventory.source() else { return Ok(Next::End) };
        let user = self.peer.user().to_owned();
        let receiving = self.shared.monitor.receiving();
        let world = World {
            inventory: &self.shared.inventory,
            source: &source,
            receiving: receiving.as_ref(),
            own: &self.shared.own,
            who: Who { number: self.number, user: &user, from: self.peer.from() },
            sessions: &self.shared.registry,
        };
        match queries::answer(sql, &mut self.variables, world) {
            Ok(Answer::Done) => self.peer.ok()?,
            Ok(Answer::Rows(rows)) => self.peer.rows(&rows)?,
            Ok(Answer::Leave) => return Ok(Next::End),
            Err(error) => self.peer.error(&error)?,
        }
        Ok(Next::Command)
    }

    fn uuid(&self) -> Option<String> {
        self.variables.user("replica_uuid").or_else(|| self.variables.user("slave_uuid"))
    }

    fn register(&mut self, registration: &Registration) {
        self.replica = ReplicaLine {
            server_id: registration.server_id,
            host: String::from_utf8_lossy(&registration.host).into_owned(),
            port: registration.port,
            uuid: self.uuid().unwrap_or_default(),
        };
        self.shared.registry.register(self.number, self.replica.clone());
    }

    fn dump(&mut self, from: &DumpFrom) -> Result<(), PeerError> {
        let Some(source) = self.shared.inventory.source() else { return Ok(()) };
        let Err(ended) = self.stream(from, &source) else { return Ok(()) };
        let error = ended.told()?;
        let (id, user, host) = (from.server_id, self.peer.user(), self.peer.from());
        tracing::warn!("the replica with server_id {id} ({user}@{host}) was refused: {}", error.message);
        self.peer.error(&error)
    }

    fn stream(&mut self, from: &DumpFrom, source: &Arc<SourceFacts>) -> Result<(), DumpError> {
        let mirror = self.variables.user("heddle_mirror");
        let who = match mirror.clone().or_else(|| self.uuid()) {
            Some(uuid) => Identity::Uuid(uuid),
            None if from.server_id != 0 => Identity::ServerId(from.server_id),
            None => Identity::Nobody,
        };
        let variables = &self.variables;
        let variable = |name: &str| variables.user(name);
        let marked = if variables.is_on("skip_replication") { Marked::LeftOut } else { Marked::Sent };
        let mut request = Request::new(from, source, marked, &variable)?;
        let replies = ["rpl_semi_sync_replica", "rpl_semi_sync_slave"]
            .iter()
            .any(|name| self.variables.user(name).is_some_and(|value| value.trim() != "0"));
        let replica = Replica {
            uuid: self.uuid(),
            server_id: from.server_id,
            wants: if replies || mirror.is_some() { Wants::Plain } else { Wants::Any },
        };
        let replying = replies.then(|| Replying { acks: &self.shared.acks, mirror });
        let grouped = self.shared.groups.of(&replica, &mut request, source)?;
        let sends = if replies { Sends::Replies } else { Sends::Nothing };
        let groups = grouped.as_ref().and_then(Grouped::sent);
        let dump = self.shared.registry.begin_dump(self.number, who, from.server_id, sends, groups);
        tracing::info!(
            "the replica with server_id {} ({}@{}) attaches",
            from.server_id,
            self.peer.user(),
            self.peer.from()
        );
        let context = Context {
            inventory: &self.shared.inventory,
            is_replaced: &dump.is_replaced,
            replying: replying.as_ref(),
            progress: &*dump.sent,
        };
        dump::run(&mut self.peer, &request, context, grouped)
    }
}
