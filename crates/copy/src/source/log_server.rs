//! A server that has the log, where rows are read from another one: its replica, or its source. The two have their GTIDs in common, and no positions.

use std::thread;
use std::time::{Duration, Instant};

use binlog::gtids::{GtidPos, GtidSet, GtidState};
use binlog::{Flavour, LogPosition};
use channel::start::source_state;
use wire::{ConnectOptions, Connection, Error};

const POLL: Duration = Duration::from_millis(20);
/// For so long the log may be behind the rows.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connected while it is asked.
#[derive(Debug)]
pub struct LogServer {
    options: ConnectOptions,
    connection: Option<Connection>,
}

impl LogServer {
    pub fn new(options: ConnectOptions) -> Self {
        Self { options, connection: None }
    }

    /// The end of the log, once it has all of `seen`.
    ///
    /// # Errors
    /// The server's; [`Error::Protocol`]: it has not, after a minute.
    pub fn end_with(&mut self, seen: &GtidState) -> Result<LogPosition, Error> {
        let since = Instant::now();
        loop {
            let executed = self.ask(|connection| {
                let flavour = if connection.server().is_mariadb() { Flavour::MariaDb } else { Flavour::MySql };
                source_state::end(connection, flavour, true).map(|(_, executed)| executed)
            })?;
            if executed.contains_state(seen) {
                // Asked behind it.
                return self.ask(|connection| Ok(wire::source::log_end(connection)?));
            }
            if since.elapsed() > PATIENCE {
                return Err(Error::Protocol(format!(
                    "the server whose rows are read has transactions that the log does not have: {}",
                    missing(seen, &executed)
                )));
            }
            thread::sleep(POLL);
        }
    }

    /// On a connection of before, or on a new one if that is gone.
    fn ask<T>(&mut self, question: impl Fn(&mut Connection) -> anyhow::Result<T>) -> Result<T, Error> {
        if let Some(connection) = &mut self.connection
            && let Ok(answer) = question(connection)
        {
            return Ok(answer);
        }
        let connection = self.connection.insert(Connection::connect(&self.options)?);
        question(connection).map_err(|error| match error.downcast::<Error>() {
            Ok(error) => error,
            Err(other) => Error::Protocol(format!("{other:#}")),
        })
    }
}

fn missing(seen: &GtidState, executed: &GtidState) -> String {
    match (seen, executed) {
        (GtidState::MySql(seen), GtidState::MySql(executed)) => {
            let mut missing = seen.clone();
            missing.subtract(executed);
            missing.to_string()
        }
        _ => format!("{seen}; it has {executed}"),
    }
}

/// What a server has executed at the most when a read begins now or has begun: all that the read sees is in it.
///
/// A transaction of MySQL is owned before it is visible, and until it is in `gtid_executed`. MariaDB logs it before it is visible.
pub fn executed_at_most(connection: &mut Connection) -> Result<GtidState, Error> {
    if connection.server().is_mariadb() {
        let logged = position(connection, "gtid_binlog_pos")?;
        return Ok(position(connection, "gtid_slave_pos")?.then(&logged));
    }
    // In this order.
    let owned = connection.scalar("SELECT @@global.gtid_owned")?.unwrap_or_default();
    let mut set = gtid_executed(connection)?;
    set.add_set(&gtid_set("gtid_owned", &without_owners(&owned))?);
    Ok(GtidState::MySql(set))
}

/// What a server has executed at least: a read that begins from now on sees it.
pub fn executed(connection: &mut Connection) -> Result<GtidState, Error> {
    gtid_executed(connection).map(GtidState::MySql)
}

fn gtid_executed(connection: &mut Connection) -> Result<GtidSet, Error> {
    gtid_set("gtid_executed", &connection.scalar("SELECT @@global.gtid_executed")?.unwrap_or_default())
}

/// Of MariaDB.
pub fn position(connection: &mut Connection, variable: &str) -> Result<GtidState, Error> {
    let text = connection.scalar(format!("SELECT @@global.{variable}"))?.unwrap_or_default();
    let parsed: Result<GtidPos, _> = text.parse();
    parsed.map(GtidState::MariaDb).map_err(|error| Error::Protocol(format!("{variable}: {text:?}: {error}")))
}

fn gtid_set(name: &str, text: &str) -> Result<GtidSet, Error> {
    text.parse().map_err(|error| Error::Protocol(format!("{name}: {error}")))
}

/// `UUID:5#12:6#13` is `UUID:5:6`: behind each number stand the threads that own it.
fn without_owners(owned: &str) -> String {
    let mut text = String::new();
    let mut is_owner = false;
    for character in owned.chars().filter(|character| !character.is_whitespace()) {
        is_owner = character == '#' || is_owner && character.is_ascii_digit();
        if !is_owner {
            text.push(character);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_gtids() {
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        for (owned, set) in [
            (String::new(), String::new()),
            (format!("{uuid}:5#12"), format!("{uuid}:5")),
            (format!("{uuid}:5#12#13:6#14,\n{uuid}:9#1"), format!("{uuid}:5-6:9")),
            (format!("{uuid}:tag:5#12:6#1"), format!("{uuid}:tag:5-6")),
        ] {
            assert_eq!(gtid_set("", &without_owners(&owned)).unwrap().to_string(), set, "{owned}");
        }
    }
}
