//! The tables that a definition names, and where: for who cuts lists and renames. Never says what the definition does.

use super::super::SqlMode;
use super::super::alter_names::{AlterRole, alter_names, union_names, wait};
use super::super::cursor::Cursor;
use super::super::ddl::skip_attribute;
use super::super::lexer::Kind;
use super::super::named_object::NamedObject;
use super::prefix::skip_set_statement;

/// What a name is to the definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// What is made, changed or dropped.
    Subject,
    /// The new name of what it changes.
    NewName,
    /// Another table that changes with it: of an exchanged partition, of a MERGE table.
    Partner,
    /// What a foreign key refers to.
    Parent,
    /// The table that LIKE takes the definition of.
    Model,
}

#[derive(Clone, Debug)]
pub struct DefinitionName {
    pub named: NamedObject,
    pub role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Each name by itself: `DROP TABLE a, b`.
    List,
    /// Old and new names by turns: `RENAME TABLE a TO b, c TO d`.
    Pairs,
    /// One statement about its first name.
    One,
}

#[derive(Clone, Debug)]
pub struct Definition {
    pub shape: Shape,
    pub names: Vec<DefinitionName>,
    /// Where the query begins that fills a new table.
    pub query_at: Option<usize>,
    /// Behind `CREATE TABLE`, where it says neither `IF NOT EXISTS` nor `OR REPLACE`.
    pub if_not_exists_at: Option<usize>,
    pub replaces: bool,
}

impl Definition {
    fn of(shape: Shape) -> Self {
        Self { shape, names: Vec::new(), query_at: None, if_not_exists_at: None, replaces: false }
    }

    fn add(&mut self, named: NamedObject, role: Role) {
        self.names.push(DefinitionName { named, role });
    }
}

/// Of tables, indexes and sequences. `None`: it is another statement, or not surely understood.
pub fn definition(sql: &[u8], schema: &str, mode: SqlMode) -> Option<Definition> {
    let mut cursor = Cursor::new(sql, mode);
    let cursor = &mut cursor;
    skip_set_statement(cursor)?;
    match cursor.eat_any(&["CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "ANALYZE", "OPTIMIZE", "REPAIR"])? {
        "CREATE" => create(cursor, schema),
        "ALTER" => alter(cursor, schema),
        "DROP" => drop(cursor, schema),
        "RENAME" => rename(cursor, schema),
        "TRUNCATE" => {
            cursor.eat("TABLE");
            let mut found = Definition::of(Shape::List);
            found.add(cursor.named(schema)?, Role::Subject);
            wait(cursor);
            cursor.at_end().then_some(found)
        }
        _ => {
            cursor.eat_any(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
            cursor.eat_any(&["TABLE", "TABLES"])?;
            list(cursor, schema)
        }
    }
}

fn create(cursor: &mut Cursor<'_>, schema: &str) -> Option<Definition> {
    let replaces = cursor.eat_all(&["OR", "REPLACE"]);
    loop {
        if !cursor.eat("TEMPORARY") && !skip_attribute(cursor)? {
            break;
        }
    }
    match cursor.eat_any(&["TABLE", "INDEX", "SEQUENCE"])? {
        "INDEX" => on_table(cursor, schema),
        "SEQUENCE" => {
            cursor.eat_all(&["IF", "NOT", "EXISTS"]);
            let mut found = Definition::of(Shape::One);
            found.replaces = replaces;
            found.add(cursor.named(schema)?, Role::Subject);
            Some(found)
        }
        _ => {
            let at = cursor.end();
            let is_guarded = cursor.eat_all(&["IF", "NOT", "EXISTS"]);
            let mut found = Definition::of(Shape::One);
            found.replaces = replaces;
            found.if_not_exists_at = (!is_guarded && !replaces).then_some(at);
            found.add(cursor.named(schema)?, Role::Subject);
            create_table(found, cursor, schema)
        }
    }
}

fn create_table(mut found: Definition, cursor: &mut Cursor<'_>, schema: &str) -> Option<Definition> {
    let parents_schema = found.names.first()?.named.object.schema.clone();
    let mut ahead = *cursor;
    ahead.eat_punct(b'(');
    if ahead.eat("LIKE") {
        found.add(ahead.named(schema)?, Role::Model);
        return Some(found);
    }
    let mut depth = 0u32;
    // Only parentheses since the top level: a SELECT here is the table's content.
    let mut opening = true;
    loop {
        if cursor.eat("REFERENCES") {
            found.add(cursor.named(&parents_schema)?, Role::Parent);
            continue;
        }
        if opening && cursor.is("SELECT") || depth == 0 && is_query(cursor) {
            found.query_at = Some(cursor.peek().start);
            return Some(found);
        }
        if depth == 0 && cursor.eat("UNION") {
            union_names(cursor, schema, &mut |named| found.add(named, Role::Partner))?;
            continue;
        }
        match cursor.take().kind {
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => {
                depth = depth.checked_sub(1)?;
                opening = depth == 0;
            }
            Kind::End if depth == 0 => return Some(found),
            Kind::Punct(b';') if depth == 0 && cursor.at_end() => return Some(found),
            Kind::End | Kind::Broken | Kind::Punct(b';') => return None,
            _ => opening = depth == 0,
        }
    }
}

/// Words that begin a query and are no table options at the top level.
fn is_query(cursor: &Cursor<'_>) -> bool {
    let mut ahead = *cursor;
    match ahead.eat_any(&["AS", "VALUES", "TABLE", "WITH"]) {
        Some("WITH") => !ahead.is("SYSTEM"),
        found => found.is_some(),
    }
}

fn on_table(cursor: &mut Cursor<'_>, schema: &str) -> Option<Definition> {
    loop {
        if cursor.eat("ON") {
            let mut found = Definition::of(Shape::One);
            found.add(cursor.named(schema)?, Role::Subject);
            return Some(found);
        }
        if matches!(cursor.take().kind, Kind::End | Kind::Broken | Kind::Punct(b'(')) {
            return None;
        }
    }
}

fn alter(cursor: &mut Cursor<'_>, schema: &str) -> Option<Definition> {
    while skip_attribute(cursor)? {}
    let object = cursor.eat_any(&["TABLE", "SEQUENCE"])?;
    cursor.eat_all(&["IF", "EXISTS"]);
    let mut found = Definition::of(Shape::One);
    let subject = cursor.named(schema)?;
    let parents_schema = subject.object.schema.clone();
    found.add(subject, Role::Subject);
    if object == "SEQUENCE" {
        return Some(found);
    }
    alter_names(cursor, &parents_schema, schema, &mut |role, named| {
        let role = match role {
            AlterRole::Parent => Role::Parent,
            AlterRole::NewName => Role::NewName,
            AlterRole::Partner => Role::Partner,
        };
        found.add(named, role);
    })?;
    Some(found)
}

fn drop(cursor: &mut Cursor<'_>, schema: &str) -> Option<Definition> {
    cursor.eat("TEMPORARY");
    while skip_attribute(cursor)? {}
    let object = cursor.eat_any(&["TABLE", "TABLES", "SEQUENCE", "INDEX"])?;
    cursor.eat_all(&["IF", "EXISTS"]);
    if object == "INDEX" { on_table(cursor, schema) } else { list(cursor, schema) }
}

fn list(cursor: &mut Cursor<'_>, schema: &str) -> Option<Definition> {
    let mut found = Definition::of(Shape::List);
    loop {
        found.add(cursor.named(schema)?, Role::Subject);
        if !cursor.eat_punct(b',') {
            return Some(found);
        }
    }
}

fn rename(cursor: &mut Cursor<'_>, schema: &str) -> Option<Definition> {
    cursor.eat_any(&["TABLE", "TABLES"])?;
    cursor.eat_all(&["IF", "EXISTS"]);
    let mut found = Definition::of(Shape::Pairs);
    loop {
        found.add(cursor.named(schema)?, Role::Subject);
        wait(cursor);
        cursor.eat("TO").then_some(())?;
        found.add(cursor.named(schema)?, Role::NewName);
        if !cursor.eat_punct(b',') {
            return cursor.at_end().then_some(found);
        }
    }
}

/// The name of the schema that a CREATE, ALTER or DROP DATABASE is about, and where it stands; none in an ALTER of the session's. Then where `IF NOT EXISTS` is missing.
pub fn database(sql: &[u8], mode: SqlMode) -> Option<(Option<NamedObject>, Option<usize>)> {
    let mut cursor = Cursor::new(sql, mode);
    let verb = cursor.eat_any(&["CREATE", "ALTER", "DROP"])?;
    let replaces = cursor.eat_all(&["OR", "REPLACE"]);
    cursor.eat_any(&["DATABASE", "SCHEMA"])?;
    let at = cursor.end();
    let is_guarded = cursor.eat_all(&["IF", "NOT", "EXISTS"]) || cursor.eat_all(&["IF", "EXISTS"]);
    let missing = (verb == "CREATE" && !is_guarded && !replaces).then_some(at);
    const OPTIONS: [&str; 7] = ["DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ENCRYPTION", "READ", "COMMENT"];
    if verb == "ALTER" && { cursor }.eat_any(&OPTIONS).is_some() {
        return Some((None, missing));
    }
    let named = cursor.named("")?;
    (named.schema_at.is_none()).then_some((Some(named), missing))
}
