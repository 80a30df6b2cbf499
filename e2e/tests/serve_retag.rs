//! `heddle serve --retag`: replicas get the source's stream with other tags, always the same ones, and end up as the source is.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use binlog::encode::FormatSpec;
use binlog::{Checksum, Event, Flavour, HEADER_LEN, Kind as EventKind, MySqlGtid};
use e2e::checksum::{contents, differences};
use e2e::heddle::heddle;
use e2e::invariants::{self, Reader, order_of};
use e2e::mirror;
use e2e::native::{gtids, native_replica, position, statement, wait_caught_up};
use e2e::retagged::{Differing, Files, RETAG, SIZE, changes, count_differing, inspected, log_files, one_session, same};
use e2e::served::{Ask, By, Served, assert_same, attach, status_of_mirror};
use e2e::server::{Kind, MYSQL_9_7, PASSWORD, Server, USER, free_port, servers_script};
use e2e::until;
use e2e::workload::Workload;

/// Of a GTID event: behind its header, flags, UUID, number and type.
const LAST_COMMITTED: std::ops::Range<usize> = HEADER_LEN + 26..HEADER_LEN + 34;

/// What a replica is sent, file by file, as mysqlbinlog writes it down.
fn sent(served: &Served, dir: &Path) -> Result<Files> {
    let raw = tempfile::tempdir_in(dir)?;
    let mut command = servers_script(&["run", "mysql-9.7", "mysqlbinlog"]);
    command
        .args(["--no-defaults", "--read-from-remote-server", "--host=127.0.0.1", "--raw", "--to-last-log"])
        .args([format!("--port={}", served.port), format!("--user={USER}"), format!("--password={PASSWORD}")])
        .args(["--ssl-mode=DISABLED".to_owned(), format!("--result-file={}/", raw.path().display())]);
    let logs = served.connected()?.rows("SHOW BINARY LOGS")?;
    let first = logs.first().context("a file")?.required_text(0)?.to_owned();
    let output = command.arg(first).output()?;
    ensure!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), served.heddle.log());
    files(raw.path())
}

fn files(dir: &Path) -> Result<Files> {
    log_files(dir, "binlog")
}

/// The source's events, but for lower tags in GTID events; how many have one.
fn differs_in_tags(mirror: &Files, sent: &Files, sum: Checksum) -> Result<usize> {
    count_differing(mirror, sent, |Differing { header, theirs, ours, place }| {
        if header.kind == EventKind::GTID_TAGGED {
            return differs_in_its_tag(theirs, ours, sum).context(place);
        }
        ensure!(matches!(header.kind, EventKind::GTID | EventKind::ANONYMOUS_GTID), "{place} is not the source's");
        Event::parse(ours.to_vec().into(), sum).with_context(|| place.clone())?;
        let tag = |event: &[u8]| i64::from_le_bytes(event[LAST_COMMITTED].try_into().expect("8 bytes"));
        ensure!(tag(ours) <= tag(theirs).max(1), "{place}: {} is above the source's {}", tag(ours), tag(theirs));
        let end = ours.len() - sum.len();
        let rest = |event: &[u8]| [&event[..LAST_COMMITTED.start], &event[LAST_COMMITTED.end..end]].concat();
        ensure!(rest(ours) == rest(theirs), "{place}: more than its tag is another one");
        Ok(())
    })
}

/// A GTID with a tag of its own.
fn differs_in_its_tag(theirs: &[u8], ours: &[u8], sum: Checksum) -> Result<()> {
    let format = FormatSpec::new("9.7.0", Flavour::MySql, sum).describe();
    let decode = |event: &[u8]| -> Result<MySqlGtid> {
        Ok(MySqlGtid::decode(&Event::parse(event.to_vec().into(), sum)?, &format)?)
    };
    let (theirs, ours) = (decode(theirs)?, decode(ours)?);
    ensure!(ours.last_committed <= theirs.last_committed.max(1), "{ours:?} is above {theirs:?}");
    ensure!(ours == MySqlGtid { last_committed: ours.last_committed, ..theirs.clone() }, "{ours:?} is not {theirs:?}");
    Ok(())
}

/// A source whose own tags allow nothing, replicas of a version, Heddle between them and killed meanwhile.
fn replicas_get_new_tags(source: (Kind, &[&str]), replica: (Kind, &[&str]), kills: u64) -> Result<()> {
    eprintln!("{} → {}", source.0, replica.0);
    let seed = e2e::seed(rand::random_range(0..1 << 31), "serve_retag -- --include-ignored");
    let (source, replica) = Server::start_two(source, replica)?;
    let dir = tempfile::tempdir()?;
    let (folder, port) = (dir.path().join("mirror"), free_port()?);
    let mut served = Served::start(source.port, &folder, port, RETAG)?;
    attach(&replica, Ask::new(port, By::Gtid))?;
    let mut workload = Workload::new(seed, SIZE, source.kind);
    invariants::add(&mut workload, SIZE.transactions);
    let reader = Reader::start(&replica, &workload.schema, order_of(&replica)?);
    let during = |mut served: Served| {
        std::thread::scope(|scope| -> Result<Served> {
            let load = scope.spawn(|| workload.run(&source));
            for kill in 0..kills {
                std::thread::sleep(Duration::from_millis(100 + (seed >> kill) % 400));
                served = served.restarted(&source, &folder, RETAG)?;
            }
            load.join().expect("no panic").map(|()| served)
        })
    };
    served = during(served)?;
    // A connection that was lost is no error of now.
    replica.execute(statement(&replica, "STOP"))?;
    replica.execute(statement(&replica, "START"))?;
    one_session(&source, 600)?;
    same(&source, &replica).with_context(|| served.heddle.log())?;
    eprintln!("{} snapshots beside", reader.end()?);
    let first = sent(&served, dir.path())?;
    let mirrored = files(&folder)?;
    let changed = differs_in_tags(&mirrored, &first, Checksum::Crc32)?;
    ensure!(changed > 480, "{changed} tags are new ones\n{}", served.heddle.log());
    let (before, after) = (inspected(&mirrored, "amil", dir.path())?, inspected(&first, "amil", dir.path())?);
    eprintln!("{changed} new tags, AMIL {before} → {after}");
    ensure!(after > before * 1.5, "AMIL {before} → {after}");
    if kills == 0 {
        let seen = status_of_mirror(&folder)?;
        let retag = &seen["mirror"]["retag"];
        let amil = |tags: &str| retag[tags]["amil"].as_f64().unwrap_or_default();
        ensure!(retag["changed"].as_u64() == Some(changed as u64) && retag["behind_bytes"] == 0, "{changed}: {seen}");
        ensure!(amil("retagged") > amil("source") * 1.5, "{seen}");
    }
    // Others are sent the same: later, and by another process.
    served = served.restarted(&source, &folder, RETAG)?;
    ensure!(sent(&served, dir.path())? == first, "other bytes after a restart");
    mirror::assert_equal(&source, &folder)?;
    served.kill().map(drop)
}

/// Tags of the source that allow nothing: the history of its write sets is always full.
const NO_HISTORY: &str = "--binlog-transaction-dependency-history-size=1";
const SMALL_FILES: &str = "--max-binlog-size=262144";
const EIGHT: &[&str] = &["--replica-parallel-workers=8"];

#[test]
fn a_replica_gets_new_tags() -> Result<()> {
    replicas_get_new_tags((MYSQL_9_7, &[NO_HISTORY, SMALL_FILES]), (MYSQL_9_7, EIGHT), 0)
}

#[test]
fn gtids_with_tags_get_new_tags() -> Result<()> {
    let (source, replica) = Server::start_two((MYSQL_9_7, &[NO_HISTORY, SMALL_FILES]), (MYSQL_9_7, EIGHT))?;
    let dir = tempfile::tempdir()?;
    let (folder, port) = (dir.path().join("mirror"), free_port()?);
    one_session(&source, 0)?;
    let plain = changes(1_000).replace("one.t", "one.u");
    source.execute("CREATE TABLE one.u LIKE one.t")?;
    std::thread::scope(|scope| {
        let tagged = scope.spawn(|| source.execute(&format!("SET gtid_next = 'AUTOMATIC:app'; {}", changes(2_000))));
        source.execute(&plain)?;
        tagged.join().expect("no panic")
    })?;
    let served = Served::start(source.port, &folder, port, RETAG)?;
    attach(&replica, Ask::new(port, By::Gtid))?;
    same(&source, &replica).with_context(|| served.heddle.log())?;
    ensure!(gtids(&replica)?.contains(":app:"), "{}", gtids(&replica)?);
    let (theirs, ours) = (files(&folder)?, sent(&served, dir.path())?);
    let changed = differs_in_tags(&theirs, &ours, Checksum::Crc32)?;
    ensure!(changed > 2_500, "{changed}\n{}", served.heddle.log());
    let (before, after) = (inspected(&theirs, "amil", dir.path())?, inspected(&ours, "amil", dir.path())?);
    eprintln!("{changed} new tags, AMIL {before} → {after}");
    ensure!(after > before * 3.0, "AMIL {before} → {after}");
    served.kill().map(drop)
}

/// MySQL 5.6 gives no tags, and its events have no room for some. By GTID replicas get longer ones; by position its own.
#[test]
#[ignore = "scripts/nightly retag"]
fn replicas_of_mysql_5_6_get_tags() -> Result<()> {
    let old =
        |workers: &'static str| [workers, "--slave-parallel-type=LOGICAL_CLOCK", "--slave-preserve-commit-order=ON"];
    for (kind, options) in
        [("mysql-5.7.22", old("--slave-parallel-workers=8")), ("mysql-8.0.15", old("--slave-parallel-workers=16"))]
    {
        let (source, replica) =
            Server::start_two(("mysql-5.6.14".parse()?, &[SMALL_FILES]), (kind.parse()?, &options))?;
        let dir = tempfile::tempdir()?;
        let (folder, port) = (dir.path().join("mirror"), free_port()?);
        let mut served = Served::start(source.port, &folder, port, RETAG)?;
        attach(&replica, Ask::new(port, By::Gtid))?;
        // Heartbeats come between the transactions: they fit the lengths that the replica adds up.
        replica.execute("STOP SLAVE; CHANGE MASTER TO MASTER_HEARTBEAT_PERIOD = 0.1; START SLAVE")?;
        let seed = e2e::seed(rand::random_range(0..1 << 31), "serve_retag replicas_of_mysql_5_6 -- --ignored");
        Workload::new(seed, SIZE, source.kind).run(&source)?;
        std::thread::sleep(Duration::from_millis(500));
        one_session(&source, 2_000)?;
        same(&source, &replica).with_context(|| served.heddle.log())?;
        served = served.restarted(&source, &folder, RETAG)?;
        std::thread::sleep(Duration::from_millis(500));
        source.execute("INSERT INTO one.t VALUES (1000000, 1000000)")?;
        same(&source, &replica).with_context(|| served.heddle.log())?;
        let seen = status_of_mirror(&folder)?;
        eprintln!("{kind}: {}", seen["mirror"]["retag"]);
        let (file, offset) = position(&source)?;
        attach(&replica, Ask::new(port, By::Position(&file, offset)))?;
        source.execute("INSERT INTO one.t VALUES (1000001, 1000001)")?;
        same(&source, &replica).with_context(|| served.heddle.log())?;
        served.kill()?;
    }
    Ok(())
}

#[test]
#[ignore = "scripts/nightly retag"]
fn a_replica_gets_new_tags_through_kills() -> Result<()> {
    replicas_get_new_tags((MYSQL_9_7, &[NO_HISTORY, SMALL_FILES]), (MYSQL_9_7, EIGHT), 2)
}

/// Old sources, whose tags are of commit order; replicas of every version that runs in parallel.
#[test]
#[ignore = "long: scripts/nightly retag"]
fn replicas_of_every_version_get_new_tags() -> Result<()> {
    let (five, eight): (Kind, Kind) = ("mysql-5.7.22".parse()?, "mysql-8.0.15".parse()?);
    let old: &[&str] = &["--slave-parallel-workers=8", "--slave-parallel-type=LOGICAL_CLOCK"];
    for (source, replica, options) in
        [(five, five, old), (eight, eight, old), (five, eight, old), (eight, MYSQL_9_7, EIGHT)]
    {
        for order in ["ON", "OFF"] {
            let name = if replica.has_new_words() { "replica" } else { "slave" };
            let order = format!("--{name}-preserve-commit-order={order}");
            let options = [options, &[order.as_str()]].concat();
            replicas_get_new_tags((source, &[SMALL_FILES]), (replica, &options), 6)
                .with_context(|| format!("{source} → {replica} {order}"))?;
        }
    }
    Ok(())
}

/// Positions, no checksums, compressed files, purging, a restart without --retag, a mirror of the mirror; and tags that are not of this log.
#[test]
#[ignore = "long: scripts/nightly retag"]
fn tags_stay_with_their_files() -> Result<()> {
    let source = Server::start(MYSQL_9_7, &[NO_HISTORY, SMALL_FILES, "--binlog-checksum=NONE"])?;
    let dir = tempfile::tempdir()?;
    let (folder, port) = (dir.path().join("mirror"), free_port()?);
    // A folder that was a mirror before tags were made anew.
    let plain = Served::start(source.port, &folder, port, &[])?;
    one_session(&source, 4_000)?;
    wait_for_end(&source, &plain)?;
    let as_source = sent(&plain, dir.path())?;
    ensure!(as_source == files(&folder)?, "without --retag the source's bytes are sent");
    plain.kill()?;
    let served = Served::start(source.port, &folder, port, RETAG)?;
    let first = sent(&served, dir.path())?;
    let changed = differs_in_tags(&as_source, &first, Checksum::Off)?;
    ensure!(changed > 3_000, "{changed}\n{}", served.heddle.log());
    // The folder is read as before.
    heddle(&["inspect", &folder.display().to_string(), "--json"])?.successful()?;
    // A replica attaches by position in the middle.
    let replica = Server::start(MYSQL_9_7, EIGHT)?;
    attach(&replica, Ask::new(port, By::Position("binlog.000001", 4)))?;
    assert_same(&source, &replica)?;
    let (file, offset) = position(&source)?;
    attach(&replica, Ask::new(port, By::Position(&file, offset)))?;
    source.execute("INSERT INTO one.t VALUES (1000000, 1000000)")?;
    wait_caught_up(&source, &replica)?;
    // A mirror of the mirror has what it is sent.
    let chained = dir.path().join("chained");
    let from = format!("mysql://{USER}@127.0.0.1:{port}?ssl-mode=disabled&get-server-public-key=true");
    heddle(&["serve", "--from", &from, "--dir", &chained.display().to_string(), "--until-end"])?.successful()?;
    let again = sent(&served, dir.path())?;
    ensure!(files(&chained)? == again, "the chain has other bytes");
    ensure!(first.iter().rev().skip(1).all(|(name, bytes)| again[name] == *bytes), "what was sent is sent otherwise");
    served.kill()?;
    // Compressed.
    let compressed = Served::start(source.port, &folder, port, &[RETAG, &["--compress-sealed"]].concat())?;
    until("the sealed file is compressed", || {
        Ok(folder.join("binlog.000001.zst").exists() && !folder.join("binlog.000001").exists())
    })
    .context("compressed")?;
    ensure!(sent(&compressed, dir.path())? == again, "compressed files are sent with other tags");
    compressed.kill()?;
    // Without it the source's bytes are there again, and tags go on where they were.
    let plain = Served::start(source.port, &folder, port, &[])?;
    source.execute("INSERT INTO one.t VALUES (1000001, 1000001), (1000002, 1000002)")?;
    wait_for_end(&source, &plain)?;
    ensure!(differs_in_tags(&sent(&plain, dir.path())?, &again, Checksum::Off).is_err(), "the log went on");
    plain.kill()?;
    // Tags of another log.
    let names: Vec<String> = first.keys().cloned().collect();
    let tags = |name: &str| folder.join(format!("{name}.tags"));
    let last = names.last().context("a file")?;
    std::fs::copy(tags(&names[0]), tags(last))?;
    let served = Served::start(source.port, &folder, port, RETAG)?;
    let healed = sent(&served, dir.path())?;
    ensure!(again.iter().rev().skip(1).all(|(name, bytes)| healed[name] == *bytes), "tags of a complete file changed");
    differs_in_tags(&files(&chained)?, &again, Checksum::Off)?;
    served.kill()?;
    // Files go with their tags.
    let served = Served::start(source.port, &folder, port, &[RETAG, &["--keep-bytes", "1"]].concat())?;
    source.execute("FLUSH BINARY LOGS")?;
    until("the file and its tags are gone", || {
        Ok(!folder.join("binlog.000001.zst").exists() && !tags("binlog.000001").exists())
    })
    .context("removed")?;
    served.kill().map(drop)
}

/// Another server takes the source's place: its files get tags of their own, and a replica goes through it by GTID.
#[test]
#[ignore = "long: scripts/nightly retag"]
fn tags_follow_a_fail_over() -> Result<()> {
    let options = &[NO_HISTORY, SMALL_FILES];
    let (one, two) = Server::start_two((MYSQL_9_7, options), (MYSQL_9_7, options))?;
    let replica = Server::start(MYSQL_9_7, EIGHT)?;
    native_replica(&one, &two)?;
    let dir = tempfile::tempdir()?;
    let (folder, port, second) = (dir.path().join("mirror"), free_port()?, two.plain_url());
    let more = [RETAG, &["--from", &second, "--failover-seconds", "1"]].concat();
    let mut served = Served::start(one.port, &folder, port, &more)?;
    attach(&replica, Ask::new(port, By::Gtid))?;
    one_session(&one, 2_000)?;
    assert_same(&one, &replica)?;
    wait_caught_up(&one, &two)?;
    one.kill()?;
    two.execute(statement(&two, "STOP"))?;
    served.heddle.wait_for_log(" replaces ")?;
    let more: String = (0..1_000).map(|id| format!("INSERT INTO one.t VALUES ({0}, {0});", 2_000_000 + id)).collect();
    two.execute(&more)?;
    replica.execute(statement(&replica, "STOP"))?;
    replica.execute(statement(&replica, "START"))?;
    wait_caught_up(&two, &replica).with_context(|| served.heddle.log())?;
    let differences = differences(&contents(&two)?, &contents(&replica)?);
    ensure!(differences.is_empty(), "{differences:?}");
    // The new source's files.
    let later = std::fs::read_dir(&folder)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.is_dir())
        .context("a folder of the second source")?;
    let first = sent(&served, dir.path())?;
    let changed = differs_in_tags(&files(&later)?, &first, Checksum::Crc32)?;
    ensure!(changed > 900, "{changed}\n{}", served.heddle.log());
    served.kill()?;
    let served = Served::start(two.port, &folder, port, RETAG)?;
    ensure!(sent(&served, dir.path())? == first, "other bytes after a restart");
    served.kill().map(drop)
}

fn wait_for_end(source: &Server, served: &Served) -> Result<()> {
    let (file, offset) = position(source)?;
    until("the source's end is served", || {
        let rows = served.connected()?.rows("SHOW BINARY LOGS")?;
        let last = rows.last().context("a file")?;
        Ok(last.text(0)? == Some(file.as_str()) && last.required::<u64>(1)? >= offset)
    })
    .context("the end")
}
