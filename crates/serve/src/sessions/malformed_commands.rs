//! The errors for malformed commands, as each vendor and version words them.

use wire::server::{CommandError, Registration, RegistrationField, ReportedText, ServerError};

use crate::dump::NO_SUCH_FILE;
use crate::inventory::SourceFacts;

/// The servers' error for a command that ends before its fields do.
pub(super) fn error(malformed: CommandError, source: &SourceFacts) -> ServerError {
    let is_mariadb = source.is_mariadb();
    match malformed {
        CommandError::Registration(RegistrationField::Text(text)) => too_long(text, source),
        CommandError::Registration(RegistrationField::Length(text)) if is_mariadb => too_long(text, source),
        CommandError::Registration(RegistrationField::Numbers) => wrong_numbers(source),
        CommandError::Dump if is_mariadb => ServerError::new(1236, "HY000", NO_SUCH_FILE),
        CommandError::GtidDump if is_mariadb => unknown_command(),
        CommandError::Registration(_) | CommandError::Dump | CommandError::GtidDump | CommandError::Other => {
            ServerError::new(1835, "HY000", "Malformed communication packet.")
        }
    }
}

/// What a server has no room for in its list of replicas.
pub(super) fn refusal(registration: &Registration, source: &SourceFacts) -> Option<ServerError> {
    let [host, user, password] = match (source.is_mariadb(), source.at_least(8, 0, 17)) {
        (true, _) => [255, 255, 96],
        (false, true) => [250, 96, 32],
        (false, false) => [60, 96, 32],
    };
    let texts = [
        (ReportedText::Host, registration.host.len(), host),
        (ReportedText::User, registration.user.len(), user),
        (ReportedText::Password, registration.password_bytes, password),
    ];
    texts.into_iter().find(|(_, bytes, most)| bytes > most).map(|(text, _, _)| too_long(text, source))
}

pub(super) fn unknown_command() -> ServerError {
    ServerError::new(1047, "08S01", "Unknown command")
}

fn too_long(text: ReportedText, source: &SourceFacts) -> ServerError {
    let who = if source.says_replica() { "replica" } else { "slave" };
    // Each sign as the servers have it.
    let what = match text {
        ReportedText::Host => ": too long 'report-host'",
        ReportedText::User => ": too long 'report-user'",
        ReportedText::Password => "; too long 'report-password'",
    };
    ServerError::new(1105, "HY000", format!("Failed to register {who}{what}"))
}

fn wrong_numbers(source: &SourceFacts) -> ServerError {
    let text = if source.says_replica() {
        "Wrong parameters when registering replica"
    } else {
        "Wrong parameters to function register_slave"
    };
    ServerError::new(1105, "HY000", text)
}
