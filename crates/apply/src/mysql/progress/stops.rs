//! Why a channel has stopped, and which transactions it is to leave out: two tables beside its progress.
//!
//! They are on the target because whoever looks has the target at hand, not the machine that heddle ran on, and because a skipped transaction is part of what the
//! target's data are. A stop is not recorded where the target itself cannot be reached: then the log and the exit code say it. Nothing here decides what is skipped.

use engine::failure::{Culprit, Failure};
use wire::Connection;

use super::tables::SCHEMA;
use crate::mysql::server::errors::{FENCE_COLUMN, failed, if_there};
use crate::mysql::server::sql::quote;
use crate::status::LastError;

/// Asks whether they are there, and the table of retries: channels of the first versions do not have them. 1 or 0.
pub fn are_there() -> String {
    format!(
        "SELECT COUNT(*) = 3 FROM information_schema.TABLES WHERE TABLE_SCHEMA='{SCHEMA}' AND TABLE_NAME IN ('stops','skips','retries')"
    )
}

/// Records why the channel stops, if this lease still has it.
pub fn record(channel: &str, epoch: u64, failure: &Failure) -> String {
    let culprit = failure.culprit.as_deref();
    let or_null = |number: Option<u64>| number.map_or_else(|| "NULL".to_owned(), |number| number.to_string());
    format!(
        "REPLACE INTO {SCHEMA}.stops (channel,stopped_at,kind,code,message,place,remedy,seq,gtid,position) \
         SELECT channel,SYSDATE(6),{},{},{},{},{},{},{},{} FROM {SCHEMA}.leases WHERE channel={} AND {FENCE_COLUMN}={epoch}",
        quote(failure.kind.as_str()),
        or_null(failure.code.map(u64::from)),
        quote(&failure.message),
        quote(&failure.place),
        quote(&failure.remedy),
        or_null(culprit.map(|culprit| culprit.seq)),
        quote(culprit.map_or("", |culprit| &culprit.gtid)),
        quote(culprit.map_or("", |culprit| &culprit.position)),
        quote(channel),
    )
}

/// Why the channel stopped last, if it ever did.
pub fn read(connection: &mut Connection, channel: &str) -> Result<Option<LastError>, Failure> {
    let row = connection.row(format!(
        "SELECT CAST(UNIX_TIMESTAMP(stopped_at)*1000000 AS UNSIGNED),kind,code,message,place,remedy,seq,gtid,position \
         FROM {SCHEMA}.stops WHERE channel={}",
        quote(channel)
    ));
    let Some(row) = if_there(row)?.flatten() else { return Ok(None) };
    let text = |at: usize| row.required_text(at).map(str::to_owned).map_err(failed);
    let seq: Option<u64> = row.parse(6).map_err(failed)?;
    let (gtid, position) = (text(7)?, text(8)?);
    Ok(Some(LastError {
        time_us: row.required(0).map_err(failed)?,
        kind: text(1)?,
        code: row.parse(2).map_err(failed)?,
        message: text(3)?,
        place: text(4)?,
        remedy: text(5)?,
        passed: false,
        transaction: seq.map(|seq| Culprit { seq, gtid, position }),
    }))
}

/// Records that the transaction is to be left out.
pub fn skip(channel: &str, culprit: &Culprit, error: &LastError) -> String {
    format!(
        "INSERT INTO {SCHEMA}.skips (channel,seq,gtid,position,message,place,asked_by) VALUES ({},{},{},{},{},{},CURRENT_USER())",
        quote(channel),
        culprit.seq,
        quote(&culprit.gtid),
        quote(&culprit.position),
        quote(&error.message),
        quote(&error.place),
    )
}

/// The transactions of the channel that are to be left out, or were.
pub fn skips(connection: &mut Connection, channel: &str) -> Result<Vec<Culprit>, Failure> {
    let rows =
        connection.rows(format!("SELECT seq,gtid,position FROM {SCHEMA}.skips WHERE channel={}", quote(channel)));
    let rows = if_there(rows)?.unwrap_or_default();
    let one = |row: &wire::Row| {
        Ok(Culprit {
            seq: row.required(0)?,
            gtid: row.required_text(1)?.to_owned(),
            position: row.required_text(2)?.to_owned(),
        })
    };
    rows.iter().map(one).collect::<Result<_, wire::Error>>().map_err(failed)
}
