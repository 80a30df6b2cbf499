//! What a target's account may do, and settings that matter, for `--dry-run`.

use binlog::Flavour;
use wire::Connection;

use crate::checks::Checks;
use crate::mysql::Shared;
use crate::mysql::progress::statements::SCHEMA;
use crate::mysql::server::unsafe_settings;

/// Any one of these lets an account execute `BINLOG` statements.
fn binlog_privileges(flavour: Flavour) -> [&'static str; 3] {
    match flavour {
        Flavour::MySql => ["BINLOG_ADMIN", "REPLICATION_APPLIER", "SUPER"],
        Flavour::MariaDb => ["BINLOG REPLAY", "SUPER", "SUPER"],
    }
}

pub fn target(shared: &Shared, control: &mut Connection, report: &mut Checks) {
    let info = &shared.info;
    let user = &shared.options.user;
    match control.rows("SHOW GRANTS") {
        Ok(rows) => {
            let grants: Vec<String> =
                rows.iter().filter_map(|row| row.text(0).ok().flatten().map(str::to_owned)).collect();
            let has = |privilege: &str| {
                grants.iter().any(|grant| {
                    grant.contains(" ON *.*") && (grant.contains(privilege) || grant.contains("ALL PRIVILEGES"))
                })
            };
            let apply = binlog_privileges(info.flavour);
            if apply.iter().any(|privilege| has(privilege)) {
                report.ok.push("target: may apply row events".to_owned());
            } else {
                report
                    .problems
                    .push(format!("target: GRANT {} ON *.* TO {user} is missing: rows can not be applied", apply[0]));
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
        Err(error) => report.problems.push(format!("target: SHOW GRANTS: {error}")),
    }
    match unsafe_settings::read(control, info) {
        Ok(found) => {
            report.problems.extend(found.into_iter().map(|(what, remedy)| format!("target: {what}; {remedy}")))
        }
        Err(failure) => report.problems.push(format!("target: {failure}")),
    }
    if info.read_only {
        report
            .warnings
            .push("target: read_only is ON: heddle's account needs the privilege to write all the same".to_owned());
    }
    if info.packet_bytes_max < 16 << 20 {
        report.warnings.push(format!(
            "target: max_allowed_packet is {} bytes: rows of more than 3/4 of it can not be applied",
            info.packet_bytes_max
        ));
    }
    if (report.workers as u64) + 4 > info.max_connections {
        report.problems.push(format!(
            "target: max_connections is {}, fewer than the {} workers need; raise it or use fewer --workers",
            info.max_connections, report.workers
        ));
    }
    if info.flavour == Flavour::MySql && shared.preserve_gtids && !info.gtid_mode {
        report.problems.push("target: --gtids preserve needs gtid_mode=ON".to_owned());
    }
}
