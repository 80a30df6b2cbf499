//! The few statements that replicas and tools send to a source, answered with true values. Anything else is refused with the servers' own error.
//!
//! It executes nothing: there are no tables. With `--retag` it can answer questions about the source's tables, columns and keys.

mod catalogue;
mod errors;
mod evaluate;
mod parse;
mod processes;
mod replica_status;
mod schema;
mod show;
mod tokens;
mod variables;
mod world;

use wire::server::{Rows, ServerError};

use self::errors::not_supported;
use self::parse::{SetTarget, Statement};
pub use self::world::{Client, ReplicaLine, ServerValues, SessionLine, Sessions, Variables, World};

/// The answer to a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Done,
    Rows(Rows),
    /// The connection ends itself.
    Leave,
}

/// Answers one statement.
pub fn answer(sql: &[u8], variables: &mut Variables, world: World<'_>) -> Result<Answer, ServerError> {
    let sql = std::str::from_utf8(sql).map_err(|_| not_supported("(not UTF-8)"))?;
    match parse::statement(sql)? {
        Statement::Nothing => Ok(Answer::Done),
        Statement::Select(items) => evaluate::select(&items, variables, world).map(Answer::Rows),
        Statement::Processes(wanted) => evaluate::select_processes(&wanted, variables, world).map(Answer::Rows),
        Statement::Catalogue(asked) => schema::rows(&asked, world).map(Answer::Rows),
        Statement::Grants => Ok(Answer::Rows(show::grants(world))),
        Statement::Show(shown) => show::show(&shown, variables, world).map(Answer::Rows),
        Statement::Kill(number) if number == world.who.number => Ok(Answer::Leave),
        Statement::Kill(number) if world.sessions.kill(number, world.who.user) => Ok(Answer::Done),
        Statement::Kill(number) => Err(ServerError::new(1094, "HY000", format!("Unknown thread id: {number}"))),
        Statement::Set(assignments) => {
            for assignment in assignments {
                let value = evaluate::value(&assignment.value, variables, world)?;
                set(assignment.target, value, variables, world)?;
            }
            Ok(Answer::Done)
        }
    }
}

fn set(
    target: SetTarget,
    value: Option<String>,
    variables: &mut Variables,
    world: World<'_>,
) -> Result<(), ServerError> {
    match target {
        SetTarget::User(name) => {
            variables.set_user(name, value);
        }
        SetTarget::Session(name) => {
            if !variables::is_known(&name, world) {
                return Err(variables::unknown(&name));
            }
            variables.set_session(name, value);
        }
        SetTarget::Global(name) => {
            if !variables::is_known(&name, world) {
                return Err(variables::unknown(&name));
            }
            let text = "Access denied; you need (at least one of) the SUPER or SYSTEM_VARIABLES_ADMIN privilege(s) for this operation";
            return Err(ServerError::new(1227, "42000", text));
        }
    }
    if variables.are_too_large() {
        variables.forget();
        return Err(ServerError::new(1038, "HY001", "Out of memory: the session's variables are larger than 1 MiB"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
