//! Day two: a channel that has stopped says why, one transaction is skipped exactly once, a running one is paused, a dead one is forgotten.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Run, heddle};
use e2e::pair::Pair;
use e2e::refusal::TABLE;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7};
use e2e::until;
use serde_json::Value;

fn channel(pair: &Pair, command: &[&str]) -> Result<Run> {
    let to = pair.target.url();
    heddle(&[&["channel"], command, &["--to", &to]].concat())
}

fn status(pair: &Pair) -> Result<Value> {
    let run = heddle(&["status", "--json", "--to", &pair.target.url(), "--from", &pair.source.url()])?.successful()?;
    run.summary()?.get(0).cloned().with_context(|| format!("no channel: {run}"))
}

/// Waits until the channel is in this state.
fn until_state(pair: &Pair, state: &str) -> Result<()> {
    until(state, || Ok(status(pair)?["state"] == state)).with_context(|| format!("{:?}", status(pair)))
}

fn stops_skips_goes_on(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute(TABLE)?;
    pair.source.execute("INSERT INTO d.t VALUES (1, 'a'), (2, 'b')")?;
    pair.to_the_end(&[])?;
    let seen = status(&pair)?;
    ensure!(seen["state"] == "stopped" && seen["last_error"].is_null(), "{seen}");
    ensure!(seen["lag"]["seconds"] == 0.0 && seen["lag"]["bytes"] == 0, "nothing is left: {seen}");
    // A divergence: two rows are there already when they come. The first is skipped, the second repaired.
    pair.target.execute("INSERT INTO d.t VALUES (3, 'mine'), (5, 'mine')")?;
    pair.source.execute("INSERT INTO d.t VALUES (3, 'c')")?;
    pair.source.execute("INSERT INTO d.t VALUES (4, 'd')")?;
    pair.source.execute("INSERT INTO d.t VALUES (5, 'e')")?;
    let run = pair.begin(&["--until-end"])?.wait()?;
    ensure!(run.status.code() == Some(1), "a person is needed: {run}");
    ensure!(!run.stderr.contains("trying again") && run.summary()?["retries"] == 0, "said once: {run}");
    ensure!(run.stderr.contains("heddle channel skip"), "{run}");
    let seen = status(&pair)?;
    let (error, named) = (&seen["last_error"], &seen["last_error"]["transaction"]);
    ensure!(seen["state"] == "failed" && error["kind"] == "Divergence" && error["code"] == 1062, "{seen}");
    ensure!(error["remedy"].as_str().is_some_and(|text| !text.is_empty()) && error["time_us"].is_u64(), "{seen}");
    ensure!(seen["lag"]["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{seen}");
    let position = named["position"].as_str().context("no position")?.to_owned();
    // Shown, and nothing else.
    let shown = channel(&pair, &["skip", "default", "--position", &position])?;
    ensure!(
        shown.status.code() == Some(1) && shown.stdout.contains(&position) && shown.stdout.contains("--yes"),
        "{shown}"
    );
    ensure!(pair.begin(&["--until-end"])?.wait()?.status.code() == Some(1), "it went on without --yes");
    channel(&pair, &["skip", "default", "--position", "nowhere:4", "--yes"])?.failed_with("another transaction")?;
    channel(&pair, &["skip", "default", "--position", &position, "--yes"])?.successful()?;
    // Twice asked is once skipped.
    channel(&pair, &["skip", "default", "--position", &position, "--yes"])?.successful()?;
    let run = pair.begin(&["--until-end"])?.wait()?;
    ensure!(run.status.code() == Some(1) && run.stderr.contains("skipped, as an operator"), "{run}");
    let rows = "SELECT GROUP_CONCAT(CONCAT(id, v) ORDER BY id) FROM d.t";
    ensure!(pair.target.scalar(rows)? == "1a,2b,3mine,4d,5mine", "{run}");
    let second = status(&pair)?["last_error"]["transaction"].clone();
    ensure!(second != *named, "it stopped at the second: {second}");
    // What is done is not skipped.
    channel(&pair, &["skip", "default", "--position", &position, "--yes"])?.failed_with("another transaction")?;
    pair.target.execute("DELETE FROM d.t WHERE id = 5")?;
    let run = pair.begin(&["--until-end"])?.wait()?.successful()?;
    ensure!(!run.stderr.contains("skipped, as an operator"), "skipped again: {run}");
    ensure!(pair.target.scalar(rows)? == "1a,2b,3mine,4d,5e", "{run}");
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM heddle.skips")? == "1", "it stays written down");
    skips_by_gtid(&pair)?;
    let seen = status(&pair)?;
    ensure!(seen["state"] == "stopped" && seen["last_error"]["kind"] == "Divergence", "{seen}");
    pauses_and_forgets(&pair)
}

fn skips_by_gtid(pair: &Pair) -> Result<()> {
    pair.target.execute("INSERT INTO d.t VALUES (7, 'mine')")?;
    pair.source.execute("INSERT INTO d.t VALUES (7, 'g')")?;
    pair.source.execute("INSERT INTO d.t VALUES (8, 'h')")?;
    let run = pair.begin(&["--until-end"])?.wait()?;
    ensure!(run.status.code() == Some(1), "{run}");
    let gtid = status(pair)?["last_error"]["transaction"]["gtid"].as_str().context("no GTID")?.to_owned();
    let (before, last) = gtid.rsplit_once([':', '-']).context("a GTID")?;
    let next = format!("{before}{}{}", gtid.as_bytes()[before.len()] as char, last.parse::<u64>()? + 1);
    channel(pair, &["skip", "default", "--gtid", &next, "--yes"])?.failed_with("another transaction")?;
    channel(pair, &["skip", "default", "--gtid", &gtid, "--yes"])?.successful()?;
    let run = pair.begin(&["--until-end"])?.wait()?.successful()?;
    ensure!(run.stderr.contains("skipped, as an operator"), "{run}");
    let rows = pair.target.scalar("SELECT GROUP_CONCAT(CONCAT(id, v) ORDER BY id) FROM d.t WHERE id > 6")?;
    ensure!(rows == "7mine,8h", "{rows}: {run}");
    let seen = status(pair)?;
    ensure!(seen["lag"]["bytes"] == 0, "it counts as applied: {seen}");
    Ok(())
}

fn pauses_and_forgets(pair: &Pair) -> Result<()> {
    let running = pair.begin(&[])?;
    until_state(pair, "idle")?;
    channel(pair, &["forget", "default", "--yes"])?.failed_with("is running")?;
    channel(pair, &["pause", "default"])?.successful()?;
    until_state(pair, "paused")?;
    pair.source.execute("INSERT INTO d.t VALUES (6, 'f')")?;
    // It is received meanwhile: what comes is not applied by a channel that says it is paused.
    let low_water = status(pair)?["low_water"].clone();
    ensure!(status(pair)?["state"] == "paused" && status(pair)?["low_water"] == low_water, "it went on");
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM d.t WHERE id = 6")? == "0", "applied while paused");
    channel(pair, &["resume", "default"])?.successful()?;
    until_state(pair, "idle")?;
    pair.target.wait_until("SELECT COUNT(*) FROM d.t WHERE id = 6").context("not applied after it was resumed")?;
    running.terminate()?;
    running.wait()?.successful()?;
    let listed = channel(pair, &["list"])?.successful()?;
    ensure!(listed.stdout.starts_with("default  not running"), "{listed}");
    let shown = channel(pair, &["forget", "default"])?;
    ensure!(shown.status.code() == Some(1) && shown.stdout.contains("nothing was changed"), "{shown}");
    channel(pair, &["forget", "default", "--yes"])?.successful()?;
    let listed = channel(pair, &["list"])?.successful()?;
    ensure!(listed.stdout.contains("no channel has ever run"), "{listed}");
    // Nobody is there: try again.
    let gone = heddle(&["status", "--to", "mysql://u@127.0.0.1:1"])?;
    ensure!(gone.status.code() == Some(75) && gone.stderr.contains("what to do"), "{gone}");
    Ok(())
}

#[test]
fn mysql() -> Result<()> {
    stops_skips_goes_on(MYSQL_9_7)
}

#[test]
fn mariadb() -> Result<()> {
    stops_skips_goes_on(MARIADB_10_11)
}
