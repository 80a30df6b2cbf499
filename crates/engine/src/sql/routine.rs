//! `CREATE PROCEDURE`, `FUNCTION`, `PACKAGE`: which routine it makes, and whose.

use super::SqlMode;
use super::cursor::Cursor;
use super::ddl::skip_attribute;
use super::lexer::Kind;
use super::names::ObjectName;

/// A stored routine that a statement makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRoutine {
    /// As `GRANT … ON` takes it: `PROCEDURE`, `FUNCTION`, `PACKAGE`, `PACKAGE BODY`.
    pub kind: &'static str,
    pub name: ObjectName,
    /// User and host of its `DEFINER` clause; a role has no host.
    pub definer: (String, String),
    pub if_not_exists: bool,
}

/// `None`: it makes none, or does not say whose it is (a server's log does), or a name can not be read.
pub fn new_routine(sql: &[u8], default_schema: &str, mode: SqlMode) -> Option<NewRoutine> {
    let mut cursor = Cursor::new(sql, mode);
    cursor.eat("CREATE").then_some(())?;
    cursor.eat_all(&["OR", "REPLACE"]);
    let mut definer = None;
    loop {
        if cursor.eat("DEFINER") {
            cursor.eat_punct(b'=').then_some(())?;
            let user = cursor.ident_or_text()?;
            let host = if cursor.eat_punct(b'@') { cursor.ident_or_text()? } else { String::new() };
            definer = Some((user, host));
        } else if !skip_attribute(&mut cursor)? {
            break;
        }
    }
    let kind = match cursor.eat_any(&["PROCEDURE", "FUNCTION", "PACKAGE"])? {
        "PACKAGE" if cursor.eat("BODY") => "PACKAGE BODY",
        kind => kind,
    };
    let if_not_exists = cursor.eat_all(&["IF", "NOT", "EXISTS"]);
    let name = cursor.object(default_schema)?;
    let is_loadable =
        kind == "FUNCTION" && cursor.eat("RETURNS") && cursor.take().kind == Kind::Word && cursor.is("SONAME");
    let definer = definer.filter(|_| !is_loadable)?;
    Some(NewRoutine { kind, name, definer, if_not_exists })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_and_whose() {
        let of = |sql: &str| {
            new_routine(sql.as_bytes(), "d", SqlMode::default()).map(|routine| {
                let (user, host) = routine.definer;
                format!("{} {} {user}@{host} {}", routine.kind, routine.name, routine.if_not_exists)
            })
        };
        assert_eq!(of("CREATE DEFINER=`a b`@`%` PROCEDURE `p 1`() SELECT 1").unwrap(), "PROCEDURE d.p 1 a b@% false");
        assert_eq!(
            of("CREATE OR REPLACE DEFINER='u'@'h' AGGREGATE FUNCTION IF NOT EXISTS e.f() RETURNS INT BEGIN END")
                .unwrap(),
            "FUNCTION e.f u@h true"
        );
        assert_eq!(of("CREATE DEFINER=`r` PACKAGE BODY p AS END").unwrap(), "PACKAGE BODY d.p r@ false");
        assert_eq!(of("CREATE PROCEDURE p() SELECT 1"), None);
        assert_eq!(of("CREATE DEFINER=`u`@`%` FUNCTION f RETURNS STRING SONAME 'x.so'"), None);
        assert_eq!(of("CREATE DEFINER=`u`@`%` VIEW v AS SELECT 1"), None);
    }
}
