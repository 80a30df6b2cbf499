//! Of which tables the account is shown the triggers: by its privilege `TRIGGER`, as `SHOW GRANTS` says. Never says what follows from that.

use engine::wildcard::is_like;
use wire::Connection;

use super::privileges::Grants;

/// Tables of which the account is shown the triggers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownTriggers {
    Everywhere,
    Of(TriggerGrants),
}

/// What has the privilege `TRIGGER`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TriggerGrants {
    is_global: bool,
    granted: Vec<GrantedTables>,
    /// MySQL with `partial_revokes`: schemas that a global privilege leaves out.
    revoked: Vec<String>,
    /// `%` and `_` in a schema's name mean themselves.
    are_literal: bool,
    /// The server does not tell upper from lower case in names.
    folds_case: bool,
}

/// `schema.*` or `schema.table`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GrantedTables {
    schema: String,
    table: Option<String>,
}

impl ShownTriggers {
    /// An account that may not ask, or has roles, is taken to be shown all: what a role may is not said.
    pub fn read(connection: &mut Connection) -> Self {
        let Ok(grants) = Grants::read(connection) else { return Self::Everywhere };
        if grants.has_roles() {
            return Self::Everywhere;
        }
        let mut is_on = |variable: &str| {
            let value = connection.scalar(format!("SELECT @@{variable}"));
            value.ok().flatten().is_some_and(|value| value != "0")
        };
        let mut grants = TriggerGrants::of(grants.lines());
        if grants.is_global && grants.revoked.is_empty() {
            return Self::Everywhere;
        }
        // Servers before 8.0.16 and MariaDB have no such variable.
        grants.are_literal = is_on("partial_revokes");
        grants.folds_case = is_on("lower_case_table_names");
        Self::Of(grants)
    }

    /// It is shown no table's.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Of(grants) if !grants.is_global && grants.granted.is_empty())
    }

    pub fn has(&self, schema: &str, table: &str) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Of(grants) => grants.has(schema, table),
        }
    }
}

impl TriggerGrants {
    fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        for line in lines {
            let Some((privileges, object)) = split(line) else { continue };
            if !(privileges.contains("TRIGGER") || privileges.contains("ALL PRIVILEGES")) {
                continue;
            }
            let is_revoked = privileges.starts_with("REVOKE ");
            match (object, is_revoked) {
                (GrantObject::All, false) => all.is_global = true,
                (GrantObject::Tables(tables), false) => all.granted.push(tables),
                (GrantObject::Tables(tables), true) => all.revoked.push(tables.schema),
                (GrantObject::All, true) => {}
            }
        }
        all
    }

    fn has(&self, schema: &str, table: &str) -> bool {
        let folded = |name: &str| if self.folds_case { name.to_lowercase() } else { name.to_owned() };
        let (schema, table) = (folded(schema), folded(table));
        let is_granted = |granted: &GrantedTables| match &granted.table {
            Some(only) => folded(&granted.schema) == schema && folded(only) == table,
            None if self.are_literal => folded(&unescaped(&granted.schema)) == schema,
            None => is_like(&schema, &folded(&granted.schema)),
        };
        let is_revoked = self.revoked.iter().any(|revoked| folded(&unescaped(revoked)) == schema);
        self.granted.iter().any(is_granted) || self.is_global && !is_revoked
    }
}

enum GrantObject {
    All,
    Tables(GrantedTables),
}

/// A line of `SHOW GRANTS`: the privileges, and on what. `None`: not on tables.
fn split(line: &str) -> Option<(&str, GrantObject)> {
    if let Some((privileges, _)) = line.split_once(" ON *.*") {
        return Some((privileges, GrantObject::All));
    }
    let (privileges, object) = line.split_once(" ON `")?;
    let (schema, rest) = quoted(object)?;
    let rest = rest.strip_prefix('.')?;
    if rest.starts_with('*') {
        return Some((privileges, GrantObject::Tables(GrantedTables { schema, table: None })));
    }
    let (table, _) = quoted(rest.strip_prefix('`')?)?;
    Some((privileges, GrantObject::Tables(GrantedTables { schema, table: Some(table) })))
}

/// What stands before the closing backtick, and what comes behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (part, behind) = rest.split_once('`')?;
        name.push_str(part);
        // Twice, it is a part of the name.
        let Some(more) = behind.strip_prefix('`') else { return Some((name, behind)) };
        name.push('`');
        rest = more;
    }
}

fn unescaped(pattern: &str) -> String {
    pattern.replace("\\_", "_").replace("\\%", "%")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[&str]) -> TriggerGrants {
        TriggerGrants::of(lines.iter().copied())
    }

    #[test]
    fn of_schemas_and_tables() {
        let grants = shown(&[
            "GRANT SELECT, INSERT ON *.* TO `a`@`%` IDENTIFIED BY PASSWORD '*00'",
            r"GRANT SELECT, TRIGGER ON `shop\_1`.* TO `a`@`%`",
            "GRANT ALL PRIVILEGES ON `x%`.* TO `a`@`%`",
            "GRANT TRIGGER ON `d`.`t``u` TO `a`@`%`",
            "GRANT SELECT ON `e`.* TO `a`@`%`",
            "GRANT EXECUTE ON PROCEDURE `d`.`p` TO `a`@`%`",
        ]);
        for (schema, table, expected) in [
            ("shop_1", "t", true),
            ("shopx1", "t", false),
            ("SHOP_1", "t", false),
            ("x", "t", true),
            ("xyz", "t", true),
            ("d", "t`u", true),
            ("d", "t", false),
            ("e", "t", false),
        ] {
            assert_eq!(grants.has(schema, table), expected, "{schema}.{table}");
        }
        assert!(TriggerGrants { folds_case: true, ..grants }.has("SHOP_1", "t"));
    }

    #[test]
    fn partial_revokes() {
        let lines = ["GRANT SELECT, TRIGGER ON *.* TO `a`@`%`", "REVOKE TRIGGER ON `hidden`.* FROM `a`@`%`"];
        let grants = TriggerGrants { are_literal: true, ..shown(&lines) };
        assert!(grants.has("d", "t") && !grants.has("hidden", "t"));
        let grants = TriggerGrants { are_literal: true, ..shown(&["GRANT TRIGGER ON `a_c`.* TO `a`@`%`"]) };
        assert!(grants.has("a_c", "t") && !grants.has("abc", "t"));
        assert!(shown(&["GRANT TRIGGER ON `a_c`.* TO `a`@`%`"]).has("abc", "t"));
    }

    #[test]
    fn nothing() {
        let grants = shown(&["GRANT SELECT, INSERT ON *.* TO `a`@`%`", "GRANT PROXY ON ''@'' TO 'root'@'localhost'"]);
        assert!(!grants.has("d", "t"));
        assert!(ShownTriggers::Of(grants).is_nothing());
        assert!(!ShownTriggers::Of(shown(&["GRANT TRIGGER ON `d`.* TO `a`@`%`"])).is_nothing());
    }
}
