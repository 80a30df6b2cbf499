//! Splits a statement into tokens. Knows quotes and comments of both servers, no grammar.

use binlog::charset::Lengths;

use super::SqlMode;
use super::charset::Charset;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword or an identifier without quotes.
    Word,
    /// An identifier in quotes, the quote character in here.
    Quoted(u8),
    /// A string literal, its quotes in the text.
    Text,
    /// Digits only.
    Number,
    Punct(u8),
    End,
    /// A quote or comment that does not end, or text whose end depends on a character set that is not known.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub kind: Kind,
    pub text: &'a [u8],
    /// Bytes from the start of the statement.
    pub start: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Lexer<'a> {
    sql: &'a [u8],
    at: usize,
    mode: SqlMode,
    /// In how many `/*!` comments: their content is code.
    conditional: u32,
    /// Which bytes make a character, where an ASCII byte may be one of several.
    lengths: Option<Lengths>,
    /// An ASCII byte may be the second half of a character, and nobody says of which.
    pairs: bool,
}

impl<'a> Lexer<'a> {
    pub fn new(sql: &'a [u8], mode: SqlMode) -> Self {
        let pairs = mode.charset == Charset::Unknown && std::str::from_utf8(sql).is_err();
        let lengths = match mode.charset {
            Charset::MultiByte(lengths, _) => Some(lengths),
            Charset::Unknown | Charset::AsciiAlone(_) => None,
        };
        Self { sql, at: 0, mode, conditional: 0, lengths, pairs }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.sql.get(self.at + ahead).copied()
    }

    pub fn next(&mut self) -> Token<'a> {
        if !self.skip_blank() {
            return self.token(Kind::Broken, self.sql.len());
        }
        let Some(first) = self.byte(0) else {
            let kind = if self.conditional > 0 { Kind::Broken } else { Kind::End };
            return self.token(kind, self.sql.len());
        };
        match first {
            b'`' => self.quoted(first, Kind::Quoted(first)),
            b'"' if self.mode.ansi_quotes => self.quoted(first, Kind::Quoted(first)),
            b'"' | b'\'' => self.quoted(first, Kind::Text),
            _ if is_word(first) => {
                let rest = self.sql.get(self.at..).unwrap_or_default();
                let length = self.word_length(rest);
                let digits = rest.iter().take(length).all(u8::is_ascii_digit);
                self.token(if digits { Kind::Number } else { Kind::Word }, self.at + length)
            }
            _ => self.token(Kind::Punct(first), self.at + 1),
        }
    }

    fn token(&mut self, kind: Kind, end: usize) -> Token<'a> {
        let start = self.at;
        self.at = end;
        Token { kind, text: self.sql.get(start..end).unwrap_or_default(), start }
    }

    fn word_length(&self, rest: &[u8]) -> usize {
        let Some(lengths) = self.lengths else {
            return rest.iter().position(|&byte| !is_word(byte)).unwrap_or(rest.len());
        };
        let mut at = 0;
        while let Some(&byte) = rest.get(at).filter(|&&byte| is_word(byte)) {
            at += if byte < 0x80 { 1 } else { lengths.of_first(rest.get(at..).unwrap_or_default()) };
        }
        at
    }

    fn quoted(&mut self, quote: u8, kind: Kind) -> Token<'a> {
        let escapes = kind == Kind::Text && !self.mode.no_backslash_escapes;
        let mut at = self.at + 1;
        while let Some(&byte) = self.sql.get(at) {
            let next = self.sql.get(at + 1).copied();
            if byte >= 0x80
                && let Some(lengths) = self.lengths
            {
                at += lengths.of_first(self.sql.get(at..).unwrap_or_default());
            } else if byte == quote {
                if next != Some(quote) {
                    return self.token(kind, at + 1);
                }
                at += 2;
            } else if byte == b'\\' && escapes {
                at += 2;
            } else if byte >= 0x80 && self.pairs && (next == Some(b'`') || escapes && next == Some(b'\\')) {
                // In GBK, Big5 and Shift-JIS such a byte can be the second half of a character.
                break;
            } else {
                at += 1;
            }
        }
        self.token(Kind::Broken, self.sql.len())
    }

    /// Skips white space and comments, opens and closes conditional ones; false when a comment does not end.
    fn skip_blank(&mut self) -> bool {
        loop {
            match (self.byte(0), self.byte(1)) {
                (Some(byte), _) if byte.is_ascii_whitespace() || byte == 0x0b => self.at += 1,
                (Some(b'#'), _) => self.skip_line(),
                (Some(b'-'), Some(b'-')) if self.byte(2).is_none_or(|byte| byte <= b' ' || byte == 0x7f) => {
                    self.skip_line();
                }
                (Some(b'*'), Some(b'/')) if self.conditional > 0 => {
                    self.conditional -= 1;
                    self.at += 2;
                }
                (Some(b'/'), Some(b'*')) => match (self.byte(2), self.byte(3)) {
                    (Some(b'!'), _) => self.open_conditional(3),
                    (Some(b'M' | b'm'), Some(b'!')) => self.open_conditional(4),
                    _ => {
                        let body = self.sql.get(self.at + 2..).unwrap_or_default();
                        match body.windows(2).position(|pair| pair == b"*/") {
                            Some(length) => self.at += 2 + length + 2,
                            None => return false,
                        }
                    }
                },
                _ => return true,
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = self.sql.get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    }

    /// A version is five or six digits right behind the mark.
    fn open_conditional(&mut self, mark: usize) {
        self.conditional += 1;
        self.at += mark;
        let rest = self.sql.get(self.at..).unwrap_or_default();
        let digits = rest.iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
        if digits >= 5 {
            self.at += digits;
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}
