//! The text of errors.

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

/// An error as a failure: what it is already, or a refusal.
pub fn failure(error: anyhow::Error) -> Failure {
    error.downcast::<Failure>().unwrap_or_else(|error| Failure::new(FailureKind::Refused, chain(&error)))
}

/// The same of an error that goes on.
pub fn of_error(error: &anyhow::Error) -> Failure {
    error.downcast_ref::<Failure>().cloned().unwrap_or_else(|| Failure::new(FailureKind::Refused, chain(error)))
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
    fn causes_are_said_once() {
        let refused = anyhow::anyhow!("refused").context("cannot connect: refused").context("source");
        assert_eq!(chain(&refused), "source: cannot connect: refused");
        assert_eq!(chain(&anyhow::anyhow!("alone")), "alone");
    }
}
