//! A Galera cluster as the target: nodes lose their quorum, and are killed, under load, the one that Heddle writes to as well; two processes at different nodes; what a
//! cluster that works refuses and delays.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::galera::{Cluster, status};
use e2e::heddle::{Heddle, Run, heddle};
use e2e::ledger::{
    assert_equal, assert_fitting, beside_competitor, beside_load, count, create, finish, insert_large, until_more,
    until_there,
};
use e2e::patience::until;
use e2e::server::{MARIADB_10_11, PASSWORD, Server};
use rustix::process::Signal;
use std::thread;
use std::time::{Duration, Instant};

const BUSY: Duration = Duration::ZERO;
const STEADY: Duration = Duration::from_millis(100);

fn start(source: &Server, to: &str, relay: &str, more: &[&str]) -> Result<Heddle> {
    let from = source.url();
    let mut arguments = vec!["replicate", "--from", &from, "--to", to, "--json", "--relay-dir", relay];
    arguments.extend(more);
    Heddle::start(&arguments)
}

fn relay(cluster: &Cluster, name: &str) -> Result<String> {
    Ok(cluster.node(0)?.dir().join(name).display().to_string())
}

/// The node at which the channel is run.
fn active(cluster: &Cluster) -> Option<usize> {
    let runs = |node: &Server| {
        let held = node.scalar("SELECT IS_USED_LOCK('heddle.default') IS NOT NULL");
        node.pid().is_some() && held.is_ok_and(|held| held.trim() == "1")
    };
    cluster.nodes.iter().position(runs)
}

fn until_active(cluster: &Cluster) -> Result<usize> {
    let mut at = None;
    until("the channel is run at a node", || {
        at = active(cluster);
        Ok(at.is_some())
    })?;
    at.context("no node")
}

fn lose_quorum_and_nodes(cluster: &Cluster, running: &mut Heddle) -> Result<()> {
    let target = cluster.node(0)?;
    until_there(target)?;
    // Two of three are gone: the third has no quorum, and takes nothing.
    cluster.signal(&[1, 2], Signal::STOP)?;
    until("the node has no quorum", || Ok(status(target, "wsrep_cluster_status")? == "non-Primary"))?;
    let said = |log: &str| log.contains("1047") || log.contains("non-Primary");
    until("heddle says so", || Ok(said(&running.log())))?;
    ensure!(!running.has_ended()?, "it has ended without a quorum: {}", running.log());
    cluster.signal(&[1, 2], Signal::CONT)?;
    cluster.wait_for_all()?;
    // Another one dies and comes back, then the one that is written to.
    for at in [1, 0] {
        cluster.node(at)?.kill()?;
        cluster.revive(at)?;
        cluster.wait_for_all()?;
        until_more(cluster.node(2)?, 0).with_context(|| running.log())?;
    }
    ensure!(!running.has_ended()?, "it has ended: {}", running.log());
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    OneNode,
    AllNodes,
}

fn lost_quorum_and_killed_nodes(to: To, more: &[&str]) -> Result<()> {
    let source = Server::start(MARIADB_10_11, &[])?;
    let cluster = Cluster::start(&[])?;
    create(&source)?;
    let to = if to == To::OneNode { cluster.node(0)?.url() } else { cluster.url() };
    let mut running = start(&source, &to, &relay(&cluster, "relay")?, more)?;
    beside_load(&source, BUSY, || lose_quorum_and_nodes(&cluster, &mut running))?;
    end(&source, &cluster, running).map(|_| ())
}

fn end(source: &Server, cluster: &Cluster, mut running: Heddle) -> Result<Run> {
    finish(source)?;
    let arrived = cluster.node(2)?.wait_until("SELECT COUNT(*) FROM d.log WHERE n = 0");
    ensure!(!running.has_ended()?, "it has ended: {}", running.log());
    arrived.with_context(|| running.log())?;
    running.terminate()?;
    let run = running.wait()?;
    ensure!(run.was_stopped()?, "it was not stopped");
    assert_equal(source, &cluster.nodes)?;
    Ok(run)
}

/// `HEDDLE_GALERA_MINUTES`: how long.
fn minutes() -> Result<u64> {
    Ok(std::env::var("HEDDLE_GALERA_MINUTES").map_or(Ok(10), |text| text.parse())?)
}

const KILL_EVERY: Duration = Duration::from_secs(20);

/// One of three is killed every 20 s: every other time the one that is written to.
fn a_node_is_killed_again_and_again() -> Result<()> {
    let source = Server::start(MARIADB_10_11, &[])?;
    let cluster = Cluster::start(&[])?;
    create(&source)?;
    let mut running = start(&source, &cluster.url(), &relay(&cluster, "relay")?, &[])?;
    let until_end = Instant::now() + Duration::from_secs(60 * minutes()?);
    let (mut kills, mut of_active, mut longest) = (0, 0, Duration::ZERO);
    let last = beside_load(&source, STEADY, || {
        until_there(cluster.node(0)?)?;
        while Instant::now() < until_end {
            let began = Instant::now();
            let at = until_active(&cluster)?;
            let victim = if kills % 2 == 0 { at } else { (at + 1) % cluster.nodes.len() };
            let survivor = cluster.node((victim + 1) % cluster.nodes.len())?;
            cluster.node(victim)?.kill()?;
            until_more(survivor, 0).with_context(|| running.log())?;
            kills += 1;
            if victim == at {
                of_active += 1;
                longest = longest.max(began.elapsed());
            }
            cluster.revive(victim)?;
            cluster.wait_for_all()?;
            ensure!(!running.has_ended()?, "it has ended: {}", running.log());
            thread::sleep(KILL_EVERY.saturating_sub(began.elapsed()));
        }
        Ok(())
    })?;
    eprintln!(
        "{kills} nodes killed, {of_active} of them written to; {last} transactions; the longest pause {:.1} s",
        longest.as_secs_f64()
    );
    end(&source, &cluster, running).map(|_| ())
}

/// A node that is frozen gives no answer, and refuses nobody.
fn a_frozen_node_is_left() -> Result<()> {
    let source = Server::start(MARIADB_10_11, &[])?;
    let cluster = Cluster::start(&[])?;
    create(&source)?;
    let mut running = start(&source, &cluster.url(), &relay(&cluster, "relay")?, &[])?;
    beside_load(&source, STEADY, || {
        let at = until_active(&cluster)?;
        let survivor = cluster.node((at + 1) % cluster.nodes.len())?;
        until_there(survivor)?;
        until_more(survivor, 0)?;
        let began = Instant::now();
        cluster.signal(&[at], Signal::STOP)?;
        until("it is run at another node", || Ok(active_but(&cluster, at).is_some())).with_context(|| running.log())?;
        until_more(survivor, 0).with_context(|| running.log())?;
        eprintln!("a frozen node: {:.1} s", began.elapsed().as_secs_f64());
        cluster.signal(&[at], Signal::CONT)?;
        cluster.wait_for_all()?;
        ensure!(!running.has_ended()?, "it has ended: {}", running.log());
        Ok(())
    })?;
    end(&source, &cluster, running).map(|_| ())
}

/// As [`active`], without the node that gives no answer.
fn active_but(cluster: &Cluster, frozen: usize) -> Option<usize> {
    let runs = |&at: &usize| {
        let held = cluster.nodes[at].scalar("SELECT IS_USED_LOCK('heddle.default') IS NOT NULL");
        held.is_ok_and(|held| held.trim() == "1")
    };
    (0..cluster.nodes.len()).filter(|&at| at != frozen).find(runs)
}

/// Two processes: the second one waits wherever the first one is, and has the channel when its process or its node is gone.
fn two_processes() -> Result<()> {
    let source = Server::start(MARIADB_10_11, &[])?;
    let cluster = Cluster::start(&[])?;
    create(&source)?;
    // The second one would go to another node by itself.
    let mut nodes: Vec<&Server> = cluster.nodes.iter().collect();
    nodes.rotate_left(1);
    let addresses: Vec<String> = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
    let ways = [cluster.url(), format!("mysql://{}@{}", e2e::server::USER, addresses.join(","))];
    let begin = |number: usize| -> Result<Heddle> {
        start(&source, &ways[number], &relay(&cluster, &format!("relay-{number}"))?, &["--standby"])
    };
    let mut processes = vec![begin(0)?];
    let at = until_active(&cluster)?;
    processes.push(begin(1)?);
    processes[1].wait_for_log("receives the source's log and waits")?;
    // A third one without --standby is refused, wherever it goes.
    let third = relay(&cluster, "third")?;
    let run = heddle(&["replicate", "--from", &source.url(), "--to", &ways[1], "--relay-dir", &third])?;
    run.failed_with("is in use")?;
    let shown = heddle(&["status", "--to", &ways[1]])?.successful()?;
    ensure!(shown.stdout.contains("  node ") && shown.stdout.contains("  standby "), "{}", shown.stdout);
    let mut lives = 0;
    beside_load(&source, STEADY, || {
        let survivor = cluster.node((at + 1) % cluster.nodes.len())?;
        let owner = || survivor.scalar("SELECT SUBSTRING_INDEX(owner, '@', 1) FROM heddle.progress");
        until_there(survivor)?;
        thread::sleep(Duration::from_secs(10));
        let log = processes[1].log();
        ensure!(!log.contains("taking the channel over"), "a takeover for nothing: {log}");
        // The node dies: one of the two goes on.
        cluster.node(at)?.kill()?;
        until_more(survivor, 100).with_context(|| logs(&processes))?;
        cluster.revive(at)?;
        cluster.wait_for_all()?;
        // It stays so.
        thread::sleep(Duration::from_secs(12));
        for process in &mut processes {
            ensure!(!process.has_ended()?, "a process has ended: {}", process.log());
        }
        until_active(&cluster)?;
        // The one that has it dies: the other one has it.
        let dies = usize::from(owner()?.trim() != processes[0].pid().to_string());
        lives = 1 - dies;
        let began = Instant::now();
        processes[dies].kill()?;
        until("the other process has the channel", || Ok(owner()?.trim() == processes[lives].pid().to_string()))
            .with_context(|| logs(&processes))?;
        eprintln!("a killed process: {:.1} s", began.elapsed().as_secs_f64());
        until_more(survivor, 100).with_context(|| logs(&processes))
    })?;
    end(&source, &cluster, processes.swap_remove(lives)).map(|_| ())
}

/// Commits that another node's client wins over (1213 at COMMIT), and definitions, which all nodes execute at one place of their order.
fn conflicts_and_definitions() -> Result<()> {
    let source = Server::start(MARIADB_10_11, &[])?;
    let cluster = Cluster::start(&[])?;
    create(&source)?;
    let running = start(&source, &cluster.url(), &relay(&cluster, "relay")?, &[])?;
    let at = until_active(&cluster)?;
    let (competitor, third) = (cluster.node((at + 1) % 3)?, cluster.node((at + 2) % 3)?);
    beside_load(&source, STEADY, || {
        until_there(competitor)?;
        let define = |number| {
            source.execute(&format!("ALTER TABLE d.t ADD COLUMN w{number} INT DEFAULT {number}"))?;
            source.execute(&format!("CREATE TABLE d.t{number} (id INT PRIMARY KEY) ENGINE=InnoDB"))?;
            until_more(third, 300)
        };
        beside_competitor(competitor, || (0..5).try_for_each(define)).with_context(|| running.log())
    })?;
    let run = end(&source, &cluster, running)?;
    let retries = run.number("retries")?;
    eprintln!("{retries} retries");
    ensure!(retries > 0, "no commit failed");
    Ok(())
}

/// A node whose applier waits holds the others up, or falls behind; a run that begins there sees what the cluster has.
fn a_node_that_is_behind() -> Result<()> {
    let source = Server::start(MARIADB_10_11, &[])?;
    let cluster = Cluster::start(&[])?;
    create(&source)?;
    let mut running = start(&source, &cluster.url(), &relay(&cluster, "relay")?, &[])?;
    let at = until_active(&cluster)?;
    let behind = (at + 1) % 3;
    let (written, node) = (cluster.node(at)?, cluster.node(behind)?);
    let paused = || -> Result<u64> { Ok(status(written, "wsrep_flow_control_paused_ns")?.parse()?) };
    beside_load(&source, STEADY, || {
        until_there(node)?;
        // Flow control.
        let mut reader = e2e::served::connect(node.port, PASSWORD)?;
        reader.execute("HANDLER d.t OPEN AS h")?;
        let before = paused()?;
        source.execute("ALTER TABLE d.t ADD COLUMN w1 INT DEFAULT 1")?;
        until("the node holds the others up", || Ok(paused()? > before + 10_000_000_000))
            .with_context(|| running.log())?;
        reader.execute("HANDLER h CLOSE")?;
        until_more(node, 300).with_context(|| running.log())?;
        ensure!(!running.has_ended()? && active(&cluster) == Some(at), "it has not stayed: {}", running.log());
        // As one that gives its data away: it falls behind.
        node.execute("SET GLOBAL wsrep_desync=ON")?;
        reader.execute("HANDLER d.t OPEN AS h")?;
        source.execute("ALTER TABLE d.t ADD COLUMN w2 INT DEFAULT 2")?;
        written.wait_until(
            "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'd' AND column_name = 'w2'",
        )?;
        until_more(written, 1000).with_context(|| running.log())?;
        let (there, here) = (count(node)?, count(written)?);
        ensure!(there + 500 < here, "the node has {there} of {here} transactions");
        let to = format!("mysql://{}@127.0.0.1:{},127.0.0.1:{}", e2e::server::USER, node.port, written.port);
        running.terminate()?;
        let next = start(&source, &to, &relay(&cluster, "relay-2")?, &[])?;
        let run = std::mem::replace(&mut running, next).wait()?;
        ensure!(run.was_stopped()?, "it was not stopped");
        thread::sleep(Duration::from_secs(3));
        reader.execute("HANDLER h CLOSE")?;
        node.execute("SET GLOBAL wsrep_desync=OFF")?;
        until_more(node, 300).with_context(|| running.log())
    })?;
    end(&source, &cluster, running).map(|_| ())
}

/// A transaction that the cluster does not take stops the channel, with what helps; once it does, the channel goes on.
fn a_transaction_that_is_too_large() -> Result<()> {
    let source = Server::start(MARIADB_10_11, &[])?;
    let cluster = Cluster::start(&[])?;
    create(&source)?;
    let limit = |bytes: u64| {
        cluster.nodes.iter().try_for_each(|node| node.execute(&format!("SET GLOBAL wsrep_max_ws_size={bytes}")))
    };
    limit(150_000)?;
    // The group is applied in smaller parts.
    insert_large(&source)?;
    let relay = relay(&cluster, "relay")?;
    let run = start(&source, &cluster.url(), &relay, &["--until-end"])?.wait()?;
    run.failed_with("wsrep_max_ws_size")?;
    assert_fitting(cluster.node(0)?).with_context(|| run.to_string())?;
    limit(2_147_483_647)?;
    let running = start(&source, &cluster.url(), &relay, &[])?;
    end(&source, &cluster, running).map(|_| ())
}

/// Several nodes as the source: each has a log of its own, and with the same GTIDs one server id.
fn nodes_of_a_source() -> Result<()> {
    let target = Server::start(MARIADB_10_11, &[])?;
    let cluster = Cluster::start(&["--wsrep-gtid-mode=ON", "--wsrep-gtid-domain-id=7", "--server-id=4711"])?;
    create(cluster.node(0)?)?;
    let relay = target.dir().join("relay").display().to_string();
    let from = |url: &str| {
        Heddle::start(&[
            "replicate",
            "--from",
            url,
            "--to",
            &target.url(),
            "--json",
            "--until-end",
            "--relay-dir",
            &relay,
        ])
    };
    from(&cluster.url())?.wait()?.failed_with("a node of a Galera cluster")?;
    from(&cluster.node(1)?.url())?.wait()?.successful()?;
    finish(cluster.node(0)?)?;
    cluster.node(1)?.wait_until("SELECT COUNT(*) FROM d.log WHERE n = 0")?;
    from(&cluster.node(1)?.url())?.wait()?.successful()?;
    assert_equal(cluster.node(0)?, [&target])
}

fn logs(processes: &[Heddle]) -> String {
    processes.iter().map(Heddle::log).collect::<Vec<_>>().join("\n-- the other --\n")
}

e2e::tests! {
    #[ignore = "long, and fetches galera-4: scripts/nightly galera"]
    lost_quorum_and_killed_nodes_preserving: lost_quorum_and_killed_nodes(To::AllNodes, &[]);
    #[ignore = "long, and fetches galera-4: scripts/nightly galera"]
    lost_quorum_and_killed_nodes_relaxed: lost_quorum_and_killed_nodes(To::OneNode, &["--commit-order", "relaxed", "--workers", "4"]);
    #[ignore = "long, and fetches galera-4: scripts/nightly galera"]
    a_node_is_killed_every_20_s: a_node_is_killed_again_and_again();
    #[ignore = "long, and fetches galera-4: scripts/nightly galera"]
    a_frozen_node: a_frozen_node_is_left();
    #[ignore = "long, and fetches galera-4: scripts/nightly galera"]
    conflicts_and_definitions_in_a_cluster: conflicts_and_definitions();
    #[ignore = "long, and fetches galera-4: scripts/nightly galera"]
    a_node_holds_the_others_up_and_falls_behind: a_node_that_is_behind();
    #[ignore = "long, and fetches galera-4: scripts/nightly galera"]
    a_transaction_is_too_large: a_transaction_that_is_too_large();
    #[ignore = "long, and fetches galera-4: scripts/nightly galera"]
    one_node_of_a_source: nodes_of_a_source();
    #[ignore = "long, and fetches galera-4: scripts/nightly galera"]
    two_processes_at_different_nodes: two_processes();
}
