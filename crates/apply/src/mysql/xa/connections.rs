//! Connections that have prepared an XA branch. Each stays open, so that it ends its own branch.
//!
//! MySQL 5.7 and MariaDB show the branch of a connection that has ended to others a moment before InnoDB has let go of it, whatever else they
//! show of the connection. Who ends the branch in that moment is told that it is done, the log has it, and InnoDB never does it (`THD::cleanup`
//! and `ha_close_connection` of both; seen once in some thousand branches).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use engine::failure::{Failure, FailureKind};
use engine::sql::Xid;

use crate::mysql::session::connection::ChannelConnection;
use crate::mysql::session::lease::{XA, holders};

/// Branches that are open at once on most sources; older ones are left to the server.
pub const BRANCHES_MAX: usize = 32;
/// How long a server may take to let go of the branch of a connection that was closed.
pub const DETACH_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_micros(500);
/// What is left to be done of a connection that is no longer shown takes microseconds, unless the server's thread has to wait for a processor.
const SETTLE: Duration = Duration::from_millis(20);
/// The same where it is not known when the connection ended.
const SETTLE_AT_FIRST: Duration = Duration::from_millis(100);

/// All connections of one channel that are for XA branches.
#[derive(Default)]
pub struct Branches {
    prepared: VecDeque<(Xid, ChannelConnection)>,
    idle: Vec<ChannelConnection>,
    /// No connection of an earlier heddle, or one that was lost, has a branch, or is about to let go of one.
    settled: bool,
    /// When branches were left to the server, the last ones.
    left: VecDeque<(Xid, Instant)>,
}

impl Branches {
    /// A connection for another branch. `by`: a connection that can ask the server, and open others.
    pub fn open(&mut self, by: &mut ChannelConnection) -> Result<ChannelConnection, Failure> {
        if let Some(idle) = self.idle.pop() {
            return Ok(idle);
        }
        if self.prepared.len() >= BRANCHES_MAX {
            self.leave_oldest(by)?;
        }
        match self.connect(by) {
            // The server has no room for as many connections.
            Err(failure) if failure.kind == FailureKind::Exhausted && !self.prepared.is_empty() => {
                self.leave_oldest(by)?;
                self.connect(by)
            }
            opened => opened,
        }
    }

    fn connect(&self, by: &ChannelConnection) -> Result<ChannelConnection, Failure> {
        let is_free = |number: &usize| self.prepared.iter().all(|(_, connection)| connection.number() != *number);
        let number = (XA..XA + BRANCHES_MAX).find(is_free).unwrap_or(XA);
        by.open_another(number)
    }

    fn leave_oldest(&mut self, by: &mut ChannelConnection) -> Result<(), Failure> {
        self.prepared.pop_front().map_or(Ok(()), |(xid, connection)| self.leave(by, &xid, connection))
    }

    /// The connection has prepared the branch, and will end it.
    pub fn keep(&mut self, xid: &Xid, connection: ChannelConnection) {
        self.prepared.push_back((xid.clone(), connection));
    }

    /// The connection that has prepared the branch.
    pub fn take(&mut self, xid: &Xid) -> Option<ChannelConnection> {
        let at = self.prepared.iter().position(|(known, _)| known == xid)?;
        self.prepared.remove(at).map(|(_, connection)| connection)
    }

    /// The connection's branch has ended.
    pub fn give_back(&mut self, connection: ChannelConnection) {
        self.idle.push(connection);
    }

    /// Leaves the connection's branch to the server, for any other connection to end.
    pub fn leave(
        &mut self,
        by: &mut ChannelConnection,
        xid: &Xid,
        connection: ChannelConnection,
    ) -> Result<(), Failure> {
        let id = connection.wire.server().connection_id;
        connection.wire.close();
        let sql = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID={id}");
        let since = Instant::now();
        while by.scalar(&sql)?.as_deref() != Some("0") && since.elapsed() < DETACH_TIMEOUT {
            std::thread::sleep(POLL);
        }
        self.left.retain(|(_, at)| at.elapsed() < SETTLE);
        self.left.push_back((xid.clone(), Instant::now()));
        Ok(())
    }

    /// A connection to the target was lost: whatever became of the others, their branches are left to the server.
    pub fn leave_all(&mut self) {
        *self = Self::default();
    }

    /// Before a branch is ended that no connection here has: waits for those who may have it.
    pub fn settle(&mut self, by: &mut ChannelConnection, xid: &Xid) -> Result<(), Failure> {
        if self.settled {
            if let Some((_, left)) = self.left.iter().rev().find(|(known, _)| known == xid) {
                std::thread::sleep(SETTLE.saturating_sub(left.elapsed()));
            }
            return Ok(());
        }
        let ours: Vec<usize> = self
            .prepared
            .iter()
            .map(|(_, connection)| connection)
            .chain(&self.idle)
            .map(ChannelConnection::number)
            .collect();
        let others = (XA..XA + BRANCHES_MAX).filter(|number| !ours.contains(number));
        let channel = by.channel().to_owned();
        for (number, _) in holders(&mut by.wire, &channel, others)? {
            self.idle.push(by.open_another(number)?);
        }
        std::thread::sleep(SETTLE_AT_FIRST);
        self.settled = true;
        Ok(())
    }
}
