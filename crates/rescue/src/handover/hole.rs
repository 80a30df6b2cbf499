//! A hole in the replica's own binary log: what Heddle applied without logging it. A server that reads the log across the hole must stop
//! there, and not go on without these transactions.
//!
//! The mark is a statement that succeeds here and on no other server: it truncates a table that only this server has. It is logged under
//! a GTID that Heddle has applied, so no server gets a GTID that its source has not. It is DDL, which runs alone; not a `DROP TABLE`, which
//! MariaDB's replicas forgive (`slave_ddl_exec_mode=IDEMPOTENT`).

use anyhow::{Context, Result};
use apply::mysql::progress::{HOLE_TABLE as TABLE, SCHEMA};
use binlog::Flavour;
use binlog::LogPosition;
use binlog::gtids::{Gtid, GtidState};
use wire::{ConnectOptions, Connection};

use crate::server;
use crate::state::Place;
use replica::statements::NativeChannel;

/// Up to where Heddle has applied.
#[derive(Clone, Copy, Debug)]
pub struct AppliedEnd<'a> {
    pub gtids: &'a GtidState,
    pub position: Option<&'a LogPosition>,
}

/// What the mark is logged as.
#[derive(Debug, PartialEq, Eq)]
enum Mark {
    /// Nothing is missing in the log, or it has a mark.
    None,
    Anonymous,
    Gtid(Gtid),
}

/// Marks the hole. Twice does no harm.
pub fn mark(
    control: &mut Connection,
    replica: &ConnectOptions,
    native: &NativeChannel,
    gtid_mode: &str,
    place: &Place,
    applied: AppliedEnd<'_>,
) -> Result<()> {
    let executed = server::executed(control, native.flavour, gtid_mode)?;
    let logged = match native.flavour {
        Flavour::MariaDb => control.scalar("SELECT @@global.gtid_binlog_state")?.unwrap_or_default(),
        Flavour::MySql => String::new(),
    };
    let gtid = match choose(place, applied, &executed, &logged) {
        Mark::None => return Ok(()),
        Mark::Anonymous => None,
        Mark::Gtid(gtid) => Some(gtid),
    };
    let mut connection = Connection::connect(replica).context("replica")?;
    let mut execute = |statement: String| {
        connection
            .execute(&statement)
            .map(drop)
            .with_context(|| format!("marking the hole in the binary log: {statement}"))
    };
    execute("SET SESSION sql_log_bin=0".to_owned())?;
    execute(format!("CREATE TABLE IF NOT EXISTS {SCHEMA}.{TABLE} (id INT PRIMARY KEY) ENGINE=InnoDB"))?;
    execute("SET SESSION sql_log_bin=1".to_owned())?;
    match gtid {
        Some(Gtid::MariaDb { domain, server, seq }) => {
            execute(format!("SET SESSION gtid_domain_id={domain}, server_id={server}, gtid_seq_no={seq}"))?;
        }
        Some(gtid) => execute(format!("SET SESSION gtid_next='{gtid}'"))?,
        None => {}
    }
    execute(format!(
        "TRUNCATE TABLE {SCHEMA}.{TABLE} /* heddle rescue applied transactions here that are not in this binary log: load the server that reads this anew */"
    ))?;
    if native.flavour == Flavour::MySql && gtid_mode == "ON" {
        execute("SET SESSION gtid_next='AUTOMATIC'".to_owned())?;
    }
    execute("SET SESSION sql_log_bin=0".to_owned())?;
    execute(format!("DROP TABLE {SCHEMA}.{TABLE}"))?;
    tracing::info!("the replica's binary log says where it lacks what heddle applied ({SCHEMA}.{TABLE})");
    Ok(())
}

/// `executed`: what the server says it has; `logged`: MariaDB's `gtid_binlog_state`.
fn choose(place: &Place, applied: AppliedEnd<'_>, executed: &GtidState, logged: &str) -> Mark {
    match (applied.gtids, executed) {
        (GtidState::MySql(set), GtidState::MySql(executed)) => {
            let mut missing = set.clone();
            missing.subtract(executed);
            let first = missing.iter().find_map(|(uuid, tag, intervals)| {
                let (gno, _) = *intervals.ranges().first()?;
                let tag = (!tag.as_str().is_empty()).then(|| tag.as_str().into());
                Some(Gtid::MySql { uuid: *uuid, tag, gno })
            });
            first.map_or(Mark::None, Mark::Gtid)
        }
        (GtidState::MariaDb(position), GtidState::MariaDb(now)) => {
            let is_logged = |gtid: &str| logged.split(',').any(|one| one.trim() == gtid);
            let mut new = position.iter().filter(|gtid| !now.contains(*gtid) && !is_logged(&gtid.to_string()));
            new.next().map_or(Mark::None, |gtid| Mark::Gtid(gtid.into()))
        }
        _ if applied.position == place.position.as_ref() => Mark::None,
        _ => Mark::Anonymous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use replica::status::Positioning;

    #[test]
    fn the_mark_has_a_gtid_that_was_applied() {
        let check = |applied: (&str, u64), executed: &str, logged: &str, expected: &str| {
            let position = |offset| Some(LogPosition::new("b.000001", offset));
            let place = Place { positioning: Positioning::Gtid, gtids: GtidState::None, position: position(4) };
            let (gtids, end) = (applied.0.parse().unwrap(), position(applied.1));
            let applied = AppliedEnd { gtids: &gtids, position: end.as_ref() };
            let mark = match choose(&place, applied, &executed.parse().unwrap(), logged) {
                Mark::None => "none".to_owned(),
                Mark::Anonymous => "anonymous".to_owned(),
                Mark::Gtid(gtid) => gtid.to_string(),
            };
            assert_eq!(mark, expected, "{applied:?} {executed} {logged}");
        };
        let uuid = "6c27ad86-e5b9-11f1-91a6-02fc00000001";
        check((&format!("{uuid}:1-9"), 9), &format!("{uuid}:1-5"), "", &format!("{uuid}:6"));
        check((&format!("{uuid}:1-9"), 9), &format!("{uuid}:1-9"), "", "none");
        check((&format!("{uuid}:1-5:x:1-3"), 9), &format!("{uuid}:1-5"), "", &format!("{uuid}:x:1"));
        check(("0-1-9,1-1-4", 9), "0-1-5,1-1-4", "0-1-5,1-1-4", "0-1-9");
        check(("0-1-9", 9), "0-1-5", "0-1-5,0-1-9", "none");
        check(("0-1-9", 9), "0-1-9", "0-1-5", "none");
        check(("", 9), "", "", "anonymous");
        check(("", 4), "", "", "none");
    }
}
