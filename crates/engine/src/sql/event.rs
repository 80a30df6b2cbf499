//! Scheduled events (`CREATE EVENT`, `ALTER EVENT`): where a statement says whether the event runs.
//!
//! What an event does on a source is in its log. A replica that ran it, too, would do it twice, so the servers' own appliers
//! create it as `DISABLE ON SLAVE`.

use std::ops::Range;

use super::SqlMode;
use super::cursor::Cursor;
use super::lexer::Kind;

/// The bytes to replace by `DISABLE ON SLAVE` (none: to insert it there), so that the event does not run. `None`: the statement does not
/// make it run, or is not about an event.
pub fn enabled_at(sql: &[u8], mode: SqlMode) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(sql, mode);
    let creates = cursor.is("CREATE");
    if !creates && !cursor.is("ALTER") {
        return None;
    }
    let mut depth = 0u32;
    let mut in_definer = false;
    let mut is_event = false;
    loop {
        let start = cursor.peek().start;
        let outside = depth == 0 && is_event;
        if outside && cursor.eat("ENABLE") {
            return Some(start..cursor.end());
        }
        if outside && cursor.is("DISABLE") {
            return None;
        }
        if outside && (cursor.is("DO") || cursor.is("COMMENT")) {
            return creates.then_some(start..start);
        }
        if !is_event && depth == 0 && cursor.is("EVENT") && !in_definer {
            cursor.take();
            // IF [NOT] EXISTS, then a name, which may be any word.
            cursor.eat("IF");
            cursor.eat("NOT");
            cursor.eat("EXISTS");
            // In whatever character set.
            if !matches!(cursor.take().kind, Kind::Word | Kind::Quoted(_)) {
                return None;
            }
            if cursor.eat_punct(b'.') {
                cursor.take();
            }
            is_event = true;
            continue;
        }
        in_definer = cursor.is_punct(b'@') || cursor.is_punct(b'=');
        match cursor.take().kind {
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => depth = depth.checked_sub(1)?,
            Kind::End | Kind::Broken => return None,
            _ => {}
        }
    }
}

/// Where a `DEFINER` clause would stand in an `ALTER EVENT` that has none.
pub fn alters_event_at(sql: &[u8], mode: SqlMode) -> Option<usize> {
    let mut cursor = Cursor::new(sql, mode);
    cursor.eat("ALTER").then_some(())?;
    let at = cursor.end();
    cursor.is("EVENT").then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Charset, Class, DdlKind};

    /// The session's character set may be another.
    #[test]
    fn names_that_are_not_utf8() {
        for charset in [8, 4].map(Charset::of_collation) {
            let mode = SqlMode { charset, ..SqlMode::default() };
            for (sql, expected) in [
                (b"CREATE EVENT `\xe9` ON SCHEDULE EVERY 1 DAY DO SELECT 1".as_slice(), Some(41..41)),
                (b"CREATE DEFINER=`\xe9`@`\xe9` EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1", Some(55..55)),
                (b"ALTER EVENT `\xe9`.`\xe9` ENABLE", Some(20..26)),
                (b"ALTER EVENT e RENAME TO `\xe9` ENABLE", Some(28..34)),
            ] {
                assert_eq!(enabled_at(sql, mode), expected, "{}", sql.escape_ascii());
                assert_eq!(crate::sql::classify(sql, "d", mode).class, Class::Ddl { kind: DdlKind::Event });
            }
        }
    }

    #[test]
    fn where_a_definer_would_stand() {
        let at = |sql: &str| alters_event_at(sql.as_bytes(), SqlMode::default());
        assert_eq!(at("ALTER EVENT e ENABLE"), Some(5));
        assert_eq!(at("/* x */ alter\nevent e ENABLE"), Some(13));
        assert_eq!(at("ALTER DEFINER=u EVENT e ENABLE"), None);
        assert_eq!(at("ALTER TABLE event ADD a INT"), None);
        assert_eq!(at("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1"), None);
    }

    #[test]
    fn what_makes_an_event_run() {
        let off = "DISABLE ON SLAVE";
        let edited = |sql: &str| {
            enabled_at(sql.as_bytes(), SqlMode::default())
                .map(|at| format!("{}{off} {}", sql.get(..at.start).unwrap(), sql.get(at.end..).unwrap().trim_start()))
        };
        for (sql, expected) in [
            (
                "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM t",
                "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DISABLE ON SLAVE DO DELETE FROM t",
            ),
            (
                "CREATE DEFINER=`event`@`%` EVENT IF NOT EXISTS `d`.`do` ON SCHEDULE AT (NOW() + INTERVAL 1 DAY) ENABLE COMMENT 'DO it' DO BEGIN END",
                "CREATE DEFINER=`event`@`%` EVENT IF NOT EXISTS `d`.`do` ON SCHEDULE AT (NOW() + INTERVAL 1 DAY) DISABLE ON SLAVE COMMENT 'DO it' DO BEGIN END",
            ),
            (
                "CREATE DEFINER=event@event EVENT enable ON SCHEDULE EVERY 1 DAY COMMENT 'x' DO SELECT 1",
                "CREATE DEFINER=event@event EVENT enable ON SCHEDULE EVERY 1 DAY DISABLE ON SLAVE COMMENT 'x' DO SELECT 1",
            ),
            ("ALTER EVENT e ENABLE", "ALTER EVENT e DISABLE ON SLAVE "),
            ("ALTER EVENT e ON SCHEDULE EVERY 2 DAY", ""),
            ("ALTER EVENT e DO UPDATE t SET enable=1", ""),
            ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DISABLE DO DELETE FROM t", ""),
            ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DISABLE ON SLAVE DO DELETE FROM t", ""),
            ("DROP EVENT e", ""),
            ("CREATE TABLE event (enable INT)", ""),
        ] {
            assert_eq!(edited(sql).unwrap_or_default(), expected, "{sql}");
        }
    }
}
