//! Tokens of the servers' own account statements (`SHOW CREATE USER`, `SHOW GRANTS`): names, strings, words. Knows no grammar.

use super::name::AccountName;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    Word,
    /// In backticks.
    Identifier,
    /// In single quotes.
    Text,
    Punct,
}

#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub kind: TokenKind,
    /// With its quotes.
    pub text: &'a str,
    /// Bytes from the start of the statement.
    pub start: usize,
}

impl Token<'_> {
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// `None`: it is no name.
    pub fn name(&self) -> Option<String> {
        let quote = match self.kind {
            TokenKind::Word => return Some(self.text.to_owned()),
            TokenKind::Identifier => '`',
            TokenKind::Text => '\'',
            TokenKind::Punct => return None,
        };
        let inner = self.text.strip_prefix(quote)?.strip_suffix(quote)?;
        let name = inner.replace(&format!("{quote}{quote}"), &quote.to_string());
        Some(if self.kind == TokenKind::Text { name.replace("\\\\", "\\") } else { name })
    }
}

/// A statement, and a place in it.
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    sql: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Tokens<'a> {
    /// `None`: a quote does not end.
    pub fn of(sql: &'a str) -> Option<Self> {
        let mut tokens = Vec::new();
        let mut at = 0;
        while let Some(first) = sql.get(at..)?.chars().next() {
            let rest = sql.get(at..)?;
            let (kind, length) = match first {
                _ if first.is_whitespace() => {
                    at += first.len_utf8();
                    continue;
                }
                '`' => (TokenKind::Identifier, quoted_length(rest, '`')?),
                '\'' => (TokenKind::Text, quoted_length(rest, '\'')?),
                _ if is_of_word(first) => {
                    let is_number = first.is_ascii_digit();
                    let ends = |c: char| !(is_of_word(c) || is_number && c == '.');
                    (TokenKind::Word, rest.find(ends).unwrap_or(rest.len()))
                }
                _ => (TokenKind::Punct, first.len_utf8()),
            };
            tokens.push(Token { kind, text: rest.get(..length)?, start: at });
            at += length;
        }
        Some(Self { sql, tokens, at: 0 })
    }

    pub fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    pub fn peek_second(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at + 1).copied()
    }

    pub fn take(&mut self) -> Option<Token<'a>> {
        let token = self.peek();
        self.at += usize::from(token.is_some());
        token
    }

    pub fn is_at_end(&self) -> bool {
        self.peek().is_none()
    }

    pub fn is(&self, word: &str) -> bool {
        self.peek().is_some_and(|token| token.is_word(word))
    }

    pub fn eat(&mut self, word: &str) -> bool {
        let found = self.is(word);
        self.at += usize::from(found);
        found
    }

    /// All of them or none.
    pub fn eat_all(&mut self, words: &[&str]) -> bool {
        let found = words
            .iter()
            .enumerate()
            .all(|(ahead, word)| self.tokens.get(self.at + ahead).is_some_and(|token| token.is_word(word)));
        if found {
            self.at += words.len();
        }
        found
    }

    pub fn eat_punct(&mut self, punct: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == TokenKind::Punct && token.text == punct);
        self.at += usize::from(found);
        found
    }

    /// `name@host`, or a name alone.
    pub fn account(&mut self) -> Option<AccountName> {
        let user = self.take()?.name()?;
        let host = if self.eat_punct("@") { Some(self.take()?.name()?) } else { None };
        Some(AccountName { user, host })
    }

    /// The text up to one of these words outside of parentheses, or to the end: in parts, between the commas.
    pub fn list_until(&mut self, ends: &[&str]) -> Vec<&'a str> {
        let mut parts = Vec::new();
        let (mut depth, mut part): (usize, Option<(usize, usize)>) = (0, None);
        let text = |part: Option<(usize, usize)>| part.and_then(|(start, end)| self.sql.get(start..end));
        let mut at = self.at;
        while let Some(token) = self.tokens.get(at) {
            if depth == 0 && ends.iter().any(|end| token.is_word(end)) {
                break;
            }
            at += 1;
            match (token.kind, token.text) {
                (TokenKind::Punct, "(") => depth += 1,
                (TokenKind::Punct, ")") => depth = depth.saturating_sub(1),
                (TokenKind::Punct, ",") if depth == 0 => {
                    parts.extend(text(part.take()));
                    continue;
                }
                _ => {}
            }
            part = Some((part.map_or(token.start, |(start, _)| start), token.end()));
        }
        parts.extend(text(part));
        self.at = at;
        parts
    }

    /// From a token up to the one before this place.
    pub fn text_from(&self, start: usize) -> &'a str {
        let end = self.at.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(start, Token::end);
        self.sql.get(start..end).unwrap_or_default()
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn quoted_length(text: &str, quote: char) -> Option<usize> {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        if c == '\\' && quote == '\'' {
            characters.next();
        } else if c == quote && characters.next_if(|(_, next)| *next == quote).is_none() {
            return Some(at + c.len_utf8());
        }
    }
    None
}
