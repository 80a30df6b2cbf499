//! One token of look-ahead over a statement, and the pieces that all statements are made of.

use super::lexer::{Kind, Lexer, Token};
use super::names::ObjectName;
use super::{Charset, SqlMode};

/// A place in a statement. Copy it to look further ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    /// Where the last token that was taken ends.
    end: usize,
    charset: Charset,
}

impl<'a> Cursor<'a> {
    pub fn new(sql: &'a [u8], mode: SqlMode) -> Self {
        let charset = mode.charset.of_text(sql);
        let mut lexer = Lexer::new(sql, SqlMode { charset, ..mode });
        let token = lexer.next();
        Self { lexer, token, end: 0, charset }
    }

    pub fn peek(&self) -> Token<'a> {
        self.token
    }

    pub fn take(&mut self) -> Token<'a> {
        let token = self.token;
        self.end = token.start + token.text.len();
        self.token = self.lexer.next();
        token
    }

    /// Bytes from the start of the statement to the end of the last token taken.
    pub fn end(&self) -> usize {
        self.end
    }

    pub fn is(&self, word: &str) -> bool {
        self.token.kind == Kind::Word && self.token.text.eq_ignore_ascii_case(word.as_bytes())
    }

    pub fn is_punct(&self, byte: u8) -> bool {
        self.token.kind == Kind::Punct(byte)
    }

    /// Nothing left but semicolons.
    pub fn at_end(&self) -> bool {
        let mut rest = *self;
        while rest.eat_punct(b';') {}
        rest.token.kind == Kind::End
    }

    pub fn eat(&mut self, word: &str) -> bool {
        let found = self.is(word);
        if found {
            self.take();
        }
        found
    }

    /// Takes all the words or none.
    pub fn eat_all(&mut self, words: &[&str]) -> bool {
        let mut ahead = *self;
        let found = words.iter().all(|word| ahead.eat(word));
        if found {
            *self = ahead;
        }
        found
    }

    /// Takes the first of the words that is there.
    pub fn eat_any(&mut self, words: &[&'static str]) -> Option<&'static str> {
        words.iter().copied().find(|word| self.eat(word))
    }

    pub fn eat_punct(&mut self, byte: u8) -> bool {
        let found = self.is_punct(byte);
        if found {
            self.take();
        }
        found
    }

    /// An identifier; `None` when there is none, or when its bytes are neither UTF-8 nor text in the character set of the session.
    pub fn ident(&mut self) -> Option<String> {
        self.ident_of(false)
    }

    /// A piece of the statement as text.
    pub fn decode(&self, bytes: &[u8]) -> Option<String> {
        self.charset.decode(bytes)
    }

    /// A name of an account's: an identifier, or a string.
    pub fn ident_or_text(&mut self) -> Option<String> {
        if self.token.kind != Kind::Text {
            return self.ident();
        }
        let text = self.charset.decode(self.token.text)?;
        let quote = *self.token.text.first()?;
        let name = unquote(&text, quote)?;
        // What a backslash means depends on the session.
        (!name.contains('\\')).then_some(())?;
        self.take();
        Some(name)
    }

    fn ident_of(&mut self, digits: bool) -> Option<String> {
        let name = match self.token.kind {
            Kind::Word => self.charset.decode(self.token.text)?,
            Kind::Number if digits => self.charset.decode(self.token.text)?,
            Kind::Quoted(quote) => unquote(&self.charset.decode(self.token.text)?, quote)?,
            _ => return None,
        };
        self.take();
        Some(name)
    }

    /// `name` or `schema.name`.
    pub fn object(&mut self, default_schema: &str) -> Option<ObjectName> {
        let first = self.ident()?;
        if !self.eat_punct(b'.') {
            return Some(ObjectName { schema: default_schema.to_owned(), name: first });
        }
        Some(ObjectName { schema: first, name: self.ident_of(true)? })
    }

    /// Takes a parenthesis with all that is in it.
    pub fn skip_parens(&mut self) -> Option<()> {
        if !self.eat_punct(b'(') {
            return None;
        }
        let mut depth = 1u32;
        while depth > 0 {
            match self.take().kind {
                Kind::Punct(b'(') => depth += 1,
                Kind::Punct(b')') => depth -= 1,
                Kind::End | Kind::Broken => return None,
                _ => {}
            }
        }
        Some(())
    }
}

pub(super) fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn unquote(text: &str, quote: u8) -> Option<String> {
    let inner = text.get(1..text.len().checked_sub(1)?)?;
    let quote = char::from(quote).to_string();
    Some(inner.replace(&quote.repeat(2), &quote))
}
