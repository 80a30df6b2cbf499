//! `heddle serve`: a mirror of a real server's binary logs is equal to the server's own files, whatever is killed; another history is never added to it.
//!
//! What makes a mirror differ, and what shows that it does not:
//!
//! | | Test |
//! |---|---|
//! | made-up events, heartbeats, MariaDB's fake list of GTIDs are not stored | `follows_*`; `crates/serve/src/mirror/arriving.rs` |
//! | a start inside of a file rewrites its format description | `follows_*` (every restart) |
//! | the mark of an open file | `follows_*`; `arriving.rs` |
//! | another checksum from one file to the next | `follows_*` |
//! | MariaDB's texts of statements, capability 4 | `follows_mariadb` |
//! | an encrypted source: equal by position | `encrypted_mariadb`, `encrypted_mysql` |
//! | events above 16 MiB | `follows_*` |
//! | files above 4 GiB | `arriving.rs`, `last.rs`; `beyond_4_gib.rs` (nightly) |
//! | a file without ROTATE: the source was killed | `follows_*` |
//! | RESET, while away and while attached; a restored source | `other_histories_*` |
//! | a source that lost what it had sent | `other_histories_*` |
//! | files that were purged while the mirror was away | `other_histories_*` |
//! | what it answers after it was reached is waited for | `follows_*`; `crates/serve/src/mirror/source.rs` |
//! | kill -9 at any byte; a full disk | `follows_*`; `folder.rs` (every fault of a disk) |
//! | MariaDB 12.3's log without files | `crates/serve/src/mirror/source.rs` |
//! | another server takes the source's place | `mirror_failover.rs` |
//! | complete files are compressed | `compressed`; `crates/serve/src/mirror/pack.rs` (every fault of a disk) |
//! | GTIDs go on from file to file | `crates/serve/src/mirror/gtids.rs` |

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Heddle, heddle};
use e2e::mirror::{assert_equal, assert_files, begin, contents, insert, mirror, stays, wait_until_reached};
use e2e::native::{configure, configure_port, statement, wait_caught_up};
use e2e::refusal::{TABLE, refused_with_remedy};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server, USER, free_port};
use relay::{FileSource, FilesReader, LogReader, Read, Start};
use wire::{ConnectOptions, Connection};

fn copied(dir: &Path) -> Result<tempfile::TempDir> {
    let copy = tempfile::tempdir()?;
    copy_all(dir, copy.path())?;
    Ok(copy)
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    let done = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status()?;
    ensure!(done.success(), "copying {}", from.display());
    Ok(())
}

/// Several files, one without checksums, events of more than 16 MiB; mirrored file by file, so that it is begun inside of each.
fn write_files(source: &Server, dir: &Path) -> Result<()> {
    source.execute(&format!(
        "{TABLE}; CREATE TABLE d.big (id INT PRIMARY KEY, v LONGBLOB); SET GLOBAL max_allowed_packet=1073741824"
    ))?;
    for (number, checksum) in ["CRC32", "NONE", "NONE", "CRC32"].iter().enumerate() {
        source.execute(&format!("SET GLOBAL binlog_checksum={checksum}"))?;
        insert(source, number as u32 * 10..number as u32 * 10 + 3)?;
        mirror(source, dir)?.successful()?;
        source.execute(&format!("INSERT INTO d.big VALUES ({number}, REPEAT('x', {} << 20))", 15 + 5 * number))?;
        mirror(source, dir)?.successful()?;
        source.rotate()?;
    }
    mirror(source, dir)?.successful()?;
    ensure!(assert_equal(source, dir)? >= 4);
    // From nothing, in one go.
    let whole = tempfile::tempdir()?;
    mirror(source, whole.path())?.successful()?;
    let logs = assert_equal(source, whole.path())?;
    // Only the last files are kept.
    let purged = begin(source, whole.path(), &["--until-end", "--keep-bytes", "1"])?.wait()?.successful()?;
    ensure!(purged.stderr.contains("files removed, the oldest ones"), "{purged}");
    ensure!(std::fs::read_to_string(whole.path().join("binlog.index"))?.lines().count() == 1);
    source.rotate()?;
    mirror(source, whole.path())?.successful()?;
    ensure!(assert_files(source, &source.binary_logs()?[logs..], whole.path())? == 1);
    // Who checks whole files finds nothing to complain about.
    heddle(&["inspect", &dir.display().to_string()])?.successful()?;
    Ok(())
}

/// Killed again and again while the source writes, and its last file cut at any byte.
fn kill_heddle(source: &Server, dir: &Path) -> Result<()> {
    let done = AtomicBool::new(false);
    let kills = std::env::var("HEDDLE_MIRROR_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    thread::scope(|scope| {
        let writer = scope.spawn(|| -> Result<()> {
            let mut connection = source.connect()?;
            for id in 1000.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let length = rand::random_range(1..200_000);
                connection.execute(format!("INSERT INTO d.big VALUES ({id}, REPEAT('y', {length}))"))?;
                if id % 50 == 0 {
                    connection.execute("FLUSH BINARY LOGS")?;
                }
            }
            Ok(())
        });
        let killed = (0..kills).try_for_each(|number: u32| {
            let heddle = begin(source, dir, &[])?;
            thread::sleep(Duration::from_millis(rand::random_range(20..600)));
            heddle.kill()?;
            heddle.wait()?;
            if number % 3 == 2 { tear(dir) } else { Ok(()) }
        });
        done.store(true, Ordering::Relaxed);
        let written = writer.join().map_err(|_| anyhow::anyhow!("the writer has ended"))?;
        killed.and(written)
    })?;
    source.rotate()?;
    mirror(source, dir)?.successful()?;
    assert_equal(source, dir).map(drop)
}

/// As a machine that stops may leave the last file.
fn tear(dir: &Path) -> Result<()> {
    let index = std::fs::read_to_string(dir.join("binlog.index")).unwrap_or_default();
    let Some(last) = index.lines().last() else { return Ok(()) };
    let path = dir.join(last.trim_start_matches("./"));
    let bytes = std::fs::read(&path)?;
    let end = rand::random_range(0..=bytes.len());
    let garbage = vec![0; rand::random_range(0..200)];
    std::fs::write(&path, [&bytes[..end], &garbage].concat())?;
    Ok(())
}

/// The source is killed below an attached mirror; a second mirror of the same folder, and a server's own folder, are refused meanwhile.
fn kill_source(source: &Server, dir: &Path) -> Result<()> {
    let mut attached = begin(source, dir, &[])?;
    for round in 0..3 {
        insert(source, 100 + 10 * round..105 + 10 * round)?;
        if round == 1 {
            wait_until_reached(source, dir)?;
        }
        source.kill()?;
        source.restart(&[])?;
    }
    insert(source, 200..205)?;
    source.rotate()?;
    wait_until_reached(source, dir)?;
    refused_with_remedy(&mirror(source, dir)?, &["another heddle has the mirror"])?;
    let of_server = source.data();
    let own = std::fs::read(source.current_log()?)?;
    refused_with_remedy(&mirror(source, &of_server)?, &["has log files, and no heddle-mirror.json"])?;
    // The server itself may have gone on: MariaDB notes its checkpoints in the log.
    ensure!(std::fs::read(source.current_log()?)?.starts_with(&own), "the server's own file was changed");
    ensure!(!attached.has_ended()?);
    attached.terminate()?;
    attached.wait()?.successful()?;
    ensure!(assert_equal(source, dir)? > 4);
    Ok(())
}

/// What a source answers after it was reached once is waited for, and said: a login that it refuses since its restart (MySQL: the account was let in only while its password was in the
/// source's cache), and a privilege that the account lacks for a while.
fn answers_pass(source: &Server, dir: &Path) -> Result<()> {
    source.execute(&format!(
        "CREATE USER cached IDENTIFIED BY '{PASSWORD}'; GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO cached"
    ))?;
    let from = format!("mysql://cached@127.0.0.1:{}?ssl-mode=disabled", source.port);
    let log_in = || -> Result<()> {
        let (mut options, _) = ConnectOptions::from_url(&format!("{from}&get-server-public-key=true"))?;
        options.password = Some(PASSWORD.to_owned().into());
        Connection::connect(&options).map(drop).context("logging in")
    };
    log_in()?;
    let mut attached = Heddle::start(&["serve", "--from", &from, "--dir", &dir.display().to_string()])?;
    wait_until_reached(source, dir)?;
    let warns = attached.log().contains("only while it has the password in its cache");
    ensure!(warns != source.kind.is_mariadb(), "{}", attached.log());
    source.execute("REVOKE REPLICATION SLAVE ON *.* FROM cached")?;
    source.kill()?;
    source.restart(&[])?;
    if !source.kind.is_mariadb() {
        attached.wait_for_log("wants the password under its RSA key")?;
        log_in()?;
    }
    // Not the same error on both vendors, and the same help.
    attached.wait_for_log("GRANT REPLICATION SLAVE, REPLICATION CLIENT")?;
    source.execute("GRANT REPLICATION SLAVE ON *.* TO cached")?;
    insert(source, 300..305)?;
    wait_until_reached(source, dir)?;
    ensure!(!attached.has_ended()?);
    attached.terminate()?;
    attached.wait()?.successful()?;
    Ok(())
}

fn follows(kind: Kind) -> Result<()> {
    let source = Server::start(kind, &[])?;
    let mirrored = tempfile::tempdir()?;
    write_files(&source, mirrored.path())?;
    kill_heddle(&source, mirrored.path()).context("heddle is killed")?;
    kill_source(&source, mirrored.path()).context("the source is killed")?;
    answers_pass(&source, mirrored.path()).context("what the source answers may pass")
}

#[test]
fn follows_mysql() {
    follows(MYSQL_9_7).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn follows_mariadb() {
    follows(MARIADB_10_11).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
#[ignore = "servers that only scripts/nightly fetches"]
fn follows_others() {
    for name in ["mysql-8.0.15", "mariadb-11.4"] {
        follows(name.parse().expect(name)).unwrap_or_else(|error| panic!("{name}: {error:#}"));
    }
}

/// An encrypted source sends its events in clear: the mirror's files have them at the same positions.
fn equal_by_position(source: &Server) -> Result<()> {
    let mirrored = tempfile::tempdir()?;
    let dir = mirrored.path();
    source.execute(TABLE)?;
    for id in 0..4 {
        source.execute(&format!("INSERT INTO d.t VALUES ({id}, 'in clear {id}')"))?;
        // It is begun inside of a file.
        mirror(source, dir)?.successful()?;
        source.execute(&format!("UPDATE d.t SET v = 'again in clear {id}' WHERE id = {id}"))?;
        if id % 2 == 1 {
            source.rotate()?;
        }
    }
    mirror(source, dir)?.successful()?;
    let logs = source.rows("SHOW BINARY LOGS")?;
    ensure!(logs.len() >= 3, "{logs:?}");
    let mut text = Vec::new();
    for log in logs.iter().take(logs.len() - 1) {
        let header = if log.get(2).is_some_and(|encrypted| encrypted == "Yes") { 512 } else { 0 };
        let here = std::fs::read(dir.join(&log[0]))?;
        ensure!(here.len() as u64 + header == log[1].parse::<u64>()?, "{log:?}: {}", here.len());
        let there = std::fs::read(source.data().join(&log[0]))?;
        ensure!(!contains(&there, b"in clear"), "{log:?} is not encrypted");
        text.extend(here);
    }
    for id in 0..4 {
        ensure!(contains(&text, format!("again in clear {id}").as_bytes()), "{id} is not in the mirror");
    }
    // Every event, its checksum and its position.
    let mut reader = FilesReader::open(FileSource::discover(&[dir.join("binlog.index")])?, Start::Beginning)?;
    let mut events = 0;
    while let Read::Event(located) = reader.next()? {
        let end = located.position.offset + located.event.bytes().len() as u64;
        let position = located.event.header().log_pos;
        ensure!(position == 0 || u64::from(position) == end, "{position} is not {end}");
        events += 1;
    }
    ensure!(events > 20, "{events} events");
    Ok(())
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn encrypted_mariadb() -> Result<()> {
    equal_by_position(&Server::start(MARIADB_10_11, &["--keyring", "--encrypt-binlog=ON"])?)
}

#[test]
fn encrypted_mysql() -> Result<()> {
    equal_by_position(&Server::start(MYSQL_9_7, &["--keyring", "--binlog-encryption=ON"])?)
}

fn reset(source: &Server) -> Result<()> {
    source.execute(if source.kind.is_mariadb() { "RESET MASTER" } else { "RESET BINARY LOGS AND GTIDS" })
}

/// The source is reset below an attached mirror: its connection would go on with the new files.
fn reset_while_attached(source: &Server) -> Result<()> {
    let mirrored = tempfile::tempdir()?;
    mirror(source, mirrored.path())?.successful()?;
    let mut attached = begin(source, mirrored.path(), &[])?;
    attached.wait_for_log("mirroring")?;
    insert(source, 400..402)?;
    wait_until_reached(source, mirrored.path())?;
    let before = contents(mirrored.path())?;
    reset(source)?;
    for round in 0..200 {
        insert(source, 500 + round..501 + round)?;
        source.rotate()?;
        if attached.has_ended()? {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    let run = attached.wait()?;
    refused_with_remedy(&run, &[])?;
    ensure!(run.status.code() == Some(1), "{run}");
    ensure!(contents(mirrored.path())? == before, "the mirror has changed: {run}");
    stays(source, mirrored.path(), "the mirror stays as it is")
}

fn other_histories(kind: Kind) -> Result<()> {
    let source = Server::start(kind, &[])?;
    let mirrored = tempfile::tempdir()?;
    let dir = mirrored.path();
    source.execute(TABLE)?;
    insert(&source, 0..3)?;
    mirror(&source, dir)?.successful()?;
    source.stop()?;
    let old = copied(&source.data())?;
    source.restart(&[])?;
    insert(&source, 10..13)?;
    mirror(&source, dir)?.successful()?;

    let purged = copied(dir)?;
    source.rotate()?;
    insert(&source, 20..23)?;
    source.rotate()?;
    mirror(&source, dir)?.successful()?;
    let current = source.current_log()?;
    let name = current.file_name().context("a name")?.to_string_lossy().into_owned();
    // Not while a connection that is ending still reads it, nor before MariaDB's checkpoint.
    while source.binary_logs()?.len() > 1 {
        source.execute(&format!("PURGE BINARY LOGS TO '{name}'"))?;
        thread::sleep(Duration::from_millis(50));
    }
    stays(&source, purged.path(), "the source has purged the log behind")?;

    let longer = copied(dir)?;
    let current = source.current_log()?;
    let whole = std::fs::metadata(&current)?.len();
    insert(&source, 300..302)?;
    mirror(&source, longer.path())?.successful()?;
    source.kill()?;
    std::fs::OpenOptions::new().write(true).open(&current)?.set_len(whole)?;
    source.restart(&[])?;
    stays(&source, longer.path(), "has lost the end of its log").context("lost")?;
    // One that had not yet got what was lost goes on.
    insert(&source, 310..312)?;
    mirror(&source, dir)?.successful()?;

    source.stop()?;
    std::fs::remove_dir_all(source.data())?;
    std::fs::create_dir(source.data())?;
    copy_all(old.path(), &source.data())?;
    source.restart(&[])?;
    stays(&source, dir, "does not have the mirror's last file").context("restored")?;
    for _ in 0..6 {
        let rows: Vec<String> = (1000..1100).map(|id| format!("({id}, REPEAT('c', 50))")).collect();
        source.execute(&format!("INSERT INTO d.t VALUES {}; DELETE FROM d.t WHERE id >= 1000", rows.join(",")))?;
        source.rotate()?;
    }
    stays(&source, dir, "does not begin as the mirror's").context("restored, and gone on")?;

    let away = tempfile::tempdir()?;
    mirror(&source, away.path())?.successful()?;
    reset(&source)?;
    stays(&source, away.path(), "the mirror stays as it is").context("reset")?;
    reset_while_attached(&source).context("reset while attached")
}

#[test]
fn other_histories_mysql() {
    other_histories(MYSQL_9_7).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn other_histories_mariadb() {
    other_histories(MARIADB_10_11).unwrap_or_else(|error| panic!("{error:#}"));
}

/// Complete files are compressed, inflate to the source's, and are read where they are: by replicas, by inspect, by replicate, and from the middle.
#[test]
fn compressed() -> Result<()> {
    let source = Server::start(MARIADB_10_11, &[])?;
    let mirrored = tempfile::tempdir()?;
    let dir = mirrored.path().join("mirror");
    source.execute(&format!("{TABLE}; CREATE TABLE d.text (id INT PRIMARY KEY, v LONGTEXT)"))?;
    for number in 0..5 {
        insert(&source, number * 10..number * 10 + 3)?;
        source.execute(&format!("INSERT INTO d.text SELECT {number}, REPEAT(UUID(), 90000)"))?;
        source.rotate()?;
    }
    let compress = ["--until-end", "--compress-sealed"];
    begin(&source, &dir, &compress)?.wait()?.successful()?;
    let logs = source.binary_logs()?;
    let (last_two, complete) = (&logs[logs.len() - 2..], &logs[..logs.len() - 2]);
    for log in complete {
        let name = log.file_name().context("a name")?.to_string_lossy().into_owned();
        let packed = std::fs::read(dir.join(format!("{name}.zst")))?;
        ensure!(!dir.join(&name).exists() && packed.len() < std::fs::read(log)?.len() / 2, "{name}");
        ensure!(zstd::decode_all(&packed[..])? == std::fs::read(log)?, "{name} is another file");
    }
    ensure!(last_two.iter().all(|log| log.file_name().is_some_and(|name| dir.join(name).exists())));

    // As the files in clear: mirrored on, inspected, replicated, from the middle.
    insert(&source, 90..92)?;
    source.rotate()?;
    mirror(&source, &dir)?.successful()?;
    let clear = mirrored.path().join("clear");
    mirror(&source, &clear)?.successful()?;
    let said = |dir: &Path, command: &[&str]| -> Result<serde_json::Value> {
        let dir = dir.display().to_string();
        heddle(&[command, &[&dir]].concat())?.successful()?.summary()
    };
    let inspected =
        [&dir, &clear].map(|dir| said(dir, &["inspect", "--json"]).map(|mut seen| seen["transactions"].take()));
    let [packed, plain] = inspected;
    ensure!(packed? == plain?, "inspect counts differently");
    let replicated = |dir: &Path, store: &str, start: &[&str]| -> Result<serde_json::Value> {
        let to = format!("store:{}", mirrored.path().join(store).display());
        let from = dir.display().to_string();
        let all = [&["replicate", "--from", &from, "--to", &to, "--json"][..], start].concat();
        Ok(heddle(&all)?.successful()?.summary()?["transactions"].take())
    };
    let all = replicated(&dir, "a", &[])?;
    ensure!(all == replicated(&clear, "b", &[])? && all.as_u64() > Some(30), "{all}");

    // Served: a replica from the beginning, and a stream from inside of a file.
    let port = free_port()?;
    let listen = format!("127.0.0.1:{port}");
    let mut served = begin(&source, &dir, &["--listen", &listen, "--replica-user", USER, "--compress-sealed"])?;
    served.wait_for_log("mirroring")?;
    let replica = Server::start(MARIADB_10_11, &[])?;
    configure(&source, &replica)?;
    configure_port(&replica, port)?;
    replica.execute(statement(&replica, "START"))?;
    wait_caught_up(&source, &replica)?;
    e2e::checksum::assert_equal(&source, &replica)?;
    served.terminate()?;
    served.wait()?.successful()?;

    // What they take on the disk counts.
    let bytes = |dir: &Path| -> Result<u64> {
        Ok(contents(dir)?
            .iter()
            .filter(|(path, _)| path.to_string_lossy().contains("binlog.0"))
            .map(|(_, file)| file.len() as u64)
            .sum())
    };
    let (before, files) = (bytes(&dir)?, contents(&dir)?.len());
    begin(&source, &dir, &["--until-end", "--keep-bytes", &(before + 1000).to_string()])?.wait()?.successful()?;
    ensure!(contents(&dir)?.len() == files, "a file is gone that need not go");
    begin(&source, &dir, &["--until-end", "--keep-bytes", &(before - 1000).to_string()])?.wait()?.successful()?;
    let first = logs[0].file_name().context("a name")?.to_string_lossy().into_owned();
    ensure!(!dir.join(format!("{first}.zst")).exists() && bytes(&dir)? < before);
    Ok(())
}
