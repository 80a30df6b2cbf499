//! Authentication plugins: what each answers to the server's nonce. One file per plugin; none reads or writes the
//! stream, the exchange is driven by `login`.

mod caching_sha2;
mod ed25519;
mod native;
mod rsa_key;

pub(crate) use rsa_key::{encrypt_password, key_file};

use super::options::PasswordOptions;
use crate::error::Error;

/// How the line to the server is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// TCP: anybody in between can listen, and answer.
    Clear,
    UnixSocket,
    /// Nobody can listen, but anybody in between can answer.
    Tls,
    VerifiedTls,
}

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
    /// The password goes under the server's RSA key, which is asked for with this byte.
    Rsa {
        request: u8,
    },
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

    /// The password's hash as the server keeps it, where both sides know it.
    pub(crate) fn stored_hash(self, password: &str) -> Option<Vec<u8>> {
        match self {
            Plugin::Native => Some(native::stored(password.as_bytes())),
            Plugin::Ed25519 => Some(ed25519::stored(password.as_bytes())),
            Plugin::CachingSha2 | Plugin::Sha256 | Plugin::ClearText | Plugin::Socket => None,
        }
    }

    /// The first answer.
    pub(crate) fn answer(
        self,
        password: &str,
        nonce: &[u8],
        line: Line,
        allowed: &PasswordOptions,
    ) -> Result<Answer, Error> {
        let password_bytes = password.as_bytes();
        Ok(match self {
            Plugin::Native => Answer::Bytes(native::scramble(password_bytes, nonce)),
            Plugin::CachingSha2 => Answer::Bytes(caching_sha2::scramble(password_bytes, nonce)),
            Plugin::Ed25519 => Answer::Bytes(ed25519::sign(password_bytes, nonce)),
            Plugin::Socket => Answer::Bytes(Vec::new()),
            Plugin::Sha256 if password.is_empty() => Answer::Bytes(vec![0]),
            // The server takes the clear password only over TLS, not over a unix socket.
            Plugin::Sha256 if matches!(line, Line::Tls | Line::VerifiedTls) => Answer::ClearPassword,
            Plugin::Sha256 => Answer::Rsa { request: 1 },
            Plugin::ClearText if may_go_in_clear(line, allowed) => Answer::ClearPassword,
            Plugin::ClearText => return Err(clear_refused(line)),
        })
    }
}

/// The plugin mysql_clear_password is for servers that hand the password on (PAM, LDAP). MySQL's clients want to be told that it is meant.
fn may_go_in_clear(line: Line, allowed: &PasswordOptions) -> bool {
    match line {
        Line::VerifiedTls => true,
        Line::Tls | Line::UnixSocket => allowed.cleartext_plugin,
        Line::Clear => false,
    }
}

fn clear_refused(line: Line) -> Error {
    let hint = match line {
        Line::Clear => "It was not sent. Use ssl-mode=verify-identity or verify-ca with ssl-ca.",
        Line::UnixSocket | Line::Tls | Line::VerifiedTls => {
            "It was not sent, for anybody who answers in the server's place could ask like this. Use ssl-mode=verify-identity or verify-ca with \
             ssl-ca, or allow it with enable-cleartext-plugin (in an option file; in a URL: ?enable-cleartext-plugin=true)."
        }
    };
    Error::Auth {
        code: 0,
        message: "the server wants the password as it is (plugin mysql_clear_password)".to_owned(),
        hint: hint.to_owned(),
    }
}

/// The error for an RSA key that would come over a line on which anybody can answer.
pub(crate) fn key_not_trusted(plugin: Plugin) -> Error {
    Error::Auth {
        code: 0,
        message: format!("without TLS the server wants the password under its RSA key (plugin {})", plugin.name()),
        hint: "The password was not sent: whoever answers in the server's place could send a key of its own and read it. Use TLS (switch it on at the \
               server; not ssl-mode=disabled) or the unix socket; or name the key's file with server-public-key-path; or, on a network that \
               you trust, take any key with get-server-public-key (in an option file; in a URL: ?get-server-public-key=true)."
            .to_owned(),
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
        message: format!("the server wants the authentication plugin {:?}, which this client does not have", cut(name)),
        hint: hint.to_owned(),
    }
}

/// Names of plugins are short.
fn cut(name: &str) -> &str {
    name.char_indices().nth(64).and_then(|(at, _)| name.get(..at)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_itself_goes_where_it_is_safe_or_allowed() {
        let check = |plugin: Plugin, line: Line, allowed: bool, want: &str| {
            let options = PasswordOptions { cleartext_plugin: allowed, ..PasswordOptions::default() };
            let answer = match plugin.answer("secret", b"nonce", line, &options) {
                Ok(Answer::ClearPassword) => "clear".to_owned(),
                Ok(Answer::Rsa { request }) => format!("rsa {request}"),
                Ok(Answer::Bytes(bytes)) => {
                    assert_ne!(bytes, b"secret");
                    "bytes".to_owned()
                }
                Err(error) => {
                    assert!(!error.to_string().contains("secret"), "{error}");
                    "refused".to_owned()
                }
            };
            assert_eq!(answer, want, "{plugin:?} {line:?} {allowed}");
        };
        for allowed in [false, true] {
            let opt_in = if allowed { "clear" } else { "refused" };
            check(Plugin::ClearText, Line::Clear, allowed, "refused");
            check(Plugin::ClearText, Line::UnixSocket, allowed, opt_in);
            check(Plugin::ClearText, Line::Tls, allowed, opt_in);
            check(Plugin::ClearText, Line::VerifiedTls, allowed, "clear");
            check(Plugin::Sha256, Line::Clear, allowed, "rsa 1");
            check(Plugin::Sha256, Line::UnixSocket, allowed, "rsa 1");
            check(Plugin::Sha256, Line::Tls, allowed, "clear");
            check(Plugin::CachingSha2, Line::Clear, allowed, "bytes");
            check(Plugin::Ed25519, Line::Clear, allowed, "bytes");
        }
    }
}
