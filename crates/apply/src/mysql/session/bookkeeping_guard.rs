//! Notices that a transaction of the source changes Heddle's own tables, by whatever its statements run: a trigger, a function, a view, a second table.
//!
//! No text is looked at. Before the first statement of a target transaction the session takes a checksum of Heddle's tables, and behind the last one it takes another. Both
//! see one snapshot (REPEATABLE READ), so only the session's own changes make them differ. The packet then ends with an error before its `COMMIT`. The checksum is kept in
//! a user variable whose name no statement can know. Rows need no guard: their tables are named, and `BINLOG` statements run no trigger.
//!
//! A statement that changes one table without triggers, and calls only functions of the server's own, needs none: most do.
//!
//! A statement that commits by itself has no such end. One that may run functions is refused while the target has a program that names Heddle's schema.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use engine::failure::{Failure, FailureKind};
use engine::sql::{Class, ObjectName, SqlMode, mentions, runs_no_program};
use engine::transaction::StatementItem;
use wire::Connection;

use crate::lock::locked;
use crate::mysql::progress::tables::{KEPT_GTIDS, OPEN_BRANCHES, SCHEMA, SELECTIONS};
use crate::mysql::server::errors::{code, failed};
use crate::mysql::server::sql::quote;

/// What decides where a channel goes on, and what it leaves out. Of the others (`stops`, `retries`) nothing follows.
const TABLES: [&str; 9] =
    ["progress", "islands", "leases", "skips", "branches", "kept_branches", KEPT_GTIDS, OPEN_BRANCHES, SELECTIONS];

/// How long it is trusted that a table has no triggers: another channel's source may make one.
const TRUSTED_FOR: Duration = Duration::from_secs(1);
/// More tables are not remembered.
const TABLES_MAX: usize = 10_000;

/// Of one channel.
#[derive(Debug)]
pub struct BookkeepingGuard {
    variable: String,
    checksum: String,
    /// The account is shown all triggers.
    sees_triggers: bool,
    /// MySQL 9.7: cascades run triggers unless the source's session says otherwise.
    cascades_fire: bool,
    /// Since when the tables of statements are known to be tables without triggers.
    plain_tables: Mutex<HashMap<ObjectName, (bool, Instant)>>,
}

impl BookkeepingGuard {
    /// Reads how Heddle's tables are laid out here: other versions may have made them.
    pub fn read(connection: &mut Connection) -> Result<Self, Failure> {
        let columns = connection
            .rows(format!(
                "SELECT TABLE_NAME,COLUMN_NAME,DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA='{SCHEMA}' ORDER BY TABLE_NAME,ORDINAL_POSITION"
            ))
            .map_err(failed)?;
        // MySQL from 9.6 on has no SHA1; servers that were built without TLS answer NULL for SHA2.
        let is_there = connection.scalar("SELECT SHA2('',256) IS NOT NULL").map_err(failed)?.as_deref() == Some("1");
        let digest = |text: &str| if is_there { format!("SHA2({text},256)") } else { format!("SHA1({text})") };
        let mut sums = Vec::new();
        for table in TABLES {
            let mut values = Vec::new();
            for row in &columns {
                let text = |at: usize| row.required_text(at).map_err(failed);
                if text(0)? == table {
                    values.extend(value(text(1)?, text(2)?, &digest));
                }
            }
            if !values.is_empty() {
                let row = digest(&format!("CONCAT_WS('-',{})", values.join(",")));
                sums.push(format!(
                    "(SELECT CONCAT(COUNT(*),'-',BIT_XOR(CAST(CONV(LEFT({row},15),16,10) AS UNSIGNED))) FROM {SCHEMA}.{table})"
                ));
            }
        }
        // Of this account only: one that may read the schema mysql is shown everybody's.
        let may_see = "SELECT COUNT(*) FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE='TRIGGER' AND GRANTEE=\
             CONCAT('''',SUBSTRING_INDEX(CURRENT_USER(),'@',1),'''@''',SUBSTRING_INDEX(CURRENT_USER(),'@',-1),'''')";
        let sees_triggers = connection.scalar(may_see).map_err(failed)?.is_some_and(|count| count != "0");
        // Other servers do not know the variable.
        let cascades_fire =
            connection.scalar("SELECT @@global.enable_cascade_triggers").ok().flatten().as_deref() == Some("1");
        let checksum = format!("CONCAT_WS('/',{})", sums.join(","));
        Ok(Self { variable: variable(), checksum, sees_triggers, cascades_fire, plain_tables: Mutex::default() })
    }

    /// Whether the statement may change more than its text says. `connection`: to ask, if no statement is under way there.
    pub fn is_needed(&self, statement: &StatementItem, connection: Option<&mut Connection>) -> Result<bool, Failure> {
        if !statement.class.may_run_programs() {
            return Ok(false);
        }
        let ([table], query) = (&*statement.class.tables, &statement.query) else { return Ok(true) };
        let is_sure = self.sees_triggers
            && query.vars.enable_cascade_triggers.map_or(!self.cascades_fire, |triggers| triggers == 0)
            && runs_no_program(&query.sql, &statement.class, SqlMode::of(&query.vars), SCHEMA.name());
        Ok(!is_sure || !self.is_plain(table, connection)?)
    }

    fn is_plain(&self, table: &ObjectName, connection: Option<&mut Connection>) -> Result<bool, Failure> {
        let known = locked(&self.plain_tables).get(table).copied();
        if let Some((is_plain, since)) = known
            && since.elapsed() < TRUSTED_FOR
        {
            return Ok(is_plain);
        }
        let Some(connection) = connection else { return Ok(false) };
        let since = Instant::now();
        let (schema, name) = (quote(&table.schema), quote(&table.name));
        let sql = format!(
            "SELECT (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA={schema} AND TABLE_NAME={name} AND TABLE_TYPE='BASE TABLE') AND NOT \
             (SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA={schema} AND EVENT_OBJECT_TABLE={name})"
        );
        let is_plain = connection.scalar(sql).map_err(failed)?.as_deref() == Some("1");
        let mut tables = locked(&self.plain_tables);
        if tables.len() >= TABLES_MAX {
            tables.clear();
        }
        tables.insert(table.clone(), (is_plain, since));
        Ok(is_plain)
    }

    /// A definition is about to be executed.
    pub fn forget_tables(&self) {
        locked(&self.plain_tables).clear();
    }

    /// Before the first statement of a transaction. Not as `SET`, in which a subquery locks what it reads.
    pub fn note(&self) -> String {
        format!("SELECT {} INTO @{}", self.checksum, self.variable)
    }

    /// Behind the last one. Out of range, an error, unless both checksums are equal.
    pub fn check(&self) -> String {
        format!("SELECT {}+IF(@{}<=>{},0,1) AS unchanged", u64::MAX, self.variable, self.checksum)
    }

    /// What the error of [`BookkeepingGuard::check`] means.
    pub fn explained(&self, failure: Failure) -> Failure {
        if failure.code != Some(code::DATA_OUT_OF_RANGE) || !failure.message.contains(&self.variable) {
            return failure;
        }
        Failure::new(
            FailureKind::Refused,
            format!(
                "a statement changes Heddle's own tables on the target ({SCHEMA}.*), by its text or by a trigger, function or view that it uses; it was rolled back"
            ),
        )
        .code(code::DATA_OUT_OF_RANGE)
        .remedy(remedy())
    }
}

/// Whether the failure is that of [`BookkeepingGuard::check`].
pub fn is_violation(failure: &Failure) -> bool {
    failure.code == Some(code::DATA_OUT_OF_RANGE) && failure.message.contains("Heddle's own tables")
}

fn remedy() -> String {
    format!(
        "find what writes to {SCHEMA} on the target (TRIGGERS, ROUTINES and VIEWS of information_schema have the texts), drop or change it on both servers, and run the \
         same command again; or leave this transaction out with heddle channel skip"
    )
}

/// As a text that is the same whatever a session is set to. Times follow from the rest.
fn value(column: &str, kind: &str, digest: &impl Fn(&str) -> String) -> Option<String> {
    match kind.to_ascii_lowercase().as_str() {
        "timestamp" => None,
        "varchar" | "longtext" => Some(format!("COALESCE({},'')", digest(column))),
        _ => Some(format!("COALESCE({column},'')")),
    }
}

/// 128 random bits: a statement of the source was written by somebody who cannot know them.
fn variable() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("heddle_{:016x}{:016x}", random(), random())
}

/// Refuses a statement that commits by itself and may run a program that names Heddle's schema.
pub fn refuse_hidden_change(connection: &mut Connection, statement: &StatementItem) -> Result<(), Failure> {
    if statement.class.class == Class::Unknown && mentions(&statement.query.sql, SCHEMA.to_string().as_bytes()) {
        return Err(Failure::new(
            FailureKind::Refused,
            format!(
                "the statement is not understood and names {SCHEMA}, the schema of Heddle's own tables on the target"
            ),
        )
        .remedy(remedy()));
    }
    match suspect(connection, statement.class.class == Class::Unknown)? {
        None => Ok(()),
        Some(program) => Err(Failure::new(
            FailureKind::Refused,
            format!(
                "the statement commits by itself and may run {program} of the target, whose text names {SCHEMA}, the schema of Heddle's own tables, or is not shown to heddle's account"
            ),
        )
        .remedy(format!(
            "drop the program on the target if nothing needs it, or GRANT SELECT ON *.* TO heddle's account so that its text is shown; or execute the statement by hand \
             and leave the transaction out with heddle channel skip. Only statements that fill a table as they create it are refused so, since nothing of them can be rolled back ({SCHEMA})"
        ))),
    }
}

const SYSTEM: &str = "('sys','mysql','information_schema','performance_schema')";

/// A program of the target that may change Heddle's tables where it is run.
fn suspect(connection: &mut Connection, runs_triggers: bool) -> Result<Option<String>, Failure> {
    let functions = format!(
        "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_TYPE<>'PROCEDURE' AND ROUTINE_SCHEMA NOT IN {SYSTEM}"
    );
    // Without a function nothing runs where a table is filled as it is made.
    if !runs_triggers && connection.scalar(functions).map_err(failed)?.as_deref() == Some("0") {
        return Ok(None);
    }
    for (schema, name, text, table) in [
        ("ROUTINE_SCHEMA", "ROUTINE_NAME", "ROUTINE_DEFINITION", "ROUTINES"),
        ("TRIGGER_SCHEMA", "TRIGGER_NAME", "ACTION_STATEMENT", "TRIGGERS"),
        ("TABLE_SCHEMA", "TABLE_NAME", "VIEW_DEFINITION", "VIEWS"),
    ] {
        let sql = format!(
            "SELECT CONCAT({schema},'.',{name}) FROM information_schema.{table} WHERE {schema} NOT IN {SYSTEM} \
             AND ({text} IS NULL OR {text} LIKE '%{SCHEMA}%' OR {schema}='{SCHEMA}') LIMIT 1"
        );
        if let Some(found) = connection.scalar(sql).map_err(failed)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_error_is_explained() {
        let guard = BookkeepingGuard {
            variable: variable(),
            checksum: "1".to_owned(),
            sees_triggers: true,
            cascades_fire: false,
            plain_tables: Mutex::default(),
        };
        let failure = |message: String| Failure::new(FailureKind::Refused, message).code(code::DATA_OUT_OF_RANGE);
        let of_check =
            guard.explained(failure(format!("BIGINT UNSIGNED value is out of range in '(@`{}`'", guard.variable)));
        assert!(is_violation(&of_check), "{of_check}");
        let of_rows = guard.explained(failure("BIGINT value is out of range in 'a + b'".to_owned()));
        assert!(!is_violation(&of_rows), "{of_rows}");
        assert_ne!(variable(), variable());
    }
}
