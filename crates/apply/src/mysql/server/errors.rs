//! What an error of the target means: what has to happen next, and what a person can do.

use engine::failure::{Failure, FailureKind};

use wire::availability::{AvailabilityError, Reaction};

use super::bookkeeping::SCHEMA;
pub(in crate::mysql) use super::error_codes as code;
use super::remedies::{ChannelEnd, of_connecting, of_privilege};
use super::row_check;

/// Name of the column that the fence sets to NULL, which its definition forbids: see `progress/statements.rs`.
pub const FENCE_COLUMN: &str = "lease_epoch";

/// Unknown database, no such table: the answer about bookkeeping tables where nothing has ever run.
pub fn is_not_there(error: &wire::Error) -> bool {
    matches!(error.code(), Some(code::BAD_DB | code::NO_SUCH_TABLE))
}

/// Error numbers that name a privilege.
pub fn is_privilege(number: u16) -> bool {
    matches!(
        number,
        code::ACCESS_DENIED_DB | code::TABLEACCESS_DENIED | code::COLUMNACCESS_DENIED | code::SPECIFIC_ACCESS_DENIED
    )
}

/// An answer from the bookkeeping tables; `None`: they are not there.
pub fn if_there<T>(answer: Result<T, wire::Error>) -> Result<Option<T>, Failure> {
    match answer {
        Err(error) if is_not_there(&error) => Ok(None),
        answer => answer.map(Some).map_err(failed),
    }
}

/// What helps if connecting again and again does not.
fn lost_remedy(error: &wire::Error) -> String {
    of_connecting(ChannelEnd::Target, error).unwrap_or_else(|| {
        "the target's error log says why, unless the network did it; when that is over, run the same command again"
            .to_owned()
    })
}

/// The failure that an error of a target connection means for the group under way.
pub fn failure(error: &wire::Error) -> Failure {
    if matches!(error, wire::Error::Interrupted { .. }) {
        return Failure::new(
            FailureKind::Stopped,
            format!("the target had not answered when heddle was asked to end: {error}"),
        )
        .remedy("nothing is lost: run the same command again");
    }
    if matches!(error, wire::Error::AnswerTooLarge { .. }) {
        return Failure::new(FailureKind::Refused, error.to_string())
            .remedy("nothing that heddle asks for is that large: please report it, with the log");
    }
    if let Some(row) = error.availability() {
        return unavailable(error, row);
    }
    // The connection is gone with this one, too, but a new one would fare no better.
    let too_large = error.code() == Some(code::PACKET_TOO_LARGE);
    let refused_login = matches!(error, wire::Error::Auth { .. });
    if (error.is_connection_lost() || error.is_transient_network()) && !too_large && !refused_login {
        let lost = Failure::new(FailureKind::ConnectionLost, error.to_string()).remedy(lost_remedy(error));
        return error.code().map_or(lost.clone(), |number| lost.code(number));
    }
    let Some(number) = error.code() else {
        return Failure::new(FailureKind::Refused, error.to_string());
    };
    let text = error.to_string();
    if let Some(failure) = row_check::failure(number, &text) {
        return failure;
    }
    if refused_login && number == code::ACCESS_DENIED {
        // Its text says what to check.
        return Failure::new(FailureKind::Refused, text).code(number);
    }
    let stated = of_privilege(number, &text).or_else(|| of_connecting(ChannelEnd::Target, error));
    if let Some(remedy) = stated {
        return Failure::new(FailureKind::Refused, text).code(number).remedy(remedy);
    }
    let (kind, remedy) = divergence(number, &text)
        .or_else(|| refusal(number, &text))
        .or_else(|| other_state(number))
        .unwrap_or((FailureKind::Refused, "see the message; when the cause is gone, run the same command again"));
    Failure::new(kind, text).code(number).remedy(remedy)
}

type Meaning = (FailureKind, &'static str);

/// For an error of the table of those that say "not now".
fn unavailable(error: &wire::Error, row: &AvailabilityError) -> Failure {
    let kind = match row.reaction {
        Reaction::Reconnect => FailureKind::ConnectionLost,
        Reaction::Wait => FailureKind::Maintenance,
        Reaction::RetryLater => FailureKind::Exhausted,
        Reaction::Retry => FailureKind::Conflict,
        Reaction::Stop => FailureKind::Refused,
    };
    let failure = Failure::new(kind, error.to_string()).code(row.number);
    if row.reaction == Reaction::Reconnect { failure.remedy(lost_remedy(error)) } else { failure.remedy(row.remedy) }
}

/// The channel, or the data, is not what it was.
fn divergence(number: u16, text: &str) -> Option<Meaning> {
    Some(match number {
        code::BAD_NULL if text.contains(FENCE_COLUMN) => (
            FailureKind::Fenced,
            "another heddle has taken this channel over, or its progress was changed by hand; make sure that only one runs, \
             then start it again",
        ),
        code::KEY_NOT_FOUND => (
            FailureKind::Divergence,
            "the row that the source changed is not on the target: find out who changed the target, bring the row back as the \
             source had it before this transaction, and run the same command again; or leave this one transaction out: heddle channel skip",
        ),
        code::DUP_ENTRY | code::DUP_KEY => (
            FailureKind::Divergence,
            "a row that the source inserted is already on the target: find out who wrote it, remove it, and run the same \
             command again; or leave this one transaction out: heddle channel skip",
        ),
        code::ROW_IS_REFERENCED | code::NO_REFERENCED_ROW => (
            FailureKind::Divergence,
            "a foreign key fails that held on the source: parent or child rows differ on the target; repair them and run the \
             same command again; or leave this one transaction out: heddle channel skip",
        ),
        _ => return None,
    })
}

/// What the target does not take until somebody changes it.
fn refusal(number: u16, text: &str) -> Option<Meaning> {
    Some(match number {
        code::OPTION_PREVENTS_STATEMENT if text.contains("strict-password-validation") => (
            FailureKind::Refused,
            "the statement has the hash of a password, which the target does not take from clients: SET GLOBAL strict_password_validation=OFF there, and run \
             the same command again",
        ),
        code::OPTION_PREVENTS_STATEMENT if text.contains("secure-timestamp") || text.contains("secure_timestamp") => (
            FailureKind::Refused,
            "statements of a log have the source's times: start the target with secure_timestamp=NO (its own applier may set them, a client may not), and run the \
             same command again",
        ),
        code::OPTION_PREVENTS_STATEMENT if text.contains("skip-grant-tables") => (
            FailureKind::Refused,
            "the target runs without accounts: restart it without skip_grant_tables, and run the same command again",
        ),
        code::OPTION_PREVENTS_STATEMENT => {
            (FailureKind::Refused, "the target is started with an option, or set, to refuse this: the message names it")
        }
        code::READ_ONLY_TRANSACTION => (
            FailureKind::Refused,
            "the session may only read: SET GLOBAL transaction_read_only=OFF (MariaDB: tx_read_only) on the target, and run the same command again",
        ),
        code::ACCESS_DENIED | code::ACCESS_DENIED_DB | code::TABLEACCESS_DENIED | code::SPECIFIC_ACCESS_DENIED => {
            (FailureKind::Refused, "grant the privilege named in the message to heddle's account (docs/privileges.md)")
        }
        code::LOGGED_ROUTINES => (
            FailureKind::Refused,
            "the target logs, and wants SUPER of who creates a function or a trigger: SET GLOBAL log_bin_trust_function_creators=ON there (its own applier does \
             not ask), or GRANT SUPER ON *.* TO heddle's account, and run the same command again",
        ),
        code::ACCESS_DENIED_NO_PASSWORD => (
            FailureKind::Refused,
            "at an account statement: heddle's account may not hand on a role (GRANT it TO the account WITH ADMIN OPTION), or the right of proxies \
             (GRANT PROXY ON ''@'' TO it WITH GRANT OPTION), see docs/privileges.md; else: the account needs a password",
        ),
        code::NO_SUCH_TABLE | code::BAD_DB if of_own_tables(text) => (
            FailureKind::Refused,
            "heddle's own tables on the target are gone, and with them how far the channel is: bring that schema back from a backup of the target \
             that fits its data, or load the target anew and begin a new --channel where that copy was made",
        ),
        code::NO_SUCH_TABLE | code::BAD_TABLE | code::BAD_DB => (
            FailureKind::Refused,
            "the target lacks a table or schema that the source has: load the source's schema and data as of the start position \
             first",
        ),
        code::TABLE_DEF_INCOMPATIBLE | code::CONVERSION_FAILED => (
            FailureKind::Refused,
            "the target's columns can not hold the source's: make the definitions equal, or allow the conversion with \
             replica_type_conversions (slave_type_conversions) on the target",
        ),
        code::UNKNOWN => (
            FailureKind::Refused,
            "the server says no more than this about a row that it can not apply. Most often a column of the target's table can not hold the \
             source's: compare the definitions; or heddle's account lacks a privilege on the table (docs/privileges.md)",
        ),
        _ if code::LOCAL_INFILE_OFF.contains(&number) => (
            FailureKind::Refused,
            "the source's log has a LOAD DATA as a statement: SET GLOBAL local_infile=ON on the target and run the same command again",
        ),
        code::PACKET_TOO_LARGE => (
            FailureKind::Refused,
            "raise max_allowed_packet on the target: to 4/3 of the largest row, and not below 64 KiB",
        ),
        _ => return None,
    })
}

/// A statement that the source executed, and that the target, as it is, can not.
fn other_state(number: u16) -> Option<Meaning> {
    let remedy = match number {
        code::NO_DB => {
            "the statement works in the default schema of its session, which the log does not name: execute it on the target by hand, in the right schema, and \
             go on behind it with a new --channel and --start"
        }
        code::FK_ON_OTHER_KEY => {
            "SET GLOBAL restrict_fk_on_non_standard_key=OFF on the target, as on the source, and run the same command again"
        }
        code::UNSAFE_FUNCTION => {
            "MySQL adds no column with such a default where rows are logged, by its own applier neither: SET GLOBAL binlog_format='STATEMENT' on the target \
             and run the same command again, or add the column by hand and go on behind the statement with a new --channel and --start"
        }
        code::SCHEMA_READ_ONLY => {
            "the target's schema is read-only to clients (its own applier may write to it): ALTER SCHEMA … READ ONLY = 0 there, and run the same command again"
        }
        code::PARSE_ERROR => {
            "the target does not understand the statement, which the source did: it is of another version or vendor, or has other plugins. Execute what it means \
             on the target by hand, and go on behind it with a new --channel and --start"
        }
        code::ACCOUNT_OPERATION => {
            "the account is on the target already (CREATE USER: compare SHOW CREATE USER on both ends; where it may go, DROP USER there), or is not there (ALTER, DROP, \
             RENAME: CREATE USER it as the source had it); then run the same command again"
        }
        _ if code::OTHER_ACCOUNTS.contains(&number) => {
            "accounts and their rights on the target are not those that the source had before this statement: give the account that the message names what it \
             had there (SHOW GRANTS), and run the same command again"
        }
        _ if code::NOT_KNOWN_HERE.contains(&number) => {
            "the target does not have what the message names, and the source has it: install or create it on the target if it can have it, and run the same \
             command again; else change the source's table, and load the target anew"
        }
        _ if code::OTHER_DEFINITIONS.contains(&number) => {
            "definitions on the target are not those that the source had before this statement: compare the two (SHOW CREATE), make the target's as the source's \
             were, and run the same command again"
        }
        _ => return None,
    };
    Some((FailureKind::Refused, remedy))
}

/// Whether the message is about a table of heddle's own, or its schema.
pub fn of_own_tables(message: &str) -> bool {
    message.contains(&format!("'{SCHEMA}.")) || message.contains(&format!("'{SCHEMA}'"))
}

/// `map_err(failed)`
pub fn failed(error: wire::Error) -> Failure {
    failure(&error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_pass_are_of_the_tables_kind() {
        for (number, message, kind) in [
            (
                1290,
                "The MySQL server is running with the --read-only option so it cannot execute",
                FailureKind::Maintenance,
            ),
            (1290, "The MySQL server is running with the --super-read-only option so it", FailureKind::Maintenance),
            (1290, "The MariaDB server is running with the --read-only option so it cannot", FailureKind::Maintenance),
            (1290, "The MySQL server is running with the --skip-grant-tables option so it", FailureKind::Refused),
            (1836, "Running in read-only mode", FailureKind::Maintenance),
            (1874, "InnoDB is in read only mode.", FailureKind::Maintenance),
            (3032, "The server is currently in offline mode", FailureKind::Maintenance),
            (1114, "The table 't' is full", FailureKind::Exhausted),
            (1047, "WSREP has not yet prepared node for application use", FailureKind::Maintenance),
            (1047, "Unknown command", FailureKind::Refused),
            (
                1180,
                "Error while appending streaming replication fragment(provider status: Not connected to Primary Component)",
                FailureKind::ConnectionLost,
            ),
            (1105, "Maximum writeset size exceeded", FailureKind::Refused),
            (
                1203,
                "User h already has more than 'max_user_connections' active connections",
                FailureKind::ConnectionLost,
            ),
            (3101, "Plugin instructed the server to rollback the current transaction.", FailureKind::Conflict),
        ] {
            let (sqlstate, message) = ("HY000".to_owned(), message.to_owned());
            let failure = failure(&wire::Error::Server { code: number, sqlstate, message, statement_index: 0 });
            assert_eq!(failure.kind, kind, "{failure}");
        }
    }

    #[test]
    fn remedies_name_what_is_to_be_done() {
        for (number, message, part) in [
            (1046, "No database selected", "default schema"),
            (1141, "There is no such grant defined for user 'u' on host '%'", "SHOW GRANTS"),
            (1147, "There is no such grant defined for user 'u' on host '%' on table 't'", "SHOW GRANTS"),
            (1403, "There is no such grant defined for user 'u' on host '%' on routine 'p'", "SHOW GRANTS"),
            (3989, "Schema 's' is in read only mode.", "READ ONLY = 0"),
            (6125, "Failed to add the foreign key constraint", "restrict_fk_on_non_standard_key=OFF"),
            (1396, "Operation CREATE USER failed for 'a'@'%'", "DROP USER"),
            (
                1419,
                "You do not have the SUPER privilege and binary logging is enabled",
                "log_bin_trust_function_creators=ON",
            ),
            (1044, "Access denied for user 'h'@'%' to database 'shop'", "GRANT ALL PRIVILEGES ON `shop`.*"),
            (1142, "INSERT command denied to user 'h'@'%' for table `d`.`t`", "GRANT INSERT ON `d`.`t`"),
            (
                1227,
                "Access denied; you need (at least one of) the SUPER privilege(s) for this operation",
                "GRANT SUPER ON *.*",
            ),
            (
                1290,
                "The MySQL server is running with the --super-read-only option so it cannot execute this statement",
                "super_read_only=OFF",
            ),
            (
                1290,
                "The MariaDB server is running with the --read-only option so it cannot execute this statement",
                "READ ONLY ADMIN",
            ),
            (1290, "The MySQL server is running with the --skip-grant-tables option", "skip_grant_tables"),
            (1146, "Table 'heddle.progress' doesn't exist", "bring that schema back"),
            (1049, "Unknown database 'heddle'", "bring that schema back"),
            (1146, "Table 'shop.heddle' doesn't exist", "the target lacks a table"),
            (1153, "Got a packet bigger than 'max_allowed_packet' bytes", "4/3 of the largest row"),
            (1050, "Table 't' already exists", "SHOW CREATE"),
            (1273, "Unknown collation: 'utf8mb4_uca1400_ai_ci'", "install or create it"),
            (1064, "You have an error in your SQL syntax", "another version or vendor"),
        ] {
            let (sqlstate, message) = ("HY000".to_owned(), message.to_owned());
            let failure = failure(&wire::Error::Server { code: number, sqlstate, message, statement_index: 0 });
            assert!(failure.remedy.contains(part), "{number}: {}", failure.remedy);
            assert!(!failure.remedy.contains("see the message"), "{number}: {}", failure.remedy);
        }
    }
}
