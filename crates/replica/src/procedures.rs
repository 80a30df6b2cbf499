//! The stored procedures by which Amazon RDS lets its administrators steer replication, who may not execute the statements. Pure: what the server has in, SQL out.
//!
//! Made from the service's documentation. No procedure stops one thread alone, or holds an applier.

use std::collections::BTreeMap;

use apply::mysql::server::sql::quote;
use binlog::Flavour;

/// Asks for the procedures that the account sees, with the number of their parameters.
pub const QUESTION: &str = "SELECT r.routine_name, COUNT(p.specific_name) FROM information_schema.routines r LEFT JOIN information_schema.parameters p \
     ON p.specific_schema=r.routine_schema AND p.specific_name=r.specific_name \
     WHERE r.routine_schema='mysql' AND r.routine_type='PROCEDURE' AND r.routine_name LIKE 'rds\\_%' GROUP BY r.routine_name";

/// MariaDB 10.5 and later, where the administrator may not execute `SHOW ALL SLAVES STATUS`.
pub const STATUS: &str = "CALL mysql.rds_replica_status";

const STOP: &str = "rds_stop_replication";
const START: &str = "rds_start_replication";
/// By which the service's own read replicas log in to their source.
pub const OWN_ACCOUNT: &str = "rdsrepladmin";

/// MySQL 8.4 and later; before. Behind the TLS flag some versions have the delay.
const BY_GTID_MYSQL: [&str; 2] =
    ["rds_set_external_source_with_auto_position", "rds_set_external_master_with_auto_position"];
const BY_GTID_MARIADB: [&str; 1] = ["rds_set_external_master_gtid"];
const WITH_DELAY: u64 = 6;

/// Those of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Procedures {
    flavour: Flavour,
    set_source: &'static str,
    parameters: u64,
}

/// Where a replica logs in.
#[derive(Clone, Copy, Debug)]
pub struct SourceLogin<'a> {
    pub host: &'a str,
    pub port: u16,
    pub user: &'a str,
    pub password: &'a str,
    pub tls: Encryption,
}

/// Whether the replica uses TLS. It does not verify certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    Off,
    On,
}

impl Procedures {
    /// `None`: the server does not have all that are needed. `seen`: the answer to [`QUESTION`].
    pub fn new(flavour: Flavour, seen: &BTreeMap<String, u64>) -> Option<Self> {
        if !(seen.contains_key(STOP) && seen.contains_key(START)) {
            return None;
        }
        let known: &[&'static str] = match flavour {
            Flavour::MySql => &BY_GTID_MYSQL,
            Flavour::MariaDb => &BY_GTID_MARIADB,
        };
        let set_source = known.iter().find(|name| seen.contains_key(**name))?;
        Some(Self { flavour, set_source, parameters: *seen.get(*set_source)? })
    }

    pub fn stop(&self) -> String {
        format!("CALL mysql.{STOP}")
    }

    pub fn start(&self) -> String {
        format!("CALL mysql.{START}")
    }

    /// The procedure that points a replica to a source.
    pub fn set_source(&self) -> String {
        format!("mysql.{}", self.set_source)
    }

    /// Both threads being stopped: another source, by GTID. What was received and not applied goes. `executed`: what MariaDB goes on behind. Holds the password: not for messages.
    pub fn repoint(&self, login: &SourceLogin<'_>, executed: &str) -> String {
        let mut arguments = vec![quote(login.host), login.port.to_string(), quote(login.user), quote(login.password)];
        if self.flavour == Flavour::MariaDb {
            arguments.push(quote(executed));
        }
        arguments.push(u8::from(login.tls == Encryption::On).to_string());
        if self.flavour == Flavour::MySql && self.parameters >= WITH_DELAY {
            arguments.push("0".to_owned());
        }
        format!("CALL {}({})", self.set_source(), arguments.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MYSQL: &str = "rds_set_external_source_with_auto_position";

    fn seen(procedures: &[(&str, u64)]) -> BTreeMap<String, u64> {
        procedures.iter().map(|(name, parameters)| ((*name).to_owned(), *parameters)).collect()
    }

    #[test]
    fn calls() {
        let check = |flavour, name: &str, parameters, expected: &str| {
            let procedures = Procedures::new(flavour, &seen(&[(STOP, 0), (START, 0), (name, parameters)])).unwrap();
            let login =
                SourceLogin { host: "10.0.0.7", port: 3307, user: "repl", password: "o'k", tls: Encryption::On };
            assert_eq!(procedures.repoint(&login, "0-1-7"), expected);
        };
        check(
            Flavour::MySql,
            MYSQL,
            6,
            "CALL mysql.rds_set_external_source_with_auto_position('10.0.0.7', 3307, 'repl', 'o''k', 1, 0)",
        );
        check(
            Flavour::MySql,
            "rds_set_external_master_with_auto_position",
            5,
            "CALL mysql.rds_set_external_master_with_auto_position('10.0.0.7', 3307, 'repl', 'o''k', 1)",
        );
        check(
            Flavour::MariaDb,
            "rds_set_external_master_gtid",
            6,
            "CALL mysql.rds_set_external_master_gtid('10.0.0.7', 3307, 'repl', 'o''k', '0-1-7', 1)",
        );
    }

    #[test]
    fn servers_without_them() {
        for (flavour, names) in [
            (Flavour::MySql, &[][..]),
            (Flavour::MySql, &[(STOP, 0), (START, 0)]),
            (Flavour::MySql, &[(START, 0), (MYSQL, 6)]),
            (Flavour::MariaDb, &[(STOP, 0), (START, 0), (MYSQL, 6)]),
        ] {
            assert_eq!(Procedures::new(flavour, &seen(names)), None, "{names:?}");
        }
    }
}
