//! Where a server's log is, and the command of a channel that begins there. Starts none.

use anyhow::{Context, Result, bail};
use apply::CHANNEL_BYTES_MAX;
use apply::mysql::server::errors::is_privilege;
use binlog::LogPosition;
use output::shell::shell_quoted;
use serde::{Deserialize, Serialize};
use wire::{Connection, source};

use crate::request::ReturnCommand;

/// The end of a server's own log: everything it has is before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coordinates {
    /// MySQL: `gtid_executed`; MariaDB: `gtid_binlog_pos`. Empty: none.
    pub gtids: String,
    /// `FILE:POS`. `None`: the account may not ask.
    pub position: Option<String>,
}

/// A log that is not written to stands still at the first look.
const LOOKS_MAX: usize = 50;

impl Coordinates {
    /// `None`: the server has no binary log.
    pub fn read(connection: &mut Connection) -> Result<Option<Self>> {
        if connection.scalar("SELECT @@global.log_bin")?.as_deref() != Some("1") {
            return Ok(None);
        }
        let mut before = Self::read_once(connection)?;
        for _ in 0..LOOKS_MAX {
            let now = Self::read_once(connection)?;
            if now == before {
                return Ok(Some(now));
            }
            before = now;
        }
        bail!(
            "the target's log does not stand still: an application writes to it already, so no place is the end of the source's changes"
        )
    }

    fn read_once(connection: &mut Connection) -> Result<Self> {
        let gtids = if connection.server().is_mariadb() {
            connection.scalar("SELECT @@global.gtid_binlog_pos")?
        } else if connection.scalar("SELECT @@global.gtid_mode").ok().flatten().as_deref() == Some("ON") {
            connection.scalar("SELECT @@global.gtid_executed")?
        } else {
            None
        };
        let position: Option<LogPosition> = match source::log_end(connection) {
            Ok(position) => Some(position),
            Err(error) if error.code().is_some_and(is_privilege) => None,
            Err(error) => return Err(error).context("where the target's log ends"),
        };
        let position = position.map(|position| position.to_string());
        Ok(Self { gtids: gtids.unwrap_or_default().replace(['\n', ' '], ""), position })
    }

    /// By GTID where there is one: such a channel follows a fail-over. `None`: nothing is known of the log.
    fn start(&self) -> Option<[&str; 2]> {
        match (self.gtids.as_str(), &self.position) {
            ("", Some(position)) => Some(["--start", position]),
            ("", None) => None,
            (gtids, _) => Some(["--start-gtid", gtids]),
        }
    }

    /// A write to the server makes another one of it.
    pub fn is_known(&self) -> bool {
        self.start().is_some()
    }

    pub fn describe(&self) -> String {
        let position = self.position.as_deref().unwrap_or("the account may not ask for the position");
        if self.gtids.is_empty() { position.to_owned() } else { format!("{position}, GTIDs {}", self.gtids) }
    }
}

/// The channel from the target back to the source.
pub fn return_channel(channel: &str) -> String {
    const BEHIND: &str = "-back";
    if channel.len() + BEHIND.len() <= CHANNEL_BYTES_MAX { format!("{channel}{BEHIND}") } else { "back".to_owned() }
}

/// The whole command, for a shell. `None`: the target's log cannot be read from a known place.
pub fn return_command(command: &ReturnCommand, channel: &str, coordinates: Option<&Coordinates>) -> Option<String> {
    let start = coordinates?.start()?;
    let name = return_channel(channel);
    let fixed = ["replicate", "--from", &command.from, "--to", &command.to, "--channel", &name];
    let words = command.program.iter().map(String::as_str).chain(fixed).chain(start);
    let words = words.chain(command.options.iter().map(String::as_str)).map(shell_quoted);
    Some(words.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_back_begins_where_the_target_was() {
        let command = ReturnCommand {
            program: vec!["heddle".to_owned()],
            from: "mysql://heddle@new:3306?ssl-mode=disabled".to_owned(),
            to: "mysql://heddle@old:3306".to_owned(),
            options: vec!["--source-defaults-file".to_owned(), "my file".to_owned()],
        };
        let check = |gtids: &str, position: Option<&str>, expected: Option<&str>| {
            let coordinates = Coordinates { gtids: gtids.to_owned(), position: position.map(str::to_owned) };
            let whole = return_command(&command, "default", Some(&coordinates));
            let expected = expected.map(|start| {
                format!(
                    "heddle replicate --from 'mysql://heddle@new:3306?ssl-mode=disabled' --to mysql://heddle@old:3306 --channel default-back {start} \
                     --source-defaults-file 'my file'"
                )
            });
            assert_eq!(whole, expected);
        };
        check("0-1-7,5-1-2", Some("b.000001:4"), Some("--start-gtid 0-1-7,5-1-2"));
        check("", Some("b.000001:4"), Some("--start b.000001:4"));
        check("0-1-7", None, Some("--start-gtid 0-1-7"));
        check("", None, None);
        assert_eq!(return_command(&command, "default", None), None);
    }

    #[test]
    fn names_of_channels_have_a_limit() {
        assert_eq!(return_channel("shop"), "shop-back");
        assert_eq!(return_channel(&"x".repeat(CHANNEL_BYTES_MAX)), "back");
    }
}
