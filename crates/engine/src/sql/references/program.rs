//! The head of a definition of a view, trigger, stored routine or event: its name, its table, and where its body begins. Never reads the body.

use super::super::SqlMode;
use super::super::cursor::Cursor;
use super::super::ddl::skip_attribute;
use super::super::lexer::Kind;
use super::super::named_object::NamedObject;

#[derive(Clone, Debug)]
pub struct ProgramHead {
    pub kind: &'static str,
    /// One, but for the names that a DROP VIEW lists.
    pub names: Vec<NamedObject>,
    /// Of a trigger that is created.
    pub table: Option<NamedObject>,
    /// The trigger that it comes before or behind.
    pub beside: Option<NamedObject>,
    /// A new name (ALTER EVENT … RENAME TO).
    pub renamed_to: Option<NamedObject>,
    /// Where a query or a body begins; `None`: there is none.
    pub body_at: Option<usize>,
    /// Where `IF EXISTS` stands in a DROP that does not say it.
    pub if_exists_at: Option<usize>,
    pub is_dropped: bool,
    /// A function of a library, which no schema has.
    pub is_loadable: bool,
}

const KINDS: [&str; 6] = ["VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "PACKAGE", "EVENT"];

/// `None`: it is no such statement, or not surely understood.
pub fn program_head(sql: &[u8], schema: &str, mode: SqlMode) -> Option<ProgramHead> {
    let mut cursor = Cursor::new(sql, mode);
    let verb = cursor.eat_any(&["CREATE", "ALTER", "DROP"])?;
    cursor.eat_all(&["OR", "REPLACE"]);
    cursor.eat("TEMPORARY");
    while skip_attribute(&mut cursor)? {}
    let kind = cursor.eat_any(&KINDS)?;
    if kind == "PACKAGE" {
        cursor.eat("BODY");
    }
    let at = cursor.end();
    let says_so = cursor.eat_all(&["IF", "EXISTS"]);
    cursor.eat_all(&["IF", "NOT", "EXISTS"]);
    let is_dropped = verb == "DROP";
    let mut head = ProgramHead {
        kind,
        names: vec![cursor.named(schema)?],
        table: None,
        beside: None,
        renamed_to: None,
        body_at: None,
        if_exists_at: (is_dropped && !says_so).then_some(at),
        is_dropped,
        is_loadable: false,
    };
    if is_dropped {
        while cursor.eat_punct(b',') {
            head.names.push(cursor.named(schema)?);
        }
        cursor.eat_any(&["RESTRICT", "CASCADE"]);
        return cursor.at_end().then_some(head);
    }
    match kind {
        "VIEW" => {
            if cursor.is_punct(b'(') {
                cursor.skip_parens()?;
            }
            cursor.eat("AS").then_some(())?;
            head.body_at = Some(cursor.peek().start);
        }
        "TRIGGER" => trigger(&mut head, &mut cursor)?,
        "EVENT" => event(&mut head, &mut cursor, schema)?,
        _ => routine(&mut head, &mut cursor, verb),
    }
    Some(head)
}

fn trigger(head: &mut ProgramHead, cursor: &mut Cursor<'_>) -> Option<()> {
    // The table is in the trigger's schema.
    let schema = head.names.first()?.object.schema.clone();
    while !cursor.eat("ON") {
        if matches!(cursor.take().kind, Kind::End | Kind::Broken | Kind::Punct(b'(')) {
            return None;
        }
    }
    head.table = Some(cursor.named(&schema)?);
    cursor.eat_all(&["FOR", "EACH", "ROW"]).then_some(())?;
    if cursor.eat_any(&["FOLLOWS", "PRECEDES"]).is_some() {
        head.beside = Some(cursor.named(&schema)?);
    }
    if cursor.eat("WHEN") {
        return None;
    }
    head.body_at = Some(cursor.peek().start);
    Some(())
}

fn event(head: &mut ProgramHead, cursor: &mut Cursor<'_>, schema: &str) -> Option<()> {
    loop {
        if cursor.eat_all(&["RENAME", "TO"]) {
            head.renamed_to = Some(cursor.named(schema)?);
            continue;
        }
        if cursor.eat("DO") {
            head.body_at = Some(cursor.peek().start);
            return Some(());
        }
        match cursor.take().kind {
            Kind::End => return Some(()),
            Kind::Broken => return None,
            _ => {}
        }
    }
}

/// The body begins behind the parameters: what stands between are words that name no table.
fn routine(head: &mut ProgramHead, cursor: &mut Cursor<'_>, verb: &str) {
    let mut ahead = *cursor;
    let start = cursor.peek().start;
    loop {
        if ahead.eat("SONAME") {
            head.is_loadable = true;
            return;
        }
        if matches!(ahead.take().kind, Kind::End | Kind::Broken) {
            break;
        }
    }
    head.body_at = (verb == "CREATE").then_some(start);
}
