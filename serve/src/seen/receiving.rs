//! How the mirror stands to its source: whom it reads from, and whether it does now.

use wire::{ConnectOptions, SslMode};

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receiving {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub uses_tls: bool,
    /// The source's stream comes.
    pub is_attached: bool,
    /// What the last connection ended with, until the next one stands.
    pub error: Option<String>,
}

impl Receiving {
    /// From there, as it is asked for.
    pub fn from(options: &ConnectOptions) -> Self {
        Self {
            host: options.host.clone(),
            port: options.port,
            user: options.user.clone(),
            uses_tls: options.tls.mode != SslMode::Disabled,
            ..Self::default()
        }
    }
}
