//! The greeting of a server and the answer to it, as bytes.
//!
//! Source: "Connection Phase Packets" in the MySQL client/server protocol documentation.

use binlog::text::escape_bytes;

use super::capabilities as cap;
use super::cursor::{Cursor, put_lenenc, put_lenenc_bytes};
use super::error_packet::parse_error;
use super::server_info::ServerInfo;
use crate::error::Error;

/// Servers have 60.
const VERSION_BYTES_MAX: usize = 256;

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
        let version = escape_bytes(cursor.until_nul(), VERSION_BYTES_MAX);
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
        let server = ServerInfo::new(&version, connection_id.into(), charset).with_capabilities(capabilities);
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
pub(crate) struct Login<'a> {
    pub(crate) capabilities: u32,
    pub(crate) user: &'a str,
    pub(crate) database: Option<&'a str>,
    pub(crate) auth_plugin: &'a str,
    /// The plugin's first answer.
    pub(crate) auth: &'a [u8],
    pub(crate) program_name: &'a str,
}

impl Login<'_> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = fixed_part(self.capabilities);
        out.extend_from_slice(self.user.as_bytes());
        out.push(0);
        if self.capabilities & cap::PLUGIN_AUTH_LENENC != 0 {
            put_lenenc_bytes(&mut out, self.auth);
        } else {
            // Only an RSA answer is longer, and that is never the first one.
            let auth = self.auth.get(..self.auth.len().min(255)).unwrap_or_default();
            out.push(auth.len() as u8);
            out.extend_from_slice(auth);
        }
        if self.capabilities & cap::CONNECT_WITH_DB != 0 {
            out.extend_from_slice(self.database.unwrap_or("").as_bytes());
            out.push(0);
        }
        if self.capabilities & cap::PLUGIN_AUTH != 0 {
            out.extend_from_slice(self.auth_plugin.as_bytes());
            out.push(0);
        }
        if self.capabilities & cap::CONNECT_ATTRS != 0 {
            let pid = std::process::id().to_string();
            let mut attributes = Vec::new();
            for (name, value) in [
                ("program_name", self.program_name),
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

    proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>) {
            let _ = Greeting::parse(&bytes);
            let _ = AuthSwitch::parse(&bytes);
        }
    }
}
