//! The replicas of a source, as it knows them: those that registered with it, and where their connections come from; then their replicas, likewise.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use binlog::Flavour;
use wire::source::identity;
use wire::{ConnectOptions, Connection};

use replica::questions::{Record, record};
use replica::statements::NativeChannel;

use crate::facts::period::{number, text};

/// A replica that was found, not yet watched.
#[derive(Clone, Debug)]
pub struct FoundReplica {
    /// How it is reached.
    pub options: ConnectOptions,
    /// 1: a replica of the source; 2: one of such a replica; and so on.
    pub depth: u32,
}

/// The replicas of a source, their replicas, and so on: each server once, those of one depth together. `reach` makes the options of a replica from its host and
/// port. One that cannot be asked is among them; of its replicas nothing is known, and the log says so.
///
/// # Errors
/// The source cannot be asked, or has no replica.
pub fn replicas_of(
    source: &ConnectOptions,
    reach: &dyn Fn(String, u16) -> ConnectOptions,
) -> Result<Vec<FoundReplica>> {
    let mut connection = Connection::connect(source).with_context(|| format!("source {}", source.address()))?;
    let mut servers = BTreeSet::from([identity(&mut connection)?]);
    let mut places = BTreeSet::from([(source.host.clone(), source.port)]);
    let first = registered(&mut connection, source)?;
    if first.is_empty() {
        bail!("no replica is registered with the source {}: name replicas on the command line", source.address());
    }
    let mut found: Vec<FoundReplica> = Vec::new();
    let (mut depth, mut next) = (1, first);
    while !next.is_empty() {
        let mut below = Vec::new();
        for (host, port) in next {
            if !places.insert((host.clone(), port)) {
                continue;
            }
            let options = reach(host, port);
            match ask(&options) {
                // It was found under another address, or it is the source itself: a ring.
                Ok((server, _)) if !servers.insert(server.clone()) => continue,
                Ok((_, Ok(replicas))) => below.extend(replicas),
                Ok((_, Err(error))) | Err(error) => {
                    tracing::warn!("the replicas of {} are not known: {error:#}", options.address());
                }
            }
            found.push(FoundReplica { options, depth });
        }
        below.sort();
        (depth, next) = (depth + 1, below);
    }
    Ok(found)
}

/// Hosts and ports of the replicas that a server names.
type Registered = Vec<(String, u16)>;

/// Who it is, and who is registered with it.
fn ask(options: &ConnectOptions) -> Result<(String, Result<Registered>)> {
    let mut connection = Connection::connect(options)?;
    let server = identity(&mut connection)?;
    let replicas = registered(&mut connection, options);
    Ok((server, replicas))
}

/// Host and port of each. A replica says its port, and its host only with `report_host`: else it is where its connection comes from.
fn registered(connection: &mut Connection, source: &ConnectOptions) -> Result<Vec<(String, u16)>> {
    let server = connection.server().clone();
    let flavour = if server.is_mariadb() { Flavour::MariaDb } else { Flavour::MySql };
    let native = NativeChannel { flavour, version: server.version, channel: String::new() };
    let mut ask = |sql: &str| -> Result<Vec<Record>> {
        let rows = connection.rows(sql).with_context(|| format!("{sql} (docs/privileges.md)"))?;
        Ok(rows.iter().map(record).collect())
    };
    let registered = ask(native.replicas())?;
    let dumping = ask("SELECT HOST AS host FROM information_schema.processlist WHERE COMMAND LIKE 'Binlog Dump%'")?;
    let hosts: BTreeSet<String> = dumping.iter().map(|row| host_of(text(row, "host"), &source.host)).collect();
    let mut found = Vec::new();
    for row in &registered {
        let port: u16 = number(row, "Port").unwrap_or(3306);
        match (text(row, "Host"), hosts.len()) {
            ("", 1) => found.extend(hosts.iter().map(|host| (host.clone(), port))),
            ("", _) => tracing::warn!(
                "the replica of {} with server_id {} has no report_host, and replicas connect from several hosts ({}): name it on the command line",
                source.address(),
                text(row, "Server_Id"),
                hosts.iter().cloned().collect::<Vec<_>>().join(", ")
            ),
            (host, _) => found.push((host.to_owned(), port)),
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// `10.0.0.7:51234` without the port; the source's own host for a replica on the same machine.
fn host_of(host: &str, source: &str) -> String {
    let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
    let host = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(host, _)| host);
    if matches!(host, "localhost" | "") { source.to_owned() } else { host.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_connections() {
        assert_eq!(host_of("10.0.0.7:51234", "db1"), "10.0.0.7");
        assert_eq!(host_of("replica2:1", "db1"), "replica2");
        assert_eq!(host_of("localhost", "db1"), "db1");
        assert_eq!(host_of("localhost:3", "db1"), "db1");
    }
}
