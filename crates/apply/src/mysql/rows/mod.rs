//! How rows get into the target's tables: one trait, and the one place that chooses its implementation.
//!
//! Who writes rows knows batches and this trait. What the rows look like on their way is known in the implementation's folder alone.

pub(in crate::mysql) mod ambiguous_rows;
pub(in crate::mysql) mod binlog_statement;
pub(in crate::mysql) mod blackholes;
pub(in crate::mysql) mod hidden_keys;
pub(in crate::mysql) mod hidden_triggers;
pub(in crate::mysql) mod images;
pub(in crate::mysql) mod quirks;
pub(in crate::mysql) mod row_end;
pub(in crate::mysql) mod sequences;
pub(in crate::mysql) mod sql;
pub(in crate::mysql) mod table_mapping;
pub(in crate::mysql) mod writer;

use std::sync::Arc;

use self::binlog_statement::BinlogStatements;
pub use self::hidden_triggers::HiddenTriggers;
use self::quirks::TableQuirks;
use self::sql::{SqlStatements, Writes};
use self::writer::RowWriter;
pub use self::writer::{CompareBefore, RowsAs};
use super::server::info::TargetInfo;

/// The writer for a target. The only place that chooses one.
pub fn writer(info: &TargetInfo, quirks: &Arc<TableQuirks>) -> Box<dyn RowWriter> {
    match quirks.rows_as {
        RowsAs::Binlog => binlog_writer(info, quirks),
        RowsAs::Sql(compare) => Box::new(SqlStatements::new(info, Arc::clone(quirks), Writes::Exactly(compare))),
        RowsAs::Overwriting => Box::new(SqlStatements::new(info, Arc::clone(quirks), Writes::Overwriting)),
    }
}

/// For what can only be `BINLOG` statements.
pub fn binlog_writer(info: &TargetInfo, quirks: &Arc<TableQuirks>) -> Box<dyn RowWriter> {
    Box::new(BinlogStatements::new(info, Arc::clone(quirks)))
}
