//! How rows get into the target's tables.

pub(in crate::mysql) mod ambiguous_rows;
pub(in crate::mysql) mod binlog_statement;
pub(in crate::mysql) mod by_name;
pub(in crate::mysql) mod images;
pub(in crate::mysql) mod row_end;
pub(in crate::mysql) mod sequences;
