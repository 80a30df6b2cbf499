//! What heddle's account may do on the target, and settings that matter: before a run, and for `--dry-run`.

use binlog::Flavour;
use engine::failure::{Failure, FailureKind};
use wire::Connection;

use super::errors::{code, failed};
use super::info::TargetInfo;
use super::unsafe_settings;
use crate::checks::Checks;
use crate::mysql::progress::tables::SCHEMA;
use crate::mysql::rows;
use crate::mysql::session::gtids::GtidRules;

const PACKET_BYTES_ENOUGH: usize = 16 << 20;
/// Connections beside the workers': control, statements, catalogue, lost source.
const OTHER_CONNECTIONS: u64 = 4;

/// What keeps a run from its start: unsafe settings, a target that this account can not write to, GTIDs that it can not take.
pub fn refusals(info: &TargetInfo, gtids: &GtidRules, control: &mut Connection) -> Vec<Failure> {
    let mut refusals = Vec::new();
    match unsafe_settings::read(control, info) {
        Ok(found) => refusals
            .extend(found.into_iter().map(|(what, remedy)| Failure::new(FailureKind::Refused, what).remedy(remedy))),
        Err(failure) => refusals.push(failure),
    }
    refusals.extend(read_only(control));
    if info.flavour == Flavour::MySql && gtids.are_preserved() && !info.gtid_mode {
        refusals.push(
            Failure::new(FailureKind::Refused, "--gtids preserve, and gtid_mode is not ON at the target")
                .remedy("switch gtid_mode on there, or use --gtids local"),
        );
    }
    refusals
}

/// The server itself says whether it lets this account write, before it looks for the table: a statement that changes nothing.
fn read_only(control: &mut Connection) -> Option<Failure> {
    const READ_ONLY: [u16; 4] =
        [code::OPTION_PREVENTS_STATEMENT, code::READ_ONLY_MODE, code::INNODB_READ_ONLY, code::READ_ONLY_TRANSACTION];
    let error = control.execute(format!("DELETE FROM {SCHEMA}.progress WHERE FALSE")).err()?;
    error.code().is_some_and(|number| READ_ONLY.contains(&number)).then(|| failed(error))
}

/// For `--dry-run`, beside [`refusals`].
pub fn check(info: &TargetInfo, user: &str, control: &mut Connection, report: &mut Checks) {
    grants(info, user, control, report);
    settings(info, report);
}

/// What `SHOW GRANTS` says of the account.
struct Grants(Vec<String>);

impl Grants {
    fn on(&self, privilege: &str, object: &str) -> bool {
        self.0
            .iter()
            .any(|grant| grant.contains(object) && (grant.contains(privilege) || grant.contains("ALL PRIVILEGES")))
    }

    fn everywhere(&self, privilege: &str) -> bool {
        self.on(privilege, " ON *.*")
    }

    fn on_own_tables(&self, privilege: &str) -> bool {
        self.everywhere(privilege) || self.on(privilege, &format!(" ON `{SCHEMA}`.*"))
    }

    /// A role may have more than is shown.
    fn has_roles(&self) -> bool {
        self.0.iter().any(|grant| !grant.contains(" ON "))
    }
}

fn grants(info: &TargetInfo, user: &str, control: &mut Connection, report: &mut Checks) {
    let rows = match control.rows("SHOW GRANTS") {
        Ok(rows) => rows,
        Err(error) => return report.problems.push(format!("target: SHOW GRANTS: {error}")),
    };
    let grants = Grants(rows.iter().filter_map(|row| row.text(0).ok().flatten().map(str::to_owned)).collect());
    let to_write_rows = rows::privileges(info.flavour);
    if to_write_rows.iter().any(|privilege| grants.everywhere(privilege)) {
        report.ok.push("target: may apply row events".to_owned());
    } else {
        let first = to_write_rows.first().copied().unwrap_or_default();
        let missing = format!("target: GRANT {first} ON *.* TO {user} is missing: rows can not be applied");
        if grants.has_roles() { report.warnings.push(missing) } else { report.problems.push(missing) }
    }
    own_tables(&grants, user, control, report);
    for privilege in ["CREATE", "ALTER", "DROP", "INDEX", "INSERT", "UPDATE", "DELETE", "SELECT"] {
        if !grants.everywhere(privilege) {
            report.warnings.push(format!(
                "target: no GRANT {privilege} ON *.* TO {user}: DDL and statements of the source that need it stop the channel"
            ));
        }
    }
    // MySQL 8's performance schema needs SELECT only.
    if !info.shows_lock_holders && !grants.everywhere("PROCESS") && !grants.everywhere("SUPER") {
        report.warnings.push(format!(
            "target: GRANT PROCESS ON *.* TO {user} is missing: conflicts between workers last until the lock wait times out"
        ));
    }
}

/// The progress is kept there: without these privileges nothing begins.
fn own_tables(grants: &Grants, user: &str, control: &mut Connection, report: &mut Checks) {
    let are_there = control.scalar(format!("SELECT COUNT(*) FROM {SCHEMA}.stops"));
    let needed: &[&str] = if are_there.is_ok() { &[] } else { &["CREATE"] };
    let missing: Vec<&str> = ["SELECT", "INSERT", "UPDATE", "DELETE"]
        .iter()
        .chain(needed)
        .filter(|privilege| !grants.on_own_tables(privilege))
        .copied()
        .collect();
    if missing.is_empty() {
        return;
    }
    let missing = format!(
        "target: GRANT {} ON {SCHEMA}.* TO {user} is missing: the progress can not be kept",
        missing.join(", ")
    );
    if grants.has_roles() { report.warnings.push(missing) } else { report.problems.push(missing) }
}

fn settings(info: &TargetInfo, report: &mut Checks) {
    if info.read_only {
        report.ok.push("target: read_only is ON, and heddle's account may write all the same".to_owned());
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
