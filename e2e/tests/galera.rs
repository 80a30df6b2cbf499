//! A Galera cluster as the target: nodes lose their quorum, and are killed, under load.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Result, ensure};
use e2e::checksum::{contents, differences};
use e2e::galera::{Cluster, status};
use e2e::heddle::Heddle;
use e2e::patience::until;
use e2e::server::{MARIADB_10_11, Server};
use rustix::process::Signal;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const ROWS: u64 = 500;

fn load(source: &Server, stop: &AtomicBool) -> Result<()> {
    let mut number = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let mut batch = String::new();
        for _ in 0..200 {
            number += 1;
            let (one, other) = (number * 7919 % ROWS, number * 104_729 % ROWS);
            write!(
                batch,
                "BEGIN; UPDATE d.t SET v = v + 1 WHERE id = {one}; UPDATE d.t SET v = v - 1 WHERE id = {other}; INSERT INTO d.log VALUES ({number}, {one}); COMMIT;"
            )?;
        }
        source.execute(&batch)?;
    }
    Ok(())
}

fn faults(cluster: &Cluster, running: &mut Heddle) -> Result<()> {
    let target = cluster.node(0)?;
    target
        .wait_until("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME = 'log' AND TABLE_SCHEMA = 'd'")?;
    target.wait_until("SELECT COUNT(*) FROM d.log")?;
    // Two of three are gone: the third has no quorum, and takes nothing.
    cluster.signal(&[1, 2], Signal::STOP)?;
    until("the node has no quorum", || Ok(status(target, "wsrep_cluster_status")? == "non-Primary"))?;
    running.wait_for_log("1047")?;
    ensure!(!running.has_ended()?, "it has ended without a quorum: {}", running.log());
    cluster.signal(&[1, 2], Signal::CONT)?;
    cluster.wait_for_all()?;
    // Another one dies and comes back, then the one that is written to.
    for at in [1, 0] {
        let before: u64 = cluster.node(2)?.scalar("SELECT COUNT(*) FROM d.log")?.parse()?;
        cluster.node(at)?.kill()?;
        cluster.revive(at)?;
        cluster.wait_for_all()?;
        target.wait_until(&format!("SELECT COUNT(*) > {before} FROM d.log"))?;
    }
    ensure!(!running.has_ended()?, "it has ended: {}", running.log());
    Ok(())
}

fn lost_quorum_and_killed_nodes(more: &[&str]) -> Result<()> {
    let source = Server::start(MARIADB_10_11, &[])?;
    let cluster = Cluster::start(&[])?;
    let rows: Vec<String> = (0..ROWS).map(|id| format!("({id}, 0)")).collect();
    source.execute(&format!(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB; \
         CREATE TABLE d.log (n BIGINT PRIMARY KEY, id INT) ENGINE=InnoDB; INSERT INTO d.t VALUES {}",
        rows.join(",")
    ))?;
    let relay = cluster.node(0)?.dir().join("relay").display().to_string();
    let (from, to) = (source.url(), cluster.node(0)?.url());
    let mut arguments = vec!["replicate", "--from", &from, "--to", &to, "--json", "--relay-dir", &relay];
    arguments.extend(more);
    let mut running = Heddle::start(&arguments)?;
    let stop = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        let loading = scope.spawn(|| load(&source, &stop));
        let done = faults(&cluster, &mut running);
        stop.store(true, Ordering::Relaxed);
        done.and(loading.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the load panicked"))))
    });
    done?;
    source.execute("INSERT INTO d.log VALUES (0, 0)")?;
    cluster.node(0)?.wait_until("SELECT COUNT(*) FROM d.log WHERE n = 0")?;
    running.terminate()?;
    ensure!(running.wait()?.was_stopped()?, "it was not stopped");
    let expected = contents(&source)?;
    for node in &cluster.nodes {
        node.wait_until("SELECT COUNT(*) FROM d.log WHERE n = 0")?;
        let differ = differences(&expected, &contents(node)?);
        ensure!(differ.is_empty(), "port {} differs:\n  {}", node.port, differ.join("\n  "));
    }
    Ok(())
}

e2e::tests! {
    #[ignore = "long, and fetches galera-4: scripts/nightly galera"]
    lost_quorum_and_killed_nodes_preserving: lost_quorum_and_killed_nodes(&[]);
    #[ignore = "long, and fetches galera-4: scripts/nightly galera"]
    lost_quorum_and_killed_nodes_relaxed: lost_quorum_and_killed_nodes(&["--commit-order", "relaxed", "--workers", "4"]);
}
