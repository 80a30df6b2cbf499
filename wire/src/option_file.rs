//! The servers' option files (`my.cnf`): groups, quotes, escapes, comments, `!include`. Options that are not about
//! connecting are left alone, as every program does with the options of others.
//!
//! Source: "Using Option Files" in the MySQL manual, "Configuring MariaDB with Option Files".

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::options::{ConnectOptions, SslMode};
use crate::secret::Secret;
use crate::url::parse_port;

/// Depth of `!include` in `!include`; the servers' clients stop at 10 as well.
const MAX_INCLUDE_DEPTH: usize = 10;
/// An option file larger than this is something else.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Why an option file was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionFileError {
    /// It cannot be read.
    #[error("cannot read the option file {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A line that means nothing.
    #[error("{}line {line}: {reason}", file_text(.path))]
    Line {
        /// The file, when it was read from one.
        path: Option<PathBuf>,
        /// Line number, from 1.
        line: usize,
        /// What is wrong; never with the value of a password.
        reason: String,
    },
}

fn file_text(path: &Option<PathBuf>) -> String {
    path.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display()))
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
        let read = |source| OptionFileError::Read { path: path.to_owned(), source };
        let length = std::fs::metadata(path).map_err(read)?.len();
        if length > MAX_FILE_BYTES {
            return Err(read(std::io::Error::other(format!("{length} bytes are too many for an option file"))));
        }
        let bytes = std::fs::read(path).map_err(read)?;
        let text = String::from_utf8(bytes).map_err(|_| read(std::io::Error::other("it is not UTF-8")))?;
        self.apply_text(&text, groups, Some(path), depth)
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
            "ssl-ca" => self.ssl_ca = Some(needs(value)?.into()),
            "ssl-cert" => self.ssl_cert = Some(needs(value)?.into()),
            "ssl-key" => self.ssl_key = Some(needs(value)?.into()),
            "ssl-mode" => {
                let value = needs(value)?;
                self.ssl_mode = SslMode::from_name(&value)
                    .ok_or_else(|| format!("ssl-mode {value:?} is none of {}", SslMode::NAMES))?;
            }
            // MariaDB's names. `ssl` means: use it; there, certificates are checked only when asked for.
            "ssl" | "disable-ssl" | "skip-ssl" => {
                let on = (name == "ssl") == flag(name, value.as_deref())?;
                match (on, self.ssl_mode) {
                    (false, _) => self.ssl_mode = SslMode::Disabled,
                    (true, SslMode::Disabled | SslMode::Preferred) => self.ssl_mode = SslMode::Required,
                    (true, _) => {}
                }
            }
            "ssl-verify-server-cert" if flag(name, value.as_deref())? => {
                self.ssl_mode = SslMode::VerifyIdentity;
            }
            "connect-timeout" => {
                let value = needs(value)?;
                let seconds: u32 = value.parse().map_err(|_| format!("{value:?} is no number of seconds"))?;
                self.connect_timeout = Duration::from_secs(u64::from(seconds.max(1)));
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
    let read = |source| OptionFileError::Read { path: folder.to_owned(), source };
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
        assert_eq!(options.ssl_mode, SslMode::VerifyIdentity);
        assert_eq!(options.ssl_ca.as_deref(), Some(Path::new("/ca.pem")));
        assert_eq!(options.connect_timeout, Duration::from_secs(5));
    }

    #[test]
    fn mariadb_ssl_names() {
        let check =
            |lines: &str, want: SslMode| assert_eq!(read(&format!("[client]\n{lines}")).unwrap().ssl_mode, want);
        check("ssl", SslMode::Required);
        check("ssl=0", SslMode::Disabled);
        check("skip-ssl", SslMode::Disabled);
        check("ssl\nssl-verify-server-cert", SslMode::VerifyIdentity);
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
