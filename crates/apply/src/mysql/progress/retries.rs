//! What a running channel tries again: a row beside its progress, so that `heddle status` can say it. It counts only while the process that wrote it has the
//! channel. Where the target takes no changes nothing is written: then a lock says it ([`crate::mysql::session::lease::CLOSED`]).

use engine::failure::Failure;
use wire::Connection;

use super::tables::SCHEMA;
use crate::mysql::server::errors::{FENCE_COLUMN, failed, if_there};
use crate::mysql::server::sql::quote;
use crate::status::RetryStatus;

/// Records it, if this lease still has the channel.
pub fn record(channel: &str, epoch: u64, retrying: &RetryStatus) -> String {
    let code = retrying.code.map_or_else(|| "NULL".to_owned(), |code| code.to_string());
    format!(
        "REPLACE INTO {SCHEMA}.retries (channel,epoch,tries,code,message,since) \
         SELECT channel,{epoch},{},{code},{},SYSDATE(6) - INTERVAL {} SECOND FROM {SCHEMA}.leases WHERE channel={} AND {FENCE_COLUMN}={epoch}",
        retrying.tries,
        quote(&retrying.message),
        retrying.seconds,
        quote(channel),
    )
}

/// Nothing is tried again any more.
pub fn forget(channel: &str) -> String {
    format!("DELETE FROM {SCHEMA}.retries WHERE channel={}", quote(channel))
}

pub fn read(connection: &mut Connection, channel: &str) -> Result<Option<RetryStatus>, Failure> {
    let row = connection.row(format!(
        "SELECT r.tries,r.code,r.message,GREATEST(TIMESTAMPDIFF(SECOND,r.since,SYSDATE(6)),0) FROM {SCHEMA}.retries r \
         JOIN {SCHEMA}.leases l ON l.channel=r.channel AND l.{FENCE_COLUMN}=r.epoch WHERE r.channel={}",
        quote(channel)
    ));
    let Some(row) = if_there(row)?.flatten() else { return Ok(None) };
    Ok(Some(RetryStatus {
        message: row.required_text(2).map_err(failed)?.to_owned(),
        code: row.parse(1).map_err(failed)?,
        tries: row.required(0).map_err(failed)?,
        seconds: row.required(3).map_err(failed)?,
    }))
}

/// What is said where only a lock says that the target takes no changes.
pub fn closed(connection: &mut Connection) -> RetryStatus {
    let is_on = |connection: &mut Connection, variable: &str| {
        // `super_read_only` is MySQL's.
        let value = connection.scalar(format!("SELECT @@global.{variable}")).ok().flatten();
        value.is_some_and(|value| !matches!(value.as_str(), "0" | "OFF"))
    };
    let on: Vec<&str> =
        ["super_read_only", "read_only", "innodb_read_only"].into_iter().filter(|one| is_on(connection, one)).collect();
    let why = if on.is_empty() { String::new() } else { format!(" ({}=ON)", on.join("=ON, ")) };
    RetryStatus { message: format!("the target takes no changes{why}"), code: None, tries: 0, seconds: 0 }
}
