//! How clients are received, and why one is served no longer.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::auth::{Plugin, RsaKey};
use super::tls::ServerTls;
use crate::error::Error;

/// Why a client is served no longer. None of them is an error of this process.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// It has left, or could not be reached in time.
    #[error("the connection ended while {during}: {source}")]
    Gone {
        /// In words that fit after "while".
        during: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// It did not log in rightly; it was told so.
    #[error("access denied for {user:?} from {from}: {reason}")]
    Denied {
        /// The name that it gave.
        user: String,
        /// Its address.
        from: IpAddr,
        /// Never a part of the password.
        reason: &'static str,
    },
    /// It speaks something else.
    #[error("{0}")]
    Protocol(Error),
}

/// What a client sees of the server before it has logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The version as a greeting has it.
    pub version: String,
    /// Number of the default collation.
    pub charset: u8,
    /// The plugin that clients try first.
    pub plugin: Plugin,
}

/// How clients are received.
#[derive(Clone, Debug)]
pub struct PeerOptions {
    /// What the greeting says.
    pub identity: Identity,
    /// None: TLS is not offered.
    pub tls: Option<Arc<ServerTls>>,
    /// For passwords without TLS; it may still be in the making.
    pub rsa: Arc<OnceLock<RsaKey>>,
    /// How long a login may take, all in all.
    pub login_timeout: Duration,
    /// How long a client may be silent between commands.
    pub idle_timeout: Duration,
    /// How long a client may take in nothing of what it is sent.
    pub write_timeout: Duration,
    /// Largest command: the longest that a replica sends is a set of GTIDs.
    pub command_bytes_max: usize,
}

impl PeerOptions {
    /// With the servers' usual limits.
    pub fn new(identity: Identity) -> Self {
        PeerOptions {
            identity,
            tls: None,
            rsa: Arc::default(),
            login_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(28_800),
            write_timeout: Duration::from_secs(60),
            command_bytes_max: 4 << 20,
        }
    }
}
