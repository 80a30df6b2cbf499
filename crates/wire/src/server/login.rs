//! Letting a client in: greeting, TLS, its login, the plugin's exchange. Who does not know the password learns nothing but that.
//!
//! The account's name comes before the proof, so an unknown name goes the same way as a wrong password.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rsa::rand_core::{OsRng, RngCore};
use zeroize::Zeroizing;

use super::answer::{self, ServerError};
use super::auth::{Account, Accounts, AuthResult, Line, Plugin, RsaKey, Verifier, check, check_password};
use super::greeting::{Greeting, Login, NONCE_BYTES, Response};
use super::options::{PeerError, PeerOptions};
use super::stream::{Stream, TimedSocket};
use super::tls::{self, ServerTls};
use crate::codec::capabilities as cap;
use crate::codec::certificate_proof;
use crate::codec::compressed::{CompressedStream, Method};
use crate::codec::packet::write_payload;
use crate::secret::Secret;

/// Nothing of a login is larger: an RSA answer has 256 bytes, attributes have a few hundred.
const LOGIN_BYTES_MAX: usize = 64 << 10;
const ED25519_NONCE_BYTES: usize = 32;
/// How long a client waits to be told that its password is wrong.
const DENIED_AFTER: Duration = Duration::from_millis(250);
const KEY_STEP: Duration = Duration::from_millis(50);
const LOGGING_IN: &str = "logging in";
const REQUEST_KEY: u8 = 2;
const FAST_OK: u8 = 3;
const FULL: u8 = 4;

/// Who has logged in.
pub(super) struct AcceptedClient {
    pub(super) stream: Stream,
    pub(super) capabilities: u32,
    pub(super) account: Arc<Account>,
    pub(super) from: IpAddr,
}

pub(super) fn log_in(
    tcp: TcpStream,
    number: u32,
    options: &PeerOptions,
    accounts: &dyn Accounts,
) -> Result<AcceptedClient, PeerError> {
    let from = tcp.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.ip().to_canonical());
    let _ = tcp.set_nodelay(true);
    let mut exchange = Exchange {
        stream: Stream::Plain(TimedSocket::new(tcp, Instant::now() + options.login_timeout)),
        sequence: 0,
        nonce: nonce(NONCE_BYTES),
        greeting_nonce: Vec::new(),
        plugin: None,
        rsa: &options.rsa,
    };
    exchange.greeting_nonce.clone_from(&exchange.nonce);
    let offered = cap::OFFERED | options.tls.as_ref().map_or(0, |_| cap::SSL);
    exchange.greet(number, options, offered)?;
    let mut response = exchange.response(offered)?;
    if response == Response::Tls
        && let Some(tls) = &options.tls
    {
        exchange = exchange.in_tls(tls)?;
        response = exchange.response(offered)?;
    }
    let Response::Login(login) = response else {
        return Err(exchange.bad_handshake());
    };
    let user = String::from_utf8_lossy(&login.user).into_owned();
    let known = accounts.find(&user, from);
    let account = known.clone().unwrap_or_else(|| Arc::new(nobody(&user)));
    let proven = exchange.prove(&account, &login, options.identity.plugin)?;
    let reason = match (&known, proven) {
        (None, _) => Some("no such account from there"),
        (Some(_), AuthResult::Right) if exchange.line() < account.line => {
            Some("the account wants TLS, or a certificate of the client's")
        }
        (Some(_), AuthResult::Right) => None,
        _ => Some("wrong password"),
    };
    if let Some(reason) = reason {
        return Err(exchange.deny(user, from, reason));
    }
    let text = options.tls.as_deref().and_then(|tls| exchange.certificate_proof(&account.verifier, tls));
    exchange.send(&[&text.map_or_else(|| answer::ok(0), |text| answer::ok_with(&text))])?;
    exchange
        .stream
        .timed_mut()
        .logged_in(options.idle_timeout, options.write_timeout)
        .map_err(|source| PeerError::Gone { during: LOGGING_IN, source })?;
    let stream = match compression(&login) {
        None => exchange.stream,
        Some(method) => {
            Stream::Compressed(Box::new(CompressedStream::new(exchange.stream, method, options.command_bytes_max)))
        }
    };
    Ok(AcceptedClient { stream, capabilities: login.capabilities, account, from })
}

struct Exchange<'a> {
    stream: Stream,
    /// Number of the next packet that is sent.
    sequence: u8,
    nonce: Vec<u8>,
    greeting_nonce: Vec<u8>,
    /// The one that the client has answered with.
    plugin: Option<Plugin>,
    rsa: &'a OnceLock<RsaKey>,
}

impl<'a> Exchange<'a> {
    fn greet(&mut self, number: u32, options: &PeerOptions, offered: u32) -> Result<(), PeerError> {
        let mut first = [0; NONCE_BYTES];
        first.copy_from_slice(self.nonce.get(..NONCE_BYTES).unwrap_or(&[0; NONCE_BYTES]));
        let greeting = Greeting {
            version: &options.identity.version,
            connection_id: number,
            nonce: &first,
            capabilities: offered,
            charset: options.identity.charset,
            plugin: options.identity.plugin.name(),
        };
        self.send(&[&greeting.encode()])
    }

    fn in_tls(self, config: &ServerTls) -> Result<Self, PeerError> {
        let Stream::Plain(timed) = self.stream else {
            return Err(PeerError::Protocol(crate::Error::protocol("TLS inside of TLS")));
        };
        let stream = tls::accept(timed, &config.config).map_err(PeerError::Protocol)?;
        Ok(Exchange { stream, ..self })
    }

    /// What shows that the certificate is this server's, for clients that have no authority for it.
    fn certificate_proof(&self, verifier: &Verifier, tls: &ServerTls) -> Option<Vec<u8>> {
        let plugin = self.plugin.filter(|_| self.stream.is_tls())?;
        // MariaDB's ed25519 has a nonce of its own, which does not count here.
        let nonce = if plugin == Plugin::Ed25519 { &self.greeting_nonce } else { &self.nonce };
        Some(certificate_proof::text(&verifier.stored_hash(plugin)?, nonce, &tls.fingerprint))
    }

    fn send(&mut self, parts: &[&[u8]]) -> Result<(), PeerError> {
        let mut packet = Vec::new();
        let sent = write_payload(&mut packet, self.sequence, parts)
            .and_then(|next| self.stream.write_all(&packet).and_then(|()| self.stream.flush()).map(|()| next));
        self.sequence = sent.map_err(|source| PeerError::Gone { during: LOGGING_IN, source })?;
        Ok(())
    }

    /// Reads not a byte beyond the packet: what follows the request for TLS is TLS's.
    fn receive(&mut self) -> Result<Zeroizing<Vec<u8>>, PeerError> {
        let gone = |source| PeerError::Gone { during: LOGGING_IN, source };
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).map_err(gone)?;
        let [a, b, c, sequence] = head;
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        if length > LOGIN_BYTES_MAX {
            return Err(PeerError::Protocol(crate::Error::protocol(format!("a login of {length} bytes"))));
        }
        let mut payload = Zeroizing::new(vec![0; length]);
        self.stream.read_exact(&mut payload).map_err(gone)?;
        self.sequence = sequence.wrapping_add(1);
        Ok(payload)
    }

    fn response(&mut self, offered: u32) -> Result<Response, PeerError> {
        let payload = self.receive()?;
        match Response::parse(&payload, offered) {
            Ok(response) => Ok(response),
            Err(error) => {
                let _ = self.bad_handshake();
                Err(PeerError::Protocol(error))
            }
        }
    }

    fn bad_handshake(&mut self) -> PeerError {
        let _ = self.send(&[&ServerError::new(1043, "08S01", "Bad handshake").encode()]);
        PeerError::Protocol(crate::Error::protocol("no login came"))
    }

    /// How the line is protected.
    fn line(&self) -> Line {
        if self.stream.has_certificate() {
            Line::Certificate
        } else if self.stream.is_tls() {
            Line::Tls
        } else {
            Line::Any
        }
    }

    /// The client's own choice of a plugin, if the account takes it; else the account's.
    fn prove(&mut self, account: &Account, login: &Login, default: Plugin) -> Result<AuthResult, PeerError> {
        let named = match &login.plugin {
            Some(name) => Plugin::from_name(name),
            None => Some(Plugin::Native),
        };
        let usable = named.filter(|plugin| account.verifier.takes(*plugin));
        // ed25519 has a longer nonce than the greeting's. A client that does not know the greeting's plugin names another one and proves nothing yet: no account has an empty
        // password.
        let proven = usable.filter(|plugin| *plugin != Plugin::Ed25519 && !login.auth.is_empty());
        let (plugin, answer) = match proven {
            Some(plugin) => (plugin, Zeroizing::new(login.auth.clone())),
            None => {
                let plugin = usable.unwrap_or_else(|| account.verifier.plugin(default));
                self.nonce = nonce(if plugin == Plugin::Ed25519 { ED25519_NONCE_BYTES } else { NONCE_BYTES });
                let nonce = self.nonce.clone();
                // MariaDB's plugin wants its nonce without the zero that ends the others'.
                let end: &[u8] = if plugin == Plugin::Ed25519 { &[] } else { &[0] };
                self.send(&[&[0xfe], plugin.name().as_bytes(), &[0], &nonce, end])?;
                (plugin, self.receive()?)
            }
        };
        self.plugin = Some(plugin);
        match check(account, plugin, &answer, &self.nonce) {
            AuthResult::Right => {
                if plugin == Plugin::CachingSha2 {
                    self.send(&[&[1, FAST_OK]])?;
                }
                Ok(AuthResult::Right)
            }
            AuthResult::Wrong => Ok(AuthResult::Wrong),
            AuthResult::NeedsPassword => self.prove_by_password(account),
        }
    }

    /// caching_sha2: the password itself, inside TLS or under the RSA key.
    fn prove_by_password(&mut self, account: &Account) -> Result<AuthResult, PeerError> {
        self.send(&[&[1, FULL]])?;
        let mut sent = self.receive()?;
        if self.stream.is_tls() {
            return Ok(check_password(account, sent.strip_suffix(&[0]).unwrap_or(&sent)));
        }
        if sent.as_slice() == [REQUEST_KEY] {
            let pem = self.key()?.public_pem().to_owned();
            self.send(&[&[1], pem.as_bytes()])?;
            sent = self.receive()?;
        }
        let key = self.key()?;
        Ok(key.open(&sent, &self.nonce).map_or(AuthResult::Wrong, |password| check_password(account, &password)))
    }

    /// It may still be in the making.
    fn key(&self) -> Result<&'a RsaKey, PeerError> {
        for _ in 0..(Duration::from_secs(8).as_millis() / KEY_STEP.as_millis()) {
            if let Some(key) = self.rsa.get() {
                return Ok(key);
            }
            thread::sleep(KEY_STEP);
        }
        Err(PeerError::Protocol(crate::Error::protocol("there is no RSA key for passwords without TLS")))
    }

    fn deny(&mut self, user: String, from: IpAddr, reason: &'static str) -> PeerError {
        thread::sleep(DENIED_AFTER);
        let text = format!("Access denied for user '{user}'@'{from}' (using password: YES)");
        let _ = self.send(&[&ServerError::new(1045, "28000", text).encode()]);
        PeerError::Denied { user, from, reason }
    }
}

/// What the client has chosen; zlib first, as servers do.
fn compression(login: &Login) -> Option<Method> {
    if login.capabilities & cap::COMPRESS != 0 {
        return Some(Method::Zlib);
    }
    (login.capabilities & cap::ZSTD_COMPRESSION != 0).then_some(Method::Zstd(login.zstd_level))
}

/// An account that nobody can log in to: its password is not known to anybody.
fn nobody(user: &str) -> Account {
    let password: String = nonce(32).into_iter().map(char::from).collect();
    Account::new(user, Verifier::Password(Secret::new(password)), Line::Any)
}

/// Random bytes without zeros, which end texts, and without `$`, as servers have it.
fn nonce(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    OsRng.fill_bytes(&mut bytes);
    bytes.iter().map(|byte| byte % 90 + 37).collect()
}
