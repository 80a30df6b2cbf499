//! Statements whose result may be another on a replica: what both manuals call unsafe for statement-based replication.
//!
//! Sources: MySQL, "Determination of Safe and Unsafe Statements in Binary Logging"; MariaDB, "Unsafe Statements for Statement-based Replication". Goes by
//! the text, and by what the log has in front of it. What triggers, stored functions and loadable functions do is not in either, and which keys a table has
//! is not known here.

use std::fmt;

use super::cursor::Cursor;
use super::lexer::Kind;
use super::tokens::{TokenPosition, tokens};
use super::{Class, DdlKind, DmlKind, SqlMode};

/// What makes a statement unsafe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnsafeKind {
    /// `UUID()` and its like.
    UniqueId,
    /// The clock of the server that runs it: `SYSDATE()`.
    Clock,
    /// A random value without a seed in the log.
    Random,
    /// LIMIT without ORDER BY.
    Limit,
    /// `GET_LOCK()` and its like.
    UserLock,
    /// `LOAD_FILE()`.
    File,
    /// `FOUND_ROWS()`, `ROW_COUNT()`: the session's statement before.
    EarlierStatement,
    /// `SLEEP()`, and waits for replicas.
    Wait,
    /// `VERSION()`.
    ServerVersion,
    /// `@@name`, but those that the log has.
    SystemVariable,
    /// `performance_schema`, `information_schema`, the log tables.
    ServerTable,
    /// Which rows are left out depends on the order in which they come.
    Ignore,
    /// Which rows are replaced, likewise.
    Replace,
    /// Which rows are updated, likewise.
    DuplicateKey,
    /// Which row gets which number, likewise.
    AutoIncrement,
    /// A trigger or function generates numbers, of which the log has the first.
    AutoIncrementBehind,
    /// `SKIP LOCKED`.
    SkipLocked,
    /// `INSERT DELAYED`.
    Delayed,
}

/// One finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsafety {
    pub kind: UnsafeKind,
    /// As the statement has it: the function, the clause.
    pub word: &'static str,
}

/// What the log has in front of a statement.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoggedContext {
    /// The seeds of `RAND()`.
    pub seeds: bool,
    /// The first `AUTO_INCREMENT` value.
    pub insert_id: bool,
}

/// Functions, with a parenthesis behind them.
const CALLS: [(&str, UnsafeKind); 31] = {
    use UnsafeKind::{Clock, EarlierStatement, File, Limit, Random, ServerVersion, UniqueId, UserLock, Wait};
    [
        // Both manuals.
        ("UUID", UniqueId),
        ("UUID_SHORT", UniqueId),
        ("SYSDATE", Clock),
        ("RAND", Random),
        ("LOAD_FILE", File),
        ("FOUND_ROWS", EarlierStatement),
        ("ROW_COUNT", EarlierStatement),
        ("GET_LOCK", UserLock),
        ("IS_FREE_LOCK", UserLock),
        ("IS_USED_LOCK", UserLock),
        ("RELEASE_LOCK", UserLock),
        ("RELEASE_ALL_LOCKS", UserLock),
        ("SLEEP", Wait),
        ("MASTER_POS_WAIT", Wait),
        // MySQL.
        ("SOURCE_POS_WAIT", Wait),
        ("WAIT_FOR_EXECUTED_GTID_SET", Wait),
        ("WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS", Wait),
        ("RANDOM_BYTES", Random),
        ("VERSION", ServerVersion),
        ("ICU_VERSION", ServerVersion),
        ("PS_CURRENT_THREAD_ID", ServerVersion),
        ("PS_THREAD_ID", ServerVersion),
        // MariaDB.
        ("MASTER_GTID_WAIT", Wait),
        ("UUID_V4", UniqueId),
        ("UUID_V7", UniqueId),
        ("UUIDV4", UniqueId),
        ("UUIDV7", UniqueId),
        ("SYS_GUID", UniqueId),
        ("ROWNUM", Limit),
        ("LASTVAL", EarlierStatement),
        ("PREVIOUS_VALUE", EarlierStatement),
    ]
};

/// Session variables that the log has, or whose value follows from it.
const LOGGED_VARIABLES: [&str; 20] = [
    "AUTO_INCREMENT_INCREMENT",
    "AUTO_INCREMENT_OFFSET",
    "CHARACTER_SET_CLIENT",
    "CHARACTER_SET_CONNECTION",
    "CHARACTER_SET_DATABASE",
    "CHARACTER_SET_SERVER",
    "COLLATION_CONNECTION",
    "COLLATION_DATABASE",
    "COLLATION_SERVER",
    "FOREIGN_KEY_CHECKS",
    "IDENTITY",
    "INSERT_ID",
    "LAST_INSERT_ID",
    "LC_TIME_NAMES",
    "PSEUDO_THREAD_ID",
    "SQL_AUTO_IS_NULL",
    "SQL_MODE",
    "TIME_ZONE",
    "TIMESTAMP",
    "UNIQUE_CHECKS",
];

impl UnsafeKind {
    /// Why the target may end up with other rows, without the word.
    pub fn reason(self) -> &'static str {
        match self {
            Self::UniqueId => "it gives another value on each server",
            Self::Clock => "it reads the clock of the server that runs the statement",
            Self::Random => "it gives another value on each server",
            Self::Limit => "without ORDER BY it may take other rows on the target",
            Self::UserLock => "it depends on locks that sessions of the server hold",
            Self::File => "it reads a file of the server that runs the statement",
            Self::EarlierStatement => "it depends on what the session did before",
            Self::Wait => "it depends on what happens on the server meanwhile",
            Self::ServerVersion => "it depends on the server that runs the statement",
            Self::SystemVariable => "the log does not have the value that it had on the source",
            Self::ServerTable => "it reads what each server has of its own",
            Self::Ignore | Self::Replace | Self::DuplicateKey => {
                "which rows are left depends on the order in which they come, and there is no ORDER BY"
            }
            Self::AutoIncrement => "which row gets which number depends on their order, and there is no ORDER BY",
            Self::AutoIncrementBehind => {
                "a trigger or function generates AUTO_INCREMENT values, and the log has only the first"
            }
            Self::SkipLocked => "it depends on locks that sessions of the server hold",
            Self::Delayed => "its rows may come in another order",
        }
    }
}

impl fmt::Display for Unsafety {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.word, self.kind.reason())
    }
}

/// One for each kind. Only of statements that change rows: other text is executed later, if at all.
pub fn unsafeties(sql: &[u8], class: &Class, mode: SqlMode, logged: LoggedContext) -> Vec<Unsafety> {
    let adds_column = match class {
        Class::Dml { .. } | Class::Ddl { kind: DdlKind::CreateTable { select: true, .. } } => false,
        // Its default fills the rows that are there.
        Class::Ddl { kind: DdlKind::AlterTable } => true,
        _ => return Vec::new(),
    };
    let mut search = Search { found: Vec::new(), logged };
    if adds_column {
        if tokens(sql, mode).any(|here| here.cursor.is("ADD")) {
            tokens(sql, mode).for_each(|here| search.call(here));
        }
        return search.found;
    }
    if let Class::Dml { kind: DmlKind::Update | DmlKind::Delete } = class
        && logged.insert_id
    {
        search.note(UnsafeKind::AutoIncrementBehind, "INSERT_ID");
    }
    search.query(sql, mode, class);
    search.found
}

/// One level of parentheses.
#[derive(Default)]
struct Level {
    /// ORDER BY of the query that was read last.
    ordered: bool,
}

/// The query that gives an INSERT, REPLACE or CREATE TABLE its rows.
#[derive(Default)]
struct RowSource {
    /// In how many parentheses.
    depth: Option<usize>,
    ordered: bool,
    /// VALUES or SET were there: other queries are values.
    closed: bool,
}

struct Search {
    found: Vec<Unsafety>,
    logged: LoggedContext,
}

impl Search {
    fn note(&mut self, kind: UnsafeKind, word: &'static str) {
        if !self.found.iter().any(|known| known.kind == kind) {
            self.found.push(Unsafety { kind, word });
        }
    }

    fn query(&mut self, sql: &[u8], mode: SqlMode, class: &Class) {
        let takes_rows = match class {
            Class::Dml { kind } => matches!(kind, DmlKind::Insert | DmlKind::Replace),
            _ => true,
        };
        let mut source = RowSource { closed: !takes_rows, ..RowSource::default() };
        let mut levels = vec![Level::default()];
        let (mut ignores, mut replaces, mut duplicates) = (false, false, false);
        for (number, here) in tokens(sql, mode).enumerate() {
            let depth = levels.len() - 1;
            let mut cursor = here.cursor;
            match cursor.peek().kind {
                Kind::Punct(b'(') => levels.push(Level::default()),
                Kind::Punct(b')') if depth > 0 => {
                    levels.pop();
                }
                Kind::Punct(b')') => {}
                Kind::Word if !here.is_qualified => {
                    let level = levels.last_mut();
                    if cursor.is("SELECT") || cursor.is("TABLE") && number > 0 && !is_create(class) {
                        level.into_iter().for_each(|level| level.ordered = false);
                        if !source.closed && source.depth.is_none() {
                            source.depth = Some(depth);
                        }
                    } else if cursor.eat_all(&["ORDER", "BY"]) {
                        level.into_iter().for_each(|level| level.ordered = true);
                        source.ordered |= source.depth == Some(depth);
                    } else if let Some(word) = limits(&mut cursor) {
                        if level.is_none_or(|level| !level.ordered) {
                            self.note(UnsafeKind::Limit, word);
                        }
                    } else if source.depth.is_none()
                        && depth == 0
                        && cursor.eat_any(&["VALUES", "VALUE", "SET"]).is_some()
                    {
                        source.closed = true;
                    } else if cursor.eat_all(&["SKIP", "LOCKED"]) {
                        self.note(UnsafeKind::SkipLocked, "SKIP LOCKED");
                    } else if source.depth.is_none() && !source.closed {
                        ignores |= cursor.is("IGNORE");
                        // CREATE OR REPLACE replaces the table.
                        replaces |= cursor.is("REPLACE") && !(is_create(class) && number < 3);
                        if number < 3 && cursor.is("DELAYED") {
                            self.note(UnsafeKind::Delayed, "INSERT DELAYED");
                        }
                    } else if depth == 0 && cursor.eat_all(&["ON", "DUPLICATE", "KEY", "UPDATE"]) {
                        duplicates = true;
                    } else if number < 3 && cursor.is("IGNORE") && matches!(class, Class::Dml { kind: DmlKind::Update })
                    {
                        self.note(UnsafeKind::Ignore, "UPDATE IGNORE");
                    }
                }
                _ => {}
            }
            self.call(here);
        }
        if source.depth.is_none() || source.ordered {
            return;
        }
        if ignores {
            self.note(UnsafeKind::Ignore, "IGNORE … SELECT");
        }
        if replaces {
            self.note(UnsafeKind::Replace, "REPLACE … SELECT");
        }
        if duplicates {
            self.note(UnsafeKind::DuplicateKey, "SELECT … ON DUPLICATE KEY UPDATE");
        }
        if self.logged.insert_id {
            self.note(UnsafeKind::AutoIncrement, "INSERT … SELECT into AUTO_INCREMENT");
        }
    }

    /// What one token and those behind it name: a function, a variable, a table.
    fn call(&mut self, here: TokenPosition<'_>) {
        let TokenPosition { mut cursor, is_qualified } = here;
        if is_qualified {
            return;
        }
        match cursor.peek().kind {
            Kind::Punct(b'@') => self.variable(cursor),
            Kind::Word => {
                let found = CALLS.into_iter().find(|(name, _)| cursor.is(name));
                if let Some((name, kind)) = found {
                    cursor.take();
                    let is_seeded = name == "RAND" && self.logged.seeds;
                    if cursor.is_punct(b'(') && !is_seeded && !is_constant(name, cursor) {
                        self.note(kind, name);
                    }
                } else {
                    self.table(cursor);
                }
            }
            Kind::Quoted(_) => self.table(cursor),
            _ => {}
        }
    }

    /// `@@name`, `@@session.name`.
    fn variable(&mut self, mut cursor: Cursor<'_>) {
        if !(cursor.eat_punct(b'@') && cursor.eat_punct(b'@')) {
            return;
        }
        let mut is_global = false;
        if let Some(scope) = { cursor }.eat_any(&["GLOBAL", "SESSION", "LOCAL"]) {
            cursor.take();
            if cursor.eat_punct(b'.') {
                is_global = scope == "GLOBAL";
            }
        }
        if is_global || !LOGGED_VARIABLES.iter().any(|name| cursor.is(name)) {
            self.note(UnsafeKind::SystemVariable, "@@ (a system variable)");
        }
    }

    fn table(&mut self, mut cursor: Cursor<'_>) {
        const SCHEMAS: [&str; 3] = ["performance_schema", "information_schema", "mysql"];
        let Some(schema) = SCHEMAS.into_iter().find(|name| is_named(&cursor, name)) else { return };
        cursor.take();
        if !cursor.eat_punct(b'.') {
            return;
        }
        if schema != "mysql" {
            self.note(UnsafeKind::ServerTable, schema);
        } else if ["general_log", "slow_log"].iter().any(|log| is_named(&cursor, log)) {
            self.note(UnsafeKind::ServerTable, "mysql.general_log, mysql.slow_log");
        }
    }
}

/// Whether an identifier, in quotes or not, is next. Compares bytes: there are many words in a statement of megabytes.
fn is_named(cursor: &Cursor<'_>, name: &str) -> bool {
    let token = cursor.peek();
    let text = match token.kind {
        Kind::Word => token.text,
        Kind::Quoted(_) => token.text.get(1..token.text.len().saturating_sub(1)).unwrap_or_default(),
        _ => return false,
    };
    text.eq_ignore_ascii_case(name.as_bytes())
}

fn is_create(class: &Class) -> bool {
    matches!(class, Class::Ddl { .. })
}

/// A clause that limits rows, but `LIMIT 0`.
fn limits(cursor: &mut Cursor<'_>) -> Option<&'static str> {
    if cursor.eat("LIMIT") {
        let is_zero = cursor.peek().kind == Kind::Number && cursor.peek().text == b"0" && {
            cursor.take();
            !cursor.is_punct(b',') && !cursor.is("OFFSET")
        };
        return (!is_zero).then_some("LIMIT");
    }
    (cursor.eat("FETCH") && cursor.eat_any(&["FIRST", "NEXT"]).is_some()).then_some("FETCH FIRST")
}

/// `RAND(7)` gives the same everywhere.
fn is_constant(name: &str, mut cursor: Cursor<'_>) -> bool {
    name == "RAND" && cursor.eat_punct(b'(') && {
        let is_number = cursor.peek().kind == Kind::Number;
        cursor.take();
        is_number && cursor.is_punct(b')')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::classify;

    fn found(sql: &str, logged: LoggedContext) -> Vec<&'static str> {
        let mode = SqlMode::default();
        let class = classify(sql.as_bytes(), "d", mode).class;
        unsafeties(sql.as_bytes(), &class, mode, logged).into_iter().map(|found| found.word).collect()
    }

    /// With the manual's line: M is MySQL's list, A is MariaDB's.
    #[test]
    fn which_statements_are_unsafe() {
        for (sql, expected) in [
            // M, A: functions that may return another value on the replica.
            ("INSERT INTO t VALUES (UUID())", vec!["UUID"]),
            ("INSERT INTO t VALUES (uuid ( ), Uuid_Short())", vec!["UUID"]),
            ("UPDATE t SET a = UUID_SHORT()", vec!["UUID_SHORT"]),
            ("INSERT INTO t VALUES (SYSDATE(6))", vec!["SYSDATE"]),
            ("INSERT INTO t VALUES (RAND())", vec!["RAND"]),
            ("INSERT INTO t VALUES (LOAD_FILE('/etc/hostname'))", vec!["LOAD_FILE"]),
            ("INSERT INTO t VALUES (FOUND_ROWS())", vec!["FOUND_ROWS"]),
            ("UPDATE t SET a = ROW_COUNT()", vec!["ROW_COUNT"]),
            ("INSERT INTO t SELECT GET_LOCK('a', 1)", vec!["GET_LOCK"]),
            ("DO IS_FREE_LOCK('a')", vec!["IS_FREE_LOCK"]),
            ("INSERT INTO t VALUES (IS_USED_LOCK('a'))", vec!["IS_USED_LOCK"]),
            ("INSERT INTO t VALUES (RELEASE_LOCK('a'))", vec!["RELEASE_LOCK"]),
            ("INSERT INTO t VALUES (RELEASE_ALL_LOCKS())", vec!["RELEASE_ALL_LOCKS"]),
            ("INSERT INTO t VALUES (SLEEP(1))", vec!["SLEEP"]),
            ("INSERT INTO t VALUES (MASTER_POS_WAIT('f', 4, 1))", vec!["MASTER_POS_WAIT"]),
            ("INSERT INTO t VALUES (SOURCE_POS_WAIT('f', 4, 1))", vec!["SOURCE_POS_WAIT"]),
            ("INSERT INTO t VALUES (VERSION())", vec!["VERSION"]),
            // A: further functions.
            ("INSERT INTO t VALUES (RANDOM_BYTES(8))", vec!["RANDOM_BYTES"]),
            ("INSERT INTO t VALUES (MASTER_GTID_WAIT('0-1-1', 1))", vec!["MASTER_GTID_WAIT"]),
            // Values that the log has, or that are constants.
            ("INSERT INTO t VALUES (NOW(), CURRENT_TIMESTAMP, LAST_INSERT_ID(), CONNECTION_ID(), RAND(7))", vec![]),
            ("INSERT INTO t (uuid, rand) VALUES ('UUID()', 'RAND()') -- UUID()", vec![]),
            ("INSERT INTO t SELECT u.uuid(), d.rand() FROM t u", vec![]),
            // M, A: LIMIT. With ORDER BY the manuals warn, too; rows that are equal for it aside, it takes the same.
            ("DELETE FROM t LIMIT 1", vec!["LIMIT"]),
            ("UPDATE t SET a = 1 WHERE b = 2 LIMIT 3", vec!["LIMIT"]),
            ("DELETE FROM t ORDER BY id LIMIT 1", vec![]),
            ("DELETE FROM t LIMIT 0", vec![]),
            ("INSERT INTO t SELECT * FROM u LIMIT 5", vec!["LIMIT"]),
            ("INSERT INTO t SELECT * FROM u ORDER BY id LIMIT 5", vec![]),
            ("INSERT INTO t SELECT * FROM (SELECT * FROM u LIMIT 5) x ORDER BY id", vec!["LIMIT"]),
            ("INSERT INTO t SELECT * FROM (SELECT * FROM u ORDER BY a) x LIMIT 5", vec!["LIMIT"]),
            ("REPLACE INTO t SELECT * FROM u LIMIT 5", vec!["LIMIT", "REPLACE … SELECT"]),
            ("CREATE TABLE t SELECT * FROM u LIMIT 5", vec!["LIMIT"]),
            ("INSERT INTO t SELECT * FROM u FETCH FIRST 3 ROWS ONLY", vec!["FETCH FIRST"]),
            ("INSERT INTO t (`limit`) VALUES (1)", vec![]),
            // M: system variables, but those that are replicated.
            ("INSERT INTO t VALUES (@@hostname)", vec!["@@ (a system variable)"]),
            ("INSERT INTO t VALUES (@@global.time_zone)", vec!["@@ (a system variable)"]),
            ("INSERT INTO t VALUES (@@session.time_zone, @@timestamp, @@auto_increment_offset, @a)", vec![]),
            // M: log tables, performance_schema.
            ("INSERT INTO t SELECT COUNT(*) FROM performance_schema.threads", vec!["performance_schema"]),
            ("INSERT INTO t SELECT COUNT(*) FROM `information_schema`.tables", vec!["information_schema"]),
            ("INSERT INTO t SELECT COUNT(*) FROM mysql.general_log", vec!["mysql.general_log, mysql.slow_log"]),
            ("INSERT INTO t SELECT COUNT(*) FROM mysql.user", vec![]),
            // M: the order in which rows are read decides.
            ("INSERT IGNORE INTO t SELECT * FROM u", vec!["IGNORE … SELECT"]),
            ("INSERT IGNORE INTO t SELECT * FROM u ORDER BY id", vec![]),
            ("INSERT IGNORE INTO t VALUES (1)", vec![]),
            ("UPDATE IGNORE t SET a = 1", vec!["UPDATE IGNORE"]),
            ("REPLACE t SELECT * FROM u", vec!["REPLACE … SELECT"]),
            ("REPLACE t VALUES ((SELECT 1))", vec![]),
            ("REPLACE t SET a = (SELECT 1)", vec![]),
            (
                "INSERT INTO t (a) (SELECT a FROM u) ON DUPLICATE KEY UPDATE a = 1",
                vec!["SELECT … ON DUPLICATE KEY UPDATE"],
            ),
            ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = (SELECT 1)", vec![]),
            ("CREATE TABLE t (a INT PRIMARY KEY) IGNORE SELECT a FROM u", vec!["IGNORE … SELECT"]),
            ("CREATE TABLE t (a INT PRIMARY KEY) REPLACE SELECT a FROM u", vec!["REPLACE … SELECT"]),
            ("CREATE OR REPLACE TABLE t SELECT * FROM u", vec![]),
            ("CREATE TABLE t (a CHAR(36)) SELECT UUID() a", vec!["UUID"]),
            // M: locking reads.
            ("INSERT INTO t SELECT * FROM u FOR UPDATE SKIP LOCKED", vec!["SKIP LOCKED"]),
            // A: delayed rows.
            ("INSERT DELAYED INTO t VALUES (1)", vec!["INSERT DELAYED"]),
            // M: a default that is not deterministic.
            ("ALTER TABLE t ADD a CHAR(36) DEFAULT (UUID())", vec!["UUID"]),
            ("ALTER TABLE t ALTER a SET DEFAULT (UUID())", vec![]),
            // Text that runs later, if at all.
            ("CREATE TABLE t (a CHAR(36) DEFAULT (UUID()))", vec![]),
            ("CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.a = UUID()", vec![]),
            ("CREATE PROCEDURE p() DELETE FROM t LIMIT 1", vec![]),
            ("SET @a = UUID()", vec![]),
        ] {
            assert_eq!(found(sql, LoggedContext::default()), expected, "{sql}");
        }
    }

    #[test]
    fn what_the_log_has() {
        let seeds = LoggedContext { seeds: true, ..LoggedContext::default() };
        assert!(found("INSERT INTO t VALUES (RAND(), RAND())", seeds).is_empty());
        let insert_id = LoggedContext { insert_id: true, ..LoggedContext::default() };
        assert!(found("INSERT INTO t (a) VALUES (1), (2)", insert_id).is_empty());
        assert_eq!(found("INSERT INTO t (a) SELECT a FROM u", insert_id), ["INSERT … SELECT into AUTO_INCREMENT"]);
        assert!(found("INSERT INTO t (a) SELECT a FROM u ORDER BY a", insert_id).is_empty());
        assert_eq!(found("UPDATE t SET a = 1", insert_id), ["INSERT_ID"]);
    }
}
