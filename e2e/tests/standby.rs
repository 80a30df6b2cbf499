//! Two heddles for one channel (`replicate --standby`): whatever becomes of the one that has it, the other one goes on, exactly once. Random moments come from a seed;
//! `HEDDLE_SEED=N` repeats a run.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Heddle, heddle};
use e2e::pair::Pair;
use e2e::proxy::{Fault, Proxy};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use e2e::takeovers::{Duo, Ending, Takeovers, active};
use e2e::until;
use rustix::process::Signal;
use std::thread;
use std::time::{Duration, Instant};

fn seed(name: &str) -> u64 {
    e2e::seed(20_261_130, &format!("standby {name}"))
}

fn takeovers(name: &str, kind: Kind, count: usize, endings: &[Ending], options: &[&str]) -> Result<()> {
    let options = options.iter().map(|&option| option.to_owned()).collect();
    Takeovers { kind, count, endings: endings.to_vec(), seed: seed(name), options }.run()
}

/// Those whose sessions hold one lock at a time, or know less.
fn old_server(name: &str) -> Result<()> {
    takeovers(name, name.parse()?, 12, &Ending::ALL, &[])
}

/// `HEDDLE_TAKEOVERS`, or a thousand.
fn many() -> usize {
    std::env::var("HEDDLE_TAKEOVERS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000)
}

fn proxied(proxy: &Proxy) -> String {
    format!("mysql://heddle@127.0.0.1:{}?ssl-mode=disabled&get-server-public-key=true", proxy.port)
}

const TABLE: &str = "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(40))";
const ROW: &str = "INSERT INTO a.t (text) VALUES (UUID())";

/// Rows that come while `during` runs.
fn beside_rows(source: &Server, during: impl FnOnce() -> Result<()>) -> Result<()> {
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                source.execute(&format!("{ROW};{ROW};{ROW}"))?;
                thread::sleep(Duration::from_millis(20));
            }
            anyhow::Ok(())
        });
        let done = during();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let written = writing.join().map_err(|_| anyhow::anyhow!("the writing thread ended"))?;
        done.and(written)
    })
}

/// All that the source has now is on the target, too.
fn caught_up(pair: &Pair) -> Result<()> {
    let count = "SELECT COUNT(*) FROM a.t";
    let wanted = pair.source.scalar(count)?;
    until(format!("{wanted} rows"), || Ok(pair.target.scalar(count).is_ok_and(|found| found == wanted)))?;
    pair.assert_equal()
}

/// The process that has the channel is cut off from the target, or from the source: the other one goes on. Once the cable is in again, the first one waits.
fn cable_pulled(kind: Kind, at_source: bool) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute(TABLE)?;
    let proxy = Proxy::start(if at_source { pair.source.port } else { pair.target.port }, Fault::Frozen, 1, 1)?;
    let (from, to) =
        if at_source { (proxied(&proxy), pair.target.url()) } else { (pair.from.clone(), proxied(&proxy)) };
    let mut duo = Duo::new(&pair, &[]).through(from, to);
    beside_rows(&pair.source, || {
        duo.start_both()?;
        thread::sleep(Duration::from_millis(500));
        proxy.pull_cable();
        let since = Instant::now();
        duo.until_active(1)?;
        eprintln!("taken over after {:.2?}", since.elapsed());
        thread::sleep(Duration::from_millis(500));
        proxy.plug_cable();
        duo.until_waits(0)
    })?;
    caught_up(&pair)?;
    for run in duo.end()? {
        ensure!(!run.stderr.contains("the channel stopped"), "{run}");
    }
    pair.assert_equal()
}

/// A target that restarts ends no turn: who had the channel goes on.
fn target_restarts(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute(TABLE)?;
    let mut duo = Duo::new(&pair, &[]);
    beside_rows(&pair.source, || {
        duo.start_both()?;
        pair.target.stop()?;
        pair.target.restart(&[])?;
        duo.until_waits(1)?;
        duo.until_active(0)?;
        let log = duo.process(1)?.log();
        ensure!(!log.contains("taking"), "{log}");
        Ok(())
    })?;
    caught_up(&pair)?;
    duo.end().map(drop)
}

/// The same configuration file on both machines.
fn by_configuration_files(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute(TABLE)?;
    let file = pair.target.dir().join("orders.toml");
    let text =
        format!("from = \"{}\"\nto = \"{}\"\nstandby = true\nchannel = \"default\"\n", pair.from, pair.target.url());
    std::fs::write(&file, text)?;
    let file = file.display().to_string();
    let start = |number: usize| {
        let relay = format!("{}-{number}", pair.relay);
        Heddle::start(&["replicate", "--config", &file, "--relay-dir", &relay])
    };
    let first = start(0)?;
    until("the first has it", || Ok(active(&pair.target) == Some(first.pid())))?;
    let second = start(1)?;
    let to = pair.target.url();
    until("the second waits", || {
        Ok(heddle(&["channel", "list", "--to", &to])?.successful()?.stdout.contains("1 standby"))
    })?;
    heddle(&["channel", "forget", "default", "--to", &to, "--yes"])?.failed_with("is running")?;
    beside_rows(&pair.source, || {
        first.terminate()?;
        until("the second has it", || Ok(active(&pair.target) == Some(second.pid())))
    })?;
    first.wait()?.successful()?;
    caught_up(&pair)?;
    second.terminate()?;
    second.wait()?.successful().map(drop)
}

/// `heddle run` on both machines, whose file of the channel says `standby = true`: one of the two channels' processes applies. All of it is seen at `--http`.
fn by_run(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute(TABLE)?;
    let dir = tempfile::tempdir()?;
    let ports = [e2e::server::free_port()?, e2e::server::free_port()?];
    let start = |number: usize| -> Result<Heddle> {
        let folder = dir.path().join(number.to_string());
        std::fs::create_dir_all(&folder)?;
        let relay = format!("{}-{number}", pair.relay);
        let text = format!(
            "from = \"{}\"\nto = \"{}\"\nrelay-dir = \"{relay}\"\nstandby = true\n",
            pair.from,
            pair.target.url()
        );
        std::fs::write(folder.join("default.toml"), text)?;
        let page = format!("127.0.0.1:{}", ports[number]);
        Heddle::start(&["run", "--restart-seconds", "1", "--http", &page, &folder.display().to_string()])
    };
    let is_standby = |number: usize, is_wanted: bool| -> Result<bool> {
        let metrics = e2e::http::get(ports[number], "/metrics")?;
        let found = metrics.lines().find(|line| line.starts_with("heddle_standby{") && line.contains("default"));
        Ok(found.is_some_and(|line| line.ends_with(if is_wanted { " 1.0" } else { " 0.0" })))
    };
    let until_places = |active: usize| {
        until(format!("{active} has the channel, and the other one waits"), || {
            Ok(is_standby(active, false).unwrap_or(false) && is_standby(1 - active, true).unwrap_or(false))
        })
    };
    let first = start(0)?;
    until("the first has it", || Ok(active(&pair.target).is_some()))?;
    let second = start(1)?;
    until_places(0)?;
    let mut again = None;
    beside_rows(&pair.source, || {
        // The process of the channel: the one that supervises starts it again, and it waits.
        let channel = active(&pair.target).context("a process")?;
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(channel.try_into()?).context("a pid")?,
            Signal::KILL,
        )?;
        until_places(1)?;
        let url = format!("http://127.0.0.1:{}", ports[0]);
        until("top says it", || {
            let top = heddle(&["top", "--once", "--width", "200", &url])?.successful()?;
            Ok(top.stdout.contains("has the channel; received up to"))
        })?;
        // The one that supervises: its channels end with it.
        second.kill()?;
        second.wait()?;
        until("the first has it again", || is_standby(0, false))?;
        again = Some(start(1)?);
        until_places(0)?;
        first.terminate()?;
        first.wait()?.successful()?;
        until("the second has it", || is_standby(1, false))
    })?;
    caught_up(&pair)?;
    let second = again.context("the second")?;
    second.terminate()?;
    second.wait()?.successful().map(drop)
}

/// A process that was started without --standby hands the channel over, and ends.
fn plain_process_hands_over(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute(TABLE)?;
    let to = pair.target.url();
    let nobody = heddle(&["channel", "takeover", "--to", &to])?;
    ensure!(nobody.status.code() == Some(1), "{nobody}");
    nobody.failed_with("no process waits")?;
    let plain = pair.begin(&[])?;
    let pid = plain.pid();
    until("the first process has the channel", || Ok(active(&pair.target) == Some(pid)))?;
    let mut duo = Duo::new(&pair, &[]);
    duo.start(1)?;
    duo.until_waits(1)?;
    beside_rows(&pair.source, || {
        let asked = heddle(&["channel", "takeover", "--to", &to])?.successful()?;
        ensure!(asked.stdout.contains(&format!("{pid}@")), "{asked}");
        duo.until_active(1)
    })?;
    let run = plain.wait()?;
    ensure!(run.status.code() == Some(1), "{run}");
    run.failed_with("handed over to another process, as was asked")?;
    ensure!(run.summary()?["handed_over"] == true, "{run}");
    caught_up(&pair)?;
    // Alone it stays where it is.
    let in_vain = heddle(&["channel", "takeover", "--to", &to])?;
    in_vain.failed_with("no process waits")?;
    let standby = duo.take(1)?;
    standby.terminate()?;
    standby.wait()?.successful().map(drop)
}

/// A channel that stopped with an error that a person has to mend is not taken over; once it is left out, it is.
fn error_is_not_taken_over(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute(TABLE)?;
    let mut duo = Duo::new(&pair, &[]);
    duo.start_both()?;
    pair.source.execute("INSERT INTO a.t VALUES (1, 'a')")?;
    caught_up(&pair)?;
    pair.target.execute("INSERT INTO a.t VALUES (2, 'of somebody else')")?;
    pair.source.execute("INSERT INTO a.t VALUES (2, 'b'); INSERT INTO a.t VALUES (3, 'c')")?;
    let stopped = duo.take(0)?.wait()?;
    ensure!(stopped.status.code() == Some(1), "{stopped}");
    let standby = duo.process(1)?;
    standby.wait_for_log("would stop here at the same place")?;
    thread::sleep(Duration::from_secs(2));
    ensure!(!standby.has_ended()? && active(&pair.target).is_none(), "{}", standby.log());
    let to = pair.target.url();
    heddle(&["channel", "forget", "default", "--to", &to, "--yes"])?.failed_with("processes wait for channel")?;
    let status = || -> Result<serde_json::Value> {
        Ok(heddle(&["status", "--json", "--to", &to])?.successful()?.summary()?[0].clone())
    };
    until("the status says what keeps it", || Ok(status()?["standbys"][0]["obstacle"].is_string()))?;
    let status = status()?;
    let at = status["last_error"]["transaction"]["position"].as_str().context("a position")?.to_owned();
    heddle(&["channel", "skip", "default", "--to", &to, "--position", &at, "--yes"])?.successful()?;
    duo.until_active(1)?;
    until("the row behind it", || Ok(pair.target.scalar("SELECT COUNT(*) FROM a.t")? == "3"))?;
    let standby = duo.take(1)?;
    standby.terminate()?;
    standby.wait()?.successful().map(drop)
}

/// A process that was stopped for long, and has been given up, commits nothing when it wakes up, and waits.
fn zombie_commits_nothing(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute(TABLE)?;
    let mut duo = Duo::new(&pair, &[]);
    duo.start_both()?;
    for has in [0, 1] {
        beside_rows(&pair.source, || {
            duo.process(has)?.signal(Signal::STOP)?;
            let since = Instant::now();
            duo.until_active(1 - has)?;
            eprintln!("taken over after {:.2?}", since.elapsed());
            thread::sleep(Duration::from_secs(1));
            duo.process(has)?.signal(Signal::CONT)?;
            duo.until_waits(has)
        })?;
        caught_up(&pair)?;
    }
    for run in duo.end()? {
        ensure!(!run.stderr.contains("the channel stopped"), "{run}");
    }
    Ok(())
}

/// Who is active and who waits, and how far it is: on the target, in its own metrics, and in `heddle top`.
fn what_is_seen(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute(TABLE)?;
    let ports = [e2e::server::free_port()?, e2e::server::free_port()?].map(|port| format!("127.0.0.1:{port}"));
    let start = |number: usize| {
        let relay = format!("{}-{number}", pair.relay);
        let (from, to) = (&pair.from, pair.target.url());
        Heddle::start(&[
            "replicate",
            "--standby",
            "--from",
            from,
            "--to",
            &to,
            "--relay-dir",
            &relay,
            "--http",
            &ports[number],
        ])
    };
    let first = start(0)?;
    until("the first has it", || Ok(active(&pair.target) == Some(first.pid())))?;
    let second = start(1)?;
    let to = pair.target.url();
    let status = || -> Result<serde_json::Value> {
        Ok(heddle(&["status", "--json", "--to", &to])?.successful()?.summary()?[0].clone())
    };
    until("both are listed", || {
        let status = status()?;
        let waiting = &status["standbys"][0];
        Ok(waiting["pid"] == second.pid() && waiting["behind_bytes"] == 0 && waiting["behind_seconds"] == 0.0)
    })?;
    ensure!(status()?["owner"].as_str().is_some_and(|owner| owner.starts_with(&format!("{}@", first.pid()))));
    let text = heddle(&["status", "--to", &to])?.successful()?.stdout;
    ensure!(
        text.contains(&format!("standby         {}@", second.pid())) && text.contains("0 bytes behind the source"),
        "{text}"
    );
    let list = heddle(&["channel", "list", "--to", &to])?.successful()?.stdout;
    ensure!(list.contains("1 standby"), "{list}");
    let urls = ports.each_ref().map(|port| format!("http://{port}"));
    let top =
        |url: &str| Ok::<_, anyhow::Error>(heddle(&["top", "--once", "--width", "200", url])?.successful()?.stdout);
    until("top says it", || Ok(top(&urls[1])?.contains("has the channel; received up to")))?;
    ensure!(!top(&urls[0])?.contains("Standby"));
    // Then they have changed places.
    heddle(&["channel", "takeover", "--to", &to])?.successful()?;
    until("the first waits", || {
        Ok(top(&urls[0]).is_ok_and(|text| text.contains(&format!("Standby: {}@", second.pid()))))
    })?;
    for process in [first, second] {
        process.terminate()?;
        process.wait()?.successful()?;
    }
    until("none waits", || Ok(status()?["standbys"].as_array().is_some_and(Vec::is_empty)))
}

/// What cannot have a standby says so.
fn refused_options() -> Result<()> {
    let from = "mysql://a@127.0.0.1:1";
    for (to, more, said) in [
        ("store:/tmp/none", vec![], "into a server"),
        (from, vec!["--copy"], "cannot be used with"),
        (from, vec!["--server-id", "7"], "cannot be used with"),
    ] {
        let mut arguments = vec!["replicate", "--standby", "--from", from, "--to", to];
        arguments.extend(more);
        let run = heddle(&arguments)?;
        ensure!(run.status.code() == Some(2), "{run}");
        run.failed_with(said)?;
    }
    Ok(())
}

e2e::tests! {
    mariadb_kills: takeovers("mariadb_kills", MARIADB_10_11, 6, &[Ending::Kill], &[]);
    mysql_kills: takeovers("mysql_kills", MYSQL_9_7, 6, &[Ending::Kill], &[]);
    mariadb_orderly_ends: takeovers("mariadb_orderly_ends", MARIADB_10_11, 5, &[Ending::Terminate], &[]);
    mysql_orderly_ends: takeovers("mysql_orderly_ends", MYSQL_9_7, 5, &[Ending::Terminate], &[]);
    mariadb_asked_back_and_forth: takeovers("mariadb_asked_back_and_forth", MARIADB_10_11, 10, &[Ending::Ask], &[]);
    mysql_asked_back_and_forth: takeovers("mysql_asked_back_and_forth", MYSQL_9_7, 10, &[Ending::Ask], &[]);
    mariadb_relaxed_order: takeovers("mariadb_relaxed_order", MARIADB_10_11, 6, &Ending::ALL, &["--commit-order", "relaxed", "--grouping", "5", "--workers", "4"]);
    mysql_gtids_of_the_source: takeovers("mysql_gtids_of_the_source", MYSQL_9_7, 6, &Ending::ALL, &["--gtids", "preserve"]);
    mariadb_zombie_commits_nothing: zombie_commits_nothing(MARIADB_10_11);
    mysql_zombie_commits_nothing: zombie_commits_nothing(MYSQL_9_7);
    mariadb_target_cable: cable_pulled(MARIADB_10_11, false);
    mysql_target_cable: cable_pulled(MYSQL_9_7, false);
    mariadb_source_cable: cable_pulled(MARIADB_10_11, true);
    mysql_source_cable: cable_pulled(MYSQL_9_7, true);
    mariadb_target_restarts: target_restarts(MARIADB_10_11);
    mysql_target_restarts: target_restarts(MYSQL_9_7);
    mariadb_by_configuration_files: by_configuration_files(MARIADB_10_11);
    mysql_by_configuration_files: by_configuration_files(MYSQL_9_7);
    mysql_by_run: by_run(MYSQL_9_7);
    #[ignore = "scripts/nightly standby"]
    mariadb_by_run: by_run(MARIADB_10_11);
    mariadb_plain_process_hands_over: plain_process_hands_over(MARIADB_10_11);
    mysql_plain_process_hands_over: plain_process_hands_over(MYSQL_9_7);
    mariadb_error_is_not_taken_over: error_is_not_taken_over(MARIADB_10_11);
    mysql_error_is_not_taken_over: error_is_not_taken_over(MYSQL_9_7);
    mariadb_what_is_seen: what_is_seen(MARIADB_10_11);
    mysql_what_is_seen: what_is_seen(MYSQL_9_7);
    refused: refused_options();
    #[ignore = "old servers: scripts/nightly standby"]
    mysql_5_6: old_server("mysql-5.6.14");
    #[ignore = "old servers: scripts/nightly standby"]
    mysql_5_7: old_server("mysql-5.7.22");
    #[ignore = "old servers: scripts/nightly standby"]
    mariadb_10_1: old_server("mariadb-10.1");
    #[ignore = "an hour: scripts/nightly standby"]
    mariadb_many_takeovers: takeovers("mariadb_many_takeovers", MARIADB_10_11, many(), &Ending::ALL, &[]);
    #[ignore = "an hour: scripts/nightly standby"]
    mysql_many_takeovers: takeovers("mysql_many_takeovers", MYSQL_9_7, many(), &Ending::ALL, &[]);
}
