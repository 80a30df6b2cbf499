//! What helps against errors that both ends of a channel can answer with: at the login, and for want of a privilege. It words remedies and decides nothing.
//!
//! What an error of the target means for the channel is in [`super::errors`]; what one of the source's dump means, in the channel's `source/`.

use wire::Error;

/// Which end of the channel has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelEnd {
    Source,
    Target,
}

impl ChannelEnd {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Target => "target",
        }
    }
}

/// For a connection that was not made. `None`: it was, or nothing more can be said than the message does.
pub fn of_connecting(end: ChannelEnd, error: &Error) -> Option<String> {
    let server = end.as_str();
    if let Error::Connect { source, .. } = error {
        return Some(match source.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => {
                "raise the limit of open files for heddle (ulimit -n, or LimitNOFILE= of its service), or use fewer --workers".to_owned()
            }
            _ => format!(
                "see that the {server} runs, that host and port in its URL are right, that it listens there (bind_address, skip_networking) and no firewall is \
                 between; then run the same command again"
            ),
        });
    }
    Some(match error.code()? {
        1130 => format!(
            "the {server} has no account for this host: CREATE USER 'heddle'@'HOST' … there, with this machine's address as the {server} sees it (it is in the \
             message), and the grants of docs/privileges.md"
        ),
        1820 | 1862 => format!(
            "the account's password has expired on the {server}: ALTER USER … IDENTIFIED BY …, or PASSWORD EXPIRE NEVER"
        ),
        3118 | 4151 => format!("the account is locked on the {server}: ALTER USER … ACCOUNT UNLOCK"),
        3159 => format!(
            "the {server} takes only connections with TLS (require_secure_transport=ON): add ?ssl-mode=required to its URL"
        ),
        1524 => format!(
            "the {server} has not loaded the account's authentication plugin: load it, or ALTER USER … IDENTIFIED WITH caching_sha2_password (MariaDB: \
             mysql_native_password) BY …"
        ),
        // Where nobody needs to do anything, or nothing more can be said, the table says nothing.
        _ => return error.availability().map(|row| row.remedy.to_owned()).filter(|remedy| !remedy.is_empty()),
    })
}

/// For an error that wants a privilege: which one, and the statement that gives it. `None`: it is no such error.
pub fn of_privilege(number: u16, message: &str) -> Option<String> {
    let (privileges, on) = match number {
        1044 => ("ALL PRIVILEGES".to_owned(), format!("{}.*", quoted(behind(message, "to database ")?)?)),
        1142 | 1143 => (before(message, " command denied")?.to_uppercase(), table(message)),
        1227 => (between(message, "at least one of) the ", " privilege")?.replace(" or ", ", "), "*.*".to_owned()),
        1370 => (before(message, " command denied")?.to_uppercase(), "*.*".to_owned()),
        _ => return None,
    };
    // Of several any one does. SUPER is too much, and REPLICATION_APPLIER wants privileges on each table beside it.
    let is_narrow = |privilege: &&str| !matches!(*privilege, "SUPER" | "REPLICATION_APPLIER");
    let named = || privileges.split(", ");
    let one = named().filter(is_narrow).last().or_else(|| named().last()).unwrap_or_default();
    Some(format!(
        "GRANT {one} ON {on} TO heddle's account (SELECT CURRENT_USER() names it), and run the same command again; all that is needed: docs/privileges.md"
    ))
}

/// The table that a message names. MariaDB names its schema, too.
fn table(message: &str) -> String {
    let name = behind(message, "for table ").unwrap_or_default();
    match name.split_once("`.`") {
        Some((schema, table)) => {
            format!("`{}`.`{}`", schema.trim_start_matches('`'), table.split('`').next().unwrap_or_default())
        }
        None => quoted(name).map_or_else(|| "*.*".to_owned(), |table| format!("SCHEMA.{table}")),
    }
}

/// A name in quotes, as an identifier.
fn quoted(text: &str) -> Option<String> {
    let name = text.trim_start_matches(['\'', '`']);
    let end = name.find(['\'', '`'])?;
    Some(format!("`{}`", name.get(..end)?))
}

fn behind<'a>(message: &'a str, part: &str) -> Option<&'a str> {
    message.split_once(part).map(|(_, rest)| rest)
}

/// The words before it, from the last colon: a server's error has its number before its text.
fn before<'a>(message: &'a str, part: &str) -> Option<&'a str> {
    let (words, _) = message.split_once(part)?;
    Some(words.rsplit_once(": ").map_or(words, |(_, words)| words))
}

fn between<'a>(message: &'a str, from: &str, to: &str) -> Option<&'a str> {
    behind(message, from)?.split_once(to).map(|(words, _)| words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lacks_a_privilege_is_given_the_statement() {
        for (number, message, statement) in [
            (1044, "Access denied for user 'h'@'%' to database 'shop'", "GRANT ALL PRIVILEGES ON `shop`.* TO"),
            (
                1142,
                "server error 1142 (42000): INSERT command denied to user 'h'@'localhost' for table 't'",
                "GRANT INSERT ON SCHEMA.`t` TO",
            ),
            (1142, "ALTER command denied to user 'h'@'localhost' for table `d`.`t`", "GRANT ALTER ON `d`.`t` TO"),
            (
                1227,
                "Access denied; you need (at least one of) the SUPER or SYSTEM_VARIABLES_ADMIN privilege(s) for this operation",
                "GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO",
            ),
            (
                1227,
                "Access denied; you need (at least one of) the SUPER, BINLOG_ADMIN or REPLICATION_APPLIER privilege(s) for this operation",
                "GRANT BINLOG_ADMIN ON *.* TO",
            ),
            (
                1227,
                "Access denied; you need (at least one of) the SUPER, BINLOG REPLAY privilege(s) for this operation",
                "GRANT BINLOG REPLAY ON *.* TO",
            ),
            (1370, "alter routine command denied to user 'h'@'%' for routine 'd.p'", "GRANT ALTER ROUTINE ON *.* TO"),
        ] {
            let remedy = of_privilege(number, message).expect("a remedy");
            assert!(remedy.starts_with(statement), "{number}: {remedy}");
        }
        assert_eq!(of_privilege(1045, "Access denied for user 'h'@'%' (using password: YES)"), None);
        assert_eq!(of_privilege(1227, "something else"), None);
    }

    #[test]
    fn a_login_that_is_refused_says_what_to_change() {
        let auth = |code| Error::Auth { code, message: "x".to_owned(), hint: String::new() };
        for (code, part) in [
            (1040, "max_connections"),
            (1129, "FLUSH HOSTS"),
            (1130, "CREATE USER"),
            (1862, "ALTER USER"),
            (3118, "ACCOUNT UNLOCK"),
            (3159, "ssl-mode=required"),
            (1524, "IDENTIFIED WITH"),
        ] {
            for end in [ChannelEnd::Source, ChannelEnd::Target] {
                let remedy = of_connecting(end, &auth(code)).expect("a remedy");
                assert!(remedy.contains(part), "{code}: {remedy}");
            }
        }
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let away = Error::Connect { to: "h:1".to_owned(), source: refused };
        assert!(of_connecting(ChannelEnd::Source, &away).is_some_and(|remedy| remedy.contains("bind_address")));
        assert_eq!(of_connecting(ChannelEnd::Source, &auth(1213)), None);
    }
}
