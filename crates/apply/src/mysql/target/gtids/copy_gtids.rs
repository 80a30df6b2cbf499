//! The source's GTIDs on a target whose rows came as a copy, in nobody's binary log: the target says that it has executed them.

use std::thread;
use std::time::Duration;

use binlog::Flavour;
use binlog::gtids::GtidState;
use engine::failure::{Failure, FailureKind};
use wire::Connection;

use super::grouping;
use crate::mysql::progress::branches::open_branches;
use crate::mysql::server::errors::failed;
use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::sql::quote;
use crate::mysql::session::grouped_gtids::{AddOutcome, add, without_executed};

/// A session may own one of them in the same moment.
const TRIES_MAX: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// What keeps the target from it; `None`: nothing.
///
/// # Errors
/// It does not answer.
pub fn why_not(connection: &mut Connection) -> Result<Option<String>, Failure> {
    let info = TargetInfo::read(connection)?;
    if let Some(why) = grouping::why_not(&info, connection)? {
        return Ok(Some(why));
    }
    if info.flavour == Flavour::MySql {
        return Ok((!info.gtid_mode).then(|| "the target has gtid_mode=OFF".to_owned()));
    }
    if let Some(replicas) = grouping::replicas(connection)? {
        return Ok(Some(format!(
            "the target sends its binary log to {replicas} (Binlog Dump in its process list), and copied rows are not in it"
        )));
    }
    // It changes nothing, but the server looks whether this account may, and whether its own replication runs.
    match connection.execute("SET GLOBAL gtid_slave_pos=@@GLOBAL.gtid_slave_pos") {
        Ok(_) => Ok(None),
        Err(error) if error.is_connection_lost() => Err(failed(error)),
        Err(error) => Ok(Some(format!(
            "the target does not take a gtid_slave_pos (GRANT REPLICATION SLAVE ADMIN ON *.* to the account; STOP ALL SLAVES): {error}"
        ))),
    }
}

/// The target has executed `gtids` from here on, but for transactions whose XA branches are to be prepared yet. Any number of times.
///
/// # Errors
/// A session holds one of them; the target does not take them.
pub fn take(connection: &mut Connection, channel: &str, gtids: &GtidState) -> Result<(), Failure> {
    match gtids {
        GtidState::None => Ok(()),
        GtidState::MySql(set) => add_to_purged(connection, channel, &set.to_string()),
        GtidState::MariaDb(_) => {
            let text = connection.scalar("SELECT @@GLOBAL.gtid_slave_pos").map_err(failed)?.unwrap_or_default();
            let before: GtidState = if text.is_empty() {
                GtidState::None
            } else {
                text.parse().map_err(|error| {
                    Failure::new(FailureKind::Refused, format!("the target's gtid_slave_pos {text:?}: {error}"))
                })?
            };
            let all = before.then(gtids);
            if all == before {
                return Ok(());
            }
            connection
                .execute(format!("SET GLOBAL gtid_slave_pos={}", quote(&all.to_string())))
                .map(|_| tracing::info!("the target's gtid_slave_pos is {all}: the place of the copy"))
                .map_err(failed)
        }
    }
}

fn add_to_purged(connection: &mut Connection, channel: &str, set: &str) -> Result<(), Failure> {
    let open = open_branches::read(connection, channel)?;
    let unprepared = open.into_iter().filter(|branch| !branch.is_prepared()).filter_map(|branch| branch.gtid);
    let open = unprepared.map(|gtid| gtid.to_string()).collect::<Vec<_>>().join(",");
    let closed = connection.scalar(format!("SELECT GTID_SUBTRACT({},{})", quote(set), quote(&open)));
    let closed = closed.map_err(failed)?.unwrap_or_default().replace('\n', "");
    let mut tries = 1;
    loop {
        let missing = without_executed(connection, &closed)?;
        if missing.is_empty() {
            return Ok(());
        }
        match add(connection, &missing)? {
            AddOutcome::All => {
                tracing::info!("the target's gtid_purged has the GTIDs of the copied rows: {missing}");
                return Ok(());
            }
            AddOutcome::Nothing(why) if tries == TRIES_MAX => {
                let message = format!("{why} (to be added: {missing})");
                return Err(Failure::new(FailureKind::Conflict, message)
                    .remedy("a session of the target's holds one of these GTIDs: SELECT @@global.gtid_owned names its number; end it"));
            }
            AddOutcome::Nothing(_) => tries += 1,
        }
        thread::sleep(PAUSE);
    }
}
