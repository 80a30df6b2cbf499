//! Which column of the target's table is of another type than the source's rows: for errors of a server that do not say it. Asks for the definition;
//! decides nothing.

use binlog::{Column, ColumnKind, TableMap};
use wire::{Connection, Row};

use crate::mysql::server::sql::quote;

/// So many columns are named.
const NAMED_MAX: usize = 3;

/// What is named of these tables: `d.t: column v is varchar(5) on the target and VARCHAR(200 bytes) in the source's log`. Empty: nothing differs, or the
/// target does not say.
pub fn named<'a>(connection: &mut Connection, maps: impl Iterator<Item = &'a TableMap>) -> String {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    let mut named = Vec::new();
    for map in maps {
        let name = (map.schema.as_str(), map.table.as_str());
        if !seen.contains(&name) {
            seen.push(name);
            named.extend(of_table(connection, map));
        }
    }
    named.join("; ")
}

fn of_table(connection: &mut Connection, map: &TableMap) -> Option<String> {
    let sql = format!(
        "SELECT COLUMN_NAME, COLUMN_TYPE, DATA_TYPE, CHARACTER_OCTET_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION \
         FROM information_schema.COLUMNS WHERE TABLE_SCHEMA={} AND TABLE_NAME={} ORDER BY ORDINAL_POSITION",
        quote(&map.schema),
        quote(&map.table)
    );
    let rows = connection.rows(sql).ok()?;
    let has_generated_key = |row: &Row| matches!(row.text(0), Ok(Some("my_row_id")));
    let is_without_key =
        map.flags & TableMap::FLAG_GENERATED_KEY != 0 && rows.first().is_some_and(|row| !has_generated_key(row));
    let columns = map.columns.iter().skip(usize::from(is_without_key));
    let differing: Vec<String> =
        columns.zip(&rows).filter_map(|(column, row)| differs(column, row)).take(NAMED_MAX).collect();
    (!differing.is_empty()).then(|| format!("{}.{}: {}", map.schema, map.table, differing.join(", ")))
}

fn differs(column: &Column, row: &Row) -> Option<String> {
    let text = |at: usize| row.text(at).ok().flatten();
    let number = |at: usize| row.parse::<u64>(at).ok().flatten();
    let target =
        Target { data_type: text(2)?, octets: number(3), precision: number(4), scale: number(5), fraction: number(6) };
    (!target.is_like(column)).then(|| {
        format!(
            "column {} is {} on the target and {} in the source's log",
            text(0).unwrap_or("?"),
            text(1).unwrap_or("?"),
            shown(column)
        )
    })
}

/// A column as `information_schema.COLUMNS` describes it.
struct Target<'a> {
    data_type: &'a str,
    octets: Option<u64>,
    precision: Option<u64>,
    scale: Option<u64>,
    fraction: Option<u64>,
}

impl Target<'_> {
    /// Whether the source's is of that type, as far as this is known here.
    fn is_like(&self, column: &Column) -> bool {
        let kind = column.real_kind();
        let is_blob = |bytes: u16| {
            matches!(kind, ColumnKind::BLOB | ColumnKind::BLOB_COMPRESSED) && (column.meta == bytes || column.meta == 0)
        };
        let has_fraction = |new: ColumnKind| kind != new || self.fraction == Some(u64::from(column.meta));
        match self.data_type.to_ascii_lowercase().as_str() {
            "tinyint" => kind == ColumnKind::TINY,
            "smallint" => kind == ColumnKind::SHORT,
            "mediumint" => kind == ColumnKind::INT24,
            "int" => kind == ColumnKind::LONG,
            "bigint" => kind == ColumnKind::LONGLONG,
            "float" => kind == ColumnKind::FLOAT,
            "double" => kind == ColumnKind::DOUBLE,
            "decimal" => {
                let digits = (u64::from(column.meta >> 8), u64::from(column.meta & 0xff));
                kind == ColumnKind::NEWDECIMAL && (self.precision, self.scale) == (Some(digits.0), Some(digits.1))
            }
            "year" => kind == ColumnKind::YEAR,
            "date" => matches!(kind, ColumnKind::DATE | ColumnKind::NEWDATE),
            "time" => matches!(kind, ColumnKind::TIME | ColumnKind::TIME2) && has_fraction(ColumnKind::TIME2),
            "datetime" => {
                matches!(kind, ColumnKind::DATETIME | ColumnKind::DATETIME2) && has_fraction(ColumnKind::DATETIME2)
            }
            "timestamp" => {
                matches!(kind, ColumnKind::TIMESTAMP | ColumnKind::TIMESTAMP2) && has_fraction(ColumnKind::TIMESTAMP2)
            }
            "bit" => {
                let bits = u64::from(column.meta >> 8) * 8 + u64::from(column.meta & 0xff);
                kind == ColumnKind::BIT && self.precision.is_none_or(|precision| precision == bits)
            }
            "enum" => kind == ColumnKind::ENUM,
            "set" => kind == ColumnKind::SET,
            "char" | "binary" => kind == ColumnKind::STRING && self.octets == Some(u64::from(column.max_len())),
            "varchar" | "varbinary" => {
                matches!(kind, ColumnKind::VARCHAR | ColumnKind::VARCHAR_COMPRESSED)
                    && self.octets == Some(u64::from(column.meta))
            }
            "tinytext" | "tinyblob" => is_blob(1),
            "text" | "blob" => is_blob(2),
            "mediumtext" | "mediumblob" => is_blob(3),
            "longtext" | "longblob" => is_blob(4),
            "json" => kind == ColumnKind::JSON,
            // Others are left out rather than named wrongly.
            _ => true,
        }
    }
}

/// The type as the log has it.
fn shown(column: &Column) -> String {
    let kind = column.real_kind();
    match kind {
        ColumnKind::VARCHAR | ColumnKind::VARCHAR_COMPRESSED => format!("{}({} bytes)", kind.name(), column.meta),
        ColumnKind::STRING => format!("CHAR({} bytes)", column.max_len()),
        ColumnKind::NEWDECIMAL => format!("DECIMAL({},{})", column.meta >> 8, column.meta & 0xff),
        ColumnKind::TIME2 | ColumnKind::DATETIME2 | ColumnKind::TIMESTAMP2 => {
            format!("{}({})", kind.name().trim_end_matches('2'), column.meta)
        }
        ColumnKind::BLOB | ColumnKind::BLOB_COMPRESSED => {
            let name = match column.meta {
                1 => "TINYBLOB or TINYTEXT",
                2 => "BLOB or TEXT",
                3 => "MEDIUMBLOB or MEDIUMTEXT",
                _ => "LONGBLOB or LONGTEXT",
            };
            name.to_owned()
        }
        ColumnKind::TINY => "TINYINT".to_owned(),
        ColumnKind::SHORT => "SMALLINT".to_owned(),
        ColumnKind::INT24 => "MEDIUMINT".to_owned(),
        ColumnKind::LONG => "INT".to_owned(),
        ColumnKind::LONGLONG => "BIGINT".to_owned(),
        kind => kind.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_seen() {
        let check = |data_type, octets, precision, scale, fraction, column: (ColumnKind, u16), is_like| {
            let target = Target { data_type, octets, precision, scale, fraction };
            let column = Column::new(column.0, column.1, true);
            assert_eq!(target.is_like(&column), is_like, "{data_type} {}", shown(&column));
        };
        check("int", None, Some(10), Some(0), None, (ColumnKind::LONG, 0), true);
        check("bigint", None, Some(19), Some(0), None, (ColumnKind::LONG, 0), false);
        check("varchar", Some(200), None, None, None, (ColumnKind::VARCHAR, 200), true);
        check("varchar", Some(20), None, None, None, (ColumnKind::VARCHAR, 200), false);
        check("datetime", None, None, None, Some(0), (ColumnKind::VARCHAR, 200), false);
        check("datetime", None, None, None, Some(3), (ColumnKind::DATETIME2, 3), true);
        check("datetime", None, None, None, Some(0), (ColumnKind::DATETIME2, 3), false);
        check("decimal", None, Some(9), Some(3), None, (ColumnKind::NEWDECIMAL, 9 << 8 | 3), true);
        check("decimal", None, Some(9), Some(2), None, (ColumnKind::NEWDECIMAL, 9 << 8 | 3), false);
        check("text", Some(65535), None, None, None, (ColumnKind::BLOB, 2), true);
        check("text", Some(65535), None, None, None, (ColumnKind::BLOB, 4), false);
        check("inet6", None, None, None, None, (ColumnKind::STRING, 0xfe10), true);
    }

    #[test]
    fn types_are_named() {
        assert_eq!(shown(&Column::new(ColumnKind::VARCHAR, 200, true)), "VARCHAR(200 bytes)");
        assert_eq!(shown(&Column::new(ColumnKind::DATETIME2, 3, true)), "DATETIME(3)");
        assert_eq!(shown(&Column::new(ColumnKind::BLOB, 4, true)), "LONGBLOB or LONGTEXT");
    }
}
