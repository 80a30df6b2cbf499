//! Whether applications are on their way from a channel's source to its target (`heddle switch`), or there: then nobody is to run the channel.

use engine::failure::Failure;
use wire::Connection;

use super::tables::{ENDING, SCHEMA, SWITCHED, SWITCHES};
use crate::mysql::server::errors::if_there;
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
