//! Where the walk is: in which list of tables or expression, and in how many parentheses.

use super::super::reference::References;
use crate::sql::cursor::Cursor;

/// Where the walk is, within one pair of parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Columns, values, conditions.
    Expression,
    /// A list of tables. `next`: a table comes next.
    Tables { next: bool, changed: bool },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub state: State,
    /// It has a SELECT, so that FROM begins a list of tables. In `TRIM(a FROM b)` it does not.
    pub is_query: bool,
    /// A CASE expression, or statement, is open.
    pub cases: u32,
}

impl Frame {
    pub const fn expression() -> Self {
        Self { state: State::Expression, is_query: false, cases: 0 }
    }
}

/// What the walk has found so far, and where it is.
pub(in crate::sql::references) struct Scan<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) schema: &'a str,
    pub(super) frames: Vec<Frame>,
    pub(super) names: Vec<String>,
    pub(super) found: References,
    /// A statement of a program may begin here.
    pub(super) begins: bool,
    pub(super) is_body: bool,
    /// Parentheses may be open where the walk begins.
    pub(super) begins_inside: bool,
}

impl Scan<'_> {
    pub(super) fn frame(&mut self) -> Option<&mut Frame> {
        self.frames.last_mut()
    }

    pub(super) fn set(&mut self, state: State) -> Option<()> {
        self.frame()?.state = state;
        Some(())
    }

    pub(super) fn state(&self) -> Option<State> {
        self.frames.last().map(|frame| frame.state)
    }
}

pub(super) fn is_query(cursor: &Cursor<'_>) -> bool {
    ["SELECT", "WITH", "VALUES", "TABLE"].iter().any(|word| cursor.is(word))
}
