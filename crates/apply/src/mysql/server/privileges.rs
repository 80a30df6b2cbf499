//! What heddle's account may do on the target, and settings that matter: before a run, and for `--dry-run`.

use binlog::Flavour;
use engine::failure::{Failure, FailureKind};
use wire::Connection;

use super::bookkeeping::SCHEMA;
use super::errors::{code, failed};
use super::gtids::GtidRules;
use super::info::TargetInfo;
use super::privilege_probe::{Lack, Scope};
use super::unsafe_settings;
use crate::checks::Checks;

const PACKET_BYTES_ENOUGH: usize = 16 << 20;
/// Connections beside the workers': control, statements, catalogue, lost source.
const OTHER_CONNECTIONS: u64 = 4;

/// What the target's clients see of Heddle's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsWritten {
    AsEvents,
    AsStatements,
}

/// What keeps a run from its start: unsafe settings, a target that this account can not write to, GTIDs that it can not take.
pub fn refusals(info: &TargetInfo, gtids: &GtidRules, written: RowsWritten, control: &mut Connection) -> Vec<Failure> {
    let mut refusals = Vec::new();
    // They are of row events.
    let unsafe_settings = match written {
        RowsWritten::AsEvents => unsafe_settings::read(control, info),
        RowsWritten::AsStatements => Ok(Vec::new()),
    };
    match unsafe_settings {
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

/// Lets an account of MySQL 8 and later apply rows of any table.
pub const BINLOG_ADMIN: &str = "BINLOG_ADMIN";
/// Lets it apply rows of the tables on which it has privileges of its own.
const REPLICATION_APPLIER: &str = "REPLICATION_APPLIER";
const ROW_CHANGES: [&str; 3] = ["INSERT", "UPDATE", "DELETE"];

/// For `--dry-run`, beside [`refusals`]. `lacks`: what these say already.
pub fn check(
    info: &TargetInfo,
    user: &str,
    written: RowsWritten,
    control: &mut Connection,
    lacks: &[Lack],
    report: &mut Checks,
) {
    if written == RowsWritten::AsEvents && lacks.iter().all(|lack| lack.scope != Scope::Everything) {
        report.ok.push("target: may apply row events".to_owned());
    }
    match Grants::read(control) {
        Ok(grants) => grants.warn(info, user, report),
        Err(error) => report.warnings.push(format!("target: SHOW GRANTS: {error}")),
    }
    settings(info, report);
}

/// What `SHOW GRANTS` says of the account. A role may have more.
pub struct Grants(Vec<String>);

impl Grants {
    pub fn read(control: &mut Connection) -> Result<Self, wire::Error> {
        let rows = control.rows("SHOW GRANTS")?;
        Ok(Self(rows.iter().filter_map(|row| row.text(0).ok().flatten().map(str::to_owned)).collect()))
    }

    /// Whether it has the privilege on `*.*`, by itself and not through a role.
    pub fn everywhere(&self, privilege: &str) -> bool {
        self.0
            .iter()
            .any(|grant| grant.contains(" ON *.*") && (grant.contains(privilege) || grant.contains("ALL PRIVILEGES")))
    }

    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// A role may have more than is shown.
    pub fn has_roles(&self) -> bool {
        self.0.iter().any(|grant| !grant.contains(" ON "))
    }

    /// Whether the server compares each row with the account's own privileges on the table.
    fn are_asked_for_rows(&self) -> bool {
        self.everywhere(REPLICATION_APPLIER)
            && !self.everywhere(BINLOG_ADMIN)
            && !self.everywhere("SUPER")
            && !self.has_roles()
    }

    /// The same, and there is no table whose rows it may change, but heddle's own. The server says no more than `Unknown error` then.
    pub fn lets_no_row_in(&self) -> bool {
        let is_granted = |privilege: &str| {
            self.0.iter().any(|grant| {
                !grant.contains(&format!(" ON `{SCHEMA}`."))
                    && (grant.contains(privilege) || grant.contains("ALL PRIVILEGES"))
            })
        };
        self.are_asked_for_rows() && ROW_CHANGES.iter().any(|privilege| !is_granted(privilege))
    }

    fn warn(&self, info: &TargetInfo, user: &str, report: &mut Checks) {
        let is_missing = |privilege: &&str| !self.everywhere(privilege);
        if self.are_asked_for_rows() && ROW_CHANGES.iter().any(is_missing) {
            report.warnings.push(format!(
                "target: the account has {REPLICATION_APPLIER}, and not {BINLOG_ADMIN}: rows of a table on which it lacks {} stop the channel (1105); \
                 GRANT {BINLOG_ADMIN} ON *.* TO {user} needs none of them",
                ROW_CHANGES.join(", ")
            ));
        }
        let missing: Vec<&str> = ["CREATE", "ALTER", "DROP", "INDEX", "INSERT", "UPDATE", "DELETE", "SELECT"]
            .into_iter()
            .filter(is_missing)
            .collect();
        if !missing.is_empty() {
            report.warnings.push(format!(
                "target: no GRANT {} ON *.* TO {user}: DDL and statements of the source that need it stop the channel",
                missing.join(", ")
            ));
        }
        // MySQL 8's performance schema needs SELECT only.
        if !info.shows_lock_holders && !self.everywhere("PROCESS") && !self.everywhere("SUPER") {
            report.warnings.push(format!(
                "target: GRANT PROCESS ON *.* TO {user} is missing: conflicts between workers last until the lock wait times out"
            ));
        }
    }
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
