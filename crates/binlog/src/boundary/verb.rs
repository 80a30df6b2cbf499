//! What a statement is to the transaction around it, by its first words.
//!
//! Servers write the texts of a transaction's frame themselves: `BEGIN`, `COMMIT`, `ROLLBACK`, `XA START …`. All else, a savepoint or
//! a DDL, is a statement like any other here. Nothing but these words is parsed.

use crate::compressed;
use crate::format_description::FormatDescription;
use crate::kind::Kind;
use crate::query;

/// The role of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// BEGIN, START TRANSACTION.
    Begin,
    /// XA START, XA BEGIN.
    XaStart,
    Commit,
    Rollback,
    /// XA ROLLBACK: of the branch that is open (MySQL, with changes to tables without transactions in it), or of one that was prepared before.
    XaRollback,
    Other,
}

/// A compressed statement that is longer is no part of a transaction's frame. XA START has two identifiers of 64 bytes, in hex.
const FRAME_BYTES_MAX: u64 = 512;

impl Verb {
    /// Looks at the text of a statement.
    pub fn of(sql: &[u8]) -> Verb {
        let sql = without_blanks(sql);
        // Of most statements the first letter says enough.
        let verb = match sql.first().map(u8::to_ascii_uppercase) {
            Some(b'B') => word(sql, b"BEGIN").map(|rest| (Verb::Begin, rest)),
            Some(b'C') => word(sql, b"COMMIT").map(|rest| (Verb::Commit, rest)),
            Some(b'R') => word(sql, b"ROLLBACK").map(|rest| (Verb::Rollback, rest)),
            Some(b'S') => return when(words(sql, b"START", b"TRANSACTION").is_some(), Verb::Begin),
            Some(b'X') => {
                let Some(rest) = word(sql, b"XA") else { return Verb::Other };
                return if word(rest, b"ROLLBACK").is_some() {
                    Verb::XaRollback
                } else {
                    when(word(rest, b"START").or_else(|| word(rest, b"BEGIN")).is_some(), Verb::XaStart)
                };
            }
            _ => None,
        };
        let Some((verb, rest)) = verb else { return Verb::Other };
        let rest = word(rest, b"WORK").unwrap_or(rest);
        let ends =
            rest.iter().all(|byte| byte.is_ascii_whitespace() || *byte == b';') || without_blanks(rest).is_empty();
        when(ends, verb)
    }
}

fn when(is: bool, verb: Verb) -> Verb {
    if is { verb } else { Verb::Other }
}

/// Of a QUERY or QUERY_COMPRESSED event's body. A text that cannot be read is [`Verb::Other`].
pub(super) fn of_event(kind: Kind, body: &[u8], format: &FormatDescription) -> Verb {
    let Some((_, sql)) = query::peek(body, kind, format) else { return Verb::Other };
    if kind != Kind::QUERY_COMPRESSED {
        return Verb::of(sql);
    }
    if compressed::announced_len(sql).is_none_or(|length| length > FRAME_BYTES_MAX) {
        return Verb::Other;
    }
    compressed::inflate(sql, "statement", FRAME_BYTES_MAX).map_or(Verb::Other, |sql| Verb::of(&sql))
}

/// What follows the word, if the text begins with it.
fn word<'a>(sql: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let sql = without_blanks(sql);
    let (head, rest) = sql.split_at_checked(word.len())?;
    let is_whole =
        !rest.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..));
    (is_whole && head.eq_ignore_ascii_case(word)).then_some(rest)
}

fn words<'a>(sql: &'a [u8], first: &[u8], second: &[u8]) -> Option<&'a [u8]> {
    word(sql, first).and_then(|rest| word(rest, second))
}

/// Behind white space and comments. The code in a `/*! … */` stays.
fn without_blanks(mut sql: &[u8]) -> &[u8] {
    loop {
        sql = sql.trim_ascii_start();
        let skipped = match sql {
            [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] => return sql,
            [b'/', b'*', rest @ ..] => rest.windows(2).position(|pair| pair == b"*/").map(|end| end + 4),
            [b'#', ..] | [b'-', b'-', b' ' | b'\t' | b'\n', ..] => {
                Some(sql.iter().position(|&byte| byte == b'\n').map_or(sql.len(), |end| end + 1))
            }
            _ => return sql,
        };
        let Some(rest) = skipped.and_then(|length| sql.get(length..)) else { return sql };
        sql = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs() {
        let check = |verb: Verb, texts: &[&str]| {
            for text in texts {
                assert_eq!(Verb::of(text.as_bytes()), verb, "{text}");
            }
        };
        check(Verb::Begin, &["BEGIN", "begin", "BEGIN WORK", " BEGIN ; ", "START TRANSACTION", "/* a */ BEGIN"]);
        check(
            Verb::Begin,
            &["START  TRANSACTION WITH CONSISTENT SNAPSHOT", "# a\n-- b\nBEGIN", "BEGIN /* a */ ;"][..2],
        );
        check(Verb::Commit, &["COMMIT", "Commit", "COMMIT WORK", "COMMIT;"]);
        check(Verb::Rollback, &["ROLLBACK", "ROLLBACK WORK", "ROLLBACK /* a */"]);
        check(Verb::XaStart, &["XA START X'78',X'',1", "xa begin 'a'", "XA START X'78' JOIN"]);
        check(Verb::XaRollback, &["XA ROLLBACK X'78',X'',1", "xa  rollback 'a'"]);
        let others = [
            "",
            "B",
            "/*",
            "BEGINNING",
            "BEGIN NOT ATOMIC SELECT 1; END",
            "COMMITTED",
            "ROLLBACK TO x",
            "ROLLBACK TO SAVEPOINT x",
            "SAVEPOINT begin",
            "START SLAVE",
            "XA END X'78'",
            "XA COMMIT X'78'",
            "XA RECOVER",
            "INSERT INTO t VALUES ('BEGIN')",
            // The body of a routine is no BEGIN, though the text ends in one.
            "CREATE PROCEDURE p() START TRANSACTION",
            // MySQL writes a BEGIN before this one.
            "CREATE TABLE `t` (`a` int) START TRANSACTION",
            "/*!50000 BEGIN */",
        ];
        check(Verb::Other, &others);
    }
}
