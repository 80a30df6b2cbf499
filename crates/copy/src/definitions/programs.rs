//! Views, triggers, routines and events: read from the source as the rows come to their end, made on the target when all rows are there.

use apply::mysql::server::errors::failed;
use apply::mysql::server::sql::{identifier, quote};
use engine::failure::{Failure, FailureKind};
use engine::intake::Extent;
use engine::sql::{SqlMode, enabled_at};
use wire::{Connection, Error, Row};

use super::part::CopyPart;
use super::program_settings;
use super::tables::schemas;
use super::target_names::{TargetNames, TargetStatement};
use crate::chunk::TableName;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProgramKind {
    Function,
    Procedure,
    View,
    Trigger,
    Event,
}

impl ProgramKind {
    fn word(self) -> &'static str {
        match self {
            Self::Function => "FUNCTION",
            Self::Procedure => "PROCEDURE",
            Self::View => "VIEW",
            Self::Trigger => "TRIGGER",
            Self::Event => "EVENT",
        }
    }
}

/// One definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub kind: ProgramKind,
    pub name: TableName,
    /// Of a trigger.
    pub table: Option<TableName>,
    /// `CREATE …`
    pub text: String,
    pub sql_mode: String,
    pub collation: String,
    /// Of an event.
    pub time_zone: String,
}

/// What is asked has its texts in utf8mb4. Rows come in the character sets of their columns.
pub fn in_one_character_set<T>(
    connection: &mut Connection,
    ask: impl FnOnce(&mut Connection) -> Result<T, Error>,
) -> Result<T, Error> {
    connection.execute_repeatable("SET NAMES utf8mb4")?;
    let answer = ask(connection);
    connection.execute_repeatable("SET SESSION character_set_results=NULL")?;
    answer
}

/// Of the schemas that are taken whole; triggers of each table that is taken. In the order in which they are made.
pub fn read(connection: &mut Connection, part: CopyPart<'_>) -> Result<Vec<Program>, Error> {
    let mut programs = Vec::new();
    for (schema, extent) in schemas(connection, part)? {
        let of_schema = quote(&schema);
        if extent == Extent::All {
            for (kind, sql) in [
                (
                    ProgramKind::Function,
                    format!(
                        "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA={of_schema} AND ROUTINE_TYPE='FUNCTION' ORDER BY 1"
                    ),
                ),
                (
                    ProgramKind::Procedure,
                    format!(
                        "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA={of_schema} AND ROUTINE_TYPE='PROCEDURE' ORDER BY 1"
                    ),
                ),
                (
                    ProgramKind::View,
                    format!(
                        "SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA={of_schema} ORDER BY 1"
                    ),
                ),
                (
                    ProgramKind::Event,
                    format!(
                        "SELECT EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA={of_schema} ORDER BY 1"
                    ),
                ),
            ] {
                for row in connection.rows(sql)? {
                    let name = TableName::new(schema.clone(), row.required_text(0)?);
                    programs.extend(show_create(connection, kind, name, None)?);
                }
            }
        }
        // Several of one table and time run in the order in which they were made.
        let triggers = connection.rows(format!(
            "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA={of_schema} \
             ORDER BY EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION, ACTION_ORDER"
        ))?;
        for row in triggers {
            let table = TableName::new(schema.clone(), row.required_text(1)?);
            if part.takes(&schema, &table.table) {
                let name = TableName::new(schema.clone(), row.required_text(0)?);
                programs.extend(show_create(connection, ProgramKind::Trigger, name, Some(table))?);
            }
        }
    }
    programs.sort_by_key(|program| program.kind);
    Ok(programs)
}

/// `table`: of a trigger.
fn show_create(
    connection: &mut Connection,
    kind: ProgramKind,
    name: TableName,
    table: Option<TableName>,
) -> Result<Option<Program>, Error> {
    let rows = match connection.rows(format!("SHOW CREATE {} {}", kind.word(), name.quoted())) {
        // It was dropped meanwhile: the log says so.
        Err(error) if error.code().is_some_and(|code| matches!(code, 1146 | 1305 | 1360 | 1539)) => return Ok(None),
        rows => rows?,
    };
    let Some(row) = rows.first() else { return Ok(None) };
    let text = |row: &Row, column: &str| {
        let found = row.get(column).map(|text| String::from_utf8_lossy(text).into_owned());
        found.unwrap_or_default()
    };
    let column = match kind {
        ProgramKind::Function => "Create Function",
        ProgramKind::Procedure => "Create Procedure",
        ProgramKind::View => "Create View",
        ProgramKind::Trigger => "SQL Original Statement",
        ProgramKind::Event => "Create Event",
    };
    let mut statement = text(row, column);
    if statement.is_empty() {
        return Err(Error::Protocol(format!(
            "the source does not show the text of {} {name}: the account lacks the right to see it (SHOW_ROUTINE, or SELECT on mysql.proc; TRIGGER; EVENT; SHOW VIEW)",
            kind.word().to_lowercase()
        )));
    }
    if kind == ProgramKind::Event
        && let Some(place) = enabled_at(statement.as_bytes(), SqlMode::default())
        && statement.is_char_boundary(place.start)
        && statement.is_char_boundary(place.end)
    {
        statement.replace_range(place, " DISABLE ON SLAVE ");
    }
    Ok(Some(Program {
        kind,
        name,
        table,
        text: statement,
        sql_mode: text(row, "sql_mode"),
        collation: text(row, "collation_connection"),
        time_zone: text(row, "time_zone"),
    }))
}

/// Makes them on the target, in place of what has their names. Views may need others that come later: these are tried again.
///
/// # Errors
/// The target does not take one of them.
pub fn create(connection: &mut Connection, names: &TargetNames, programs: &[Program]) -> Result<(), Failure> {
    let mut waiting: Vec<&Program> = programs.iter().collect();
    while !waiting.is_empty() {
        let mut refused: Vec<(&Program, Failure)> = Vec::new();
        for program in &waiting {
            if let Err(failure) = create_one(connection, names, program) {
                if failure.kind != FailureKind::Refused {
                    return Err(failure);
                }
                refused.push((program, failure));
            }
        }
        if refused.len() == waiting.len() {
            let Some((program, failure)) = refused.into_iter().next() else { return Ok(()) };
            let message = format!(
                "the target does not take the {} {} of the source: {}",
                program.kind.word().to_lowercase(),
                program.name,
                failure.message
            );
            return Err(Failure { message, ..failure }.remedy(
                "all rows are copied: make what it needs on the target (an account that is its definer, a privilege), and run the same command again",
            ));
        }
        waiting = refused.into_iter().map(|(program, _)| program).collect();
    }
    Ok(())
}

/// On the target: what it takes the place of, and itself. Why there is none: the selection does not take it, or its names can not be told.
///
/// # Errors
/// In words: what makes it impossible.
pub fn renamed(program: &Program, names: &TargetNames) -> Result<(TargetStatement, TargetStatement), String> {
    let (word, schema) = (program.kind.word(), &program.name.schema);
    let take = |sql: &str, sql_mode: &str| {
        let statement = names.statement(sql, schema, sql_mode).map_err(|failure| failure.message)?;
        statement.ok_or_else(|| "the selection does not take it".to_owned())
    };
    let of_program = |why: String| format!("the {} {} is left out: {why}", word.to_lowercase(), program.name);
    let made = take(&program.text, &program.sql_mode).map_err(of_program)?;
    let dropped = match &program.table {
        // It is where its table is.
        Some(table) => {
            let schema = names.table(table).schema;
            let name = TableName::new(schema.clone(), program.name.table.clone());
            TargetStatement { sql: format!("DROP {word} IF EXISTS {}", name.quoted()), schema }
        }
        None => take(&format!("DROP {word} IF EXISTS {}", program.name.quoted()), "").map_err(of_program)?,
    };
    Ok((dropped, made))
}

fn create_one(connection: &mut Connection, names: &TargetNames, program: &Program) -> Result<(), Failure> {
    let (drop, made) = match renamed(program, names) {
        Ok(statements) => statements,
        Err(why) => {
            tracing::warn!("copy: {why}");
            return Ok(());
        }
    };
    let (flavour, version) = (connection.server().flavour, connection.server().version);
    let sql_mode = program_settings::sql_mode(&program.sql_mode, flavour, version);
    let mut settings = vec![format!("SESSION sql_mode={}", quote(&sql_mode))];
    if !program.collation.is_empty() {
        let collation = program_settings::collation(&program.collation, flavour, version);
        settings.push(format!("SESSION collation_connection={}", quote(&collation)));
    }
    if !program.time_zone.is_empty() {
        settings.push(format!("SESSION time_zone={}", quote(&program.time_zone)));
    }
    let mut execute = |sql: &str| connection.execute(sql).map(|_| ()).map_err(failed);
    execute(&format!("USE {}", identifier(&made.schema)))?;
    execute(&drop.sql)?;
    execute(&format!("SET {}", settings.join(", ")))?;
    let made = execute(&made.sql);
    execute("SET SESSION sql_mode='', collation_connection='utf8mb4_general_ci', time_zone='+00:00'")?;
    made
}
