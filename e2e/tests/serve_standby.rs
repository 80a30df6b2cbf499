//! Two binlog servers of one source, one the standby of the other (`serve --standby-of`): replicas go on at the other one, whatever becomes of the first.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Heddle, heddle};
use e2e::http::get;
use e2e::native::statement;
use e2e::proxy::{Fault, Proxy};
use e2e::semisync::Words;
use e2e::served::{Ask, By, assert_same, attach, connect, status_of, status_of_mirror};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server, USER, free_port};
use e2e::until;
use e2e::virtual_address::VirtualAddress;
use rustix::process::Signal;

const TABLE: &str = "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(40))";
const ROW: &str = "INSERT INTO a.t (text) VALUES (UUID())";

/// Two of them, each the standby of the other, and the address that their replicas have.
struct Duo {
    sources: [u16; 2],
    dir: tempfile::TempDir,
    ports: [u16; 2],
    pages: [u16; 2],
    address: VirtualAddress,
    processes: [Option<Heddle>; 2],
    options: Vec<&'static str>,
}

impl Duo {
    /// `sources`: where each of them finds the source.
    fn new(sources: [u16; 2], options: &[&'static str]) -> Result<Duo> {
        let ports = [free_port()?, free_port()?];
        Ok(Duo {
            sources,
            dir: tempfile::tempdir()?,
            ports,
            pages: [free_port()?, free_port()?],
            address: VirtualAddress::start(ports.to_vec())?,
            processes: [None, None],
            options: options.to_vec(),
        })
    }

    fn folder(&self, number: usize) -> PathBuf {
        self.dir.path().join(number.to_string())
    }

    fn start(&mut self, number: usize) -> Result<()> {
        let url = |port: u16| format!("mysql://{USER}@127.0.0.1:{port}?ssl-mode=disabled&get-server-public-key=true");
        let (from, dir) = (url(self.sources[number]), self.folder(number).display().to_string());
        let (listen, page) = (format!("127.0.0.1:{}", self.ports[number]), format!("127.0.0.1:{}", self.pages[number]));
        let other = format!("mysql://{USER}@127.0.0.1:{}", self.ports[1 - number]);
        let mut arguments = vec!["serve", "--from", &from, "--dir", &dir, "--listen", &listen, "--replica-user", USER];
        arguments.extend(["--standby-of", &other, "--http", &page]);
        arguments.extend(&self.options);
        self.processes[number] = Some(Heddle::start(&arguments)?);
        Ok(())
    }

    /// The first one lets replicas attach, and the second one waits.
    fn start_both(&mut self) -> Result<()> {
        self.start(0)?;
        self.until_open(0)?;
        self.start(1)?;
        self.until_waits(1)
    }

    fn process(&mut self, number: usize) -> Result<&mut Heddle> {
        self.processes[number].as_mut().context("no such process")
    }

    fn is_open(&self, number: usize) -> bool {
        connect(self.ports[number], PASSWORD).is_ok()
    }

    fn until_open(&mut self, number: usize) -> Result<()> {
        until(format!("{number} is open"), || {
            let ended = self.process(number)?.has_ended()?;
            ensure!(!ended, "{}", self.process(number)?.log());
            Ok(self.is_open(number))
        })
    }

    /// It says so, has the source's log, and refuses connections.
    fn until_waits(&self, number: usize) -> Result<()> {
        until(format!("{number} waits"), || {
            let status = status_of_mirror(&self.folder(number)).unwrap_or_default();
            let waits = status["standby"]["waits"] == true && status["source"]["state"] == "connected";
            Ok(waits && !self.is_open(number))
        })
    }

    fn ready(&self, number: usize) -> Result<String> {
        get(self.pages[number], "/readyz")
    }

    fn end(mut self) -> Result<()> {
        for process in self.processes.iter_mut().filter_map(Option::take) {
            process.terminate()?;
            process.wait()?.successful()?;
        }
        Ok(())
    }
}

/// Rows that come while `during` runs.
fn beside_rows(source: &Server, during: impl FnOnce() -> Result<()>) -> Result<()> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                source.execute(&format!("{ROW};{ROW};{ROW}"))?;
                thread::sleep(Duration::from_millis(20));
            }
            anyhow::Ok(())
        });
        let done = during();
        stop.store(true, Ordering::Relaxed);
        let written = writing.join().map_err(|_| anyhow::anyhow!("the writing thread ended"))?;
        done.and(written)
    })
}

fn servers(kind: Kind) -> Result<(Server, Server)> {
    let words = Words::of(kind).options();
    let options: Vec<&str> = words.iter().map(String::as_str).collect();
    let (source, replica) =
        Server::start_two((kind, &options), (kind, &["--gtid-strict-mode=ON"][..usize::from(kind.is_mariadb())]))?;
    source.execute(TABLE)?;
    Ok((source, replica))
}

/// Rows arrive that are written from now on.
fn goes_on(source: &Server, replica: &Server) -> Result<()> {
    source.execute(ROW)?;
    let count = "SELECT COUNT(*) FROM a.t";
    let wanted: u64 = source.scalar(count)?.parse()?;
    // The table may not be there yet.
    let has = || replica.scalar(count).is_ok_and(|count| count.parse::<u64>().is_ok_and(|found| found >= wanted));
    until(format!("{wanted} rows"), || Ok(has()))
        .with_context(|| status_of(replica, "Last_IO_Error").unwrap_or_default())
}

/// Killed, started again as the standby, taken over from at an orderly end.
fn replicas_go_on(kind: Kind) -> Result<()> {
    let (source, replica) = servers(kind)?;
    let mut duo = Duo::new([source.port; 2], &[])?;
    duo.start_both()?;
    ensure!(duo.ready(0)?.contains("200") && duo.ready(1)?.contains("it stands by"), "{}", duo.ready(1)?);
    let metrics = |duo: &Duo, number: usize| get(duo.pages[number], "/metrics");
    let says = |text: &str, value: &str| {
        text.lines().any(|line| line.starts_with("heddle_mirror_standby{") && line.ends_with(value))
    };
    ensure!(says(&metrics(&duo, 0)?, "} 0.0") && says(&metrics(&duo, 1)?, "} 1.0"), "{}", metrics(&duo, 1)?);
    let status = heddle(&["status", "--dir", &duo.folder(1).display().to_string()])?.successful()?.stdout;
    ensure!(status.contains("replicas attach there"), "{status}");
    attach(&replica, Ask::new(duo.address.port, By::Gtid))?;
    beside_rows(&source, || {
        goes_on(&source, &replica)?;
        let killed = duo.processes[0].take().context("the first")?;
        killed.kill()?;
        killed.wait()?;
        let since = Instant::now();
        duo.until_open(1)?;
        eprintln!("{kind}: open {:.2?} after a kill", since.elapsed());
        goes_on(&source, &replica)?;
        duo.start(0)?;
        duo.until_waits(0)?;
        ensure!(duo.is_open(1), "both wait");
        let ends = duo.processes[1].take().context("the second")?;
        ends.terminate()?;
        ends.wait()?.successful()?;
        let since = Instant::now();
        duo.until_open(0)?;
        eprintln!("{kind}: open {:.2?} after an orderly end", since.elapsed());
        goes_on(&source, &replica)
    })?;
    assert_same(&source, &replica)?;
    duo.end()
}

/// A process that hangs. When it wakes up both are open, which is no harm.
fn hangs(kind: Kind) -> Result<()> {
    let (source, replica) = servers(kind)?;
    let mut duo = Duo::new([source.port; 2], &[])?;
    duo.start_both()?;
    beside_rows(&source, || {
        duo.process(0)?.signal(Signal::STOP)?;
        let since = Instant::now();
        duo.until_open(1)?;
        eprintln!("{kind}: open {:.2?} after SIGSTOP", since.elapsed());
        attach(&replica, Ask::new(duo.ports[1], By::Gtid))?;
        goes_on(&source, &replica)?;
        duo.process(0)?.signal(Signal::CONT)?;
        until("the first answers again", || Ok(duo.is_open(0)))?;
        replica.execute(statement(&replica, "STOP"))?;
        attach(&replica, Ask::new(duo.ports[0], By::Gtid))?;
        goes_on(&source, &replica)
    })?;
    assert_same(&source, &replica)?;
    duo.end()
}

/// The first one is cut off from the source: its replicas go to the one that hears it.
fn source_is_cut(kind: Kind) -> Result<()> {
    let (source, replica) = servers(kind)?;
    let proxy = Proxy::start(source.port, Fault::Frozen, 1, 1)?;
    let mut duo = Duo::new([proxy.port, source.port], &[])?;
    duo.start_both()?;
    attach(&replica, Ask::new(duo.address.port, By::Gtid))?;
    beside_rows(&source, || {
        goes_on(&source, &replica)?;
        proxy.pull_cable();
        let since = Instant::now();
        duo.until_open(1)?;
        eprintln!("{kind}: open {:.2?} after the cut", since.elapsed());
        until("the first one has stepped back", || Ok(!duo.is_open(0)))?;
        goes_on(&source, &replica)?;
        proxy.plug_cable();
        duo.until_waits(0)?;
        goes_on(&source, &replica)
    })?;
    assert_same(&source, &replica)?;
    duo.end()
}

/// The source waits for an acknowledgement for ever: the standby acknowledges, too.
fn commits_go_on(kind: Kind) -> Result<()> {
    let (source, replica) = servers(kind)?;
    let words = Words::of(kind);
    let mut duo = Duo::new([source.port; 2], &["--ack", "local"])?;
    duo.start_both()?;
    words.enable(&source)?;
    words.wait_status(&source, "clients", |clients| clients == "2")?;
    attach(&replica, Ask::new(duo.address.port, By::Gtid))?;
    beside_rows(&source, || {
        goes_on(&source, &replica)?;
        for number in [0, 1] {
            let killed = duo.processes[number].take().context("a process")?;
            killed.kill()?;
            killed.wait()?;
            duo.until_open(1 - number)?;
            goes_on(&source, &replica)?;
            duo.start(number)?;
            duo.until_waits(number)?;
            words.wait_status(&source, "clients", |clients| clients == "2")?;
        }
        Ok(())
    })?;
    assert_same(&source, &replica)?;
    duo.end()
}

/// What is no such pair says so, and lets nobody attach.
fn wrong_peers(kind: Kind) -> Result<()> {
    let source = Server::start(kind, &[])?;
    source.execute(TABLE)?;
    let dir = tempfile::tempdir()?;
    let begin = |name: &str, more: &[&str]| -> Result<(Heddle, u16)> {
        let port = free_port()?;
        let (from, dir) = (source.plain_url(), dir.path().join(name).display().to_string());
        let listen = format!("127.0.0.1:{port}");
        let base = ["serve", "--from", &from, "--dir", &dir, "--listen", &listen, "--replica-user", USER];
        Ok((Heddle::start(&[&base[..], more].concat())?, port))
    };
    let (grouping, its_port) = begin("grouping", &["--group", "auto"])?;
    until("it is open", || Ok(connect(its_port, PASSWORD).is_ok()))?;
    let (mut of_source, port) = begin("of-source", &["--standby-of", &source.plain_url()])?;
    of_source.wait_for_log("it is no heddle serve")?;
    let peer = format!("mysql://{USER}@127.0.0.1:{its_port}");
    let (mut of_grouping, other_port) = begin("of-grouping", &["--standby-of", &peer])?;
    of_grouping.wait_for_log("it sends groups")?;
    grouping.kill()?;
    grouping.wait()?;
    thread::sleep(Duration::from_secs(2));
    for (process, port) in [(&mut of_source, port), (&mut of_grouping, other_port)] {
        ensure!(!process.has_ended()? && connect(port, PASSWORD).is_err(), "{}", process.log());
    }
    for process in [of_source, of_grouping] {
        process.terminate()?;
        process.wait()?.successful()?;
    }
    let both = heddle(&[
        "serve",
        "--from",
        "mysql://a@h",
        "--dir",
        "d",
        "--listen",
        "h:1",
        "--group",
        "auto",
        "--standby-of",
        "mysql://a@h",
    ])?;
    ensure!(both.status.code() == Some(2), "{both}");
    Ok(())
}

/// As `heddle run` starts them: the same file on both machines but for the other's address.
fn by_configuration_file(kind: Kind) -> Result<()> {
    let (source, replica) = servers(kind)?;
    let (dir, ports) = (tempfile::tempdir()?, [free_port()?, free_port()?]);
    let file = |number: usize| -> Result<String> {
        let path = dir.path().join(format!("mirrors-{number}.toml"));
        let text = format!(
            "[serve.orders]\nfrom = \"{}\"\ndir = \"{}\"\nlisten = \"127.0.0.1:{}\"\nreplica-user = \"{USER}\"\nstandby-of = \"mysql://{USER}@127.0.0.1:{}\"\n",
            source.plain_url(),
            Path::new(dir.path()).join(number.to_string()).display(),
            ports[number],
            ports[1 - number]
        );
        std::fs::write(&path, text)?;
        Ok(path.display().to_string())
    };
    let first = Heddle::start(&["run", &file(0)?])?;
    until("the first is open", || Ok(connect(ports[0], PASSWORD).is_ok()))?;
    let mut second = Heddle::start(&["run", &file(1)?])?;
    second.wait_for_log("standby of")?;
    attach(&replica, Ask::new(VirtualAddress::start(ports.to_vec())?.port, By::Gtid))?;
    goes_on(&source, &replica)?;
    first.terminate()?;
    first.wait()?.successful()?;
    goes_on(&source, &replica)?;
    assert_same(&source, &replica)?;
    second.terminate()?;
    second.wait()?.successful().map(drop)
}

e2e::tests! {
    mariadb_replicas_go_on: replicas_go_on(MARIADB_10_11);
    mysql_replicas_go_on: replicas_go_on(MYSQL_9_7);
    mysql_wrong_peers: wrong_peers(MYSQL_9_7);
    mariadb_by_configuration_file: by_configuration_file(MARIADB_10_11);
    #[ignore = "long: scripts/nightly standby"]
    mariadb_hangs: hangs(MARIADB_10_11);
    #[ignore = "long: scripts/nightly standby"]
    mysql_hangs: hangs(MYSQL_9_7);
    #[ignore = "long: scripts/nightly standby"]
    mariadb_source_is_cut: source_is_cut(MARIADB_10_11);
    #[ignore = "long: scripts/nightly standby"]
    mysql_source_is_cut: source_is_cut(MYSQL_9_7);
    #[ignore = "long: scripts/nightly standby"]
    mariadb_commits_go_on: commits_go_on(MARIADB_10_11);
    #[ignore = "long: scripts/nightly standby"]
    mysql_commits_go_on: commits_go_on(MYSQL_9_7);
}
