//! MariaDB's keys `WITHOUT OVERLAPS`: rows that have nothing in common but a part of their periods keep each other out.
//!
//! `information_schema.STATISTICS` shows such a key as one of its columns and the period's end and start
//! (<https://mariadb.com/kb/en/application-time-periods/>). As a write set knows only equal values, the key's other columns alone count as a
//! key beside it: rows that could overlap are equal in these. What the period is of is not asked for: `KEY_PERIOD_USAGE` came with MariaDB 11.4.

use engine::schema::{KeyPart, UniqueKey};

/// The columns of a period at least, and one before it.
const PARTS_MIN: usize = 3;
/// Behind the key's name, in that of what it compares for equality.
const WITHOUT: &str = " without its period";

/// Whether a key could be `WITHOUT OVERLAPS`, and the parts before its period if it is. `is_end`: a column that a period may end or begin with.
pub fn before_period(parts: &[KeyPart], is_end: impl Fn(usize) -> bool) -> Option<&[KeyPart]> {
    let (before, period) = parts.split_at_checked(parts.len().checked_sub(2)?)?;
    let whole = period.iter().all(|part| part.prefix.is_none() && is_end(part.column));
    (whole && parts.len() >= PARTS_MIN).then_some(before)
}

/// `create_table`: what `SHOW CREATE TABLE` says. A name or a comment that says so, too, only makes more transactions wait for each other.
pub fn are_declared(create_table: &str) -> bool {
    create_table.contains("WITHOUT OVERLAPS")
}

/// What a key `WITHOUT OVERLAPS` compares for equality.
pub fn equality(key: &UniqueKey, before: &[KeyPart]) -> UniqueKey {
    UniqueKey { name: format!("{}{WITHOUT}", key.name), parts: before.to_vec() }
}

/// Whether it is one of [`equality`]: several rows may have its values.
pub fn is_equality(key: &UniqueKey) -> bool {
    key.name.ends_with(WITHOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_two_whole_columns_behind_others() {
        let part = |column| KeyPart { column, prefix: None };
        let before = |parts: &[KeyPart]| before_period(parts, |column| column >= 2).map(<[KeyPart]>::len);
        assert_eq!(before(&[part(0), part(3), part(2)]), Some(1));
        assert_eq!(before(&[part(1), part(0), part(3), part(2)]), Some(2));
        assert_eq!(before(&[part(0), part(1), part(2)]), None);
        assert_eq!(before(&[part(0), part(3), KeyPart { column: 2, prefix: Some(3) }]), None);
        for short in [&[][..], &[part(2)], &[part(3), part(2)]] {
            assert_eq!(before(short), None);
        }
    }

    #[test]
    fn declared_by_the_server() {
        assert!(are_declared(
            "CREATE TABLE `t` (\n  PERIOD FOR `p` (`s`, `e`),\n  UNIQUE KEY `u` (`v`,`p` WITHOUT OVERLAPS)\n)"
        ));
        assert!(!are_declared("CREATE TABLE `t` (\n  PERIOD FOR `p` (`s`, `e`),\n  UNIQUE KEY `u` (`v`,`e`,`s`)\n)"));
    }
}
