//! How far a rescue has come, kept on the replica: the table `heddle.rescue`, one row for each channel that is being rescued.
//!
//! The row is there before anything is changed, and goes when everything is as it was. Every step says which phase it comes from, so that
//! two of them can not both take it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, bail};
use binlog::LogPosition;
use binlog::gtids::GtidState;
use serde::{Deserialize, Serialize};
use wire::Connection;

use apply::mysql::progress::{HOLE_TABLE, KEPT_GTIDS, SCHEMA, TABLES};
use apply::mysql::server::errors::is_not_there;
use apply::mysql::server::sql::quote;
use replica::status::Positioning;

/// Who applies, and what comes next. Only ever goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Native replication has applied everything so far. Its applier may be stopped, held, or neither.
    TakingOver,
    /// The native applier is held at a place that is noted, and Heddle applies from there.
    Applying,
    /// Heddle will not apply any more; the server is being told what was applied. Done once the applier is not held any more.
    HandingBack,
    /// Native replication goes on by itself. Nothing may be set any more but what is left of the bookkeeping removed.
    Released,
}

impl Phase {
    const ALL: [Self; 4] = [Self::TakingOver, Self::Applying, Self::HandingBack, Self::Released];

    pub fn name(self) -> &'static str {
        match self {
            Self::TakingOver => "taking over",
            Self::Applying => "applying",
            Self::HandingBack => "handing back",
            Self::Released => "released",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == text)
    }
}

/// What there was before the first change: for the way back, and for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedChannel {
    /// Version of Heddle that wrote this.
    pub heddle: String,
    pub server: String,
    /// [`replica::status::ReplicaStatus::config`]
    pub config: BTreeMap<String, String>,
    /// More settings of the connection, where the server shows them elsewhere.
    pub connection: BTreeMap<String, String>,
    pub delay_s: u64,
    pub receiver_ran: bool,
    pub applier_ran: bool,
    /// It was ON, and is OFF while Heddle applies.
    pub super_read_only: bool,
    /// The schema of the bookkeeping was there before.
    pub schema_existed: bool,
    /// What Heddle changes goes into the replica's own binary log.
    #[serde(default)]
    pub logged: bool,
    /// The source had purged what came next: it is copied from the replica's relay logs before the applier is held.
    #[serde(default)]
    pub from_relay_logs: bool,
    /// Up to where it was copied, `FILE:POSITION` of the source's binary log. `None`: it was not copied yet.
    #[serde(default)]
    pub copied_to: Option<String>,
    /// Where the applier was then: [`Place`] as text.
    #[serde(default)]
    pub copied_from: Option<String>,
}

impl SavedChannel {
    /// MariaDB's, which has to be set again whenever something else is.
    pub fn heartbeat(&self) -> Option<&str> {
        self.config.get("replica_heartbeat_period").map(String::as_str)
    }

    /// The end of what only Heddle's relay log has.
    pub fn copied_to(&self) -> Result<Option<LogPosition>> {
        let parse = |text: &String| text.parse().with_context(|| format!("{SCHEMA}.rescue: copied_to {text:?}"));
        self.copied_to.as_ref().map(parse).transpose()
    }
}

/// Where the native applier was when it was held: everything before is applied, nothing after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub positioning: Positioning,
    /// `gtid_executed`, `gtid_slave_pos`; none with gtid_mode=OFF.
    pub gtids: GtidState,
    pub position: Option<LogPosition>,
}

#[derive(Serialize, Deserialize)]
struct PlaceText {
    positioning: String,
    gtids: String,
    position: Option<String>,
}

impl Place {
    pub fn to_text(&self) -> Result<String> {
        let positioning = match self.positioning {
            Positioning::File => "file",
            Positioning::Gtid => "gtid",
            Positioning::CurrentPos => "current_pos",
        };
        let text = PlaceText {
            positioning: positioning.to_owned(),
            gtids: self.gtids.to_string(),
            position: self.position.as_ref().map(ToString::to_string),
        };
        Ok(serde_json::to_string(&text)?)
    }

    fn parse(text: &str) -> Result<Self> {
        let text: PlaceText = serde_json::from_str(text)?;
        let positioning = match text.positioning.as_str() {
            "file" => Positioning::File,
            "gtid" => Positioning::Gtid,
            "current_pos" => Positioning::CurrentPos,
            other => bail!("positioning {other:?}"),
        };
        let position = text.position.map(|position| position.parse()).transpose()?;
        Ok(Self { positioning, gtids: text.gtids.parse()?, position })
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub phase: Phase,
    pub saved: SavedChannel,
    /// Known from [`Phase::Applying`] on.
    pub place: Option<Place>,
    /// When it began, by the replica's clock.
    pub began: String,
}

impl Record {
    pub fn place(&self) -> Result<&Place> {
        self.place.as_ref().ok_or_else(|| anyhow!("{SCHEMA}.rescue does not say where the rescue began"))
    }
}

pub fn read(connection: &mut Connection, channel: &str) -> Result<Option<Record>> {
    let row = connection.row(format!(
        "SELECT phase, saved, place, CAST(began AS CHAR) FROM {SCHEMA}.rescue WHERE channel={}",
        quote(channel)
    ));
    let row = match row {
        Err(error) if is_not_there(&error) => return Ok(None),
        row => row.with_context(|| format!("reading {SCHEMA}.rescue"))?,
    };
    let Some(row) = row else { return Ok(None) };
    let bad =
        || format!("{SCHEMA}.rescue, channel {channel:?}, is not understood: was another version of heddle here?");
    let phase =
        Phase::parse(row.required_text(0)?).ok_or_else(|| anyhow!("phase {:?}", row.text(0))).with_context(bad)?;
    let saved = serde_json::from_str(row.required_text(1)?).with_context(bad)?;
    let place = row.text(2)?.map(Place::parse).transpose().with_context(bad)?;
    if place.is_none() && phase != Phase::TakingOver {
        return Err(anyhow!("phase {:?} without a place", phase.name())).with_context(bad);
    }
    Ok(Some(Record { phase, saved, place, began: row.required_text(3)?.to_owned() }))
}

/// The first write: the row, and the progress table for the channel `progress`, in which nothing of an earlier rescue may be left.
/// One packet with what makes the server writable, so that there is no moment in which that is done and nothing says so.
pub fn begin(channel: &str, progress: &str, saved: &SavedChannel) -> Result<String> {
    let mut statements = Vec::new();
    if saved.super_read_only {
        statements.push("SET GLOBAL super_read_only=OFF".to_owned());
    }
    statements.extend(apply::mysql::progress::create());
    statements.push(format!(
        "CREATE TABLE IF NOT EXISTS {SCHEMA}.rescue (\
         channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, \
         phase VARCHAR(20) CHARACTER SET ascii NOT NULL, \
         saved LONGTEXT CHARACTER SET utf8mb4 NOT NULL, \
         place LONGTEXT CHARACTER SET utf8mb4 NULL, \
         began TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP\
         ) ENGINE=InnoDB"
    ));
    statements.push("BEGIN".to_owned());
    statements.extend(forget_progress(progress));
    statements.push(format!(
        "INSERT INTO {SCHEMA}.rescue (channel, phase, saved) VALUES ({}, {}, {})",
        quote(channel),
        quote(Phase::TakingOver.name()),
        quote(&serde_json::to_string(saved)?)
    ));
    statements.push("COMMIT".to_owned());
    Ok(statements.join(";"))
}

fn forget_progress(progress: &str) -> Vec<String> {
    let table = |table: &str| format!("DELETE FROM {SCHEMA}.{table} WHERE channel={}", quote(progress));
    TABLES.map(table).to_vec()
}

/// From one phase to the next. Fails when the row is not in `from` any more.
pub fn advance(
    connection: &mut Connection,
    channel: &str,
    from: Phase,
    to: Phase,
    place: Option<&Place>,
) -> Result<()> {
    let place = match place {
        Some(place) => format!(", place={}", quote(&place.to_text()?)),
        None => String::new(),
    };
    let done = connection
        .execute(format!(
            "UPDATE {SCHEMA}.rescue SET phase={}{place} WHERE channel={} AND phase={}",
            quote(to.name()),
            quote(channel),
            quote(from.name())
        ))
        .with_context(|| format!("noting in {SCHEMA}.rescue: {}", to.name()))?;
    if done.affected != 1 {
        bail!(
            "{SCHEMA}.rescue, channel {channel:?}, is not {:?} any more: another heddle has gone on with this rescue, or the row was \
             changed by hand",
            from.name()
        );
    }
    Ok(())
}

/// What was found or done later than the beginning.
pub fn save(connection: &mut Connection, channel: &str, saved: &SavedChannel) -> Result<()> {
    connection.execute(format!(
        "UPDATE {SCHEMA}.rescue SET saved={} WHERE channel={}",
        quote(&serde_json::to_string(saved)?),
        quote(channel)
    ))?;
    Ok(())
}

/// Tables that are not ours in the schema of the bookkeeping.
fn foreign_tables(connection: &mut Connection) -> Result<bool> {
    let count = connection.scalar(format!(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema='{SCHEMA}' \
         AND table_name NOT IN ('{}','{KEPT_GTIDS}','rescue','{}')",
        TABLES.join("','"),
        HOLE_TABLE
    ))?;
    Ok(count.is_none_or(|count| count != "0"))
}

/// Whether the schema of the bookkeeping holds something already. Empty tables are what a run left that was killed at its very end.
pub fn schema_in_use(connection: &mut Connection) -> Result<bool> {
    if foreign_tables(connection)? {
        return Ok(true);
    }
    match connection.scalar(format!("SELECT COUNT(*) FROM {SCHEMA}.progress")) {
        Err(error) if is_not_there(&error) => Ok(false),
        count => Ok(count?.is_none_or(|count| count != "0")),
    }
}

/// The last write: the row and the progress go, and what makes the server unwritable again comes, in one packet.
pub fn finish(connection: &mut Connection, channel: &str, progress: &str, saved: &SavedChannel) -> Result<()> {
    let others = connection
        .scalar(format!("SELECT COUNT(*) FROM {SCHEMA}.progress WHERE channel<>{}", quote(progress)))?
        .is_none_or(|count| count != "0");
    let rescues = connection
        .scalar(format!("SELECT COUNT(*) FROM {SCHEMA}.rescue WHERE channel<>{}", quote(channel)))?
        .is_none_or(|count| count != "0");
    let foreign = foreign_tables(connection)?;
    let mut statements = vec!["BEGIN".to_owned()];
    statements.extend(forget_progress(progress));
    statements.push(format!("DELETE FROM {SCHEMA}.rescue WHERE channel={}", quote(channel)));
    statements.push("COMMIT".to_owned());
    if !others && !rescues && !foreign && !saved.schema_existed {
        statements.push(format!("DROP DATABASE {SCHEMA}"));
    } else if !rescues {
        statements.push(format!("DROP TABLE {SCHEMA}.rescue"));
    }
    if saved.super_read_only {
        statements.push("SET GLOBAL super_read_only=ON".to_owned());
    }
    connection.execute(statements.join(";")).context("removing the bookkeeping")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        for phase in Phase::ALL {
            assert_eq!(Phase::parse(phase.name()), Some(phase));
        }
        let position = Some(LogPosition::new("binlog.000003", 4));
        for (positioning, gtids) in [
            (Positioning::Gtid, "6c27ad86-e5b9-11f1-91a6-02fc00000001:1-3:7"),
            (Positioning::Gtid, "0-1-100,7-3-2"),
            (Positioning::File, ""),
        ] {
            let place = Place { positioning, gtids: gtids.parse().unwrap(), position: position.clone() };
            assert_eq!(Place::parse(&place.to_text().unwrap()).unwrap(), place);
        }
        assert!(Place::parse("{\"positioning\":\"perhaps\",\"gtids\":\"\",\"position\":null}").is_err());
    }
}
