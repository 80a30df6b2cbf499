//! Statements that the target does not log, since its own replicas must not get them: on a connection of the channel that has no other use.

use engine::failure::Failure;
use wire::Connection;

use super::channel::ChannelContext;
use super::lease::BRANCHES;
use crate::lock::locked;
use crate::mysql::script::Script;
use crate::mysql::server::errors::failed;

impl ChannelContext {
    /// Opens the connection where it is needed.
    pub fn run_unlogged(&self, statements: &[String]) -> Result<(), Failure> {
        if statements.is_empty() {
            return Ok(());
        }
        let mut unlogged = locked(&self.unlogged);
        let connection = match &mut *unlogged {
            Some(connection) => connection,
            none => none.insert(self.connect_unlogged()?),
        };
        let mut script = Script::new(self.info().packet_bytes_max);
        for statement in statements {
            script.statement(statement);
        }
        let done = script.send(connection);
        if done.is_err() {
            // What it has begun ends with it.
            *unlogged = None;
        }
        done.map(drop)
    }

    pub fn close_unlogged(&self) {
        *locked(&self.unlogged) = None;
    }

    fn connect_unlogged(&self) -> Result<Connection, Failure> {
        let mut connection = self.connector.connect()?;
        self.lease.take_over(&mut connection, BRANCHES)?;
        connection.execute_repeatable("SET SESSION sql_log_bin=0").map_err(failed)?;
        Ok(connection)
    }
}
