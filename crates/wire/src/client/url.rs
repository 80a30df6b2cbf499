//! `mysql://user:password@host:port/database?option=value`. Never opens files or connections, and never quotes a part of a URL in which a password may
//! be: whoever did not escape a `/`, `@`, `:`, `?` or `#` has moved the rest of the password into another part.
//!
//! The crate `url` is not used: with its tables for international names it takes 10.6 s to compile and 240 kB of the binary, it does
//! not know this scheme (hosts stay percent-encoded, no zones in IPv6 addresses), and its errors do not say which character to escape.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use binlog::text::escape;

use super::options::{ConnectOptions, SslMode};
use crate::secret::Secret;

const KNOWN: &str = "socket, ssl-mode, ssl-ca, ssl-cert, ssl-key, get-server-public-key, server-public-key-path, enable-cleartext-plugin, \
                     connect-timeout, read-timeout";
const FLAG: &str = "true or false";

const HOW_TO_ESCAPE: &str = "In a user name or a password write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23, % as %25; or keep the password out of the URL, in an option file";

/// Why a URL was refused. Texts never hold the URL's password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It does not start as it must.
    #[error("a server's URL starts with mysql:// or mariadb://, as in mysql://user@host:3306/database")]
    Scheme,
    /// Not a port number.
    #[error("what follows the ':' behind the host is no port number (1 to 65535). {}", HOW_TO_ESCAPE)]
    Port,
    /// An `@` behind the host, where a password's end may be.
    #[error("an '@' stands behind the host's end. {}", HOW_TO_ESCAPE)]
    At,
    /// An IPv6 address without its closing bracket, or something after it.
    #[error("an IPv6 address is written in brackets, as in mysql://user@[::1]:3306")]
    Brackets,
    /// A list of nodes that ends with a comma, or has two in a row.
    #[error("in a list of nodes each has a host name, as in mysql://user@n1,n2:3307,[::1]:3306")]
    EmptyNode,
    /// A list of nodes with one of them twice.
    #[error("the list of nodes names one of them twice")]
    SameNode,
    /// A list of nodes where one server is meant.
    #[error(
        "several nodes are named, and this takes one server: name one of them. Several take: --to and --from of replicate, and --to of status and channel"
    )]
    SeveralNodes,
    /// A list of nodes with one socket.
    #[error("several nodes cannot have one socket: leave it out, or name one server")]
    SocketOfSeveral,
    /// A `%` that is not followed by two hexadecimal digits, or bytes that are not UTF-8.
    #[error("the {part} has a '%' without two hexadecimal digits behind it, or is not UTF-8. {}", HOW_TO_ESCAPE)]
    Escape {
        /// Which part of the URL.
        part: &'static str,
    },
    /// An unknown option.
    #[error("unknown option{} in the URL; known are: {KNOWN}", name.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default())]
    UnknownOption {
        /// The name as given, where it cannot be a part of a password.
        name: Option<String>,
    },
    /// A value that an option does not take.
    #[error("the option {name} does not take {value:?}; it takes {takes}")]
    Value {
        /// The option.
        name: &'static str,
        /// The value as given.
        value: String,
        /// What it takes.
        takes: &'static str,
    },
}

/// What should be said about a URL that was accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UrlWarnings {
    /// The URL holds a password, which other users can see in the process list and the shell's history.
    pub password_in_url: bool,
}

impl UrlWarnings {
    /// One sentence per warning.
    pub fn messages(&self) -> Vec<&'static str> {
        if self.password_in_url {
            vec![
                "the password in the URL can be seen in the process list and the shell's history; \
                  an option file ([client] or [heddle] group) keeps it out of sight",
            ]
        } else {
            Vec::new()
        }
    }
}

impl ConnectOptions {
    /// Reads a URL over the defaults.
    pub fn from_url(url: &str) -> Result<(Self, UrlWarnings), UrlError> {
        let mut options = ConnectOptions::default();
        let warnings = options.apply_url(url)?;
        Ok((options, warnings))
    }

    /// Reads a URL over what is set already (such as by an option file): what the URL does not name stays.
    pub fn apply_url(&mut self, url: &str) -> Result<UrlWarnings, UrlError> {
        let (new, others, warnings) = self.with_url(url)?;
        if !others.is_empty() {
            return Err(UrlError::SeveralNodes);
        }
        *self = new;
        Ok(warnings)
    }

    /// The same without a change: the first node that the URL names, and the others.
    pub(crate) fn with_url(&self, url: &str) -> Result<(Self, Vec<Self>, UrlWarnings), UrlError> {
        let rest = strip_scheme(url).ok_or(UrlError::Scheme)?;
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if path.contains('@') || query.is_some_and(|query| query.contains('@')) {
            return Err(UrlError::At);
        }
        // The last @: a password with an unescaped @ is still read as meant.
        let (account, address) = authority.rsplit_once('@').map_or((None, authority), |(a, b)| (Some(a), b));
        let mut warnings = UrlWarnings::default();
        let mut new = self.clone();
        if let Some(account) = account {
            let (user, password) = account.split_once(':').map_or((account, None), |(u, p)| (u, Some(p)));
            if !user.is_empty() {
                new.user = decode(user, "user")?;
            }
            if let Some(password) = password {
                warnings.password_in_url = !password.is_empty();
                new.password = Some(Secret::new(decode(password, "password")?));
            }
        }
        let (first, more) = address.split_once(',').map_or((address, None), |(first, more)| (first, Some(more)));
        let port = new.port;
        new.apply_address(first)?;
        if !path.is_empty() {
            new.database = Some(decode(path, "database")?);
        }
        for pair in query.unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let may_be_shown = account.is_some() || !address.contains(':');
            new.apply_query_option(&decode(name, "option")?, decode(value, "option")?).map_err(
                |error| match error {
                    UrlError::UnknownOption { .. } if !may_be_shown => UrlError::UnknownOption { name: None },
                    error => error,
                },
            )?;
        }
        let others = match more {
            Some(more) if is_host(first) => new.other_nodes(port, more)?,
            Some(_) => return Err(UrlError::EmptyNode),
            None => Vec::new(),
        };
        Ok((new, others, warnings))
    }

    /// The nodes behind the first one. `port`: of those that name none.
    fn other_nodes(&self, port: u16, more: &str) -> Result<Vec<Self>, UrlError> {
        if self.socket.is_some() {
            return Err(UrlError::SocketOfSeveral);
        }
        let mut others: Vec<Self> = Vec::new();
        for address in more.split(',') {
            if !is_host(address) {
                return Err(UrlError::EmptyNode);
            }
            let mut other = Self { port, ..self.clone() };
            other.tls.had_tls = Arc::default();
            other.apply_address(address)?;
            let is_same = |known: &Self| known.port == other.port && known.host.eq_ignore_ascii_case(&other.host);
            if is_same(self) || others.iter().any(is_same) {
                return Err(UrlError::SameNode);
            }
            others.push(other);
        }
        Ok(others)
    }

    fn apply_address(&mut self, address: &str) -> Result<(), UrlError> {
        let (host, port) = match address.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or(UrlError::Brackets)?;
                match after.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None if after.is_empty() => (host, None),
                    None => return Err(UrlError::Brackets),
                }
            }
            None => match address.split_once(':') {
                Some((_, port)) if port.contains(':') => return Err(UrlError::Brackets),
                Some((host, port)) => (host, Some(port)),
                None => (address, None),
            },
        };
        if !host.is_empty() {
            self.host = decode(host, "host")?;
            // A host named here means TCP even where an option file named a socket.
            self.socket = None;
        }
        if let Some(port) = port.filter(|port| !port.is_empty()) {
            self.port = parse_port(port).ok_or(UrlError::Port)?;
        }
        Ok(())
    }

    fn apply_query_option(&mut self, name: &str, value: String) -> Result<(), UrlError> {
        match name.replace('_', "-").as_str() {
            "socket" => self.socket = Some(PathBuf::from(value)),
            "ssl-mode" => {
                self.tls.mode = SslMode::from_name(&value).ok_or(UrlError::Value {
                    name: "ssl-mode",
                    value,
                    takes: SslMode::NAMES,
                })?;
            }
            "ssl-ca" => self.tls.ca = Some(PathBuf::from(value)),
            "ssl-cert" => self.tls.cert = Some(PathBuf::from(value)),
            "ssl-key" => self.tls.key = Some(PathBuf::from(value)),
            "get-server-public-key" => {
                self.password_options.get_server_public_key = flag("get-server-public-key", value)?;
            }
            "server-public-key-path" => self.password_options.server_public_key = Some(PathBuf::from(value)),
            "enable-cleartext-plugin" => {
                self.password_options.cleartext_plugin = flag("enable-cleartext-plugin", value)?;
            }
            "connect-timeout" => self.limits.connect_timeout = seconds("connect-timeout", value)?,
            "read-timeout" => self.limits.read_timeout = Some(seconds("read-timeout", value)?),
            _ => {
                return Err(UrlError::UnknownOption { name: Some(name.to_owned()) });
            }
        }
        Ok(())
    }
}

/// A text that was perhaps meant as a URL, for messages: without what may be a password.
pub fn redacted(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    let separator = if scheme.is_empty() { "" } else { "://" };
    let shown = match rest.rsplit_once('@') {
        Some((account, address)) if account.contains(':') => format!("{scheme}{separator}…@{address}"),
        // A password without its host.
        None if !separator.is_empty() && rest.contains(':') => format!("{scheme}{separator}…"),
        _ => text.to_owned(),
    };
    escape(&shown).into_owned()
}

/// Whether a host stands before the port. So it does in an IPv6 address without brackets, which is another error.
fn is_host(address: &str) -> bool {
    !address.is_empty() && address.strip_prefix(':').is_none_or(|rest| rest.contains(':'))
}

fn strip_scheme(url: &str) -> Option<&str> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let known = scheme.eq_ignore_ascii_case("mysql") || scheme.eq_ignore_ascii_case("mariadb");
    known.then_some(rest)
}

pub(crate) fn parse_port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port| *port != 0)
}

fn flag(name: &'static str, value: String) -> Result<bool, UrlError> {
    match value.to_ascii_lowercase().as_str() {
        "" | "true" | "on" | "1" | "yes" => Ok(true),
        "false" | "off" | "0" | "no" => Ok(false),
        _ => Err(UrlError::Value { name, value, takes: FLAG }),
    }
}

fn seconds(name: &'static str, value: String) -> Result<Duration, UrlError> {
    match value.parse::<u32>() {
        Ok(seconds @ 1..) => Ok(Duration::from_secs(seconds.into())),
        _ => Err(UrlError::Value { name, value, takes: "a number of seconds, at least 1" }),
    }
}

fn decode(text: &str, part: &'static str) -> Result<String, UrlError> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) => out.push((high * 16 + low) as u8),
            _ => return Err(UrlError::Escape { part }),
        }
    }
    String::from_utf8(out).map_err(|_| UrlError::Escape { part })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn describe(url: &str) -> String {
        match ConnectOptions::from_url(url) {
            Err(error) => error.to_string(),
            Ok((o, warnings)) => format!(
                "{} pw={:?} db={:?} ssl={:?} ca={:?} timeout={}{}",
                o.address(),
                o.password.as_ref().map(Secret::expose),
                o.database,
                o.tls.mode,
                o.tls.ca,
                o.limits.connect_timeout.as_secs(),
                if warnings.password_in_url { " warned" } else { "" }
            ),
        }
    }

    #[test]
    fn urls() {
        let check = |url: &str, want: &str| assert_eq!(describe(url), want, "{url}");
        let plain = "pw=None db=None ssl=Preferred ca=None timeout=10";
        check("mysql://u@h", &format!("u@h:3306 {plain}"));
        check("MariaDB://u@h:3307/", &format!("u@h:3307 {plain}"));
        check("mysql://u@[::1]:3307", &format!("u@[::1]:3307 {plain}"));
        check("mysql://u@[::1]", &format!("u@[::1]:3306 {plain}"));
        check("mysql://u@localhost?socket=/tmp/s%20s.sock", &format!("u@/tmp/s s.sock {plain}"));
        check(
            "mysql://u%40x:p%40s%3As@h/d%2Fb?ssl-mode=VERIFY_CA&ssl-ca=/ca.pem&connect-timeout=3",
            "u@x@h:3306 pw=Some(\"p@s:s\") db=Some(\"d/b\") ssl=VerifyCa ca=Some(\"/ca.pem\") timeout=3 warned",
        );
        check("mysql://u:a@b@h", "u@h:3306 pw=Some(\"a@b\") db=None ssl=Preferred ca=None timeout=10 warned");
        check("mysql://u:@h", "u@h:3306 pw=Some(\"\") db=None ssl=Preferred ca=None timeout=10");
        check("http://u@h", &UrlError::Scheme.to_string());
        check("u@h", &UrlError::Scheme.to_string());
        check("mysql://u@h:99999", &UrlError::Port.to_string());
        check("mysql://u@h:0", &UrlError::Port.to_string());
        check("mysql://u@::1:3306", &UrlError::Brackets.to_string());
        check("mysql://u@[::1", &UrlError::Brackets.to_string());
        check("mysql://u:%zz@h", &UrlError::Escape { part: "password" }.to_string());
        check(
            "mysql://u@h?sslmode=x",
            "unknown option \"sslmode\" in the URL; known are: socket, ssl-mode, ssl-ca, ssl-cert, ssl-key, get-server-public-key, \
             server-public-key-path, enable-cleartext-plugin, connect-timeout, read-timeout",
        );
        check(
            "mysql://u@h?ssl-mode=maybe",
            "the option ssl-mode does not take \"maybe\"; it takes disabled, preferred, required, verify-ca, verify-identity",
        );
        check(
            "mysql://u@h?connect-timeout=0",
            "the option connect-timeout does not take \"0\"; it takes a number of seconds, at least 1",
        );
    }

    #[test]
    fn no_part_of_a_password_is_shown_however_it_is_written() {
        let passwords = [
            "Qz/Wv",
            "4711/Wv",
            "Qz@Wv",
            "4711@Wv/x",
            "Qz:Wv",
            "Qz?Wv",
            "4711?Wv",
            "4711?Wv/x",
            "Qz#Wv",
            "4711#Wv",
            "Qz%Wv",
            "4711/W:Wv",
            "[Qz]Wv",
            "Qz Wv",
            "Wv/Qz/Wv",
            "Wv&x?Wv",
        ];
        for password in passwords {
            for url in [
                "mysql://me:{}@db.example:3306/d?ssl-mode=required",
                "mysql://me:{}@db",
                "mysqll://me:{}@db/d",
                "me:{}@db",
                "mysql://me:{}",
            ] {
                if url.ends_with("{}") && password.contains('@') {
                    continue; // A password and a host.
                }
                let url = url.replace("{}", password);
                let shown = match ConnectOptions::from_url(&url) {
                    // It was read as it was meant.
                    Ok((options, _)) if options.password.as_ref().map(Secret::expose) == Some(password) => continue,
                    // Without a host it cannot be told from `host:port/database`.
                    Ok((options, _)) => {
                        assert!(!url.contains('@'), "{url}");
                        assert_eq!(options.host, "me");
                        continue;
                    }
                    Err(error) => format!("{error} {error:?} {}", redacted(&url)),
                };
                for part in ["Qz", "Wv", "4711"] {
                    assert!(!shown.contains(part), "{url}: {shown}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_url_stays_readable() {
        let check = |text: &str, want: &str| assert_eq!(redacted(text), want);
        check("mysql://root@db:3306/d", "mysql://root@db:3306/d");
        check("mysql://db/d", "mysql://db/d");
        check("/var/lib/mysql/binlog.000001", "/var/lib/mysql/binlog.000001");
        check("binlog@night.000001", "binlog@night.000001");
        check("root:x/y@z@db", "…@db");
        check("postgres://u:p@db/d", "postgres://…@db/d");
        check("mysql://u:secret", "mysql://…");
        check("a\nb", "a\\nb");
    }

    #[test]
    fn what_the_password_may_become() {
        let read =
            |query: &str| ConnectOptions::from_url(&format!("mysql://h?{query}")).map(|(o, _)| o.password_options);
        assert!(!read("").unwrap().get_server_public_key && !read("").unwrap().cleartext_plugin);
        assert!(read("get-server-public-key").unwrap().get_server_public_key);
        assert!(!read("get_server_public_key=off").unwrap().get_server_public_key);
        assert!(read("enable-cleartext-plugin=true").unwrap().cleartext_plugin);
        assert_eq!(read("server-public-key-path=/k.pem").unwrap().server_public_key, Some("/k.pem".into()));
        assert!(read("get-server-public-key=perhaps").is_err());
    }

    #[test]
    fn a_url_leaves_what_it_does_not_name() {
        let mut options = ConnectOptions { user: "repl".into(), port: 4000, ..Default::default() };
        options.password = Some("kept".into());
        options.apply_url("mysql://h").unwrap();
        assert_eq!(options.address(), "repl@h:4000");
        assert_eq!(options.password.as_ref().map(Secret::expose), Some("kept"));
    }

    proptest! {
        #[test]
        fn anything_is_refused_or_read(text in "\\PC*") {
            let _ = ConnectOptions::from_url(&text);
            let _ = ConnectOptions::from_url(&format!("mysql://{text}"));
        }

        #[test]
        fn passwords_survive_and_stay_hidden(password in "[ -~]{1,40}") {
            let escaped: String = password.bytes().map(|byte| format!("%{byte:02x}")).collect();
            let (options, _) = ConnectOptions::from_url(&format!("mysql://u:{escaped}@h")).unwrap();
            prop_assert_eq!(options.password.as_ref().map(Secret::expose), Some(password.as_str()));
            let shown = format!("{options:?}");
            prop_assert!(password.len() < 6 || !shown.contains(&password));
        }
    }
}
