//! Whether applications are on their way from a channel's source to its target (`heddle switch`), or there: then nobody is to run the channel.

use engine::failure::Failure;
use wire::Connection;

use super::tables::{ENDING, SCHEMA, SWITCHED, SWITCHES};
use crate::mysql::server::errors::{FENCE_COLUMN, failed, if_there};
use crate::mysql::server::sql::quote;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mysql) enum SwitchPhase {
    /// The target has everything, and the channel's process is asked to end. It may be set back still.
    Ending,
    /// Applications write to the target.
    Switched,
}

/// `None`: the channel may run.
pub(in crate::mysql) fn phase(connection: &mut Connection, channel: &str) -> Result<Option<SwitchPhase>, Failure> {
    let sql = format!("SELECT phase FROM {SCHEMA}.{SWITCHES} WHERE channel={}", quote(channel));
    let phase = if_there(connection.scalar(sql))?.flatten();
    Ok(match phase.as_deref() {
        Some(ENDING) => Some(SwitchPhase::Ending),
        Some(SWITCHED) => Some(SwitchPhase::Switched),
        _ => None,
    })
}

/// Raises the number of the channel's lease: whoever has it still, on whatever machine, commits nothing from here on.
///
/// # Errors
/// The target's.
pub fn fence(connection: &mut Connection, channel: &str) -> Result<(), Failure> {
    let name = quote(channel);
    for statement in [
        format!("UPDATE {SCHEMA}.leases SET {FENCE_COLUMN}={FENCE_COLUMN}+1 WHERE channel={name}"),
        // Waits for a commit that is under way.
        format!("UPDATE {SCHEMA}.progress SET {FENCE_COLUMN}={FENCE_COLUMN}+1 WHERE channel={name}"),
        format!(
            "UPDATE {SCHEMA}.leases SET {FENCE_COLUMN}=(SELECT {FENCE_COLUMN} FROM {SCHEMA}.progress WHERE channel={name}) WHERE channel={name}"
        ),
    ] {
        connection.execute(statement).map_err(failed)?;
    }
    Ok(())
}
