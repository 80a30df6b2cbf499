//! Values of the generated rows, as SQL. They repeat often, so that rows collide.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::{KeyKind, Table};

pub const WORDS: [&str; 14] = ["a", "A", "a ", "b", "B", "ab", "AB", "aB ", "c", "z", "Z", "", "zz", "x y"];

/// Of a column of this type.
pub fn value(random: &mut StdRng, kind: &str) -> String {
    if random.random_bool(0.1) {
        return "NULL".to_owned();
    }
    let number = random.random_range(0..100);
    match kind.split(['(', ' ']).next().unwrap_or(kind) {
        "VARCHAR" | "CHAR" => format!("'{}'", WORDS.choose(random).unwrap_or(&"a")),
        "TEXT" | "MEDIUMTEXT" => {
            format!("REPEAT('{}', {})", WORDS.choose(random).unwrap_or(&"a"), random.random_range(0..400))
        }
        "BLOB" | "VARBINARY" => format!("X'{:02x}{:02x}00ff'", number, random.random_range(0..256)),
        "DATETIME" | "TIMESTAMP" => format!("'20{:02}-03-04 05:06:{:02}.{:03}'", number % 30, number % 60, number),
        "DATE" => format!("'19{number:02}-12-31'"),
        "TIME" => format!("'{}:10:20.{}'", number * 8, number % 10),
        "YEAR" => format!("{}", 1950 + number),
        "ENUM" => "'b'".to_owned(),
        "SET" => "'x,z'".to_owned(),
        "DECIMAL" => format!("-{number}.{number:03}"),
        "DOUBLE" => format!("{number}.25e{}", number % 20),
        "JSON" => {
            format!("'{{\"a\": {number}, \"b\": [1, \"{}\"], \"long\": \"{}\"}}'", number % 7, "x".repeat(number))
        }
        _ => number.to_string(),
    }
}

/// Of the table's key.
pub fn key(random: &mut StdRng, table: &Table) -> String {
    let number = random.random_range(0..60);
    match table.key {
        KeyKind::Text => format!("'{}{}'", WORDS.choose(random).unwrap_or(&"a"), number % 6),
        KeyKind::NullableUnique if number % 8 == 0 => "NULL".to_owned(),
        _ => number.to_string(),
    }
}
