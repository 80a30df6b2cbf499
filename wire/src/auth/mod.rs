//! Authentication plugins: what each answers to the server's nonce. One file per plugin; none reads or writes the
//! stream, the exchange is driven by `connection`.

mod caching_sha2;
mod ed25519;
mod native;
mod rsa_key;

pub(crate) use rsa_key::encrypt_password;

use crate::error::Error;

/// The plugins that are supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plugin {
    Native,
    CachingSha2,
    Sha256,
    ClearText,
    Ed25519,
    /// The server asks the operating system who is at the other end of the unix socket.
    Socket,
}

/// What a plugin sends first.
pub(crate) enum Answer {
    Bytes(Vec<u8>),
    /// The password goes over the stream as it is.
    ClearPassword,
    /// The server's RSA key is asked for with this byte.
    RequestKey(u8),
}

impl Plugin {
    pub(crate) fn from_name(name: &str) -> Option<Plugin> {
        match name {
            "mysql_native_password" => Some(Plugin::Native),
            "caching_sha2_password" => Some(Plugin::CachingSha2),
            "sha256_password" => Some(Plugin::Sha256),
            "mysql_clear_password" => Some(Plugin::ClearText),
            "client_ed25519" => Some(Plugin::Ed25519),
            "auth_socket" | "unix_socket" | "auth_socket_client" => Some(Plugin::Socket),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Plugin::Native => "mysql_native_password",
            Plugin::CachingSha2 => "caching_sha2_password",
            Plugin::Sha256 => "sha256_password",
            Plugin::ClearText => "mysql_clear_password",
            Plugin::Ed25519 => "client_ed25519",
            Plugin::Socket => "auth_socket",
        }
    }

    /// The first answer. `private`: nobody can listen in (TLS or unix socket). `tls`: it is TLS.
    pub(crate) fn answer(self, password: &str, nonce: &[u8], private: bool, tls: bool) -> Result<Answer, Error> {
        let password_bytes = password.as_bytes();
        Ok(match self {
            Plugin::Native => Answer::Bytes(native::scramble(password_bytes, nonce)),
            Plugin::CachingSha2 => Answer::Bytes(caching_sha2::scramble(password_bytes, nonce)),
            Plugin::Ed25519 => Answer::Bytes(ed25519::sign(password_bytes, nonce)),
            Plugin::Socket => Answer::Bytes(Vec::new()),
            Plugin::Sha256 if password.is_empty() => Answer::Bytes(vec![0]),
            // The server takes the clear password only over TLS, not over a unix socket.
            Plugin::Sha256 if tls => Answer::ClearPassword,
            Plugin::Sha256 => Answer::RequestKey(1),
            Plugin::ClearText if private => Answer::ClearPassword,
            Plugin::ClearText => {
                return Err(Error::Auth {
                    code: 0,
                    message: "the account's plugin mysql_clear_password sends the password unencrypted".to_owned(),
                    hint: "It was not sent. Use ssl-mode=required (better: verify-identity) or the unix socket."
                        .to_owned(),
                });
            }
        })
    }
}

/// The error for a plugin that is not supported.
pub(crate) fn unsupported(name: &str) -> Error {
    let hint = match name {
        "mysql_old_password" => "This is the password hash of before MySQL 4.1: set the password anew.",
        "parsec" => "Use an account with ed25519, unix_socket or mysql_native_password.",
        "dialog" | "authentication_ldap_sasl_client" | "authentication_kerberos_client" | "auth_gssapi_client" => {
            "Use an account whose password the server itself checks."
        }
        _ => "Use an account with caching_sha2_password, mysql_native_password or ed25519.",
    };
    Error::Auth {
        code: 0,
        message: format!("the server wants the authentication plugin {name:?}, which this client does not have"),
        hint: hint.to_owned(),
    }
}
