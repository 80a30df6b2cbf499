//! How rows get into the target's tables: one trait, and the one place that chooses its implementation.
//!
//! Who writes rows knows batches and this trait. What the rows look like on their way is known in the implementation's folder alone.

pub(in crate::mysql) mod ambiguous_rows;
mod binlog_statement;
pub(in crate::mysql) mod blackholes;
pub(in crate::mysql) mod by_name;
pub(in crate::mysql) mod hidden_keys;
mod images;
pub(in crate::mysql) mod quirks;
pub(in crate::mysql) mod row_end;
pub(in crate::mysql) mod sequences;
pub(in crate::mysql) mod writer;

use std::sync::Arc;

use binlog::Flavour;

use self::binlog_statement::BinlogStatements;
use self::quirks::TableQuirks;
use self::writer::RowWriter;
use super::server::info::TargetInfo;

/// The writer for a target. The only place that chooses one.
pub fn writer(info: &TargetInfo, quirks: &Arc<TableQuirks>) -> Box<dyn RowWriter> {
    Box::new(BinlogStatements::new(info, Arc::clone(quirks)))
}

/// Any one of these privileges lets an account write rows through the writer.
pub fn privileges(flavour: Flavour) -> &'static [&'static str] {
    binlog_statement::privileges(flavour)
}
