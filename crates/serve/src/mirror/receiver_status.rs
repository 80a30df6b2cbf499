//! The mirror's connection to its source, as a replica's receiver shows it: host, user, whether it is connected.

use wire::{ConnectOptions, SslMode};

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiverStatus {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub uses_tls: bool,
    /// The source's stream comes.
    pub is_attached: bool,
    /// It came lately, or a heartbeat did.
    pub is_heard: bool,
    /// The error that ended the last connection, until the next one is there.
    pub error: Option<String>,
}

impl ReceiverStatus {
    /// The status before the first connection with these options.
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
