//! From Heddle back to native replication: the server is told what was applied, its applier released, started and watched.
//!
//! Whatever is said here is said while the applier is held, and being released is the last of it. So "held" means that nothing
//! native has happened since, and that saying it all again is right; "not held" means that all of it was said.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use binlog::Flavour;
use binlog::LogPosition;
use binlog::gtids::{Gtid, GtidSet, GtidState, Uuid};
use engine::progress::Mark;
use wire::{ConnectOptions, Connection};

use crate::handover::hole;
use crate::handover::steering::Steering;
use crate::server;
use crate::state::{self, Phase, Place, SavedChannel};
use apply::mysql::server::sql::quote;
use replica::statements::{HOLD_S, NativeChannel};
use replica::status::{Positioning, Receiver, ReplicaStatus};

/// What is applied when Heddle is done: everything before these, nothing after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedState {
    pub gtids: GtidState,
    pub position: Option<LogPosition>,
}

impl AppliedState {
    /// Where native replication was, and what Heddle has added; `mark`: none if it has not begun.
    pub fn new(place: &Place, mark: Option<&Mark>) -> Self {
        let Some(mark) = mark else {
            return Self { gtids: place.gtids.clone(), position: place.position.clone() };
        };
        let gtids = place.gtids.then(&mark.gtids);
        Self { gtids, position: mark.position.clone().or_else(|| place.position.clone()) }
    }
}

/// Takes the replica from [`Phase::HandingBack`] to [`Phase::Released`].
pub fn hand_back(
    connection: &mut Connection,
    native: &NativeChannel,
    saved: &SavedChannel,
    place: &Place,
    applied: &AppliedState,
    gtid_mode: &str,
    noting: GtidNotes<'_>,
) -> Result<()> {
    let status = server::channel(connection, native)?;
    if status.delay_s == HOLD_S {
        if !status.is_stopped() {
            connection.execute(native.stop()).context("stopping native replication")?;
        }
        if noting.leaves_hole {
            let applied = hole::AppliedEnd { gtids: &applied.gtids, position: applied.position.as_ref() };
            hole::mark(connection, noting.replica, native, gtid_mode, place, applied)?;
        }
        if native.flavour == Flavour::MariaDb || gtid_mode == "ON" {
            note_gtids(connection, native, &applied.gtids, noting)?;
        }
        // What is told below must not be on the disk before the rows are.
        connection.execute("FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS").context("making the rows durable")?;
        let release = native.release(saved.delay_s, saved.heartbeat(), place.positioning, applied.position.as_ref());
        connection.execute(release).context("releasing the native applier")?;
    }
    state::advance(connection, &native.channel, Phase::HandingBack, Phase::Released, None)
}

/// How the server is told of GTIDs that it has not executed under their names.
#[derive(Clone, Copy, Debug)]
pub struct GtidNotes<'a> {
    pub replica: &'a ConnectOptions,
    /// Through its binary log, for its own replicas.
    pub logged: bool,
    /// What Heddle applied is missing in a binary log that has everything else.
    pub leaves_hole: bool,
}

fn note_gtids(
    connection: &mut Connection,
    native: &NativeChannel,
    applied: &GtidState,
    noting: GtidNotes<'_>,
) -> Result<()> {
    match applied {
        GtidState::None => Ok(()),
        GtidState::MariaDb(position) => {
            let now = connection.scalar("SELECT @@global.gtid_slave_pos")?.unwrap_or_default();
            if now.parse::<GtidState>().ok().as_ref() == Some(applied) {
                return Ok(());
            }
            let set = format!("SET GLOBAL gtid_slave_pos={}", quote(&position.to_string()));
            connection.execute(set).context("noting the GTIDs that are applied (gtid_slave_pos)").map(|_| ())
        }
        GtidState::MySql(set) => {
            let executed = server::executed(connection, Flavour::MySql, "ON")?;
            let mut missing = set.clone();
            if let GtidState::MySql(executed) = &executed {
                missing.subtract(executed);
            }
            if missing.is_empty() {
                return Ok(());
            }
            if native.version >= (8, 0, 0) && !noting.logged {
                let add = format!("SET GLOBAL gtid_purged={}", quote(&format!("+{missing}")));
                return connection.execute(add).context("noting the GTIDs that are applied (gtid_purged)").map(|_| ());
            }
            note_one_by_one(noting, &missing)
        }
    }
}

/// Empty transactions in one packet.
const EMPTY_TRANSACTIONS: usize = 500;
/// Connections that note GTIDs: their commits share syncs.
const NOTING_CONNECTIONS: usize = 16;

/// Before 8.0, and for the replica's own replicas, a GTID is noted by a transaction that has it: an empty one. Those that an interrupted run
/// has noted are not missing any more.
fn note_one_by_one(noting: GtidNotes<'_>, missing: &GtidSet) -> Result<()> {
    let count = missing.count();
    tracing::info!("noting {count} GTIDs, one empty transaction each");
    let began = Instant::now();
    let packets = Mutex::new(packets(missing));
    let done = AtomicU64::new(0);
    let note = || -> Result<()> {
        let mut connection = Connection::connect(noting.replica).context("replica")?;
        if !noting.logged {
            connection.execute("SET SESSION sql_log_bin=0").context("SET SESSION sql_log_bin=0")?;
        }
        loop {
            let next = packets.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(gtids) = next else { return Ok(()) };
            let empty = |gtid: &Gtid| format!("SET SESSION gtid_next='{gtid}';BEGIN;COMMIT");
            let statements: Vec<String> = gtids.iter().map(empty).collect();
            connection.execute(statements.join(";")).context("noting GTIDs that are applied (gtid_next)")?;
            let before = done.fetch_add(gtids.len() as u64, Ordering::Relaxed);
            if before / 100_000 != (before + gtids.len() as u64) / 100_000 {
                tracing::info!("{before} of {count} GTIDs noted");
            }
        }
    };
    let connections =
        NOTING_CONNECTIONS.min(usize::try_from(count.div_ceil(EMPTY_TRANSACTIONS as u64)).unwrap_or(usize::MAX));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections).map(|_| scope.spawn(note)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| bail!("a thread that notes GTIDs has panicked: this is a bug in heddle"))
        })
    })?;
    tracing::info!("{count} GTIDs noted in {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// Few enough for a packet each.
fn packets(missing: &GtidSet) -> impl Iterator<Item = Vec<Gtid>> + Send + use<> {
    let ranges: Vec<(Uuid, String, u64, u64)> = missing
        .iter()
        .flat_map(|(uuid, tag, intervals)| {
            intervals.ranges().iter().map(move |&(first, last)| (*uuid, tag.as_str().to_owned(), first, last))
        })
        .collect();
    ranges.into_iter().flat_map(|(uuid, tag, first, last)| {
        (first..=last).step_by(EMPTY_TRANSACTIONS).map(move |start| {
            let end = last.min(start + EMPTY_TRANSACTIONS as u64 - 1);
            let tag = (!tag.is_empty()).then(|| tag.as_str().into());
            (start..=end).map(|gno| Gtid::MySql { uuid, tag: tag.clone(), gno }).collect()
        })
    })
}

/// Both threads must run this long without an error.
const STEADY: Duration = Duration::from_secs(3);
const WATCH_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(200);

/// Starts native replication and sees it run.
pub fn start(connection: &mut Connection, native: &NativeChannel, steering: &Steering) -> Result<ReplicaStatus> {
    let status = server::channel(connection, native)?;
    if status.delay_s == HOLD_S {
        bail!(
            "the native applier is held although it was released: was the replica restored from a copy? Nothing is changed; see \
             docs/rescue.md, \"By hand\""
        );
    }
    if !(status.applier_runs && status.receiver != Receiver::Stopped) {
        steering.start(connection, native)?;
    }
    let began = Instant::now();
    let mut since = Instant::now();
    loop {
        let status = server::channel(connection, native)?;
        if let Some(error) = &status.applier_error {
            bail!("native replication was started at the right place and its applier has stopped: error {error}");
        }
        if !(status.applier_runs && status.receiver == Receiver::Connected) {
            since = Instant::now();
        } else if since.elapsed() >= STEADY {
            return Ok(status);
        }
        if began.elapsed() > WATCH_TIMEOUT {
            let why = status.receiver_error.unwrap_or_else(|| format!("{:?}", status.receiver));
            bail!("native replication was started at the right place but does not reach its source: {why}");
        }
        sleep(POLL);
    }
}

/// Settings that are not as they were: names with the values before and now.
pub fn differences(
    saved: &SavedChannel,
    status: &ReplicaStatus,
    connection: &std::collections::BTreeMap<String, String>,
) -> Vec<String> {
    let then = saved.config.iter().chain(&saved.connection);
    let now = |name: &String| status.config.get(name).or_else(|| connection.get(name)).map_or("", String::as_str);
    let mut all: Vec<String> = then
        .filter(|(name, value)| now(name) != value.as_str())
        .map(|(name, value)| format!("{name} was {value:?} and is {:?}", now(name)))
        .collect();
    if status.delay_s != saved.delay_s {
        all.push(format!("the delay was {} s and is {} s", saved.delay_s, status.delay_s));
    }
    all
}

/// As native replication goes on: by what.
pub fn describe(place: &Place, applied: &AppliedState) -> String {
    let position = applied.position.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    match place.positioning {
        Positioning::File => format!("file and position {position}"),
        Positioning::Gtid | Positioning::CurrentPos => format!("GTIDs {}", applied.gtids),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_applied_in_the_end() {
        let place = |gtids: &str, position: Option<&str>| Place {
            positioning: Positioning::Gtid,
            gtids: gtids.parse().unwrap(),
            position: position.map(|position| position.parse().unwrap()),
        };
        let mark = |gtids: &str, position: Option<&str>| Mark {
            seq: 7,
            gtids: gtids.parse().unwrap(),
            position: position.map(|position| position.parse().unwrap()),
            commit_time_us: 0,
        };
        let check = |place: &Place, mark: Option<&Mark>, gtids: &str, position: Option<&str>| {
            let applied = AppliedState::new(place, mark);
            assert_eq!(applied.gtids.to_string(), gtids);
            assert_eq!(applied.position.map(|position| position.to_string()).as_deref(), position);
        };
        let (a, b) = ("6c27ad86-e5b9-11f1-91a6-02fc00000001", "8a258768-e5b8-11f1-9e33-02fc00000001");
        let at = Some("b.000002:400");
        check(&place("0-1-5", at), None, "0-1-5", at);
        check(&place("0-1-5,3-1-9", at), Some(&mark("0-1-5,3-1-9", None)), "0-1-5,3-1-9", at);
        check(&place("0-1-5,3-1-9", at), Some(&mark("0-2-4", Some("b.000003:4"))), "0-2-4,3-1-9", Some("b.000003:4"));
        let then = format!("{a}:1-5,{b}:1");
        check(&place(&then, at), Some(&mark(&format!("{a}:1-9"), None)), &format!("{a}:1-9,{b}:1"), at);
        check(&place("", at), Some(&mark("", Some("b.000009:4"))), "", Some("b.000009:4"));
        check(&place("", at), Some(&mark("0-1-3", Some("b.000009:4"))), "0-1-3", Some("b.000009:4"));
    }
}
