//! Cuts a schema dump (mysqldump --no-data and its like) into statements.
//!
//! Knows strings, quoted names, comments and `DELIMITER`, nothing else.

/// Iterator over the statements of a text, without the delimiters. `USE` is a statement like others.
#[derive(Clone, Debug)]
pub struct Statements<'a> {
    rest: &'a [u8],
    delimiter: &'a [u8],
}

impl<'a> Statements<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self { rest: text, delimiter: b";" }
    }

    /// Length of the statement at the start of the text.
    fn length(&self) -> usize {
        let text = self.rest;
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            let here = text.get(at..).unwrap_or_default();
            if here.starts_with(self.delimiter) {
                break;
            }
            at += match byte {
                b'\'' | b'"' | b'`' => quoted(here, byte),
                b'#' => line(here),
                b'-' if here.starts_with(b"-- ") || here.starts_with(b"--\n") => line(here),
                // What stands in a versioned comment is part of the statement.
                b'/' if here.starts_with(b"/*") && !here.starts_with(b"/*!") && !here.starts_with(b"/*M!") => {
                    here.windows(2).skip(2).position(|end| end == b"*/").map_or(here.len(), |end| end + 4)
                }
                _ => 1,
            };
        }
        at.min(text.len())
    }
}

fn quoted(text: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        if byte == b'\\' && quote != b'`' {
            at += 2;
            continue;
        }
        at += 1;
        if byte == quote {
            break;
        }
    }
    at
}

fn line(text: &[u8]) -> usize {
    text.iter().position(|&byte| byte == b'\n').map_or(text.len(), |end| end + 1)
}

impl<'a> Iterator for Statements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            self.rest = self.rest.trim_ascii_start();
            if self.rest.is_empty() {
                return None;
            }
            if self.rest.get(..10).is_some_and(|word| word.eq_ignore_ascii_case(b"DELIMITER ")) {
                let (head, rest) = self.rest.split_at(line(self.rest));
                self.delimiter = head.get(10..).unwrap_or_default().trim_ascii();
                if self.delimiter.is_empty() {
                    self.delimiter = b";";
                }
                self.rest = rest;
                continue;
            }
            let (statement, rest) = self.rest.split_at(self.length());
            self.rest = rest.strip_prefix(self.delimiter).unwrap_or(rest);
            let statement = statement.trim_ascii();
            if !statement.is_empty() {
                return Some(statement);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump() {
        let text = "-- MySQL dump; not a statement\n/*!40101 SET x=1 */;\nUSE `shop`;\nCREATE TABLE `a;b` (x INT DEFAULT ';');\n\
                    /* ; */ SELECT 1; DELIMITER ;;\nCREATE TRIGGER t BEGIN a; b; END;;\nDELIMITER ;\nSELECT 'it''s \\'; ', 2";
        let found: Vec<String> =
            Statements::new(text.as_bytes()).map(|s| String::from_utf8_lossy(s).into_owned()).collect();
        assert_eq!(
            found,
            [
                "-- MySQL dump; not a statement\n/*!40101 SET x=1 */",
                "USE `shop`",
                "CREATE TABLE `a;b` (x INT DEFAULT ';')",
                "/* ; */ SELECT 1",
                "CREATE TRIGGER t BEGIN a; b; END",
                "SELECT 'it''s \\'; ', 2"
            ]
        );
    }
}
