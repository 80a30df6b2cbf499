//! What every reader of a server's binary log asks it first: who it is, which log files it has, where its log ends. It judges none of the answers.

use binlog::{Checksum, LogPosition};

use super::connection::Connection;
use crate::codec::resultset::Row;
use crate::error::Error;

/// MySQL counts a header to the length of an encrypted file, which no position counts.
const ENCRYPTION_HEADER: u64 = 512;
const ENCRYPTED_AT: usize = 2;

/// What tells servers apart across addresses: `server_uuid` (MySQL), `mariadb-server-` and the `server_id` (MariaDB).
///
/// # Errors
/// The server's, or the connection's.
pub fn identity(connection: &mut Connection) -> Result<String, Error> {
    let is_mariadb = connection.server().is_mariadb();
    let (name, before) = if is_mariadb { ("server_id", "mariadb-server-") } else { ("server_uuid", "") };
    let value = connection.scalar(format!("SELECT @@global.{name}"))?;
    Ok(format!("{before}{}", value.unwrap_or_default()))
}

/// How the events that it sends first are summed: those after its first FORMAT_DESCRIPTION are as that says. A server that does not know the variable sums none.
pub fn checksum(connection: &mut Connection) -> Checksum {
    match connection.scalar("SELECT @@global.binlog_checksum").ok().flatten().as_deref() {
        Some("CRC32") => Checksum::Crc32,
        _ => Checksum::Off,
    }
}

/// The statement that shows where the log ends.
pub fn end_statement(connection: &Connection) -> &'static str {
    let server = connection.server();
    if !server.is_mariadb() && server.at_least(8, 2, 0) { "SHOW BINARY LOG STATUS" } else { "SHOW MASTER STATUS" }
}

/// Where its log ends now.
///
/// # Errors
/// The server's, or the connection's; [`Error::Protocol`]: it has no binary log.
pub fn log_end(connection: &mut Connection) -> Result<LogPosition, Error> {
    let statement = end_statement(connection);
    let row = connection.row(statement)?;
    let row = row.ok_or_else(|| Error::Protocol(format!("{statement} says nothing: the server has no binary log")))?;
    position(&row)
}

/// Its files with their lengths in positions, oldest first.
///
/// # Errors
/// The server's, or the connection's.
pub fn binary_logs(connection: &mut Connection) -> Result<Vec<LogPosition>, Error> {
    let log = |row: &Row| {
        let is_encrypted = row.len() > ENCRYPTED_AT && row.text(ENCRYPTED_AT)? == Some("Yes");
        Ok(without_encryption_header(position(row)?, is_encrypted))
    };
    connection.rows("SHOW BINARY LOGS")?.iter().map(log).collect()
}

fn position(row: &Row) -> Result<LogPosition, Error> {
    Ok(LogPosition::new(row.required_text(0)?, row.required(1)?))
}

fn without_encryption_header(mut length: LogPosition, is_encrypted: bool) -> LogPosition {
    if is_encrypted {
        length.offset = length.offset.saturating_sub(ENCRYPTION_HEADER);
    }
    length
}

/// Whether the account is shown every table of the server but its own ones: it has SELECT everywhere, and nothing of that is revoked.
///
/// # Errors
/// The server's: it shows no grants.
pub fn sees_every_table(connection: &mut Connection) -> Result<bool, Error> {
    let rows = connection.rows("SHOW GRANTS")?;
    let grants: Vec<&str> = rows.iter().filter_map(|row| row.text(0).ok().flatten()).collect();
    Ok(select_everywhere(&grants))
}

const SERVERS_OWN: [&str; 2] = ["mysql", "sys"];

fn select_everywhere(grants: &[&str]) -> bool {
    let selects = |grant: &&str| {
        let privileges = grant.strip_prefix("GRANT ").and_then(|rest| rest.split_once(" ON *.* TO "));
        privileges.is_some_and(|(names, _)| names.split(", ").any(|name| matches!(name, "SELECT" | "ALL PRIVILEGES")))
    };
    // MySQL's partial revokes are shown as what they are.
    let hides = |grant: &&str| {
        grant.starts_with("REVOKE ")
            && !SERVERS_OWN.iter().any(|schema| grant.contains(&format!(" ON `{schema}`.* FROM ")))
    };
    grants.iter().any(selects) && !grants.iter().any(hides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sees_every_table() {
        for (grants, sees) in [
            (&["GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION"][..], true),
            (&["GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'r'@'%'"], true),
            (&["GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'r'@'%'"], false),
            (&["GRANT USAGE ON *.* TO 'r'@'%'", "GRANT SELECT ON `shop`.* TO 'r'@'%'"], false),
            (&["GRANT SELECT ON *.* TO `r`@`%`", "REVOKE SELECT ON `x`.* FROM `r`@`%`"], false),
            (&["GRANT SELECT ON *.* TO `r`@`%`", "REVOKE SELECT ON `mysql`.* FROM `r`@`%`"], true),
            (
                &[
                    "GRANT SELECT ON *.* TO `r`@`%`",
                    "REVOKE SELECT ON `mysql`.* FROM `r`@`%`",
                    "REVOKE SELECT ON `mysqlx`.* FROM `r`@`%`",
                ],
                false,
            ),
        ] {
            assert_eq!(select_everywhere(grants), sees, "{grants:?}");
        }
    }

    #[test]
    fn positions_do_not_count_the_header_of_an_encrypted_file() {
        let length = |is_encrypted| without_encryption_header(LogPosition::new("b.000001", 1512), is_encrypted).offset;
        assert_eq!((length(false), length(true)), (1512, 1000));
    }
}
