//! Statements that change rows: their kind, and the table when there is just one, and its name can be read.

use super::cursor::Cursor;
use super::lexer::Kind;
use super::statement::{Class, DmlKind, Statement};

pub(super) fn classify(verb: &str, cursor: &mut Cursor<'_>, schema: &str) -> Option<Statement> {
    let mut tables = Vec::new();
    let kind = match verb {
        "INSERT" | "REPLACE" => {
            while cursor.eat_any(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE"]).is_some() {}
            cursor.eat("INTO");
            tables.extend(cursor.object(schema));
            if verb == "INSERT" { DmlKind::Insert } else { DmlKind::Replace }
        }
        "UPDATE" => {
            while cursor.eat_any(&["LOW_PRIORITY", "IGNORE"]).is_some() {}
            if let Some(table) = cursor.object(schema)
                && is_alone(cursor, &["SET"])
            {
                tables.push(table);
            }
            DmlKind::Update
        }
        "DELETE" => {
            while cursor.eat_any(&["LOW_PRIORITY", "QUICK", "IGNORE", "HISTORY"]).is_some() {}
            if cursor.eat("FROM")
                && let Some(table) = cursor.object(schema)
                && is_alone(cursor, &["WHERE", "ORDER", "LIMIT", "RETURNING", "PARTITION", "BEFORE"])
            {
                tables.push(table);
            }
            DmlKind::Delete
        }
        "LOAD" => {
            cursor.eat_any(&["DATA", "XML"])?;
            while !cursor.eat_all(&["INTO", "TABLE"]) {
                if matches!(cursor.take().kind, Kind::End | Kind::Broken) {
                    return None;
                }
            }
            tables.extend(cursor.object(schema));
            DmlKind::LoadData
        }
        _ => DmlKind::Other,
    };
    Some(Statement { tables, ..Statement::of(Class::Dml { kind }) })
}

/// Whether the table just read is followed by one of `words` or the end, perhaps after an alias: no second table.
fn is_alone(cursor: &Cursor<'_>, words: &[&'static str]) -> bool {
    let ends = |cursor: &Cursor<'_>| cursor.at_end() || words.iter().any(|word| cursor.is(word));
    let mut ahead = *cursor;
    if ends(&ahead) {
        return true;
    }
    ahead.eat("AS");
    ahead.ident().is_some() && ends(&ahead)
}
