//! An account from the command line or the accounts file, and what it requires of a connection.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wire::server::{Account, Line};

use super::network::Network;

/// Why accounts can not be used. The texts name the account, never its password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    #[error("the accounts file: {0}")]
    Syntax(String),
    #[error("account {user}: {reason}")]
    Account { user: String, reason: String },
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) account: Arc<Account>,
    /// Empty: from everywhere.
    pub(super) networks: Vec<Network>,
}

/// What an account's connection has to have.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Require {
    #[default]
    Nothing,
    Tls,
    Certificate,
}

impl Require {
    pub(super) fn line(self) -> Line {
        match self {
            Self::Nothing => Line::Any,
            Self::Tls => Line::Tls,
            Self::Certificate => Line::Certificate,
        }
    }
}
