//! How the channel connects to its target.

use std::sync::Arc;
use std::time::Duration;

use engine::failure::Failure;
use wire::{ConnectOptions, Connection};

use super::settings::{Annotations, BinlogChoice, set_up};
use crate::mysql::rows::quirks::TableQuirks;
use crate::mysql::rows::{self, RowsAs};
use crate::mysql::server::errors::failed;
use crate::mysql::server::info::TargetInfo;

pub struct Connector {
    options: ConnectOptions,
    info: TargetInfo,
    logged: BinlogChoice,
    annotations: Annotations,
}

impl Connector {
    pub fn logged(&self) -> BinlogChoice {
        self.logged
    }

    pub fn new(options: ConnectOptions, info: TargetInfo, logged: BinlogChoice) -> Self {
        Self { options, info, logged, annotations: Annotations::default() }
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
        let mut options = self.options.clone();
        options.limits.connect_timeout = patience;
        options.limits.read_timeout = Some(patience);
        self.connect_with(&options)
    }

    fn connect_with(&self, options: &ConnectOptions) -> Result<Connection, Failure> {
        let connect = || {
            let mut connection = Connection::connect(options).map_err(failed)?;
            set_up(&mut connection, &self.info, self.logged)?;
            self.annotations.leave_out(&mut connection, &self.info)?;
            Ok(connection)
        };
        connect().map_err(|failure: Failure| Failure {
            message: format!("target {}: {}", self.address(), failure.message),
            ..failure
        })
    }
}
