//! Where and how to connect.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use binlog::text::escape;

use super::interrupt::Interrupt;
use crate::secret::Secret;

/// How far a connection must be encrypted and the server's certificate checked, as the servers' own clients name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    /// Never TLS.
    Disabled,
    /// TLS if the server offers it (not over a unix socket), whatever its certificate. With an authority it becomes
    /// [`SslMode::VerifyCa`].
    #[default]
    Preferred,
    /// TLS or no connection; any certificate. With an authority it becomes [`SslMode::VerifyCa`].
    Required,
    /// TLS with a certificate signed by an authority of [`TlsOptions::ca`], whatever name it has. Without an authority, a MariaDB server from 11.4 on
    /// has to show at the end of the login that it knows the password, and that the certificate is its own.
    VerifyCa,
    /// TLS with a certificate signed by an authority of [`TlsOptions::ca`] that is for the host connected to. Without an authority as
    /// [`SslMode::VerifyCa`].
    VerifyIdentity,
}

impl SslMode {
    pub(crate) const NAMES: &'static str = "disabled, preferred, required, verify-ca, verify-identity";

    /// Reads the names that the servers' clients use, in any case, with `-` or `_`.
    pub fn from_name(name: &str) -> Option<SslMode> {
        match name.to_ascii_lowercase().replace('_', "-").as_str() {
            "disabled" | "disable" => Some(SslMode::Disabled),
            "preferred" | "prefer" => Some(SslMode::Preferred),
            "required" | "require" => Some(SslMode::Required),
            "verify-ca" => Some(SslMode::VerifyCa),
            "verify-identity" | "verify-full" => Some(SslMode::VerifyIdentity),
            _ => None,
        }
    }
}

/// How a connection is encrypted.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Whether, and what is checked.
    pub mode: SslMode,
    /// PEM file with the certificates of the authorities to trust.
    pub ca: Option<PathBuf>,
    /// PEM file with this client's certificate.
    pub cert: Option<PathBuf>,
    /// PEM file with the key of `cert`.
    pub key: Option<PathBuf>,
    /// Clones share it: the server has been connected to with TLS, so that it is never again connected to in clear for an old one.
    pub had_tls: Arc<AtomicBool>,
}

/// When a password may leave this process in a form that a false server could read. The names are those of MySQL's clients; by default it does not.
#[derive(Clone, Debug, Default)]
pub struct PasswordOptions {
    /// PEM file with the server's RSA key: without TLS the password is encrypted with this one only (`server-public-key-path`).
    pub server_public_key: Option<PathBuf>,
    /// Without TLS, encrypt the password with whatever RSA key the server sends (`get-server-public-key`).
    pub get_server_public_key: bool,
    /// Answer the plugin mysql_clear_password over TLS whose certificate is not checked, and over a unix socket (`enable-cleartext-plugin`).
    pub cleartext_plugin: bool,
}

/// How long to wait, and how much to take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// For connecting and the login, together.
    pub connect_timeout: Duration,
    /// For every wait for an answer after the login; none waits for ever.
    pub read_timeout: Option<Duration>,
    /// TCP: so long without an acknowledgement from the other machine ends the connection; none leaves it to the system. However
    /// long the server works on a statement, its machine acknowledges.
    pub dead_peer_timeout: Option<Duration>,
    /// The most bytes that the answer to one query may have.
    pub answer_bytes_max: usize,
    /// Ends all waiting.
    pub interrupt: Interrupt,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connect_timeout: Duration::from_secs(10),
            read_timeout: None,
            dead_peer_timeout: Some(Duration::from_secs(30)),
            answer_bytes_max: 256 << 20,
            interrupt: Interrupt::default(),
        }
    }
}

/// Everything needed to connect. `Debug` does not show the password.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Host name or address; not used when `socket` is set.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Unix socket to use instead of TCP.
    pub socket: Option<PathBuf>,
    /// Account name.
    pub user: String,
    /// Password; none and empty are the same to the servers.
    pub password: Option<Secret>,
    /// Default database.
    pub database: Option<String>,
    /// Encryption.
    pub tls: TlsOptions,
    /// What may become of the password.
    pub password_options: PasswordOptions,
    /// Waits and sizes.
    pub limits: Limits,
    /// Shown as `program_name` in the server's connection attributes.
    pub program_name: String,
}

impl Default for ConnectOptions {
    /// 127.0.0.1:3306 as the user of the operating system, without a password.
    fn default() -> Self {
        ConnectOptions {
            host: "127.0.0.1".to_owned(),
            port: 3306,
            socket: None,
            user: std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "root".to_owned()),
            password: None,
            database: None,
            tls: TlsOptions::default(),
            password_options: PasswordOptions::default(),
            limits: Limits::default(),
            program_name: "heddle".to_owned(),
        }
    }
}

impl ConnectOptions {
    /// Where this connects to, for messages: `user@host:port` or `user@/path`, never with the password.
    pub fn address(&self) -> String {
        let address = match &self.socket {
            Some(path) => format!("{}@{}", self.user, path.display()),
            None if self.host.contains(':') => {
                format!("{}@[{}]:{}", self.user, self.host, self.port)
            }
            None => format!("{}@{}:{}", self.user, self.host, self.port),
        };
        // The host can come from a server: a replica says where its source is.
        escape(&address).into_owned()
    }

    /// The same, for a connection that waits for its login and for each answer no longer than `patience`.
    #[must_use]
    pub fn within(&self, patience: Duration) -> Self {
        let mut options = self.clone();
        options.limits.connect_timeout = options.limits.connect_timeout.min(patience);
        options.limits.read_timeout = Some(patience);
        options
    }

    /// The TLS mode that is in effect: naming an authority means wanting it checked, as in MySQL's clients.
    pub fn effective_ssl_mode(&self) -> SslMode {
        match self.tls.mode {
            SslMode::Preferred | SslMode::Required if self.tls.ca.is_some() => SslMode::VerifyCa,
            mode => mode,
        }
    }

    /// Whether only the end of the login shows if the server's certificate is its own.
    pub(crate) fn verifies_by_password(&self) -> bool {
        self.tls.ca.is_none() && matches!(self.tls.mode, SslMode::VerifyCa | SslMode::VerifyIdentity)
    }
}
