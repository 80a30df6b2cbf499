//! A group of three MySQL servers as the target and as the source: the primary is killed or changed, members leave, others write as well, transactions are too large.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::group::{Group, Primaries};
use e2e::heddle::Heddle;
use e2e::ledger::{
    assert_equal, assert_fitting, beside_competitor, beside_load, create, finish, insert_large, until_more, until_there,
};
use e2e::patience::until;
use e2e::server::{MYSQL_9_7, Server};
use rustix::process::Signal;
use std::thread;
use std::time::{Duration, Instant};

const STEADY: Duration = Duration::from_millis(100);
const GTIDS: &[&str] = &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];

fn start(from: &str, to: &str, at: &Server, more: &[&str]) -> Result<Heddle> {
    let relay = at.dir().join("relay").display().to_string();
    let mut arguments = vec!["replicate", "--from", from, "--to", to, "--json", "--relay-dir", &relay];
    arguments.extend(more);
    Heddle::start(&arguments)
}

fn end<'a>(
    written: &Server,
    last: &Server,
    source: &Server,
    all: impl IntoIterator<Item = &'a Server>,
    mut running: Heddle,
) -> Result<String> {
    finish(written)?;
    let arrived = last.wait_until("SELECT COUNT(*) FROM d.log WHERE n = 0");
    ensure!(!running.has_ended()?, "it has ended: {}", running.log());
    arrived.with_context(|| running.log())?;
    let log = running.log();
    running.terminate()?;
    ensure!(running.wait()?.was_stopped()?, "it was not stopped");
    assert_equal(source, all)?;
    Ok(log)
}

/// The primary is killed, comes back as a secondary, and is made the primary again: each time the channel goes on at the new one.
fn the_primary_moves(more: &[&str]) -> Result<()> {
    let source = Server::start(MYSQL_9_7, GTIDS)?;
    let group = Group::start(Primaries::Single, more)?;
    create(&source)?;
    let mut running = start(&source.url(), &group.url(), &source, &[])?;
    beside_load(&source, STEADY, || {
        until_there(group.member(0)?).with_context(|| running.log())?;
        for _ in 0..2 {
            let primary = group.primary()?;
            let other = group.member((primary + 1) % group.members.len())?;
            let began = Instant::now();
            group.member(primary)?.kill()?;
            until("another primary", || Ok(group.primary().is_ok_and(|at| at != primary)))?;
            let elected = began.elapsed();
            until_more(other, 0).with_context(|| running.log())?;
            eprintln!(
                "killed: elected after {:.1} s, applied after {:.1} s",
                elected.as_secs_f64(),
                began.elapsed().as_secs_f64()
            );
            group.revive(primary)?;
            group.wait_for_all()?;
            // By hand.
            let uuid = group.member(primary)?.scalar("SELECT @@server_uuid")?;
            let began = Instant::now();
            other.execute(&format!("DO group_replication_set_as_primary('{}')", uuid.trim()))?;
            ensure!(group.primary()? == primary, "it is not the primary");
            until_more(other, 50).with_context(|| running.log())?;
            eprintln!("changed by hand: {:.1} s", began.elapsed().as_secs_f64());
            ensure!(!running.has_ended()?, "it has ended: {}", running.log());
        }
        Ok(())
    })?;
    let last = group.member(group.primary()?)?;
    end(&source, last, &source, &group.members, running).map(|_| ())
}

/// The others are frozen: the primary goes on reading, and commits nothing.
fn the_group_loses_its_quorum() -> Result<()> {
    let source = Server::start(MYSQL_9_7, GTIDS)?;
    let group = Group::start(Primaries::Single, &[])?;
    create(&source)?;
    let mut running = start(&source.url(), &group.url(), &source, &[])?;
    beside_load(&source, STEADY, || {
        until_there(group.member(0)?).with_context(|| running.log())?;
        until_more(group.member(0)?, 100)?;
        group.signal(&[1, 2], Signal::STOP)?;
        running.wait_for_log("no node takes changes")?;
        thread::sleep(Duration::from_secs(5));
        ensure!(!running.has_ended()?, "it has ended: {}", running.log());
        group.signal(&[1, 2], Signal::CONT)?;
        until("a primary", || Ok(group.primary().is_ok()))?;
        until_more(group.member(group.primary()?)?, 100).with_context(|| running.log())?;
        for at in 0..group.members.len() {
            // Who was expelled joins again by itself, or is told to.
            let _ = group.join(at);
        }
        group.wait_for_all()
    })?;
    let last = group.member(group.primary()?)?;
    end(&source, last, &source, &group.members, running).map(|_| ())
}

/// Another client changes what heddle's transactions change, at another primary: commits fail (3101), and are tried again.
fn others_write() -> Result<()> {
    let source = Server::start(MYSQL_9_7, GTIDS)?;
    let group = Group::start(Primaries::Multi, &[])?;
    create(&source)?;
    let running = start(&source.url(), &group.url(), &source, &[])?;
    let competitor = group.member(1)?;
    beside_load(&source, STEADY, || {
        until_there(competitor)?;
        beside_competitor(competitor, || until_more(group.member(2)?, 1000))
    })?;
    finish(&source)?;
    group.member(0)?.wait_until("SELECT COUNT(*) FROM d.log WHERE n = 0")?;
    running.terminate()?;
    let run = running.wait()?;
    ensure!(run.was_stopped()?, "it was not stopped");
    let retries = run.number("retries")?;
    eprintln!("{retries} retries");
    ensure!(retries > 0, "no commit failed");
    assert_equal(&source, &group.members)
}

/// A transaction that the group does not take stops the channel, with what helps; once it does, the channel goes on.
fn a_transaction_that_is_too_large() -> Result<()> {
    let source = Server::start(MYSQL_9_7, GTIDS)?;
    let group = Group::start(Primaries::Single, &[])?;
    create(&source)?;
    let limit = |bytes: u64| {
        group.members.iter().try_for_each(|member| {
            member.execute(&format!("SET GLOBAL group_replication_transaction_size_limit={bytes}"))
        })
    };
    limit(150_000)?;
    // The group is applied in smaller parts.
    insert_large(&source)?;
    let running = start(&source.url(), &group.url(), &source, &["--until-end"])?;
    let run = running.wait()?;
    run.failed_with("group_replication_transaction_size_limit")?;
    assert_fitting(group.member(0)?).with_context(|| run.to_string())?;
    limit(150_000_000)?;
    let running = start(&source.url(), &group.url(), &source, &[])?;
    end(&source, group.member(0)?, &source, &group.members, running).map(|_| ())
}

/// The member that is read leaves its group, or is killed: the channel goes on from another one.
fn members_of_the_source_go(primaries: Primaries) -> Result<()> {
    let target = Server::start(MYSQL_9_7, &[])?;
    let group = Group::start(primaries, &[])?;
    create(group.member(0)?)?;
    // The first one is written to; the others are read.
    let (from, read) = (e2e::server::url_of(&group.members[1..]), [1, 2]);
    let mut running = start(&from, &target.url(), &target, &[])?;
    beside_load(group.member(0)?, STEADY, || {
        until_there(&target).with_context(|| running.log())?;
        let source = || -> Result<usize> {
            let identity = target.scalar("SELECT source FROM heddle.progress")?;
            let is_read = |&at: &usize| {
                group.members[at].scalar("SELECT @@server_uuid").is_ok_and(|uuid| identity.contains(uuid.trim()))
            };
            read.into_iter().find(is_read).with_context(|| identity.clone())
        };
        for kill in [false, true, false, true] {
            let at = source()?;
            let began = Instant::now();
            if kill {
                group.member(at)?.kill()?;
            } else {
                group.member(at)?.execute("STOP GROUP_REPLICATION")?;
            }
            until("another member is read", || {
                ensure!(!running.has_ended()?, "it has ended: {}", running.log());
                Ok(source().is_ok_and(|now| now != at))
            })
            .with_context(|| running.log())?;
            until_more(&target, 50).with_context(|| running.log())?;
            eprintln!("{}: {:.1} s", if kill { "killed" } else { "left" }, began.elapsed().as_secs_f64());
            if kill {
                group.revive(at)?;
            } else {
                group.join(at)?;
            }
            group.wait_for_all()?;
        }
        Ok(())
    })?;
    let (written, servers) = (group.member(0)?, [&target]);
    end(written, &target, written, servers, running).map(|_| ())
}

e2e::tests! {
    #[ignore = "long: scripts/nightly group_replication"]
    the_primary_is_killed_and_changed: the_primary_moves(&[]);
    #[ignore = "long: scripts/nightly group_replication"]
    the_primary_moves_with_consistency_after: the_primary_moves(&["--loose-group-replication-consistency=AFTER"]);
    #[ignore = "long: scripts/nightly group_replication"]
    the_quorum_is_lost: the_group_loses_its_quorum();
    #[ignore = "long: scripts/nightly group_replication"]
    conflicts_at_several_primaries: others_write();
    #[ignore = "long: scripts/nightly group_replication"]
    a_transaction_is_too_large: a_transaction_that_is_too_large();
    #[ignore = "long: scripts/nightly group_replication"]
    members_of_a_source_leave: members_of_the_source_go(Primaries::Single);
    #[ignore = "long: scripts/nightly group_replication"]
    members_of_a_source_with_several_primaries_leave: members_of_the_source_go(Primaries::Multi);
}
