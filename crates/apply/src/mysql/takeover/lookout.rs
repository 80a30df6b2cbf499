//! The nodes of a cluster beside the one at which a process waits: who has the channel may be at any of them, and locks are each node's own. A node that does not
//! answer keeps nobody waiting.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use engine::failure::Failure;
use wire::{ConnectOptions, Connection};

use super::signs::PATIENCE;
use crate::mysql::session::channel::ChannelContext;
use crate::mysql::session::lease::lease_holder;

/// Between two tries to reach a node.
const RETRY: Duration = Duration::from_secs(1);
/// The first look waits for so long for a node.
const FIRST_PATIENCE: Duration = Duration::from_secs(1);

/// What was found at the other nodes.
pub enum HolderPlace {
    /// Who has the channel is at this node.
    At(Box<ConnectOptions>),
    /// Nobody is at any of them.
    Nowhere,
    /// Nobody is at those that answer, and not all do.
    Unsure,
}

/// The other nodes.
#[derive(Default)]
pub struct Lookout {
    nodes: Vec<Node>,
}

struct Node {
    options: ConnectOptions,
    connection: Option<Connection>,
    pending: Option<Receiver<Result<Connection, Failure>>>,
    tried: Option<Instant>,
}

impl Lookout {
    /// Looks at all nodes of the channel's target but `home`.
    pub fn look(&mut self, context: &Arc<ChannelContext>, home: &ConnectOptions) -> HolderPlace {
        if self.nodes.is_empty() {
            let all = context.connector.nodes().in_turn().map(|(_, options)| Node::new(options.clone()));
            self.nodes = all.collect();
        }
        let mut place = HolderPlace::Nowhere;
        for node in self.nodes.iter_mut().filter(|node| node.options.address() != home.address()) {
            match node.ask(context) {
                Some(true) => return HolderPlace::At(Box::new(node.options.clone())),
                Some(false) => {}
                None => place = HolderPlace::Unsure,
            }
        }
        place
    }

    /// Nothing is looked at for now.
    pub fn rest(&mut self) {
        self.nodes.clear();
    }
}

impl Node {
    fn new(options: ConnectOptions) -> Self {
        Self { options, connection: None, pending: None, tried: None }
    }

    /// Whether the lock is held there; `None`: it does not answer.
    fn ask(&mut self, context: &Arc<ChannelContext>) -> Option<bool> {
        if self.connection.is_none() {
            self.connect(context);
        }
        let answer = lease_holder(self.connection.as_mut()?, context.lease.channel());
        if let Err(failure) = &answer {
            tracing::debug!("node {} is not looked at: {failure}", self.options.address());
            self.connection = None;
        }
        answer.ok().map(|holder| holder.is_some())
    }

    /// The first time it is waited for; later a thread does.
    fn connect(&mut self, context: &Arc<ChannelContext>) {
        if self.tried.is_none() {
            self.tried = Some(Instant::now());
            self.connection = context.connector.connect_to_within(&self.options, FIRST_PATIENCE).ok();
            return;
        }
        if let Some(pending) = &self.pending {
            match pending.try_recv() {
                Err(TryRecvError::Empty) => return,
                Ok(connected) => self.connection = connected.ok(),
                Err(TryRecvError::Disconnected) => {}
            }
            self.pending = None;
            return;
        }
        if self.tried.is_some_and(|at| at.elapsed() < RETRY) {
            return;
        }
        self.tried = Some(Instant::now());
        let (send, receive) = channel();
        let (context, options) = (Arc::clone(context), self.options.clone());
        let connect = move || {
            // Nobody may wait for it any more.
            let _ = send.send(context.connector.connect_to_within(&options, PATIENCE));
        };
        match std::thread::Builder::new().name("lookout".to_owned()).spawn(connect) {
            Ok(_) => self.pending = Some(receive),
            Err(error) => tracing::debug!("no thread to look at node {}: {error}", self.options.address()),
        }
    }
}
