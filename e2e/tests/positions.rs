//! Positions where the log does not say them: since 11.4 MariaDB (`binlog_legacy_event_pos=OFF`, the default) writes 0 for the end of every event
//! between a transaction's GTID and its commit, of statements as of rows.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use binlog::Kind;
use e2e::native;
use e2e::pair::Pair;
use e2e::proxy::{Fault, Proxy};
use e2e::server::Server;
use relay::{FileSource, FilesReader, LogReader, Read, Start};
use std::collections::BTreeSet;

const TABLES: &str =
    "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT, n DOUBLE) ENGINE=InnoDB";

/// One of each of the events that a statement may need, then rows; 20,000 bytes make sure that a connection is cut inside.
const TRANSACTIONS: &str = "SET SESSION binlog_format='STATEMENT', sql_mode=''; SET @s = 'user';
    START TRANSACTION;
    INSERT INTO d.t (v) VALUES ('first');
    INSERT INTO d.t (v, n) VALUES (@s, RAND());
    SAVEPOINT here;
    UPDATE d.t SET v = REPEAT('x', 20000) WHERE id = LAST_INSERT_ID();
    LOAD DATA INFILE '@LOAD@' INTO TABLE d.t (v, n);
    COMMIT;
    DELETE FROM d.t WHERE v = @s;
    SET SESSION binlog_format='ROW';
    START TRANSACTION; INSERT INTO d.t (v) VALUES ('rows'), (REPEAT('y', 40)); UPDATE d.t SET v = CONCAT(v, n) WHERE n > 0.5; COMMIT;\n";

/// What must be among the events that end at 0.
const KINDS: [Kind; 9] = [
    Kind::QUERY,
    Kind::INTVAR,
    Kind::RAND,
    Kind::USER_VAR,
    Kind::EXECUTE_LOAD_QUERY,
    Kind::ANNOTATE_ROWS,
    Kind::TABLE_MAP,
    Kind::WRITE_ROWS_V1,
    Kind::UPDATE_ROWS_V1,
];

/// Of which kinds there are events that end at 0, and where the commits end.
fn events(source: &Server) -> Result<(BTreeSet<u8>, Vec<u64>)> {
    let mut reader = FilesReader::open(FileSource::discover(&[source.binlog_index()])?, Start::Beginning)?;
    let (mut zero, mut ends) = (BTreeSet::new(), Vec::new());
    while let Read::Event(located) = reader.next()? {
        let event = &located.event;
        let end = located.position.offset + event.bytes().len() as u64;
        match event.header().log_pos {
            0 => drop(zero.insert(event.kind().0)),
            said => ensure!(u64::from(said) == end, "{} ends at {end} and says {said}", event.kind()),
        }
        if event.kind() == Kind::XID {
            ends.push(end);
        }
    }
    Ok((zero, ends))
}

fn not_in_the_log(kind: &str) -> Result<()> {
    let seed = e2e::seed(11, &format!("positions {kind}"));
    let mut pair = Pair::start_two((kind.parse()?, &[]), (kind.parse()?, &["--local-infile=ON"]))?;
    let rows = pair.source.dir().join("rows");
    std::fs::write(&rows, "a\t0.25\nb\t0.75\n")?;
    pair.source.execute(TABLES)?;
    let script = TRANSACTIONS.replace("@LOAD@", &rows.display().to_string());
    pair.source.execute(&script.repeat(8))?;
    let (zero, ends) = events(&pair.source)?;
    for kind in KINDS {
        ensure!(zero.contains(&kind.0), "no {kind} that ends at 0");
    }
    let (file, end) = native::position(&pair.source)?;
    // A stop behind each commit, and from there on again: from the file, and from the source, which is asked for what comes then.
    let live = pair.from.clone();
    let index = pair.source.binlog_index().display().to_string();
    for (from, channel) in [(index, "files"), (live.clone(), "live")] {
        pair.from = from;
        pair.target.execute("DROP DATABASE IF EXISTS d")?;
        for at in ends.iter().filter(|&&at| at < end).step_by(3) {
            let place = format!("{file}:{at}");
            let run = pair.begin(&["--channel", channel, "--until-position", &place])?.wait()?.successful()?;
            let reached = run.summary()?["source_position"].as_str().unwrap_or_default().to_owned();
            ensure!(reached == place, "{channel} ended at {reached} instead of {place}");
            let _ = std::fs::remove_dir_all(&pair.relay);
        }
        let run = pair.to_the_end(&["--channel", channel])?;
        let reached = run.summary()?["source_position"].as_str().unwrap_or_default().to_owned();
        ensure!(reached == format!("{file}:{end}"), "{channel} ended at {reached} instead of {file}:{end}");
        let _ = std::fs::remove_dir_all(&pair.relay);
    }
    // The stream is cut anywhere, in a transaction as well, and goes on with the relay log that there is.
    pair.target.execute("DROP DATABASE IF EXISTS d")?;
    let proxy = Proxy::start(pair.source.port, Fault::Anything, 60, seed)?;
    pair.from = format!("mysql://heddle@127.0.0.1:{}?ssl-mode=disabled&get-server-public-key=true", proxy.port);
    let mut runs = 0;
    for more in 0.. {
        let run = pair.begin(&["--channel", "cut", "--until-end"])?.wait()?;
        runs += 1;
        ensure!(run.status.success() || proxy.cuts() > 0, "{run}");
        if run.status.success() && proxy.cuts() > 3 {
            break;
        }
        ensure!(runs < 50, "{} cuts: {run}", proxy.cuts());
        if more < 10 {
            pair.source.execute(&script.repeat(4))?;
        }
    }
    pair.from = live;
    pair.to_the_end(&["--channel", "cut"]).map(drop).with_context(|| format!("after {} cuts", proxy.cuts()))
}

#[test]
#[ignore = "another server than make test has: scripts/nightly runs it"]
fn mariadb_11_4() {
    not_in_the_log("mariadb-11.4").unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
#[ignore = "another server than make test has: scripts/nightly runs it"]
fn mariadb_11_8() {
    not_in_the_log("mariadb-11.8").unwrap_or_else(|error| panic!("{error:#}"));
}
