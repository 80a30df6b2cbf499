//! What is searched for: a kind of change, a table, values of columns.

use binlog::RowsKind;
use binlog::value;

use crate::sql::{self, Class, DdlKind, DmlKind, SqlMode, Statement};

/// What happened to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    Insert,
    Update,
    Delete,
    Create,
    Alter,
    Truncate,
    Drop,
    /// A statement that may do anything.
    Other,
}

impl ChangeKind {
    /// As they are typed.
    pub const TYPED: [(&'static str, Self); 7] = [
        ("insert", Self::Insert),
        ("update", Self::Update),
        ("delete", Self::Delete),
        ("create", Self::Create),
        ("alter", Self::Alter),
        ("truncate", Self::Truncate),
        ("drop", Self::Drop),
    ];

    pub fn as_str(self) -> &'static str {
        Self::TYPED.into_iter().find(|(_, kind)| *kind == self).map_or("statement", |(name, _)| name)
    }

    pub(super) fn of_rows(kind: RowsKind) -> Self {
        match kind {
            RowsKind::Write => Self::Insert,
            RowsKind::Update => Self::Update,
            RowsKind::Delete => Self::Delete,
        }
    }

    fn of_statement(class: &Class) -> Option<Self> {
        Some(match class {
            Class::Dml { kind } => match kind {
                DmlKind::Insert | DmlKind::Replace | DmlKind::LoadData => Self::Insert,
                DmlKind::Update => Self::Update,
                DmlKind::Delete => Self::Delete,
                DmlKind::Other => Self::Other,
            },
            Class::Ddl { kind } => match kind {
                DdlKind::CreateTable { .. } | DdlKind::CreateDatabase => Self::Create,
                DdlKind::AlterTable
                | DdlKind::RenameTable
                | DdlKind::CreateIndex
                | DdlKind::DropIndex
                | DdlKind::AlterDatabase => Self::Alter,
                DdlKind::DropTable { .. } | DdlKind::DropDatabase => Self::Drop,
                DdlKind::Truncate => Self::Truncate,
                _ => return None,
            },
            Class::Unknown => Self::Other,
            _ => return None,
        })
    }
}

/// `KIND SCHEMA.TABLE`, and conditions on the rows.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// `None`: any.
    kind: Option<ChangeKind>,
    schema: String,
    table: String,
    conditions: Vec<Condition>,
}

/// `COLUMN=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// A name, or `@N`.
    pub column: String,
    value: String,
}

/// How a statement fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatementMatch {
    pub kind: ChangeKind,
    /// `schema.table`, or `schema.*`.
    pub table: String,
    /// It may be about another table: the text is not understood so far.
    pub is_sure: bool,
}

impl Pattern {
    /// # Errors
    /// What is wrong with it, for people.
    pub fn parse(find: &str, conditions: &[String]) -> Result<Self, String> {
        let words: Vec<&str> = find.split_whitespace().collect();
        let &[kind, table] = words.as_slice() else {
            return Err(format!("{find:?}: expected a kind of change and a table, such as 'delete shop.orders'"));
        };
        let kind = match ChangeKind::TYPED.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(kind)) {
            Some((_, kind)) => Some(kind),
            None if kind.eq_ignore_ascii_case("any") => None,
            None => {
                let known = ChangeKind::TYPED.map(|(name, _)| name).join(", ");
                return Err(format!("{kind:?} is no kind of change: any, {known}"));
            }
        };
        let bare = table.replace('`', "");
        let Some((schema, table)) =
            bare.split_once('.').filter(|(schema, table)| !schema.is_empty() && !table.is_empty())
        else {
            return Err(format!("{table:?} names no table: SCHEMA.TABLE, each may have *"));
        };
        let conditions = conditions.iter().map(|text| Condition::parse(text)).collect::<Result<_, String>>()?;
        Ok(Self { kind, schema: schema.to_owned(), table: table.to_owned(), conditions })
    }

    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    fn is_kind(&self, kind: ChangeKind) -> bool {
        self.kind.is_none_or(|wanted| wanted == kind)
    }

    pub(super) fn is_of_rows(&self, kind: RowsKind, schema: &str, table: &str) -> bool {
        self.is_kind(ChangeKind::of_rows(kind)) && is_like(schema, &self.schema) && is_like(table, &self.table)
    }

    /// Rows of a statement are not known here: conditions do not count.
    pub(super) fn of_statement(
        &self,
        statement: &Statement,
        (sql, mode): (&[u8], SqlMode),
        default_schema: &str,
    ) -> Option<StatementMatch> {
        let kind = ChangeKind::of_statement(&statement.class)?;
        let is_kind = self.is_kind(kind) || kind == ChangeKind::Other;
        if !is_kind {
            return None;
        }
        let is_table = |schema: &str, table: &str| is_like(schema, &self.schema) && is_like(table, &self.table);
        // What it refers to, or is made like, stays as it is.
        let count = if kind == ChangeKind::Create { 1 } else { usize::MAX };
        let mut changed = statement.tables.iter().take(count).filter(|name| !statement.parents.contains(name));
        if let Some(name) = changed.find(|name| is_table(&name.schema, &name.name)) {
            return Some(StatementMatch { kind, table: name.to_string(), is_sure: true });
        }
        let has_all = kind == ChangeKind::Drop || self.table == "*";
        if let Some(schema) = statement.schemas.iter().find(|schema| has_all && is_like(schema, &self.schema)) {
            return Some(StatementMatch { kind, table: format!("{schema}.*"), is_sure: true });
        }
        // Of a statement on several tables, or one that is not understood, the tables are not known: it has to name this one.
        let is_vague = statement.tables.is_empty() && !matches!(statement.class, Class::Ddl { .. });
        let names = |pattern: &str| match pattern.split('*').max_by_key(|part| part.len()) {
            Some(part) if !part.is_empty() => sql::mentions_name(sql, mode, part),
            _ => true,
        };
        let is_named = names(&self.table) && (is_like(default_schema, &self.schema) || names(&self.schema));
        (is_vague && is_named).then(|| StatementMatch {
            kind,
            table: format!("{}.{}", self.schema, self.table),
            is_sure: false,
        })
    }
}

impl Condition {
    fn parse(text: &str) -> Result<Self, String> {
        let Some((column, value)) = text.split_once('=').filter(|(column, _)| !column.trim().is_empty()) else {
            return Err(format!("{text:?}: expected COLUMN=VALUE, or @N=VALUE for the Nth column"));
        };
        let column = column.trim().trim_matches('`').to_owned();
        if let Some(number) = column.strip_prefix('@')
            && number.parse::<usize>().is_err_or_zero()
        {
            return Err(format!("{text:?}: the first column is @1"));
        }
        Ok(Self { column, value: value.to_owned() })
    }

    /// Whether a value is meant: as it is shown, and its bytes; `None`: NULL.
    pub(super) fn is_met(&self, value: Option<(&str, &[u8])>) -> bool {
        let Some((text, raw)) = value else { return self.value.eq_ignore_ascii_case("NULL") };
        text == self.value
            || is_same_number(text, &self.value)
            || self.value.starts_with("0x") && value::hex(raw).eq_ignore_ascii_case(&self.value)
    }
}

trait OneBased {
    fn is_err_or_zero(&self) -> bool;
}

impl<E> OneBased for Result<usize, E> {
    fn is_err_or_zero(&self) -> bool {
        !matches!(self, Ok(number) if *number > 0)
    }
}

/// `7` and `07`, `1.5` and `1.50`.
fn is_same_number(one: &str, other: &str) -> bool {
    let plain = |text: &str| {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = !whole.is_empty() && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
        is_number.then(|| format!("{sign}{}.{}", whole.trim_start_matches('0'), fraction.trim_end_matches('0')))
    };
    plain(one).is_some_and(|one| plain(other) == Some(one))
}

/// `*` stands for any characters. In any case, as on servers whose names have none.
fn is_like(name: &str, pattern: &str) -> bool {
    let (name, pattern) = (name.to_lowercase(), pattern.to_lowercase());
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::classify;

    #[test]
    fn names_with_stars() {
        for (name, pattern, expected) in [
            ("orders", "orders", true),
            ("Orders", "orders", true),
            ("orders2", "orders", false),
            ("orders2", "orders*", true),
            ("orders", "*", true),
            ("my_orders_old", "*orders*", true),
            ("my_orders_old", "my*old", true),
            ("myold", "my*old", true),
            ("mold", "mo*old", false),
            ("订单", "订*", true),
        ] {
            assert_eq!(is_like(name, pattern), expected, "{name} {pattern}");
        }
    }

    #[test]
    fn statements_on_a_table() {
        let found = |find: &str, sql: &str| {
            let statement = classify(sql.as_bytes(), "shop", SqlMode::default());
            let pattern = Pattern::parse(find, &[]).unwrap();
            let found = pattern.of_statement(&statement, (sql.as_bytes(), SqlMode::default()), "shop");
            found.map(|found| (found.kind.as_str(), found.table, found.is_sure))
        };
        let sure = |kind, table: &str| Some((kind, table.to_owned(), true));
        let vague = |kind, table: &str| Some((kind, table.to_owned(), false));
        for (find, sql, expected) in [
            ("delete shop.orders", "DELETE FROM orders WHERE id = 7", sure("delete", "shop.orders")),
            ("delete shop.orders", "DELETE FROM other WHERE id = 7", None),
            ("delete shop.orders", "UPDATE orders SET a = 1", None),
            ("delete shop.orders", "DELETE o FROM orders o JOIN x", vague("delete", "shop.orders")),
            ("delete shop.orders", "DELETE x FROM x JOIN y", None),
            ("any shop.orders", "CALL p('orders')", vague("statement", "shop.orders")),
            ("drop shop.*", "DROP TABLE a, b", sure("drop", "shop.a")),
            ("drop shop.orders", "DROP DATABASE shop", sure("drop", "shop.*")),
            ("drop shop.orders", "DROP DATABASE other", None),
            ("any shop.orders", "CREATE DATABASE shop", None),
            ("any shop.*", "CREATE DATABASE shop", sure("create", "shop.*")),
            ("any shop.orders", "CREATE TABLE other LIKE orders", None),
            ("any shop.orders", "ALTER TABLE x ADD FOREIGN KEY (a) REFERENCES orders (id)", None),
            ("truncate *.orders", "TRUNCATE orders", sure("truncate", "shop.orders")),
            ("alter shop.orders", "RENAME TABLE x TO orders", sure("alter", "shop.orders")),
            ("alter shop.orders", "CREATE INDEX i ON orders (a)", sure("alter", "shop.orders")),
            ("any shop.orders", "CREATE TABLE orders (a INT)", sure("create", "shop.orders")),
            ("any shop.orders", "GRANT ALL ON shop.orders TO u", None),
        ] {
            assert_eq!(found(find, sql), expected, "{find}: {sql}");
        }
    }

    #[test]
    fn what_is_typed() {
        for (find, conditions, expected) in [
            ("delete shop.orders", vec!["id=7", "@2=a=b"], None),
            ("DELETE `shop`.`orders`", vec![], None),
            ("delete", vec![], Some("expected a kind of change and a table")),
            ("purge shop.orders", vec![], Some("is no kind of change: any, insert")),
            ("delete orders", vec![], Some("names no table")),
            ("delete shop.orders", vec!["id"], Some("expected COLUMN=VALUE")),
            ("delete shop.orders", vec!["@0=1"], Some("the first column is @1")),
        ] {
            let conditions: Vec<String> = conditions.into_iter().map(str::to_owned).collect();
            let error = Pattern::parse(find, &conditions).err();
            assert_eq!(error.is_some(), expected.is_some(), "{find} {error:?}");
            assert!(expected.is_none_or(|expected| error.unwrap().contains(expected)), "{find}");
        }
    }

    #[test]
    fn numbers_that_are_the_same() {
        for (one, other, expected) in
            [("7", "07", true), ("1.50", "1.5", true), ("-7", "7", false), ("7", "70", false), ("a", "a", false)]
        {
            assert_eq!(is_same_number(one, other), expected, "{one} {other}");
        }
    }
}
