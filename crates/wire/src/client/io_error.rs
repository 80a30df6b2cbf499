//! What an error of the stream means for the connection.

use std::io;
use std::time::Duration;

use super::socket::{gave_up, is_silence};
use super::tls_errors;
use crate::error::Error;

/// `timeout`: what has passed if that is what happened.
pub(crate) fn classify(error: io::Error, during: &'static str, timeout: Option<Duration>) -> Error {
    use io::ErrorKind as Kind;
    if gave_up(&error) {
        return Error::Interrupted { during };
    }
    match error.kind() {
        Kind::UnexpectedEof | Kind::ConnectionReset | Kind::BrokenPipe | Kind::ConnectionAborted => {
            Error::Lost { during }
        }
        _ if is_silence(&error) => Error::Timeout { during, after: timeout.unwrap_or_default() },
        Kind::InvalidData => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(tls) => Error::Tls { message: tls_errors::describe(tls) },
            None => Error::protocol(format!("{error} while {during}")),
        },
        _ => Error::Io { during, source: error },
    }
}
