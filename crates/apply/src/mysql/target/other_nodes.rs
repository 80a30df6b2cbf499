//! The other nodes of a target while a channel is taken over at one of them: who has it there, and the connections that an earlier run has left there. Locks are each
//! node's own, so each is asked; one that does not answer is gone on without: what is left there cannot commit, as its progress compares the lease.

use std::time::{Duration, Instant};

use engine::failure::{Failure, FailureKind};
use wire::Connection;

use crate::WORKERS_MAX;
use crate::mysql::server::errors::failed;
use crate::mysql::server::info::command_of;
use crate::mysql::server::node::connect_to_ask;
use crate::mysql::session::channel::ChannelContext;
use crate::mysql::session::lease::{
    BRANCHES, CLOSED, PAUSED, SOURCE_LOST, STATEMENTS, XA, holders, kill, lease_holder,
};

const PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(50);
/// For so long a process that ends may still be seen.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// For so long a statement of an earlier run is waited for.
const END_WAIT: Duration = Duration::from_secs(10);

/// Connections to those that answer.
pub struct OtherNodes {
    nodes: Vec<(String, Connection)>,
}

impl OtherNodes {
    /// None where the target is one server.
    pub fn of(channel: &ChannelContext) -> Self {
        let mut nodes = Vec::new();
        for node in channel.connector.other_nodes() {
            match connect_to_ask(node, PATIENCE) {
                Ok(connection) => nodes.push((node.address(), connection)),
                Err(failure) => tracing::debug!("node {} is not asked: {failure}", node.address()),
            }
        }
        Self { nodes }
    }

    /// The process that has the channel at another node, and that node. Waits for one that ends.
    pub fn holder(&mut self, channel: &str) -> Option<(String, String)> {
        let since = Instant::now();
        loop {
            let found = self.nodes.iter_mut().find_map(|(address, node)| {
                let held = lease_holder(node, channel);
                held.ok().flatten().map(|id| (id, address.clone()))
            });
            if found.is_none() || since.elapsed() >= LOCK_WAIT {
                return found;
            }
            std::thread::sleep(POLL);
        }
    }

    /// Ends what an earlier run has left at the other nodes. The lease was taken before, so none of it can commit; a statement that commits by itself is waited for.
    pub fn end_left_over(&mut self, channel: &str) {
        for (address, node) in &mut self.nodes {
            if let Err(failure) = end(node, channel, address) {
                tracing::debug!("what an earlier run has left at node {address}: {failure}");
            }
        }
    }

    /// Ends the connection that holds the channel's lock at another node: it is this process's own, of before.
    pub fn end_holder(&mut self, channel: &str) {
        for (_, node) in &mut self.nodes {
            if let Ok(Some(id)) = lease_holder(node, channel) {
                kill(node, &id);
            }
        }
    }
}

fn end(node: &mut Connection, channel: &str, address: &str) -> Result<(), Failure> {
    let numbers = || (0..WORKERS_MAX).chain([STATEMENTS, XA, SOURCE_LOST, PAUSED, CLOSED, BRANCHES]);
    let since = Instant::now();
    loop {
        let left = holders(node, channel, numbers())?;
        if left.is_empty() {
            return Ok(());
        }
        for (number, id) in &left {
            let id = id.to_string();
            let commits_by_itself = *number == STATEMENTS || *number == XA;
            if !commits_by_itself || command_of(node, &id).map_err(failed)?.as_deref() == Some("Sleep") {
                kill(node, &id);
            }
        }
        if since.elapsed() >= END_WAIT {
            let message = format!("{} connections are still there after {} s", left.len(), END_WAIT.as_secs());
            tracing::warn!("node {address}: {message}; they cannot commit rows");
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        std::thread::sleep(POLL);
    }
}
