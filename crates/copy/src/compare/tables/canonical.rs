//! One form for a value, whatever the vendor, the version and the definition: SQL expressions that give equal bytes on both servers exactly when the
//! values are equal. Pure. docs/compare.md has the same as a table.
//!
//! Expressions are evaluated in sessions with `time_zone='+00:00'`, `sql_mode=''` and the connection's character set utf8mb4.

use apply::mysql::server::sql::identifier;
use binlog::Flavour;

use super::definition::ColumnDefinition;

/// Longer values enter a digest by their own SHA-256: a row's text stays below the limits of `CONCAT` and `GROUP_CONCAT`.
const PLAIN_OCTETS_MAX: u64 = 4096;

/// Types whose values can be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Integers, BIT, YEAR.
    Integer,
    Decimal,
    /// FLOAT, DOUBLE.
    Real,
    Date,
    Time,
    /// DATETIME, TIMESTAMP.
    Moment,
    Text,
    Bytes,
    /// ENUM, SET.
    Members,
    /// MySQL's; MariaDB's is text.
    Json,
    Geometry,
    Vector,
    /// Types of MariaDB alone, by their text: UUID, INET4, INET6.
    Printed,
}

pub fn family(column: &ColumnDefinition) -> Family {
    match column.data_type.as_str() {
        "tinyint" | "smallint" | "mediumint" | "int" | "integer" | "bigint" | "year" | "bit" => Family::Integer,
        "decimal" | "numeric" => Family::Decimal,
        "float" | "double" | "real" => Family::Real,
        "date" => Family::Date,
        "time" => Family::Time,
        "datetime" | "timestamp" => Family::Moment,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => Family::Text,
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Family::Bytes,
        "enum" | "set" => Family::Members,
        "json" => Family::Json,
        "vector" => Family::Vector,
        "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring" | "multipolygon"
        | "geometrycollection" | "geomcollection" => Family::Geometry,
        _ => Family::Printed,
    }
}

/// How a value enters the text of its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text of a number or a time: it has no comma, and no N.
    Plain(String),
    /// Any bytes.
    Bytes(String),
    /// Any bytes, too many to be put into a row's text.
    Long(String),
}

/// Whether a column has NULLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    Never,
    Possible,
}

impl Nulls {
    pub fn of(column: &ColumnDefinition) -> Self {
        if column.nullable { Self::Possible } else { Self::Never }
    }
}

impl Piece {
    pub fn expression(&self) -> &str {
        match self {
            Self::Plain(sql) | Self::Bytes(sql) | Self::Long(sql) => sql,
        }
    }

    /// Arguments of a `CONCAT`, none of them NULL. What they give can be read back from left to right: two rows with the same text have the same values, a
    /// value cannot run into its neighbour, and NULL is not the empty string.
    pub fn arguments(&self, nulls: Nulls) -> Vec<String> {
        let or = |sql: String, other: &str| match nulls {
            Nulls::Possible => format!("IFNULL({sql},{other})"),
            Nulls::Never => sql,
        };
        match self {
            Self::Plain(sql) => vec![or(sql.clone(), "'N'"), "','".to_owned()],
            Self::Bytes(sql) => {
                vec![or(format!("LENGTH({sql})"), "'N'"), "':'".to_owned(), or(sql.clone(), "''")]
            }
            Self::Long(sql) => vec![or(format!("SHA2({sql},256)"), "'N'"), "','".to_owned()],
        }
    }
}

/// How two columns are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// On the servers: the same kind of piece on both.
    Digest { source: Piece, target: Piece },
    /// The servers print equal values differently: they are fetched.
    Fetched { source: String, target: String, kind: FetchedKind },
}

/// What is compared of texts that were fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchedKind {
    /// JSON, as documents.
    Document,
    /// [`real`], as numbers.
    Real,
}

/// What values are printed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printer {
    pub flavour: Flavour,
    pub major: u16,
    pub minor: u16,
}

/// utf8 is utf8mb4 without some characters, and ascii utf8 without some: equal text has equal bytes.
fn text_encoding(column: &ColumnDefinition) -> &str {
    match column.charset.as_deref() {
        Some("utf8" | "utf8mb3" | "utf8mb4" | "ascii") => "utf8mb4",
        Some(other) => other,
        None => "binary",
    }
}

fn in_utf8(sql: &str) -> String {
    format!("CAST(CONVERT({sql} USING utf8mb4) AS BINARY)")
}

fn sized(sql: String, octets: u64) -> Piece {
    if octets > PLAIN_OCTETS_MAX { Piece::Long(sql) } else { Piece::Bytes(sql) }
}

/// The text of a FLOAT or DOUBLE without loss. FLOAT alone prints six digits of its nine. MySQL prints no more than 22 characters, which are too few for a sign or a
/// small exponent beside 17 digits: so the sign stands before it, and a tiny number is multiplied by a power of two, which is exact. -0 is 0.
pub fn real(column: &ColumnDefinition) -> String {
    let sql = format!("ABS({}+0e0)", identifier(&column.name));
    format!(
        "CONCAT(IF({}<0,'-',''),IF({sql}<1e-99,CONCAT({sql}*POW(2,{TINY_SHIFT}),'b'),{sql}))",
        identifier(&column.name)
    )
}

/// See [`real`].
pub const TINY_SHIFT: i32 = 1000;

/// The form of a pair of columns, which have the same name.
pub fn form(source: &ColumnDefinition, target: &ColumnDefinition, printers: [Printer; 2]) -> Form {
    let (one, other) = (family(source), family(target));
    let prints_alike = printers[0] == printers[1];
    let is_document = |column: &ColumnDefinition, of: Family| {
        of == Family::Json || (of == Family::Text && column.octets >= u64::from(u16::MAX))
    };
    let has_json = one == Family::Json || other == Family::Json;
    if has_json && (one != other || !prints_alike) && is_document(source, one) && is_document(target, other) {
        let (source, target) = (in_utf8(&identifier(&source.name)), in_utf8(&identifier(&target.name)));
        return Form::Fetched { source, target, kind: FetchedKind::Document };
    }
    if is_real(one, other) && !prints_alike {
        return Form::Fetched { source: real(source), target: real(target), kind: FetchedKind::Real };
    }
    let octets = source.octets.max(target.octets);
    let of =
        |this: &ColumnDefinition, that: &ColumnDefinition, printer: Printer| piece(this, that, octets, printer.flavour);
    Form::Digest { source: of(source, target, printers[0]), target: of(target, source, printers[1]) }
}

/// Both are numbers, and one is a FLOAT or DOUBLE.
fn is_real(one: Family, other: Family) -> bool {
    let is_numeric = |family| matches!(family, Family::Integer | Family::Decimal | Family::Real);
    is_numeric(one) && is_numeric(other) && (one == Family::Real || other == Family::Real)
}

/// The piece of `this` column, beside `that` of the other server.
fn piece(this: &ColumnDefinition, that: &ColumnDefinition, octets: u64, flavour: Flavour) -> Piece {
    let sql = identifier(&this.name);
    let (family, other) = (family(this), family(that));
    match (family, other) {
        // A zerofill column prints zeros, BIT bytes, YEAR two digits or four: not as a number.
        (Family::Integer, Family::Integer) => Piece::Plain(number(this, sql)),
        // So many digits that both have all of theirs.
        (Family::Decimal | Family::Integer, Family::Decimal | Family::Integer) => {
            let digits = this.digits.max(that.digits);
            if this.digits == that.digits && !this.has_attribute("zerofill") {
                Piece::Plain(sql)
            } else {
                Piece::Plain(format!("CAST({} AS DECIMAL(65,{digits}))", number(this, sql)))
            }
        }
        _ if is_real(family, other) => Piece::Plain(real(this)),
        (Family::Date, Family::Date) => Piece::Plain(sql),
        (Family::Time, Family::Time) | (Family::Moment, Family::Moment) if this.digits == that.digits => {
            Piece::Plain(sql)
        }
        (Family::Time, Family::Time) => Piece::Plain(format!("CAST({sql} AS TIME(6))")),
        (Family::Moment | Family::Date, Family::Moment | Family::Date) => {
            Piece::Plain(format!("CAST({sql} AS DATETIME(6))"))
        }
        (Family::Text, Family::Text) if text_encoding(this) == text_encoding(that) => {
            sized(format!("CAST({sql} AS BINARY)"), octets)
        }
        (Family::Bytes, Family::Bytes) => sized(sql, octets),
        // The empty string that stands for an error has number 0.
        (Family::Members, Family::Members) if this.column_type == that.column_type => {
            Piece::Plain(format!("({sql}+0)"))
        }
        (Family::Geometry, Family::Geometry) | (Family::Vector, Family::Vector) => {
            Piece::Long(format!("CAST({sql} AS BINARY)"))
        }
        (Family::Json, Family::Json) => Piece::Long(format!("CAST({sql} AS CHAR CHARACTER SET utf8mb4)")),
        (Family::Bytes | Family::Geometry | Family::Vector, Family::Bytes | Family::Geometry | Family::Vector) => {
            Piece::Long(format!("CAST({sql} AS BINARY)"))
        }
        _ => printed(this, that, octets, flavour),
    }
}

/// By what the servers print.
fn printed(this: &ColumnDefinition, that: &ColumnDefinition, octets: u64, flavour: Flavour) -> Piece {
    let sql = identifier(&this.name);
    let is_long = |column: &ColumnDefinition| {
        !matches!(family(column), Family::Members | Family::Printed) && octets > PLAIN_OCTETS_MAX
    };
    let text = match (family(this), flavour) {
        // MariaDB compares its types by their text.
        (Family::Printed, Flavour::MariaDb) => format!("CAST({sql} AS CHAR)"),
        (Family::Integer, _) => number(this, sql),
        _ => sql,
    };
    if is_long(this) || is_long(that) { Piece::Long(in_utf8(&text)) } else { Piece::Bytes(in_utf8(&text)) }
}

/// The expression of an integer as a number.
pub fn number(column: &ColumnDefinition, sql: String) -> String {
    let is_printed_otherwise = matches!(column.data_type.as_str(), "bit" | "year") || column.has_attribute("zerofill");
    if is_printed_otherwise { format!("({sql}+0)") } else { sql }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tables::definition::ColumnDefinition;

    fn column(text: &str) -> ColumnDefinition {
        let (definition, charset) =
            text.split_once(" in ").map_or((text, None), |(left, set)| (left, Some(set.to_owned())));
        let data_type = definition.split(['(', ' ']).next().unwrap_or_default().to_owned();
        let inside = definition.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(inside, _)| inside);
        let numbers: Vec<u64> =
            inside.into_iter().flat_map(|text| text.split(',')).filter_map(|n| n.parse().ok()).collect();
        let last = numbers.last().copied().unwrap_or(0);
        let is_text = charset.is_some() || data_type.contains("blob") || data_type.contains("binary");
        let octets = match data_type.as_str() {
            "longtext" | "longblob" => u64::from(u32::MAX),
            _ if is_text => last * 4,
            _ => 0,
        };
        ColumnDefinition {
            name: "c".to_owned(),
            data_type: data_type.clone(),
            column_type: definition.to_owned(),
            charset,
            octets,
            digits: if matches!(data_type.as_str(), "decimal" | "time" | "datetime" | "timestamp") {
                last as u32
            } else {
                0
            },
            ..ColumnDefinition::default()
        }
    }

    fn check(source: &str, target: &str, expected: &str) {
        let [mysql, mariadb] =
            [Flavour::MySql, Flavour::MariaDb].map(|flavour| Printer { flavour, major: 10, minor: 0 });
        let found = match form(&column(source), &column(target), [mysql, mariadb]) {
            Form::Digest { source, target } => {
                assert_eq!(std::mem::discriminant(&source), std::mem::discriminant(&target), "{source:?} {target:?}");
                format!("{source:?} {target:?}")
            }
            Form::Fetched { kind, .. } => format!("{kind:?}"),
        };
        assert_eq!(found.replace(['"', '`'], ""), expected, "{source} | {target}");
    }

    #[test]
    fn forms() {
        check("int(11)", "bigint(20)", "Plain(c) Plain(c)");
        check("int(5) unsigned zerofill", "int(5) unsigned", "Plain((c+0)) Plain(c)");
        check("bit(9)", "bit(9)", "Plain((c+0)) Plain((c+0))");
        check("decimal(10,2)", "decimal(12,2)", "Plain(c) Plain(c)");
        check("decimal(10,2)", "decimal(12,4)", "Plain(CAST(c AS DECIMAL(65,4))) Plain(CAST(c AS DECIMAL(65,4)))");
        check("float", "double", "Real");
        check("datetime(3)", "timestamp(3)", "Plain(c) Plain(c)");
        check("datetime(3)", "datetime(6)", "Plain(CAST(c AS DATETIME(6))) Plain(CAST(c AS DATETIME(6)))");
        check("varchar(9) in utf8mb3", "varchar(9) in utf8mb4", "Bytes(CAST(c AS BINARY)) Bytes(CAST(c AS BINARY))");
        check("varchar(9) in latin1", "varchar(9) in latin1", "Bytes(CAST(c AS BINARY)) Bytes(CAST(c AS BINARY))");
        let both = "Bytes(CAST(CONVERT(c USING utf8mb4) AS BINARY))";
        check("varchar(9) in latin1", "varchar(9) in utf8mb4", &format!("{both} {both}"));
        check("longblob", "longblob", "Long(c) Long(c)");
        check("enum('a','b')", "enum('a','b')", "Plain((c+0)) Plain((c+0))");
        check("enum('a','b')", "enum('b','a')", &format!("{both} {both}"));
        check("json", "longtext in utf8mb4", "Document");
        check("json", "json", "Document");
        check("geometry", "geometry", "Long(CAST(c AS BINARY)) Long(CAST(c AS BINARY))");
        let uuid = "Bytes(CAST(CONVERT(CAST(c AS CHAR) USING utf8mb4) AS BINARY))";
        check("char(36) in utf8mb4", "uuid", &format!("{both} {uuid}"));
    }

    #[test]
    fn servers_that_print_alike_need_no_rows() {
        let printer = Printer { flavour: Flavour::MySql, major: 9, minor: 7 };
        for of in ["float", "double", "json"] {
            let same = form(&column(of), &column(of), [printer, printer]);
            assert!(matches!(same, Form::Digest { .. }), "{of}");
            let other = form(&column(of), &column(of), [printer, Printer { minor: 6, ..printer }]);
            assert!(matches!(other, Form::Fetched { .. }), "{of}");
        }
    }

    /// What the arguments give for a value, as the servers would.
    fn text(piece: &Piece, value: Option<&str>) -> String {
        match (piece, value) {
            (Piece::Plain(_), value) => format!("{},", value.unwrap_or("N")),
            (Piece::Bytes(_), value) => value.map_or("N:".to_owned(), |value| format!("{}:{value}", value.len())),
            (Piece::Long(_), _) => panic!("no text of a long value is made here"),
        }
    }

    #[test]
    fn different_rows_have_different_texts() {
        let (plain, bytes) = (Piece::Plain(String::new()), Piece::Bytes(String::new()));
        let values = [None, Some(""), Some("1"), Some("N"), Some(","), Some("1:1"), Some("N:"), Some("1,")];
        let numbers = [None, Some("1"), Some("11"), Some("-1")];
        let mut seen = std::collections::BTreeMap::new();
        for a in values {
            for b in numbers {
                for c in values {
                    let row = text(&bytes, a) + &text(&plain, b) + &text(&bytes, c);
                    assert_eq!(seen.insert(row.clone(), (a, b, c)), None, "{row}");
                }
            }
        }
    }
}
