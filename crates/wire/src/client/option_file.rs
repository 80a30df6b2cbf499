//! The servers' option files (`my.cnf`): groups, quotes, escapes, comments, `!include`. Options that are not about
//! connecting are left alone, as every program does with the options of others.
//!
//! Source: "Using Option Files" in the MySQL manual, "Configuring MariaDB with Option Files".

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::options::{ConnectOptions, SslMode};
use super::trusted_file::{TrustedFile, TrustedFileError};
use super::url::parse_port;
use crate::secret::Secret;

/// Depth of `!include` in `!include`; the servers' clients stop at 10 as well.
const MAX_INCLUDE_DEPTH: usize = 10;
/// What messages call it.
const KIND: &str = "option file";

fn readable_by_all(path: &Path) -> String {
    let path = path.display();
    format!("the option file {path} holds a password, and every user of this machine can read it: chmod 600 {path}")
}

/// Why an option file was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionFileError {
    /// It cannot be read, or every user can write it.
    #[error(transparent)]
    File(#[from] TrustedFileError),
    /// A line that means nothing.
    #[error("{}line {line}: {reason}", file_text(.path.as_deref()))]
    Line {
        /// The file, when it was read from one.
        path: Option<PathBuf>,
        /// Line number, from 1.
        line: usize,
        /// What is wrong; never with the value of a password.
        reason: String,
    },
}

fn file_text(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| format!("{}: ", path.display()))
}

enum Item {
    Group(String),
    Setting { name: String, value: Option<String> },
    Include(String),
    IncludeDir(String),
}

impl ConnectOptions {
    /// Reads option file text over what is set already; only the named groups count. `!include` is refused here:
    /// [`load_option_file`](Self::load_option_file) follows it.
    pub fn apply_option_file(&mut self, text: &str, groups: &[&str]) -> Result<(), OptionFileError> {
        self.apply_text(text, groups, None, MAX_INCLUDE_DEPTH)
    }

    /// Reads an option file, and the files it includes, over what is set already.
    pub fn load_option_file(&mut self, path: &Path, groups: &[&str]) -> Result<(), OptionFileError> {
        self.load(path, groups, 0)
    }

    fn load(&mut self, path: &Path, groups: &[&str], depth: usize) -> Result<(), OptionFileError> {
        let file = TrustedFile::read(path, KIND)?;
        let before = self.password.take();
        let applied = self.apply_text(&file.text, groups, Some(path), depth);
        if self.password.is_some() && file.is_readable_by_all {
            tracing::warn!("{}", readable_by_all(path));
        }
        self.password = self.password.take().or(before);
        applied
    }

    fn apply_text(
        &mut self,
        text: &str,
        groups: &[&str],
        path: Option<&Path>,
        depth: usize,
    ) -> Result<(), OptionFileError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut active = false;
        for (number, line) in text.lines().enumerate() {
            let at =
                |reason: String| OptionFileError::Line { path: path.map(Path::to_owned), line: number + 1, reason };
            let Some(item) = read_line(line).map_err(at)? else {
                continue;
            };
            match item {
                Item::Group(name) => active = groups.iter().any(|group| *group == name),
                Item::Setting { name, value } if active => self.set_option(&name, value).map_err(at)?,
                Item::Setting { .. } => {}
                Item::Include(name) => {
                    let file = resolve(path, &name).ok_or_else(|| at(no_path()))?;
                    if depth >= MAX_INCLUDE_DEPTH {
                        return Err(at(format!("more than {MAX_INCLUDE_DEPTH} files include one another")));
                    }
                    self.load(&file, groups, depth + 1)?;
                }
                Item::IncludeDir(name) => {
                    let folder = resolve(path, &name).ok_or_else(|| at(no_path()))?;
                    if depth >= MAX_INCLUDE_DEPTH {
                        return Err(at(format!("more than {MAX_INCLUDE_DEPTH} files include one another")));
                    }
                    for file in files_of(&folder)? {
                        self.load(&file, groups, depth + 1)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn set_option(&mut self, name: &str, value: Option<String>) -> Result<(), String> {
        let name = name.to_ascii_lowercase().replace('_', "-");
        let name = name.strip_prefix("loose-").unwrap_or(&name);
        let needs = |value: Option<String>| value.ok_or_else(|| format!("{name} needs a value"));
        match name {
            "user" => self.user = needs(value)?,
            // Without a value the servers' clients ask for it; that is the program's business, not this crate's.
            "password" => self.password = value.map(Secret::new).or_else(|| self.password.take()),
            "host" => self.host = needs(value)?,
            "port" => {
                let value = needs(value)?;
                self.port = parse_port(&value).ok_or_else(|| format!("{value:?} is no port number (1 to 65535)"))?;
            }
            "socket" => self.socket = Some(needs(value)?.into()),
            "database" => self.database = Some(needs(value)?),
            "ssl-ca" => self.tls.ca = Some(needs(value)?.into()),
            "ssl-cert" => self.tls.cert = Some(needs(value)?.into()),
            "ssl-key" => self.tls.key = Some(needs(value)?.into()),
            "ssl-mode" => {
                let value = needs(value)?;
                self.tls.mode = SslMode::from_name(&value)
                    .ok_or_else(|| format!("ssl-mode {value:?} is none of {}", SslMode::NAMES))?;
            }
            // MariaDB's names. `ssl` means: use it; there, certificates are checked only when asked for.
            "ssl" | "disable-ssl" | "skip-ssl" => {
                let on = (name == "ssl") == flag(name, value.as_deref())?;
                match (on, self.tls.mode) {
                    (false, _) => self.tls.mode = SslMode::Disabled,
                    (true, SslMode::Disabled | SslMode::Preferred) => self.tls.mode = SslMode::Required,
                    (true, _) => {}
                }
            }
            "ssl-verify-server-cert" if flag(name, value.as_deref())? => {
                self.tls.mode = SslMode::VerifyIdentity;
            }
            "get-server-public-key" => self.password_options.get_server_public_key = flag(name, value.as_deref())?,
            "server-public-key-path" => self.password_options.server_public_key = Some(needs(value)?.into()),
            "enable-cleartext-plugin" => self.password_options.cleartext_plugin = flag(name, value.as_deref())?,
            "connect-timeout" => {
                let value = needs(value)?;
                let seconds: u32 = value.parse().map_err(|_| format!("{value:?} is no number of seconds"))?;
                self.limits.connect_timeout = Duration::from_secs(u64::from(seconds.max(1)));
            }
            _ => {}
        }
        Ok(())
    }
}

fn no_path() -> String {
    "!include works only in a file".to_owned()
}

fn flag(name: &str, value: Option<&str>) -> Result<bool, String> {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("1" | "on" | "true" | "yes") => Ok(true),
        Some("0" | "off" | "false" | "no") => Ok(false),
        Some(other) => Err(format!("{name} takes on or off, not {other:?}")),
    }
}

/// Included names are taken relative to the including file when they are not absolute.
fn resolve(from: Option<&Path>, name: &str) -> Option<PathBuf> {
    let folder = from?.parent().unwrap_or(Path::new("."));
    Some(folder.join(name))
}

/// The `.cnf` files of a folder, by name: the servers' order is the folder's, which is nobody's.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, OptionFileError> {
    let read = |source| TrustedFileError::Read { kind: KIND, path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if path.extension().is_some_and(|extension| extension == "cnf") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read_line(line: &str) -> Result<Option<Item>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';']) {
        return Ok(None);
    }
    if let Some(directive) = line.strip_prefix('!') {
        let (name, path) = directive.split_once(char::is_whitespace).unwrap_or((directive, ""));
        let path = path.trim().to_owned();
        return match (name, path.is_empty()) {
            ("include", false) => Ok(Some(Item::Include(path))),
            ("includedir", false) => Ok(Some(Item::IncludeDir(path))),
            _ => Err("known are: !include FILE and !includedir FOLDER".to_owned()),
        };
    }
    if let Some(group) = line.strip_prefix('[') {
        let (name, _) = group.split_once(']').ok_or("a group has no closing ]")?;
        return Ok(Some(Item::Group(name.trim().to_owned())));
    }
    let line = strip_comment(line);
    let (name, value) = match line.split_once('=') {
        None => (line, None),
        Some((name, value)) => (name, Some(unquote(value.trim()))),
    };
    let name = name.trim().to_owned();
    if name.is_empty() {
        return Err("a value without a name".to_owned());
    }
    Ok(Some(Item::Setting { name, value }))
}

/// A `#` outside quotes ends the line.
fn strip_comment(line: &str) -> &str {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return line.get(..at).unwrap_or(line).trim_end(),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c && !escaped => quote = None,
            _ => {}
        }
        escaped = quote.is_some() && c == '\\' && !escaped;
    }
    line
}

fn unquote(value: &str) -> String {
    let inner = ['"', '\'']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote).and_then(|rest| rest.strip_suffix(*quote)))
        .unwrap_or(value);
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('s') => out.push(' '),
            Some(kept @ ('"' | '\'' | '\\')) => out.push(kept),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<ConnectOptions, OptionFileError> {
        let mut options = ConnectOptions { user: "me".into(), ..Default::default() };
        options.apply_option_file(text, &["client", "heddle"])?;
        Ok(options)
    }

    #[test]
    fn passwords() {
        let check = |line: &str, want: Option<&str>| {
            let options = read(&format!("[client]\n{line}\n")).unwrap();
            assert_eq!(options.password.as_ref().map(Secret::expose), want, "{line}");
        };
        check("password=plain", Some("plain"));
        check("  password = \"with # and spaces \"  # comment", Some("with # and spaces "));
        check("password='it''s'", Some("it''s"));
        check(r#"password="a\"b\\c\sd\te""#, Some("a\"b\\c d\te"));
        check(r"password=C:\dir\sub", Some("C:\\dir ub"));
        check("password=a#b", Some("a"));
        check("loose-password=x", Some("x"));
        check("password=a=b", Some("a=b"));
        check("password=", Some(""));
        check("password", None);
        check("#password=x", None);
        check("; password=x", None);
    }

    #[test]
    fn groups_and_names() {
        let options = read(
            "\u{feff}user=nobody\n[mysqld]\nuser=mysql\n[client]\nUSER=repl\nhost=db1\nport=3307\nssl_ca=/ca.pem\n\
             default-character-set=utf8\n[heddle]\nhost=db2\nssl-mode=VERIFY_IDENTITY\nconnect_timeout=5\n[mysql]\nhost=no",
        )
        .unwrap();
        assert_eq!(options.address(), "repl@db2:3307");
        assert_eq!(options.tls.mode, SslMode::VerifyIdentity);
        assert_eq!(options.tls.ca.as_deref(), Some(Path::new("/ca.pem")));
        assert_eq!(options.limits.connect_timeout, Duration::from_secs(5));
    }

    #[test]
    fn mariadb_ssl_names() {
        let check =
            |lines: &str, want: SslMode| assert_eq!(read(&format!("[client]\n{lines}")).unwrap().tls.mode, want);
        check("ssl", SslMode::Required);
        check("ssl=0", SslMode::Disabled);
        check("skip-ssl", SslMode::Disabled);
        check("ssl\nssl-verify-server-cert", SslMode::VerifyIdentity);
    }

    #[test]
    fn what_the_password_may_become() {
        let read = |lines: &str| read(&format!("[client]\n{lines}")).unwrap().password_options;
        assert!(!read("").get_server_public_key && !read("").cleartext_plugin);
        assert!(read("get-server-public-key").get_server_public_key);
        assert!(!read("get_server_public_key=OFF").get_server_public_key);
        assert!(read("enable-cleartext-plugin=1").cleartext_plugin);
        assert_eq!(read("server_public_key_path=/k.pem").server_public_key, Some("/k.pem".into()));
    }

    #[test]
    fn a_file_that_everybody_can_write_is_refused() {
        let path = std::env::temp_dir().join(format!("wire-option-file-modes-{}.cnf", std::process::id()));
        std::fs::write(&path, "[client]\npassword=hunter2\n").unwrap();
        let with = |mode: u32| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let mut options = ConnectOptions::default();
            options.load_option_file(&path, &["client"]).map(|()| options.password.is_some())
        };
        for mode in [0o600, 0o640, 0o660, 0o644] {
            assert!(with(mode).unwrap(), "{mode:o}");
        }
        for mode in [0o666, 0o602, 0o622] {
            let error = with(mode).unwrap_err();
            assert!(matches!(error, OptionFileError::File(TrustedFileError::WritableByAll { .. })), "{error}");
            assert!(error.to_string().contains("chmod o-w"), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn errors_name_the_line() {
        let check = |text: &str, want: &str| assert_eq!(read(text).unwrap_err().to_string(), want);
        check("[client]\nport=abc", "line 2: \"abc\" is no port number (1 to 65535)");
        check("[client", "line 1: a group has no closing ]");
        check("[client]\nhost", "line 2: host needs a value");
        check("=x", "line 1: a value without a name");
        check("!include other.cnf", "line 1: !include works only in a file");
        check("!exclude x", "line 1: known are: !include FILE and !includedir FOLDER");
    }

    #[test]
    fn includes() {
        let folder = std::env::temp_dir().join(format!("wire-option-files-{}", std::process::id()));
        let parts = folder.join("conf.d");
        std::fs::create_dir_all(&parts).unwrap();
        let write = |path: PathBuf, text: &str| std::fs::write(path, text).unwrap();
        write(folder.join("my.cnf"), "[client]\nuser=a\n!include more.cnf\n!includedir conf.d\nport=5\n");
        write(folder.join("more.cnf"), "[client]\nhost=more\n");
        write(parts.join("b.cnf"), "[heddle]\nuser=b\n");
        write(parts.join("a.cnf"), "[heddle]\nuser=first\n");
        write(parts.join("c.txt"), "[heddle]\nuser=no\n");
        write(folder.join("loop.cnf"), "!include loop.cnf\n");
        let mut options = ConnectOptions::default();
        options.load_option_file(&folder.join("my.cnf"), &["client", "heddle"]).unwrap();
        assert_eq!(options.address(), "b@more:5");
        let error = options.load_option_file(&folder.join("loop.cnf"), &["client"]).unwrap_err();
        assert!(error.to_string().contains("include one another"), "{error}");
        assert!(options.load_option_file(&folder.join("none.cnf"), &["client"]).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(\\PC|\n|\\[client\\]\n){0,200}") {
            let _ = read(&text);
        }
    }
}
