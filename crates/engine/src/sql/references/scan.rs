//! The walk over a statement's tokens that finds tables. Never backtracks: one state for each open parenthesis.

mod state;
mod verbs;
mod words;

pub(super) use self::state::Scan;
use self::state::{Frame, State, is_query};
use self::verbs::{Verb, subquery_names};
use super::reference::References;
use crate::sql::cursor::Cursor;
use crate::sql::lexer::Kind;

/// Statements of a program that may do anything, or whose tables stand elsewhere.
const NOT_READ: [&str; 26] = [
    "CREATE",
    "ALTER",
    "DROP",
    "RENAME",
    "TRUNCATE",
    "PREPARE",
    "EXECUTE",
    "DEALLOCATE",
    "LOCK",
    "UNLOCK",
    "HANDLER",
    "GRANT",
    "REVOKE",
    "ANALYZE",
    "OPTIMIZE",
    "REPAIR",
    "CHECK",
    "CHECKSUM",
    "FLUSH",
    "INSTALL",
    "UNINSTALL",
    "IMPORT",
    "SHOW",
    "DESCRIBE",
    "EXPLAIN",
    "LOAD",
];

impl<'a> Scan<'a> {
    pub fn new(cursor: Cursor<'a>, schema: &'a str) -> Self {
        Self {
            names: subquery_names(cursor),
            cursor,
            schema,
            frames: vec![Frame::expression()],
            found: References::default(),
            begins: false,
            is_body: false,
            begins_inside: false,
        }
    }

    pub fn change(mut self) -> Option<References> {
        let verb = self.verb()?;
        if matches!(verb, Verb::Other) && !self.cursor.is("WITH") {
            return None;
        }
        self.walk()
    }

    pub fn query(mut self) -> Option<References> {
        self.begins_inside = true;
        self.walk()
    }

    pub fn body(mut self) -> Option<References> {
        self.is_body = true;
        self.begins = true;
        self.walk()
    }

    fn walk(mut self) -> Option<References> {
        while self.step()? {}
        (self.frames.len() == 1).then_some(self.found)
    }

    /// One token, or some that belong together; false at the end.
    fn step(&mut self) -> Option<bool> {
        let begins = std::mem::take(&mut self.begins);
        if begins && self.is_body {
            self.statement()?;
            // Behind a label, or in a handler.
            if self.begins {
                return Some(true);
            }
        }
        match self.cursor.peek().kind {
            Kind::End => return Some(false),
            Kind::Broken => return None,
            Kind::Punct(byte) => self.punct(byte)?,
            Kind::Text | Kind::Number => {
                if matches!(self.state()?, State::Tables { next: true, .. }) {
                    return None;
                }
                self.cursor.take();
            }
            Kind::Word | Kind::Quoted(_) => match self.state()? {
                State::Tables { next: true, changed } => self.table(changed)?,
                state => {
                    if self.cursor.peek().kind != Kind::Word || !self.keyword(state)? {
                        self.names()?;
                    }
                }
            },
        }
        Some(true)
    }

    /// A statement of a program begins.
    fn statement(&mut self) -> Option<()> {
        self.frames = vec![Frame::expression()];
        // A CASE here is a statement, and has no END of its own to wait for.
        if self.cursor.eat("CASE") {
            return Some(());
        }
        if self.cursor.eat("DECLARE") {
            return self.declaration();
        }
        let mut ahead = self.cursor;
        if let Some(word) = ahead.eat_any(&NOT_READ)
            && !ahead.is_punct(b'.')
            && !ahead.is_punct(b':')
            && !(word == "REPAIR" && ahead.is_punct(b'('))
        {
            return None;
        }
        if self.cursor.eat("CALL") {
            let named = self.cursor.named(self.schema)?;
            self.found.routines.push(named);
            return Some(());
        }
        // `label: statement`
        let mut ahead = self.cursor;
        if ahead.is_name() {
            ahead.take();
            if ahead.eat_punct(b':') && !ahead.is_punct(b'=') {
                self.cursor = ahead;
                self.begins = true;
                return Some(());
            }
        }
        self.verb().map(|_| ())
    }

    /// Behind DECLARE: a handler has a statement of its own.
    fn declaration(&mut self) -> Option<()> {
        let mut ahead = self.cursor;
        ahead.eat_any(&["CONTINUE", "EXIT", "UNDO"]);
        if !ahead.eat_all(&["HANDLER", "FOR"]) {
            return Some(());
        }
        loop {
            if ahead.eat("SQLSTATE") {
                ahead.eat("VALUE");
            }
            ahead.eat("NOT");
            if matches!(ahead.take().kind, Kind::End | Kind::Broken | Kind::Punct(_)) {
                return None;
            }
            if !ahead.eat_punct(b',') {
                break;
            }
        }
        self.cursor = ahead;
        self.begins = true;
        Some(())
    }

    fn punct(&mut self, byte: u8) -> Option<()> {
        let state = self.state()?;
        match byte {
            b'(' => {
                let next = matches!(state, State::Tables { next: true, .. });
                if let State::Tables { next: true, changed } = state {
                    self.set(State::Tables { next: false, changed })?;
                }
                self.cursor.take();
                let is_join = next && !is_query(&self.cursor);
                let inner = match state {
                    State::Tables { changed, .. } if is_join => State::Tables { next: true, changed },
                    _ => State::Expression,
                };
                self.frames.push(Frame { state: inner, ..Frame::expression() });
            }
            b')' => {
                if self.frames.len() == 1 && self.begins_inside {
                    self.cursor.take();
                    return self.set(State::Expression);
                }
                if self.frames.len() < 2 || matches!(state, State::Tables { next: true, .. }) {
                    return None;
                }
                self.frames.pop();
                self.cursor.take();
            }
            b',' => {
                self.cursor.take();
                if let State::Tables { changed, .. } = state {
                    self.set(State::Tables { next: true, changed })?;
                }
            }
            b';' => {
                if !self.is_body && !self.cursor.at_end() || self.frames.len() > 1 {
                    return None;
                }
                self.cursor.take();
                self.begins = self.is_body;
                self.set(State::Expression)?;
            }
            b'@' => {
                // A variable, whose name may have dots.
                self.cursor.take();
                while self.cursor.eat_punct(b'@') {}
                loop {
                    if matches!(self.cursor.peek().kind, Kind::Word | Kind::Quoted(_) | Kind::Text | Kind::Number) {
                        self.cursor.take();
                    }
                    if !self.cursor.eat_punct(b'.') {
                        break;
                    }
                }
            }
            // ODBC's outer join: `{ OJ … }`.
            b'{' | b'}' => return None,
            _ if matches!(state, State::Tables { next: true, .. }) => return None,
            _ => {
                self.cursor.take();
            }
        }
        Some(())
    }
}
