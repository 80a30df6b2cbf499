//! Columns of the log's rows that a server has made by itself.

use binlog::TableMap;

/// What the log says of a table's rows beside their columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mysql) enum HiddenColumn {
    Nothing,
    /// MySQL's `my_row_id`, a primary key that the server has made (`sql_generate_invisible_primary_key`).
    GeneratedKey,
}

impl HiddenColumn {
    /// As its table map says it.
    pub fn of(map: &TableMap) -> Self {
        if map.flags & TableMap::FLAG_GENERATED_KEY == 0 { Self::Nothing } else { Self::GeneratedKey }
    }
}
