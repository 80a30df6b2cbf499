//! How the channel connects to its target.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::failure::Failure;
use wire::{ConnectOptions, Connection, Nodes};

use super::settings::{Annotations, BinlogChoice, set_up};
use crate::mysql::rows::quirks::TableQuirks;
use crate::mysql::rows::{self, RowsAs};
use crate::mysql::server::errors::failed;
use crate::mysql::server::info::TargetInfo;

pub struct Connector {
    /// The one server, or the one node, that all connections are to.
    options: ConnectOptions,
    /// It, and the other nodes that the channel may write to.
    nodes: Nodes,
    info: TargetInfo,
    logged: BinlogChoice,
    annotations: Annotations,
}

impl Connector {
    pub fn logged(&self) -> BinlogChoice {
        self.logged
    }

    pub fn new(options: ConnectOptions, info: TargetInfo, logged: BinlogChoice) -> Self {
        Self::to_node(options.clone(), options.into(), info, logged)
    }

    /// To one of several.
    pub fn to_node(options: ConnectOptions, nodes: Nodes, info: TargetInfo, logged: BinlogChoice) -> Self {
        Self { options, nodes, info, logged, annotations: Annotations::default() }
    }

    /// Whether the channel can go on at another node.
    pub fn has_other_nodes(&self) -> bool {
        self.nodes.are_several()
    }

    /// The server, or all nodes.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// The server or node that the connections are to.
    pub fn node(&self) -> &ConnectOptions {
        &self.options
    }

    /// The other nodes.
    pub fn other_nodes(&self) -> impl Iterator<Item = &ConnectOptions> {
        let here = self.address();
        self.nodes.in_turn().map(|(_, node)| node).filter(move |node| node.address() != here)
    }

    /// Nothing is waited for any more on any of its connections, after a grace.
    pub fn give_up(&self) {
        self.options.limits.interrupt.flag().store(true, Ordering::Relaxed);
    }

    /// What the target is.
    pub fn info(&self) -> &TargetInfo {
        &self.info
    }

    pub fn address(&self) -> String {
        self.options.address()
    }

    pub fn user(&self) -> &str {
        &self.options.user
    }

    /// Why rows can not be written as `BINLOG` statements with this account; `None`: they can.
    pub fn lacks_for_events(&self) -> Result<Option<String>, Failure> {
        let info = &self.info;
        let mut connection = self.connect()?;
        let quirks = Arc::new(TableQuirks::new(info, RowsAs::Binlog));
        let lacks = rows::binlog_writer(info, &quirks).lacks(&mut connection, info.packet_bytes_max)?;
        connection.close();
        let names: Vec<&str> = lacks.iter().map(|lack| lack.privilege).collect();
        Ok((!names.is_empty()).then(|| format!("the account {} lacks {}", info.account.name(), names.join(", "))))
    }

    /// A connection with the settings of Heddle's sessions. A failure says which server it is of.
    pub fn connect(&self) -> Result<Connection, Failure> {
        self.connect_with(&self.options)
    }

    /// The same, that never waits for longer for its login or for an answer.
    pub fn connect_within(&self, patience: Duration) -> Result<Connection, Failure> {
        self.connect_to_within(&self.options, patience)
    }

    /// The same, to another node.
    pub fn connect_to_within(&self, node: &ConnectOptions, patience: Duration) -> Result<Connection, Failure> {
        self.connect_with(&node.within(patience))
    }

    fn connect_with(&self, options: &ConnectOptions) -> Result<Connection, Failure> {
        let connect = || {
            let mut connection = Connection::connect(options).map_err(failed)?;
            set_up(&mut connection, &self.info, self.logged)?;
            self.annotations.leave_out(&mut connection, &self.info)?;
            Ok(connection)
        };
        connect().map_err(|failure: Failure| Failure {
            message: format!("target {}: {}", options.address(), failure.message),
            ..failure
        })
    }
}
