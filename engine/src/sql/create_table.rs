//! The columns and keys that a CREATE TABLE statement defines.
//!
//! For places where no server can be asked. Answers only when every part of the statement is understood: a
//! definition that is half right would order rows wrongly.

use super::SqlMode;
use super::cursor::{Cursor, text};
use super::lexer::Kind;
use super::statement::ObjectName;
use crate::keys::DataType;

/// What a CREATE TABLE says, with nothing filled in from server defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDefinition {
    pub name: ObjectName,
    pub temporary: bool,
    pub columns: Vec<ColumnDefinition>,
    pub primary_key: Option<KeyDefinition>,
    pub unique_keys: Vec<KeyDefinition>,
    pub foreign_keys: Vec<ForeignKeyDefinition>,
    pub engine: Option<String>,
    pub charset: Option<String>,
    pub collation: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDefinition {
    pub name: String,
    /// As written, with its length and UNSIGNED, without the attributes behind.
    pub type_text: String,
    pub data_type: DataType,
    pub unsigned: bool,
    /// Only what the column itself states.
    pub charset: Option<String>,
    pub collation: Option<String>,
    pub nullable: bool,
    pub auto_increment: bool,
    pub generated: Option<Generated>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generated {
    Virtual,
    Stored,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDefinition {
    pub name: Option<String>,
    pub parts: Vec<KeyPartDefinition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPartDefinition {
    /// `prefix` in characters, in bytes for binary strings.
    Column {
        name: String,
        prefix: Option<u32>,
    },
    Expression,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKeyDefinition {
    pub name: Option<String>,
    pub columns: Vec<String>,
    pub parent: ObjectName,
    pub parent_columns: Vec<String>,
    pub on_delete: ReferenceAction,
    pub on_update: ReferenceAction,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReferenceAction {
    /// NO ACTION, RESTRICT, or nothing said.
    #[default]
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

/// Columns of a table at the most, on either server.
const COLUMNS_MAX: usize = 4096;

/// Reads a CREATE TABLE with a list of columns. `None` for any other statement (LIKE, SELECT) and for what is not
/// surely understood, such as system versioning and compressed columns, which change the row images.
pub fn parse(sql: &[u8], default_schema: &str, mode: SqlMode) -> Option<TableDefinition> {
    let mut cursor = Cursor::new(sql, mode);
    let cursor = &mut cursor;
    cursor.eat("CREATE").then_some(())?;
    cursor.eat_all(&["OR", "REPLACE"]);
    let temporary = cursor.eat("TEMPORARY");
    cursor.eat("TABLE").then_some(())?;
    cursor.eat_all(&["IF", "NOT", "EXISTS"]);
    let name = cursor.object(default_schema)?;
    let mut table = TableDefinition {
        name,
        temporary,
        columns: Vec::new(),
        primary_key: None,
        unique_keys: Vec::new(),
        foreign_keys: Vec::new(),
        engine: None,
        charset: None,
        collation: None,
    };
    cursor.eat_punct(b'(').then_some(())?;
    loop {
        if !constraint(&mut table, cursor)? {
            column(&mut table, cursor, sql, mode)?;
        }
        if cursor.eat_punct(b')') {
            break;
        }
        cursor.eat_punct(b',').then_some(())?;
        if table.columns.len() > COLUMNS_MAX {
            return None;
        }
    }
    options(&mut table, cursor)?;
    finish(table)
}

/// Key columns must exist; those of the primary key are NOT NULL.
fn finish(mut table: TableDefinition) -> Option<TableDefinition> {
    // Its text columns are binary ones.
    let binary = |option: &Option<String>| option.as_deref().is_some_and(|name| same(name, "binary"));
    if binary(&table.charset) || binary(&table.collation) {
        return None;
    }
    let columns = &mut table.columns;
    for key in table.primary_key.iter_mut().chain(&mut table.unique_keys) {
        for part in &mut key.parts {
            if let KeyPartDefinition::Column { name, .. } = part {
                // As the column is written, whatever the case in the key.
                name.clone_from(&columns.iter().find(|column| same(&column.name, name))?.name);
            }
        }
    }
    for part in table.primary_key.iter().flat_map(|key| &key.parts) {
        let KeyPartDefinition::Column { name, .. } = part else { return None };
        for column in columns.iter_mut().filter(|column| same(&column.name, name)) {
            column.nullable = false;
        }
    }
    for name in table.foreign_keys.iter_mut().flat_map(|key| &mut key.columns) {
        name.clone_from(&columns.iter().find(|column| same(&column.name, name))?.name);
    }
    (!columns.is_empty()).then_some(table)
}

/// Column names are compared without case. Beyond ASCII the servers fold more than this does: such a key is then
/// not found and the table not understood.
fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// Reads a key, foreign key or check; false when a column stands here.
fn constraint(table: &mut TableDefinition, cursor: &mut Cursor<'_>) -> Option<bool> {
    let mut name = None;
    if cursor.eat("CONSTRAINT") {
        let named = !["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"].iter().any(|word| cursor.is(word));
        if named {
            name = Some(cursor.ident()?);
        }
    }
    if cursor.eat_all(&["PRIMARY", "KEY"]) {
        let key = key(cursor, false, Some("PRIMARY".to_owned()))?;
        return table.primary_key.replace(key).is_none().then_some(true);
    }
    if cursor.eat("UNIQUE") {
        cursor.eat_any(&["KEY", "INDEX"]);
        let key = key(cursor, true, name)?;
        table.unique_keys.push(key);
        return Some(true);
    }
    if cursor.eat_all(&["FOREIGN", "KEY"]) {
        cursor.eat_all(&["IF", "NOT", "EXISTS"]);
        if !cursor.is_punct(b'(') {
            let index = cursor.ident()?;
            name.get_or_insert(index);
        }
        let columns = plain_columns(cursor)?;
        cursor.eat("REFERENCES").then_some(())?;
        let (parent, parent_columns, on_delete, on_update) = references(cursor, &table.name.schema)?;
        if parent_columns.len() != columns.len() {
            return None;
        }
        table.foreign_keys.push(ForeignKeyDefinition { name, columns, parent, parent_columns, on_delete, on_update });
        return Some(true);
    }
    if cursor.is("CHECK") && ({ *cursor }.eat("CHECK") && followed_by_paren(cursor)) {
        cursor.take();
        cursor.skip_parens()?;
        enforced(cursor);
        return Some(true);
    }
    if name.is_some() {
        return None;
    }
    if cursor.eat_any(&["FULLTEXT", "SPATIAL", "VECTOR"]).is_some() {
        cursor.eat_any(&["KEY", "INDEX"]);
        key(cursor, true, None)?;
        return Some(true);
    }
    if cursor.eat_any(&["KEY", "INDEX"]).is_some() {
        key(cursor, true, None)?;
        return Some(true);
    }
    // PERIOD FOR …: application time periods and system versioning.
    if { *cursor }.eat_all(&["PERIOD", "FOR"]) {
        return None;
    }
    Some(false)
}

fn followed_by_paren(cursor: &Cursor<'_>) -> bool {
    let mut ahead = *cursor;
    ahead.take();
    ahead.is_punct(b'(')
}

/// `[name] [USING type] (parts) [options]`.
fn key(cursor: &mut Cursor<'_>, may_have_name: bool, name: Option<String>) -> Option<KeyDefinition> {
    let mut name = name;
    cursor.eat_all(&["IF", "NOT", "EXISTS"]);
    if !cursor.is_punct(b'(') && !cursor.is("USING") {
        let own = cursor.ident()?;
        if may_have_name {
            name = Some(own);
        }
    }
    if cursor.eat("USING") {
        cursor.ident()?;
    }
    cursor.eat_punct(b'(').then_some(())?;
    let mut parts = Vec::new();
    loop {
        parts.push(key_part(cursor)?);
        if cursor.eat_punct(b')') {
            break;
        }
        cursor.eat_punct(b',').then_some(())?;
    }
    loop {
        if cursor.eat_any(&["VISIBLE", "INVISIBLE", "IGNORED"]).is_some() || cursor.eat_all(&["NOT", "IGNORED"]) {
        } else if cursor.eat("USING") || cursor.eat_all(&["WITH", "PARSER"]) {
            cursor.ident()?;
        } else if cursor
            .eat_any(&["KEY_BLOCK_SIZE", "COMMENT", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"])
            .is_some()
            || cursor.eat_any(&["DISTANCE", "M", "CLUSTERING"]).is_some()
        {
            cursor.eat_punct(b'=');
            cursor.take();
        } else {
            return Some(KeyDefinition { name, parts });
        }
    }
}

fn key_part(cursor: &mut Cursor<'_>) -> Option<KeyPartDefinition> {
    let part = if cursor.is_punct(b'(') {
        cursor.skip_parens()?;
        KeyPartDefinition::Expression
    } else {
        let name = cursor.ident()?;
        let mut prefix = None;
        if cursor.eat_punct(b'(') {
            let length = cursor.take();
            if length.kind != Kind::Number {
                return None;
            }
            prefix = Some(text(length.text)?.parse().ok()?);
            cursor.eat_punct(b')').then_some(())?;
        }
        KeyPartDefinition::Column { name, prefix }
    };
    cursor.eat_any(&["ASC", "DESC"]);
    // Anything else here (WITHOUT OVERLAPS) makes another kind of key.
    Some(part)
}

fn plain_columns(cursor: &mut Cursor<'_>) -> Option<Vec<String>> {
    cursor.eat_punct(b'(').then_some(())?;
    let mut names = Vec::new();
    loop {
        names.push(cursor.ident()?);
        if cursor.eat_punct(b')') {
            return Some(names);
        }
        cursor.eat_punct(b',').then_some(())?;
    }
}

type References = (ObjectName, Vec<String>, ReferenceAction, ReferenceAction);

/// What stands behind REFERENCES.
fn references(cursor: &mut Cursor<'_>, schema: &str) -> Option<References> {
    let parent = cursor.object(schema)?;
    let columns = if cursor.is_punct(b'(') { plain_columns(cursor)? } else { Vec::new() };
    let (mut on_delete, mut on_update) = Default::default();
    loop {
        if cursor.eat("MATCH") {
            cursor.eat_any(&["FULL", "PARTIAL", "SIMPLE"])?;
        } else if cursor.eat_all(&["ON", "DELETE"]) {
            on_delete = action(cursor)?;
        } else if cursor.eat_all(&["ON", "UPDATE"]) {
            on_update = action(cursor)?;
        } else {
            return Some((parent, columns, on_delete, on_update));
        }
    }
}

fn action(cursor: &mut Cursor<'_>) -> Option<ReferenceAction> {
    if cursor.eat("CASCADE") {
        Some(ReferenceAction::Cascade)
    } else if cursor.eat_all(&["SET", "NULL"]) {
        Some(ReferenceAction::SetNull)
    } else if cursor.eat_all(&["SET", "DEFAULT"]) {
        Some(ReferenceAction::SetDefault)
    } else {
        (cursor.eat("RESTRICT") || cursor.eat_all(&["NO", "ACTION"])).then_some(ReferenceAction::Restrict)
    }
}

fn enforced(cursor: &mut Cursor<'_>) {
    if !cursor.eat_all(&["NOT", "ENFORCED"]) {
        cursor.eat("ENFORCED");
    }
}

fn column(table: &mut TableDefinition, cursor: &mut Cursor<'_>, sql: &[u8], mode: SqlMode) -> Option<()> {
    let name = cursor.ident()?;
    if table.columns.iter().any(|column| same(&column.name, &name)) {
        return None;
    }
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
    let type_text = text(sql.get(start..cursor.end())?)?.to_owned();
    let mut data_type = DataType::from_column_type(&type_text);
    if type_name == "real" {
        data_type = if mode.real_as_float { DataType::Float } else { DataType::Double };
    }
    if data_type == DataType::Other {
        return None;
    }
    let mut column = ColumnDefinition {
        name,
        unsigned: unsigned || type_name == "serial",
        nullable: type_name != "serial",
        auto_increment: type_name == "serial",
        type_text,
        data_type,
        charset: None,
        collation: None,
        generated: None,
    };
    if type_name == "serial" {
        table.unique_keys.push(single_key(&column.name));
    }
    if matches!(type_name.as_str(), "nchar" | "nvarchar" | "national") {
        column.charset = Some("utf8mb3".to_owned());
    }
    while attribute(table, &mut column, cursor)? {}
    table.columns.push(column);
    Some(())
}

fn single_key(column: &str) -> KeyDefinition {
    let part = KeyPartDefinition::Column { name: column.to_owned(), prefix: None };
    KeyDefinition { name: None, parts: vec![part] }
}

/// Reads one attribute of a column; false at the column's end, `None` for one that is not known.
fn attribute(table: &mut TableDefinition, column: &mut ColumnDefinition, cursor: &mut Cursor<'_>) -> Option<bool> {
    if cursor.is_punct(b',') || cursor.is_punct(b')') {
        return Some(false);
    }
    if cursor.eat_all(&["NOT", "NULL"]) {
        column.nullable = false;
    } else if cursor.eat("NULL")
        || cursor.eat_any(&["VISIBLE", "INVISIBLE", "SIGNED"]).is_some()
        || cursor.eat_all(&["NOT", "SECONDARY"])
    {
    } else if cursor.eat("AUTO_INCREMENT") {
        column.auto_increment = true;
        column.nullable = false;
    } else if cursor.eat("DEFAULT") || cursor.eat_all(&["ON", "UPDATE"]) {
        simple_expression(cursor)?;
    } else if cursor.eat("UNIQUE") {
        cursor.eat("KEY");
        table.unique_keys.push(single_key(&column.name));
    } else if cursor.eat_all(&["PRIMARY", "KEY"]) || cursor.eat("KEY") || cursor.eat("PRIMARY") {
        let key = KeyDefinition { name: Some("PRIMARY".to_owned()), ..single_key(&column.name) };
        table.primary_key.replace(key).is_none().then_some(())?;
    } else if cursor.eat("COMMENT") {
        (cursor.take().kind == Kind::Text).then_some(())?;
    } else if cursor.eat("COLLATE") {
        column.collation = Some(option_word(cursor)?);
    } else if cursor.eat_all(&["CHARACTER", "SET"]) || cursor.eat_all(&["CHAR", "SET"]) || cursor.eat("CHARSET") {
        let charset = option_word(cursor)?;
        // The text types of this character set are the binary types.
        (!charset.eq_ignore_ascii_case("binary")).then_some(())?;
        column.charset = Some(charset);
    } else if cursor.eat("ASCII") {
        column.charset = Some("latin1".to_owned());
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
        // MySQL before 9.0 ignores it here, MariaDB does not: taken as a foreign key, which is the coarser answer.
        let (parent, parent_columns, on_delete, on_update) = references(cursor, &table.name.schema)?;
        if parent_columns.len() != 1 {
            return None;
        }
        let columns = vec![column.name.clone()];
        table.foreign_keys.push(ForeignKeyDefinition {
            name: None,
            columns,
            parent,
            parent_columns,
            on_delete,
            on_update,
        });
    } else if cursor.eat_all(&["GENERATED", "ALWAYS", "AS"]) || cursor.eat("AS") {
        // AS ROW START is system versioning: there is no parenthesis.
        cursor.skip_parens()?;
        column.generated = Some(Generated::Virtual);
        if cursor.eat_any(&["STORED", "PERSISTENT"]).is_some() {
            column.generated = Some(Generated::Stored);
        } else {
            cursor.eat("VIRTUAL");
        }
    } else if cursor.eat("CONSTRAINT") {
        if !cursor.is("CHECK") {
            cursor.ident()?;
        }
        cursor.is("CHECK").then_some(())?;
    } else if cursor.eat("CHECK") {
        cursor.skip_parens()?;
        enforced(cursor);
    } else {
        // BINARY, BYTE and UNICODE depend on defaults; COMPRESSED and versioning change the row images.
        return None;
    }
    Some(true)
}

/// A name as an option's value, with or without quotes.
fn option_word(cursor: &mut Cursor<'_>) -> Option<String> {
    cursor.eat_punct(b'=');
    if cursor.peek().kind == Kind::Text {
        let token = cursor.take();
        let inner = token.text.get(1..token.text.len().checked_sub(1)?)?;
        return text(inner).map(str::to_owned);
    }
    cursor.ident()
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

fn options(table: &mut TableDefinition, cursor: &mut Cursor<'_>) -> Option<()> {
    loop {
        cursor.eat_punct(b',');
        if cursor.at_end() {
            return Some(());
        }
        cursor.eat("DEFAULT");
        if cursor.eat_any(&["ENGINE", "TYPE"]).is_some() {
            table.engine = Some(option_word(cursor)?);
        } else if cursor.eat_all(&["CHARACTER", "SET"]) || cursor.eat_all(&["CHAR", "SET"]) || cursor.eat("CHARSET") {
            table.charset = Some(option_word(cursor)?);
        } else if cursor.eat("COLLATE") {
            table.collation = Some(option_word(cursor)?);
        } else if cursor.is("PARTITION") {
            return partitions(cursor);
        } else if cursor.eat_all(&["START", "TRANSACTION"]) {
        } else if ["AS", "SELECT", "WITH", "LIKE", "IGNORE", "REPLACE", "VALUES", "TABLE"]
            .iter()
            .any(|word| cursor.is(word))
        {
            return None;
        } else {
            // `NAME [=] value`, such as ROW_FORMAT=DYNAMIC, UNION=(a,b), DATA DIRECTORY 'x'.
            cursor.ident()?;
            cursor.eat_any(&["DIRECTORY"]);
            cursor.eat_punct(b'=');
            match cursor.peek().kind {
                Kind::Punct(b'(') => cursor.skip_parens()?,
                Kind::Word | Kind::Quoted(_) | Kind::Text => {
                    cursor.take();
                }
                Kind::Number => {
                    cursor.take();
                }
                _ => return None,
            }
        }
    }
}

/// Takes the partitioning, which changes neither columns nor keys. A query may follow: then `None`.
fn partitions(cursor: &mut Cursor<'_>) -> Option<()> {
    loop {
        if cursor.at_end() {
            return Some(());
        }
        if cursor.is_punct(b'(') {
            cursor.skip_parens()?;
            continue;
        }
        if ["AS", "SELECT", "WITH", "SYSTEM_TIME"].iter().any(|word| cursor.is(word)) {
            return None;
        }
        if matches!(cursor.take().kind, Kind::End | Kind::Broken | Kind::Punct(b';' | b')')) {
            return None;
        }
    }
}
