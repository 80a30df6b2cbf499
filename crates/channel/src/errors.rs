//! The text of errors.

use std::io;

use binlog::errno;
use engine::failure::{Failure, FailureKind};

/// An error and its causes in one line. Causes that the text before them has said already are left out.
pub fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// An error as a failure: what it is already, else by what this machine, or a server, says in it.
pub fn failure(error: anyhow::Error) -> Failure {
    error.downcast::<Failure>().unwrap_or_else(|error| Failure::new(kind(&error), chain(&error)))
}

/// The same of an error that goes on.
pub fn of_error(error: &anyhow::Error) -> Failure {
    error.downcast_ref::<Failure>().cloned().unwrap_or_else(|| Failure::new(kind(error), chain(error)))
}

/// Of an error that is no [`Failure`] at its head: that of a failure among its causes, else whether it passes by itself.
pub fn kind(error: &anyhow::Error) -> FailureKind {
    for cause in error.chain() {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return failure.kind;
        }
        if let Some(error) = cause.downcast_ref::<wire::Error>() {
            return if error.is_transient_network() { FailureKind::ConnectionLost } else { FailureKind::Refused };
        }
        let of_machine = match (cause.downcast_ref::<relay::Error>(), cause.downcast_ref::<io::Error>()) {
            (Some(error), _) => error.may_pass(),
            (None, Some(error)) => errno::is_passing(error),
            (None, None) => false,
        };
        if of_machine {
            return FailureKind::Exhausted;
        }
    }
    FailureKind::Refused
}

/// A thread that ended without an error has panicked; its own message came before.
pub fn exited_unexpectedly(who: &str) -> Failure {
    Failure::new(FailureKind::Refused, format!("{who} exited unexpectedly: this is a bug in heddle"))
        .remedy("everything before it is applied; please report it, with the log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_found_among_the_causes() {
        // ENOSPC, EMFILE, EACCES.
        for (number, expected) in
            [(28, FailureKind::Exhausted), (24, FailureKind::Exhausted), (13, FailureKind::Refused)]
        {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(kind(&anyhow::Error::new(error).context("reading a.toml")), expected);
        }
        let full = anyhow::Error::new(relay::Error::DiskFull { path: "r".into() }).context("relay log");
        assert_eq!((kind(&full), failure(full).kind), (FailureKind::Exhausted, FailureKind::Exhausted));
        let fenced = anyhow::Error::new(Failure::new(FailureKind::Fenced, "x")).context("target");
        assert_eq!(kind(&fenced), FailureKind::Fenced);
    }

    #[test]
    fn causes_are_said_once() {
        let refused = anyhow::anyhow!("refused").context("cannot connect: refused").context("source");
        assert_eq!(chain(&refused), "source: cannot connect: refused");
        assert_eq!(chain(&anyhow::anyhow!("alone")), "alone");
    }
}
