//! Unsafe settings of a server's own replication. What Heddle writes obeys them, too, and they would hide a divergence or do a change twice.
//!
//! Which settings do was seen on servers: `slave_skip_errors` and lossy conversions in both flavours, `slave_exec_mode` and
//! `slave_run_triggers_for_rbr` in MariaDB. MySQL from 5.7 on has the mode of `BINLOG` statements in the session, strict by default.

use binlog::Flavour;
use engine::failure::{Failure, FailureKind};
use wire::Connection;

use crate::mysql::server::errors::failed;
use crate::mysql::server::info::TargetInfo;

/// Names of later servers, and of earlier ones and MariaDB.
const SKIP_ERRORS: [&str; 2] = ["replica_skip_errors", "slave_skip_errors"];
const CONVERSIONS: [&str; 2] = ["replica_type_conversions", "slave_type_conversions"];
const EXEC_MODE: [&str; 2] = ["replica_exec_mode", "slave_exec_mode"];
const TRIGGERS: [&str; 2] = ["slave_run_triggers_for_rbr", "slave_run_triggers_for_rbr"];

/// Each unsafe setting, and how to end it. `value` returns a global variable's value, if the server has the variable.
pub fn settings(
    flavour: Flavour,
    version: (u16, u16, u16),
    value: &dyn Fn(&str) -> Option<String>,
) -> Vec<(String, String)> {
    let first = |names: [&'static str; 2]| names.into_iter().find_map(|name| Some((name, value(name)?)));
    let mut found = Vec::new();
    if let Some((name, errors)) = first(SKIP_ERRORS)
        && !matches!(errors.as_str(), "" | "OFF")
    {
        found.push((
            format!("{name} is {errors}: the target would skip rows that are missing or already there"),
            format!("take {name} out of the target's configuration and restart it"),
        ));
    }
    if let Some((name, conversions)) = first(CONVERSIONS)
        && conversions.split(',').any(|one| one == "ALL_LOSSY")
    {
        found.push((
            format!("{name} is {conversions}: the target would cut values that do not fit into its columns"),
            format!("SET GLOBAL {name}='' (or 'ALL_NON_LOSSY') on the target"),
        ));
    }
    let mode_is_global = flavour == Flavour::MariaDb || version < (5, 7, 0);
    if let Some((name, mode)) = first(EXEC_MODE)
        && mode_is_global
        && mode != "STRICT"
    {
        found.push((
            format!("{name} is {mode}: the target would overwrite rows that are already there, and skip those that are missing"),
            format!("SET GLOBAL {name}=STRICT on the target"),
        ));
    }
    if let Some((name, run)) = first(TRIGGERS)
        && run != "NO"
    {
        found.push((
            format!("{name} is {run}: the target would run triggers, whose changes are in the source's log already"),
            format!("SET GLOBAL {name}=NO on the target"),
        ));
    }
    found
}

/// Reads them from the target.
pub fn read(connection: &mut Connection, info: &TargetInfo) -> Result<Vec<(String, String)>, Failure> {
    let names: Vec<String> =
        [SKIP_ERRORS, CONVERSIONS, EXEC_MODE, TRIGGERS].iter().flatten().map(|name| format!("'{name}'")).collect();
    let rows = connection
        .rows(format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})", names.join(",")))
        .map_err(failed)?;
    let value = |name: &str| {
        let row = rows.iter().find(|row| row.text(0).ok().flatten() == Some(name))?;
        Some(row.text(1).ok().flatten().unwrap_or_default().to_owned())
    };
    Ok(settings(info.flavour, info.version, &value))
}

/// Refuses a target that would not be strict.
pub fn refuse(connection: &mut Connection, info: &TargetInfo) -> Result<(), Failure> {
    match read(connection, info)?.into_iter().next() {
        Some((what, remedy)) => Err(Failure::new(FailureKind::Refused, what).remedy(remedy)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused() {
        let check = |flavour, version, set: &[(&str, &str)], expected: &[&str]| {
            let value = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            let found: Vec<String> = settings(flavour, version, &value).into_iter().map(|(what, _)| what).collect();
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.starts_with(expected), "{found}");
            }
        };
        let (mysql, mariadb) = (Flavour::MySql, Flavour::MariaDb);
        let defaults = [
            ("slave_skip_errors", "OFF"),
            ("slave_type_conversions", ""),
            ("slave_exec_mode", "STRICT"),
            ("slave_run_triggers_for_rbr", "NO"),
        ];
        check(mariadb, (10, 11, 0), &defaults, &[]);
        check(mysql, (9, 7, 0), &[("replica_exec_mode", "IDEMPOTENT")], &[]);
        check(mysql, (5, 6, 14), &[("slave_exec_mode", "IDEMPOTENT")], &["slave_exec_mode is IDEMPOTENT"]);
        check(mariadb, (10, 11, 0), &[("slave_exec_mode", "IDEMPOTENT")], &["slave_exec_mode is IDEMPOTENT"]);
        check(mysql, (9, 7, 0), &[("replica_skip_errors", "1032")], &["replica_skip_errors is 1032"]);
        check(mysql, (8, 0, 15), &[("slave_type_conversions", "ALL_NON_LOSSY")], &[]);
        check(
            mysql,
            (8, 0, 15),
            &[("slave_type_conversions", "ALL_LOSSY,ALL_NON_LOSSY"), ("slave_skip_errors", "all")],
            &["slave_skip_errors is all", "slave_type_conversions is ALL_LOSSY"],
        );
        check(mariadb, (10, 2, 0), &[("slave_run_triggers_for_rbr", "LOGGING")], &["slave_run_triggers_for_rbr is"]);
    }
}
