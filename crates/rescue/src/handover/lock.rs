//! One Heddle at a time rescues a replica: the lock that it holds there.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use apply::mysql::server::info::command_of;
use apply::mysql::server::sql::quote;
use wire::Connection;

use replica::names;

/// A predecessor that was killed has a moment to disappear from the server.
const MOMENT_S: u32 = 5;
/// So long its last statement is waited for. A server notices the end of a client only when it has executed its statement, and `STOP REPLICA` waits for the applier.
const LAST_STATEMENT: Duration = Duration::from_secs(60);

/// Held for as long as the connection lives.
pub fn take(control: &mut Connection, progress: &str) -> Result<()> {
    let lock = quote(&names::lock(progress));
    let begun = Instant::now();
    let mut is_told = false;
    while control.scalar(format!("SELECT GET_LOCK({lock}, {MOMENT_S})"))?.as_deref() != Some("1") {
        let Some(holder) = control.scalar(format!("SELECT IS_USED_LOCK({lock})"))? else { continue };
        let command = command_of(control, &holder)?;
        if command.as_deref() != Some("Query") || begun.elapsed() > LAST_STATEMENT {
            bail!("another heddle is rescuing this replica (connection {holder} holds the lock {lock})");
        }
        if !std::mem::replace(&mut is_told, true) {
            tracing::info!("connection {holder} holds the lock {lock} and executes a statement: waiting for its end");
        }
    }
    Ok(())
}
