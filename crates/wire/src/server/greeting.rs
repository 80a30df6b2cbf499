//! The greeting that a server sends, and the client's answer to it, as bytes.
//!
//! Source: "Connection Phase Packets" in the MySQL client/server protocol documentation.

use crate::codec::capabilities as cap;
use crate::codec::cursor::Cursor;
use crate::error::Error;

/// Bytes of the nonce that the greeting has.
pub(crate) const NONCE_BYTES: usize = 20;
const ANSWER: &str = "the client's answer to the greeting";

/// What is sent first.
pub(crate) struct Greeting<'a> {
    pub(crate) version: &'a str,
    pub(crate) connection_id: u32,
    pub(crate) nonce: &'a [u8; NONCE_BYTES],
    pub(crate) capabilities: u32,
    pub(crate) charset: u8,
    pub(crate) plugin: &'a str,
}

impl Greeting<'_> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (first, second) = self.nonce.split_at(8);
        let [low, high] = [self.capabilities as u16, (self.capabilities >> 16) as u16];
        let mut out = vec![10];
        out.extend_from_slice(self.version.as_bytes());
        out.push(0);
        out.extend_from_slice(&self.connection_id.to_le_bytes());
        out.extend_from_slice(first);
        out.push(0);
        out.extend_from_slice(&low.to_le_bytes());
        out.push(self.charset);
        out.extend_from_slice(&cap::STATUS_AUTOCOMMIT.to_le_bytes());
        out.extend_from_slice(&high.to_le_bytes());
        out.push(NONCE_BYTES as u8 + 1);
        out.extend_from_slice(&[0; 10]);
        out.extend_from_slice(second);
        out.push(0);
        out.extend_from_slice(self.plugin.as_bytes());
        out.push(0);
        out
    }
}

/// What the client answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Response {
    /// It goes on inside TLS.
    Tls,
    Login(Login),
}

/// The client's login.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) capabilities: u32,
    pub(crate) user: Vec<u8>,
    /// The plugin's first answer.
    pub(crate) auth: Vec<u8>,
    /// None: the client knows nothing of plugins.
    pub(crate) plugin: Option<Vec<u8>>,
    pub(crate) zstd_level: u8,
}

impl Response {
    /// `offered` is what the greeting had: nothing else counts.
    pub(crate) fn parse(payload: &[u8], offered: u32) -> Result<Response, Error> {
        let mut cursor = Cursor::new(payload, ANSWER);
        let capabilities = cursor.u32()? & offered;
        if capabilities & cap::PROTOCOL_41 == 0 || capabilities & cap::SECURE_CONNECTION == 0 {
            return Err(Error::protocol("a client of before MySQL 4.1"));
        }
        let _largest_packet = cursor.u32()?;
        let _charset = cursor.u8()?;
        cursor.bytes(23)?;
        if cursor.remaining() == 0 && capabilities & cap::SSL != 0 {
            return Ok(Response::Tls);
        }
        let user = cursor.until_nul().to_vec();
        let auth = if capabilities & cap::PLUGIN_AUTH_LENENC != 0 {
            cursor.lenenc_bytes()?.to_vec()
        } else {
            let length = cursor.u8()?;
            cursor.bytes(length.into())?.to_vec()
        };
        if capabilities & cap::CONNECT_WITH_DB != 0 {
            cursor.until_nul();
        }
        let plugin = (capabilities & cap::PLUGIN_AUTH != 0).then(|| cursor.until_nul().to_vec());
        if capabilities & cap::CONNECT_ATTRS != 0 && cursor.remaining() > 0 {
            cursor.lenenc_bytes()?;
        }
        let zstd_level = if capabilities & cap::ZSTD_COMPRESSION != 0 { cursor.u8().unwrap_or(3) } else { 0 };
        Ok(Response::Login(Login { capabilities, user, auth, plugin, zstd_level }))
    }
}

/// Whether these bytes are a client's answer to a greeting that offered everything. For fuzzers: a server itself reads it while it lets a client in.
pub fn login_is_read(payload: &[u8]) -> bool {
    Response::parse(payload, cap::OFFERED | cap::SSL).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::handshake;
    use proptest::prelude::*;

    #[test]
    fn our_own_client_understands_it_and_is_understood() {
        let nonce = b"abcdefgh1234567890xy";
        let bytes = Greeting {
            version: "5.5.5-10.11.6-MariaDB-log",
            connection_id: 77,
            nonce,
            capabilities: cap::OFFERED,
            charset: 45,
            plugin: "mysql_native_password",
        }
        .encode();
        let greeting = handshake::Greeting::parse(&bytes).unwrap();
        assert_eq!(greeting.nonce, nonce);
        assert_eq!(greeting.auth_plugin, "mysql_native_password");
        assert_eq!((greeting.capabilities, greeting.server.connection_id), (cap::OFFERED, 77));
        assert_eq!(greeting.server.greeting, "5.5.5-10.11.6-MariaDB-log");

        for lenenc in [0, cap::PLUGIN_AUTH_LENENC] {
            let capabilities = (cap::WANTED & !cap::PLUGIN_AUTH_LENENC) | lenenc;
            let login = handshake::Login {
                capabilities,
                user: "repl",
                database: None,
                auth_plugin: "caching_sha2_password",
                auth: b"0123",
                program_name: "test",
            };
            let Response::Login(parsed) = Response::parse(&login.encode(), cap::OFFERED).unwrap() else { panic!() };
            assert_eq!((&parsed.user[..], &parsed.auth[..]), (&b"repl"[..], &b"0123"[..]));
            assert_eq!(parsed.plugin.as_deref(), Some(&b"caching_sha2_password"[..]));
        }
        let request = handshake::ssl_request(cap::WANTED);
        assert_eq!(Response::parse(&request, cap::OFFERED | cap::SSL).unwrap(), Response::Tls);
        assert!(Response::parse(&request, cap::OFFERED).is_err(), "TLS was not offered");
    }

    proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>, flags: u32) {
            let _ = Response::parse(&bytes, u32::MAX);
            let with_flags = [&flags.to_le_bytes()[..], &[0; 28], &bytes].concat();
            let _ = Response::parse(&with_flags, u32::MAX);
        }
    }
}
