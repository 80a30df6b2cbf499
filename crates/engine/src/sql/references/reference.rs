//! What a text names: tables, columns' qualifiers, routines, each with its place. Only data.

use std::ops::Range;

use super::super::named_object::NamedObject;

/// What a text names.
#[derive(Clone, Debug, Default)]
pub struct References {
    pub tables: Vec<TableReference>,
    /// What stands in front of a column.
    pub qualifiers: Vec<Qualifier>,
    /// Functions that a schema is written for, and procedures.
    pub routines: Vec<NamedObject>,
    /// The first function without a schema that is not one of the servers' own: it may be a stored one of the session's schema.
    pub unknown_function: Option<String>,
    /// Names that tables have within the statement.
    pub aliases: Vec<String>,
    /// What a DELETE of several tables names as its targets: tables, or their aliases.
    pub targets: Vec<NamedObject>,
}

/// A name where a table stands.
#[derive(Clone, Debug)]
pub struct TableReference {
    pub named: NamedObject,
    pub has_alias: bool,
    /// The statement may change its rows.
    pub is_changed: bool,
}

/// `table.column` or `schema.table.column`, perhaps with `*` for the column. The first may also be an alias, or a variable of a program.
#[derive(Clone, Debug)]
pub struct Qualifier {
    /// Each with its token.
    pub schema: Option<(String, Range<usize>)>,
    pub table: (String, Range<usize>),
}
