//! A target whose packets are lost in mid-flight is noticed within the time that docs/commands.md names, and a long statement is not ended by that.
//!
//! Needs root rights and network namespaces: `scripts/nightly loss`.

#![allow(clippy::print_stderr, reason = "a test")]

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use e2e::Heddle;
use e2e::network::{Network, SERVER_OPTIONS};
use e2e::pair::Pair;
use e2e::takeovers::Duo;
use e2e::tests;

/// What the docs promise, without an acknowledgement.
const NOTICED: Duration = Duration::from_secs(30);
/// The system looks when it sends again, and that less and less often.
const GRACE: Duration = Duration::from_secs(20);
/// Longer than any of that.
const LONG: Duration = Duration::from_secs(60);
/// What heddle logs then.
const LOST: &str = "the target can not be reached, trying again";

struct Scene {
    network: Network,
    pair: Pair,
    running: Heddle,
}

impl Scene {
    fn open(server: &str, number: u8) -> Result<Self> {
        let network = Network::create(number)?;
        let kind = server.parse()?;
        let target = [SERVER_OPTIONS.as_slice(), &["--innodb-lock-wait-timeout=600"]].concat();
        let pair = Pair::start_with(kind, &SERVER_OPTIONS, &target)?;
        pair.source.execute(
            "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGBLOB); INSERT INTO d.t (v) VALUES ('a'), ('b')",
        )?;
        let (from, to) = (network.source(&pair.source), network.target(&pair.target));
        let line = ["replicate", "--from", &from, "--to", &to, "--json", "--relay-dir", &pair.relay];
        let running = Heddle::start_in(&network.namespace(), &line)?;
        let scene = Self { network, pair, running };
        scene.wait_for("SELECT COUNT(*) = 2 FROM d.t")?;
        Ok(scene)
    }

    fn wait_for(&self, query: &str) -> Result<()> {
        let started = Instant::now();
        while self.pair.target.scalar(query).unwrap_or_default() != "1" {
            ensure!(started.elapsed() < 2 * LONG, "not so: {query}; heddle: {}", self.running.log());
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Ids of heddle's connections on the target.
    fn connections(&self) -> Result<Vec<Vec<String>>> {
        let host = self.network.heddle();
        self.pair
            .target
            .rows(&format!("SELECT ID FROM information_schema.PROCESSLIST WHERE HOST LIKE '{host}:%' ORDER BY ID"))
    }

    fn logged(&self) -> usize {
        self.running.log().matches(LOST).count()
    }

    /// Loses the target's packets, and waits until heddle has noticed. `sends`: what makes it send then.
    fn notices(&mut self, what: &str, sends: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        let before = self.logged();
        self.network.lose()?;
        let started = Instant::now();
        sends(self)?;
        while self.logged() == before {
            ensure!(!self.running.has_ended()?, "{what}: heddle has ended: {}", self.running.log());
            if started.elapsed() > NOTICED + GRACE {
                bail!("{what}: not noticed after {} s: {}", started.elapsed().as_secs(), self.running.log());
            }
            thread::sleep(Duration::from_millis(50));
        }
        eprintln!("{what}: noticed after {:.1} s", started.elapsed().as_secs_f64());
        Ok(())
    }
}

fn lost(server: &str, number: u8) -> Result<()> {
    let mut scene = Scene::open(server, number)?;

    // A long statement, with as much behind it as is sent ahead: the target's machine acknowledges, the server reads nothing.
    let before = scene.connections()?;
    let mut client = scene.pair.target.connect()?;
    client.execute("BEGIN")?;
    client.execute("SELECT v FROM d.t WHERE id = 1 FOR UPDATE")?;
    scene.pair.source.execute("UPDATE d.t SET v = 'c' WHERE id = 1")?;
    scene.pair.source.execute(&"INSERT INTO d.t (v) VALUES (REPEAT('x', 1000000));".repeat(20))?;
    thread::sleep(LONG);
    let after = scene.connections()?;
    ensure!(before.iter().all(|id| after.contains(id)), "a connection was ended: {before:?}, then {after:?}");
    ensure!(!scene.running.log().contains(LOST), "{}", scene.running.log());

    // Waiting for that answer, nothing to send.
    scene.notices("waiting for an answer", |_| Ok(()))?;
    scene.network.mend()?;
    client.execute("ROLLBACK")?;
    scene.wait_for("SELECT COUNT(*) = 22 FROM d.t")?;

    // What was sent is never acknowledged.
    scene.notices("unacknowledged bytes", |scene| {
        scene.pair.source.execute("INSERT INTO d.t (v) VALUES (REPEAT('y', 1000000))").map(drop)
    })?;
    scene.network.mend()?;
    scene.wait_for("SELECT COUNT(*) = 23 FROM d.t")?;

    let Scene { running, pair, network, .. } = scene;
    running.terminate()?;
    running.wait()?.successful().context("the end")?;
    pair.assert_equal()?;
    drop(network);
    Ok(())
}

/// A machine whose packets are lost loses its channel to another one: the target still has its connections, and nobody was told.
fn standby_takes_over(server: &str, number: u8) -> Result<()> {
    let network = Network::create(number)?;
    let pair = Pair::start_with(server.parse()?, &SERVER_OPTIONS, &SERVER_OPTIONS)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")?;
    let ways = (network.source(&pair.source), network.target(&pair.target));
    let mut duo = Duo::new(&pair, &[]).through(ways.0, ways.1).within(network.namespace());
    duo.start_both()?;
    pair.source.execute("INSERT INTO d.t (v) VALUES (1), (2)")?;
    pair.target.wait_until("SELECT COUNT(*) = 2 FROM d.t")?;
    network.lose()?;
    let started = Instant::now();
    pair.source.execute("INSERT INTO d.t (v) VALUES (3)")?;
    duo.until_active(1)?;
    eprintln!("taken over after {:.1} s", started.elapsed().as_secs_f64());
    pair.target.wait_until("SELECT COUNT(*) = 3 FROM d.t")?;
    network.mend()?;
    duo.until_waits(0)?;
    duo.end()?;
    pair.assert_equal()?;
    drop(network);
    Ok(())
}

tests! {
    #[ignore = "needs root rights and network namespaces; scripts/nightly loss runs it"]
    mariadb: lost("mariadb-10.11", 1);
    #[ignore = "needs root rights and network namespaces; scripts/nightly loss runs it"]
    mysql: lost("mysql-9.7", 2);
    #[ignore = "needs root rights and network namespaces; scripts/nightly loss runs it"]
    mariadb_standby: standby_takes_over("mariadb-10.11", 3);
    #[ignore = "needs root rights and network namespaces; scripts/nightly loss runs it"]
    mysql_standby: standby_takes_over("mysql-9.7", 4);
}
