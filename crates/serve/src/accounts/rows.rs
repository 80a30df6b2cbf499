//! Accounts as a server stores them: rows of `mysql.user` (MySQL, MariaDB before 10.4) and of `mysql.global_priv` (MariaDB 10.4 and later).
//!
//! Facts: MySQL's manual, "Grant Tables"; MariaDB's, "mysql.user Table" and "mysql.global_priv Table"; bits of `access` as in the view `mysql.user`.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wire::server::Verifier;

use super::entry::Require;

/// `REPLICATION SLAVE` in MariaDB's `access`.
const REPLICATION_SLAVE: u64 = 1 << 19;

/// One account of the source. Its hash is never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SourceAccount {
    pub(super) user: String,
    pub(super) host: String,
    pub(super) usable: AccountUse,
}

/// What can be done with an account here.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AccountUse {
    /// It can be used.
    Yes { hash: String, require: Require },
    /// It may replicate from the source, and can not be used here: why.
    Not(String),
    /// It may not replicate from the source either.
    MayNot,
}

impl fmt::Debug for SourceAccount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

impl fmt::Display for SourceAccount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.user, if self.host.is_empty() { "%" } else { &self.host })
    }
}

impl SourceAccount {
    /// Parses a row of `mysql.user`; `column` takes names in lower case. `None`: a role, or an anonymous account.
    pub(super) fn of_user(column: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let text = |name: &str| column(name).unwrap_or_default();
        let is = |name: &str| text(name).eq_ignore_ascii_case("y");
        let user = text("user");
        if user.is_empty() || is("is_role") {
            return None;
        }
        let usable = if !is("repl_slave_priv") {
            AccountUse::MayNot
        } else if is("account_locked") {
            AccountUse::Not("it is locked".to_owned())
        } else if is("password_expired") {
            AccountUse::Not("its password has expired".to_owned())
        } else {
            let hash = Some(text("authentication_string")).filter(|hash| !hash.is_empty());
            usable(&text("plugin"), &hash.unwrap_or_else(|| text("password")), &text("ssl_type"))
        };
        Some(Self { user, host: text("host"), usable })
    }

    /// Parses a row of `mysql.global_priv`, whose `Priv` is JSON. `None`: a role, or an anonymous account.
    pub(super) fn of_global_priv(user: &str, host: &str, json: &str) -> Option<Self> {
        let found: Value = serde_json::from_str(json).unwrap_or_default();
        let is = |name: &str| found.get(name).and_then(Value::as_bool) == Some(true);
        if user.is_empty() || is("is_role") {
            return None;
        }
        let access = found.get("access").and_then(Value::as_u64).unwrap_or_default();
        let usable = if access & REPLICATION_SLAVE == 0 {
            AccountUse::MayNot
        } else if is("account_locked") {
            AccountUse::Not("it is locked".to_owned())
        } else if found.get("password_last_changed").and_then(Value::as_u64) == Some(0) {
            AccountUse::Not("its password has expired".to_owned())
        } else {
            // ssl_type: 0 nothing, 1 ANY, 2 X509, 3 SPECIFIED.
            let ssl = match found.get("ssl_type").and_then(Value::as_i64).unwrap_or_default() {
                ..=0 => "",
                1 => "ANY",
                2 => "X509",
                _ => "SPECIFIED",
            };
            one_of(&found, ssl)
        };
        Some(Self { user: user.to_owned(), host: host.to_owned(), usable })
    }
}

/// `IDENTIFIED VIA a OR b`: the first way that can be used here. An empty one stands for the account's own.
fn one_of(found: &Value, ssl: &str) -> AccountUse {
    let own = [found.clone()];
    let ways = found.get("auth_or").and_then(Value::as_array).map_or(&own[..], Vec::as_slice);
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut why = None;
    for way in ways {
        let way = if way.get("plugin").is_some() { way } else { found };
        match usable(&text(way, "plugin"), &text(way, "authentication_string"), ssl) {
            AccountUse::Not(reason) => why = why.or(Some(reason)),
            yes => return yes,
        }
    }
    AccountUse::Not(why.unwrap_or_else(|| "it has no password".to_owned()))
}

fn usable(plugin: &str, hash: &str, ssl: &str) -> AccountUse {
    let require = match ssl.to_ascii_uppercase().as_str() {
        "" => Require::Nothing,
        "ANY" => Require::Tls,
        "X509" => Require::Certificate,
        _ => return AccountUse::Not("it requires a certain certificate or cipher".to_owned()),
    };
    let is_known = match (plugin, Verifier::from_hash(hash)) {
        ("" | "mysql_native_password", verifier) => matches!(verifier, Some(Verifier::Native(_))),
        ("caching_sha2_password", verifier) => matches!(verifier, Some(Verifier::CachingSha2(_))),
        ("ed25519", verifier) => matches!(verifier, Some(Verifier::Ed25519(_))),
        (other, _) => return AccountUse::Not(format!("its plugin is {other}")),
    };
    match (hash, is_known) {
        ("", _) => AccountUse::Not("it has no password".to_owned()),
        (_, false) => AccountUse::Not("its password has no known form".to_owned()),
        (hash, true) => AccountUse::Yes { hash: hash.to_owned(), require },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NATIVE: &str = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7";
    const ED25519: &str = "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY";

    fn shown(account: Option<SourceAccount>) -> String {
        match account.map(|account| account.usable) {
            None => "none".to_owned(),
            Some(AccountUse::Yes { hash, require }) => format!("{require:?} {hash}"),
            Some(AccountUse::Not(why)) => why,
            Some(AccountUse::MayNot) => "may not".to_owned(),
        }
    }

    #[test]
    fn rows_of_mysql_user() {
        let check = |columns: &[(&str, &str)], want: &str| {
            let base = [("user", "repl"), ("host", "%"), ("repl_slave_priv", "Y")];
            let find = |name: &str| columns.iter().chain(&base).find(|column| column.0 == name);
            let account = SourceAccount::of_user(&|name| find(name).map(|column| column.1.to_owned()));
            assert_eq!(shown(account), want, "{columns:?}");
        };
        let sha2 = format!("$A$005${}{}", "s".repeat(20), "h".repeat(43));
        // MySQL 5.6, MariaDB before 10.4; MySQL 5.7; 8.0.
        check(&[("password", NATIVE), ("plugin", ""), ("authentication_string", "")], &format!("Nothing {NATIVE}"));
        check(&[("plugin", "mysql_native_password"), ("authentication_string", NATIVE)], &format!("Nothing {NATIVE}"));
        check(
            &[("plugin", "caching_sha2_password"), ("authentication_string", &sha2), ("ssl_type", "ANY")],
            &format!("Tls {sha2}"),
        );
        let native = ("authentication_string", NATIVE);
        check(&[native, ("ssl_type", "X509")], &format!("Certificate {NATIVE}"));
        check(&[native, ("ssl_type", "SPECIFIED")], "it requires a certain certificate or cipher");
        check(&[native, ("account_locked", "Y")], "it is locked");
        check(&[native, ("password_expired", "Y")], "its password has expired");
        check(&[native, ("repl_slave_priv", "N")], "may not");
        check(&[native, ("is_role", "Y")], "none");
        check(&[native, ("user", "")], "none");
        check(&[native, ("plugin", "caching_sha2_password")], "its password has no known form");
        check(&[native, ("plugin", "auth_socket")], "its plugin is auth_socket");
        check(&[("plugin", "mysql_native_password")], "it has no password");
    }

    #[test]
    fn rows_of_global_priv() {
        let check = |json: &str, want: &str| {
            assert_eq!(shown(SourceAccount::of_global_priv("repl", "%", json)), want, "{json}");
        };
        let with = |more: &str| {
            format!(
                r#"{{"access":524288,"version_id":101119,"plugin":"mysql_native_password","authentication_string":"{NATIVE}"{more}}}"#
            )
        };
        check(&with(""), &format!("Nothing {NATIVE}"));
        check(&with(r#","password_last_changed":1700000000,"ssl_type":0"#), &format!("Nothing {NATIVE}"));
        check(&with(r#","ssl_type":1"#), &format!("Tls {NATIVE}"));
        check(&with(r#","ssl_type":3"#), "it requires a certain certificate or cipher");
        check(&with(r#","account_locked":true"#), "it is locked");
        check(&with(r#","password_last_changed":0"#), "its password has expired");
        check(&with(r#","is_role":true"#), "none");
        check(&with("").replace("524288", "18446744073709027327"), "may not");
        // unix_socket OR ed25519: the second can be used.
        let or = format!(
            r#"{{"access":524288,"plugin":"ed25519","authentication_string":"{ED25519}","auth_or":[{{"plugin":"unix_socket"}},{{}}]}}"#
        );
        check(&or, &format!("Nothing {ED25519}"));
        check(r#"{"access":524288,"plugin":"unix_socket"}"#, "its plugin is unix_socket");
        check("no JSON", "may not");
    }

    #[test]
    fn no_hash_is_shown() {
        let account = SourceAccount::of_user(&|name| {
            Some(if name == "authentication_string" { NATIVE } else { "y" }.to_owned()).filter(|_| name != "is_role")
        });
        assert!(!format!("{account:?}").contains("14E65567"));
    }
}
