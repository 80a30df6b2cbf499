//! One column of a CREATE TABLE or an ALTER TABLE: its type and its attributes.

use super::definition::{
    ColumnDefinition, ForeignKeyDefinition, GenerationKind, History, KeyDefinition, KeyPartDefinition, same,
};
use super::keys::{Element, enforced, references};
use super::options::{character_set, option_word};
use crate::keys::DataType;
use crate::sql::SqlMode;
use crate::sql::cursor::{Cursor, text};
use crate::sql::lexer::Kind;

/// A column, and the keys that its attributes make.
#[derive(Clone, Debug)]
pub(in crate::sql) struct ReadColumn {
    pub column: ColumnDefinition,
    pub elements: Vec<Element>,
}

/// Reads a column and what it says of itself, up to `,`, `)`, FIRST, AFTER or the end.
pub(in crate::sql) fn column(cursor: &mut Cursor<'_>, sql: &[u8], schema: &str, mode: SqlMode) -> Option<ReadColumn> {
    let name = cursor.ident()?;
    let start = cursor.peek().start;
    let type_name = text(cursor.take().text)?.to_ascii_lowercase();
    // Only these have further words before their length: TEXT CHARACTER SET … begins an attribute.
    let more: &[&'static str] = match type_name.as_str() {
        "national" | "long" => &["CHAR", "CHARACTER", "VARCHAR", "VARCHARACTER", "VARBINARY", "VARYING"],
        "char" | "character" | "nchar" => &["VARYING"],
        "double" => &["PRECISION"],
        _ => &[],
    };
    while cursor.eat_any(more).is_some() {}
    if cursor.is_punct(b'(') {
        cursor.skip_parens()?;
    }
    let mut unsigned = false;
    loop {
        if cursor.eat_any(&["UNSIGNED", "ZEROFILL"]).is_some() {
            unsigned = true;
        } else if !cursor.eat("SIGNED") {
            break;
        }
    }
    let type_text = cursor.decode(sql.get(start..cursor.end())?)?;
    let mut data_type = DataType::from_column_type(&type_text);
    if type_name == "real" {
        data_type = if mode.real_as_float { DataType::Float } else { DataType::Double };
    }
    if data_type == DataType::Other {
        return None;
    }
    let column = ColumnDefinition {
        name,
        unsigned: unsigned || type_name == "serial",
        nullable: type_name != "serial",
        auto_increment: type_name == "serial",
        type_text,
        data_type,
        charset: None,
        collation: None,
        generated: None,
        compressed: false,
    };
    let mut read = ReadColumn { column, elements: Vec::new() };
    if type_name == "serial" {
        read.elements.push(Element::Unique(single_key(&read.column.name)));
    }
    if matches!(type_name.as_str(), "nchar" | "nvarchar" | "national") {
        read.column.charset = Some("utf8mb3".to_owned());
    }
    while attribute(&mut read, cursor, schema)? {}
    Some(read)
}

fn single_key(column: &str) -> KeyDefinition {
    let part = KeyPartDefinition::Column { name: column.to_owned(), prefix: None };
    KeyDefinition { name: None, parts: vec![part] }
}

/// Reads one attribute of a column; false at the column's end, `None` for one that is not known.
fn attribute(read: &mut ReadColumn, cursor: &mut Cursor<'_>, schema: &str) -> Option<bool> {
    let ReadColumn { column, elements } = read;
    if cursor.is_punct(b',') || cursor.is_punct(b')') || cursor.is("FIRST") || cursor.is("AFTER") || cursor.at_end() {
        return Some(false);
    }
    if cursor.eat_all(&["NOT", "NULL"]) {
        column.nullable = false;
    } else if cursor.eat("NULL")
        || cursor.eat_any(&["VISIBLE", "INVISIBLE", "SIGNED"]).is_some()
        || cursor.eat_all(&["NOT", "SECONDARY"])
        || cursor.eat_all(&["WITHOUT", "SYSTEM", "VERSIONING"])
    {
    } else if cursor.eat_all(&["WITH", "SYSTEM", "VERSIONING"]) {
        elements.push(Element::History(History::Hidden));
    } else if cursor.eat("AUTO_INCREMENT") {
        column.auto_increment = true;
        column.nullable = false;
    } else if cursor.eat("DEFAULT") || cursor.eat_all(&["ON", "UPDATE"]) {
        simple_expression(cursor)?;
    } else if cursor.eat("UNIQUE") {
        cursor.eat("KEY");
        elements.push(Element::Unique(single_key(&column.name)));
    } else if cursor.eat_all(&["PRIMARY", "KEY"]) || cursor.eat("KEY") || cursor.eat("PRIMARY") {
        let key = KeyDefinition { name: Some("PRIMARY".to_owned()), ..single_key(&column.name) };
        elements.push(Element::Primary(key));
    } else if cursor.eat("COMMENT") {
        (cursor.take().kind == Kind::Text).then_some(())?;
    } else if cursor.eat("COLLATE") {
        column.collation = Some(option_word(cursor)?);
    } else if let Some(charset) = character_set(cursor)? {
        // The text types of this character set are the binary types.
        (!same(&charset, "binary")).then_some(())?;
        column.charset = Some(charset);
    } else if cursor.eat("ASCII") {
        column.charset = Some("latin1".to_owned());
    } else if cursor.eat("COMPRESSED") {
        column.compressed = true;
        if cursor.eat_punct(b'=') {
            cursor.ident()?;
        }
    } else if cursor.eat_any(&["COLUMN_FORMAT", "STORAGE"]).is_some() {
        cursor.ident()?;
    } else if cursor.eat_any(&["ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"]).is_some() {
        cursor.eat_punct(b'=');
        (cursor.take().kind == Kind::Text).then_some(())?;
    } else if cursor.eat("SRID") {
        (cursor.take().kind == Kind::Number).then_some(())?;
    } else if cursor.eat("REF_SYSTEM_ID") {
        cursor.eat_punct(b'=');
        (cursor.take().kind == Kind::Number).then_some(())?;
    } else if cursor.eat("REFERENCES") {
        elements.push(reference(&column.name, cursor, schema)?);
    } else if cursor.eat_all(&["GENERATED", "ALWAYS", "AS"]) || cursor.eat("AS") {
        column.generated = Some(generated(cursor)?);
        column.nullable &= !matches!(column.generated, Some(GenerationKind::RowStart | GenerationKind::RowEnd));
    } else if cursor.eat("CONSTRAINT") {
        if !cursor.is("CHECK") {
            cursor.ident()?;
        }
        cursor.is("CHECK").then_some(())?;
    } else if cursor.eat("CHECK") {
        cursor.skip_parens()?;
        enforced(cursor);
    } else {
        // BINARY, BYTE and UNICODE depend on defaults.
        return None;
    }
    Some(true)
}

/// MySQL before 9.0 ignores it here, MariaDB does not: taken as a foreign key, which is the coarser answer.
fn reference(column: &str, cursor: &mut Cursor<'_>, schema: &str) -> Option<Element> {
    let (parent, parent_columns, on_delete, on_update) = references(cursor, schema)?;
    if parent_columns.len() != 1 {
        return None;
    }
    let columns = vec![column.to_owned()];
    Some(Element::Foreign(ForeignKeyDefinition { name: None, columns, parent, parent_columns, on_delete, on_update }))
}

/// What stands behind AS.
fn generated(cursor: &mut Cursor<'_>) -> Option<GenerationKind> {
    if cursor.eat_all(&["ROW", "START"]) {
        return Some(GenerationKind::RowStart);
    }
    if cursor.eat_all(&["ROW", "END"]) {
        return Some(GenerationKind::RowEnd);
    }
    cursor.skip_parens()?;
    if cursor.eat_any(&["STORED", "PERSISTENT"]).is_some() {
        return Some(GenerationKind::Stored);
    }
    cursor.eat("VIRTUAL");
    Some(GenerationKind::Virtual)
}

/// A literal, a function call or an expression in parentheses.
fn simple_expression(cursor: &mut Cursor<'_>) -> Option<()> {
    if cursor.is_punct(b'(') {
        return cursor.skip_parens();
    }
    if !cursor.eat_punct(b'-') {
        cursor.eat_punct(b'+');
    }
    let first = cursor.take().kind;
    match first {
        Kind::Text => {}
        Kind::Punct(b'.') => {
            (cursor.take().kind == Kind::Number).then_some(())?;
        }
        Kind::Number => {
            if cursor.eat_punct(b'.') && cursor.peek().kind == Kind::Number {
                cursor.take();
            }
        }
        Kind::Word => {
            // CURRENT_TIMESTAMP(6), nextval(`s`.`q`), and introducers such as _utf8mb4'x', b'1'.
            if cursor.is_punct(b'(') {
                cursor.skip_parens()?;
            }
        }
        _ => return None,
    }
    while cursor.peek().kind == Kind::Text {
        cursor.take();
    }
    Some(())
}
