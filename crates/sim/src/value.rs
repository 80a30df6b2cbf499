//! Column values and rows, and their text as the server's client prints it.

use std::sync::Arc;

/// A column's type, as far as the generated tables need one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// SMALLINT UNSIGNED
    SmallUnsigned,
    /// INT
    Int,
    /// INT UNSIGNED
    IntUnsigned,
    /// BIGINT
    Big,
    /// BIGINT UNSIGNED
    BigUnsigned,
    /// DECIMAL(precision, scale); at most 18 digits, so that a value fits an `i64`.
    Decimal { precision: u8, scale: u8 },
    /// VARCHAR of so many characters, utf8mb4 under `utf8mb4_bin`: MySQL and MariaDB both have that collation.
    Varchar(u16),
    /// TIMESTAMP(6)
    Timestamp,
}

/// One value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Null,
    Int(i64),
    Uint(u64),
    /// In units of the last digit of its column's scale.
    Decimal(i64),
    Text(String),
    /// Microseconds since 1970.
    Timestamp(u64),
}

/// The values of a row, in the order of the table's columns. Shared: the after image of a change is the before image
/// of the next.
pub type Row = Arc<[Value]>;

/// A primary key of one or two unsigned columns; the second is 0 when there is only one.
pub type Key = [u64; 2];

impl Value {
    /// The value as the client prints it, with the session's time zone at UTC.
    pub fn text(&self, of: Type) -> String {
        match self {
            Value::Null => "NULL".to_owned(),
            Value::Int(value) => value.to_string(),
            Value::Uint(value) => value.to_string(),
            Value::Decimal(units) => {
                let scale = if let Type::Decimal { scale, .. } = of { usize::from(scale) } else { 0 };
                let sign = if *units < 0 { "-" } else { "" };
                let digits = format!("{:0>width$}", units.unsigned_abs(), width = scale + 1);
                match digits.split_at_checked(digits.len() - scale) {
                    Some((whole, fraction)) if scale > 0 => format!("{sign}{whole}.{fraction}"),
                    _ => format!("{sign}{digits}"),
                }
            }
            Value::Text(text) => text.clone(),
            Value::Timestamp(us) => timestamp(*us),
        }
    }
}

fn timestamp(us: u64) -> String {
    let time = i64::try_from(us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    // The generator's times are those of a day; a number is text, too.
    time.map_or_else(|| us.to_string(), |time| time.strftime("%F %T.%6f").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_the_client_does() {
        let money = Type::Decimal { precision: 14, scale: 2 };
        for (value, of, text) in [
            (Value::Null, money, "NULL"),
            (Value::Decimal(0), money, "0.00"),
            (Value::Decimal(-5), money, "-0.05"),
            (Value::Decimal(123_456), money, "1234.56"),
            (Value::Decimal(7), Type::Decimal { precision: 5, scale: 0 }, "7"),
            (Value::Int(-3), Type::Big, "-3"),
            (Value::Timestamp(0), Type::Timestamp, "1970-01-01 00:00:00.000000"),
            (Value::Timestamp(1_767_225_599_000_001), Type::Timestamp, "2025-12-31 23:59:59.000001"),
            (Value::Timestamp(1_709_164_800_000_000), Type::Timestamp, "2024-02-29 00:00:00.000000"),
        ] {
            assert_eq!(value.text(of), text);
        }
    }
}
