//! Statements that change definitions, accounts or the server, and the tables that they name.

use std::ops::Range;

use super::SqlMode;
use super::alter_names::{AlterRole, alter_names, union_names, wait};
use super::cursor::Cursor;
use super::lexer::Kind;
use super::names::ObjectName;
use super::statement::{Class, DdlKind, Guards, Statement};

pub(super) fn classify(verb: &str, cursor: &mut Cursor<'_>, schema: &str) -> Option<Statement> {
    match verb {
        "CREATE" => create(cursor, schema),
        "ALTER" => alter(cursor, schema),
        "DROP" => drop(cursor, schema),
        "RENAME" => rename(cursor, schema),
        "TRUNCATE" => {
            let mut statement = ddl(DdlKind::Truncate);
            cursor.eat("TABLE");
            statement.note(cursor.object(schema)?);
            wait(cursor);
            cursor.at_end().then_some(statement)
        }
        "ANALYZE" => maintenance(DdlKind::Analyze, cursor, schema),
        "OPTIMIZE" => maintenance(DdlKind::Optimize, cursor, schema),
        "REPAIR" => maintenance(DdlKind::Repair, cursor, schema),
        "FLUSH" => Some(ddl(DdlKind::Flush)),
        "GRANT" | "REVOKE" => Some(ddl(DdlKind::Account)),
        "INSTALL" | "UNINSTALL" => Some(ddl(DdlKind::Other)),
        _ => None,
    }
}

fn ddl(kind: DdlKind) -> Statement {
    Statement::of(Class::Ddl { kind })
}

fn create(cursor: &mut Cursor<'_>, schema: &str) -> Option<Statement> {
    let or_replace = cursor.eat_all(&["OR", "REPLACE"]);
    let mut temporary = false;
    loop {
        if cursor.eat("TEMPORARY") {
            temporary = true;
        } else if !skip_attribute(cursor)? {
            break;
        }
    }
    let (object, mut guards) = object_kind(cursor)?;
    guards.or_replace = or_replace;
    let mut statement = match object {
        "TABLE" => create_table(cursor, schema, temporary, guards.if_not_exists)?,
        "INDEX" => {
            let mut statement = ddl(DdlKind::CreateIndex);
            on_table(&mut statement, cursor, schema)?;
            statement
        }
        "TRIGGER" => {
            let mut statement = ddl(DdlKind::Trigger);
            // `name BEFORE INSERT ON table`, perhaps in the schema of its own name.
            let name = cursor.object(schema)?;
            on_table(&mut statement, cursor, &name.schema)?;
            statement.homes.push(name.schema);
            statement
        }
        "SEQUENCE" => {
            let mut statement = ddl(DdlKind::Sequence);
            statement.note(cursor.object(schema)?);
            statement
        }
        "DATABASE" | "SCHEMA" => Statement { schemas: vec![cursor.ident()?], ..ddl(DdlKind::CreateDatabase) },
        other => plain(other, cursor, schema),
    };
    statement.guards = guards;
    Some(statement)
}

/// A statement on objects that are no tables: only the schemas that they are in are noted.
fn plain(object: &str, cursor: &mut Cursor<'_>, schema: &str) -> Statement {
    let mut statement = ddl(plain_kind(object));
    let Class::Ddl { kind: DdlKind::View | DdlKind::Trigger | DdlKind::Routine | DdlKind::Event } = statement.class
    else {
        return statement;
    };
    if object == "PACKAGE" {
        cursor.eat("BODY");
    }
    // One more schema than is needed (of a name that is not understood) does no harm.
    loop {
        let home = cursor.object(schema).map_or_else(|| schema.to_owned(), |name| name.schema);
        if !statement.homes.contains(&home) {
            statement.homes.push(home);
        }
        if !cursor.eat_punct(b',') {
            return statement;
        }
    }
}

/// What the objects are whose names are of no interest here.
fn plain_kind(object: &str) -> DdlKind {
    match object {
        "VIEW" => DdlKind::View,
        "TRIGGER" => DdlKind::Trigger,
        "PROCEDURE" | "FUNCTION" | "PACKAGE" => DdlKind::Routine,
        "EVENT" => DdlKind::Event,
        "USER" | "ROLE" => DdlKind::Account,
        _ => DdlKind::Other,
    }
}

/// The object's keyword and the guard behind it.
fn object_kind(cursor: &mut Cursor<'_>) -> Option<(&'static str, Guards)> {
    let object = cursor.eat_any(&[
        "TABLE",
        "TABLES",
        "INDEX",
        "VIEW",
        "TRIGGER",
        "PROCEDURE",
        "FUNCTION",
        "PACKAGE",
        "EVENT",
        "SEQUENCE",
        "DATABASE",
        "SCHEMA",
        "USER",
        "ROLE",
        "SERVER",
        "TABLESPACE",
        "LOGFILE",
        "RESOURCE",
        "REFERENCE",
        "INSTANCE",
        "LIBRARY",
    ])?;
    let guards = Guards {
        if_not_exists: cursor.eat_all(&["IF", "NOT", "EXISTS"]),
        if_exists: cursor.eat_all(&["IF", "EXISTS"]),
        or_replace: false,
    };
    Some((object, guards))
}

/// Takes one attribute that may stand between the verb and the object; false when there is none.
pub(super) fn skip_attribute(cursor: &mut Cursor<'_>) -> Option<bool> {
    const WORDS: [&str; 13] = [
        "AGGREGATE",
        "UNIQUE",
        "FULLTEXT",
        "SPATIAL",
        "VECTOR",
        "ONLINE",
        "OFFLINE",
        "IGNORE",
        "UNDO",
        "MATERIALIZED",
        // JSON [RELATIONAL] DUALITY VIEW.
        "JSON",
        "RELATIONAL",
        "DUALITY",
    ];
    if cursor.eat_any(&WORDS).is_some() {
        return Some(true);
    }
    if cursor.eat("ALGORITHM") {
        cursor.eat_punct(b'=').then_some(())?;
        cursor.ident()?;
    } else if cursor.eat_all(&["SQL", "SECURITY"]) {
        cursor.ident()?;
    } else if cursor.eat("DEFINER") {
        cursor.eat_punct(b'=').then_some(())?;
        user(cursor)?;
    } else {
        return Some(false);
    }
    Some(true)
}

/// `name[@host]`, `CURRENT_USER[()]`, `CURRENT_ROLE`.
fn user(cursor: &mut Cursor<'_>) -> Option<()> {
    let part = |cursor: &mut Cursor<'_>| {
        matches!(cursor.take().kind, Kind::Word | Kind::Quoted(_) | Kind::Text | Kind::Number).then_some(())
    };
    part(cursor)?;
    if cursor.eat_punct(b'@') {
        part(cursor)?;
        // A host without quotes may have dots and dashes.
        while cursor.is_punct(b'.') || cursor.is_punct(b'-') {
            cursor.take();
            cursor.take();
        }
    } else if cursor.is_punct(b'(') {
        cursor.skip_parens()?;
    }
    Some(())
}

/// Goes on to `ON table` at the top level.
fn on_table(statement: &mut Statement, cursor: &mut Cursor<'_>, schema: &str) -> Option<()> {
    loop {
        if cursor.eat("ON") {
            statement.note(cursor.object(schema)?);
            return Some(());
        }
        match cursor.take().kind {
            Kind::End | Kind::Broken | Kind::Punct(b'(') => return None,
            _ => {}
        }
    }
}

fn create_table(cursor: &mut Cursor<'_>, schema: &str, temporary: bool, if_not_exists: bool) -> Option<Statement> {
    let name = cursor.object(schema)?;
    let mut statement = ddl(DdlKind::Other);
    statement.note(name.clone());
    let (mut like, mut select, mut start_transaction) = (false, false, false);
    // LIKE may stand in parentheses.
    let mut ahead = *cursor;
    ahead.eat_punct(b'(');
    if ahead.eat("LIKE") {
        statement.note(ahead.object(schema)?);
        like = true;
    } else {
        let mut depth = 0u32;
        // Only parentheses since the top level: a SELECT here is the table's content.
        let mut opening = true;
        loop {
            if cursor.eat("REFERENCES") {
                statement.note_parent(cursor.object(&name.schema)?);
                continue;
            }
            if opening && cursor.is("SELECT") || depth == 0 && is_query(cursor) {
                // What is behind it are tables that are read.
                select = true;
                break;
            }
            if depth == 0 && cursor.eat_all(&["START", "TRANSACTION"]) {
                start_transaction = true;
                continue;
            }
            if depth == 0 && cursor.eat("UNION") {
                union_names(cursor, schema, &mut |named| statement.note(named.object))?;
                continue;
            }
            match cursor.take().kind {
                Kind::Punct(b'(') => depth += 1,
                Kind::Punct(b')') => {
                    depth = depth.checked_sub(1)?;
                    opening = depth == 0;
                }
                Kind::End if depth == 0 => break,
                Kind::Punct(b';') if depth == 0 && cursor.at_end() => break,
                Kind::End | Kind::Broken | Kind::Punct(b';') => return None,
                _ => opening = depth == 0,
            }
        }
    }
    let kind = DdlKind::CreateTable { temporary, if_not_exists, like, select, start_transaction };
    statement.class = Class::Ddl { kind };
    Some(statement)
}

/// Where `START TRANSACTION` stands in a CREATE TABLE that has it: MySQL writes it right behind the columns, before the
/// table's options (`store_create_info`). Byte range in the statement.
pub fn start_transaction_at(sql: &[u8], mode: SqlMode) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(sql, mode);
    let mut depth = 0u32;
    loop {
        let start = cursor.peek().start;
        if depth == 0 && cursor.eat_all(&["START", "TRANSACTION"]) {
            return Some(start..cursor.end());
        }
        match cursor.take().kind {
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => depth = depth.checked_sub(1)?,
            Kind::End | Kind::Broken => return None,
            _ => {}
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

fn alter(cursor: &mut Cursor<'_>, schema: &str) -> Option<Statement> {
    while skip_attribute(cursor)? {}
    let (object, guards) = object_kind(cursor)?;
    let mut statement = match object {
        "TABLE" => alter_table(cursor, schema)?,
        "SEQUENCE" => {
            let mut statement = ddl(DdlKind::Sequence);
            statement.note(cursor.object(schema)?);
            statement
        }
        "DATABASE" | "SCHEMA" => {
            // Without a name it is the default one; the words that can follow then are options.
            let mut ahead = *cursor;
            let options = ["DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ENCRYPTION", "READ", "COMMENT"];
            let name = match ahead.eat_any(&options) {
                Some(_) => schema.to_owned(),
                None => cursor.ident()?,
            };
            Statement { schemas: vec![name], ..ddl(DdlKind::AlterDatabase) }
        }
        other => plain(other, cursor, schema),
    };
    statement.guards = guards;
    Some(statement)
}

fn alter_table(cursor: &mut Cursor<'_>, schema: &str) -> Option<Statement> {
    let name = cursor.object(schema)?;
    let mut statement = ddl(DdlKind::AlterTable);
    statement.note(name.clone());
    alter_names(cursor, &name.schema, schema, &mut |role, named| match role {
        AlterRole::Parent => statement.note_parent(named.object),
        AlterRole::NewName | AlterRole::Partner => statement.note(named.object),
    })?;
    Some(statement)
}

fn drop(cursor: &mut Cursor<'_>, schema: &str) -> Option<Statement> {
    let temporary = cursor.eat("TEMPORARY");
    while skip_attribute(cursor)? {}
    let (object, guards) = object_kind(cursor)?;
    let mut statement = match object {
        "TABLE" | "TABLES" => {
            let kind = DdlKind::DropTable { temporary, if_exists: guards.if_exists };
            drop_list(kind, cursor, schema)?
        }
        "SEQUENCE" => drop_list(DdlKind::Sequence, cursor, schema)?,
        "INDEX" => {
            let mut statement = ddl(DdlKind::DropIndex);
            on_table(&mut statement, cursor, schema)?;
            statement
        }
        "DATABASE" | "SCHEMA" => Statement { schemas: vec![cursor.ident()?], ..ddl(DdlKind::DropDatabase) },
        other => plain(other, cursor, schema),
    };
    statement.guards = guards;
    Some(statement)
}

fn drop_list(kind: DdlKind, cursor: &mut Cursor<'_>, schema: &str) -> Option<Statement> {
    let mut statement = ddl(kind);
    table_list(&mut statement, cursor, schema)?;
    wait(cursor);
    cursor.eat_any(&["RESTRICT", "CASCADE"]);
    cursor.at_end().then_some(statement)
}

fn table_list(statement: &mut Statement, cursor: &mut Cursor<'_>, schema: &str) -> Option<()> {
    statement.note(cursor.object(schema)?);
    while cursor.eat_punct(b',') {
        statement.note(cursor.object(schema)?);
    }
    Some(())
}

fn rename(cursor: &mut Cursor<'_>, schema: &str) -> Option<Statement> {
    if cursor.eat("USER") {
        return Some(ddl(DdlKind::Account));
    }
    cursor.eat_any(&["TABLE", "TABLES"])?;
    let mut statement = ddl(DdlKind::RenameTable);
    statement.guards.if_exists = cursor.eat_all(&["IF", "EXISTS"]);
    loop {
        let from: ObjectName = cursor.object(schema)?;
        wait(cursor);
        cursor.eat("TO").then_some(())?;
        statement.note(from);
        statement.note(cursor.object(schema)?);
        if !cursor.eat_punct(b',') {
            return cursor.at_end().then_some(statement);
        }
    }
}

fn maintenance(kind: DdlKind, cursor: &mut Cursor<'_>, schema: &str) -> Option<Statement> {
    cursor.eat_any(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
    cursor.eat_any(&["TABLE", "TABLES"])?;
    let mut statement = ddl(kind);
    table_list(&mut statement, cursor, schema)?;
    Some(statement)
}
