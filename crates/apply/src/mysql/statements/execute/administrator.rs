//! MariaDB: a role is handed on by who administers it.
//!
//! A server's own applier hands on any role. Heddle's account may not, whatever else it may: so the statement runs as an account of the target that
//! administers the role, in a procedure of that account's. Never changes who administers a role.

use binlog::Flavour;
use engine::failure::Failure;
use engine::sql::{Class, SqlMode, roles_handed_on};
use engine::transaction::StatementItem;

use crate::mysql::progress::tables::SCHEMA;
use crate::mysql::server::errors::{code, failed};
use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::sql::{identifier, quote};
use crate::mysql::session::connection::ChannelConnection;

/// Whether the statement was refused for what [`hand_on`] is about.
pub fn may_help(target: &TargetInfo, statement: &StatementItem, refused: &Failure) -> bool {
    let is_account = matches!(&statement.class.class, Class::Ddl { kind } if kind.is_account());
    is_account && target.flavour == Flavour::MariaDb && refused.code == Some(code::ACCESS_DENIED_NO_PASSWORD)
}

/// Behind a refusal. `None`: it is about something else, or no account administers all of the roles.
pub fn hand_on(
    connection: &mut ChannelConnection,
    statement: &StatementItem,
    sql: &[u8],
) -> Result<Option<()>, Failure> {
    let Some(roles) = roles_handed_on(sql, SqlMode::of(&statement.query.vars)) else { return Ok(None) };
    let Some(admin) = admin_of(connection, &roles)? else { return Ok(None) };
    let procedure = format!("{SCHEMA}.{}", identifier(&format!("as admin {}", connection.number())));
    // A name in other bytes than UTF-8 can not be quoted.
    let Ok(body) = std::str::from_utf8(sql) else { return Ok(None) };
    connection.execute_beside(&[
        format!("DROP PROCEDURE IF EXISTS {procedure}"),
        format!("CREATE DEFINER={admin} PROCEDURE {procedure}() SQL SECURITY DEFINER {body}"),
        format!("GRANT EXECUTE ON PROCEDURE {procedure} TO {admin}"),
    ])?;
    let done = connection.wire.execute(format!("CALL {procedure}()"));
    connection.execute_beside(&[
        format!("REVOKE EXECUTE ON PROCEDURE {procedure} FROM {admin}"),
        format!("DROP PROCEDURE {procedure}"),
    ])?;
    done.map(|_| Some(())).map_err(failed)
}

/// An account, not a role, quoted.
fn admin_of(connection: &mut ChannelConnection, roles: &[String]) -> Result<Option<String>, Failure> {
    let mut names: Vec<String> = roles.iter().map(|role| quote(role)).collect();
    names.sort();
    names.dedup();
    let sql = format!(
        "SELECT m.User, m.Host FROM mysql.roles_mapping m JOIN mysql.user u ON u.User=m.User AND u.Host=m.Host WHERE m.Admin_option='Y' AND m.Host<>'' \
         AND m.Role IN ({}) GROUP BY m.User, m.Host HAVING COUNT(*)={} ORDER BY 1, 2 LIMIT 1",
        names.join(","),
        names.len()
    );
    // Without the privilege to read it the refusal stays.
    let row = match connection.wire.row(sql) {
        Ok(row) => row,
        Err(error) if error.is_connection_lost() => return Err(failed(error)),
        Err(_) => None,
    };
    let Some(row) = row else { return Ok(None) };
    let (user, host) = (row.required_text(0).map_err(failed)?, row.required_text(1).map_err(failed)?);
    Ok(Some(format!("{}@{}", identifier(user), identifier(host))))
}
