//! `SHOW CREATE TABLE`, taken apart: the table without its foreign keys, and these.

/// A table's definition in two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitDefinition {
    /// `CREATE TABLE` without foreign keys.
    pub table: String,
    /// Each as `ALTER TABLE … ADD` takes it.
    pub foreign_keys: Vec<String>,
}

/// The servers write each column and key on a line of its own, and escape the line ends in comments and defaults.
pub fn split(statement: &str) -> SplitDefinition {
    let mut foreign_keys = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    for line in statement.lines() {
        let element = line.trim_start();
        if is_foreign_key(element) {
            foreign_keys.push(element.trim_end_matches(',').to_owned());
        } else {
            lines.push(line.to_owned());
        }
    }
    if !foreign_keys.is_empty()
        && let Some(end) = lines.iter().position(|line| line.starts_with(')'))
        && let Some(last) = end.checked_sub(1).and_then(|at| lines.get_mut(at))
        && last.ends_with(',')
    {
        last.pop();
    }
    SplitDefinition { table: lines.join("\n"), foreign_keys }
}

fn is_foreign_key(element: &str) -> bool {
    let behind = constraint_name(element).and_then(|name| element.get(CONSTRAINT.len() + name.len()..));
    behind.map_or_else(|| element.starts_with("FOREIGN KEY ("), |behind| behind.starts_with(" FOREIGN KEY ("))
}

const CONSTRAINT: &str = "CONSTRAINT ";

/// In its quotes, of what is defined as `CONSTRAINT …`.
pub fn constraint_name(element: &str) -> Option<&str> {
    let quoted = element.strip_prefix(CONSTRAINT)?;
    // The name may have quoted backticks.
    let mut characters = quoted.strip_prefix('`')?.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        if c != '`' {
            continue;
        }
        if characters.peek().is_some_and(|(_, next)| *next == '`') {
            characters.next();
            continue;
        }
        return quoted.get(..at + 2);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_keys_come_apart() {
        let found = split(
            "CREATE TABLE `c` (\n  `id` int NOT NULL COMMENT 'CONSTRAINT `x` FOREIGN KEY (',\n  `p` int DEFAULT NULL,\n  PRIMARY KEY (`id`),\n  KEY `p` (`p`),\n  \
             CONSTRAINT `a``b` FOREIGN KEY (`p`) REFERENCES `p` (`id`) ON DELETE CASCADE,\n  CONSTRAINT `k` CHECK ((`p` > 0)),\n  CONSTRAINT `z` FOREIGN KEY (`p`) REFERENCES `q` (`id`)\n) ENGINE=InnoDB",
        );
        assert_eq!(
            found.table,
            "CREATE TABLE `c` (\n  `id` int NOT NULL COMMENT 'CONSTRAINT `x` FOREIGN KEY (',\n  `p` int DEFAULT NULL,\n  PRIMARY KEY (`id`),\n  KEY `p` (`p`),\n  \
             CONSTRAINT `k` CHECK ((`p` > 0))\n) ENGINE=InnoDB"
        );
        assert_eq!(
            found.foreign_keys,
            [
                "CONSTRAINT `a``b` FOREIGN KEY (`p`) REFERENCES `p` (`id`) ON DELETE CASCADE",
                "CONSTRAINT `z` FOREIGN KEY (`p`) REFERENCES `q` (`id`)"
            ]
        );
    }

    #[test]
    fn names_of_constraints() {
        assert_eq!(constraint_name("CONSTRAINT `a``b` FOREIGN KEY (`p`)"), Some("`a``b`"));
        assert_eq!(constraint_name("FOREIGN KEY (`p`)"), None);
        assert_eq!(constraint_name("CONSTRAINT `a"), None);
    }

    #[test]
    fn a_table_without_foreign_keys_stays() {
        let text =
            "CREATE TABLE `t` (\n  `id` int\n) ENGINE=InnoDB\n/*!50100 PARTITION BY HASH (`id`)\nPARTITIONS 4 */";
        assert_eq!(split(text), SplitDefinition { table: text.to_owned(), foreign_keys: Vec::new() });
    }
}
