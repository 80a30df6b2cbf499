//! `heddle serve --ack`: a source waits for Heddle, Heddle waits for other Heddles, replicas are semi-synchronous replicas of Heddle; and nothing that was acknowledged is lost.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::checksum::assert_equal;
use e2e::native::{statement, wait_caught_up};
use e2e::semisync::{Acknowledger, STUCK_AFTER, Words, kills, marks};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server, USER};

/// A statement that is waited for on another thread: whether it has come through.
struct Waiting(thread::JoinHandle<Result<()>>);

impl Waiting {
    fn insert(source: &Server, id: u32) -> Result<Waiting> {
        let mut connection = source.connect()?;
        let statement = format!("INSERT INTO d.t VALUES ({id}, '<<{id:09}>>')");
        Ok(Waiting(thread::spawn(move || Ok(connection.execute(statement).map(drop)?))))
    }

    /// For as long as a commit takes many times.
    fn still_waits(&self) -> Result<()> {
        thread::sleep(Duration::from_millis(300));
        ensure!(!self.0.is_finished(), "a commit has come through that nobody has acknowledged");
        Ok(())
    }

    fn comes_through(self, heddles: &[&Acknowledger]) -> Result<()> {
        let started = Instant::now();
        while !self.0.is_finished() {
            let logs: Vec<String> = heddles.iter().map(|heddle| heddle.heddle.log()).collect();
            ensure!(started.elapsed() < STUCK_AFTER, "nobody acknowledges:\n{}", logs.join("\n---\n"));
            thread::sleep(Duration::from_millis(5));
        }
        self.0.join().map_err(|_| anyhow::anyhow!("the writer ended"))?
    }
}

fn attach(replica: &Server, port: u16, more: &str) -> Result<()> {
    let is_mariadb = replica.kind.is_mariadb();
    let word = if is_mariadb { "master" } else { "source" };
    let way = if is_mariadb {
        "master_use_gtid=slave_pos".to_owned()
    } else {
        "source_auto_position=1, source_ssl=0, get_source_public_key=1".to_owned()
    };
    let change = if is_mariadb { "CHANGE MASTER TO" } else { "CHANGE REPLICATION SOURCE TO" };
    replica.execute(statement(replica, "STOP"))?;
    replica.execute(&format!(
        "{change} {word}_host='127.0.0.1', {word}_port={port}, {word}_user='{USER}', {word}_password='{PASSWORD}', {word}_connect_retry=1, {way}{more}"
    ))?;
    replica.execute(statement(replica, "START"))
}

/// A replica is a semi-synchronous one of Heddle, also with a compressed connection.
fn replica_of_heddle(source: &Server, replica: &Server, heddle: &Acknowledger, words: Words) -> Result<()> {
    replica.execute(&format!("SET GLOBAL rpl_semi_sync_{}_enabled = 1", words.replica))?;
    for (round, compressed) in [false, true].into_iter().enumerate() {
        let mut more = "";
        if replica.kind.is_mariadb() {
            replica.execute(&format!("SET GLOBAL slave_compressed_protocol = {}", u8::from(compressed)))?;
        } else if compressed {
            more = ", source_compression_algorithms='zlib'";
        }
        attach(replica, heddle.port, more)?;
        for id in 0..20 {
            let id = 1000 + 100 * round + id;
            source.execute(&format!("INSERT INTO d.t VALUES ({id}, 'to a replica')"))?;
        }
        wait_caught_up(source, replica).with_context(|| format!("compressed: {compressed}"))?;
        let status = replica.rows(&format!("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_{}_status'", words.replica))?;
        ensure!(status[0][1] == "ON", "{status:?}");
        let mut client = connected(heddle.port)?;
        let clients = client.row(format!("SHOW STATUS LIKE 'Rpl_semi_sync_{}_clients'", words.source))?;
        let clients: u32 = clients.context("a line")?.required(1)?;
        ensure!(clients == 1, "{clients} semi-synchronous replicas");
    }
    assert_equal(source, replica)?;
    replica.execute(statement(replica, "STOP"))
}

fn connected(port: u16) -> Result<wire::Connection> {
    let mut options = wire::ConnectOptions {
        port,
        user: USER.to_owned(),
        password: Some(PASSWORD.into()),
        ..wire::ConnectOptions::default()
    };
    options.tls.mode = wire::SslMode::Disabled;
    Ok(wire::Connection::connect(&options)?)
}

/// The source waits for Heddle alone: for each commit, for one of more than 16 MiB, while it is away, and inside TLS.
fn local(source: &Server, replica: &Server, dir: &Path) -> Result<()> {
    let words = Words::of(source.kind);
    let mut heddle = Acknowledger::start(source.port, dir, &["--ack", "local"])?;
    words.wait_status(source, "clients", |clients| clients == "1")?;
    words.enable(source)?;
    let before: u64 = words.status(source, "yes_tx")?.parse()?;
    for id in 1..=20 {
        source.execute(&format!("INSERT INTO d.t VALUES ({id}, '<<{id:09}>>')"))?;
    }
    source.execute(
        "CREATE TABLE d.big (v LONGTEXT); INSERT INTO d.big VALUES (REPEAT('y', 17 << 20)); DROP TABLE d.big",
    )?;
    let yes: u64 = words.status(source, "yes_tx")?.parse()?;
    ensure!(yes >= before + 23 && words.status(source, "no_tx")? == "0", "{yes} acknowledged");
    ensure!(marks(dir)?.len() == 20);
    if source.kind.is_mariadb() {
        // Where it waits by default, and where it waits before others see the commit.
        for point in ["AFTER_COMMIT", "AFTER_SYNC"] {
            source.execute(&format!("SET GLOBAL rpl_semi_sync_master_wait_point = {point}; INSERT INTO d.t SELECT MAX(id) + 1, '{point}' FROM d.t"))?;
        }
        ensure!(words.status(source, "yes_tx")?.parse::<u64>()? >= yes + 2);
    }
    replica_of_heddle(source, replica, &heddle, words)?;

    heddle.kill()?;
    let waiting = Waiting::insert(source, 30)?;
    waiting.still_waits()?;
    heddle.again()?;
    waiting.comes_through(&[&heddle])?;
    heddle.kill()?;
    // MariaDB 10.11 makes no certificate for itself.
    let tls: &[&str] = if source.kind.is_mariadb() { &[] } else { &["--with-tls"] };
    let mut inside_tls = Acknowledger::start(source.port, dir, &[&["--ack", "local"], tls].concat())?;
    Waiting::insert(source, 31)?.comes_through(&[&inside_tls])?;
    inside_tls.kill()
}

/// Two copies of one folder: one is attached and acknowledges, the other waits, whichever came last.
fn copies(kind: Kind) -> Result<()> {
    let (source, folder) = (&started(kind)?, tempfile::tempdir()?);
    let first = &mut Acknowledger::start(source.port, folder.path(), &["--ack", "local"])?;
    Words::of(kind).wait_status(source, "clients", |clients| clients == "1")?;
    Words::of(kind).enable(source)?;
    Waiting::insert(source, 39)?.comes_through(&[first])?;
    let copy = tempfile::tempdir()?;
    let copied = Command::new("cp").arg("-a").arg(first.dir.join(".")).arg(copy.path()).status()?;
    ensure!(copied.success());
    let mut second = Acknowledger::start(source.port, copy.path(), &["--ack", "local"])?;
    second.heddle.wait_for_log("is attached to the source")?;
    Waiting::insert(source, 40)?.comes_through(&[first, &second])?;
    ensure!(marks(&first.dir)?.contains(&40) && !marks(copy.path())?.contains(&40), "the copy is attached as well");
    // The first one is gone: the other takes its place. When the first comes back, it waits.
    first.kill()?;
    Waiting::insert(source, 41)?.comes_through(&[first, &second])?;
    first.again()?;
    first.heddle.wait_for_log("is attached to the source")?;
    Waiting::insert(source, 42)?.comes_through(&[first, &second])?;
    ensure!(marks(copy.path())?.contains(&42) && !marks(&first.dir)?.contains(&42));
    ensure!(!second.heddle.has_ended()? && !first.heddle.has_ended()?);
    first.kill()?;
    if source.kind.is_mariadb() {
        // Another mirror with its number, by which MariaDB tells replicas apart, waits as well.
        let number = source.rows("SHOW SLAVE HOSTS")?[0][0].clone();
        let folder = tempfile::tempdir()?;
        let mut same = Acknowledger::start(source.port, folder.path(), &["--ack", "local", "--server-id", &number])?;
        same.heddle.wait_for_log("is attached to the source")?;
        same.kill()?;
    }
    Waiting::insert(source, 43)?.comes_through(&[&second])?;
    second.kill()
}

/// Heddle waits for others.
fn others(source: &Server, dir: &Path) -> Result<()> {
    let mut first = Acknowledger::start(source.port, &dir.join("one"), &["--ack", "1-of:1"])?;
    first.heddle.wait_for_log("no commit is acknowledged")?;
    let waiting = Waiting::insert(source, 50)?;
    waiting.still_waits()?;
    let mut second = Acknowledger::start(first.port, &dir.join("two"), &["--ack", "local"])?;
    waiting.comes_through(&[&first, &second])?;
    ensure!(marks(&dir.join("two"))?.contains(&50));
    first.heddle.wait_for_log("commits can be acknowledged")?;
    for id in 51..60 {
        Waiting::insert(source, id)?.comes_through(&[&first, &second])?;
    }
    second.kill()?;
    let waiting = Waiting::insert(source, 60)?;
    waiting.still_waits()?;
    // It attaches anew: what it asks for must not count as acknowledged.
    first.kill()?;
    first.again()?;
    waiting.still_waits()?;
    // A stranger does not count.
    let mut stranger = Acknowledger::start(first.port, &dir.join("three"), &["--ack", "local"])?;
    first.heddle.wait_for_log("does not count for --ack")?;
    waiting.still_waits()?;
    stranger.kill()?;
    second.again()?;
    waiting.comes_through(&[&first, &second])?;
    ensure!(marks(&dir.join("two"))?.contains(&60));
    first.kill()?;
    second.kill()
}

/// In the order of the manual: Heddle is attached, then the source gets its plugin, and waits for nobody else.
fn plugin_installed_later() -> Result<()> {
    let source = Server::start(MYSQL_9_7, &[])?;
    source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(50))")?;
    let dir = tempfile::tempdir()?;
    let mut heddle = Acknowledger::start(source.port, dir.path(), &["--ack", "local"])?;
    heddle.heddle.wait_for_log("semi-synchronous replication is off there")?;
    heddle.heddle.wait_for_log("mirroring")?;
    source.execute("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")?;
    Words::of(source.kind).enable(&source)?;
    let waiting = Waiting::insert(&source, 1)?;
    waiting.comes_through(&[&heddle])?;
    ensure!(marks(dir.path())?.contains(&1));
    Waiting::insert(&source, 2)?.comes_through(&[&heddle])?;
    ensure!(Words::of(source.kind).status(&source, "no_tx")? == "0");
    heddle.kill()
}

fn started(kind: Kind) -> Result<Server> {
    let options = Words::of(kind).options();
    let source = Server::start(kind, &options.iter().map(String::as_str).collect::<Vec<_>>())?;
    source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(50))")?;
    Ok(source)
}

fn acknowledges(kind: Kind) -> Result<()> {
    let options = Words::of(kind).options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let (source, replica) = Server::start_two((kind, &options), (kind, &options))?;
    let dir = tempfile::tempdir()?;
    source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(50))")?;
    local(&source, &replica, &dir.path().join("local")).context("local")?;
    others(&source, dir.path()).context("1-of:1")?;
    let no_tx = Words::of(kind).status(&source, "no_tx")?;
    ensure!(no_tx == "0", "{no_tx} commits were not acknowledged");
    Ok(())
}

fn kills_of_all(kind: Kind, ack: &str, rounds: u32, default_seed: u64) -> Result<()> {
    let seed = e2e::seed(default_seed, "semisync");
    let rounds = std::env::var("HEDDLE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(rounds);
    let acknowledged = kills(kind, ack, rounds, seed).with_context(|| format!("seed {seed}"))?;
    eprintln!("{acknowledged} acknowledged, none lost");
    Ok(())
}

e2e::tests! {
    acknowledges_mysql: acknowledges(MYSQL_9_7);
    plugin_comes_later: plugin_installed_later();
    acknowledges_mariadb: acknowledges(MARIADB_10_11);
    #[ignore = "slow: servers notice late that a connection is gone; scripts/nightly semisync"]
    copies_mariadb: copies(MARIADB_10_11);
    #[ignore = "slow, as above: scripts/nightly semisync"]
    copies_mysql: copies(MYSQL_9_7);
    #[ignore = "as on MariaDB, and slower: scripts/nightly semisync"]
    kills_mysql: kills_of_all(MYSQL_9_7, "1-of:1", 2, rand::random_range(0..1 << 31));
    kills_mariadb: kills_of_all(MARIADB_10_11, "1-of:1", 3, rand::random_range(0..1 << 31));
    #[ignore = "long: scripts/nightly semisync"]
    many_kills_mysql: kills_of_all(MYSQL_9_7, "1-of:1", 40, rand::random_range(0..1 << 31));
    #[ignore = "long: scripts/nightly semisync"]
    many_kills_mariadb: kills_of_all(MARIADB_10_11, "1-of:1", 40, rand::random_range(0..1 << 31));
    #[ignore = "long: scripts/nightly semisync"]
    many_kills_local_mysql: kills_of_all(MYSQL_9_7, "local", 40, rand::random_range(0..1 << 31));
    #[ignore = "long: scripts/nightly semisync"]
    many_kills_local_mariadb: kills_of_all(MARIADB_10_11, "local", 40, rand::random_range(0..1 << 31));
    #[ignore = "servers that only scripts/nightly fetches"]
    acknowledges_others: others_of_both();
}

/// Old and new names, plugins and built in.
fn others_of_both() -> Result<()> {
    // The trees of MySQL 5.7 and 8.0.15 and of MariaDB 10.1 and 10.2 come without the plugins.
    for name in ["mysql-5.6.14", "mysql-8.0.46", "mysql-8.4", "mariadb-10.6", "mariadb-11.4", "mariadb-11.8"] {
        let kind: Kind = name.parse()?;
        kills(kind, "1-of:1", 3, rand::random_range(0..1 << 31)).with_context(|| name.to_owned())?;
    }
    Ok(())
}
