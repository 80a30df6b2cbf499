//! `heddle run`: several channels by their configuration files.

use std::collections::HashSet;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use toml::Value;

use super::config;
use super::exit::{EXIT_FAILED, EXIT_OK, NEEDS_PERSON, Usage};
use super::http::HttpArgs;
use super::signals::Signals;
use super::state_dir::state_dir;
use crate::cli::log::LogFormat;
use crate::supervisor::{self, ChannelState, Outcome, Program, Requests, Restarts};
use observe::fleet::{Fleet, Member, MemberState};
use observe::http::Http;
use output::say;

/// Run several channels, each described by a configuration file, each in a process of its own
///
/// A file has the flags of `heddle replicate` as TOML: from = "mysql://…", to = "mysql://…", workers = 8. Without a key `channel`, the
/// file's name without .toml is the channel's name. A file with tables [serve.NAME] has the flags of `heddle serve` in each of them, and each is a server. A channel that ends because a server or the network is away is started again, with pauses that grow to a
/// minute; one that needs a person stays stopped, and the others go on. New files are started, changed ones restarted, and what has no file any more ends; SIGHUP looks at once,
/// and tries again what has ended. Of a folder it goes on while a channel needs a person; named files end when all of them have ended.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heddle run /etc/heddle/channels
  heddle run orders.toml users.toml
  heddle run --dry-run /etc/heddle/channels

Passwords: option files (source-defaults-file, target-defaults-file in each configuration file), or HEDDLE_SOURCE_PASSWORD and HEDDLE_TARGET_PASSWORD for all.")]
pub struct RunArgs {
    /// Configuration files, or folders of which every *.toml is read
    #[arg(required = true, value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// How long a channel that may succeed later waits before it is started again
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    restart_seconds: u64,
    #[command(flatten)]
    http: HttpArgs,
    /// Check every channel and say what would happen; change nothing
    #[arg(long)]
    dry_run: bool,
}

/// What the channels' processes are told beside their files.
pub struct SharedFlags {
    pub filter: Option<String>,
    pub format: LogFormat,
    pub bookkeeping_schema: Option<String>,
}

pub fn run(args: &RunArgs, log: &SharedFlags) -> Result<ExitCode> {
    let sockets = args.http.http.is_some().then(Sockets::new).transpose()?;
    let sockets = sockets.as_ref();
    let first = programs(&args.files, log, sockets)?;
    if first.is_empty() {
        let named: Vec<String> = args.files.iter().map(|path| path.display().to_string()).collect();
        return Err(Usage(format!("{}: there is no *.toml in this folder", named.join(", "))).into());
    }
    if args.dry_run {
        return check(&first);
    }
    let (stop, reload) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let _signals = Signals::watch_for_reload(&stop, &reload)?;
    let restarts = Restarts {
        after: Duration::from_secs(args.restart_seconds),
        needs_person: &NEEDS_PERSON,
        follows_folder: args.files.iter().any(|path| path.is_dir()),
    };
    let fleet = Arc::new(Fleet::default());
    let listen = args.http.listen().map_err(Usage)?;
    let _http = listen.map(|listen| Http::start_fleet(listen, Arc::clone(&fleet))).transpose()?;
    let mut list = || programs(&args.files, log, sockets);
    let mut show = |channels: &[(&Program, ChannelState)]| fleet.set(channels.iter().map(member).collect());
    let outcome = supervisor::run(&mut list, restarts, Requests { stop: &stop, reload: &reload }, &mut show)?;
    Ok(ExitCode::from(match outcome {
        Outcome::Done => EXIT_OK,
        Outcome::NeedsPerson => EXIT_FAILED,
    }))
}

fn member((program, state): &(&Program, ChannelState)) -> Member {
    let state = match state {
        ChannelState::Running => MemberState::Running,
        ChannelState::Waiting => MemberState::Waiting,
        ChannelState::Ended => MemberState::Ended,
        ChannelState::NeedsPerson => MemberState::NeedsPerson,
    };
    Member { name: program.channel.clone(), state, socket: program.socket.clone() }
}

/// A folder for the sockets of the processes. It goes when this is dropped.
struct Sockets(PathBuf);

impl Sockets {
    fn new() -> Result<Self> {
        let dir = state_dir().context("--http")?.join(format!("run-{}", std::process::id()));
        std::fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700))
            .with_context(|| dir.display().to_string())?;
        Ok(Self(dir))
    }

    /// Of the program with this id.
    fn of(&self, id: &str) -> PathBuf {
        self.0.join(format!("{:016x}.sock", version(id.as_bytes())))
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One after the other, so that each has its report in one piece.
fn check(programs: &[Program]) -> Result<ExitCode> {
    let mut worst = EXIT_OK;
    for program in programs {
        say!("channel {} ({})", program.channel, program.file.display());
        if program.is_server() {
            say!("a server: its flags are checked when it starts; it changes nothing but its folder");
            continue;
        }
        let status = Command::new(&program.path).args(&program.arguments).arg("--dry-run").status();
        let code = status.with_context(|| program.path.display().to_string())?.code();
        worst = worst.max(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(EXIT_FAILED));
    }
    Ok(ExitCode::from(worst))
}

/// `sockets`: processes whose files do not say where they are shown are shown there.
fn programs(named: &[PathBuf], log: &SharedFlags, sockets: Option<&Sockets>) -> Result<Vec<Program>> {
    let path = std::env::current_exe().context("the path of this program")?;
    let mut programs = Vec::new();
    let mut known = HashSet::new();
    for file in files(named)? {
        // What is wrong with a file is said by its channel's process: the others run.
        let read = config::Config::read(&file).ok();
        if let Some(servers) = read.as_ref().and_then(config::Config::servers) {
            for (name, server) in servers {
                let dir = server.get("dir").and_then(Value::as_str).unwrap_or_default().to_owned();
                if !known.insert((String::new(), dir.clone())) {
                    return Err(Usage(format!("{}: two servers have the folder {dir:?}", file.display())).into());
                }
                let id = format!("{}#{name}", file.display());
                let socket = sockets.filter(|_| server.get("http").is_none()).map(|sockets| sockets.of(&id));
                let mut arguments = log.added_to(vec![
                    "serve".into(),
                    "--config".into(),
                    (&file).into(),
                    "--section".into(),
                    name.into(),
                ]);
                show_at(&mut arguments, socket.as_deref());
                programs.push(Program {
                    subject: format!("mirror {dir}"),
                    id,
                    socket,
                    version: version(format!("{server:?}").as_bytes()),
                    is_valid: true,
                    channel: name.clone(),
                    file: file.clone(),
                    path: path.clone(),
                    arguments,
                });
            }
            continue;
        }
        let is_valid = read.is_some();
        let table = read.map(|config| config.table).unwrap_or_default();
        let channel = config::channel(&file, &table);
        let target = table.get("to").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !known.insert((channel.clone(), target.clone())) {
            return Err(Usage(format!(
                "{}: another file has the channel {channel} on the same target",
                file.display()
            ))
            .into());
        }
        let id = file.display().to_string();
        let socket = sockets.filter(|_| table.get("http").is_none()).map(|sockets| sockets.of(&id));
        let mut arguments = arguments(&file, &channel, log);
        show_at(&mut arguments, socket.as_deref());
        programs.push(Program {
            subject: format!("channel {channel} of {target}"),
            id,
            socket,
            version: version(&std::fs::read(&file).unwrap_or_default()),
            is_valid,
            channel,
            file,
            path: path.clone(),
            arguments,
        });
    }
    tell_apart(&mut programs);
    Ok(programs)
}

fn show_at(arguments: &mut Vec<OsString>, socket: Option<&Path>) {
    if let Some(socket) = socket {
        let mut place = OsString::from("unix:");
        place.push(socket);
        arguments.extend(["--http".into(), place]);
    }
}

fn version(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Channels of one name, into several targets, get their files' names: lines of the log begin with them.
fn tell_apart(programs: &mut [Program]) {
    let names: Vec<String> = programs.iter().map(|program| program.channel.clone()).collect();
    for program in programs {
        if names.iter().filter(|name| **name == program.channel).count() > 1 {
            let file = program.file.file_name().unwrap_or_default().to_string_lossy();
            program.channel = format!("{} of {file}", program.channel);
        }
    }
}

/// Every file once, those of a folder by their names.
fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.with_context(|| path.display().to_string())?.path();
            if entry.extension().is_some_and(|extension| extension == "toml") {
                found.push(entry);
            }
        }
        found.sort_unstable();
        files.extend(found);
    }
    Ok(files)
}

fn arguments(file: &Path, channel: &str, log: &SharedFlags) -> Vec<OsString> {
    log.added_to(vec!["replicate".into(), "--config".into(), file.into(), "--channel".into(), channel.into()])
}

impl SharedFlags {
    fn added_to(&self, mut arguments: Vec<OsString>) -> Vec<OsString> {
        if let Some(filter) = &self.filter {
            arguments.extend(["--log".into(), filter.into()]);
        }
        if self.format == LogFormat::Json {
            arguments.extend(["--log-format".into(), "json".into()]);
        }
        if let Some(name) = &self.bookkeeping_schema {
            arguments.extend(["--bookkeeping-schema".into(), name.into()]);
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_its_files_by_name_and_the_name_is_the_channel() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("b.toml", ""), ("a.toml", "channel = 'orders'"), ("c.txt", "")] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let log = SharedFlags {
            filter: Some("warn".to_owned()),
            format: LogFormat::Json,
            bookkeeping_schema: Some("books".to_owned()),
        };
        let programs = programs(&[dir.path().to_owned()], &log, None).unwrap();
        let channels: Vec<&str> = programs.iter().map(|program| program.channel.as_str()).collect();
        assert_eq!(channels, ["orders", "b"]);
        let said: Vec<_> =
            programs[1].arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
        let file = dir.path().join("b.toml").display().to_string();
        let right = "--channel b --log warn --log-format json --bookkeeping-schema books";
        assert_eq!(said.join(" "), format!("replicate --config {file} {right}"));
    }

    #[test]
    fn two_channels_of_one_name_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        for (name, to) in [("a", "x"), ("b", "y"), ("c", "z")] {
            let channel = if name == "c" { "orders" } else { "default" };
            let text = format!("channel = '{channel}'\nto = 'store:{to}'");
            std::fs::write(dir.path().join(format!("{name}.toml")), text).unwrap();
        }
        let log = SharedFlags { filter: None, format: LogFormat::Text, bookkeeping_schema: None };
        let programs = programs(&[dir.path().to_owned()], &log, None).unwrap();
        let names: Vec<&str> = programs.iter().map(|program| program.channel.as_str()).collect();
        assert_eq!(names, ["default of a.toml", "default of b.toml", "orders"]);
    }

    #[test]
    fn a_file_of_servers_is_one_process_each() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mirrors.toml");
        let text = "[serve.orders]\nfrom = 'mysql://a'\ndir = '/a'\n[serve.users]\nfrom = 'mysql://b'\ndir = '/b'\n";
        std::fs::write(&file, text).unwrap();
        let log = SharedFlags { filter: None, format: LogFormat::Text, bookkeeping_schema: None };
        let found = programs(std::slice::from_ref(&file), &log, None).unwrap();
        let [orders, users] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((orders.channel.as_str(), users.channel.as_str()), ("orders", "users"));
        let right = ["serve", "--config", file.to_str().unwrap(), "--section", "users"].map(OsString::from);
        assert_eq!(users.arguments, right);
        std::fs::write(&file, text.replace("/b", "/a")).unwrap();
        let twice = programs(&[file], &log, None).unwrap_err();
        assert!(twice.to_string().contains("two servers have the folder"), "{twice}");
    }

    #[test]
    fn two_files_for_one_channel_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let log = SharedFlags { filter: None, format: LogFormat::Text, bookkeeping_schema: None };
        assert!(programs(&[dir.path().to_owned()], &log, None).unwrap().is_empty());
        let file = dir.path().join("a.toml");
        std::fs::write(&file, "to = 'store:x'").unwrap();
        let twice = programs(&[file.clone(), file], &log, None).unwrap_err();
        assert!(twice.to_string().contains("another file has the channel a"), "{twice}");
    }
}
