//! How replication is started, stopped and pointed elsewhere: by the server's statements, or by the procedures of a service that grants no right to execute them.
//!
//! It never decides when.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use binlog::Flavour;
use wire::Connection;

use crate::server::{self, Server};
use replica::procedures::{self, Procedures};
use replica::statements::NativeChannel;

/// A procedure can return before the threads have stopped.
const STOP_TIMEOUT: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steering {
    Statements,
    Procedures(Procedures),
}

/// With one of these an account may execute the statements.
const STEERS: [&str; 5] =
    ["ALL PRIVILEGES", "SUPER", "REPLICATION_SLAVE_ADMIN", "REPLICATION SLAVE ADMIN", "REPLICATION REPLICA ADMIN"];

/// Whether grants (`SHOW GRANTS`) have one of these privileges everywhere.
pub fn has_one_of(grants: &[String], privileges: &[&str]) -> bool {
    let everywhere = grants.iter().filter_map(|grant| grant.split_once(" ON *.*").map(|(what, _)| what));
    everywhere
        .flat_map(|what| what.trim_start_matches("GRANT ").split(','))
        .any(|one| privileges.contains(&one.trim()) || one.trim() == "ALL PRIVILEGES")
}

/// What the account may, in the server's words.
pub fn grants(connection: &mut Connection) -> Result<Vec<String>> {
    let grants = connection.rows("SHOW GRANTS").context("SHOW GRANTS")?;
    Ok(grants.iter().filter_map(|row| row.text(0).ok().flatten().map(str::to_owned)).collect())
}

impl Steering {
    /// By procedures only where there is no other way.
    pub fn read(connection: &mut Connection, server: &Server) -> Result<Self> {
        if has_one_of(&grants(connection)?, &STEERS) {
            return Ok(Self::Statements);
        }
        let mut seen = BTreeMap::new();
        for row in connection.rows(procedures::QUESTION).context("the stored procedures of the schema mysql")? {
            seen.insert(row.required_text(0)?.to_ascii_lowercase(), row.required(1)?);
        }
        Ok(Procedures::new(server.flavour(), &seen).map_or(Self::Statements, Self::Procedures))
    }

    /// Both threads have stopped when it returns.
    pub fn stop(&self, connection: &mut Connection, native: &NativeChannel) -> Result<()> {
        let statement = match self {
            Self::Statements => native.stop(),
            Self::Procedures(procedures) => procedures.stop(),
        };
        connection.execute(&statement).context("stopping native replication")?;
        if *self == Self::Statements {
            return Ok(());
        }
        let since = Instant::now();
        while !server::channel(connection, native)?.is_stopped() {
            if since.elapsed() > STOP_TIMEOUT {
                bail!("{statement} was executed, and native replication still runs after {} s", STOP_TIMEOUT.as_secs());
            }
            sleep(POLL);
        }
        Ok(())
    }

    pub fn start(&self, connection: &mut Connection, native: &NativeChannel) -> Result<()> {
        let statement = match self {
            Self::Statements => native.start(),
            Self::Procedures(procedures) => procedures.start(),
        };
        connection.execute(statement).context("starting native replication").map(drop)
    }

    /// No procedure stops the receiver alone: there the applier stops, too.
    pub fn stop_receiver(&self, connection: &mut Connection, native: &NativeChannel) -> Result<()> {
        match self {
            Self::Statements => connection.execute(native.stop_receiver()).context("stopping the receiver").map(drop),
            Self::Procedures(_) => self.stop(connection, native),
        }
    }

    pub fn start_receiver(&self, connection: &mut Connection, native: &NativeChannel) -> Result<()> {
        match self {
            Self::Statements => connection.execute(native.start_receiver()).context("starting the receiver").map(drop),
            Self::Procedures(_) => self.start(connection, native),
        }
    }

    /// For the log.
    pub fn describe(&self, flavour: Flavour) -> Option<String> {
        let Self::Procedures(procedures) = self else { return None };
        let statement = if flavour == Flavour::MariaDb {
            "STOP SLAVE, CHANGE MASTER TO"
        } else {
            "STOP REPLICA, CHANGE REPLICATION SOURCE TO"
        };
        Some(format!(
            "the account may not execute {statement}: heddle calls the service's procedures (mysql.rds_stop_replication, mysql.rds_start_replication, {})",
            procedures.set_source()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_execute_statements() {
        let check = |grant: &str, expected| assert_eq!(has_one_of(&[grant.to_owned()], &STEERS), expected, "{grant}");
        check("GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `a`@`%`", false);
        check("GRANT REPLICATION_SLAVE_ADMIN ON *.* TO `a`@`%`", true);
        check("GRANT REPLICATION SLAVE ADMIN ON *.* TO `a`@`%`", true);
        check("GRANT ALL PRIVILEGES ON *.* TO `a`@`%` WITH GRANT OPTION", true);
        check("GRANT ALL PRIVILEGES ON `mysql`.* TO `a`@`%`", false);
    }
}
