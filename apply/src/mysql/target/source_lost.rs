//! Shows on the target that the source can not be reached: a lock that a connection of its own holds. No table is written for that.

use std::sync::Mutex;

use engine::failure::Failure;
use wire::Connection;

use crate::lock::locked;
use crate::mysql::server::errors::failed;
use crate::mysql::server::sql::quote;
use crate::mysql::session::channel::ChannelContext;
use crate::mysql::session::lease::{SOURCE_LOST, lock_name};

#[derive(Default)]
pub struct SourceLost(Mutex<Option<Connection>>);

impl SourceLost {
    /// `scalar`: asks on the control connection.
    pub fn show(
        &self,
        channel: &ChannelContext,
        lost: bool,
        scalar: impl FnOnce(&str) -> Result<Option<String>, Failure>,
    ) {
        let mut shown = locked(&self.0);
        if !lost {
            *shown = None;
            return;
        }
        let name = quote(&lock_name(channel.lease.channel(), SOURCE_LOST));
        let show = || -> Result<(), Failure> {
            // The idle time of the connection tells for how long, so it is left alone.
            if scalar(&format!("SELECT IS_USED_LOCK({name})"))?.is_none() {
                let connection = shown.insert(channel.connector.connect()?);
                connection.execute(format!("DO GET_LOCK({name}, 1)")).map_err(failed)?;
            }
            Ok(())
        };
        if let Err(failure) = show() {
            tracing::debug!("showing that the source can not be reached: {failure}");
        }
    }

    pub fn clear(&self) {
        *locked(&self.0) = None;
    }
}
