//! The accounts that may attach: from the command line, from a file, and from the source. Each has the hosts or networks that it may connect from.
//!
//! It never shows a password or a hash, and accepts no empty password.

mod entry;
mod file;
mod host;
mod network;
mod rows;
mod source;

use std::net::IpAddr;
use std::sync::Arc;

use wire::Secret;
use wire::server::{Account, Accounts, Line, Verifier};

pub use self::entry::AccountError;
use self::entry::Entry;
pub use self::source::{AccountReader, SourceAccounts};

/// All accounts of a server. An account that was given here takes precedence over the source's.
#[derive(Debug, Default)]
pub struct Book {
    entries: Vec<Entry>,
    of_source: Option<Arc<SourceAccounts>>,
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
        self.entries.extend(file::entries(text)?);
        Ok(())
    }

    /// Also those of the source, as they are at the time of a login.
    pub fn add_source(&mut self, accounts: Arc<SourceAccounts>) {
        self.of_source = Some(accounts);
    }

    /// Nobody can ever attach.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.of_source.is_none()
    }

    /// Whether an account's password can only be checked when the client sends it.
    pub fn needs_key(&self) -> bool {
        self.of_source.is_some()
            || self.entries.iter().any(|entry| matches!(entry.account.verifier, Verifier::CachingSha2(_)))
    }

    /// Whether an account wants TLS.
    pub fn needs_tls(&self) -> bool {
        self.entries.iter().any(|entry| entry.account.line > Line::Any)
    }
}

impl Accounts for Book {
    fn find(&self, user: &str, from: IpAddr) -> Option<Arc<Account>> {
        let found = self.entries.iter().find(|entry| {
            let may_come = entry.networks.is_empty() || entry.networks.iter().any(|network| network.has(from));
            entry.account.user == user && may_come
        });
        let of_source = || self.of_source.as_ref().and_then(|accounts| accounts.find(user, from));
        found.map(|entry| Arc::clone(&entry.account)).or_else(of_source)
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
