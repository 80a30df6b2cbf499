//! What a client may ask for, and how: each request is made of a source and of `heddle serve` in front of it, and both answer the same.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use e2e::served::{Served, connect, status_of_mirror};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server, free_port};
use e2e::until;
use wire::{BinlogStream, Error};

/// More than sockets' buffers take in.
const LARGE_ROWS: usize = 24;

/// The first packet of the answer, in words: `events`, `ok`, `end`, or the error without the places in it.
fn answer(port: u16, before: &[String], command: &[u8]) -> Result<String> {
    let mut connection = connect(port, PASSWORD)?;
    connection.execute("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'")?;
    for sql in before {
        connection.execute(sql)?;
    }
    let mut stream = connection.raw_stream(command)?;
    match stream.next() {
        Ok(packet) if packet.bytes.len() >= binlog::HEADER_LEN => Ok("events".to_owned()),
        Ok(_) => Ok("ok".to_owned()),
        Err(Error::DumpEnded) => Ok("end".to_owned()),
        Err(Error::Server { code, message, .. }) => Ok(format!("{code} {message}")),
        Err(error) => bail!("{error}"),
    }
}

fn dump(file: &[u8], position: u32) -> Vec<u8> {
    let mut out = vec![0x12];
    out.extend_from_slice(&position.to_le_bytes());
    out.extend_from_slice(&[1, 0, 77, 0, 0, 0]);
    out.extend_from_slice(file);
    out
}

/// `lengths`: of the name and of the set, where these are not what they are.
fn gtid_dump(file: &[u8], position: u64, set: &[u8], lengths: [Option<u32>; 2]) -> Result<Vec<u8>> {
    let mut out = vec![0x1e, 1, 0, 77, 0, 0, 0];
    out.extend_from_slice(&lengths[0].map_or_else(|| u32::try_from(file.len()), Ok)?.to_le_bytes());
    out.extend_from_slice(file);
    out.extend_from_slice(&position.to_le_bytes());
    out.extend_from_slice(&lengths[1].map_or_else(|| u32::try_from(set.len()), Ok)?.to_le_bytes());
    out.extend_from_slice(set);
    Ok(out)
}

fn registration(texts: [usize; 3]) -> Vec<u8> {
    let mut out = vec![0x15, 77, 0, 0, 0];
    for length in texts {
        out.push(u8::try_from(length).expect("a byte"));
        out.extend(std::iter::repeat_n(b'x', length));
    }
    out.extend_from_slice(&[0xea, 0x0c, 0, 0, 0, 0, 0, 0, 0, 0]);
    out
}

/// `intervals`, each with its end behind it, of one UUID.
fn set(intervals: &[(u64, u64)]) -> Vec<u8> {
    let mut out = 1u64.to_le_bytes().to_vec();
    out.extend_from_slice(&[0x3e; 16]);
    out.extend_from_slice(&(intervals.len() as u64).to_le_bytes());
    for (first, end) in intervals {
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&end.to_le_bytes());
    }
    out
}

/// What it is, the statements before it, and the command.
type Request = (String, Vec<String>, Vec<u8>);

fn requests(kind: Kind) -> Result<Vec<Request>> {
    let mut all = Vec::new();
    let mut add = |what: String, command: Vec<u8>| all.push((what, Vec::new(), command));
    for name in [
        "",
        "binlog.000001",
        "./binlog.000001",
        "/var/log/binlog.000001",
        "../data/binlog.000001",
        "binlog",
        "binlog.",
        "binlog.1",
        "binlog.index",
        "other.000001",
        "BINLOG.000001",
        "binlog.000001 ",
        " ",
        ".",
        "./",
        "binlog.000001\0more",
    ] {
        add(format!("the file {name:?}"), dump(name.as_bytes(), 4));
    }
    add("a name of 511 bytes".to_owned(), dump(&[b'a'; 511], 4));
    for position in [0, 3, u32::MAX] {
        add(format!("position {position}"), dump(b"binlog.000001", position));
    }
    for bytes in 1..11 {
        add(format!("a dump of {bytes} bytes"), dump(b"", 4)[..bytes].to_vec());
    }
    let whole = registration([1, 1, 1]);
    for bytes in 1..=whole.len() {
        add(format!("a registration of {bytes} bytes"), whole[..bytes].to_vec());
    }
    for texts in
        [[60, 1, 1], [250, 1, 1], [251, 1, 1], [1, 96, 1], [1, 97, 1], [1, 1, 32], [1, 1, 33], [1, 1, 96], [1, 1, 97]]
    {
        add(format!("a registration of {texts:?}"), registration(texts));
    }
    let (empty, none, one) = ([0; 8], [None, None], set(&[(1, 5)]));
    let whole = gtid_dump(b"", 4, &empty, none)?;
    add("an empty set".to_owned(), whole.clone());
    add("an unknown command".to_owned(), vec![0x99]);
    if kind.is_mariadb() {
        for state in ["0-1", "0-1-1,0-1-2", "x", ",", " ", "0-1-99999999999999999999", "0-1-1-1", "4294967296-1-1"] {
            let before = vec![format!("SET @mariadb_slave_capability = 4, @slave_connect_state = '{state}'")];
            all.push((format!("the state {state:?}"), before, dump(b"", 4)));
        }
        return Ok(all);
    }
    for bytes in 1..whole.len() {
        add(format!("a dump by GTID of {bytes} bytes"), whole[..bytes].to_vec());
    }
    for bytes in 0..one.len() {
        add(format!("a set of {bytes} bytes"), gtid_dump(b"", 4, &one[..bytes], none)?);
    }
    for intervals in [
        &[(5, 5)][..],
        &[(5, 2)],
        &[(0, 2)],
        &[(1, 9), (3, 12)],
        &[(8, 9), (3, 5)],
        &[(1, u64::MAX >> 1)],
        &[(1, 1 << 63)],
        &[],
    ] {
        add(format!("the intervals {intervals:?}"), gtid_dump(b"", 4, &set(intervals), none)?);
    }
    add("bytes behind the set".to_owned(), gtid_dump(b"", 4, &[&one[..], b"abc"].concat(), none)?);
    add("a set that is not all there".to_owned(), gtid_dump(b"", 4, &one, [None, Some(49)])?);
    add("a set that is longer".to_owned(), gtid_dump(b"", 4, &one, [None, Some(47)])?);
    add("a name that is not all there".to_owned(), gtid_dump(b"x", 4, &empty, [Some(500), None])?);
    for bytes in [512, 513] {
        add(format!("with a name of {bytes} bytes"), gtid_dump(&vec![b'a'; bytes], 4, &empty, none)?);
    }
    for name in ["binlog.000001", "/var/x/binlog.000001", "other.000001"] {
        add(format!("by GTID in {name}"), gtid_dump(name.as_bytes(), 4, &one, none)?);
    }
    for position in [0, 3] {
        add(format!("by GTID at {position}"), gtid_dump(b"", position, &empty, none)?);
    }
    Ok(all)
}

/// Two streams, one after the other: how the older one ends, if it does.
fn twice(port: u16, [first, second]: [(&str, u32); 2]) -> Result<String> {
    let stream = |(sql, server_id): (&str, u32)| -> Result<BinlogStream> {
        let mut connection = connect(port, PASSWORD)?;
        connection.execute("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'")?;
        if !sql.is_empty() {
            connection.execute(format!("SET {sql}"))?;
        }
        let mut command = dump(b"", 4);
        command[5] = 0;
        command[7..11].copy_from_slice(&server_id.to_le_bytes());
        let mut stream = connection.raw_stream(&command)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.next()?;
        Ok(stream)
    };
    let (mut older, _newer) = (stream(first)?, stream(second)?);
    loop {
        match older.next() {
            Ok(_) => {}
            Err(Error::HeartbeatTimeout { .. }) => return Ok("goes on".to_owned()),
            Err(Error::Server { code, message, .. }) => {
                return Ok(format!("{code} {}", message.split(';').next().unwrap_or_default()));
            }
            Err(error) => bail!("{error}"),
        }
    }
}

/// Makes the statements of two replicas, from what makes `SET` of a UUID by the variable's name and the replica's number.
type PairOfReplicas = fn(&dyn Fn(&str, u8) -> String) -> [String; 2];

/// Each with names and numbers of its own, so that all can be asked at once.
fn identities() -> Vec<[(String, u32); 2]> {
    let uuid = |case: usize, which: u8| format!("3e11fa47-71ca-11e1-{which:04}-{case:012}");
    let says = |name: &str, uuid: &str| format!("@{name}_uuid = '{uuid}'");
    let mut all: Vec<[(String, u32); 2]> = Vec::new();
    let mut add = |pair: PairOfReplicas, same_id: bool| {
        let (case, id) = (all.len(), u32::try_from(5_000 + 2 * all.len()).expect("small"));
        let [first, second] = pair(&|name: &str, which: u8| says(name, &uuid(case, which)));
        all.push([(first, id), (second, if same_id { id } else { id + 1 })]);
    };
    for same_id in [true, false] {
        add(|_| [String::new(), String::new()], same_id);
        add(|of| [of("slave", 1), of("slave", 1)], same_id);
        add(|of| [of("slave", 1), of("slave", 2)], same_id);
        add(|of| [of("replica", 1), of("replica", 1)], same_id);
        add(|of| [of("replica", 1), of("replica", 2)], same_id);
        add(|of| [of("slave", 1), of("replica", 1)], same_id);
        add(|of| [of("replica", 1), of("slave", 1)], same_id);
        add(|of| [format!("{}, {}", of("slave", 1), of("replica", 2)), of("slave", 1)], same_id);
        add(|of| [format!("{}, {}", of("slave", 1), of("replica", 2)), of("replica", 2)], same_id);
        add(|of| [of("slave", 1), String::new()], same_id);
        add(|of| [of("slave", 1), of("slave", 1).replace("71ca", "71CA")], same_id);
        add(|of| [of("slave", 1), format!("{}xx'", of("slave", 1).trim_end_matches('\''))], same_id);
    }
    all
}

/// A client that reads nothing any more is closed after its `net_write_timeout`, and nothing of it is left.
fn silent_reader(source: &Server, served: &Served, dir: &std::path::Path) -> Result<()> {
    source.execute("CREATE DATABASE large; CREATE TABLE large.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB)")?;
    for _ in 0..LARGE_ROWS {
        source.execute("INSERT INTO large.t (b) VALUES (REPEAT('x', 2000000))")?;
    }
    let end = e2e::native::position(source)?;
    until("the mirror has all", || Ok(status_of_mirror(dir)?["mirror"]["durable"] == format!("{}:{}", end.0, end.1)))?;
    let mut streams = Vec::new();
    for port in [source.port, served.port] {
        let mut connection = connect(port, PASSWORD)?;
        connection.execute("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'")?;
        connection.execute("SET SESSION net_write_timeout = 1")?;
        let mut command = dump(b"", 4);
        command[5] = 0;
        streams.push(connection.raw_stream(&command)?);
    }
    // Heddle itself is a replica of the source.
    for (port, others) in [(source.port, 1), (served.port, 0)] {
        until("the silent client's connection ends", || {
            let mut connection = connect(port, PASSWORD)?;
            let lines = connection.rows("SHOW PROCESSLIST")?;
            let dumps = lines.iter().filter_map(|row| row.text(4).ok().flatten()).filter(|it| it.starts_with("Binlog"));
            Ok(dumps.count() == others)
        })?;
    }
    until("it is said", || Ok(served.heddle.log().contains("has read nothing for 1 s")))?;
    ensure!(status_of_mirror(dir)?["replicas"].as_array().is_some_and(Vec::is_empty));
    drop(streams);
    Ok(())
}

fn requests_are_answered_as_by(kind: Kind) -> Result<()> {
    let source = Server::start(kind, &[])?;
    source.execute("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY); INSERT INTO a.t VALUES (1)")?;
    let dir = tempfile::tempdir()?;
    let served = Served::start(source.port, dir.path(), free_port()?, &[])?;
    let end = e2e::native::position(&source)?;
    until("the mirror has all", || {
        Ok(status_of_mirror(dir.path())?["mirror"]["durable"] == format!("{}:{}", end.0, end.1))
    })?;
    let mut differ = Vec::new();
    for (what, before, command) in requests(kind)? {
        let ask = |port| answer(port, &before, &command).with_context(|| format!("{what} at {port}"));
        let (theirs, ours) = (ask(source.port)?, ask(served.port)?);
        if theirs != ours {
            differ.push(format!("{what}: {ours:?} is not {theirs:?}"));
        }
    }
    ensure!(differ.is_empty(), "{}", differ.join("\n"));
    let cases = identities();
    let ports = [source.port, served.port];
    let seen: Vec<[Result<String>; 2]> = thread::scope(|scope| {
        let start = |case: &[(String, u32); 2]| {
            let pair = case.clone();
            ports.map(|port| {
                let pair = pair.clone();
                scope.spawn(move || twice(port, [(&pair[0].0, pair[0].1), (&pair[1].0, pair[1].1)]))
            })
        };
        let all: Vec<_> = cases.iter().map(start).collect();
        all.into_iter().map(|both| both.map(|one| one.join().expect("it ends"))).collect()
    });
    for (case, [theirs, ours]) in cases.iter().zip(seen) {
        let (theirs, ours) = (theirs?, ours?);
        ensure!(theirs == ours, "{case:?}: {ours:?} is not {theirs:?}");
    }
    silent_reader(&source, &served, dir.path())?;
    let served = served.restarted(&source, dir.path(), &["--retag", "writeset"])?;
    tables(&source, &served)?;
    served.kill().map(drop)
}

/// With `--retag` the source's tables are known: what is said of them is what the source says, also after a definition has changed.
fn tables(source: &Server, served: &Served) -> Result<()> {
    let said = |port: u16, sql: &str, columns: &[usize]| -> Result<Vec<Vec<Option<String>>>> {
        let rows = connect(port, PASSWORD)?.rows(sql)?;
        let cell = |row: &wire::Row, at: &usize| Ok(row.text(*at)?.map(str::to_owned));
        rows.iter().map(|row| columns.iter().map(|at| cell(row, at)).collect()).collect()
    };
    // A table that is made while the source is asked is known once it is asked again, for the sake of rows.
    until("the source's tables are known", || {
        Ok(said(served.port, "SHOW FULL TABLES FROM a", &[0]).is_ok_and(|tables| !tables.is_empty()))
    })?;
    source.execute(
        "CREATE TABLE a.kinds (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) COLLATE utf8mb4_bin, kind ENUM('A','b') NOT NULL, at DATETIME(3), \
         c DECIMAL(12, 4), t TEXT, KEY k (kind, at), UNIQUE KEY n (name)) DEFAULT CHARSET=utf8mb4",
    )?;
    let same = || -> Result<()> {
        for (sql, columns) in [
            ("SHOW FULL COLUMNS FROM a.kinds", &[0, 1, 2, 3, 4, 6][..]),
            ("SHOW INDEX FROM a.kinds", &[0, 1, 2, 3, 4, 5, 7, 9, 10]),
            ("SHOW FULL TABLES FROM a WHERE Table_type = 'BASE TABLE'", &[0, 1]),
            (
                "SELECT COLUMN_NAME, COLLATION_NAME, CHARACTER_SET_NAME, COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'a' AND TABLE_NAME = 'kinds' ORDER BY ORDINAL_POSITION",
                &[0, 1, 2, 3],
            ),
        ] {
            let (theirs, ours) = (said(source.port, sql, columns)?, said(served.port, sql, columns)?);
            ensure!(theirs == ours, "{sql}: {ours:?} is not {theirs:?}");
        }
        Ok(())
    };
    let has = |columns: usize| {
        until("its columns are known", || {
            Ok(said(served.port, "SHOW COLUMNS FROM a.kinds", &[0]).is_ok_and(|all| all.len() == columns))
        })
    };
    has(6)?;
    same()?;
    source.execute("ALTER TABLE a.kinds ADD COLUMN more BIGINT NOT NULL, DROP COLUMN c, ADD KEY (more)")?;
    source.execute("ALTER TABLE a.kinds ADD COLUMN last TINYINT UNSIGNED")?;
    has(7)?;
    same()
}

#[test]
fn mysql_requests() -> Result<()> {
    requests_are_answered_as_by(MYSQL_9_7)
}

#[test]
fn mariadb_requests() -> Result<()> {
    requests_are_answered_as_by(MARIADB_10_11)
}

/// `HEDDLE_SERVE_KINDS` names them, with a blank between.
#[test]
#[ignore = "long: scripts/nightly serve"]
fn requests_of_other_versions() -> Result<()> {
    let kinds =
        std::env::var("HEDDLE_SERVE_KINDS").unwrap_or_else(|_| "mysql-5.7.22 mysql-8.0.15 mariadb-11.8".to_owned());
    for kind in kinds.split_whitespace() {
        eprintln!("{kind}");
        requests_are_answered_as_by(kind.parse()?).with_context(|| kind.to_owned())?;
    }
    Ok(())
}
