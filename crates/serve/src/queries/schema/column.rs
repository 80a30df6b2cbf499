//! What the source's version says of a column: its type, collation, nullability and key. It reads a definition and nothing else.

use engine::sql::create_table::{ColumnDefinition, GenerationKind, KeyDefinition, KeyPartDefinition, TableDefinition};
use wire::server::Cell;

use crate::inventory::SourceFacts;

/// As the source's version shows it: in small letters but for values of ENUM and SET, with its own word for the type and the length that nobody wrote.
pub(super) fn type_of(column: &ColumnDefinition, source: &SourceFacts) -> String {
    let mut out = String::with_capacity(column.type_text.len());
    let mut quote = None;
    for c in column.type_text.chars() {
        match quote {
            None if c == '\'' || c == '"' => quote = Some(c),
            Some(open) if open == c => quote = None,
            _ => {}
        }
        match quote {
            Some(_) => out.push(c),
            None if c.is_whitespace() && out.ends_with(['(', ',']) => {}
            None => out.extend(c.to_lowercase()),
        }
    }
    let end = out.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(out.len());
    let (name, rest) = out.split_at(end);
    let name = match name {
        "integer" | "int4" => "int",
        "bool" | "boolean" => "tinyint(1)",
        "dec" | "numeric" | "fixed" => "decimal",
        "character" if !rest.trim_start().starts_with("varying") => "char",
        "serial" => "bigint unsigned",
        name => name,
    };
    let has_length = rest.trim_start().starts_with('(') || name.contains('(');
    let shows_widths = source.is_mariadb() || !source.at_least(8, 0, 19);
    let length = match (name, column.unsigned) {
        _ if has_length => "",
        ("decimal", _) => "(10,0)",
        ("char" | "binary" | "bit", _) => "(1)",
        ("tinyint", false) if shows_widths => "(4)",
        ("tinyint", true) if shows_widths => "(3)",
        ("smallint", false) if shows_widths => "(6)",
        ("smallint", true) if shows_widths => "(5)",
        ("mediumint", false) if shows_widths => "(9)",
        ("mediumint", true) if shows_widths => "(8)",
        ("int", false) if shows_widths => "(11)",
        ("int", true) if shows_widths => "(10)",
        ("bigint", _) if shows_widths => "(20)",
        ("year", _) if shows_widths => "(4)",
        _ => "",
    };
    format!("{name}{length}{rest}")
}

/// What the definition says; of a table without a word, or of a column of another type: none.
pub(super) fn collation_of(table: &TableDefinition, column: &ColumnDefinition, source: &SourceFacts) -> Cell {
    use engine::keys::DataType::{Char, Enum, Set, Text, VarChar};
    if !matches!(column.data_type, Char | VarChar | Text | Enum | Set) {
        return None;
    }
    let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let of_charset = |text: &Option<String>| said(text).map(|charset| default_collation(&charset, source));
    said(&column.collation)
        .or_else(|| of_charset(&column.charset))
        .or_else(|| said(&table.collation))
        .or_else(|| of_charset(&table.charset))
}

/// The one that a character set has by itself.
pub(super) fn default_collation(charset: &str, source: &SourceFacts) -> String {
    match charset {
        "binary" => "binary".to_owned(),
        "latin1" => "latin1_swedish_ci".to_owned(),
        "gbk" | "gb2312" | "gb18030" | "big5" => format!("{charset}_chinese_ci"),
        "sjis" | "cp932" | "ujis" | "eucjpms" => format!("{charset}_japanese_ci"),
        "euckr" => "euckr_korean_ci".to_owned(),
        "utf8mb4" if !source.is_mariadb() && source.at_least(8, 0, 1) => "utf8mb4_0900_ai_ci".to_owned(),
        other => format!("{other}_general_ci"),
    }
}

/// A column of the primary key is not, whatever it says.
pub(super) fn is_nullable(table: &TableDefinition, column: &ColumnDefinition) -> bool {
    column.nullable && key_of(table, column) != "PRI"
}

/// `YES` or `NO`: whether a column takes NULL.
pub(super) fn nullable(table: &TableDefinition, column: &ColumnDefinition) -> String {
    if is_nullable(table, column) { "YES" } else { "NO" }.to_owned()
}

pub(super) fn charset_of(collation: &str) -> String {
    collation.split('_').next().unwrap_or_default().to_owned()
}

pub(super) fn extra(column: &ColumnDefinition) -> &'static str {
    match column.generated {
        _ if column.auto_increment => "auto_increment",
        Some(GenerationKind::Virtual) => "VIRTUAL GENERATED",
        Some(GenerationKind::Stored | GenerationKind::RowStart | GenerationKind::RowEnd) => "STORED GENERATED",
        None => "",
    }
}

pub(super) fn key_of(table: &TableDefinition, column: &ColumnDefinition) -> &'static str {
    let begins = |key: &KeyDefinition| matches!(key.parts.first(), Some(KeyPartDefinition::Column { name, .. }) if name.eq_ignore_ascii_case(&column.name));
    let is_in = |key: &KeyDefinition| {
        key.parts.iter().any(
            |part| matches!(part, KeyPartDefinition::Column { name, .. } if name.eq_ignore_ascii_case(&column.name)),
        )
    };
    if table.primary_key.as_ref().is_some_and(is_in) {
        return "PRI";
    }
    if table.unique_keys.iter().any(|key| key.parts.len() == 1 && begins(key)) {
        return "UNI";
    }
    if table.unique_keys.iter().chain(&table.other_keys).any(begins) { "MUL" } else { "" }
}

/// Each key with its name; whether it is unique.
pub(super) fn keys(table: &TableDefinition) -> impl Iterator<Item = (String, &KeyDefinition, bool)> {
    let primary = table.primary_key.iter().map(|key| ("PRIMARY".to_owned(), key, true));
    let named = |key: &KeyDefinition| key.name.clone().unwrap_or_default();
    let unique = table.unique_keys.iter().map(move |key| (named(key), key, true));
    let other = table.other_keys.iter().map(move |key| (named(key), key, false));
    primary.chain(unique).chain(other)
}
