//! Error packets. Their text is escaped here, so that it is harmless wherever it is shown, and a password in it is cut.

use binlog::text::escape_bytes;

use super::cursor::Cursor;
use crate::error::{Error, Statement, without_secrets};

/// Servers stop at 512.
const MESSAGE_BYTES_MAX: usize = 4096;

/// An error packet; `payload` starts with 0xff.
pub(crate) fn parse_error(payload: &[u8], statement_index: usize) -> Error {
    let mut cursor = Cursor::new(payload.get(1..).unwrap_or_default(), "an error packet");
    let Ok(code) = cursor.u16() else {
        return Error::protocol("an error packet without an error code");
    };
    let rest = cursor.rest();
    // Before the login is read, servers leave the SQL state out.
    let (sqlstate, message) = match rest.split_at_checked(6) {
        Some((state, message)) if state.first() == Some(&b'#') => (state.get(1..).unwrap_or_default(), message),
        _ => (&b"HY000"[..], rest),
    };
    let message = without_secrets(code, &escape_bytes(message, MESSAGE_BYTES_MAX), Statement::Ordinary);
    Error::Server { code, sqlstate: escape_bytes(sqlstate, sqlstate.len()), message, statement_index }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn errors_with_and_without_a_state() {
        let check = |bytes: &[u8], want: &str| assert_eq!(parse_error(bytes, 0).to_string(), want);
        check(b"\xff\x15\x04#28000Access denied", "server error 1045 (28000): Access denied");
        check(b"\xff\x10\x04Too many connections", "server error 1040 (HY000): Too many connections");
        check(b"\xff\x10", "protocol error: an error packet without an error code");
    }

    #[test]
    fn texts_are_escaped_and_cut() {
        let shown = |bytes: &[u8]| parse_error(bytes, 0).to_string();
        assert_eq!(
            shown("\x15\x04\u{0}#\x1b[2J;a\nINFO \u{202e}b\u{9b}m".replace("\x15\x04\u{0}", "?\x15\x04").as_bytes()),
            "server error 1045 (\\x1b[2J;): a\\nINFO \\u{202e}b\\u{9b}m"
        );
        assert_eq!(shown(b"\xff\x15\x04#28000\xff\x00"), "server error 1045 (28000): \\xff\\0");
        let long = [&b"\xff\x15\x04#28000"[..], &vec![b'x'; 1 << 20]].concat();
        assert!(shown(&long).len() < 5000);
    }

    proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>) {
            let shown = parse_error(&bytes, 0).to_string();
            prop_assert!(!shown.chars().any(char::is_control), "{shown:?}");
        }
    }
}
