//! The trait behind which rows are written.

use engine::compact::Batch;
use engine::failure::Failure;
use wire::Connection;

use super::sequences::CompletedRow;
use crate::mysql::script::Script;
use crate::mysql::server::privilege_probe::Lack;

/// Which columns of a row before its change are compared with the target's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareBefore {
    /// Those of the key; all where there is none.
    Key,
    /// All that the log has.
    Full,
}

/// As what rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsAs {
    /// `BINLOG` statements, for which an account needs a privilege of its own.
    Binlog,
    /// `INSERT`, `UPDATE`, `DELETE`.
    Sql(CompareBefore),
    /// `REPLACE` and `DELETE`, whatever rows are there: for the log of the time in which these rows were copied.
    Overwriting,
}

/// Rows of so many bytes are written as one statement where that is possible: for more it saves nothing.
pub const ONE_STATEMENT_ROWS_BYTES: usize = 64 << 10;

/// Writes rows into the target. Each connection has a writer of its own.
pub trait RowWriter: Send {
    /// Prepares a new connection. Comes before anything else. `packet_bytes_max`: its `max_allowed_packet`.
    fn set_up(&mut self, connection: &mut Connection, packet_bytes_max: usize) -> Result<(), Failure>;

    /// The privileges that the account lacks for it. The connection is of no other use afterwards.
    fn lacks(&mut self, connection: &mut Connection, packet_bytes_max: usize) -> Result<Vec<Lack>, Failure>;

    /// The server whose change the next rows are, for the target's own binary log.
    fn set_server_id(&mut self, server_id: u32);

    /// Appends the rows to the script, in the transaction that is open. Sends the script when it gets long, or when the target has to be asked
    /// something before the rows.
    fn write(&mut self, batch: &Batch<'_>, script: &mut Script, connection: &mut Connection) -> Result<(), Failure>;

    /// Whether the batches can be one statement. It commits by itself outside a transaction, and nothing has to be asked before it.
    /// `rows_bytes_max`: bytes of their rows.
    fn is_one_statement(&self, batches: &[Batch<'_>], rows_bytes_max: usize) -> bool;

    /// Makes the one statement of batches for which [`RowWriter::is_one_statement`] is true, and keeps it in the place of the one before.
    /// Returns how long its text is, in bytes.
    fn encode_statement(&mut self, batches: &[Batch<'_>]) -> Result<usize, Failure>;

    /// Appends the statement that was made last. `settings`: what its text begins with.
    fn append_statement(&self, settings: &str, script: &mut Script);

    /// Asks the target for what rows of a sequence lack, if they do and the target can only take them whole.
    fn complete(&self, batch: &Batch<'_>, connection: &mut Connection) -> Result<Option<CompletedRow>, Failure>;

    /// A statement that makes the server choose the partition for the history that these rows leave, where the rows alone do not.
    fn choose_history_partition(&self, batch: &Batch<'_>) -> Option<String>;

    /// The rows as text that can be stored on the target, in place of writing them. Sends the script when the target has to be asked something before.
    fn to_stored(
        &mut self,
        server_id: u32,
        batches: &[Batch<'_>],
        script: &mut Script,
        connection: &mut Connection,
    ) -> Result<String, Failure>;

    /// Appends rows that [`RowWriter::to_stored`] has made text of.
    ///
    /// # Errors
    /// Another writer has made it, whose rows this one can not write.
    fn write_stored(&self, stored: &str, script: &mut Script) -> Result<(), Failure>;

    /// Whether the session needs a state of its own while rows are written, and which part of the source's session matters is decided by
    /// [`super::sql::session`].
    fn needs_own_state(&self) -> bool {
        false
    }
}
