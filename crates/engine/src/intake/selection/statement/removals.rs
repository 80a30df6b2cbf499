//! Statements that remove what the target keeps, and statements whose result would be another where the target has more rows than the source.

use super::super::filter::Filter;
use super::super::refusal::Refusal;
use super::super::removals::Removal;
use crate::sql::{Class, DdlKind, DmlKind, SqlMode, Statement, alterations, mentions, references};
use binlog::Query;

const BY_HAND: &str = "do on the target by hand what of the statement shall be there, and leave the transaction out (heddle channel skip)";

/// It is left out; `why`: said in the log.
pub struct LeftOut {
    pub why: Option<String>,
}

/// What is left out by its kind, whatever its tables are. `None`: the tables decide.
///
/// # Errors
/// The statement removes what the target shall keep, and does something else as well.
pub fn left_out(filter: &Filter, statement: &Statement, query: &Query) -> Result<Option<LeftOut>, Refusal> {
    let removals = filter.changes.left_out;
    if removals.is_empty() {
        return Ok(None);
    }
    let mode = SqlMode::of(&query.vars);
    let Some(kind) = removal(statement, query, mode) else { return Ok(None) };
    if !removals.contains(kind) {
        return Ok(None);
    }
    match statement.class {
        Class::Ddl { kind: DdlKind::CreateTable { .. } | DdlKind::CreateDatabase } => Err(Refusal::new(
            format!("a statement with OR REPLACE drops what is there, and --leave-out {} keeps it", kind.name()),
            format!("give what is there another name on the target; then {BY_HAND}"),
        )),
        Class::Dml { .. } => {
            let schema = String::from_utf8_lossy(&query.schema);
            let found = references::of_change(&query.sql, &schema, mode)
                .ok_or_else(|| Refusal::not_understood("a statement that deletes rows"))?;
            if found.routines.is_empty() && found.unknown_function.is_none() {
                return Ok(Some(LeftOut { why: None }));
            }
            Err(Refusal::new(
                "a DELETE, which --leave-out delete leaves out, calls a stored function, which may do more",
                BY_HAND,
            ))
        }
        _ => Ok(Some(LeftOut { why: Some(format!("--leave-out {}", kind.name())) })),
    }
}

/// What a statement removes.
fn removal(statement: &Statement, query: &Query, mode: SqlMode) -> Option<Removal> {
    let schema = || String::from_utf8_lossy(&query.schema);
    match statement.class {
        Class::Dml { kind: DmlKind::Delete } => Some(Removal::Delete),
        Class::Ddl { kind } => match kind {
            DdlKind::DropTable { temporary: false, .. } => Some(Removal::DropTable),
            DdlKind::CreateTable { temporary: false, .. } => {
                let found = references::definition(&query.sql, &schema(), mode);
                found.is_some_and(|found| found.replaces).then_some(Removal::DropTable)
            }
            DdlKind::Truncate => Some(Removal::Truncate),
            DdlKind::AlterTable => {
                alterations::removes_partitions(&query.sql, &schema(), mode).then_some(Removal::Truncate)
            }
            DdlKind::DropDatabase => Some(Removal::DropDatabase),
            DdlKind::CreateDatabase => {
                let found = references::database(&query.sql, mode);
                let may_replace = found.is_some_and(|(_, if_not_exists_at)| if_not_exists_at.is_none());
                (may_replace && mentions(&query.sql, b"replace")).then_some(Removal::DropDatabase)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Where the target keeps rows that the source has deleted, a statement that is about to be applied would find them, too.
///
/// # Errors
/// It changes rows, or reads some.
pub fn check_reads(filter: &Filter, statement: &Statement) -> Result<(), Refusal> {
    if !filter.changes.left_out.keep_rows() {
        return Ok(());
    }
    let (what, remedy) = match statement.class {
        Class::Dml { .. } => (
            "a statement in the log changes rows",
            "have the source log rows (binlog_format=ROW), in new sessions; for this statement: ",
        ),
        Class::Ddl { kind: DdlKind::CreateTable { select: true, .. } } => ("a new table is filled by a query", ""),
        _ => return Ok(()),
    };
    Err(Refusal::new(
        format!("{what}, and on the target it would find rows that --leave-out {} has kept", filter.changes.left_out),
        format!("{remedy}{BY_HAND}"),
    ))
}
