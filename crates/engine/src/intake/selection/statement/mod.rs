//! What becomes of a statement under a [`Filter`]: applied, perhaps in part and under other names; left out; or refused. What decides is which tables it names, never
//! the session's schema. What is not surely understood is refused. Nothing here looks at a target.

mod changes;
mod databases;
mod definitions;
mod edits;
mod programs;
mod removals;

use std::ops::Range;

use binlog::Query;

use super::filter::{Decision, Filter};
use super::refusal::Refusal;
use super::renames::SchemaTarget;
use super::rules::Extent;
use crate::sql::{Class, DdlKind, NamedObject, SqlMode, Statement};
use edits::Edits;

/// What becomes of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Applied as it is.
    Whole,
    Rewritten(Rewritten),
    /// A definition is said in the log, with the reason.
    LeftOut(Option<String>),
}

/// A statement as it is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    pub sql: Vec<u8>,
    /// The session's schema.
    pub schema: String,
    /// Places of the text that have other bytes now, in order, each with its new length.
    edited: Vec<(Range<usize>, usize)>,
}

impl Rewritten {
    /// Where a place of the statement is now that no edit has touched.
    pub fn moved(&self, at: usize) -> usize {
        let before = self.edited.iter().take_while(|(place, _)| place.end <= at);
        before.fold(at, |at, (place, length)| (at + length).saturating_sub(place.len()))
    }
}

/// Says what becomes of a statement.
///
/// # Errors
/// It is neither on one side alone, nor can it be cut: with what to do.
pub fn judge(filter: &Filter, statement: &Statement, query: &Query) -> Result<Fate, Refusal> {
    let fate = fate(filter, statement, query)?;
    if filter.as_server && !is_as_on_server(filter, statement, query, &fate) {
        return Err(Refusal::new(
            "the replica's filters decide on a statement by its session's schema, or for all of its tables at once: the server's own applier would do otherwise than heddle",
            "let the server's own applier execute it: heddle rescue --abort hands the replica back as it is",
        ));
    }
    Ok(fate)
}

/// Whether a server with the same lists decides on the statement as was decided here.
fn is_as_on_server(filter: &Filter, statement: &Statement, query: &Query, fate: &Fate) -> bool {
    let (Class::Dml { .. } | Class::Ddl { .. }) = statement.class else { return true };
    if let Fate::Rewritten(rewritten) = fate
        && rewritten.sql != *query.sql
    {
        return false;
    }
    let is_left_out = matches!(fate, Fate::LeftOut(_));
    let has_tables =
        !statement.tables.is_empty() || !statement.schemas.is_empty() || matches!(statement.class, Class::Dml { .. });
    if is_left_out && !has_tables {
        return false;
    }
    // Of a schema by its own name.
    if !statement.schemas.is_empty() {
        return true;
    }
    let schema = filter.rewritten(&String::from_utf8_lossy(&query.schema));
    let by_session = filter.rules.servers.takes_session(&schema);
    // What passes there may still be left out by the lists of tables.
    if is_left_out { !by_session || filter.rules.servers.has_table_rules() } else { by_session }
}

fn fate(filter: &Filter, statement: &Statement, query: &Query) -> Result<Fate, Refusal> {
    if let Some(removal) = removals::left_out(filter, statement, query)? {
        return Ok(Fate::LeftOut(removal.why));
    }
    let fate = fate_by_tables(filter, statement, query)?;
    if !matches!(fate, Fate::LeftOut(_)) {
        removals::check_reads(filter, statement)?;
    }
    Ok(fate)
}

fn fate_by_tables(filter: &Filter, statement: &Statement, query: &Query) -> Result<Fate, Refusal> {
    match statement.class {
        Class::Begin
        | Class::Commit
        | Class::Rollback
        | Class::Savepoint
        | Class::RollbackTo
        | Class::Release
        | Class::XaStart { .. }
        | Class::XaEnd
        | Class::XaPrepare
        | Class::XaCommit { .. }
        | Class::XaRollback
        | Class::SetStatement => Ok(Fate::Whole),
        Class::Unknown => Err(Refusal::not_understood("a statement")),
        Class::Dml { .. } if filter.takes_all_tables() => Ok(Fate::Whole),
        Class::Dml { kind } => Judge::new(filter, statement, query)?.change(kind),
        Class::Ddl { kind } => {
            if let Some(option) = left_out_by_kind(filter, kind) {
                return Ok(Fate::LeftOut(Some(option.to_owned())));
            }
            if filter.takes_all_tables() && kind != DdlKind::CreateDatabase {
                return Ok(Fate::Whole);
            }
            let judge = Judge::new(filter, statement, query)?;
            match kind {
                DdlKind::CreateTable { .. }
                | DdlKind::AlterTable
                | DdlKind::DropTable { .. }
                | DdlKind::RenameTable
                | DdlKind::Truncate
                | DdlKind::CreateIndex
                | DdlKind::DropIndex
                | DdlKind::Sequence
                | DdlKind::Analyze
                | DdlKind::Optimize
                | DdlKind::Repair => judge.definition(kind),
                DdlKind::View | DdlKind::Trigger | DdlKind::Routine | DdlKind::Event => judge.program(),
                DdlKind::CreateDatabase | DdlKind::AlterDatabase | DdlKind::DropDatabase => judge.database(kind),
                DdlKind::Account | DdlKind::Flush | DdlKind::Other => judge.of_server(kind),
            }
        }
    }
}

/// The option by which definitions of this kind are not applied.
fn left_out_by_kind(filter: &Filter, kind: DdlKind) -> Option<&'static str> {
    let is_temporary =
        matches!(kind, DdlKind::CreateTable { temporary: true, .. } | DdlKind::DropTable { temporary: true, .. });
    (filter.changes.no_definitions && !is_temporary && !kind.is_account()).then_some("--ddl skip")
}

/// One statement, and what decides.
struct Judge<'a> {
    filter: &'a Filter,
    sql: &'a [u8],
    mode: SqlMode,
    /// The session's schema on the source.
    schema: String,
    kind: &'a Class,
}

impl<'a> Judge<'a> {
    fn new(filter: &'a Filter, statement: &'a Statement, query: &'a Query) -> Result<Self, Refusal> {
        if statement.is_ambiguous {
            return Err(Refusal::not_understood("a statement with names whose character set is not known for sure"));
        }
        Ok(Self {
            filter,
            sql: &query.sql,
            mode: SqlMode::of(&query.vars),
            schema: String::from_utf8_lossy(&query.schema).into_owned(),
            kind: &statement.class,
        })
    }

    /// A table's name on the target; `None`: it is left out.
    fn target(&self, named: &NamedObject) -> Result<Option<(String, String)>, Refusal> {
        match self.filter.decide(&named.object.schema, &named.object.name) {
            Decision::LeftOut => Ok(None),
            Decision::Taken { schema, table } => Ok(Some((schema, table))),
            Decision::Collides(rename) => Err(Refusal::collides(&named.object.to_string(), &rename)),
        }
    }

    /// Of one of several tables that the statement needs.
    fn target_of_needed(&self, named: &NamedObject, what: &str) -> Result<(String, String), Refusal> {
        self.target(named)?.ok_or_else(|| Refusal::crosses(what, &named.object.to_string()))
    }

    /// For a statement about these tables of the target. Its session keeps its schema, under the new name, unless that need not be on the target.
    fn edits(&self, targets: &[(String, String)]) -> Edits<'a> {
        let own = self.filter.renames.default_target(&self.schema);
        let is_there = self.filter.extent(&self.schema) != Extent::Nothing
            && matches!(self.filter.schema_target(&self.schema), SchemaTarget::One(_));
        let stays = is_there || self.schema.is_empty() || targets.iter().any(|(schema, _)| *schema == own);
        let schema = match targets.first() {
            Some((first, _)) if !stays => first.clone(),
            _ => own,
        };
        Edits::new(self.sql, self.mode, schema)
    }

    /// The fate of a statement with these edits.
    fn fate(&self, mut edits: Edits<'a>) -> Result<Fate, Refusal> {
        let is_elsewhere = edits.schema != self.schema;
        if is_elsewhere && self.reads_default_schema() {
            edits.replace_default_schema(&self.schema);
        }
        let schema = edits.schema.clone();
        match edits.finish()? {
            None if !is_elsewhere => Ok(Fate::Whole),
            None => Ok(Fate::Rewritten(Rewritten { sql: self.sql.to_vec(), schema, edited: Vec::new() })),
            Some((sql, edited)) => Ok(Fate::Rewritten(Rewritten { sql, schema, edited })),
        }
    }

    /// `DATABASE()` is the source's in what changes rows.
    fn reads_default_schema(&self) -> bool {
        matches!(self.kind, Class::Dml { .. } | Class::Ddl { kind: DdlKind::CreateTable { select: true, .. } })
    }

    /// Statements about accounts and the server count as changes of `mysql.user`.
    fn of_server(&self, kind: DdlKind) -> Result<Fate, Refusal> {
        if !self.filter.takes("mysql", "user") {
            let what = if kind.is_account() { "accounts" } else { "the server" };
            return Ok(Fate::LeftOut(Some(format!("statements about {what} count as changes of mysql.user"))));
        }
        if kind.is_account() && !self.filter.renames.is_empty() {
            let renamed = |name: &String| self.filter.renames.0.iter().any(|rename| rename.from.schema.matches(name));
            if let Some(name) = crate::sql::references::words(self.sql, self.mode).find(renamed) {
                return Err(Refusal::new(
                    format!("a statement about accounts names {name}, which is renamed"),
                    "execute it on the target by hand with the new name, and leave the transaction out (heddle channel skip)",
                ));
            }
        }
        Ok(Fate::Whole)
    }
}

#[cfg(test)]
mod tests;
