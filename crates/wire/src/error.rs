//! What can go wrong on a connection, told apart by what the caller does about it. Texts never hold a password, and show
//! nothing raw that the other side has sent.

use std::io;
use std::time::Duration;

use binlog::text::EscapedText;

use crate::availability::{self, AvailabilityError, Reaction};

/// An error of one connection. [`Error::is_connection_lost`] says whether the connection can still be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No connection could be made.
    #[error("cannot connect to {to}: {source}")]
    Connect {
        /// Host and port, or the socket's path.
        to: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// Reading or writing failed; the connection is gone.
    #[error("the connection failed while {during}: {source}")]
    Io {
        /// What was going on, in words that fit after "while".
        during: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// TLS could not be set up, or a certificate was refused.
    #[error("TLS: {}", EscapedText(.message))]
    Tls {
        /// What failed and what to do.
        message: String,
    },
    /// The server offers TLS, but no version or cipher that this client has.
    #[error("TLS: {}", EscapedText(.message))]
    TlsIncompatible {
        /// What failed and what to do.
        message: String,
    },
    /// The server refused the login.
    #[error("login refused: {message} (error {code}). {hint}")]
    Auth {
        /// The server's error code; 0 when this side gave up.
        code: u16,
        /// The server's text.
        message: String,
        /// What to check.
        hint: String,
    },
    /// The server answered a statement, or a dump request, with an error. The connection stays usable, unless
    /// [`Error::is_connection_lost`] says otherwise.
    #[error("server error {code} ({sqlstate}){}: {message}", statement_text(*.statement_index))]
    Server {
        /// The server's error code, such as 1213 for a deadlock.
        code: u16,
        /// Five characters, `HY000` when the server sent none.
        sqlstate: String,
        /// The server's text. A part that could show a password is cut.
        message: String,
        /// Which statement of the query failed, from 0: all before it were executed.
        statement_index: usize,
    },
    /// An event of the binary log is larger than [`DumpOptions::event_bytes_max`](crate::DumpOptions::event_bytes_max).
    #[error("an event of {bytes} bytes: at most {bytes_max} are held at once")]
    EventTooLarge {
        /// Its length, as it says.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The peer sent what the protocol does not allow here; the connection cannot be used any more.
    #[error("protocol error: {}", EscapedText(.0))]
    Protocol(String),
    /// The server closed the connection.
    #[error("the server closed the connection while {during}")]
    Lost {
        /// What was going on, in words that fit after "while".
        during: &'static str,
    },
    /// This process shut the connection down through its [`ShutdownHandle`](crate::ShutdownHandle).
    #[error("the connection was shut down")]
    ShutDown,
    /// The process is to end ([`Interrupt`](crate::Interrupt)), so the wait was given up.
    #[error("stopped while {during}")]
    Interrupted {
        /// What was going on, in words that fit after "while".
        during: &'static str,
    },
    /// The answer to a query is larger than [`Limits::answer_bytes_max`](crate::Limits::answer_bytes_max); the rest of it was not read.
    #[error(
        "the answer to a query is larger than {bytes_max} bytes ({rows} rows have come): either this is no honest server, or there is more of what was asked for than heddle can take"
    )]
    AnswerTooLarge {
        /// The limit.
        bytes_max: usize,
        /// What came within it.
        rows: usize,
    },
    /// The read timeout passed without an answer; the connection cannot be used any more.
    #[error("no answer from the server within {after:?} while {during}")]
    Timeout {
        /// What was going on, in words that fit after "while".
        during: &'static str,
        /// The timeout that passed.
        after: Duration,
    },
    /// A dump was silent for longer than the heartbeats allow. Reading may go on, but the source is probably gone.
    #[error("neither events nor heartbeats from the source for {after:?}")]
    HeartbeatTimeout {
        /// The timeout that passed.
        after: Duration,
    },
    /// The server ended the dump: the end of the log was reached and the dump was asked not to wait.
    #[error("the server ended the binary log dump")]
    DumpEnded,
    /// A dump request that cannot be made.
    #[error("binary log dump: {0}")]
    DumpRequest(String),
    /// The server asked for a local file that nobody offered; it was not sent.
    #[error("the server asked for the local file {file:?}, which was refused")]
    LocalInfileRefused {
        /// The name the server asked for.
        file: String,
    },
    /// The data for LOAD DATA LOCAL could not be read; the statement saw a shortened file.
    #[error("the data for LOAD DATA LOCAL could not be read: {source}")]
    LocalInfileData {
        /// What the given reader said.
        source: io::Error,
    },
    /// A value of a row is not what the caller expects.
    #[error("column {column}: {reason}")]
    Value {
        /// Name or number of the column.
        column: String,
        /// What is wrong.
        reason: String,
    },
    /// A call that needs an idle connection came while results were still to be read.
    #[error("{pending} pipelined result(s) must be read first")]
    Busy {
        /// How many results are outstanding.
        pending: usize,
    },
    /// A result was to be read although no query was sent.
    #[error("no query was sent whose result could be read")]
    NothingPending,
}

fn statement_text(index: usize) -> String {
    if index == 0 { String::new() } else { format!(" in statement {} of the query", index + 1) }
}

impl Error {
    /// The server's error code, when the server sent one.
    pub fn code(&self) -> Option<u16> {
        match self {
            Error::Server { code, .. } | Error::Auth { code, .. } if *code != 0 => Some(*code),
            _ => None,
        }
    }

    /// Index of the failed statement, when the server named an error.
    pub fn statement_index(&self) -> Option<usize> {
        match self {
            Error::Server { statement_index, .. } => Some(*statement_index),
            _ => None,
        }
    }

    /// True when the connection cannot be used any more and a new one is needed.
    pub fn is_connection_lost(&self) -> bool {
        match self {
            Error::Connect { .. }
            | Error::Io { .. }
            | Error::Tls { .. }
            | Error::TlsIncompatible { .. }
            | Error::Auth { .. }
            | Error::Protocol(_)
            | Error::Lost { .. }
            | Error::ShutDown
            | Error::Interrupted { .. }
            | Error::AnswerTooLarge { .. }
            | Error::EventTooLarge { .. }
            | Error::Timeout { .. }
            | Error::HeartbeatTimeout { .. }
            | Error::DumpEnded
            | Error::DumpRequest(_) => true,
            Error::Server { code, message, .. } => closes_connection(*code, message),
            Error::LocalInfileRefused { .. }
            | Error::LocalInfileData { .. }
            | Error::Value { .. }
            | Error::Busy { .. }
            | Error::NothingPending => false,
        }
    }

    /// True for an error that comes from the way to the server or from its going away, so that the same request
    /// may succeed on a new connection. False for refused logins and protocol errors.
    pub fn is_transient_network(&self) -> bool {
        match self {
            Error::Connect { .. }
            | Error::Io { .. }
            | Error::Lost { .. }
            | Error::Timeout { .. }
            | Error::HeartbeatTimeout { .. } => true,
            Error::Server { .. } => self.availability().is_some_and(|row| {
                row.reaction == Reaction::Reconnect || row.ends_connection && row.reaction == Reaction::Wait
            }),
            _ => false,
        }
    }

    /// What the table of errors that say "not now" has about it.
    pub fn availability(&self) -> Option<&'static AvailabilityError> {
        match self {
            Error::Server { code, message, .. } | Error::Auth { code, message, .. } => {
                availability::find(*code, message)
            }
            _ => None,
        }
    }

    /// True when the server has ended the statement and not the connection, for a reason that need not come again: `KILL QUERY`, or a time limit. A
    /// question may be asked again then.
    pub fn is_interruption(&self) -> bool {
        // ER_QUERY_INTERRUPTED, ER_FILSORT_ABORT (a sort that was interrupted), MariaDB's ER_STATEMENT_TIMEOUT, MySQL's ER_QUERY_TIMEOUT.
        matches!(self, Error::Server { code: 1317 | 1028 | 1969 | 3024, .. })
    }

    pub(crate) fn protocol(what: impl Into<String>) -> Error {
        Error::Protocol(what.into())
    }
}

/// Errors after which a server closes the connection, or can only be left.
fn closes_connection(code: u16, message: &str) -> bool {
    // Packets that are too large, out of order, or cannot be read.
    matches!(code, 1153..=1157) || availability::find(code, message).is_some_and(|row| row.ends_connection)
}

/// What is known of a statement, for errors about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    Ordinary,
    /// A password is in its text.
    HoldsPassword,
}

/// Servers quote the statement in syntax errors; a password in it must not come back in an error text. Where none is known to be in it, the quoted
/// part itself is searched for the words that come before passwords.
pub(crate) fn without_secrets(code: u16, message: &str, statement: Statement) -> String {
    // ER_PARSE_ERROR and ER_SYNTAX_ERROR.
    let Some(at) = message.find('\'').filter(|_| matches!(code, 1064 | 1149)) else {
        return message.to_owned();
    };
    let (head, tail) = message.split_at_checked(at).unwrap_or((message, ""));
    if statement == Statement::HoldsPassword || mentions_password(tail.as_bytes()) {
        return format!("{head}... (statement text not shown: it may hold a password)");
    }
    message.to_owned()
}

/// True when the text has a word after which statements have passwords, in any case.
pub(crate) fn mentions_password(text: &[u8]) -> bool {
    text.iter().enumerate().any(|(at, first)| {
        let word: &[u8] = match first {
            b'p' | b'P' => b"password",
            b'i' | b'I' => b"identified",
            _ => return false,
        };
        text.get(at..at + word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_cut_from_server_messages() {
        let check = |code, message: &str, sensitive: bool, keeps: bool| {
            let statement = if sensitive { Statement::HoldsPassword } else { Statement::Ordinary };
            let shown = without_secrets(code, message, statement);
            assert_eq!(shown == message, keeps, "{shown}");
            assert!(!shown.contains("hunter2"), "{shown}");
        };
        check(1064, "error in your SQL syntax; near 'MASTER_PASSWORD='hunter2',' at line 1", false, false);
        check(1064, "error near 'IDENTIFIED BY 'hunter2'' at line 1", false, false);
        check(1064, "error near ''hunter2'' at line 1", true, false);
        check(1064, "error near 'SELEC' at line 1", false, true);
        check(1062, "Duplicate entry '1' for key 'PRIMARY'", true, true);
        check(1524, "Plugin 'mysql_native_password' is not loaded", false, true);
    }

    #[test]
    fn words_before_passwords() {
        for text in ["x IDENTIFIED BY", "Identified", "ipassword", "PASSWORD", "pPassWord='"] {
            assert!(mentions_password(text.as_bytes()), "{text}");
        }
        for text in ["", "p", "passwor", "pass word", "identifie", "BINLOG 'cGFzc3dvcmQ='"] {
            assert!(!mentions_password(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn lost_or_not() {
        let server =
            |code| Error::Server { code, sqlstate: "HY000".into(), message: String::new(), statement_index: 3 };
        assert!(!server(1213).is_connection_lost());
        assert!(server(1053).is_connection_lost());
        assert_eq!(server(1213).code(), Some(1213));
        for (code, is_one) in [(1317, true), (1969, true), (3024, true), (1053, false), (1927, false), (1213, false)] {
            assert_eq!(server(code).is_interruption(), is_one, "{code}");
        }
        assert!(server(1213).to_string().contains("in statement 4"));
    }
}
