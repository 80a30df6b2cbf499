//! Which accounts of the target a copy under way has made: they are not taken for accounts that were there before it.

use apply::mysql::progress::SCHEMA;
use apply::mysql::server::errors::{failed, if_there};
use apply::mysql::server::sql::quote;
use engine::failure::Failure;
use wire::Connection;

use super::show_output::AccountName;

/// An account's row is there before the account is. A role of MariaDB's has no host.
pub fn read(control: &mut Connection, channel: &str) -> Result<Vec<AccountName>, Failure> {
    let sql = format!(
        "SELECT user_name, host_name, has_host FROM {SCHEMA}.copy_accounts WHERE channel={} ORDER BY 1, 2",
        quote(channel)
    );
    let rows = if_there(control.rows(sql))?.unwrap_or_default();
    let name = |row: &wire::Row| {
        let (user, host) = (row.required_text(0)?, row.required_text(1)?);
        Ok(if row.required_text(2)? == "1" { AccountName::new(user, host) } else { AccountName::role(user) })
    };
    rows.iter().map(name).collect::<Result<_, wire::Error>>().map_err(failed)
}

pub fn add(control: &mut Connection, channel: &str, name: &AccountName) -> Result<(), Failure> {
    let sql = format!(
        "REPLACE INTO {SCHEMA}.copy_accounts (channel, user_name, host_name, has_host) VALUES ({}, {}, {}, {})",
        quote(channel),
        quote(&name.user),
        quote(name.host.as_deref().unwrap_or_default()),
        u8::from(name.host.is_some())
    );
    control.execute(sql).map(|_| ()).map_err(failed)
}

/// It was not made: one of this name is not the copy's.
pub fn remove(control: &mut Connection, channel: &str, name: &AccountName) -> Result<(), Failure> {
    let sql = format!(
        "DELETE FROM {SCHEMA}.copy_accounts WHERE channel={} AND user_name={} AND host_name={} AND has_host={}",
        quote(channel),
        quote(&name.user),
        quote(name.host.as_deref().unwrap_or_default()),
        u8::from(name.host.is_some())
    );
    control.execute(sql).map(|_| ()).map_err(failed)
}
