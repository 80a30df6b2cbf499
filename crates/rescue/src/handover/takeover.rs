//! From native replication to Heddle: the native applier stopped without gaps, held, and its place noted.
//!
//! Every step may have been taken already by a run that was interrupted: each looks before it does. Never decides whether a replica can
//! be rescued.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use binlog::Flavour;
use binlog::gtids::GtidState;
use wire::Connection;

use crate::server;
use crate::state::{self, Phase, Place, SavedChannel};
use replica::statements::{HOLD_S, NativeChannel};
use replica::status::{Positioning, Receiver, ReplicaStatus};

const POLL: Duration = Duration::from_millis(50);
/// For threads to start; stopping takes as long as the transaction that is under way.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// For what several workers have left open.
const GAPS_TIMEOUT: Duration = Duration::from_secs(3600);

/// What has to be done once the applier stands still and before it is held, which may cost the server its relay logs.
pub type BeforeHold<'a> = dyn FnMut(&mut Connection) -> Result<()> + 'a;

/// Takes the replica from [`Phase::TakingOver`] to [`Phase::Applying`]; returns the place from which Heddle applies.
pub fn take_over(
    connection: &mut Connection,
    native: &NativeChannel,
    saved: &SavedChannel,
    gtid_mode: &str,
    workers: u64,
    before_hold: &mut BeforeHold<'_>,
) -> Result<Place> {
    let status = server::channel(connection, native)?;
    if status.delay_s != HOLD_S {
        match native.flavour {
            Flavour::MySql => {
                stop_mysql(connection, native, &status, workers)?;
                before_hold(connection)?;
                hold_mysql(connection, native)?;
            }
            Flavour::MariaDb => {
                tracing::info!("stopping native replication");
                // The receiver last: with GTIDs the server deletes its relay logs when it is started after both were stopped.
                connection.execute(native.stop_applier()).context("stopping the native applier")?;
                before_hold(connection)?;
                connection.execute(native.stop()).context("stopping native replication")?;
                connection.execute(native.hold(saved.heartbeat())).context("holding the native applier")?;
            }
        }
    }
    connection.execute(native.stop()).context("stopping native replication")?;
    let (place, status) = server::place(connection, native, gtid_mode)?;
    if status.delay_s != HOLD_S || !status.is_stopped() {
        bail!(
            "native replication does not stay stopped (delay {} s, {:?}, applier {}): is something else starting it?",
            status.delay_s,
            status.receiver,
            if status.applier_runs { "running" } else { "stopped" }
        );
    }
    if place.position.is_none() && place.positioning == Positioning::File {
        bail!("the replica has never applied anything and goes by file and position: start replication once");
    }
    state::advance(connection, &native.channel, Phase::TakingOver, Phase::Applying, Some(&place))?;
    Ok(place)
}

fn stop_mysql(connection: &mut Connection, native: &NativeChannel, status: &ReplicaStatus, workers: u64) -> Result<()> {
    tracing::info!("stopping the native applier; a transaction that is under way is finished first");
    connection.execute(native.stop_applier()).context("stopping the native applier")?;
    // With GTIDs the server knows of every transaction whether it is applied.
    if workers > 0 && status.positioning == Positioning::File {
        fill_gaps(connection, native)?;
    }
    Ok(())
}

/// The receiver is left running until the delay is set: then the server keeps its relay logs, for an --abort.
fn hold_mysql(connection: &mut Connection, native: &NativeChannel) -> Result<()> {
    if server::channel(connection, native)?.receiver == Receiver::Stopped {
        connection.execute(native.start_receiver()).context("starting the receiver")?;
        let since = Instant::now();
        while server::channel(connection, native)?.receiver == Receiver::Stopped {
            if since.elapsed() > START_TIMEOUT {
                bail!("the receiver does not start, and without it the server would delete its relay logs now");
            }
            sleep(POLL);
        }
    }
    connection.execute(native.hold(None)).context("holding the native applier").map(|_| ())
}

/// An applier with several workers that did not end in order may have left transactions open before others that are applied.
fn fill_gaps(connection: &mut Connection, native: &NativeChannel) -> Result<()> {
    connection.execute(native.fill_gaps()).context("filling the gaps that the native applier's workers left")?;
    let since = Instant::now();
    loop {
        let status = server::channel(connection, native)?;
        if let Some(error) = status.applier_error {
            bail!(
                "the native applier stopped with error {error} while it filled the gaps between its workers: repair it first"
            );
        }
        // With no gap left it stops at the next event, and there may be none: then it has read all there is.
        if !status.applier_runs || status.applier_waits {
            return connection.execute(native.stop_applier()).context("stopping the native applier").map(|_| ());
        }
        if since.elapsed() > GAPS_TIMEOUT {
            bail!("the native applier has not filled the gaps between its workers in {} s", GAPS_TIMEOUT.as_secs());
        }
        sleep(POLL);
    }
}

/// Before Heddle goes on applying: nothing but Heddle may have applied anything since the place was noted.
pub fn check_held(
    connection: &mut Connection,
    native: &NativeChannel,
    saved: &SavedChannel,
    place: &Place,
    gtid_mode: &str,
) -> Result<()> {
    let status = server::channel(connection, native)?;
    if !status.is_stopped() {
        // The server was restarted, or somebody started it. Being held, it has applied nothing.
        tracing::info!("native replication was started meanwhile (the server restarted?) and is stopped again");
        connection.execute(native.stop()).context("stopping native replication")?;
    }
    let (now, status) = server::place(connection, native, gtid_mode)?;
    let same = match place.positioning {
        // A held applier goes past the end of a log all the same.
        Positioning::File => status.delay_s == HOLD_S || now.position == place.position,
        Positioning::Gtid | Positioning::CurrentPos => {
            same_gtids(&place.gtids, &now.gtids, &own_uuid(connection, native)?)
        }
    };
    if !same || now.positioning != place.positioning {
        bail!(
            "native replication has moved since heddle took over (from {} {} to {} {}): rows may have been applied twice. The \
             replica can not be rescued any more: load it anew from a copy, then DROP DATABASE heddle",
            show(place),
            place.gtids,
            show(&now),
            now.gtids
        );
    }
    if status.delay_s != HOLD_S {
        tracing::warn!("the native applier was released and has applied nothing: holding it again");
        connection.execute(native.hold(saved.heartbeat())).context("holding the native applier")?;
    }
    Ok(())
}

fn show(place: &Place) -> String {
    place.position.as_ref().map_or_else(String::new, ToString::to_string)
}

fn own_uuid(connection: &mut Connection, native: &NativeChannel) -> Result<String> {
    match native.flavour {
        Flavour::MariaDb => Ok(String::new()),
        Flavour::MySql => Ok(connection.scalar("SELECT @@global.server_uuid")?.unwrap_or_default()),
    }
}

/// Whether no transaction was added but the server's own.
fn same_gtids(then: &GtidState, now: &GtidState, own_uuid: &str) -> bool {
    let (GtidState::MySql(then), GtidState::MySql(now)) = (then, now) else { return then == now };
    let mut added = now.clone();
    added.subtract(then);
    now.contains_set(then)
        && added.iter().all(|(uuid, _, _)| hex::encode(uuid) == own_uuid.replace('-', "").to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_moved() {
        let own = "6c27ad86-e5b9-11f1-91a6-02fc00000001";
        let other = "8a258768-e5b8-11f1-9e33-02fc00000001";
        let check = |then: &str, now: &str, expected| {
            let state = |text: &str| text.parse::<GtidState>().unwrap();
            assert_eq!(same_gtids(&state(then), &state(now), own), expected, "{then} {now}");
        };
        check("", "", true);
        check(&format!("{other}:1-5"), &format!("{other}:1-5"), true);
        check(&format!("{other}:1-5"), &format!("{other}:1-5,{own}:1"), true);
        check(&format!("{other}:1-5"), &format!("{other}:1-6"), false);
        check(&format!("{other}:1-5"), &format!("{other}:1-4"), false);
        check("0-1-5", "0-1-5", true);
        check("0-1-5", "0-1-6", false);
    }
}
