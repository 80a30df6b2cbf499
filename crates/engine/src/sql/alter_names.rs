//! The tables that ALTER TABLE names beside its own: one walk for those who key a statement and those who rewrite it. Never says what the statement does to them.

use super::cursor::Cursor;
use super::lexer::Kind;
use super::named_object::NamedObject;

/// What a table is to the ALTER TABLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AlterRole {
    /// What a foreign key refers to.
    Parent,
    /// The new name of the table. The server puts one without a schema into the session's, not the table's.
    NewName,
    /// EXCHANGE PARTITION … WITH TABLE, CONVERT PARTITION … TO TABLE, CONVERT TABLE … TO PARTITION, UNION of a MERGE table.
    Partner,
}

/// Walks to the statement's end from behind the table's own name. `own_schema`: of that table; `schema`: the session's.
pub(super) fn alter_names(
    cursor: &mut Cursor<'_>,
    own_schema: &str,
    schema: &str,
    take: &mut dyn FnMut(AlterRole, NamedObject),
) -> Option<()> {
    let mut depth = 0u32;
    loop {
        if cursor.eat("REFERENCES") {
            take(AlterRole::Parent, cursor.named(own_schema)?);
            continue;
        }
        if depth == 0 {
            if cursor.eat("RENAME") {
                if cursor.eat_any(&["COLUMN", "INDEX", "KEY", "CONSTRAINT"]).is_none() {
                    if cursor.eat_any(&["TO", "AS"]).is_none() {
                        cursor.eat_punct(b'=');
                    }
                    take(AlterRole::NewName, cursor.named(schema)?);
                }
                continue;
            }
            if cursor.eat_all(&["WITH", "TABLE"])
                || cursor.eat_all(&["TO", "TABLE"])
                || cursor.eat_all(&["CONVERT", "TABLE"])
            {
                take(AlterRole::Partner, cursor.named(schema)?);
                continue;
            }
            if cursor.eat("UNION") {
                union_names(cursor, schema, &mut |named| take(AlterRole::Partner, named))?;
                continue;
            }
        }
        match cursor.take().kind {
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => depth = depth.checked_sub(1)?,
            Kind::End if depth == 0 => return Some(()),
            Kind::Punct(b';') if depth == 0 && cursor.at_end() => return Some(()),
            Kind::End | Kind::Broken | Kind::Punct(b';') => return None,
            _ => {}
        }
    }
}

/// The tables of a MERGE table, behind `UNION`.
pub(super) fn union_names(cursor: &mut Cursor<'_>, schema: &str, take: &mut dyn FnMut(NamedObject)) -> Option<()> {
    cursor.eat_punct(b'=');
    cursor.eat_punct(b'(').then_some(())?;
    while !cursor.eat_punct(b')') {
        take(cursor.named(schema)?);
        cursor.eat_punct(b',');
    }
    Some(())
}

/// MariaDB's `WAIT n` and `NOWAIT`.
pub(super) fn wait(cursor: &mut Cursor<'_>) {
    if cursor.eat("WAIT") {
        cursor.take();
    } else {
        cursor.eat("NOWAIT");
    }
}
