//! The source's GTIDs on a target whose rows came as a copy, in nobody's binary log: the target says that it has executed them.

use binlog::Flavour;
use binlog::gtids::{Gtid, GtidSet, GtidState};
use engine::failure::Failure;
use wire::Connection;

use super::grouping;
use crate::mysql::progress::branches::open_branches;
use crate::mysql::progress::executed_gtids;
use crate::mysql::server::errors::failed;
use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::sql::quote;
use crate::mysql::session::grouped_gtids::{add_all, without_executed};

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
        GtidState::MySql(set) => add_to_purged(connection, channel, set),
        GtidState::MariaDb(_) => {
            let before = executed_gtids::parse(connection.scalar("SELECT @@GLOBAL.gtid_slave_pos").map_err(failed)?)?;
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

fn add_to_purged(connection: &mut Connection, channel: &str, set: &GtidSet) -> Result<(), Failure> {
    let mut set = set.clone();
    for branch in open_branches::read(connection, channel)?.iter().filter(|branch| !branch.is_prepared()) {
        if let Some(Gtid::MySql { uuid, tag, gno }) = &branch.gtid {
            let mut one = GtidSet::default();
            one.add(uuid, tag.as_deref().unwrap_or_default(), *gno);
            set.subtract(&one);
        }
    }
    let set = set.to_string();
    let added = add_all(connection, &|connection| without_executed(connection, &set))?;
    if !added.is_empty() {
        tracing::info!("the target's gtid_purged has the GTIDs of the copied rows: {added}");
    }
    Ok(())
}
