//! Columns as table maps describe them: the type and the collation's number, without a server to ask.

use binlog::ColumnKind;

use super::{DataType, KeyClass, classify, numbered};

/// How values of a logged column become comparable. Without a collation (older servers log none) a string may be
/// binary or text: not known.
pub fn key_class(column: &binlog::Column) -> KeyClass {
    let (charset, collation) = column.collation.and_then(numbered::name).unwrap_or_default();
    match data_type(column) {
        DataType::Char | DataType::VarChar | DataType::Text if charset.is_empty() => KeyClass::Coarse,
        data_type => classify(&data_type, charset, collation),
    }
}

/// The type of a logged column.
pub fn data_type(column: &binlog::Column) -> DataType {
    let int = |bytes| DataType::Int { bytes, unsigned: column.unsigned == Some(true) };
    match column.real_kind() {
        ColumnKind::TINY => int(1),
        ColumnKind::SHORT => int(2),
        ColumnKind::INT24 => int(3),
        ColumnKind::LONG => int(4),
        ColumnKind::LONGLONG => int(8),
        ColumnKind::FLOAT => DataType::Float,
        ColumnKind::DOUBLE => DataType::Double,
        ColumnKind::NEWDECIMAL => DataType::Decimal,
        ColumnKind::BIT => DataType::Bit,
        ColumnKind::YEAR => DataType::Year,
        ColumnKind::DATE | ColumnKind::NEWDATE => DataType::Date,
        ColumnKind::TIME | ColumnKind::TIME2 => DataType::Time,
        ColumnKind::DATETIME | ColumnKind::DATETIME2 => DataType::DateTime,
        ColumnKind::TIMESTAMP | ColumnKind::TIMESTAMP2 => DataType::Timestamp,
        ColumnKind::ENUM => DataType::Enum,
        ColumnKind::SET => DataType::Set,
        ColumnKind::STRING => DataType::Char,
        ColumnKind::VARCHAR | ColumnKind::VAR_STRING => DataType::VarChar,
        ColumnKind::TINY_BLOB | ColumnKind::BLOB | ColumnKind::MEDIUM_BLOB | ColumnKind::LONG_BLOB => DataType::Text,
        ColumnKind::JSON => DataType::Json,
        ColumnKind::GEOMETRY => DataType::Geometry,
        ColumnKind::VECTOR => DataType::Vector,
        _ => DataType::Other,
    }
}
