//! Shows on the target what a running channel waits for (its source, or to be resumed): a lock that a connection of its own holds. No table is written for that.

use std::sync::Mutex;

use engine::failure::Failure;
use wire::Connection;

use crate::lock::locked;
use crate::mysql::server::errors::failed;
use crate::mysql::server::sql::quote;
use crate::mysql::session::channel::ChannelContext;
use crate::mysql::session::lease::lock_name;

pub struct WaitLock {
    number: usize,
    connection: Mutex<Option<Connection>>,
}

impl WaitLock {
    pub fn new(number: usize) -> Self {
        Self { number, connection: Mutex::default() }
    }

    /// `scalar`: asks on the control connection.
    pub fn show(&self, channel: &ChannelContext, scalar: impl FnOnce(&str) -> Result<Option<String>, Failure>) {
        let mut held = locked(&self.connection);
        let name = quote(&lock_name(channel.lease.channel(), self.number));
        let show = || -> Result<(), Failure> {
            // The idle time of the connection tells for how long, so it is left alone.
            if scalar(&format!("SELECT IS_USED_LOCK({name})"))?.is_none() {
                let connection = held.insert(channel.connector.connect()?);
                connection.execute(format!("DO GET_LOCK({name}, 1)")).map_err(failed)?;
            }
            Ok(())
        };
        if let Err(failure) = show() {
            tracing::debug!("showing what the channel waits for: {failure}");
        }
    }

    pub fn clear(&self) {
        *locked(&self.connection) = None;
    }
}
