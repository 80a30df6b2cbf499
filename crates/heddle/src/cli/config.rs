//! `--config FILE`: flags of a command from a TOML file. Keys are the flags' names without the dashes. The file becomes arguments before clap reads them,
//! so that a value is checked as if it were typed; what is typed wins. It decides no default.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use toml::{Table, Value};
use wire::{TrustedFile, TrustedFileError};

/// How the flag begins on a command line: `--config FILE`, `--config=FILE`.
const FLAG: &[u8] = b"--config";
/// What messages call it.
const KIND: &str = "configuration file";
/// The flag whose value follows from the file's name.
const CHANNEL: &str = "channel";
/// The command of which a file may have several.
const SERVE: &str = "serve";
/// Commands whose `--channel` is a channel of heddle's. `rescue` has one of the replica's.
const OF_CHANNELS: [&str; 2] = ["replicate", "status"];
/// How alike a key and a flag are when the one is taken for a slip of the other, from 0 to 1.
const ALIKE: f64 = 0.75;

/// Why a configuration file was refused. Values are never shown: one may be a URL with a password.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    File(#[from] TrustedFileError),
    #[error("the configuration file {path} is not TOML: {reason}")]
    Toml { path: PathBuf, reason: String },
    #[error("the configuration file {path}: {reason}")]
    Key { path: PathBuf, reason: String },
}

/// What clap is to read.
#[derive(Debug)]
pub struct ExpandedArguments {
    pub arguments: Vec<OsString>,
    /// The file that some of them are from.
    pub file: Option<PathBuf>,
}

/// The arguments of the process, with those of the file that `--config` names.
pub fn expand(command: &Command, typed: Vec<OsString>) -> Result<ExpandedArguments, ConfigError> {
    let as_typed = |typed| ExpandedArguments { arguments: typed, file: None };
    if !typed.iter().any(|argument| argument.as_encoded_bytes().starts_with(FLAG)) {
        return Ok(as_typed(typed));
    }
    // What is wrong with the command line is said when it is read in earnest.
    let Ok(matches) = command.clone().ignore_errors(true).try_get_matches_from(&typed) else {
        return Ok(as_typed(typed));
    };
    let (asked, given) = innermost(command, &matches);
    let Some(path) = given.try_get_one::<PathBuf>("config").ok().flatten().cloned() else {
        return Ok(as_typed(typed));
    };
    let mut config = Config::read(&path)?;
    config.warn_of_password(&path);
    let section = given.try_get_one::<String>("section").ok().flatten();
    config.table = config.of(asked.get_name(), section.map(String::as_str), &path)?;
    let flags = Flags { root: command, asked, given, path: &path };
    let mut from_file = Vec::new();
    for (key, value) in &config.table {
        from_file.extend(flags.arguments(key, value, &config.table)?);
    }
    if !config.table.contains_key(CHANNEL) {
        from_file.extend(flags.channel(&config.table));
    }
    Ok(ExpandedArguments { arguments: joined(typed, from_file), file: Some(path) })
}

/// A configuration file as it was read.
pub struct Config {
    pub table: Table,
    is_readable_by_all: bool,
}

impl Config {
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let file = TrustedFile::read(path, KIND)?;
        let table = file.text.parse().map_err(|error: toml::de::Error| not_toml(path, &file.text, &error))?;
        Ok(Self { table, is_readable_by_all: file.is_readable_by_all })
    }

    /// The servers of the file, tables `[serve.NAME]`: each is one `heddle serve`.
    pub fn servers(&self) -> Option<&Table> {
        self.table.get(SERVE).and_then(Value::as_table)
    }

    /// What a command reads of the file: all of it, or one of its servers.
    fn of(&self, command: &str, section: Option<&str>, path: &Path) -> Result<Table, ConfigError> {
        let wrong = |reason: String| ConfigError::Key { path: path.to_owned(), reason };
        let Some(servers) = self.servers() else {
            return match section {
                Some(name) => Err(wrong(format!("there is no table [{SERVE}.{name}]"))),
                None => Ok(self.table.clone()),
            };
        };
        if command != SERVE || self.table.len() > 1 {
            return Err(wrong(format!(
                "the tables [{SERVE}.NAME] are for `heddle serve` and `heddle run`, and nothing else may stand beside them"
            )));
        }
        let name = match section {
            Some(name) => name,
            None if servers.len() == 1 => servers.keys().next().map_or("", String::as_str),
            None => {
                let names: Vec<&str> = servers.keys().map(String::as_str).collect();
                return Err(wrong(format!("it has several servers: choose one with --section ({})", names.join(", "))));
            }
        };
        let server = servers.get(name).and_then(Value::as_table);
        server.cloned().ok_or_else(|| wrong(format!("there is no table [{SERVE}.{name}]")))
    }

    fn warn_of_password(&self, path: &Path) {
        if self.is_readable_by_all && has_password(&self.table) {
            let path = path.display();
            output::complain!(
                "heddle: warning: {path} holds a URL with a password, and every user of this machine can read it: chmod 600 {path}"
            );
        }
    }
}

/// The channel of a file: its key, else the file's name without `.toml`.
pub fn channel(path: &Path, table: &Table) -> String {
    match table.get(CHANNEL).and_then(Value::as_str) {
        Some(name) => name.to_owned(),
        None => path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
    }
}

/// toml's own message shows the line, which may hold a password: the place is enough.
fn not_toml(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    ConfigError::Toml { path: path.to_owned(), reason: format!("line {line}: {}", error.message()) }
}

fn has_password(table: &Table) -> bool {
    let is_secret =
        |value: &Value| value.as_str().is_some_and(|text| wire::redacted(text) != binlog::text::escape(text));
    table.values().any(|value| {
        is_secret(value)
            || value.as_array().is_some_and(|list| list.iter().any(is_secret))
            || value.as_table().is_some_and(has_password)
    })
}

/// The command that was asked for, and what was given to it.
fn innermost<'a>(command: &'a Command, matches: &'a ArgMatches) -> (&'a Command, &'a ArgMatches) {
    match matches.subcommand() {
        Some((name, inner)) => match command.find_subcommand(name) {
            Some(next) => innermost(next, inner),
            None => (command, matches),
        },
        None => (command, matches),
    }
}

/// Behind what is typed: whole tokens, so that nothing typed takes one for its value; before `--`, behind which there are no flags.
fn joined(mut typed: Vec<OsString>, from_file: Vec<OsString>) -> Vec<OsString> {
    let end = typed.iter().position(|argument| argument == "--").unwrap_or(typed.len());
    let rest = typed.split_off(end);
    typed.extend(from_file);
    typed.extend(rest);
    typed
}

/// The flags that a file may set.
struct Flags<'a> {
    root: &'a Command,
    asked: &'a Command,
    given: &'a ArgMatches,
    path: &'a Path,
}

impl Flags<'_> {
    fn arguments(&self, key: &str, value: &Value, table: &Table) -> Result<Vec<OsString>, ConfigError> {
        let Some(flag) = self.find(key) else {
            // A channel's file serves every command about the channel.
            return if self.is_for_replicate(key) { Ok(Vec::new()) } else { Err(self.wrong(&self.unknown(key))) };
        };
        if self.is_typed(flag) || self.is_of_replicate_alone(flag, table) {
            return Ok(Vec::new());
        }
        let takes_value = flag.get_action().takes_values();
        let token = |text: String| vec![OsString::from(format!("--{key}={text}"))];
        match value {
            Value::Boolean(true) if !takes_value => Ok(vec![OsString::from(format!("--{key}"))]),
            Value::Boolean(false) if !takes_value => Ok(Vec::new()),
            _ if !takes_value => Err(self.wrong(&format!("{key} is true or false"))),
            Value::Array(list) if matches!(flag.get_action(), ArgAction::Append) => {
                let texts = list.iter().map(|value| scalar(value).ok_or_else(|| self.no_scalar(key)));
                texts.map(|text| text.map(|text| OsString::from(format!("--{key}={text}")))).collect()
            }
            Value::Array(_) => Err(self.wrong(&format!("{key} takes one value, not a list"))),
            value => scalar(value).map(token).ok_or_else(|| self.no_scalar(key)),
        }
    }

    /// `--channel` of a command that has it, if nobody has given it.
    fn channel(&self, table: &Table) -> Option<OsString> {
        let flag = self.find(CHANNEL).filter(|_| OF_CHANNELS.contains(&self.asked.get_name()))?;
        (!self.is_typed(flag)).then(|| OsString::from(format!("--{CHANNEL}={}", channel(self.path, table))))
    }

    fn find(&self, key: &str) -> Option<&Arg> {
        self.all().find(|flag| flag.get_long() == Some(key))
    }

    fn all(&self) -> impl Iterator<Item = &Arg> {
        let of_root = self.root.get_arguments().filter(|flag| flag.is_global_set());
        self.asked.get_arguments().chain(of_root).filter(|flag| flag.get_long().is_some_and(|name| name != "config"))
    }

    fn is_typed(&self, flag: &Arg) -> bool {
        self.given.try_contains_id(flag.get_id().as_str()).unwrap_or(false)
            && self.given.value_source(flag.get_id().as_str()) == Some(ValueSource::CommandLine)
    }

    fn is_for_replicate(&self, key: &str) -> bool {
        self.of_replicate(key).is_some()
    }

    fn of_replicate(&self, key: &str) -> Option<&Arg> {
        self.root.find_subcommand("replicate")?.get_arguments().find(|flag| flag.get_long() == Some(key))
    }

    /// Whether the key of a channel's file means another thing in this command, which the file does not ask for: `http` is where `replicate` listens, and
    /// whom `status` asks in place of a target.
    fn is_of_replicate_alone(&self, flag: &Arg, table: &Table) -> bool {
        let Some(name) = flag.get_long() else { return false };
        let is_other = self.of_replicate(name).is_some_and(|own| own.get_value_names() != flag.get_value_names());
        let is_given =
            |other: &&Arg| self.is_typed(other) || other.get_long().is_some_and(|name| table.contains_key(name));
        is_other && self.asked.get_arg_conflicts_with(flag).iter().any(is_given)
    }

    fn unknown(&self, key: &str) -> String {
        let names = self.all().filter_map(Arg::get_long);
        let alike = |name: &str| strsim::jaro_winkler(key, name);
        let nearest = names.max_by(|a, b| alike(a).total_cmp(&alike(b))).filter(|name| alike(name) >= ALIKE);
        let hint = nearest.map_or_else(String::new, |name| format!("; did you mean {name:?}?"));
        format!("unknown key {key:?}: `heddle {}` has no such flag{hint}", self.asked.get_name())
    }

    fn no_scalar(&self, key: &str) -> ConfigError {
        self.wrong(&format!("{key} is a text, a number, or a list of them where the flag takes several"))
    }

    fn wrong(&self, reason: &str) -> ConfigError {
        ConfigError::Key { path: self.path.to_owned(), reason: reason.to_owned() }
    }
}

/// A value as it would be typed.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Datetime(time) => Some(time.to_string()),
        Value::Boolean(_) | Value::Array(_) | Value::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::Cli;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("orders.toml");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn expanded(text: &str, typed: &[&str]) -> Result<Vec<String>, String> {
        let (_folder, file) = file(text);
        let mut line = vec![OsString::from("heddle")];
        line.extend(typed.iter().map(OsString::from));
        line.insert(2, OsString::from("--config"));
        line.insert(3, file.into());
        let expanded = expand(&Cli::command(), line).map_err(|error| error.to_string())?;
        let texts = expanded.arguments.into_iter().skip(4).map(|argument| argument.into_string().unwrap());
        let texts: Vec<String> = texts.collect();
        let mut whole = vec!["heddle".to_owned(), typed[0].to_owned()];
        whole.extend(texts.iter().cloned());
        Cli::try_parse_from(whole).map_err(|error| error.to_string())?;
        Ok(texts)
    }

    #[test]
    fn keys_are_flags_and_lists_are_repeated_ones() {
        let text = "from = ['a.000001', 'a.000002']\nto = 'store:x'\nworkers = 8\nuntil-end = true\njson = false\nlog = 'warn'\n";
        let typed = expanded(text, &["replicate"]).unwrap();
        assert_eq!(
            typed,
            [
                "--from=a.000001",
                "--from=a.000002",
                "--log=warn",
                "--to=store:x",
                "--until-end",
                "--workers=8",
                "--channel=orders"
            ]
        );
    }

    #[test]
    fn selections_are_lists() {
        let text = "from = 'a.000001'\nto = 'mysql://t'\nonly = ['shop', 'crm.people']\nignore = 'shop.log_*'\nrename = ['shop=store', 'crm=c']\n\
                    leave-out = ['delete', 'truncate']\nreplicate-do-table = ['a.b', 'a.c']\nreplicate-wild-ignore-table = ['a.x%']\n";
        let typed = expanded(text, &["replicate"]).unwrap();
        for flag in [
            "--only=shop",
            "--only=crm.people",
            "--ignore=shop.log_*",
            "--rename=shop=store",
            "--rename=crm=c",
            "--leave-out=delete",
            "--leave-out=truncate",
            "--replicate-do-table=a.c",
            "--replicate-wild-ignore-table=a.x%",
        ] {
            assert!(typed.iter().any(|typed| typed == flag), "{flag}: {typed:?}");
        }
        let error =
            expanded("from = 'a.000001'\nto = 'store:x'\nleave-out = ['deletes']\n", &["replicate"]).unwrap_err();
        assert!(error.contains("drop-database"), "{error}");
    }

    #[test]
    fn a_file_may_have_several_servers() {
        let text = "[serve.one]\nfrom = 'mysql://a'\ndir = '/one'\n[serve.two]\nfrom = ['mysql://b', 'mysql://c']\ndir = '/two'\n";
        let two = expanded(text, &["serve", "--section", "two"]).unwrap();
        assert_eq!(two, ["--section", "two", "--dir=/two", "--from=mysql://b", "--from=mysql://c"]);
        let one = expanded("[serve.one]\nfrom = 'mysql://a'\ndir = '/one'\n", &["serve"]).unwrap();
        assert_eq!(one, ["--dir=/one", "--from=mysql://a"]);
        for (typed, said) in [
            (&["serve"][..], "choose one with --section (one, two)"),
            (&["serve", "--section", "three"], "there is no table [serve.three]"),
            (&["replicate"], "are for `heddle serve`"),
        ] {
            let refused = expanded(text, typed).unwrap_err();
            assert!(refused.contains(said), "{refused}");
        }
    }

    #[test]
    fn what_is_typed_wins() {
        let text = "from = 'a'\nto = 'store:x'\nworkers = 8\ngrouping = 'off'\n";
        let typed = expanded(text, &["replicate", "--workers", "2", "--from", "b", "c"]).unwrap();
        assert_eq!(typed, ["--workers", "2", "--from", "b", "c", "--grouping=off", "--to=store:x", "--channel=orders"]);
        let typed = expanded("from = 'a'\nto = 'store:x'\n", &["replicate", "--channel", "c"]).unwrap();
        assert_eq!(typed, ["--channel", "c", "--from=a", "--to=store:x"]);
    }

    #[test]
    fn a_channels_file_serves_status_too() {
        let typed =
            expanded("from = 'mysql://a'\nto = 'mysql://b'\nchannel = 'c'\nworkers = 8\n", &["status"]).unwrap();
        assert_eq!(typed, ["--channel=c", "--from=mysql://a", "--to=mysql://b"]);
        // The replica's channel is another thing.
        let typed = expanded("workers = 8\n", &["rescue", "mysql://b"]).unwrap();
        assert_eq!(typed, ["mysql://b", "--workers=8"]);
    }

    /// Names of all commands that stand at the end of a command line.
    fn commands(of: &Command, path: &[String]) -> Vec<Vec<String>> {
        let inner = of.get_subcommands().filter(|one| one.get_name() != "help").flat_map(|one| {
            let path: Vec<String> = path.iter().cloned().chain([one.get_name().to_owned()]).collect();
            let inner = commands(one, &path);
            if inner.is_empty() { vec![path] } else { inner }
        });
        inner.collect()
    }

    #[test]
    fn a_channels_file_is_understood_by_every_command() {
        const BASE: &str = "from = 'mysql://a'\nto = 'mysql://b'\n";
        let root = Cli::command();
        let refusal = |text: &str, command: &[String]| {
            let typed: Vec<&str> = command.iter().map(String::as_str).collect();
            // The usage shows what was given.
            expanded(text, &typed).err().map(|said| said.split("\n\nUsage").next().unwrap_or_default().to_owned())
        };
        let replicate = ["replicate".to_owned()];
        let values = ["true", "'1'", "'1M'", "'auto'", "'127.0.0.1:9104'", "'x'", "'2026-11-20 23:06:50'", "'0-1-1'"];
        let own = root.find_subcommand("replicate").unwrap();
        let names = own.get_arguments().filter_map(Arg::get_long).filter(|name| !["from", "to"].contains(name));
        let mut checked = 0;
        for name in names {
            let texts = values.iter().map(|value| format!("{BASE}{name} = {value}\n"));
            let Some(text) = texts.into_iter().find(|text| refusal(text, &replicate).is_none()) else { continue };
            checked += 1;
            // A file of servers is another one.
            for command in commands(&root, &[]).iter().filter(|command| command[0] != "serve") {
                assert_eq!(refusal(&text, command), refusal(BASE, command), "heddle {}: {text}", command.join(" "));
            }
        }
        assert!(checked > 20, "{checked}");
    }

    #[test]
    fn what_is_not_understood_is_an_error_without_values() {
        for (text, said) in [
            (
                "wrokers = 8\n",
                "unknown key \"wrokers\": `heddle replicate` has no such flag; did you mean \"workers\"?",
            ),
            ("config = 'x'\n", "unknown key \"config\""),
            ("[channel]\nname = 'x'\n", "channel is a text"),
            ("json = 'yes'\n", "json is true or false"),
            ("to = ['a', 'b']\n", "to takes one value"),
            ("to = 'a'\nfrom = \n", "is not TOML: line 2: "),
            ("to = 'a'\nto = 'b'\n", "duplicate key"),
        ] {
            let said_now = expanded(text, &["replicate"]).unwrap_err();
            assert!(said_now.contains(said), "{text}: {said_now}");
        }
        let secret = expanded("to = mysql://u:hidden@h\n", &["replicate"]).unwrap_err();
        assert!(!secret.contains("hidden"), "{secret}");
        let wrong_value = expanded("from = 'a'\nto = 'store:x'\nworkers = 'many'\n", &["replicate"]).unwrap_err();
        assert!(wrong_value.contains("--workers"), "{wrong_value}");
    }

    #[test]
    fn a_file_that_everybody_can_write_is_refused() {
        let (_folder, file) = file("to = 'store:x'\n");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        let refused = |path: &Path| Config::read(path).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused(&file).contains("chmod o-w"));
        assert!(refused(Path::new("/nonexistent.toml")).contains("cannot read the configuration file"));
    }
}
