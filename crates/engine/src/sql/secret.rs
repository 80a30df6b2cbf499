//! Statements as they may be shown: without passwords and keys, and without what acts on a terminal.
//!
//! Shows too little rather than too much: the text ends where a secret may begin.

use super::SqlMode;
use super::cursor::Cursor;
use super::lexer::Kind;

/// Stands for what is left out.
const LEFT_OUT: &str = "… (not shown: it may hold a password)";
/// Functions that take a key.
const KEYED: [&str; 7] = ["AES_ENCRYPT", "AES_DECRYPT", "DES_ENCRYPT", "DES_DECRYPT", "ENCODE", "DECODE", "ENCRYPT"];

/// The first `characters` of a statement at most, white space as single blanks.
pub fn shown(sql: &[u8], mode: SqlMode, characters: usize) -> String {
    // Of a statement of megabytes only the beginning is shown. A character may have four bytes, and white space goes.
    let looked_at = sql.get(..characters.saturating_mul(8)).unwrap_or(sql);
    let secret = secret_at(looked_at, mode);
    let charset = mode.charset.of_text(sql);
    let text = charset.lossy(secret.and_then(|at| looked_at.get(..at)).unwrap_or(looked_at));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown: String = text.chars().take(characters).collect();
    let left_out = if secret.is_some() && shown.len() == text.len() { LEFT_OUT } else { "" };
    binlog::text::escape(&shown).into_owned() + left_out
}

/// Where a password or key may begin.
fn secret_at(sql: &[u8], mode: SqlMode) -> Option<usize> {
    let mut cursor = Cursor::new(sql, mode);
    loop {
        let token = cursor.take();
        let is_any = |words: &[&str]| words.iter().any(|word| token.text.eq_ignore_ascii_case(word.as_bytes()));
        let is_secret = match token.kind {
            Kind::End => return None,
            // Where it ends is not known: what is behind may be anything.
            Kind::Broken => true,
            Kind::Word if is_any(&["IDENTIFIED"]) => true,
            Kind::Word if is_any(&["CONNECTION"]) => cursor.is_punct(b'=') || cursor.peek().kind == Kind::Text,
            Kind::Word if is_any(&KEYED) => cursor.is_punct(b'('),
            Kind::Word => has(token.text, b"password"),
            Kind::Text => has(token.text, b"password") || has(token.text, b"://") && token.text.contains(&b'@'),
            Kind::Quoted(_) | Kind::Number | Kind::Punct(_) => false,
        };
        if is_secret {
            return Some(token.start);
        }
    }
}

fn has(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (sql, begin) in [
            (
                "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', HOST 'h', PASSWORD 'hunter2')",
                "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', HOST 'h',",
            ),
            ("ALTER SERVER s OPTIONS (password 'hunter2')", "ALTER SERVER s OPTIONS ("),
            ("/* x */ CREATE USER u IDENTIFIED BY 'hunter2'", "/* x */ CREATE USER u"),
            ("SET PASSWORD FOR u = PASSWORD('hunter2')", "SET"),
            (
                "CREATE TABLE t (a INT) ENGINE=FEDERATED CONNECTION='mysql://u:hunter2@h/d/t'",
                "CREATE TABLE t (a INT) ENGINE=FEDERATED",
            ),
            (
                "CREATE TABLE t (a INT) ENGINE=SPIDER COMMENT='host \"h\", password \"hunter2\"'",
                "CREATE TABLE t (a INT) ENGINE=SPIDER COMMENT=",
            ),
            (
                "CREATE TABLE t (a INT) ENGINE=CONNECT OPTION_LIST='Password=hunter2'",
                "CREATE TABLE t (a INT) ENGINE=CONNECT OPTION_LIST=",
            ),
            (
                "UPDATE mysql.user SET authentication_string = PASSWORD('hunter2')",
                "UPDATE mysql.user SET authentication_string =",
            ),
            ("INSERT INTO t VALUES (AES_ENCRYPT('x', 'hunter2'))", "INSERT INTO t VALUES ("),
            (
                "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO ALTER USER u IDENTIFIED BY 'hunter2'",
                "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO ALTER USER u",
            ),
            ("SELECT 'a PASSWORD hunter2", "SELECT"),
        ] {
            let shown = shown(sql.as_bytes(), SqlMode::default(), 160);
            assert!(!shown.contains("hunter2"), "{shown}");
            assert_eq!(shown.strip_suffix(LEFT_OUT).map(str::trim_end), Some(begin), "{sql}");
        }
    }

    #[test]
    fn other_statements_are_shown() {
        for sql in
            ["ALTER TABLE `password` ADD `identified` INT", "SELECT encode, connection FROM t", "KILL CONNECTION 5"]
        {
            assert_eq!(shown(sql.as_bytes(), SqlMode::default(), 160), sql);
        }
        assert_eq!(shown(b"SELECT '\x1b[2J'", SqlMode::default(), 160), "SELECT '\\x1b[2J'");
        assert_eq!(shown("INSERT\n\t INTO té".as_bytes(), SqlMode::default(), 14), "INSERT INTO té");
        assert_eq!(shown(b"UPDATE t SET a = 1 WHERE password = 'hunter2'", SqlMode::default(), 12), "UPDATE t SET");
    }
}
