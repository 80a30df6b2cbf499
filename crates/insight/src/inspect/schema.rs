//! Table definitions from a schema dump, or from a server.

use std::path::Path;

use anyhow::{Context, Result, bail};
use engine::sql::SqlMode;
use engine::survey::{Definitions, Statements};
use wire::{ConnectOptions, Connection};

/// The longest dump that is read, in bytes: definitions, not data.
const DUMP_BYTES_MAX: u64 = 256 << 20;

/// Reads `--schema FILE`. `USE` and the schema in front of a name say where a table is.
pub fn read(path: &Path) -> Result<Definitions> {
    let at = || format!("--schema {}", path.display());
    let length = std::fs::metadata(path).with_context(at)?.len();
    if length > DUMP_BYTES_MAX {
        bail!("{}: {length} bytes are too many; make a dump of definitions alone (mysqldump --no-data)", at());
    }
    let text = std::fs::read(path).with_context(at)?;
    let mut definitions = Definitions::default();
    let mut schema = String::new();
    for statement in Statements::new(&text) {
        if let Some(used) = used(statement) {
            schema = used;
            continue;
        }
        definitions.execute(statement, &schema, SqlMode::default());
    }
    if definitions.is_empty() {
        bail!(
            "{}: no table definition is in it; make one with mysqldump --no-data --databases NAME (it needs the USE lines)",
            at()
        );
    }
    Ok(definitions.given())
}

/// Reads the definitions that a server has now.
pub fn read_server(options: &ConnectOptions) -> Result<Definitions> {
    let mut connection = Connection::connect(options)?;
    // What does not show itself, or was dropped meanwhile, is not known.
    let definitions = serve::retag::stream::schema::tables(&mut connection, &|_| Ok(()))?;
    Ok(definitions.given())
}

/// The name in a `USE` statement, which comments may precede.
fn used(statement: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(statement);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty() && !line.starts_with("--"))?;
    let name = line.get(..4).filter(|word| word.eq_ignore_ascii_case("use ")).and(line.get(4..))?;
    Some(name.trim().trim_matches('`').replace("``", "`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_of_two_schemas() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dump.sql");
        let sql = "-- MySQL dump 10.13\n/*!40101 SET NAMES utf8 */;\nCREATE DATABASE /*!32312 IF NOT EXISTS*/ `a`;\n\nUSE `a`;\n\
                   DROP TABLE IF EXISTS `t`;\nCREATE TABLE `t` (\n  `id` int NOT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB;\n\
                   INSERT INTO `t` VALUES (1);\n--\n-- Current Database: `b`\n--\nUSE `b`;\nCREATE TABLE t (x INT);\n";
        std::fs::write(&path, sql).unwrap();
        let definitions = read(&path).unwrap();
        assert!(definitions.get("a", "t").unwrap().primary_key.is_some());
        assert!(definitions.get("b", "t").unwrap().primary_key.is_none());
        std::fs::write(&path, "SELECT 1;").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("mysqldump"));
    }
}
