//! MySQL: a column whose default is not deterministic is added only where statements are logged.
//!
//! Heddle's sessions log rows. Where the target's own format is STATEMENT, its own applier would add such a column: so does this. Nothing else is
//! executed in that format.

use binlog::Flavour;
use engine::failure::Failure;
use engine::sql::{Class, DdlKind};
use engine::transaction::StatementItem;

use crate::mysql::server::errors::failed;
use crate::mysql::server::info::{BinlogFormat, TargetInfo};
use crate::mysql::session::connection::ChannelConnection;

/// How the statement is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementFormat {
    AsAlways,
    AsStatement,
}

fn may_help(target: &TargetInfo, statement: &StatementItem) -> bool {
    target.flavour == Flavour::MySql
        && target.version >= (8, 0, 13)
        && target.log_bin
        && target.binlog_format == BinlogFormat::Statement
        && matches!(statement.class.class, Class::Ddl { kind: DdlKind::AlterTable })
}

pub fn begin(connection: &mut ChannelConnection, statement: &StatementItem) -> Result<StatementFormat, Failure> {
    if !may_help(connection.info(), statement) {
        return Ok(StatementFormat::AsAlways);
    }
    connection.send()?;
    match connection.wire.execute_repeatable("SET SESSION binlog_format='STATEMENT'") {
        Ok(_) => Ok(StatementFormat::AsStatement),
        Err(error) if error.is_connection_lost() => Err(failed(error)),
        // Not while there are temporary tables. Most statements do not need it; one that does will say so.
        Err(_) => Ok(StatementFormat::AsAlways),
    }
}

pub fn end(connection: &mut ChannelConnection, logged: StatementFormat) -> Result<(), Failure> {
    match logged {
        StatementFormat::AsStatement => connection.execute_despite_interruption("SET SESSION binlog_format='ROW'"),
        StatementFormat::AsAlways => Ok(()),
    }
}
