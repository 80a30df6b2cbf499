//! The servers' own error for statements that this server does not answer.

use wire::server::ServerError;

/// The servers' error for what they do not have yet.
pub(super) fn not_supported(statement: &str) -> ServerError {
    let mut shown: String = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    if shown.chars().count() > 120 {
        shown = shown.chars().take(120).chain("…".chars()).collect();
    }
    ServerError::new(
        1235,
        "42000",
        format!("This version of MySQL doesn't yet support '{shown}' (a binlog server has no tables)"),
    )
}
