//! What the sessions of one target share.

use std::sync::{Arc, Mutex};

use engine::failure::Failure;

use super::gtids::adder::GtidAdder;
use super::locks::waits::InterruptibleWorkers;
use crate::lock::locked;
use crate::mysql::session::channel::ChannelContext;
use crate::mysql::session::connection::ChannelConnection;
use crate::mysql::session::lease::STATEMENTS;
use crate::mysql::statements::pipeline::SharedTables;
use crate::mysql::statements::unfinished_statements::UnfinishedStatements;
use crate::mysql::xa::connections::Branches;

pub struct TargetState {
    pub channel: Arc<ChannelContext>,
    pub interruptible: InterruptibleWorkers,
    pub unfinished: UnfinishedStatements,
    pub statements: StatementsSession,
    pub sharing: SharedTables,
    pub branches: Mutex<Branches>,
    pub gtid_adder: GtidAdder,
}

impl TargetState {
    pub fn new(channel: ChannelContext) -> Self {
        let channel = Arc::new(channel);
        Self {
            gtid_adder: GtidAdder::new(&channel),
            channel,
            interruptible: InterruptibleWorkers::default(),
            unfinished: UnfinishedStatements::default(),
            statements: StatementsSession::default(),
            sharing: SharedTables::default(),
            branches: Mutex::default(),
        }
    }
}

/// The connection that statements of all workers run on, so that temporary tables find their session.
#[derive(Default)]
pub struct StatementsSession(Mutex<State>);

#[derive(Default)]
struct State {
    connection: Option<ChannelConnection>,
    /// Of the transaction that it last ran, see [`engine::transaction::Transaction::source_starts`].
    source_starts: u32,
}

impl StatementsSession {
    /// Runs something on the connection. It is another one when the source has started since: temporary tables of before are no more.
    pub fn run<T>(
        &self,
        channel: &Arc<ChannelContext>,
        source_starts: u32,
        run: impl FnOnce(&mut ChannelConnection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut state = locked(&self.0);
        if std::mem::replace(&mut state.source_starts, source_starts) != source_starts {
            state.connection = None;
        }
        let connection = match &mut state.connection {
            Some(connection) => connection,
            none => none.insert(ChannelConnection::open(channel, STATEMENTS)?),
        };
        run(connection)
    }

    /// Connects anew if there is a connection and it was lost.
    pub fn reconnect_if_lost(&self) -> Result<(), Failure> {
        if let Some(connection) = &mut locked(&self.0).connection
            && connection.wire.ping().is_err()
        {
            connection.reconnect()?;
        }
        Ok(())
    }

    /// For statements to come.
    pub fn set(&self, connection: ChannelConnection) {
        locked(&self.0).connection = Some(connection);
    }

    pub fn close(&self) {
        locked(&self.0).connection = None;
    }
}
