//! The greeting of a server and the answer to it, as bytes.
//!
//! Source: "Connection Phase Packets" in the MySQL client/server protocol documentation.

use crate::capabilities as cap;
use crate::cursor::{Cursor, put_lenenc, put_lenenc_bytes};
use crate::error::{Error, without_secrets};
use crate::options::ConnectOptions;
use crate::server_info::ServerInfo;

/// What the server sends first.
#[derive(Debug)]
pub(crate) struct Greeting {
    pub(crate) server: ServerInfo,
    pub(crate) capabilities: u32,
    /// Random bytes that the password is mixed with, without the closing zero.
    pub(crate) nonce: Vec<u8>,
    pub(crate) auth_plugin: String,
}

impl Greeting {
    pub(crate) fn parse(payload: &[u8]) -> Result<Greeting, Error> {
        let mut cursor = Cursor::new(payload, "the server's greeting");
        match cursor.u8()? {
            10 => {}
            0xff => return Err(parse_error(payload, 0)),
            other => {
                return Err(Error::protocol(format!(
                    "the first byte is {other}, not protocol 10: this is no MySQL or MariaDB server, or a very old one"
                )));
            }
        }
        let version = String::from_utf8_lossy(cursor.until_nul()).into_owned();
        let connection_id = cursor.u32()?;
        let mut nonce = cursor.bytes(8)?.to_vec();
        cursor.bytes(1)?;
        let low = cursor.u16()?;
        let charset = cursor.u8()?;
        cursor.u16()?; // status flags
        let capabilities = u32::from(low) | u32::from(cursor.u16()?) << 16;
        let nonce_bytes = cursor.u8()?;
        cursor.bytes(10)?; // reserved; MariaDB's extended capabilities, none of which are used
        if capabilities & cap::PROTOCOL_41 == 0 || capabilities & cap::SECURE_CONNECTION == 0 {
            return Err(Error::protocol(format!("server version {version} is older than 4.1 and not supported")));
        }
        let second = cursor.bytes(usize::from(nonce_bytes).saturating_sub(8).max(13))?;
        nonce.extend_from_slice(second.strip_suffix(&[0]).unwrap_or(second));
        let auth_plugin = if capabilities & cap::PLUGIN_AUTH != 0 {
            String::from_utf8_lossy(cursor.until_nul()).into_owned()
        } else {
            "mysql_native_password".to_owned()
        };
        let server = ServerInfo::new(&version, connection_id.into(), charset);
        Ok(Greeting { server, capabilities, nonce, auth_plugin })
    }
}

fn fixed_part(capabilities: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(&capabilities.to_le_bytes());
    out.extend_from_slice(&(1u32 << 30).to_le_bytes()); // largest packet this side takes
    out.push(cap::COLLATION_UTF8MB4);
    out.extend_from_slice(&[0; 23]);
    out
}

/// Asks for TLS; the real answer follows inside it.
pub(crate) fn ssl_request(capabilities: u32) -> Vec<u8> {
    fixed_part(capabilities | cap::SSL)
}

/// The login.
pub(crate) fn response(options: &ConnectOptions, capabilities: u32, auth_plugin: &str, auth: &[u8]) -> Vec<u8> {
    let mut out = fixed_part(capabilities);
    out.extend_from_slice(options.user.as_bytes());
    out.push(0);
    if capabilities & cap::PLUGIN_AUTH_LENENC != 0 {
        put_lenenc_bytes(&mut out, auth);
    } else {
        // Only an RSA answer is longer, and that is never the first one.
        let auth = auth.get(..auth.len().min(255)).unwrap_or_default();
        out.push(auth.len() as u8);
        out.extend_from_slice(auth);
    }
    if capabilities & cap::CONNECT_WITH_DB != 0 {
        out.extend_from_slice(options.database.as_deref().unwrap_or("").as_bytes());
        out.push(0);
    }
    if capabilities & cap::PLUGIN_AUTH != 0 {
        out.extend_from_slice(auth_plugin.as_bytes());
        out.push(0);
    }
    if capabilities & cap::CONNECT_ATTRS != 0 {
        let pid = std::process::id().to_string();
        let mut attributes = Vec::new();
        for (name, value) in [
            ("program_name", options.program_name.as_str()),
            ("_client_name", "heddle"),
            ("_client_version", env!("CARGO_PKG_VERSION")),
            ("_os", std::env::consts::OS),
            ("_platform", std::env::consts::ARCH),
            ("_pid", pid.as_str()),
        ] {
            put_lenenc_bytes(&mut attributes, name.as_bytes());
            put_lenenc_bytes(&mut attributes, value.as_bytes());
        }
        put_lenenc(&mut out, attributes.len() as u64);
        out.extend_from_slice(&attributes);
    }
    out
}

/// The server's request to go on with another plugin.
pub(crate) struct AuthSwitch {
    pub(crate) plugin: String,
    pub(crate) nonce: Vec<u8>,
}

impl AuthSwitch {
    /// `payload` starts with 0xfe.
    pub(crate) fn parse(payload: &[u8]) -> AuthSwitch {
        let mut cursor = Cursor::new(payload.get(1..).unwrap_or_default(), "an authentication switch");
        if cursor.remaining() == 0 {
            // How servers of before 5.5.7 ask for the password hash of before 4.1.
            return AuthSwitch { plugin: "mysql_old_password".to_owned(), nonce: Vec::new() };
        }
        let plugin = String::from_utf8_lossy(cursor.until_nul()).into_owned();
        let nonce = cursor.rest();
        AuthSwitch { plugin, nonce: nonce.strip_suffix(&[0]).unwrap_or(nonce).to_vec() }
    }
}

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
    Error::Server {
        code,
        sqlstate: String::from_utf8_lossy(sqlstate).into_owned(),
        message: without_secrets(code, &String::from_utf8_lossy(message), false),
        statement_index,
    }
}

/// Gives the errors of a refused login their hint.
pub(crate) fn login_error(error: Error, options: &ConnectOptions) -> Error {
    let Error::Server { code, message, sqlstate, statement_index } = error else {
        return error;
    };
    let with = if options.password.as_ref().is_some_and(|password| !password.is_empty()) { "a" } else { "no" };
    let hint = match code {
        1045 | 1698 => format!(
            "Check the user name and the password ({with} password was sent), and that the account exists for the \
             host this comes from: 'localhost' (unix socket), '127.0.0.1' and other hosts are different accounts."
        ),
        1044 => "The account may not use this database: GRANT it, or leave the database out.".to_owned(),
        1130 => "No account allows this host: create one with CREATE USER 'user'@'this host'.".to_owned(),
        1129 => "Too many failed connections came from this host: FLUSH HOSTS, or raise max_connect_errors.".to_owned(),
        1251 | 1275 | 1524 => {
            "The account's authentication plugin is not supported by the server or this client.".to_owned()
        }
        1862 => "The password has expired: set a new one with ALTER USER.".to_owned(),
        3118 | 4151 => "The account is locked: ALTER USER ... ACCOUNT UNLOCK.".to_owned(),
        3159 => "The server takes only encrypted connections: use another ssl-mode than disabled.".to_owned(),
        _ => return Error::Server { code, sqlstate, message, statement_index },
    };
    Error::Auth { code, message, hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_greeting() {
        let mut bytes = vec![10];
        bytes.extend_from_slice(b"8.0.36\0");
        bytes.extend_from_slice(&77u32.to_le_bytes());
        bytes.extend_from_slice(b"12345678\0");
        bytes.extend_from_slice(&[0xff, 0xff, 255, 2, 0, 0xff, 0xdf, 21]);
        bytes.extend_from_slice(&[0; 10]);
        bytes.extend_from_slice(b"abcdefghijkl\0caching_sha2_password\0");
        let greeting = Greeting::parse(&bytes).unwrap();
        assert_eq!(greeting.nonce, b"12345678abcdefghijkl");
        assert_eq!(greeting.auth_plugin, "caching_sha2_password");
        assert_eq!(greeting.capabilities, 0xdfff_ffff);
        assert_eq!((greeting.server.connection_id, greeting.server.version), (77, (8, 0, 36)));
        for length in 0..52 {
            assert!(Greeting::parse(&bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn errors_with_and_without_a_state() {
        let check = |bytes: &[u8], want: &str| assert_eq!(parse_error(bytes, 0).to_string(), want);
        check(b"\xff\x15\x04#28000Access denied", "server error 1045 (28000): Access denied");
        check(b"\xff\x10\x04Too many connections", "server error 1040 (HY000): Too many connections");
        check(b"\xff\x10", "protocol error: an error packet without an error code");
    }

    #[test]
    fn the_hint_does_not_hold_the_password() {
        let options = ConnectOptions { password: Some("hunter2".into()), ..Default::default() };
        let error = login_error(parse_error(b"\xff\x15\x04#28000Access denied", 0), &options);
        let text = format!("{error} {error:?}");
        assert!(text.contains("a password was sent") && !text.contains("hunter2"), "{text}");
        assert_eq!(error.code(), Some(1045));
    }

    proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>) {
            let _ = Greeting::parse(&bytes);
            let _ = AuthSwitch::parse(&bytes);
            let _ = parse_error(&bytes, 0);
        }
    }
}
