//! Where and how to connect.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::secret::Secret;

/// How far a connection must be encrypted and the server's certificate checked, as the servers' own clients name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    /// Never TLS.
    Disabled,
    /// TLS if the server offers it (not over a unix socket), whatever its certificate. With `ssl_ca` it becomes
    /// [`SslMode::VerifyCa`].
    #[default]
    Preferred,
    /// TLS or no connection; any certificate. With `ssl_ca` it becomes [`SslMode::VerifyCa`].
    Required,
    /// TLS with a certificate signed by `ssl_ca`, whatever name it has.
    VerifyCa,
    /// TLS with a certificate signed by `ssl_ca` that is for the host connected to.
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
    /// TLS mode.
    pub ssl_mode: SslMode,
    /// PEM file with the certificates of the authorities to trust.
    pub ssl_ca: Option<PathBuf>,
    /// PEM file with this client's certificate.
    pub ssl_cert: Option<PathBuf>,
    /// PEM file with the key of `ssl_cert`.
    pub ssl_key: Option<PathBuf>,
    /// Limit for connecting, and for every wait during the login.
    pub connect_timeout: Duration,
    /// Limit for every wait for an answer after the login; none waits for ever.
    pub read_timeout: Option<Duration>,
    /// Idle time after which the system probes a TCP connection; none leaves that off.
    pub tcp_keepalive: Option<Duration>,
    /// Shown as `program_name` in the server's connection attributes.
    pub program_name: String,
    /// Clones share it: the server has been connected to with TLS, so that it is never again connected to in clear for an old one.
    pub had_tls: Arc<AtomicBool>,
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
            ssl_mode: SslMode::default(),
            ssl_ca: None,
            ssl_cert: None,
            ssl_key: None,
            connect_timeout: Duration::from_secs(10),
            read_timeout: None,
            tcp_keepalive: Some(Duration::from_secs(60)),
            program_name: "heddle".to_owned(),
            had_tls: Arc::default(),
        }
    }
}

impl ConnectOptions {
    /// Where this connects to, for messages: `user@host:port` or `user@/path`, never with the password.
    pub fn address(&self) -> String {
        match &self.socket {
            Some(path) => format!("{}@{}", self.user, path.display()),
            None if self.host.contains(':') => {
                format!("{}@[{}]:{}", self.user, self.host, self.port)
            }
            None => format!("{}@{}:{}", self.user, self.host, self.port),
        }
    }

    /// The TLS mode that is in effect: naming an authority means wanting it checked, as in MySQL's clients.
    pub fn effective_ssl_mode(&self) -> SslMode {
        match self.ssl_mode {
            SslMode::Preferred | SslMode::Required if self.ssl_ca.is_some() => SslMode::VerifyCa,
            mode => mode,
        }
    }
}
