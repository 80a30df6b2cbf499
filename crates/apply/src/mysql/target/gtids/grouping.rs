//! Whether a target can take groups of transactions under the source's GTIDs, and if not, why. Only asks.

use binlog::Flavour;
use engine::failure::Failure;
use wire::Connection;

use crate::mysql::server::errors::{code, failed};
use crate::mysql::server::info::TargetInfo;

/// The first version whose `gtid_purged` grows while GTIDs are executed.
const SINCE: (u16, u16, u16) = (8, 0, 0);

/// `None`: it can.
pub fn why_not(info: &TargetInfo, control: &mut Connection) -> Result<Option<String>, Failure> {
    // Its position is one GTID for each domain: a group's last says all.
    if info.flavour == Flavour::MariaDb {
        return Ok(None);
    }
    if info.version < SINCE {
        return Ok(Some(format!(
            "MySQL {} cannot add GTIDs to gtid_purged while it runs, MySQL 8.0 can",
            info.version_text
        )));
    }
    if !info.gtid_mode {
        // Refused elsewhere.
        return Ok(None);
    }
    if let Some(replicas) = replicas(control)? {
        return Ok(Some(format!(
            "the target sends its binary log to {replicas} (Binlog Dump in its process list), which would never get the GTIDs that are added"
        )));
    }
    // It adds nothing, but the server looks whether this account may, and whether group replication runs.
    match control.execute("SET GLOBAL gtid_purged='+'") {
        Ok(_) => Ok(None),
        Err(error) if error.is_connection_lost() => Err(failed(error)),
        Err(error) if error.code() == Some(code::SPECIFIC_ACCESS_DENIED) => Ok(Some(
            "the account may not set gtid_purged (GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO it on the target)".to_owned(),
        )),
        Err(error) => Ok(Some(format!("the target does not take additions to gtid_purged: {error}"))),
    }
}

/// Who reads the target's binary log now, as far as the account may see it.
pub fn replicas(control: &mut Connection) -> Result<Option<String>, Failure> {
    let rows = match control.rows("SHOW PROCESSLIST") {
        Err(error) if error.is_connection_lost() => return Err(failed(error)),
        Err(_) => return Ok(None),
        Ok(rows) => rows,
    };
    let mut hosts = Vec::new();
    for row in &rows {
        if row.text(4).map_err(failed)?.is_some_and(|command| command.starts_with("Binlog Dump")) {
            hosts.push(row.text(2).map_err(failed)?.unwrap_or_default().to_owned());
        }
    }
    Ok((!hosts.is_empty()).then(|| hosts.join(", ")))
}
