//! The login: what is sent of the password, in which form, to whom. The exchange ends after a number of rounds; its deadline is the socket's.
//!
//! Whoever answers in the server's place chooses the plugin. So the password itself, or the password under a key that came over the same
//! unprotected line, goes out only where the line is protected, or the options allow it (`PasswordOptions`).

use super::auth::{self, Answer, Line, Plugin};
use super::connection::Connection;
use super::options::{ConnectOptions, SslMode};
use crate::codec::certificate_proof::{self, Fingerprint};
use crate::codec::error_packet::parse_error;
use crate::codec::handshake::{AuthSwitch, Greeting, Login};
use crate::codec::resultset::OkInfo;
use crate::error::Error;

const LOGGING_IN: &str = "logging in";
/// An authentication takes two or three rounds, a few more where MariaDB tries an account's plugins one after the other; a server that wants more is
/// broken.
const MAX_AUTH_ROUNDS: usize = 16;

/// How the line to the server is protected.
fn line(connection: &Connection, options: &ConnectOptions) -> Line {
    if connection.server.tls {
        return match options.effective_ssl_mode() {
            SslMode::VerifyCa | SslMode::VerifyIdentity if !options.verifies_by_password() => Line::VerifiedTls,
            _ => Line::Tls,
        };
    }
    if connection.stream.socket().is_unix() { Line::UnixSocket } else { Line::Clear }
}

pub(crate) fn log_in(
    connection: &mut Connection,
    options: &ConnectOptions,
    greeting: Greeting,
    sequence: u8,
) -> Result<(), Error> {
    // The server's default is a guess at the account's plugin; a wrong one costs a round, not the login.
    let plugin = match Plugin::from_name(&greeting.auth_plugin) {
        Some(plugin @ (Plugin::Native | Plugin::CachingSha2 | Plugin::Ed25519)) => plugin,
        _ => Plugin::Native,
    };
    let line = line(connection, options);
    let password = options.password.as_ref().map_or("", |password| password.expose());
    let certificate = connection.stream.certificate().filter(|_| options.verifies_by_password());
    let mut exchange = Exchange {
        connection,
        options,
        password,
        line,
        plugin,
        greeting_nonce: greeting.nonce.clone(),
        nonce: greeting.nonce,
        unverified: certificate,
        key_awaited: false,
        sequence,
    };
    exchange.check_plugin()?;
    let first = match plugin.answer(password, &exchange.nonce, line, &options.password_options)? {
        Answer::Bytes(bytes) => bytes,
        Answer::ClearPassword | Answer::Rsa { .. } => Vec::new(),
    };
    let login = Login {
        capabilities: exchange.connection.capabilities,
        user: &options.user,
        database: options.database.as_deref(),
        auth_plugin: plugin.name(),
        auth: &first,
        program_name: &options.program_name,
    };
    exchange.send(&[&login.encode()])?;
    for _ in 0..MAX_AUTH_ROUNDS {
        if exchange.round()? == Round::Done {
            return Ok(());
        }
    }
    Err(Error::protocol("the login does not come to an end"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    Done,
    GoOn,
}

struct Exchange<'a> {
    connection: &'a mut Connection,
    options: &'a ConnectOptions,
    password: &'a str,
    line: Line,
    plugin: Plugin,
    nonce: Vec<u8>,
    greeting_nonce: Vec<u8>,
    /// The server's certificate, if only the end of the login shows whether it is the server's.
    unverified: Option<Fingerprint>,
    /// The server was asked for its RSA key.
    key_awaited: bool,
    /// Number of the next packet that is sent.
    sequence: u8,
}

impl Exchange<'_> {
    fn send(&mut self, parts: &[&[u8]]) -> Result<(), Error> {
        self.connection.send(self.sequence, parts, LOGGING_IN).map(|_| ())
    }

    /// Reads a packet of the server's and answers it.
    fn round(&mut self) -> Result<Round, Error> {
        let frame = self.connection.receive(LOGGING_IN)?;
        self.sequence = frame.sequence.wrapping_add(1);
        match frame.payload.first() {
            Some(0x00) => {
                self.check_certificate(&frame.payload)?;
                return Ok(Round::Done);
            }
            Some(0xff) => return Err(parse_error(&frame.payload, 0)),
            Some(0xfe) => self.switch(AuthSwitch::parse(&frame.payload))?,
            Some(0x01) => self.go_on(frame.payload.get(1..).unwrap_or_default())?,
            Some(0x02) => {
                return Err(Error::Auth {
                    code: 0,
                    message: "the account has a second factor".to_owned(),
                    hint: "Use an account with one.".to_owned(),
                });
            }
            _ => return Err(Error::protocol("an unknown packet during the login")),
        }
        Ok(Round::GoOn)
    }

    fn switch(&mut self, switch: AuthSwitch) -> Result<(), Error> {
        self.plugin = Plugin::from_name(&switch.plugin).ok_or_else(|| auth::unsupported(&switch.plugin))?;
        self.nonce = switch.nonce;
        self.key_awaited = false;
        self.check_plugin()?;
        match self.plugin.answer(self.password, &self.nonce, self.line, &self.options.password_options)? {
            Answer::Bytes(bytes) => self.send(&[&bytes]),
            Answer::ClearPassword => self.send_clear(),
            Answer::Rsa { request } => self.send_sealed(request),
        }
    }

    /// While the certificate is not verified, nothing goes out that would help somebody in between.
    fn check_plugin(&self) -> Result<(), Error> {
        let proves = self.plugin.stored_hash(self.password).is_some() && !self.password.is_empty();
        if self.unverified.is_none() || proves {
            return Ok(());
        }
        let why = if self.password.is_empty() { "no password was given" } else { self.plugin.name() };
        Err(not_trusted(why))
    }

    /// Who knows the password, and has this certificate, is the server.
    fn check_certificate(&self, payload: &[u8]) -> Result<(), Error> {
        let Some(certificate) = &self.unverified else { return Ok(()) };
        let hash = self.plugin.stored_hash(self.password).unwrap_or_default();
        let nonce = if self.plugin == Plugin::Ed25519 { &self.greeting_nonce } else { &self.nonce };
        let expected = certificate_proof::text(&hash, nonce, certificate);
        if OkInfo::text(payload)? == expected {
            return Ok(());
        }
        Err(not_trusted("the server has not shown that it knows the password"))
    }

    /// More data of the plugin's.
    fn go_on(&mut self, data: &[u8]) -> Result<(), Error> {
        match (self.plugin, data) {
            (Plugin::CachingSha2 | Plugin::Sha256, key) if self.key_awaited => {
                self.key_awaited = false;
                let sealed = auth::encrypt_password(self.password.as_bytes(), &self.nonce, key)?;
                self.send(&[&sealed])
            }
            // The server knew the password's hash; its OK follows.
            (Plugin::CachingSha2, [3]) => {
                self.connection.needs_password_cache = !self.may_be_sealed();
                Ok(())
            }
            (Plugin::CachingSha2, [4]) if self.line != Line::Clear => self.send_clear(),
            (Plugin::CachingSha2, [4]) => self.send_sealed(2),
            (plugin, _) => {
                let what = format!("data that the plugin {} does not expect", plugin.name());
                Err(Error::protocol(what))
            }
        }
    }

    fn send_clear(&mut self) -> Result<(), Error> {
        self.send(&[self.password.as_bytes(), &[0]])
    }

    /// Whether the password itself may go over this line, or under a key that is trusted.
    fn may_be_sealed(&self) -> bool {
        let allowed = &self.options.password_options;
        self.line != Line::Clear || allowed.server_public_key.is_some() || allowed.get_server_public_key
    }

    /// The password under the server's RSA key: the one that is known here, or the one that the server is asked for with the byte `request`.
    fn send_sealed(&mut self, request: u8) -> Result<(), Error> {
        let allowed = &self.options.password_options;
        if let Some(path) = &allowed.server_public_key {
            let key = auth::key_file(path)?;
            let sealed = auth::encrypt_password(self.password.as_bytes(), &self.nonce, &key)?;
            return self.send(&[&sealed]);
        }
        if !self.may_be_sealed() {
            return Err(auth::key_not_trusted(self.plugin));
        }
        self.key_awaited = true;
        self.send(&[&[request]])
    }
}

/// Gives the errors of a refused login their hint.
pub(crate) fn refusal(error: Error, options: &ConnectOptions) -> Error {
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

/// Without an authority, and without the server's proof.
fn not_trusted(why: &str) -> Error {
    Error::Tls {
        message: format!(
            "the server's certificate can not be verified ({why}). verify-ca and verify-identity need ssl-ca, a PEM file with the authority's certificate; or a \
             MariaDB server from 11.4 on that made its certificate itself, and an account with mysql_native_password or ed25519 and a password"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_does_not_hold_the_password() {
        let options = ConnectOptions { password: Some("hunter2".into()), ..Default::default() };
        let error = refusal(parse_error(b"\xff\x15\x04#28000Access denied", 0), &options);
        let text = format!("{error} {error:?}");
        assert!(text.contains("a password was sent") && !text.contains("hunter2"), "{text}");
        assert_eq!(error.code(), Some(1045));
    }
}
