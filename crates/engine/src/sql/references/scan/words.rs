//! Words within a statement: those that begin or end a list of tables, and the tables of a list with their aliases.

use super::super::reference::TableReference;
use super::state::{Frame, Scan, State, is_query};
use crate::sql::cursor::Cursor;
use crate::sql::lexer::Kind;

/// Words behind which a list of tables has ended.
const AFTER_TABLES: [&str; 17] = [
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "WINDOW",
    "SET",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "PROCEDURE",
    "INTO",
    "LOCK",
    "VALUES",
    "RETURNING",
    "FETCH",
    "OFFSET",
];

/// Words that may follow a table and are not its alias.
const NO_ALIAS: [&str; 28] = [
    "JOIN",
    "INNER",
    "LEFT",
    "RIGHT",
    "CROSS",
    "NATURAL",
    "STRAIGHT_JOIN",
    "OUTER",
    "FULL",
    "ON",
    "USING",
    "USE",
    "FORCE",
    "IGNORE",
    "PARTITION",
    "FOR",
    "SELECT",
    "VALUE",
    "WITH",
    "AS",
    "BEFORE",
    "TABLESAMPLE",
    "DO",
    "LOOP",
    "THEN",
    "TABLE",
    "END",
    "ELSE",
];

impl<'a> Scan<'a> {
    /// A name in a list of tables.
    pub(super) fn table(&mut self, changed: bool) -> Option<()> {
        if self.cursor.eat("LATERAL") {
            return Some(());
        }
        let named = self.cursor.named(self.schema)?;
        self.set(State::Tables { next: false, changed })?;
        if self.cursor.is_punct(b'(') {
            // JSON_TABLE and the like: what is in it is an expression.
            return Some(());
        }
        if self.cursor.is_punct(b'.') {
            return None;
        }
        if self.cursor.eat("PARTITION") {
            self.cursor.skip_parens()?;
        }
        let has_alias = self.alias()?;
        let is_plain = named.schema_at.is_none();
        if is_plain && (named.object.name.eq_ignore_ascii_case("DUAL") || self.is_subquery(&named.object.name)) {
            return Some(());
        }
        self.found.tables.push(TableReference { named, has_alias, is_changed: changed });
        Some(())
    }

    pub(super) fn is_subquery(&self, name: &str) -> bool {
        self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Behind a table.
    pub(super) fn alias(&mut self) -> Option<bool> {
        let mut ahead = self.cursor;
        // FOR SYSTEM_TIME AS OF comes in front of it.
        let is_said = ahead.eat("AS");
        let is_alias = match ahead.peek().kind {
            Kind::Quoted(_) => true,
            Kind::Word if is_said => true,
            Kind::Word => !NO_ALIAS.iter().chain(&AFTER_TABLES).any(|word| ahead.is(word)),
            _ => false,
        };
        if !is_alias {
            return (!is_said).then_some(false);
        }
        let name = ahead.ident()?;
        self.cursor = ahead;
        self.found.aliases.push(name);
        Some(true)
    }

    /// Words that change the state, where no table comes next. False: it is a name like others.
    pub(super) fn keyword(&mut self, state: State) -> Option<bool> {
        let mut ahead = self.cursor;
        let token = ahead.take();
        // A column may have such a name behind a dot, and a table in front of one.
        if ahead.is_punct(b'.') {
            return Some(false);
        }
        let Ok(word) = std::str::from_utf8(token.text) else { return Some(false) };
        let word = word.to_ascii_uppercase();
        let in_tables = matches!(state, State::Tables { .. });
        let changed = matches!(state, State::Tables { changed: true, .. });
        match &*word {
            "SELECT" => {
                let frame = self.frame()?;
                frame.is_query = true;
                frame.state = State::Expression;
                self.cursor = ahead;
                // A modifier here, not a join.
                while self.cursor.eat_any(&["ALL", "DISTINCT", "STRAIGHT_JOIN", "HIGH_PRIORITY"]).is_some() {}
            }
            "FROM" if self.frames.last().is_some_and(|frame| frame.is_query) => {
                self.cursor = ahead;
                self.set(State::Tables { next: true, changed: false })?;
            }
            "TABLE" if !ahead.is_punct(b'(') => {
                self.cursor = ahead;
                self.set(State::Tables { next: true, changed: false })?;
            }
            "JOIN" | "STRAIGHT_JOIN" if in_tables => {
                self.cursor = ahead;
                self.set(State::Tables { next: true, changed })?;
            }
            "FOR" => return self.for_clause(ahead, in_tables),
            "NEXT" | "PREVIOUS" if { ahead }.eat_all(&["VALUE", "FOR"]) => {
                ahead.eat_all(&["VALUE", "FOR"]);
                self.cursor = ahead;
                self.sequence()?;
            }
            "NEXTVAL" | "LASTVAL" | "SETVAL" if ahead.eat_punct(b'(') => {
                self.cursor = ahead;
                self.frames.push(Frame::expression());
                self.sequence()?;
            }
            "WITH" => {
                self.cursor = ahead;
                self.cursor.eat("RECURSIVE");
                // The verb behind the named queries.
                self.with_verb()?;
            }
            "CASE" | "END" | "BEGIN" | "THEN" | "ELSE" | "DO" | "LOOP" | "REPEAT" if self.is_body => {
                return self.program_word(&word, ahead);
            }
            "ON" if in_tables && ahead.is("DUPLICATE") => {
                self.cursor = ahead;
                self.set(State::Expression)?;
            }
            // The alias of a new row may have a list of columns, which is no call.
            "AS" if ahead.is_name() && !is_query(&ahead) => {
                self.cursor = ahead;
                let name = self.cursor.ident()?;
                self.found.aliases.push(name);
            }
            word if in_tables && AFTER_TABLES.contains(&word) => {
                self.cursor = ahead;
                self.set(State::Expression)?;
            }
            _ => return Some(false),
        }
        Some(true)
    }

    /// Behind `FOR`: hints and the time of versions, after which the list of tables goes on, or a lock.
    fn for_clause(&mut self, mut ahead: Cursor<'a>, in_tables: bool) -> Option<bool> {
        if in_tables && (ahead.is("JOIN") || ahead.is("ORDER") || ahead.is("GROUP")) {
            ahead.take();
            ahead.eat("BY");
        } else if in_tables && ahead.eat("PORTION") {
            ahead.eat("OF").then_some(())?;
            ahead.take();
        } else if in_tables && ahead.eat("SYSTEM_TIME") {
            if ahead.eat_all(&["AS", "OF"]) {
                ahead.eat("TIMESTAMP");
            }
        } else if ahead.eat_any(&["UPDATE", "SHARE"]).is_some() {
            // FOR UPDATE OF names tables.
            if ahead.is("OF") {
                return None;
            }
            self.cursor = ahead;
            self.set(State::Expression)?;
            return Some(true);
        } else {
            return Some(false);
        }
        self.cursor = ahead;
        Some(true)
    }

    /// A word of a program's body.
    fn program_word(&mut self, word: &str, mut ahead: Cursor<'a>) -> Option<bool> {
        match word {
            "CASE" => self.frame()?.cases += 1,
            "END" => {
                let frame = self.frame()?;
                let is_expression = frame.cases > 0;
                frame.cases = frame.cases.saturating_sub(1);
                if !is_expression {
                    ahead.eat_any(&["CASE", "IF", "LOOP", "REPEAT", "WHILE", "FOR"]);
                }
            }
            _ if ahead.is_punct(b'(') => return Some(false),
            _ => {
                self.cursor = ahead;
                self.begins = self.frames.len() == 1 && self.frame()?.cases == 0;
                return Some(true);
            }
        }
        self.cursor = ahead;
        Some(true)
    }

    pub(super) fn sequence(&mut self) -> Option<()> {
        let named = self.cursor.named(self.schema)?;
        self.found.tables.push(TableReference { named, has_alias: true, is_changed: true });
        Some(())
    }
}
