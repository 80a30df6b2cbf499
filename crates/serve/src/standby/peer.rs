//! Asks the other mirror what it does, over one connection, as a client of an account that may attach there. It decides nothing.

use std::io::ErrorKind;
use std::time::Duration;

use wire::{ConnectOptions, Connection, Error};

use super::watchman::PeerState;

/// For one answer, and for a login.
const PATIENCE: Duration = Duration::from_millis(1500);
const QUESTION: &str = "SELECT @@heddle_source, @@heddle_source_reached, @@heddle_groups";
const UNKNOWN_VARIABLE: u16 = 1193;

/// What the other one says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MirrorAnswer {
    /// The server whose log it has; empty: it has none yet.
    pub(super) source: String,
    pub(super) hears_source: bool,
    pub(super) groups: bool,
}

/// What came of the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PeerAnswer {
    Mirror(MirrorAnswer),
    /// It is there, and says something else: what is wrong.
    Stranger(String),
    /// Nobody listens there.
    Gone,
    /// No answer.
    Silent,
}

impl PeerAnswer {
    pub(super) fn seen(&self) -> PeerState {
        match self {
            Self::Mirror(mirror) if mirror.hears_source => PeerState::Serves,
            Self::Mirror(_) => PeerState::Deaf,
            Self::Stranger(_) => PeerState::Answers,
            Self::Gone => PeerState::Gone,
            Self::Silent => PeerState::Silent,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Peer {
    options: ConnectOptions,
    connection: Option<Connection>,
    /// When it was asked last.
    sends_groups: bool,
}

impl Peer {
    pub(super) fn new(options: &ConnectOptions) -> Self {
        Self { options: options.within(PATIENCE), connection: None, sends_groups: false }
    }

    /// Whether its replicas were sent groups.
    pub(super) fn sends_groups(&self) -> bool {
        self.sends_groups
    }

    /// Ends the connection.
    pub(super) fn leave(&mut self) {
        self.connection = None;
    }

    pub(super) fn ask(&mut self) -> PeerAnswer {
        match self.answer() {
            Ok(mirror) => {
                self.sends_groups = mirror.groups;
                PeerAnswer::Mirror(mirror)
            }
            Err(error) => {
                self.connection = None;
                classify(&error)
            }
        }
    }

    fn answer(&mut self) -> Result<MirrorAnswer, Error> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::connect(&self.options)?,
        };
        let row = self.connection.insert(connection).row(QUESTION)?;
        let row = row.ok_or_else(|| Error::Protocol("no row".to_owned()))?;
        let is_on = |column: usize| Ok::<_, Error>(row.required_text(column)? == "1");
        Ok(MirrorAnswer { source: row.required_text(0)?.to_owned(), hears_source: is_on(1)?, groups: is_on(2)? })
    }
}

fn classify(error: &Error) -> PeerAnswer {
    match error {
        Error::Lost { .. } => PeerAnswer::Gone,
        Error::Connect { source, .. } | Error::Io { source, .. } => match source.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => PeerAnswer::Gone,
            _ => PeerAnswer::Silent,
        },
        Error::Server { code: UNKNOWN_VARIABLE, .. } => PeerAnswer::Stranger(
            "it is no heddle serve, or one of a version without --standby-of: while it answers, replicas do not attach here".to_owned(),
        ),
        Error::Server { .. } | Error::Auth { .. } | Error::Tls { .. } | Error::TlsIncompatible { .. } | Error::Protocol(_) => {
            PeerAnswer::Stranger(format!("it answers, and can not be asked: {error}"))
        }
        _ => PeerAnswer::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_answers_is_not_gone() {
        let io = |kind: ErrorKind| Error::Connect { to: "a:3306".to_owned(), source: kind.into() };
        for (error, want) in [
            (io(ErrorKind::ConnectionRefused), PeerState::Gone),
            (Error::Lost { during: "reading" }, PeerState::Gone),
            (io(ErrorKind::HostUnreachable), PeerState::Silent),
            (io(ErrorKind::TimedOut), PeerState::Silent),
            (Error::Timeout { during: "reading", after: PATIENCE }, PeerState::Silent),
            (Error::Auth { code: 1045, message: String::new(), hint: String::new() }, PeerState::Answers),
        ] {
            assert_eq!(classify(&error).seen(), want, "{error}");
        }
    }
}
