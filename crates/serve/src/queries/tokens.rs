//! Splits a statement into tokens, each with its place in the text. Comments are left out; the contents of `/*! … */` count.

use super::errors::not_supported;
use wire::server::ServerError;

/// Statements that replicas and tools send are short.
const TOKENS_MAX: usize = 10_000;

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name or a word of SQL, as it is written; in backticks: without them.
    Word(String),
    /// Its value.
    Text(String),
    Number(String),
    /// `@name`, in lower case.
    UserVariable(String),
    /// `@@`: a name follows.
    At,
    Sign(char),
}

/// A token and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PositionedToken {
    pub(super) token: Token,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Token {
    pub(super) fn is(&self, word: &str) -> bool {
        matches!(self, Token::Word(text) if text.eq_ignore_ascii_case(word))
    }
}

pub(super) fn tokens(sql: &str) -> Result<Vec<PositionedToken>, ServerError> {
    let mut reader = Reader { sql, at: 0, in_versioned: false };
    let mut out = Vec::new();
    while let Some(placed) = reader.next()? {
        out.push(placed);
        if out.len() > TOKENS_MAX {
            return Err(not_supported(sql));
        }
    }
    Ok(out)
}

struct Reader<'a> {
    sql: &'a str,
    at: usize,
    /// Inside of `/*!50000 … */`.
    in_versioned: bool,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.sql.get(self.at..).unwrap_or_default()
    }

    fn next(&mut self) -> Result<Option<PositionedToken>, ServerError> {
        self.skip();
        let from = self.at;
        let rest = self.rest();
        let mut chars = rest.chars();
        let Some(first) = chars.next() else { return Ok(None) };
        let token = match first {
            '\'' | '"' => Token::Text(self.quoted(first)?),
            '`' => Token::Word(self.quoted(first)?),
            '@' if rest.starts_with("@@") => {
                self.at += 2;
                Token::At
            }
            '@' => {
                self.at += 1;
                let name = match self.rest().chars().next() {
                    Some(quote @ ('\'' | '"' | '`')) => self.quoted(quote)?,
                    _ => self.while_true(|c| is_word(c) || c == '.').to_owned(),
                };
                Token::UserVariable(name.to_lowercase())
            }
            _ if first.is_ascii_digit() => {
                Token::Number(self.while_true(|c| c.is_ascii_alphanumeric() || c == '.').to_owned())
            }
            _ if is_word(first) => Token::Word(self.while_true(is_word).to_owned()),
            _ => {
                self.at += first.len_utf8();
                Token::Sign(first)
            }
        };
        Ok(Some(PositionedToken { token, from, to: self.at }))
    }

    /// White space and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if self.in_versioned && trimmed.starts_with("*/") {
                self.in_versioned = false;
                self.at += 2;
            } else if trimmed.starts_with("/*!") || trimmed.starts_with("/*M!") {
                self.in_versioned = true;
                self.at += trimmed.find('!').map_or(0, |at| at + 1);
                self.while_true(|c| c.is_ascii_digit());
            } else if trimmed.starts_with("/*") {
                self.at += trimmed.find("*/").map_or(trimmed.len(), |at| at + 2);
            } else if trimmed.starts_with("-- ") || trimmed.starts_with('#') {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else {
                return;
            }
        }
    }

    fn while_true(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// With `''` and backslashes.
    fn quoted(&mut self, quote: char) -> Result<String, ServerError> {
        let mut out = String::new();
        let rest = self.rest();
        let mut chars = rest.char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                if chars.peek().is_some_and(|(_, next)| *next == quote) {
                    chars.next();
                } else {
                    self.at += at + quote.len_utf8();
                    return Ok(out);
                }
            }
            if c == '\\' && quote != '`' {
                match chars.next() {
                    Some((_, 'n')) => out.push('\n'),
                    Some((_, 't')) => out.push('\t'),
                    Some((_, 'r')) => out.push('\r'),
                    Some((_, '0')) => out.push('\0'),
                    // Of patterns: the backslash stays.
                    Some((_, special @ ('%' | '_'))) => out.extend(['\\', special]),
                    Some((_, other)) => out.push(other),
                    None => break,
                }
            } else {
                out.push(c);
            }
        }
        Err(ServerError::new(1064, "42000", "You have an error in your SQL syntax: a text does not end"))
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}
