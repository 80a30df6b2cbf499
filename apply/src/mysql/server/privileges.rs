//! What heddle's account may do on the target, and settings that matter, for `--dry-run`.

use binlog::Flavour;
use wire::Connection;

use super::info::TargetInfo;
use super::unsafe_settings;
use crate::checks::Checks;
use crate::mysql::progress::tables::SCHEMA;
use crate::mysql::rows;
use crate::mysql::session::gtids::GtidRules;

const PACKET_BYTES_ENOUGH: usize = 16 << 20;
/// Connections beside the workers': control, statements, catalogue, lost source.
const OTHER_CONNECTIONS: u64 = 4;

pub fn check(info: &TargetInfo, user: &str, gtids: &GtidRules, control: &mut Connection, report: &mut Checks) {
    grants(info, user, control, report);
    match unsafe_settings::read(control, info) {
        Ok(found) => {
            report.problems.extend(found.into_iter().map(|(what, remedy)| format!("target: {what}; {remedy}")));
        }
        Err(failure) => report.problems.push(format!("target: {failure}")),
    }
    settings(info, report);
    if info.flavour == Flavour::MySql && gtids.are_preserved() && !info.gtid_mode {
        report.problems.push("target: --gtids preserve needs gtid_mode=ON".to_owned());
    }
}

fn grants(info: &TargetInfo, user: &str, control: &mut Connection, report: &mut Checks) {
    let rows = match control.rows("SHOW GRANTS") {
        Ok(rows) => rows,
        Err(error) => return report.problems.push(format!("target: SHOW GRANTS: {error}")),
    };
    let grants: Vec<String> = rows.iter().filter_map(|row| row.text(0).ok().flatten().map(str::to_owned)).collect();
    let has = |privilege: &str| {
        grants
            .iter()
            .any(|grant| grant.contains(" ON *.*") && (grant.contains(privilege) || grant.contains("ALL PRIVILEGES")))
    };
    let to_write_rows = rows::privileges(info.flavour);
    if to_write_rows.iter().any(|privilege| has(privilege)) {
        report.ok.push("target: may apply row events".to_owned());
    } else {
        let first = to_write_rows.first().copied().unwrap_or_default();
        report.problems.push(format!("target: GRANT {first} ON *.* TO {user} is missing: rows can not be applied"));
    }
    for privilege in ["CREATE", "ALTER", "DROP", "INDEX", "INSERT", "UPDATE", "DELETE", "SELECT"] {
        if !has(privilege) {
            report.warnings.push(format!(
                "target: no GRANT {privilege} ON *.* TO {user}: needed on {SCHEMA}.* for the progress, and on what the source's \
                 statements touch"
            ));
        }
    }
    // MySQL 8's performance schema needs SELECT only.
    if !info.shows_lock_holders && !has("PROCESS") && !has("SUPER") {
        report.warnings.push(format!(
            "target: GRANT PROCESS ON *.* TO {user} is missing: conflicts between workers last until the lock wait times out"
        ));
    }
}

fn settings(info: &TargetInfo, report: &mut Checks) {
    if info.read_only {
        report
            .warnings
            .push("target: read_only is ON: heddle's account needs the privilege to write all the same".to_owned());
    }
    if info.packet_bytes_max < PACKET_BYTES_ENOUGH {
        report.warnings.push(format!(
            "target: max_allowed_packet is {} bytes: rows of more than 3/4 of it can not be applied",
            info.packet_bytes_max
        ));
    }
    if (report.workers as u64) + OTHER_CONNECTIONS > info.max_connections {
        report.problems.push(format!(
            "target: max_connections is {}, fewer than the {} workers need; raise it or use fewer --workers",
            info.max_connections, report.workers
        ));
    }
}
