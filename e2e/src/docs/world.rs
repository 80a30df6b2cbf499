//! Where the pages' blocks are run: two servers of a vendor (or none), a folder for each page, and the names that the pages use for both.
//!
//! It takes what a page shows literally but for names of hosts and folders. What a block must print is compared in `compare.rs`.

use anyhow::{Context, Result, bail, ensure};
use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::compare::missing;
use super::{Block, Page, Run, Use, Vendor};
use crate::heddle::binary;
use crate::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server, servers_script};

/// A block that has not ended by then hangs.
const STUCK_AFTER: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What pages call the server that heddle applies to; the other one is `source`.
const TARGETS: [&str; 3] = ["target", "replica", "restore"];
const TOOLS: [(&str, &str); 3] =
    [("mysql", "mariadb"), ("mysqldump", "mariadb-dump"), ("mysqlbinlog", "mariadb-binlog")];

/// Written into every block's script.
const FUNCTIONS: &str = include_str!("functions.sh");

/// The servers of one run through the pages.
pub struct World {
    vendor: Vendor,
    servers: Option<(Server, Server)>,
    tools: tempfile::TempDir,
}

/// One page being run.
struct Stage<'w> {
    world: &'w World,
    folder: tempfile::TempDir,
    /// The one that goes on.
    running: Option<Child>,
    printed: String,
}

impl World {
    pub fn new(vendor: Vendor) -> Result<World> {
        let servers = match kind(vendor) {
            Some(kind) => {
                let options = ["--binlog-format=ROW"];
                Some(Server::start_two((kind, &options), (kind, &options))?)
            }
            None => None,
        };
        let tools = tempfile::tempdir()?;
        let world = World { vendor, servers, tools };
        world.write_tools()?;
        Ok(world)
    }

    /// Runs the blocks of a page that are for this vendor. Says which block does not do what the page says.
    pub fn run(&self, page: &Page) -> Result<usize> {
        let has = |used: &Use| matches!(used, Use::Run(run) if run.servers.has(self.vendor));
        let count = page.blocks.iter().filter_map(|block| block.used.as_ref()).filter(|used| has(used)).count();
        if count == 0 {
            return Ok(0);
        }
        self.reset().with_context(|| format!("{}: before it", page.name))?;
        let mut stage = Stage { world: self, folder: tempfile::tempdir()?, running: None, printed: String::new() };
        stage.prepare()?;
        for block in &page.blocks {
            stage.block(block).with_context(|| format!("{}:{} ({:?})", page.name, block.line, self.vendor))?;
        }
        Ok(count)
    }

    /// As new: nothing but a shop on the source, and an account with all rights on both.
    fn reset(&self) -> Result<()> {
        let Some((source, target)) = &self.servers else { return Ok(()) };
        for server in [source, target] {
            let list = "SELECT CONCAT('DROP DATABASE `', schema_name, '`;') FROM information_schema.schemata WHERE schema_name NOT IN \
                        ('mysql', 'sys', 'information_schema', 'performance_schema') UNION ALL \
                        SELECT CONCAT('DROP USER ', QUOTE(user), '@', QUOTE(host), ';') FROM mysql.user \
                        WHERE user NOT IN ('root', 'mariadb.sys', 'mysql', '') AND user NOT LIKE 'mysql.%'";
            let drops = as_root(server, list)?;
            let (stop, log) = if server.kind.is_mariadb() {
                ("STOP ALL SLAVES; RESET SLAVE ALL; SET GLOBAL gtid_slave_pos=''", "RESET MASTER")
            } else {
                ("STOP REPLICA; RESET REPLICA ALL", "RESET BINARY LOGS AND GTIDS")
            };
            as_root(
                server,
                &format!(
                    "SET GLOBAL read_only=OFF; {stop}; SET foreign_key_checks=0; {drops} CREATE USER heddle@'%' IDENTIFIED BY 'secret'; \
                     GRANT ALL ON *.* TO heddle@'%' WITH GRANT OPTION; {log};"
                ),
            )?;
        }
        as_root(source, include_str!("shop.sql")).map(drop)
    }

    /// The servers' programs under their own names, with `-h source` and the like in the place of sockets.
    fn write_tools(&self) -> Result<()> {
        let Some(kind) = kind(self.vendor) else { return Ok(()) };
        for (mysql, mariadb) in TOOLS {
            let tool = if kind.is_mariadb() { mariadb } else { mysql };
            let words = servers_script(&["words", kind.client_tree(), tool]).output()?;
            ensure!(words.status.success(), "{tool}: {}", String::from_utf8_lossy(&words.stderr));
            let words: Vec<String> = String::from_utf8_lossy(&words.stdout).lines().map(quoted).collect();
            let path = self.tools.path().join(tool);
            std::fs::write(&path, format!("#!/bin/bash\nPROGRAM=({})\n{}", words.join(" "), include_str!("tool.sh")))?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    }

    /// Hosts and folders of the pages as they are here.
    fn translated(&self, text: &str, folder: &Path) -> String {
        let mut text = text.to_owned();
        let inside = |name: &str| folder.join(name).display().to_string();
        if let Some((source, target)) = &self.servers {
            text = text.replace("source:3306", &format!("127.0.0.1:{}", source.port));
            for name in TARGETS {
                text = text.replace(&format!("{name}:3306"), &format!("127.0.0.1:{}", target.port));
            }
            text = text.replace("/var/lib/mysql/", &format!("{}/", source.data().display()));
        }
        for (shown, here) in
            [("/backup", "backup"), ("/srv/", "srv/"), ("/etc/heddle", "etc"), ("/var/lib/heddle", "state")]
        {
            text = text.replace(shown, &inside(here));
        }
        text
    }

    /// The other way round, in what was printed.
    fn untranslated(&self, text: &str, folder: &Path) -> String {
        let mut text = text.replace(&format!("{}/", folder.display()), "");
        if let Some((source, target)) = &self.servers {
            text = text.replace(&format!("127.0.0.1:{}", source.port), "source:3306");
            text = text.replace(&format!("127.0.0.1:{}", target.port), "target:3306");
            text = text.replace(&source.data().display().to_string(), "/var/lib/mysql");
        }
        text
    }
}

fn kind(vendor: Vendor) -> Option<Kind> {
    match vendor {
        Vendor::MySql => Some(MYSQL_9_7),
        Vendor::MariaDb => Some(MARIADB_10_11),
        Vendor::None => None,
    }
}

/// Statements, or a query's answer.
fn as_root(server: &Server, sql: &str) -> Result<String> {
    let output = server
        .client(&["--user=root", "--batch", "--skip-column-names", "-e", sql])
        .env_remove("MYSQL_PWD")
        .output()?;
    ensure!(output.status.success(), "{}: {sql}: {}", server.kind, String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

impl Stage<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What every script begins with.
    fn prepare(&self) -> Result<()> {
        for folder in ["backup", "srv", "etc", "state"] {
            std::fs::create_dir(self.path(folder))?;
        }
        let heddle = binary()?.canonicalize()?;
        let heddle = heddle.parent().context("heddle's folder")?.display().to_string();
        let mut begin = format!(
            "export HOME={folder}\nexport PATH={tools}:{heddle}:/usr/local/bin:/usr/bin:/bin\nexport XDG_STATE_HOME={folder}/state\n\
             export HEDDLE_SOURCE_PASSWORD=secret HEDDLE_TARGET_PASSWORD=secret\nexport FOLDER={folder}\n",
            folder = self.folder.path().display(),
            tools = self.world.tools.path().display(),
        );
        if let Some((source, target)) = &self.world.servers {
            let _ = writeln!(begin, "export SOCKET_source={}", source.socket().display());
            let _ = writeln!(begin, "export SOURCE_DATA={}", source.data().display());
            let _ = writeln!(begin, "export SOURCE_PORT={} TARGET_PORT={}", source.port, target.port);
            for name in TARGETS {
                let _ = writeln!(begin, "export SOCKET_{name}={}", target.socket().display());
            }
            let client = if source.kind.is_mariadb() { "mariadb" } else { "mysql" };
            let _ = writeln!(begin, "export CLIENT={client}");
        }
        std::fs::write(self.path(".environment"), begin)?;
        std::fs::write(self.path(".functions"), FUNCTIONS)?;
        Ok(())
    }

    fn block(&mut self, block: &Block) -> Result<()> {
        let text = self.world.translated(&block.text, self.folder.path());
        match &block.used {
            Some(Use::Run(run)) if run.servers.has(self.world.vendor) => self.run(run, &block.language, &text),
            Some(Use::Output(servers)) if servers.has(self.world.vendor) => match missing(&block.text, &self.printed) {
                Some(line) => bail!("nothing printed is {line:?}; printed:\n{}", self.printed),
                None => Ok(()),
            },
            Some(Use::File(path)) => {
                let path = self.world.translated(path, self.folder.path());
                let path = if path.starts_with('/') { PathBuf::from(path) } else { self.path(&path) };
                std::fs::write(&path, format!("{text}\n")).with_context(|| path.display().to_string())
            }
            _ => Ok(()),
        }
    }

    fn run(&mut self, run: &Run, language: &str, text: &str) -> Result<()> {
        let mut script = ". ./.functions\n. ./.environment\nset -euo pipefail\n".to_owned();
        let _ = writeln!(script, "{}", self.world.translated(&run.first, self.folder.path()));
        let text = run.with.iter().fold(text.to_owned(), |text, (shown, meant)| text.replace(shown, meant));
        if language == "sql" {
            let _ = writeln!(script, "\"$CLIENT\" --table -h {} <<'END_OF_BLOCK'\n{text}\nEND_OF_BLOCK", run.host);
        } else {
            let _ = writeln!(script, "{text}");
        }
        // What a block exports is there for the next one.
        let _ = writeln!(script, "export -p > .environment");
        std::fs::write(self.path(".script"), &script)?;
        let log = self.path(if run.goes_on { ".goes-on" } else { ".printed" });
        let child = self.start(&log)?;
        if run.goes_on {
            std::fs::write(self.path(".running"), child.id().to_string())?;
            self.running = Some(child);
            return self.wait_until_idle(&log);
        }
        let code = wait(child, &log)?;
        self.printed = self.world.untranslated(&std::fs::read_to_string(&log)?, self.folder.path());
        ensure!(code == run.exits, "exit code {code}, not {}; printed:\n{}", run.exits, self.printed);
        Ok(())
    }

    fn start(&self, log: &Path) -> Result<Child> {
        let out = File::create(log)?;
        let mut command = Command::new("/bin/bash");
        command.arg(".script").current_dir(self.folder.path()).env_clear().process_group(0);
        command.stdin(Stdio::null()).stderr(out.try_clone()?).stdout(out);
        command.spawn().context("bash")
    }

    /// A channel that follows its source has applied all that there is.
    fn wait_until_idle(&mut self, log: &Path) -> Result<()> {
        let Some((source, target)) = &self.world.servers else { bail!("goes on: for servers") };
        for _ in 0..STUCK_AFTER.as_millis() / LOOK_EVERY.as_millis() {
            let ended = match &mut self.running {
                Some(child) => child.try_wait()?.is_some(),
                None => true,
            };
            ensure!(!ended, "ended:\n{}", std::fs::read_to_string(log)?);
            let status = Command::new(binary()?)
                .args(["status", "--json", "--to", &url(target), "--from", &url(source)])
                .env("HEDDLE_TARGET_PASSWORD", "secret")
                .env("HEDDLE_SOURCE_PASSWORD", "secret")
                .output()?;
            let channels: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
            let channels = channels.as_array().map(Vec::as_slice).unwrap_or_default();
            let is_idle = |channel: &serde_json::Value| {
                channel.get("state").is_some_and(|state| state == "idle")
                    && channel.pointer("/lag/bytes").is_some_and(|bytes| *bytes == 0)
            };
            if !channels.is_empty() && channels.iter().any(is_idle) {
                self.printed = self.world.untranslated(&std::fs::read_to_string(log)?, self.folder.path());
                return Ok(());
            }
            thread::sleep(LOOK_EVERY);
        }
        bail!("never idle:\n{}", std::fs::read_to_string(log)?)
    }
}

fn wait(mut child: Child, log: &Path) -> Result<i32> {
    for _ in 0..STUCK_AFTER.as_millis() / LOOK_EVERY.as_millis() {
        if let Some(status) = child.try_wait()? {
            return status.code().context("ended by a signal");
        }
        thread::sleep(LOOK_EVERY);
    }
    end(&mut child);
    bail!("does not end; printed:\n{}", std::fs::read_to_string(log)?)
}

fn url(server: &Server) -> String {
    format!("mysql://heddle@127.0.0.1:{}", server.port)
}

/// Ends a block's shell and all that it has started.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.running {
            end(child);
        }
    }
}
