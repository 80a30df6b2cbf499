//! Commands as they stand, for tests of servers. It knows none of them.

use super::connection::Connection;
use super::dump::BinlogStream;
use crate::error::Error;

impl Connection {
    /// Sends a command as it stands, and takes what comes as a stream: for tests of servers.
    pub fn raw_stream(mut self, command: &[u8]) -> Result<BinlogStream, Error> {
        self.check_idle("sending a command")?;
        self.send(0, &[command], "sending a command")?;
        self.broken = true;
        Ok(BinlogStream { connection: self, semi_sync: false })
    }
}
