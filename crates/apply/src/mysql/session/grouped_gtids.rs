//! Source GTIDs that target transactions of several source transactions stand for (MySQL).
//!
//! Such a target transaction commits under the GTID of its last source transaction, with the progress, which names them all. The others' GTIDs are
//! added to `gtid_purged` right after. What a crash leaves out is the recorded progress without the GTIDs that the target says it has. This never
//! adds what the channel had not applied in this way: `heddle.kept_gtids` has what the progress named before.

use engine::failure::{Failure, FailureKind};
use wire::Connection;

use crate::mysql::progress::branches::open_branches;
use crate::mysql::progress::tables::{KEPT_GTIDS, SCHEMA};
use crate::mysql::server::errors::{code, failed, if_there};
use crate::mysql::server::sql::quote;

/// Another connection may own, or add, some of them in the same moment.
const TRIES_MAX: u32 = 200;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

/// Which channels apply in this way, and since when. A row is never logged: the target's own replicas have no part in it.
pub fn create_table() -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {SCHEMA}.{KEPT_GTIDS} (\
         channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, \
         since LONGTEXT CHARACTER SET ascii NOT NULL\
         ) ENGINE=InnoDB"
    )
}

/// From now on: what the progress names by now is not the channel's to add. A channel that applies in this way already keeps what it had.
pub fn begin(channel: &str) -> String {
    let channel = quote(channel);
    format!(
        "INSERT IGNORE INTO {SCHEMA}.{KEPT_GTIDS} (channel,since) SELECT channel,gtids FROM {SCHEMA}.progress WHERE channel={channel}"
    )
}

/// The channel's progress was set to its start.
pub fn begin_anew(channel: &str) -> String {
    let channel = quote(channel);
    format!(
        "UPDATE {SCHEMA}.{KEPT_GTIDS} SET since=(SELECT gtids FROM {SCHEMA}.progress WHERE channel={channel}) WHERE channel={channel}"
    )
}

/// The channel goes on in another way. All must be added.
pub fn end(channel: &str) -> String {
    format!("DELETE FROM {SCHEMA}.{KEPT_GTIDS} WHERE channel={}", quote(channel))
}

/// Whether the channel applies in this way, or has done so last.
pub fn is_kept(connection: &mut Connection, channel: &str) -> Result<bool, Failure> {
    let channel = quote(channel);
    let count = connection.scalar(format!("SELECT COUNT(*) FROM {SCHEMA}.{KEPT_GTIDS} WHERE channel={channel}"));
    Ok(if_there(count)?.flatten().as_deref() == Some("1"))
}

/// What is applied and not in the target's set of executed GTIDs. Without transactions whose XA branches are open: these are not prepared.
pub fn missing(connection: &mut Connection, channel: &str) -> Result<String, Failure> {
    let row = connection.row(format!(
        "SELECT p.seq,GTID_SUBTRACT(p.gtids,k.since) FROM {SCHEMA}.progress p \
         JOIN {SCHEMA}.{KEPT_GTIDS} k ON k.channel=p.channel WHERE p.channel={}",
        quote(channel)
    ));
    let Some(row) = if_there(row)?.flatten() else { return Ok(String::new()) };
    let applied = without_breaks(row.text(1).map_err(failed)?.map(str::to_owned));
    let open = open_branches::gtids(connection, channel, row.required(0).map_err(failed)?)?;
    let applied = connection.scalar(format!("SELECT GTID_SUBTRACT({},{})", quote(&applied), quote(&open)));
    without_executed(connection, &without_breaks(applied.map_err(failed)?))
}

/// Of the transactions before the channel's start, those that the target does not say it has executed. It may have their rows: nobody knows.
pub fn not_executed_before(connection: &mut Connection, channel: &str) -> Result<String, Failure> {
    let text = connection.scalar(format!(
        "SELECT GTID_SUBTRACT(since,@@global.gtid_executed) FROM {SCHEMA}.{KEPT_GTIDS} WHERE channel={}",
        quote(channel)
    ));
    Ok(without_breaks(text.map_err(failed)?))
}

/// Adds all that is missing; returns what was added.
pub fn add_missing(connection: &mut Connection, channel: &str) -> Result<String, Failure> {
    add_all(connection, &|connection| missing(connection, channel))
}

/// Adds what `missing` finds, which is asked again when others add some of it, or own it; returns what was added.
pub fn add_all(
    connection: &mut Connection,
    missing: &dyn Fn(&mut Connection) -> Result<String, Failure>,
) -> Result<String, Failure> {
    let mut tries = 1;
    loop {
        let missing = missing(connection)?;
        if missing.is_empty() {
            return Ok(missing);
        }
        match add(connection, &missing)? {
            AddOutcome::All => return Ok(missing),
            AddOutcome::Nothing(why) if tries == TRIES_MAX => {
                let message = format!("{why} (to be added: {missing})");
                return Err(Failure::new(FailureKind::Conflict, message)
                    .remedy("a session of the target's holds one of these GTIDs: SELECT @@global.gtid_owned names its number; end it"));
            }
            AddOutcome::Nothing(_) => tries += 1,
        }
        std::thread::sleep(PAUSE);
    }
}

/// Those of the set that the target does not have.
pub fn without_executed(connection: &mut Connection, set: &str) -> Result<String, Failure> {
    let sql = format!("SELECT GTID_SUBTRACT({},@@global.gtid_executed)", quote(set));
    Ok(without_breaks(connection.scalar(sql).map_err(failed)?))
}

pub enum AddOutcome {
    All,
    /// Some are executed already, or a session owns them now.
    Nothing(String),
}

/// A set that is not empty. Nothing of it is logged, no log is rotated; other sessions need not stop.
pub fn add(connection: &mut Connection, set: &str) -> Result<AddOutcome, Failure> {
    match connection.execute(format!("SET GLOBAL gtid_purged={}", quote(&format!("+{set}")))) {
        Ok(_) => Ok(AddOutcome::All),
        Err(error) if error.code() == Some(code::GTIDS_OVERLAP) => Ok(AddOutcome::Nothing(error.to_string())),
        Err(error) => Err(failed(error)),
    }
}

/// Servers break the text of long sets into lines.
fn without_breaks(set: Option<String>) -> String {
    set.unwrap_or_default().replace('\n', "")
}
