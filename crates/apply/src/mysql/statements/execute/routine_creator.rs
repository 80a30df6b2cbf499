//! Who makes a routine may execute and alter it (`automatic_sp_privileges`).
//!
//! A server gives these rights to the session's account, which is heddle's here. MySQL's own applier gives them to who ran the statement, where the log
//! says so, MariaDB's to the routine's definer; each only if the account lacks them: so does this. Never takes rights away.

use binlog::Flavour;
use engine::failure::Failure;
use engine::sql::{Class, DdlKind, NewRoutine, SqlMode, new_routine};
use engine::transaction::StatementItem;

use crate::mysql::server::errors::failed;
use crate::mysql::server::sql::{identifier, quote};
use crate::mysql::session::connection::ChannelConnection;

/// A routine, and the account (user and host) that gets the rights on it.
pub struct Creator {
    routine: NewRoutine,
    account: (String, String),
}

/// Who makes a routine with the statement, if it is not there already and the account lacks a right to it.
pub fn of(connection: &mut ChannelConnection, statement: &StatementItem) -> Result<Option<Creator>, Failure> {
    let Class::Ddl { kind: DdlKind::Routine } = &statement.class.class else { return Ok(None) };
    let schema = String::from_utf8_lossy(&statement.query.schema);
    let Some(routine) = new_routine(&statement.query.sql, &schema, SqlMode::of(&statement.query.vars)) else {
        return Ok(None);
    };
    let account = match (connection.info().flavour, &statement.query.vars.invoker) {
        (Flavour::MySql, Some((user, host))) => {
            (String::from_utf8_lossy(user).into_owned(), String::from_utf8_lossy(host).into_owned())
        }
        _ => routine.definer.clone(),
    };
    let (user, host) = (quote(&account.0), quote(&account.1));
    let (schema, name) = (quote(&routine.name.schema), quote(&routine.name.name));
    let is_account = format!("User={user} AND Host={host}");
    let is_there = format!(
        "EXISTS(SELECT 1 FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA={schema} AND ROUTINE_NAME={name} AND ROUTINE_TYPE='{}')",
        routine.kind
    );
    // Anything that gives both; of schemas a pattern is the name.
    let lacks_a_right = format!(
        "SELECT @@automatic_sp_privileges=1 AND EXISTS(SELECT 1 FROM mysql.user WHERE {is_account}) AND NOT ({execute} AND {alter}) AND NOT ({keeps})",
        execute = has(&is_account, &schema, "Execute_priv"),
        alter = has(&is_account, &schema, "Alter_routine_priv"),
        keeps = if routine.if_not_exists { is_there } else { "FALSE".to_owned() },
    );
    match connection.wire.scalar(lacks_a_right) {
        Ok(lacks) => Ok((lacks.as_deref() == Some("1")).then_some(Creator { routine, account })),
        Err(error) if error.is_connection_lost() => Err(failed(error)),
        Err(error) => {
            tracing::warn!(
                "heddle's account can not read who may execute routines on the target, so their creators are given nothing: {error}"
            );
            Ok(None)
        }
    }
}

fn has(is_account: &str, schema: &str, right: &str) -> String {
    format!(
        "(EXISTS(SELECT 1 FROM mysql.user WHERE {is_account} AND {right}='Y') OR \
         EXISTS(SELECT 1 FROM mysql.db WHERE {is_account} AND {right}='Y' AND {schema} LIKE Db))"
    )
}

/// Gives the rights that the account lacks. Not logged: a replica of the target gives them, too.
pub fn give_rights(connection: &mut ChannelConnection, creator: &Creator) -> Result<(), Failure> {
    let Creator { routine, account: (user, host) } = creator;
    let host = if host.is_empty() { String::new() } else { format!("@{}", identifier(host)) };
    let grant = format!(
        "GRANT EXECUTE, ALTER ROUTINE ON {} {}.{} TO {}{host}",
        routine.kind,
        identifier(&routine.name.schema),
        identifier(&routine.name.name),
        identifier(user)
    );
    connection.execute_beside(&[grant])
}
