//! The clauses of an ALTER TABLE, one after the other: text only, no definition.

use crate::sql::SqlMode;
use crate::sql::create_table::{
    self, COLUMNS_MAX, Element, GuardedElement, KeyDefinition, ReadColumn, TableDefinition, character_set, collation,
    column, constraint, partitions,
};
use crate::sql::cursor::Cursor;
use crate::sql::lexer::Kind;
use crate::sql::names::ObjectName;

/// Where a column goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It stays; a new one goes to the end.
    Kept,
    First,
    After(String),
}

/// One change of a definition.
#[derive(Clone, Debug)]
pub(super) enum Clause {
    /// A new column, or one in the place of `replaces`.
    Column {
        read: ReadColumn,
        replaces: Option<String>,
        place: Place,
        guarded: bool,
    },
    DropColumn {
        name: String,
        if_exists: bool,
    },
    RenameColumn {
        from: String,
        to: String,
        if_exists: bool,
    },
    Add(GuardedElement),
    /// Also the primary key, under the name PRIMARY.
    DropKey {
        name: String,
        if_exists: bool,
    },
    DropForeignKey {
        name: String,
    },
    /// A unique key, a foreign key, the primary key or a check.
    DropConstraint {
        name: String,
    },
    RenameKey {
        from: String,
        to: String,
    },
    DropHistory,
    Convert {
        charset: Option<String>,
        collation: Option<String>,
    },
    /// Options, in an otherwise empty definition.
    Options(Box<TableDefinition>),
    MakesTable(ObjectName),
    TakesTableIn(ObjectName),
}

impl Clause {
    pub fn index(key: KeyDefinition, unique: bool, if_not_exists: bool) -> Self {
        let element = if unique { Element::Unique(key) } else { Element::Other(key) };
        Self::Add(GuardedElement { element, if_not_exists })
    }
}

/// MariaDB's `WAIT n` and `NOWAIT`.
pub(super) fn wait(cursor: &mut Cursor<'_>) -> Option<()> {
    if cursor.eat("WAIT") {
        (cursor.take().kind == Kind::Number).then_some(())?;
    } else {
        cursor.eat("NOWAIT");
    }
    Some(())
}

/// Takes words that say how the server does it, or what changes no definition; false when none stands here.
pub(super) fn how(cursor: &mut Cursor<'_>) -> Option<bool> {
    if cursor.eat_any(&["ALGORITHM", "LOCK"]).is_some() {
        cursor.eat_punct(b'=');
        cursor.ident()?;
        return Some(true);
    }
    Some(
        cursor.eat_any(&["FORCE", "SECONDARY_LOAD", "SECONDARY_UNLOAD"]).is_some()
            || cursor.eat_all(&["ENABLE", "KEYS"])
            || cursor.eat_all(&["DISABLE", "KEYS"])
            || cursor.eat_all(&["DISCARD", "TABLESPACE"])
            || cursor.eat_all(&["IMPORT", "TABLESPACE"])
            || cursor.eat_all(&["WITH", "VALIDATION"])
            || cursor.eat_all(&["WITHOUT", "VALIDATION"]),
    )
}

/// Reads one clause; what changes nothing gives no [`Clause`], a list of columns several. `schema`: that of the table; `default_schema`: the session's.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    sql: &[u8],
    schema: &str,
    default_schema: &str,
    mode: SqlMode,
) -> Option<Vec<Clause>> {
    if how(cursor)? {
        return Some(Vec::new());
    }
    if is_partitioning(cursor) {
        return of_partitions(cursor, default_schema);
    }
    if cursor.eat("ADD") {
        return add(cursor, sql, schema, mode);
    }
    if cursor.eat("DROP") {
        return drop(cursor).map(|clause| clause.into_iter().collect());
    }
    if cursor.eat("RENAME") {
        return rename(cursor, default_schema).map(|clause| clause.into_iter().collect());
    }
    if cursor.eat("ALTER") {
        return alter(cursor).map(|()| Vec::new());
    }
    if let Some(verb) = cursor.eat_any(&["CHANGE", "MODIFY"]) {
        cursor.eat("COLUMN");
        let guarded = cursor.eat_all(&["IF", "EXISTS"]);
        let old = (verb == "CHANGE").then(|| cursor.ident());
        let read = column(cursor, sql, schema, mode)?;
        let replaces = Some(old.unwrap_or_else(|| Some(read.column.name.clone()))?);
        return Some(vec![Clause::Column { read, replaces, place: place(cursor)?, guarded }]);
    }
    if cursor.eat_all(&["CONVERT", "TO"]) {
        let charset = if cursor.eat_all(&["CHARACTER", "SET", "DEFAULT"]) || cursor.eat_all(&["CHARSET", "DEFAULT"]) {
            None
        } else {
            Some(character_set(cursor)??)
        };
        return Some(vec![Clause::Convert { charset, collation: collation(cursor)? }]);
    }
    if cursor.eat_all(&["ORDER", "BY"]) {
        skip_rest(cursor)?;
        return Some(Vec::new());
    }
    let mut options = TableDefinition::empty(ObjectName::new("", ""));
    create_table::option(&mut options, cursor)?;
    // The only one that is no option of an ALTER.
    options.history.is_none().then(|| vec![Clause::Options(Box::new(options))])
}

fn place(cursor: &mut Cursor<'_>) -> Option<Place> {
    if cursor.eat("FIRST") {
        return Some(Place::First);
    }
    if cursor.eat("AFTER") {
        return cursor.ident().map(Place::After);
    }
    Some(Place::Kept)
}

fn add(cursor: &mut Cursor<'_>, sql: &[u8], schema: &str, mode: SqlMode) -> Option<Vec<Clause>> {
    if cursor.eat_all(&["SYSTEM", "VERSIONING"]) {
        return Some(vec![Clause::Add(Element::History(create_table::History::Hidden).into())]);
    }
    let column_word = cursor.eat("COLUMN");
    let guarded = cursor.eat_all(&["IF", "NOT", "EXISTS"]);
    if !column_word
        && !guarded
        && let Some(read) = constraint(cursor, schema)?
    {
        return Some(vec![Clause::Add(read)]);
    }
    if !cursor.eat_punct(b'(') {
        let read = column(cursor, sql, schema, mode)?;
        return Some(vec![Clause::Column { read, replaces: None, place: place(cursor)?, guarded }]);
    }
    let mut clauses = Vec::new();
    loop {
        clauses.push(match constraint(cursor, schema)? {
            Some(read) => Clause::Add(read),
            None => {
                let read = column(cursor, sql, schema, mode)?;
                Clause::Column { read, replaces: None, place: Place::Kept, guarded }
            }
        });
        if cursor.eat_punct(b')') {
            return Some(clauses);
        }
        cursor.eat_punct(b',').then_some(())?;
        if clauses.len() > COLUMNS_MAX {
            return None;
        }
    }
}

/// `Some(None)`: nothing that a definition has.
fn drop(cursor: &mut Cursor<'_>) -> Option<Option<Clause>> {
    let if_exists = |cursor: &mut Cursor<'_>| cursor.eat_all(&["IF", "EXISTS"]);
    if cursor.eat_all(&["SYSTEM", "VERSIONING"]) {
        return Some(Some(Clause::DropHistory));
    }
    if cursor.eat_all(&["PRIMARY", "KEY"]) {
        return Some(Some(Clause::DropKey { name: "PRIMARY".to_owned(), if_exists: false }));
    }
    if cursor.eat_all(&["FOREIGN", "KEY"]) {
        if_exists(cursor);
        return Some(Some(Clause::DropForeignKey { name: cursor.ident()? }));
    }
    if cursor.eat_any(&["INDEX", "KEY"]).is_some() {
        let if_exists = if_exists(cursor);
        return Some(Some(Clause::DropKey { name: cursor.ident()?, if_exists }));
    }
    if cursor.eat("CONSTRAINT") {
        if_exists(cursor);
        return Some(Some(Clause::DropConstraint { name: cursor.ident()? }));
    }
    if cursor.eat("CHECK") {
        cursor.ident()?;
        return Some(None);
    }
    let mut ahead = *cursor;
    if ahead.eat("PERIOD") {
        if_exists(&mut ahead);
        if ahead.eat("FOR") {
            ahead.ident()?;
            *cursor = ahead;
            return Some(None);
        }
    }
    cursor.eat("COLUMN");
    let if_exists = if_exists(cursor);
    let name = cursor.ident()?;
    cursor.eat_any(&["RESTRICT", "CASCADE"]);
    Some(Some(Clause::DropColumn { name, if_exists }))
}

/// `Some(None)`: the table's own name.
fn rename(cursor: &mut Cursor<'_>, default_schema: &str) -> Option<Option<Clause>> {
    if cursor.eat("COLUMN") {
        let if_exists = cursor.eat_all(&["IF", "EXISTS"]);
        let from = cursor.ident()?;
        cursor.eat("TO").then_some(())?;
        return Some(Some(Clause::RenameColumn { from, to: cursor.ident()?, if_exists }));
    }
    if cursor.eat_any(&["INDEX", "KEY"]).is_some() {
        cursor.eat_all(&["IF", "EXISTS"]);
        let from = cursor.ident()?;
        cursor.eat("TO").then_some(())?;
        return Some(Some(Clause::RenameKey { from, to: cursor.ident()? }));
    }
    if cursor.eat_any(&["TO", "AS"]).is_none() {
        cursor.eat_punct(b'=');
    }
    cursor.object(default_schema)?;
    Some(None)
}

/// `ALTER COLUMN … SET DEFAULT`, `ALTER INDEX … INVISIBLE` and their like: what is in the way of a row stays.
fn alter(cursor: &mut Cursor<'_>) -> Option<()> {
    if cursor.eat_any(&["INDEX", "KEY"]).is_some() {
        cursor.eat_all(&["IF", "EXISTS"]);
        cursor.ident()?;
        let known =
            cursor.eat_any(&["VISIBLE", "INVISIBLE", "IGNORED"]).is_some() || cursor.eat_all(&["NOT", "IGNORED"]);
        return known.then_some(());
    }
    if cursor.eat_any(&["CHECK", "CONSTRAINT"]).is_some() {
        cursor.ident()?;
        return (cursor.eat("ENFORCED") || cursor.eat_all(&["NOT", "ENFORCED"])).then_some(());
    }
    cursor.eat("COLUMN");
    cursor.eat_all(&["IF", "EXISTS"]);
    cursor.ident()?;
    if cursor.eat_all(&["DROP", "DEFAULT"]) {
        return Some(());
    }
    cursor.eat("SET").then_some(())?;
    if cursor.eat_any(&["VISIBLE", "INVISIBLE"]).is_some() {
        return Some(());
    }
    cursor.eat("DEFAULT").then_some(())?;
    // An expression: up to the next clause.
    while !cursor.at_end() && !cursor.is_punct(b',') {
        skip_one(cursor)?;
    }
    Some(())
}

/// The words that begin what is done to partitions, and nothing else.
fn is_partitioning(cursor: &Cursor<'_>) -> bool {
    const VERBS: [&str; 14] = [
        "ADD",
        "DROP",
        "COALESCE",
        "REORGANIZE",
        "ANALYZE",
        "CHECK",
        "OPTIMIZE",
        "REBUILD",
        "REPAIR",
        "TRUNCATE",
        "DISCARD",
        "IMPORT",
        "EXCHANGE",
        "CONVERT",
    ];
    let behind = |words: &[&str]| { *cursor }.eat_all(words);
    VERBS.iter().any(|verb| behind(&[verb, "PARTITION"]))
        || behind(&["PARTITION", "BY"])
        || behind(&["REMOVE", "PARTITIONING"])
        || behind(&["UPGRADE", "PARTITIONING"])
        || behind(&["CONVERT", "TABLE"])
}

fn of_partitions(cursor: &mut Cursor<'_>, default_schema: &str) -> Option<Vec<Clause>> {
    if cursor.is("PARTITION") {
        return partitions(cursor).map(|()| Vec::new());
    }
    let mut found = Vec::new();
    if cursor.eat_all(&["CONVERT", "TABLE"]) {
        found.push(Clause::TakesTableIn(cursor.object(default_schema)?));
    } else if cursor.eat_all(&["CONVERT", "PARTITION"]) {
        cursor.ident()?;
        cursor.eat_all(&["TO", "TABLE"]).then_some(())?;
        found.push(Clause::MakesTable(cursor.object(default_schema)?));
    } else if cursor.eat_all(&["REMOVE", "PARTITIONING"]) {
        return Some(found);
    }
    skip_rest(cursor)?;
    Some(found)
}

/// Takes a token, or a parenthesis with all that is in it.
fn skip_one(cursor: &mut Cursor<'_>) -> Option<()> {
    if cursor.is_punct(b'(') {
        return cursor.skip_parens();
    }
    (!matches!(cursor.take().kind, Kind::End | Kind::Broken | Kind::Punct(b';' | b')'))).then_some(())
}

fn skip_rest(cursor: &mut Cursor<'_>) -> Option<()> {
    while !cursor.at_end() {
        skip_one(cursor)?;
    }
    Some(())
}
