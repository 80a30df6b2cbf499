//! What of a column is compared with a literal, byte for byte and without its collation.

use binlog::ColumnKind;

use super::table::{Form, SqlColumn};

/// The column's side of a comparison with a literal for [`super::literal::Use::Compare`]; `None`: its values are not compared.
///
/// `prefix`: what names the table, and a dot; or nothing.
pub fn side(column: &SqlColumn, logged: ColumnKind, prefix: &str) -> Option<String> {
    let name = &column.name;
    Some(match &column.form {
        Form::Number | Form::Approximate => format!("{prefix}{name}"),
        Form::Unsigned => format!("CAST({prefix}{name} AS UNSIGNED)"),
        // A JSON document that came as text is not the bytes that it was.
        Form::Json => (logged == ColumnKind::JSON).then(|| format!("{prefix}{name}"))?,
        Form::Text { .. } if logged == ColumnKind::JSON => return None,
        Form::Text { .. } | Form::Time | Form::Timestamp | Form::Bytes | Form::FixedBytes { .. } | Form::Geometry => {
            format!("CAST({prefix}{name} AS BINARY)")
        }
        Form::Address { .. } | Form::Uuid => format!("{prefix}{name}"),
        Form::Other => return None,
    })
}

/// Whether rows of several may be looked for by this column at once: a join finds them by an index then.
pub fn joins(column: &SqlColumn) -> bool {
    matches!(column.form, Form::Number | Form::Text { .. } | Form::Bytes | Form::FixedBytes { .. })
}
