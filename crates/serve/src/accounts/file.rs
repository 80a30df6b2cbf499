//! The accounts file: `[[account]]` with `user`, `password` or `hash`, `networks`, `require`.

use std::sync::Arc;

use serde::Deserialize;
use wire::Secret;
use wire::server::{Account, Verifier};

use super::entry::{AccountError, Entry, Require};
use super::network::Network;

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
    require: Require,
}

/// Reads it.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, AccountError> {
    // What stands at the place of an error may be a password: only what is wrong is shown, and the line.
    let parsed: FileText = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(0, |span| text.get(..span.start).unwrap_or_default().lines().count());
        AccountError::Syntax(format!("line {}: {}", line.max(1), error.message()))
    })?;
    parsed.account.into_iter().map(entry).collect()
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
    Ok(Entry { account: Arc::new(Account::new(user, verifier, text.require.line())), networks })
}

fn from_hash(text: &str) -> Option<Verifier> {
    let Some(digits) = text.strip_prefix("0x") else { return Verifier::from_hash(text) };
    let bytes = hex::decode(digits).ok()?;
    Verifier::from_hash(std::str::from_utf8(&bytes).ok()?)
}
