//! Parses statements: only the forms that replicas and tools are known to send.

use wire::server::ServerError;

use super::catalogue::{Catalogue, catalogue};
use super::errors::not_supported;
use super::tokens::{PositionedToken, Token, tokens};

/// Nested calls: nothing that is known has two.
const DEPTH_MAX: usize = 8;

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Statement {
    /// There is nothing to do: a transaction without tables, an empty statement.
    Nothing,
    Select(Vec<Item>),
    /// Of `information_schema.processlist`.
    Processes(Processes),
    Set(Vec<Assignment>),
    Show(ShowStatement),
    /// Of schemas, tables and columns.
    Catalogue(Catalogue),
    /// What the account may do.
    Grants,
    Kill(u32),
}

/// A SELECT from the list of connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Processes {
    pub(super) items: Vec<Item>,
    /// Only lines whose column is one of these: its name in lower case.
    pub(super) only: Option<(String, Vec<String>)>,
}

/// A column of SELECT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) value: Value,
}

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Text(String),
    Number(String),
    /// In lower case. `of_session`: one that was set in this session comes first.
    System {
        name: String,
        scope: Scope,
    },
    User(String),
    Call {
        name: String,
        arguments: Vec<Value>,
    },
    /// Of a line, in lower case.
    Column(String),
    Equal(Box<Value>, Box<Value>),
}

/// The scope of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Global,
    Session,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) target: SetTarget,
    pub(super) value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SetTarget {
    User(String),
    Session(String),
    Global(String),
}

/// A SHOW statement: its words in lower case, and the wanted rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShowStatement {
    pub(super) what: String,
    pub(super) scope: Scope,
    pub(super) lines: RowFilter,
    /// The text, for errors.
    pub(super) sql: String,
}

/// Which rows are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowFilter {
    All,
    /// Names that are like one of these.
    Like(Vec<String>),
}

pub(super) fn statement(sql: &str) -> Result<Statement, ServerError> {
    let mut tokens = tokens(sql)?;
    while tokens.last().is_some_and(|last| last.token == Token::Sign(';')) {
        tokens.pop();
    }
    if let Some(asked) = catalogue(sql, &tokens)? {
        return Ok(Statement::Catalogue(asked));
    }
    if is_grants(&tokens) {
        return Ok(Statement::Grants);
    }
    let mut parser = Parser { sql, tokens: &tokens, at: 0 };
    let Some(first) = parser.word() else {
        return if tokens.is_empty() { Ok(Statement::Nothing) } else { Err(not_supported(sql)) };
    };
    let parsed = match first.as_str() {
        "select" => parser.select(),
        "set" => parser.set(),
        "show" => parser.show(),
        "kill" => parser.kill(),
        "begin" | "commit" | "rollback" | "use" | "do" => return Ok(Statement::Nothing),
        // Nothing is locked by it, and nothing has to be.
        "unlock" if parser.accept("tables") => return Ok(Statement::Nothing),
        "start" if parser.accept("transaction") => return Ok(Statement::Nothing),
        _ => None,
    };
    parsed.ok_or_else(|| not_supported(sql))
}

struct Parser<'a> {
    sql: &'a str,
    tokens: &'a [PositionedToken],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|placed| &placed.token)
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// The next word, in lower case.
    fn word(&mut self) -> Option<String> {
        let Some(Token::Word(word)) = self.peek() else { return None };
        let word = word.to_lowercase();
        self.at += 1;
        Some(word)
    }

    fn accept(&mut self, word: &str) -> bool {
        let is_there = self.peek().is_some_and(|token| token.is(word));
        self.at += usize::from(is_there);
        is_there
    }

    fn accept_sign(&mut self, sign: char) -> bool {
        let is_there = self.peek() == Some(&Token::Sign(sign));
        self.at += usize::from(is_there);
        is_there
    }

    fn select(&mut self) -> Option<Statement> {
        let mut items = Vec::new();
        loop {
            let from = self.tokens.get(self.at)?.from;
            let value = self.value(0)?;
            let to = self.tokens.get(self.at.checked_sub(1)?)?.to;
            let mut name = self.sql.get(from..to)?.to_owned();
            if self.accept("as") || matches!(self.peek(), Some(Token::Word(word)) if !is_clause(word)) {
                name = match self.peek()? {
                    Token::Word(text) | Token::Text(text) => text.clone(),
                    _ => return None,
                };
                self.at += 1;
            }
            items.push(Item { name, value });
            if !self.accept_sign(',') {
                break;
            }
        }
        if self.accept("from") && !self.accept("dual") {
            return self.processes(items);
        }
        if self.accept("limit") {
            self.at += 1;
        }
        self.is_at_end().then_some(Statement::Select(items))
    }

    /// Behind FROM: `information_schema.processlist [WHERE column = '…' | column IN ('…', …)]`.
    fn processes(&mut self, items: Vec<Item>) -> Option<Statement> {
        let is_list = self.accept("information_schema") && self.accept_sign('.') && self.accept("processlist");
        if !is_list {
            return None;
        }
        let mut only = None;
        if self.accept("where") {
            let column = self.word()?;
            let values = if self.accept_sign('=') { vec![self.text()?] } else { self.texts()? };
            only = Some((column, values));
        }
        self.is_at_end().then_some(Statement::Processes(Processes { items, only }))
    }

    /// `IN ('…', …)`.
    fn texts(&mut self) -> Option<Vec<String>> {
        if !(self.accept("in") && self.accept_sign('(')) {
            return None;
        }
        let mut texts = Vec::new();
        loop {
            texts.push(self.text()?);
            if !self.accept_sign(',') {
                break;
            }
        }
        self.accept_sign(')').then_some(texts)
    }

    /// With `=` behind it.
    fn value(&mut self, depth: usize) -> Option<Value> {
        let value = self.single(depth)?;
        if !self.accept_sign('=') {
            return Some(value);
        }
        let other = self.single(depth + 1)?;
        Some(Value::Equal(Box::new(value), Box::new(other)))
    }

    fn single(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        let token = self.peek()?.clone();
        self.at += 1;
        match token {
            Token::Text(text) => Some(Value::Text(text)),
            Token::Number(number) => Some(Value::Number(number)),
            Token::Sign('-') => match self.single(depth + 1)? {
                Value::Number(number) => Some(Value::Number(format!("-{number}"))),
                _ => None,
            },
            Token::UserVariable(name) => Some(Value::User(name)),
            Token::At => {
                let (scope, name) = self.system_name()?;
                Some(Value::System { name, scope: scope.unwrap_or(Scope::Session) })
            }
            Token::Word(word) if word.eq_ignore_ascii_case("null") => Some(Value::Null),
            Token::Word(name) if self.accept_sign('(') => {
                let mut arguments = Vec::new();
                while !self.accept_sign(')') {
                    arguments.push(self.value(depth + 1)?);
                    if !self.accept_sign(',') && self.peek() != Some(&Token::Sign(')')) {
                        return None;
                    }
                }
                Some(Value::Call { name: name.to_lowercase(), arguments })
            }
            Token::Word(word) if is_bare_function(&word) => {
                Some(Value::Call { name: word.to_lowercase(), arguments: Vec::new() })
            }
            Token::Word(word) if !is_clause(&word) => Some(Value::Column(word.to_lowercase())),
            Token::Word(_) | Token::Sign(_) => None,
        }
    }

    /// Behind `@@`.
    fn system_name(&mut self) -> Option<(Option<Scope>, String)> {
        let first = self.word()?;
        let scope = match first.as_str() {
            "global" => Some(Scope::Global),
            "session" | "local" => Some(Scope::Session),
            _ => None,
        };
        if scope.is_some() && self.accept_sign('.') {
            return Some((scope, self.word()?));
        }
        Some((None, first))
    }

    fn set(&mut self) -> Option<Statement> {
        if self.accept("names") || self.accept("character") || self.accept("charset") || self.accept("transaction") {
            return Some(Statement::Nothing);
        }
        let mut assignments = Vec::new();
        let mut scope = Scope::Session;
        loop {
            let target = self.set_target(&mut scope)?;
            if !(self.accept_sign('=') || self.accept_sign(':') && self.accept_sign('=')) {
                return None;
            }
            let value = self.set_value()?;
            assignments.push(Assignment { target, value });
            if !self.accept_sign(',') {
                break;
            }
            if self.accept("names") {
                self.at += 1;
                if !self.accept_sign(',') {
                    break;
                }
            }
        }
        self.is_at_end().then_some(Statement::Set(assignments))
    }

    fn set_target(&mut self, scope: &mut Scope) -> Option<SetTarget> {
        let by_scope = |scope, name| match scope {
            Scope::Global => SetTarget::Global(name),
            Scope::Session => SetTarget::Session(name),
        };
        match self.peek()?.clone() {
            Token::UserVariable(name) => {
                self.at += 1;
                Some(SetTarget::User(name))
            }
            Token::At => {
                self.at += 1;
                let (of, name) = self.system_name()?;
                Some(by_scope(of.unwrap_or(Scope::Session), name))
            }
            Token::Word(_) => {
                let mut word = self.word()?;
                if matches!(word.as_str(), "global" | "session" | "local") {
                    *scope = if word == "global" { Scope::Global } else { Scope::Session };
                    if self.accept("transaction") {
                        self.at = self.tokens.len();
                        return None;
                    }
                    word = self.word()?;
                }
                Some(by_scope(*scope, word))
            }
            _ => None,
        }
    }

    /// Words such as ON and DEFAULT stand for themselves.
    fn set_value(&mut self) -> Option<Value> {
        let is_function = self.tokens.get(self.at + 1).is_some_and(|next| next.token == Token::Sign('('));
        match self.peek()? {
            Token::Word(word) if !is_function && !word.eq_ignore_ascii_case("null") => {
                let value = Value::Text(word.clone());
                self.at += 1;
                Some(value)
            }
            _ => self.value(0),
        }
    }

    fn show(&mut self) -> Option<Statement> {
        let mut scope = Scope::Session;
        if self.accept("global") {
            scope = Scope::Global;
        } else if self.accept("session") || self.accept("local") {
            scope = Scope::Session;
        }
        let mut what = Vec::new();
        let mut lines = RowFilter::All;
        while !self.is_at_end() {
            if self.accept("like") {
                lines = RowFilter::Like(vec![self.text()?]);
            } else if self.accept("where") {
                lines = RowFilter::Like(self.names()?);
            } else {
                match self.peek()? {
                    Token::Word(word) => what.push(word.to_lowercase()),
                    Token::Text(text) => what.push(format!("'{text}'")),
                    Token::Sign(sign) => what.push(sign.to_string()),
                    _ => return None,
                }
                self.at += 1;
            }
        }
        Some(Statement::Show(ShowStatement { what: what.join(" "), scope, lines, sql: self.sql.to_owned() }))
    }

    fn text(&mut self) -> Option<String> {
        let Some(Token::Text(text)) = self.peek() else { return None };
        let text = text.clone();
        self.at += 1;
        Some(text)
    }

    /// `Variable_name = '…' OR Variable_name LIKE '…' OR Variable_name IN ('…', …)`.
    fn names(&mut self) -> Option<Vec<String>> {
        let mut names = Vec::new();
        loop {
            let opened = self.accept_sign('(');
            if self.word()? != "variable_name" {
                return None;
            }
            if self.accept_sign('=') {
                names.push(escaped(&self.text()?));
            } else if self.accept("like") {
                names.push(self.text()?);
            } else {
                names.extend(self.texts()?.iter().map(|name| escaped(name)));
            }
            if opened && !self.accept_sign(')') {
                return None;
            }
            if !self.accept("or") {
                return Some(names);
            }
        }
    }

    fn kill(&mut self) -> Option<Statement> {
        let _ = self.accept("hard") || self.accept("soft");
        let _ = self.accept("connection") || self.accept("query");
        let Some(Token::Number(number)) = self.peek() else { return None };
        let number = number.parse().ok()?;
        self.at += 1;
        self.is_at_end().then_some(Statement::Kill(number))
    }
}

/// `SHOW GRANTS [FOR CURRENT_USER[()]]`.
fn is_grants(tokens: &[PositionedToken]) -> bool {
    let words = tokens.iter().filter(|placed| !matches!(placed.token, Token::Sign('(' | ')')));
    let words: Vec<&Token> = words.map(|placed| &placed.token).collect();
    let is = |words: &[&Token], known: &[&str]| {
        words.len() == known.len() && words.iter().zip(known).all(|(token, word)| token.is(word))
    };
    is(&words, &["show", "grants"]) || is(&words, &["show", "grants", "for", "current_user"])
}

/// Nothing in it is a pattern.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('_', "\\_").replace('%', "\\%")
}

fn is_clause(word: &str) -> bool {
    ["from", "limit", "where", "order", "group", "union", "into", "for"]
        .iter()
        .any(|clause| word.eq_ignore_ascii_case(clause))
}

fn is_bare_function(word: &str) -> bool {
    ["current_user", "current_timestamp", "utc_timestamp", "localtime", "true", "false"]
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name))
}
