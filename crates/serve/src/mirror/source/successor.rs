//! Chooses the server that is mirrored: the folder's own source, or another server of the list that has all of the mirror's transactions. It asks, and changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use binlog::{FIRST_OFFSET, Flavour, LogPosition, LoggedGtids};
use engine::failure::{Failure, FailureKind};
use wire::{Connection, Error};

use super::connection::{self, Attachment, NextStep, Source, StreamStart, UNKNOWN_VARIABLE, Upstream};
use crate::mirror::disk::last_file::LastBoundary;
use crate::mirror::disk::owner::{Owner, Seam};
use crate::mirror::stream::EventReceiver;

/// The server that is mirrored from now on.
pub struct SourceSelection<'a> {
    pub upstream: &'a Upstream,
    pub connection: Connection,
    pub state: Source,
    pub successor: Option<Successor>,
}

/// A server that replaces the source.
pub struct Successor {
    /// The first of its files that is needed.
    pub first: Arc<str>,
    pub seam: Seam,
}

/// The mirror's history, and how long its source has been away.
pub struct MirrorHistory<'a> {
    pub owner: Option<&'a Owner>,
    /// The end of its last whole transaction.
    pub last_boundary: Option<&'a LastBoundary>,
    /// How long its source has been away.
    pub away: Duration,
    /// How long its source may be away before another server replaces it.
    pub patience: Duration,
}

/// Asks all servers. The mirror's own source is preferred, then the others in their order.
pub fn choose<'a>(upstreams: &'a [Upstream], mirrored: &MirrorHistory<'_>) -> Result<SourceSelection<'a>, Failure> {
    let mut others = Vec::new();
    let mut unknown = None;
    for upstream in upstreams {
        let asked = connection::connect(&upstream.options)
            .and_then(|mut connection| Source::ask(&mut connection).map(|state| (connection, state)));
        match asked {
            Ok((connection, state)) => {
                let chosen = SourceSelection { upstream, connection, state, successor: None };
                match mirrored.owner {
                    Some(owner) if owner.is(chosen.state.flavour, &chosen.state.identity) => return Ok(chosen),
                    None if unknown.is_none() => return Ok(chosen),
                    _ => others.push(chosen),
                }
            }
            Err(failure) => {
                unknown.get_or_insert(failure);
            }
        }
    }
    // One that is away may be the mirror's own.
    if let Some(failure) = unknown.take_if(|failure| {
        others.is_empty() || failure.kind != FailureKind::ConnectionLost || mirrored.away < mirrored.patience
    }) {
        return Err(failure);
    }
    let mut refused = None;
    for mut chosen in others {
        let Some(owner) = mirrored.owner else { return Ok(chosen) };
        match successor_of(owner, mirrored.last_boundary, &mut chosen) {
            Ok(successor) => return Ok(SourceSelection { successor: Some(successor), ..chosen }),
            Err(failure) => {
                tracing::warn!("{}", failure.message);
                refused.get_or_insert(failure);
            }
        }
    }
    // The mirror's own may come back.
    Err(unknown.or(refused).unwrap_or_else(|| Failure::new(FailureKind::Refused, "there is no source")))
}

/// Checks that the server has all of the mirror's transactions, and still has what comes next.
fn successor_of(
    owner: &Owner,
    last_boundary: Option<&LastBoundary>,
    chosen: &mut SourceSelection<'_>,
) -> Result<Successor, Failure> {
    let (upstream, state) = (chosen.upstream, &chosen.state);
    let cannot = |why: &str| {
        Failure::new(
            FailureKind::Refused,
            format!("the mirror is of the source {}, and {} cannot take its place: {why}", owner.source, state.identity),
        )
        .remedy("point --from at the source of the mirror, or mirror this one into a new --dir. The mirror stays as it is: it may be the only copy of what is missing there")
    };
    let boundary =
        last_boundary.filter(|boundary| !boundary.gtids.is_empty()).ok_or_else(|| cannot("the mirror has no GTIDs"))?;
    if !owner.is_flavour(state.flavour) {
        return Err(cannot("it is of the other vendor"));
    }
    if !logs_updates(&mut chosen.connection)? {
        return Err(cannot("it does not log what it gets from its source (log_replica_updates, log_slave_updates)"));
    }
    let mine = boundary.gtids.to_string();
    for gtids in std::iter::once(&mine).chain(owner.after.as_ref().map(|seam| &seam.gtids)) {
        let lacking = lacking(&mut chosen.connection, state.flavour, gtids)?;
        if !lacking.is_empty() {
            return Err(cannot(&format!("it lacks the transactions {lacking}, which the mirror has")));
        }
    }
    for log in state.logs.iter().rev() {
        if listed(upstream, &log.file, &state.identity)?.without(&boundary.gtids).is_empty() {
            let seam = Seam { source: owner.source.clone(), position: boundary.end.to_string(), gtids: mine };
            return Ok(Successor { first: Arc::clone(&log.file), seam });
        }
    }
    Err(cannot("it has purged transactions that the mirror does not have"))
}

/// Otherwise its files lack what it got before it became the source.
fn logs_updates(connection: &mut Connection) -> Result<bool, Failure> {
    let asking = |error: &Error| connection::failed("log_replica_updates", error);
    let value = match connection.scalar("SELECT @@global.log_replica_updates") {
        Err(Error::Server { code: UNKNOWN_VARIABLE, .. }) => connection.scalar("SELECT @@global.log_slave_updates"),
        answer => answer,
    };
    Ok(value.map_err(|error| asking(&error))?.as_deref() == Some("1"))
}

/// Those that the server has not executed.
fn lacking(connection: &mut Connection, flavour: Flavour, gtids: &str) -> Result<String, Failure> {
    let asking = |error: &Error| connection::failed("what it has executed", error);
    if flavour == Flavour::MySql {
        let question = format!("SELECT GTID_SUBTRACT('{gtids}', @@global.gtid_executed)");
        return Ok(connection.scalar(question).map_err(|error| asking(&error))?.unwrap_or_default());
    }
    let state = connection.scalar("SELECT @@global.gtid_binlog_state").map_err(|error| asking(&error))?;
    Ok(lacking_mariadb(gtids, &state.unwrap_or_default()))
}

/// Of `DOMAIN-SERVER-NUMBER,…` what is behind the state, which is of the same form.
fn lacking_mariadb(gtids: &str, state: &str) -> String {
    let state: BTreeMap<&str, u64> = split(state).map(|(_, whose, number)| (whose, number)).collect();
    let is_lacking = |(_, whose, number): &(&str, &str, u64)| state.get(whose).is_none_or(|known| known < number);
    let lacking: Vec<&str> = split(gtids).filter(is_lacking).map(|(gtid, ..)| gtid).collect();
    lacking.join(",")
}

/// Each GTID, its domain and server, its number.
fn split(gtids: &str) -> impl Iterator<Item = (&str, &str, u64)> {
    gtids.split(',').map(str::trim).filter_map(|gtid| {
        let (whose, number) = gtid.rsplit_once('-')?;
        Some((gtid, whose, number.parse().ok()?))
    })
}

/// The GTIDs of the files before this one.
fn listed(upstream: &Upstream, file: &Arc<str>, identity: &str) -> Result<LoggedGtids, Failure> {
    let at = LogPosition::new(Arc::clone(file), FIRST_OFFSET);
    let from =
        StreamStart { at, server_id: upstream.server_id, attaching: Attachment::default(), at_end: NextStep::End };
    let mut stream = connection::stream(connection::connect(&upstream.options)?, &from, identity)?;
    let mut arriving = EventReceiver::default();
    while !arriving.has_begun() {
        let packet = stream.next().map_err(|error| connection::failed("reading the beginning of a file", &error))?;
        arriving.take(packet.bytes).map_err(|refusal| Failure::new(FailureKind::Refused, refusal.to_string()))?;
    }
    Ok(arriving.gtids().logged().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_mariadb_lacks() {
        let check = |gtids: &str, state: &str, lacking: &str| assert_eq!(lacking_mariadb(gtids, state), lacking);
        check("0-1-7,0-2-9", "0-2-9,0-1-8,4-1-1", "");
        check("0-1-7,0-2-9", "0-2-9, 0-1-6", "0-1-7");
        check("0-1-7,0-2-9", "0-1-100", "0-2-9");
        check("1-1-7", "", "1-1-7");
        check("", "0-1-1", "");
    }
}
