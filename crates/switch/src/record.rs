//! How far a switch is, kept on the target: the table `heddle.switches`, one row for each channel.
//!
//! The row is there before the source is changed, with what the source was. It goes when all was set back; after a switch it stays, so that the channel is not started again.

use anyhow::{Context, Result, bail};
use apply::mysql::progress::{ENDING, SCHEMA, SWITCHED, SWITCHES, create_switches};
use apply::mysql::server::errors::is_not_there;
use apply::mysql::server::info::command_of;
use apply::mysql::server::sql::quote;
use serde::{Deserialize, Serialize};
use wire::Connection;

use crate::servers::coordinates::Coordinates;
use crate::servers::read_only_state::ReadOnlyState;

/// Only ever goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The source may be read-only. All of it can be set back.
    Closing,
    /// The same. The target has everything; the channel's process is asked to end, and no standby takes its place.
    Ending,
    /// The target has everything, and may be written to.
    Switched,
}

impl Phase {
    const ALL: [Self; 3] = [Self::Closing, Self::Ending, Self::Switched];

    pub fn name(self) -> &'static str {
        match self {
            Self::Closing => "closing",
            Self::Ending => ENDING,
            Self::Switched => SWITCHED,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == text)
    }
}

/// What there was before, and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedState {
    /// Version of Heddle that wrote this.
    pub heddle: String,
    /// The source's name for itself.
    pub source: String,
    /// The source before Heddle made it read-only. `None`: Heddle does not.
    pub source_before: Option<ReadOnlyState>,
    /// The target before Heddle made it writable. `None`: Heddle did not.
    #[serde(default)]
    pub target_before: Option<ReadOnlyState>,
    /// Where the source's log ended.
    #[serde(default)]
    pub end: Option<String>,
    /// Where the target's log ended when it had all of that.
    #[serde(default)]
    pub coordinates: Option<Coordinates>,
    /// Where it ended behind Heddle's last step.
    #[serde(default)]
    pub rest: Option<Coordinates>,
}

impl SavedState {
    /// Where the target's log ends as long as nobody but Heddle has written there since the switch.
    pub fn rest(&self) -> Option<&Coordinates> {
        self.rest.as_ref().or(self.coordinates.as_ref())
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub phase: Phase,
    pub saved: SavedState,
    /// By the target's clock.
    pub began: String,
}

pub fn read(connection: &mut Connection, channel: &str) -> Result<Option<Record>> {
    let row = connection.row(format!(
        "SELECT phase, saved, CAST(began AS CHAR) FROM {SCHEMA}.{SWITCHES} WHERE channel={}",
        quote(channel)
    ));
    let row = match row {
        Err(error) if is_not_there(&error) => return Ok(None),
        row => row.with_context(|| format!("reading {SCHEMA}.{SWITCHES} on the target"))?,
    };
    let Some(row) = row else { return Ok(None) };
    let bad =
        || format!("{SCHEMA}.{SWITCHES}, channel {channel}, is not understood: was another version of heddle here?");
    let phase = Phase::parse(row.required_text(0)?).with_context(bad)?;
    let saved = serde_json::from_str(row.required_text(1)?).with_context(bad)?;
    Ok(Some(Record { phase, saved, began: row.text(2)?.unwrap_or_default().to_owned() }))
}

/// The first write.
pub fn begin(connection: &mut Connection, channel: &str, saved: &SavedState) -> Result<()> {
    let insert = format!(
        "INSERT INTO {SCHEMA}.{SWITCHES} (channel, phase, saved) VALUES ({}, {}, {})",
        quote(channel),
        quote(Phase::Closing.name()),
        quote(&serde_json::to_string(saved)?)
    );
    let inserted = match connection.execute(&insert) {
        Err(error) if is_not_there(&error) => {
            connection
                .execute(create_switches())
                .with_context(|| format!("making {SCHEMA}.{SWITCHES} on the target"))?;
            connection.execute(&insert)
        }
        inserted => inserted,
    };
    inserted.map(|_| ()).with_context(|| format!("writing {SCHEMA}.{SWITCHES} on the target"))
}

pub fn save(connection: &mut Connection, channel: &str, phase: Phase, saved: &SavedState) -> Result<()> {
    let sql = format!(
        "UPDATE {SCHEMA}.{SWITCHES} SET phase={}, saved={} WHERE channel={}",
        quote(phase.name()),
        quote(&serde_json::to_string(saved)?),
        quote(channel)
    );
    connection.execute(sql).map(|_| ()).with_context(|| format!("writing {SCHEMA}.{SWITCHES} on the target"))
}

pub fn remove(connection: &mut Connection, channel: &str) -> Result<()> {
    let sql = format!("DELETE FROM {SCHEMA}.{SWITCHES} WHERE channel={}", quote(channel));
    connection.execute(sql).map(|_| ()).with_context(|| format!("writing {SCHEMA}.{SWITCHES} on the target"))
}

/// A predecessor that was killed has a moment to disappear from the server.
const MOMENT_S: u32 = 5;

/// One Heddle at a time switches a channel: the lock is held for as long as the connection lives.
pub fn lock(connection: &mut Connection, channel: &str) -> Result<()> {
    let name = quote(&lock_name(channel));
    if connection.scalar(format!("SELECT GET_LOCK({name}, {MOMENT_S})"))?.as_deref() == Some("1") {
        return Ok(());
    }
    let holder = connection.scalar(format!("SELECT IS_USED_LOCK({name})"))?.unwrap_or_default();
    let command = if holder.is_empty() { None } else { command_of(connection, &holder)? };
    let doing = command.unwrap_or_else(|| "not visible to this account".to_owned());
    bail!("another heddle switches this channel (connection {holder} on the target holds the lock {name}; {doing})")
}

/// The slash is in no channel's name. At most 64 bytes: a channel's name has at most 50.
fn lock_name(channel: &str) -> String {
    format!("heddle.{channel}/switch").chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_and_what_is_saved_are_read_as_they_were_written() {
        for phase in Phase::ALL {
            assert_eq!(Phase::parse(phase.name()), Some(phase));
        }
        let saved = SavedState {
            heddle: "1".to_owned(),
            source: "mariadb-server-1".to_owned(),
            source_before: Some(ReadOnlyState { read_only: "OFF".to_owned(), super_read_only: None }),
            target_before: None,
            end: None,
            coordinates: Some(Coordinates { gtids: "0-1-7".to_owned(), position: None }),
            rest: None,
        };
        let text = serde_json::to_string(&saved).unwrap();
        assert_eq!(serde_json::from_str::<SavedState>(&text).unwrap(), saved);
        let first: SavedState =
            serde_json::from_str("{\"heddle\":\"1\",\"source\":\"x\",\"source_before\":null}").unwrap();
        assert_eq!((first.source_before, first.rest), (None, None));
    }
}
