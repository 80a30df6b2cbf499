//! A number that changes when a statement that can not be rolled back has been executed, and only then.
//!
//! It is a hash of the definitions of everything that the statement names. A statement that leaves them as they are (TRUNCATE,
//! OPTIMIZE, CREATE … IF NOT EXISTS of what exists) gives the same result when it is executed again, since nothing else
//! has been applied in between. Statements that swap two equal things (RENAME, EXCHANGE PARTITION) change InnoDB's own numbers of the
//! tables, so these are in the hash.
//!
//! Of most definitions `SHOW CREATE TABLE` shows all that they change. Statements that may be executed again need none. Earlier versions of Heddle looked at
//! more ([`FingerprintScope::All`]).
//!
//! Nothing is in it that a restart of the server may change. An AUTO_INCREMENT counter goes back in a crash (MySQL before
//! 8.0), a CREATE_TIME of MariaDB is that of a file which a DDL that was undone has touched.

use std::hash::Hasher;

use binlog::Flavour;
use engine::failure::Failure;
use engine::sql::{Class, DdlKind, ObjectName, mentions};
use engine::transaction::StatementItem;
use twox_hash::XxHash64;
use wire::{Connection, Row};

use crate::mysql::progress::intent::FingerprintScope;
use crate::mysql::server::errors::failed;
use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::sql::{identifier, quote};

pub struct Fingerprint {
    pub hash: u64,
    /// Nothing of the tables' definitions stands elsewhere: in other tables, or on another server.
    pub is_by_itself: bool,
}

pub fn take(
    connection: &mut Connection,
    info: &TargetInfo,
    statement: &StatementItem,
    look: FingerprintScope,
) -> Result<Fingerprint, Failure> {
    if look == FingerprintScope::Needed && statement.is_repeatable() {
        return Ok(Fingerprint { hash: 0, is_by_itself: true });
    }
    let mut hasher = XxHash64::with_seed(0);
    let mut is_by_itself = true;
    for sql in queries(statement, info, look) {
        let rows = add(connection, &mut hasher, &sql)?;
        let engine = if sql.starts_with(TABLE_STATE) {
            |row: &Row| row.text(1).ok().flatten().map(str::to_owned)
        } else if sql.starts_with(SHOW_CREATE) {
            |row: &Row| row.get(1).and_then(engine_shown)
        } else {
            continue;
        };
        is_by_itself &= rows.iter().all(|row| {
            let engine = engine(row).unwrap_or_default();
            ENGINES_BY_THEMSELVES.iter().any(|known| known.eq_ignore_ascii_case(&engine))
        });
    }
    Ok(Fingerprint { hash: hasher.finish(), is_by_itself })
}

/// The engine in what `SHOW CREATE TABLE` says of a table. A line's end within a comment is shown as a backslash and a letter.
fn engine_shown(definition: &[u8]) -> Option<String> {
    const ENGINE: &[u8] = b"\n) ENGINE=";
    let at = definition.windows(ENGINE.len()).position(|window| window == ENGINE)?;
    let name = definition.get(at + ENGINE.len()..)?;
    let end = name.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(name.len());
    name.get(..end).map(|name| String::from_utf8_lossy(name).into_owned())
}

const TABLE_STATE: &str = "SELECT TABLE_TYPE, ENGINE, ";
const SHOW_CREATE: &str = "SHOW CREATE TABLE ";
/// Those of others name further tables (MERGE), or servers (FEDERATED, SPIDER, CONNECT).
const ENGINES_BY_THEMSELVES: [&str; 8] =
    ["InnoDB", "MyISAM", "Aria", "MEMORY", "ARCHIVE", "CSV", "BLACKHOLE", "ROCKSDB"];

fn queries(item: &StatementItem, info: &TargetInfo, look: FingerprintScope) -> Vec<String> {
    let statement = &item.class;
    let mut queries = Vec::new();
    if look == FingerprintScope::Needed && is_shown(item) {
        return statement.tables.iter().map(show_create).collect();
    }
    let everywhere = match &statement.class {
        Class::Ddl { kind } => kind.is_account() || *kind == DdlKind::Other,
        _ => true,
    };
    if everywhere {
        queries.extend(SERVER_TABLES.map(|table| format!("SELECT * FROM {table}")));
    }
    let moves = matches!(statement.class, Class::Ddl { kind: DdlKind::AlterTable | DdlKind::RenameTable });
    for table in &statement.tables {
        queries.extend(table_queries(table));
        if moves {
            queries.push(innodb_query(table, info));
        }
    }
    // These show in the definitions of the tables, and a schema may have many others.
    if statement.is_of_its_tables() {
        return queries;
    }
    let mut schemas: Vec<&str> = statement.schemas.iter().chain(&statement.homes).map(String::as_str).collect();
    schemas.extend(statement.tables.iter().map(|table| table.schema.as_str()));
    schemas.sort_unstable();
    schemas.dedup();
    let kind = match statement.class {
        Class::Ddl { kind } => kind,
        _ => DdlKind::Other,
    };
    for schema in schemas {
        queries.extend(schema_queries(&quote(schema), kind));
    }
    queries
}

/// Accounts, and what else belongs to no schema. Each server has some of them.
const SERVER_TABLES: [&str; 14] = [
    "mysql.global_priv",
    "mysql.user",
    "mysql.db",
    "mysql.tables_priv",
    "mysql.columns_priv",
    "mysql.procs_priv",
    "mysql.proxies_priv",
    "mysql.roles_mapping",
    "mysql.role_edges",
    "mysql.default_roles",
    "mysql.global_grants",
    "mysql.servers",
    "mysql.func",
    "mysql.plugin",
];

/// `SHOW CREATE TABLE` shows all that the statement changes, or it changes what it may change twice. Not what moves rows from one table to another, whose
/// definitions are alike.
fn is_shown(item: &StatementItem) -> bool {
    let Class::Ddl { kind } = item.class.class else { return false };
    match kind {
        DdlKind::CreateTable { select: false, .. }
        | DdlKind::DropTable { .. }
        | DdlKind::CreateIndex
        | DdlKind::DropIndex => item.class.is_of_its_tables(),
        DdlKind::AlterTable => {
            const MOVES: [&[u8]; 4] = [b"rename", b"exchange", b"discard", b"import"];
            item.class.is_of_its_tables() && !MOVES.iter().any(|word| mentions(&item.query.sql, word))
        }
        _ => false,
    }
}

fn show_create(table: &ObjectName) -> String {
    format!("{SHOW_CREATE}{}.{}", identifier(&table.schema), identifier(&table.name))
}

fn table_queries(table: &ObjectName) -> [String; 2] {
    let (schema, name) = (&table.schema, &table.name);
    [
        show_create(table),
        format!(
            "{TABLE_STATE}IF(ENGINE='InnoDB',NULL,CREATE_TIME), CREATE_OPTIONS, TABLE_COMMENT \
             FROM information_schema.TABLES WHERE TABLE_SCHEMA={} AND TABLE_NAME={}",
            quote(schema),
            quote(name)
        ),
    ]
}

/// InnoDB's numbers of a table and its partitions. Needs the privilege PROCESS.
fn innodb_query(table: &ObjectName, info: &TargetInfo) -> String {
    let view = match info.flavour {
        Flavour::MySql if info.version >= (8, 0, 0) => "INNODB_TABLES",
        _ => "INNODB_SYS_TABLES",
    };
    let name = format!("{}/{}", file_name_pattern(&table.schema), file_name_pattern(&table.name));
    format!(
        "SELECT NAME, TABLE_ID FROM information_schema.{view} WHERE NAME LIKE {} ESCAPE '|' OR NAME LIKE {} ESCAPE '|' ORDER BY NAME",
        quote(&name),
        quote(&format!("{name}#p#%"))
    )
}

/// For LIKE, with `|` as its escape: the name that a table or schema has for InnoDB, that of its files. A letter beyond ASCII stands there as `@` and two
/// signs of a table of the servers' own, or four; a name that is one of some devices has `@@@` at its end.
///
/// Source: manual, "Mapping of Identifiers to File Names"; MySQL 9.7's and MariaDB 10.11's names, as they show them.
fn file_name_pattern(name: &str) -> String {
    let mut pattern = String::new();
    for character in name.chars() {
        match character {
            '_' => pattern.push_str("|_"),
            'a'..='z' | 'A'..='Z' | '0'..='9' => pattern.push(character),
            '\0'..='\x7f' => pattern.push_str(&format!("@{:04x}", u32::from(character))),
            _ => pattern.push_str("@%"),
        }
    }
    if is_device(name) {
        pattern.push_str("@@@");
    }
    pattern
}

fn is_device(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let numbered = |device| name.strip_prefix(device).is_some_and(|rest| matches!(rest.as_bytes(), [b'1'..=b'9']));
    matches!(name.as_str(), "con" | "prn" | "nul" | "aux" | "clock$") || numbered("com") || numbered("lpt")
}

/// What a statement of this kind may change in a schema, beside the definitions of its tables. Servers before MySQL 8 look at the files of all tables for
/// some of it.
fn schema_queries(schema: &str, kind: DdlKind) -> Vec<String> {
    let views = || {
        format!(
            "SELECT TABLE_NAME, VIEW_DEFINITION, DEFINER, SECURITY_TYPE, CHECK_OPTION FROM information_schema.VIEWS \
             WHERE TABLE_SCHEMA={schema} ORDER BY TABLE_NAME"
        )
    };
    let routines = || {
        format!(
            "SELECT ROUTINE_NAME, ROUTINE_TYPE, ROUTINE_DEFINITION, CREATED, LAST_ALTERED, DEFINER, ROUTINE_COMMENT \
             FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA={schema} ORDER BY ROUTINE_NAME, ROUTINE_TYPE"
        )
    };
    let triggers = || {
        format!(
            "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_STATEMENT, ACTION_ORDER, CREATED, DEFINER \
             FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA={schema} ORDER BY TRIGGER_NAME"
        )
    };
    // Not the state, which the scheduler changes by itself.
    let events = || {
        format!(
            "SELECT EVENT_NAME, EVENT_DEFINITION, INTERVAL_VALUE, INTERVAL_FIELD \
             FROM information_schema.EVENTS WHERE EVENT_SCHEMA={schema} ORDER BY EVENT_NAME"
        )
    };
    match kind {
        DdlKind::View => vec![views()],
        DdlKind::Routine => vec![routines()],
        DdlKind::Trigger => vec![triggers()],
        DdlKind::Event => vec![events()],
        _ => vec![
            format!(
                "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA \
                 WHERE SCHEMA_NAME={schema}"
            ),
            format!(
                "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA={schema} ORDER BY TABLE_NAME"
            ),
            views(),
            routines(),
            triggers(),
            events(),
        ],
    }
}

/// What is not there is part of the state, too.
fn add(connection: &mut Connection, hasher: &mut XxHash64, sql: &str) -> Result<Vec<Row>, Failure> {
    match connection.rows(sql) {
        Ok(rows) => {
            for row in &rows {
                for column in 0..row.len() {
                    match row.get(column) {
                        Some(bytes) => {
                            let bytes = without_counter(bytes);
                            hasher.write_u64(bytes.len() as u64);
                            hasher.write(&bytes);
                        }
                        None => hasher.write_u64(u64::MAX),
                    }
                }
            }
            Ok(rows)
        }
        Err(error) if error.is_connection_lost() || error.is_interruption() => Err(failed(error)),
        // The number is part of the state; its text may name what changes from try to try.
        Err(error) => {
            hasher.write_u16(error.code().unwrap_or(0));
            Ok(Vec::new())
        }
    }
}

/// The text of a definition without the next value of its AUTO_INCREMENT column.
fn without_counter(text: &[u8]) -> Vec<u8> {
    const COUNTER: &[u8] = b" AUTO_INCREMENT=";
    let Some(at) = text.windows(COUNTER.len()).position(|window| window == COUNTER) else { return text.to_vec() };
    let (before, counter) = text.split_at(at);
    let digits = counter.get(COUNTER.len()..).unwrap_or_default();
    let rest = digits.iter().position(|byte| !byte.is_ascii_digit()).and_then(|end| digits.get(end..));
    [before, rest.unwrap_or_default()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn the_counter_of_a_table_does_not_count() {
        let check = |text: &str, expected: &str| assert_eq!(without_counter(text.as_bytes()), expected.as_bytes());
        check(
            "CREATE TABLE t (\n) ENGINE=InnoDB AUTO_INCREMENT=17 DEFAULT CHARSET=x",
            "CREATE TABLE t (\n) ENGINE=InnoDB DEFAULT CHARSET=x",
        );
        check(") ENGINE=InnoDB AUTO_INCREMENT=17", ") ENGINE=InnoDB");
        check(") ENGINE=InnoDB", ") ENGINE=InnoDB");
    }

    fn statement(sql: &str) -> StatementItem {
        let query = binlog::Query {
            thread_id: 0,
            exec_time: 0,
            error_code: 0,
            schema: Bytes::from_static(b"d"),
            status_vars: Bytes::new(),
            sql: Bytes::copy_from_slice(sql.as_bytes()),
            vars: binlog::StatusVars::default(),
        };
        let class = engine::sql::classify(sql.as_bytes(), "d", engine::sql::SqlMode::from_bits(0));
        StatementItem { query, timestamp: 0, suppress_use: false, context: Vec::new(), class, file: None }
    }

    #[test]
    fn what_is_needed() {
        let mysql = TargetInfo::of(Flavour::MySql, (9, 7, 0));
        let needed = |sql: &str| queries(&statement(sql), &mysql, FingerprintScope::Needed);
        for sql in [
            "CREATE TABLE t (id INT)",
            "DROP TABLE t",
            "ALTER TABLE t ADD COLUMN n INT",
            "ALTER TABLE t DROP PARTITION p",
            "CREATE INDEX i ON t (n)",
            "DROP INDEX i ON t",
        ] {
            assert_eq!(needed(sql), ["SHOW CREATE TABLE `d`.`t`"], "{sql}");
        }
        for sql in [
            "RENAME TABLE t TO u",
            "ALTER TABLE t RENAME u",
            "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u",
            "ALTER TABLE t DISCARD TABLESPACE",
            "CREATE TABLE t SELECT 1",
            "CREATE DATABASE t",
            "CREATE USER u",
        ] {
            assert_eq!(needed(sql), queries(&statement(sql), &mysql, FingerprintScope::All), "{sql}");
        }
    }

    #[test]
    fn engines_are_found() {
        let check = |definition: &str, engine: Option<&str>| {
            assert_eq!(engine_shown(definition.as_bytes()).as_deref(), engine, "{definition}");
        };
        let comment = "CREATE TABLE `t` (\n  `a` int COMMENT '\\n) ENGINE=x'\n) ENGINE=";
        check(&format!("{comment}InnoDB DEFAULT CHARSET=x"), Some("InnoDB"));
        check(&format!("{comment}MRG_MyISAM UNION=(`u`)"), Some("MRG_MyISAM"));
        check("CREATE VIEW `t` AS select 1", None);
    }

    #[test]
    fn what_is_asked_for() {
        let asks = |sql: &str, info: &TargetInfo, text: &str| {
            queries(&statement(sql), info, FingerprintScope::All).iter().any(|query| query.contains(text))
        };
        let (mysql, mariadb) =
            (TargetInfo::of(Flavour::MySql, (8, 0, 15)), TargetInfo::of(Flavour::MariaDb, (10, 11, 0)));
        assert!(asks(
            "RENAME TABLE a_b TO c",
            &mysql,
            "INNODB_TABLES WHERE NAME LIKE 'd/a|_b' ESCAPE '|' OR NAME LIKE 'd/a|_b#p#%' ESCAPE '|'"
        ));
        assert!(asks(
            "ALTER TABLE a EXCHANGE PARTITION p WITH TABLE x.b",
            &mariadb,
            "INNODB_SYS_TABLES WHERE NAME LIKE 'x/b' "
        ));
        assert!(asks("RENAME TABLE `x-y`.`a b` TO `日é`", &mysql, "NAME LIKE 'x@002dy/a@0020b' "));
        assert!(asks("RENAME TABLE a TO `日é`", &mysql, "NAME LIKE 'd/@%@%' "));
        assert!(asks("RENAME TABLE con.`LPT1` TO com0", &mysql, "NAME LIKE 'con@@@/LPT1@@@' "));
        assert!(asks("RENAME TABLE con.`LPT1` TO com0", &mysql, "NAME LIKE 'd/com0' "));
        assert!(asks("CREATE VIEW x.v AS SELECT 1", &mysql, "VIEWS WHERE TABLE_SCHEMA='x'"));
        assert!(asks("DROP PROCEDURE p", &mysql, "ROUTINES WHERE ROUTINE_SCHEMA='d'"));
        assert!(asks(
            "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW DO 1",
            &mysql,
            "TRIGGERS WHERE TRIGGER_SCHEMA='d'"
        ));
        assert!(asks("DROP EVENT x.e", &mysql, "EVENTS WHERE EVENT_SCHEMA='x'"));
        assert!(!asks("CREATE VIEW x.v AS SELECT 1", &mysql, "TABLES WHERE"));
        assert!(asks("CREATE DATABASE x", &mysql, "TABLES WHERE TABLE_SCHEMA='x'"));
        assert!(asks("CREATE USER u", &mysql, "mysql.user"));
        assert!(asks("CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')", &mysql, "mysql.servers"));
        assert!(!asks("CREATE TABLE t (id INT)", &mysql, "mysql.user"));
    }
}
