//! One client: login, commands, and the stream that ends a replica's connection.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use wire::server::{Command, DumpPlace, Peer, PeerError, PeerOptions, Registration, ServerError};

use super::groups::{Replica, StreamForm};
use super::malformed_commands;
use super::prepared_statements::Statements;
use super::registry::{Identity, ReplyMode};
use super::session_context::SessionContext;
use crate::dump::{self, Context, DumpError, GroupSender, MarkedEvents, Request, WaitMode};
use crate::inventory::SourceFacts;
use crate::queries::{self, Answer, Client, ReplicaLine, Sessions, Variables, World};
use crate::semisync::replies::ReplyRequest;

/// Runs a connection from its beginning to its end.
pub(crate) fn run(tcp: TcpStream, number: u32, options: &PeerOptions, shared: &SessionContext) {
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

fn serve(tcp: TcpStream, number: u32, options: &PeerOptions, shared: &SessionContext) -> Result<(), PeerError> {
    let peer = Peer::accept(tcp, number, options, &shared.accounts)?;
    shared.registry.logged_in(number, peer.user());
    let mut session = Session {
        peer,
        number,
        shared,
        variables: Variables::default(),
        replica: ReplicaLine::default(),
        statements: Statements::default(),
    };
    while session.command()? == AfterCommand::Command {}
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterCommand {
    Command,
    End,
}

/// How rows are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Text,
    /// Of prepared statements.
    Binary,
}

struct Session<'a> {
    peer: Peer,
    number: u32,
    shared: &'a SessionContext,
    variables: Variables,
    replica: ReplicaLine,
    statements: Statements,
}

impl Session<'_> {
    fn command(&mut self) -> Result<AfterCommand, PeerError> {
        match self.peer.command()? {
            Command::Quit => return Ok(AfterCommand::End),
            Command::Query(sql) => return self.query(&sql, Protocol::Text),
            Command::Prepare(sql) => match self.statements.prepare(&sql) {
                Ok((number, values)) => self.peer.prepared(number, values)?,
                Err(error) => self.peer.error(&error)?,
            },
            Command::Execute { statement, values } => match self.statements.text(statement, &values) {
                Ok(sql) => return self.query(sql.as_bytes(), Protocol::Binary),
                Err(error) => self.peer.error(&error)?,
            },
            // No known client sends one: the statement is not known any more when it is executed.
            Command::LongData(number) | Command::CloseStatement(number) => self.statements.close(number),
            Command::ResetStatement(_) => self.peer.ok()?,
            Command::Ping => self.peer.ok()?,
            Command::ResetConnection => {
                self.variables.forget();
                self.statements.forget();
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
            Command::Kill(number) if number == self.number => return Ok(AfterCommand::End),
            Command::Kill(number) => {
                if self.shared.registry.kill(number, self.peer.user()) {
                    self.peer.ok()?;
                } else {
                    self.peer.error(&ServerError::new(1094, "HY000", format!("Unknown thread id: {number}")))?;
                }
            }
            Command::RegisterReplica(registration) => {
                let Some(source) = self.shared.inventory.source() else { return Ok(AfterCommand::End) };
                match malformed_commands::refusal(&registration, &source) {
                    Some(error) => self.peer.error(&error)?,
                    None => {
                        self.register(&registration, &source);
                        self.peer.ok()?;
                    }
                }
            }
            Command::BinlogDump(DumpPlace { gtid_set: Some(_), .. }) if self.is_at_mariadb() => {
                self.peer.error(&malformed_commands::unknown_command())?;
            }
            Command::BinlogDump(from) => {
                self.dump(&from)?;
                // As servers do: nothing follows a stream.
                return Ok(AfterCommand::End);
            }
            Command::Malformed(malformed) => {
                let Some(source) = self.shared.inventory.source() else { return Ok(AfterCommand::End) };
                self.peer.error(&malformed_commands::error(malformed, &source))?;
            }
            Command::Other(_) => self.peer.error(&malformed_commands::unknown_command())?,
        }
        Ok(AfterCommand::Command)
    }

    fn query(&mut self, sql: &[u8], protocol: Protocol) -> Result<AfterCommand, PeerError> {
        let Some(source) = self.shared.inventory.source() else { return Ok(AfterCommand::End) };
        let user = self.peer.user().to_owned();
        let receiving = self.shared.monitor.receiving();
        let schema = self.shared.tags.as_ref().and_then(|tags| tags.schema());
        let world = World {
            inventory: &self.shared.inventory,
            source: &source,
            receiving: receiving.as_ref(),
            schema: schema.as_deref(),
            own: &self.shared.own,
            who: Client { number: self.number, user: &user, from: self.peer.from() },
            sessions: &self.shared.registry,
        };
        match queries::answer(sql, &mut self.variables, world) {
            Ok(Answer::Done) => self.peer.ok()?,
            Ok(Answer::Rows(rows)) if protocol == Protocol::Binary => self.peer.binary_rows(&rows)?,
            Ok(Answer::Rows(rows)) => self.peer.rows(&rows)?,
            Ok(Answer::Leave) => return Ok(AfterCommand::End),
            Err(error) => self.peer.error(&error)?,
        }
        Ok(AfterCommand::Command)
    }

    fn is_at_mariadb(&self) -> bool {
        self.shared.inventory.source().is_some_and(|source| source.is_mariadb())
    }

    /// As the source's version reads it: MariaDB goes by `server_id` alone.
    fn uuid(&self, source: &SourceFacts) -> Option<String> {
        const UUID_CHARS: usize = 36;
        let new = source.says_replica().then(|| self.variables.user("replica_uuid")).flatten();
        let uuid = new.or_else(|| self.variables.user("slave_uuid")).filter(|uuid| !uuid.is_empty())?;
        (!source.is_mariadb()).then(|| uuid.chars().take(UUID_CHARS).collect())
    }

    fn register(&mut self, registration: &Registration, source: &SourceFacts) {
        self.replica = ReplicaLine {
            server_id: registration.server_id,
            host: String::from_utf8_lossy(&registration.host).into_owned(),
            port: registration.port,
            uuid: self.uuid(source).unwrap_or_default(),
        };
        self.shared.registry.register(self.number, self.replica.clone());
    }

    fn dump(&mut self, from: &DumpPlace) -> Result<(), PeerError> {
        let Some(source) = self.shared.inventory.source() else { return Ok(()) };
        let Err(ended) = self.stream(from, &source) else { return Ok(()) };
        let (id, user, host) = (from.server_id, self.peer.user(), self.peer.from());
        let error = match ended.told() {
            Err(PeerError::Gone { source: error, .. }) if error.kind() == io::ErrorKind::TimedOut => {
                let seconds = self.write_timeout(&source).as_secs();
                tracing::warn!(
                    "the replica with server_id {id} ({user}@{host}) has read nothing for {seconds} s (net_write_timeout): its connection is closed"
                );
                return Err(PeerError::Gone { during: "sending", source: error });
            }
            told => told?,
        };
        tracing::warn!("the replica with server_id {id} ({user}@{host}) was refused: {}", error.message);
        self.peer.error(&error)
    }

    /// The servers' `net_write_timeout`: the session's, or the source's.
    fn write_timeout(&self, source: &SourceFacts) -> Duration {
        const DEFAULT: u64 = 60;
        const MOST: u64 = 365 * 24 * 3600;
        let of_source = || source.variable("net_write_timeout").and_then(|seconds| seconds.parse().ok());
        let seconds = self.variables.number("net_write_timeout").or_else(of_source).unwrap_or(DEFAULT);
        Duration::from_secs(seconds.clamp(1, MOST))
    }

    fn stream(&mut self, from: &DumpPlace, source: &Arc<SourceFacts>) -> Result<(), DumpError> {
        let mirror = self.variables.user("heddle_mirror");
        let who = match (mirror.clone(), self.uuid(source)) {
            (Some(mirror), _) => Identity::Mirror(mirror),
            (None, Some(uuid)) => Identity::Uuid(uuid),
            (None, None) if from.server_id != 0 => Identity::ServerId(from.server_id),
            (None, None) => Identity::Nobody,
        };
        self.peer.set_write_timeout(self.write_timeout(source));
        let variables = &self.variables;
        let variable = |name: &str| variables.user(name);
        let marked = if variables.is_on("skip_replication") { MarkedEvents::LeftOut } else { MarkedEvents::Sent };
        let mut request = Request::new(from, source, marked, &variable)?;
        let replies = ["rpl_semi_sync_replica", "rpl_semi_sync_slave"]
            .iter()
            .any(|name| self.variables.user(name).is_some_and(|value| value.trim() != "0"));
        let replica = Replica {
            uuid: self.uuid(source),
            server_id: from.server_id,
            wants: if replies || mirror.is_some() { StreamForm::Plain } else { StreamForm::Any },
        };
        let replying = replies.then(|| ReplyRequest { acks: &self.shared.acks, mirror });
        let grouped = self.shared.groups.of(&replica, &mut request, source, &self.shared.inventory)?;
        let sends = if replies { ReplyMode::Replies } else { ReplyMode::Nothing };
        let groups = grouped.as_ref().and_then(GroupSender::sent);
        let name = who.name().filter(|_| request.waiting == WaitMode::ForMore);
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
            replica: name.as_deref(),
            progress: &*dump.sent,
        };
        dump::run(&mut self.peer, &request, context, grouped)
    }
}
