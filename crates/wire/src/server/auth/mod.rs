//! Who may log in: accounts, and what is known of their passwords. One file a plugin; none reads or writes the stream, the exchange is driven by `login`.

mod ed25519;
mod native;
mod rsa_key;
mod same;
mod sha2;
mod sha_crypt;

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

pub use self::rsa_key::RsaKey;
use self::same::is_same;
pub use self::sha2::Sha2Hash;
pub(crate) use self::sha2::twice;
use crate::secret::Secret;

/// Looks accounts up.
pub trait Accounts: Sync {
    /// The account of that name which may come from there.
    fn find(&self, user: &str, from: IpAddr) -> Option<Arc<Account>>;
}

/// Who may log in, and how.
#[derive(Debug)]
pub struct Account {
    /// Its name.
    pub user: String,
    /// What is known of its password.
    pub verifier: Verifier,
    /// What the connection has to have.
    pub line: Line,
    /// After a full caching_sha2 login: the digest that makes the next one short.
    pub(crate) remembered: OnceLock<[u8; 32]>,
}

/// What a connection has to have before an account may use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Line {
    /// Nothing.
    #[default]
    Any,
    /// TLS.
    Tls,
    /// TLS, and a certificate of the client's.
    Certificate,
}

impl Account {
    /// An account.
    pub fn new(user: impl Into<String>, verifier: Verifier, line: Line) -> Self {
        Account { user: user.into(), verifier, line, remembered: OnceLock::new() }
    }
}

/// What is known of a password. A hash is as the servers keep it, and takes only the plugin that it is of.
#[derive(Clone, Debug)]
pub enum Verifier {
    /// The password: every plugin is possible.
    Password(Secret),
    /// `mysql_native_password`: SHA1 of SHA1 of it.
    Native([u8; 20]),
    /// `caching_sha2_password`.
    CachingSha2(Sha2Hash),
    /// `ed25519`: the public key.
    Ed25519([u8; 32]),
}

/// The plugins that a client may answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin {
    /// `mysql_native_password`
    Native,
    /// `caching_sha2_password`
    CachingSha2,
    /// `client_ed25519`
    Ed25519,
}

impl Plugin {
    pub(crate) fn from_name(name: &[u8]) -> Option<Plugin> {
        [Plugin::Native, Plugin::CachingSha2, Plugin::Ed25519]
            .into_iter()
            .find(|plugin| plugin.name().as_bytes() == name)
    }

    /// As the protocol names it.
    pub fn name(self) -> &'static str {
        match self {
            Plugin::Native => "mysql_native_password",
            Plugin::CachingSha2 => "caching_sha2_password",
            Plugin::Ed25519 => "client_ed25519",
        }
    }
}

impl Verifier {
    /// Reads a hash as the servers show it: `*40 hex digits` (native), `$A$005$…` (caching_sha2), 43 characters of base64 (ed25519).
    pub fn from_hash(text: &str) -> Option<Verifier> {
        if let Some(hex) = text.strip_prefix('*') {
            return native::from_hex(hex).map(Verifier::Native);
        }
        if text.starts_with("$A$") {
            return Sha2Hash::parse(text.as_bytes()).map(Verifier::CachingSha2);
        }
        ed25519::from_base64(text).map(Verifier::Ed25519)
    }

    /// Whether a client may answer with this plugin.
    pub(crate) fn takes(&self, plugin: Plugin) -> bool {
        match self {
            Verifier::Password(_) => true,
            Verifier::Native(_) => plugin == Plugin::Native,
            Verifier::CachingSha2(_) => plugin == Plugin::CachingSha2,
            Verifier::Ed25519(_) => plugin == Plugin::Ed25519,
        }
    }

    /// The password's hash as a server keeps it that has this plugin, where both sides know it: with it the server shows that its certificate is its own.
    pub(crate) fn stored_hash(&self, plugin: Plugin) -> Option<Vec<u8>> {
        match (self, plugin) {
            (Verifier::Password(password), Plugin::Native) => {
                Some(native::stored(password.expose().as_bytes()).to_vec())
            }
            (Verifier::Password(password), Plugin::Ed25519) => {
                Some(ed25519::public_key(password.expose().as_bytes()).to_vec())
            }
            (Verifier::Native(stored), Plugin::Native) => Some(stored.to_vec()),
            (Verifier::Ed25519(key), Plugin::Ed25519) => Some(key.to_vec()),
            _ => None,
        }
    }

    /// The plugin that a client is asked to use when its own choice cannot be taken.
    pub(crate) fn plugin(&self, default: Plugin) -> Plugin {
        match self {
            Verifier::Password(_) => default,
            Verifier::Native(_) => Plugin::Native,
            Verifier::CachingSha2(_) => Plugin::CachingSha2,
            Verifier::Ed25519(_) => Plugin::Ed25519,
        }
    }
}

/// What an answer to a nonce shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthResult {
    Right,
    Wrong,
    /// caching_sha2: the password itself is needed.
    NeedsPassword,
}

/// Checks the first answer of a plugin that the verifier takes.
pub(crate) fn check(account: &Account, plugin: Plugin, answer: &[u8], nonce: &[u8]) -> AuthResult {
    let right = match (&account.verifier, plugin) {
        (Verifier::Password(password), Plugin::Native) => {
            native::is_right(&native::stored(password.expose().as_bytes()), answer, nonce)
        }
        (Verifier::Native(stored), Plugin::Native) => native::is_right(stored, answer, nonce),
        (Verifier::Password(password), Plugin::CachingSha2) => {
            sha2::is_right(&twice(password.expose().as_bytes()), answer, nonce)
        }
        (Verifier::CachingSha2(_), Plugin::CachingSha2) => {
            let known = account.remembered.get().is_some_and(|digest| sha2::is_right(digest, answer, nonce));
            if !known && !answer.is_empty() {
                return AuthResult::NeedsPassword;
            }
            known
        }
        (Verifier::Password(password), Plugin::Ed25519) => {
            ed25519::is_right(&ed25519::public_key(password.expose().as_bytes()), answer, nonce)
        }
        (Verifier::Ed25519(key), Plugin::Ed25519) => ed25519::is_right(key, answer, nonce),
        _ => false,
    };
    if right { AuthResult::Right } else { AuthResult::Wrong }
}

/// Checks the password itself.
pub(crate) fn check_password(account: &Account, password: &[u8]) -> AuthResult {
    let right = match &account.verifier {
        Verifier::Password(known) => is_same(known.expose().as_bytes(), password),
        Verifier::CachingSha2(hash) => hash.is_of(password),
        Verifier::Native(_) | Verifier::Ed25519(_) => false,
    };
    if !right || password.is_empty() {
        return AuthResult::Wrong;
    }
    if matches!(account.verifier, Verifier::CachingSha2(_)) {
        let _ = account.remembered.set(twice(password));
    }
    AuthResult::Right
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hashes_as_servers_show_them() {
        let native = Verifier::from_hash("*14E65567ABDB5135D0CFD9A70B3032C179A49EE7");
        assert!(matches!(native, Some(Verifier::Native(hash)) if hash == native::stored(b"secret")));
        let ed25519 = Verifier::from_hash("ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY");
        assert!(matches!(ed25519, Some(Verifier::Ed25519(key)) if key == ed25519::public_key(b"secret")));
        for wrong in ["", "*14E6", "*14E65567ABDB5135D0CFD9A70B3032C179A49EEZ", "secret", "$A$005$short"] {
            assert!(Verifier::from_hash(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn an_empty_answer_is_never_right() {
        let secret = || Verifier::Password(Secret::new("secret"));
        let accounts = [secret(), Verifier::Native([0; 20]), Verifier::Ed25519([0; 32])];
        for verifier in accounts {
            let account = Account::new("u", verifier, Line::Any);
            for plugin in [Plugin::Native, Plugin::CachingSha2, Plugin::Ed25519] {
                assert_eq!(check(&account, plugin, b"", b"12345678901234567890"), AuthResult::Wrong);
            }
            assert_eq!(check_password(&account, b""), AuthResult::Wrong);
        }
    }

    proptest! {
        #[test]
        fn any_bytes(answer: Vec<u8>, nonce: Vec<u8>, hash: String) {
            let account = Account::new("u", Verifier::Password(Secret::new("secret")), Line::Any);
            for plugin in [Plugin::Native, Plugin::CachingSha2, Plugin::Ed25519] {
                prop_assert_eq!(check(&account, plugin, &answer, &nonce), AuthResult::Wrong);
            }
            let _ = Verifier::from_hash(&hash);
        }
    }
}
