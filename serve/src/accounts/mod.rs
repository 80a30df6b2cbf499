//! Who may attach: accounts from the command line and from a file, each with the networks that it may come from.
//!
//! It never shows a password, and takes none that is empty.

mod network;

use std::net::IpAddr;
use std::sync::Arc;

use serde::Deserialize;
use wire::Secret;
use wire::server::{Account, Accounts, Line, Verifier};

use self::network::Network;

/// Why accounts can not be used. The texts name the account, never its password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    #[error("the accounts file: {0}")]
    Syntax(String),
    #[error("account {user}: {reason}")]
    Account { user: String, reason: String },
}

/// All accounts of a server.
#[derive(Debug, Default)]
pub struct Book {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    account: Arc<Account>,
    /// Empty: from everywhere.
    networks: Vec<Network>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    #[serde(default)]
    account: Vec<AccountText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountText {
    user: String,
    password: Option<String>,
    hash: Option<String>,
    #[serde(default)]
    networks: Vec<String>,
    #[serde(default)]
    require: RequireText,
}

#[derive(Default, Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum RequireText {
    #[default]
    Nothing,
    Tls,
    Certificate,
}

impl Book {
    /// An account with a password, from everywhere.
    pub fn add(&mut self, user: &str, password: Secret) -> Result<(), AccountError> {
        let wrong = |reason: &str| AccountError::Account { user: user.to_owned(), reason: reason.to_owned() };
        if user.is_empty() {
            return Err(wrong("it has no name"));
        }
        if password.is_empty() {
            return Err(wrong("its password is empty"));
        }
        let account = Account::new(user, Verifier::Password(password), Line::Any);
        self.entries.push(Entry { account: Arc::new(account), networks: Vec::new() });
        Ok(())
    }

    /// The accounts of a file: `[[account]]` with `user`, `password` or `hash`, `networks`, `require`.
    pub fn add_file(&mut self, text: &str) -> Result<(), AccountError> {
        // What stands at the place of an error may be a password: only what is wrong is shown, and the line.
        let parsed: FileText = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(0, |span| text.get(..span.start).unwrap_or_default().lines().count());
            AccountError::Syntax(format!("line {}: {}", line.max(1), error.message()))
        })?;
        for account in parsed.account {
            self.entries.push(entry(account)?);
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether an account's password can only be checked when the client sends it.
    pub fn needs_key(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.account.verifier, Verifier::CachingSha2(_)))
    }

    /// Whether an account wants TLS.
    pub fn needs_tls(&self) -> bool {
        self.entries.iter().any(|entry| entry.account.line > Line::Any)
    }
}

fn entry(text: AccountText) -> Result<Entry, AccountError> {
    let user = text.user;
    let wrong = |reason: &str| AccountError::Account { user: user.clone(), reason: reason.to_owned() };
    if user.is_empty() {
        return Err(wrong("it has no name"));
    }
    let verifier = match (text.password, text.hash) {
        (Some(password), None) if !password.is_empty() => Verifier::Password(Secret::new(password)),
        (Some(_), None) => return Err(wrong("its password is empty")),
        (None, Some(hash)) => {
            let unknown = "its hash is none of mysql_native_password (*…), caching_sha2_password ($A$…, or 0x… of its bytes), ed25519 (43 characters)";
            from_hash(&hash).ok_or_else(|| wrong(unknown))?
        }
        (None, None) => return Err(wrong("it has neither password nor hash")),
        (Some(_), Some(_)) => return Err(wrong("it has both password and hash")),
    };
    let networks = text
        .networks
        .iter()
        .map(|network| {
            Network::parse(network).ok_or_else(|| wrong(&format!("{network:?} is no network such as 10.0.0.0/8")))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let line = match text.require {
        RequireText::Nothing => Line::Any,
        RequireText::Tls => Line::Tls,
        RequireText::Certificate => Line::Certificate,
    };
    Ok(Entry { account: Arc::new(Account::new(user, verifier, line)), networks })
}

fn from_hash(text: &str) -> Option<Verifier> {
    let Some(digits) = text.strip_prefix("0x") else { return Verifier::from_hash(text) };
    let bytes = hex::decode(digits).ok()?;
    Verifier::from_hash(std::str::from_utf8(&bytes).ok()?)
}

impl Accounts for Book {
    fn find(&self, user: &str, from: IpAddr) -> Option<Arc<Account>> {
        let found = self.entries.iter().find(|entry| {
            let may_come = entry.networks.is_empty() || entry.networks.iter().any(|network| network.has(from));
            entry.account.user == user && may_come
        });
        found.map(|entry| Arc::clone(&entry.account))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [[account]]
        user = "repl"
        password = "secret"
        networks = ["10.0.0.0/8", "fd00::/8", "192.168.1.7"]

        [[account]]
        user = "repl"
        hash = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"
        networks = ["127.0.0.1"]
        require = "certificate"

        [[account]]
        user = "sha2"
        hash = "0x24412430304124202020202020202020202020202020202020202021212121212121212121212121212121212121212121212121212121212121212121212121212121212121"
    "#;

    #[test]
    fn accounts_by_name_and_network() {
        let mut book = Book::default();
        book.add_file(FILE).unwrap();
        let find = |user: &str, from: &str| book.find(user, from.parse().unwrap());
        assert!(matches!(find("repl", "10.1.2.3").unwrap().verifier, Verifier::Password(_)));
        assert!(matches!(find("repl", "fd00::7").unwrap().verifier, Verifier::Password(_)));
        assert!(matches!(find("repl", "192.168.1.7").unwrap().verifier, Verifier::Password(_)));
        assert_eq!(find("repl", "127.0.0.1").unwrap().line, Line::Certificate);
        assert!(find("repl", "192.168.1.8").is_none() && find("nobody", "10.1.2.3").is_none());
        assert!(find("sha2", "1.2.3.4").is_some() && book.needs_key() && book.needs_tls());
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        let check = |text: &str, want: &str| {
            let error = Book::default().add_file(text).unwrap_err().to_string();
            assert!(error.contains(want) && !error.contains("hunter2"), "{error}");
        };
        check("[[account]]\nuser = \"a\"", "account a: it has neither password nor hash");
        check("[[account]]\nuser = \"a\"\npassword = \"\"", "account a: its password is empty");
        check("[[account]]\nuser = \"a\"\npassword = \"hunter2\"\nhash = \"*\"", "both");
        check("[[account]]\nuser = \"a\"\nhash = \"hunter2\"", "none of mysql_native_password");
        check("[[account]]\nuser = \"a\"\npassword = \"hunter2\"\nnetworks = [\"10.0.0.0/99\"]", "no network");
        check("[[account]]\nuser = \"a\"\npassword = hunter2", "line 3");
        check("[[account]]\nuser = \"a\"\npasswort = \"hunter2\"", "passwort");
        assert!(Book::default().add("u", Secret::new("")).is_err());
    }
}
