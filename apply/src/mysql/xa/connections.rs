//! Connections that have prepared an XA branch, kept so that each ends its own.
//!
//! MySQL 5.7 and MariaDB show the branch of a connection that has ended to others a moment before InnoDB has let go of it, whatever else they
//! show of the connection. Who ends the branch in that moment is told that it is done, the log has it, and InnoDB never does it (`THD::cleanup`
//! and `ha_close_connection` of both; seen once in some thousand branches).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::failure::{Failure, FailureKind};
use engine::sql::Xid;

use crate::mysql::server::errors::failed;
use crate::mysql::session::{MySqlSession, XA, holders};

/// Branches that are open at once on most sources; older ones are left to the server.
pub(in crate::mysql) const BRANCHES_MAX: usize = 32;
/// How long a server may take to let go of the branch of a connection that was closed.
pub(in crate::mysql) const DETACH_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_micros(500);
/// What is left to be done of a connection that is no longer shown takes microseconds, unless the server's thread has to wait for a processor.
const SETTLE: Duration = Duration::from_millis(20);
/// The same where it is not known when the connection ended.
const SETTLE_AT_FIRST: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(in crate::mysql) struct Branches {
    prepared: VecDeque<(Xid, MySqlSession)>,
    idle: Vec<MySqlSession>,
    /// No connection of an earlier heddle, or one that was lost, has a branch, or is about to let go of one.
    settled: bool,
    /// When branches were left to the server, the last ones.
    left: VecDeque<(Xid, Instant)>,
}

impl Branches {
    /// A session for another branch.
    pub fn open(&mut self, by: &mut MySqlSession) -> Result<MySqlSession, Failure> {
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

    fn connect(&self, by: &MySqlSession) -> Result<MySqlSession, Failure> {
        let is_free = |number: &usize| self.prepared.iter().all(|(_, session)| session.number != *number);
        let number = (XA..XA + BRANCHES_MAX).find(is_free).unwrap_or(XA);
        MySqlSession::open(Arc::clone(&by.shared), number)
    }

    fn leave_oldest(&mut self, by: &mut MySqlSession) -> Result<(), Failure> {
        self.prepared.pop_front().map_or(Ok(()), |(xid, session)| self.leave(by, &xid, session))
    }

    pub fn keep(&mut self, xid: &Xid, session: MySqlSession) {
        self.prepared.push_back((xid.clone(), session));
    }

    pub fn take(&mut self, xid: &Xid) -> Option<MySqlSession> {
        let at = self.prepared.iter().position(|(known, _)| known == xid)?;
        self.prepared.remove(at).map(|(_, session)| session)
    }

    /// Its branch has ended.
    pub fn give_back(&mut self, session: MySqlSession) {
        self.idle.push(session);
    }

    /// Leaves the session's branch to the server, for any other connection to end.
    pub fn leave(&mut self, by: &mut MySqlSession, xid: &Xid, session: MySqlSession) -> Result<(), Failure> {
        let id = session.connection.server().connection_id;
        session.connection.close();
        let sql = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID={id}");
        let since = Instant::now();
        while by.connection.scalar(&sql).map_err(failed)?.as_deref() != Some("0") && since.elapsed() < DETACH_TIMEOUT {
            std::thread::sleep(POLL);
        }
        self.left.retain(|(_, at)| at.elapsed() < SETTLE);
        self.left.push_back((xid.clone(), Instant::now()));
        Ok(())
    }

    /// A connection to the target was lost: whatever the others are, their branches are the server's.
    pub fn lose(&mut self) {
        *self = Self::default();
    }

    /// Before a branch is ended that no session here has: waits for those who may.
    pub fn settle(&mut self, by: &mut MySqlSession, xid: &Xid) -> Result<(), Failure> {
        if self.settled {
            if let Some((_, left)) = self.left.iter().rev().find(|(known, _)| known == xid) {
                std::thread::sleep(SETTLE.saturating_sub(left.elapsed()));
            }
            return Ok(());
        }
        let ours: Vec<usize> =
            self.prepared.iter().map(|(_, session)| session).chain(&self.idle).map(|session| session.number).collect();
        let others = (XA..XA + BRANCHES_MAX).filter(|number| !ours.contains(number));
        let shared = Arc::clone(&by.shared);
        for (number, _) in holders(&mut by.connection, &shared.channel, others)? {
            self.idle.push(MySqlSession::open(Arc::clone(&shared), number)?);
        }
        std::thread::sleep(SETTLE_AT_FIRST);
        self.settled = true;
        Ok(())
    }
}
