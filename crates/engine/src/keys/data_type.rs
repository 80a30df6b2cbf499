//! Column types, as far as the equality of their values needs to tell them apart.

/// A column's type. Lengths are left out: they do not change what is equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// TINYINT … BIGINT and BOOL; `bytes` is 1, 2, 3, 4 or 8.
    Int {
        bytes: u8,
        unsigned: bool,
    },
    Float,
    Double,
    Decimal,
    Bit,
    Year,
    Date,
    Time,
    DateTime,
    Timestamp,
    Char,
    VarChar,
    Text,
    /// BINARY(n): fixed length, filled up with zero bytes.
    Binary,
    VarBinary,
    Blob,
    Enum,
    Set,
    Json,
    Geometry,
    Vector,
    /// MariaDB's types of fixed binary length.
    Inet4,
    Inet6,
    Uuid,
    /// Whatever is not above.
    Other,
}

impl DataType {
    /// Reads a type as `information_schema.columns.column_type` and SHOW CREATE TABLE write it, such as
    /// `int(10) unsigned` or `varchar(20)`; also synonyms that people write in DDL.
    pub fn from_column_type(text: &str) -> Self {
        let text = text.trim().to_ascii_lowercase();
        let name_end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
        let (name, rest) = text.split_at(name_end);
        let words = || rest.split(|c: char| !c.is_ascii_alphanumeric());
        let unsigned = words().any(|word| matches!(word, "unsigned" | "zerofill"));
        let int = |bytes| Self::Int { bytes, unsigned };
        // Words behind a type's name that make another type of it.
        let second = rest.split_whitespace().next().unwrap_or_default();
        let varying = second == "varying" || second.starts_with("varying(");
        match name {
            "tinyint" | "bool" | "boolean" | "int1" => int(1),
            "smallint" | "int2" => int(2),
            "mediumint" | "middleint" | "int3" => int(3),
            "int" | "integer" | "int4" => int(4),
            "bigint" | "int8" => int(8),
            "serial" => Self::Int { bytes: 8, unsigned: true },
            "float" => match float_precision(rest) {
                Some(bits) if bits > 24 => Self::Double,
                _ => Self::Float,
            },
            "float4" => Self::Float,
            "double" | "float8" => Self::Double,
            "decimal" | "numeric" | "dec" | "fixed" => Self::Decimal,
            "bit" => Self::Bit,
            "year" => Self::Year,
            "date" => Self::Date,
            "time" => Self::Time,
            "datetime" => Self::DateTime,
            "timestamp" => Self::Timestamp,
            "char" | "character" | "nchar" if varying => Self::VarChar,
            "national" if words().any(|word| matches!(word, "varchar" | "varying" | "varcharacter")) => Self::VarChar,
            "char" | "character" | "nchar" | "national" => Self::Char,
            "varchar" | "varchar2" | "varcharacter" | "nvarchar" => Self::VarChar,
            "tinytext" | "text" | "mediumtext" | "longtext" | "clob" => Self::Text,
            "binary" => Self::Binary,
            "varbinary" | "raw" => Self::VarBinary,
            "tinyblob" | "blob" | "mediumblob" | "longblob" => Self::Blob,
            "long" if rest.contains("varbinary") => Self::Blob,
            "long" => Self::Text,
            "enum" => Self::Enum,
            "set" => Self::Set,
            "json" => Self::Json,
            "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring" | "multipolygon"
            | "geometrycollection" | "geomcollection" => Self::Geometry,
            "vector" => Self::Vector,
            "inet4" => Self::Inet4,
            "inet6" => Self::Inet6,
            "uuid" => Self::Uuid,
            // REAL is FLOAT under REAL_AS_FLOAT, which the text does not say.
            _ => Self::Other,
        }
    }
}

/// FLOAT(p) with more than 24 bits is a DOUBLE; FLOAT(m,d) stays one.
fn float_precision(rest: &str) -> Option<u32> {
    let inner = rest.trim_start().strip_prefix('(')?.split(')').next()?;
    inner.trim().parse().ok()
}
