//! Where rows are read, and where the log is: one server, or two that have their transactions in common.

use apply::mysql::server::errors::failed;
use binlog::Flavour;
use channel::start::source_state::SourceState;
use engine::failure::Failure;
use wire::{ConnectOptions, Connection, Error};

/// The source of a copy.
#[derive(Clone, Copy, Debug)]
pub struct CopySource<'a> {
    pub log: &'a ConnectOptions,
    /// `None`: that server, too.
    pub rows: Option<&'a ConnectOptions>,
}

impl<'a> CopySource<'a> {
    pub fn rows(&self) -> &'a ConnectOptions {
        self.rows.unwrap_or(self.log)
    }

    /// `None`: the rows' server has it.
    pub fn log_elsewhere(&self) -> Option<&'a ConnectOptions> {
        self.rows.map(|_| self.log)
    }

    /// Of the log: places are places in it.
    pub fn identity(&self) -> Result<String, Error> {
        wire::source::identity(&mut Connection::connect(self.log)?)
    }

    /// Why the rows' server does not go with the log; `None`: it does. `log`: of the other one.
    pub fn problem(&self, rows: &mut Connection, log: &SourceState) -> Result<Option<String>, Failure> {
        if self.log_elsewhere().is_none() {
            return Ok(None);
        }
        let is_mariadb = rows.server().is_mariadb();
        if is_mariadb != (log.flavour == Flavour::MariaDb) {
            return Ok(Some("--rows-from: MySQL and MariaDB do not have each other's GTIDs".to_owned()));
        }
        if !is_mariadb {
            return Ok((!log.gtids).then(|| {
                "source: gtid_mode is not ON: rows and log of two servers have only GTIDs in common".to_owned()
            }));
        }
        let logs = rows.scalar("SELECT @@global.log_bin AND @@global.log_slave_updates").map_err(failed)?;
        let is_replica = !rows.scalar("SELECT @@global.gtid_slave_pos").map_err(failed)?.unwrap_or_default().is_empty();
        Ok((is_replica && logs.as_deref() != Some("1")).then(|| {
            "--rows-from: that server does not log what it applies (log_bin, log_slave_updates): where its reads lie in the log is not known".to_owned()
        }))
    }
}
