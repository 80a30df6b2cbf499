//! How a statement begins: its verb, and the tables that it changes.

use std::ops::Range;

use super::super::builtins::is_own_function;
use super::super::reference::{Qualifier, TableReference};
use super::state::{Scan, State, is_query};
use crate::sql::cursor::Cursor;
use crate::sql::lexer::Kind;
use crate::sql::named_object::NamedObject;

impl Scan<'_> {
    /// The beginning of a statement that changes rows, if one stands here.
    pub(super) fn verb(&mut self) -> Option<Verb> {
        let mut ahead = self.cursor;
        let verb = ahead.eat_any(&["INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD"]);
        // The functions INSERT() and REPLACE().
        let Some(verb) = verb.filter(|_| !ahead.is_punct(b'(') && !ahead.is_punct(b'.')) else {
            return Some(Verb::Other);
        };
        self.cursor = ahead;
        match verb {
            "UPDATE" => {
                while self.cursor.eat_any(&["LOW_PRIORITY", "IGNORE"]).is_some() {}
                self.set(State::Tables { next: true, changed: true })?;
            }
            "DELETE" => self.delete()?,
            "LOAD" => {
                self.cursor.eat_any(&["DATA", "XML"])?;
                while !self.cursor.eat_all(&["INTO", "TABLE"]) {
                    if matches!(self.cursor.take().kind, Kind::End | Kind::Broken) {
                        return None;
                    }
                }
                self.changed_table()?;
            }
            _ => {
                while self.cursor.eat_any(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE"]).is_some() {}
                self.cursor.eat("INTO");
                self.changed_table()?;
            }
        }
        Some(Verb::Change)
    }

    /// The one table of INSERT, REPLACE and LOAD DATA.
    pub(super) fn changed_table(&mut self) -> Option<()> {
        let named = self.cursor.named(self.schema)?;
        self.found.tables.push(TableReference { named, has_alias: false, is_changed: true });
        if self.cursor.eat("PARTITION") {
            self.cursor.skip_parens()?;
        }
        if self.cursor.is_punct(b'(') {
            // The list of columns, if it is no query.
            let mut ahead = self.cursor;
            ahead.take();
            if !is_query(&ahead) && !ahead.is_punct(b'(') {
                self.walk_parenthesis()?;
            }
        }
        self.set(State::Expression)
    }

    /// Up to its matching end, as a part of an expression.
    pub(super) fn walk_parenthesis(&mut self) -> Option<()> {
        let depth = self.frames.len();
        loop {
            self.step()?;
            if self.frames.len() <= depth {
                return Some(());
            }
        }
    }

    /// `FROM t …`, `FROM t, u USING …`, `t, u.* FROM …`
    pub(super) fn delete(&mut self) -> Option<()> {
        while self.cursor.eat_any(&["LOW_PRIORITY", "QUICK", "IGNORE", "HISTORY"]).is_some() {}
        if self.cursor.eat("FROM") {
            let mut ahead = self.cursor;
            let mut targets = Vec::new();
            while let Some(target) = target(&mut ahead, self.schema) {
                targets.push(target);
                if !ahead.eat_punct(b',') {
                    break;
                }
            }
            if ahead.eat("USING") {
                self.cursor = ahead;
                self.found.targets = targets;
            }
        } else {
            let mut targets = Vec::new();
            loop {
                targets.push(target(&mut self.cursor, self.schema)?);
                if !self.cursor.eat_punct(b',') {
                    break;
                }
            }
            self.cursor.eat("FROM").then_some(())?;
            self.found.targets = targets;
        }
        self.set(State::Tables { next: true, changed: true })
    }

    /// `WITH a AS (…), b AS (…)` in front of a statement that changes rows.
    pub(super) fn with_verb(&mut self) -> Option<()> {
        loop {
            let mut ahead = self.cursor;
            if ahead.ident().is_none() {
                return Some(());
            }
            if ahead.is_punct(b'(') {
                ahead.skip_parens()?;
            }
            if !ahead.eat("AS") || !ahead.is_punct(b'(') {
                return Some(());
            }
            self.cursor = ahead;
            self.walk_parenthesis()?;
            // MariaDB's CYCLE … RESTRICT.
            if self.cursor.eat("CYCLE") {
                while !self.cursor.eat("RESTRICT") {
                    if matches!(self.cursor.take().kind, Kind::End | Kind::Broken) {
                        return None;
                    }
                }
            }
            if !self.cursor.eat_punct(b',') {
                break;
            }
        }
        self.verb().map(|_| ())
    }

    /// Names joined by dots: a column, perhaps with its table, or a function.
    pub(super) fn names(&mut self) -> Option<()> {
        let mut parts: Vec<(String, Range<usize>)> = Vec::new();
        loop {
            let start = self.cursor.peek().start;
            let quoted = matches!(self.cursor.peek().kind, Kind::Quoted(_));
            let name = if parts.is_empty() || quoted || self.cursor.peek().kind == Kind::Word {
                self.cursor.ident()?
            } else {
                self.cursor.take();
                String::new()
            };
            parts.push((name, start..self.cursor.end()));
            let mut ahead = self.cursor;
            if !ahead.eat_punct(b'.') {
                break;
            }
            if !matches!(ahead.peek().kind, Kind::Word | Kind::Quoted(_) | Kind::Number | Kind::Punct(b'*')) {
                break;
            }
            self.cursor = ahead;
        }
        let is_call = self.cursor.is_punct(b'(');
        match (&*parts, is_call) {
            ([(name, _)], true) => {
                if !is_own_function(name) && self.found.unknown_function.is_none() {
                    self.found.unknown_function = Some(name.clone());
                }
            }
            ([(schema, schema_at), (name, name_at)], true) => self.found.routines.push(NamedObject {
                object: crate::sql::ObjectName::new(schema, name),
                schema_at: Some(schema_at.clone()),
                name_at: name_at.clone(),
            }),
            ([table, _], false) => self.found.qualifiers.push(Qualifier { schema: None, table: table.clone() }),
            ([schema, table, _], false) => {
                self.found.qualifiers.push(Qualifier { schema: Some(schema.clone()), table: table.clone() });
            }
            ([_], false) => {}
            _ => return None,
        }
        Some(())
    }
}

/// How a statement begins.
pub(super) enum Verb {
    Change,
    Other,
}

/// `t`, `d.t`, `t.*`, `d.t.*`.
fn target(cursor: &mut Cursor<'_>, schema: &str) -> Option<NamedObject> {
    let mut ahead = *cursor;
    let start = ahead.peek().start;
    let first = ahead.ident()?;
    let first_at = start..ahead.end();
    let mut named =
        NamedObject { object: crate::sql::ObjectName::new(schema, &first), schema_at: None, name_at: first_at.clone() };
    if ahead.eat_punct(b'.') && !ahead.eat_punct(b'*') {
        let start = ahead.peek().start;
        let name = ahead.ident()?;
        named = NamedObject {
            object: crate::sql::ObjectName::new(&first, &name),
            schema_at: Some(first_at),
            name_at: start..ahead.end(),
        };
        if ahead.eat_punct(b'.') {
            ahead.eat_punct(b'*').then_some(())?;
        }
    }
    *cursor = ahead;
    Some(named)
}

/// The names of `WITH name [(columns)] AS (query)`, anywhere in a text.
pub(super) fn subquery_names(mut cursor: Cursor<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let mut may_follow = false;
    loop {
        if may_follow {
            let mut ahead = cursor;
            if let Some(name) = ahead.ident() {
                let is_list = ahead.is_punct(b'(');
                let is_named = (!is_list || ahead.skip_parens().is_some())
                    && ahead.eat("AS")
                    && ahead.eat_punct(b'(')
                    && (is_query(&ahead) || ahead.is_punct(b'('));
                if is_named {
                    names.push(name);
                }
            }
        }
        may_follow = cursor.is("WITH") || cursor.is("RECURSIVE") || cursor.is_punct(b',');
        if matches!(cursor.take().kind, Kind::End | Kind::Broken) {
            return names;
        }
    }
}
