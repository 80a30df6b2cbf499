//! `heddle serve --listen`: the servers' own replicas and tools attach to Heddle as to their source.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use binlog::gtids::GtidSet;
use e2e::checksum::assert_equal;
use e2e::native::{gtids, position, statement, wait_caught_up, wait_position};
use e2e::served::{Ask, By, Served, assert_same, attach, change};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server, USER, free_port, servers_script};
use e2e::workload::{Size, Workload};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use wire::{BinlogStream, Connection, DumpOptions, DumpRequest};

const SIZE: Size = Size {
    tables: 4,
    sessions: 3,
    transactions: 150,
    definitions_percent: 3,
    xa: true,
    replace: false,
    temporary: false,
    same_flavour: true,
    unlogged: true,
};
/// How often a replica changes between the source and Heddle.
/// A native replica of MariaDB may wait for locks of a prepared branch that the source did not wait for, until it gives up and stops.
fn size(kind: Kind) -> Size {
    Size { xa: !kind.is_mariadb() && kind.logs_prepared(), ..SIZE }
}

const MOVES: usize = 16;
const STUCK_AFTER: Duration = Duration::from_secs(120);

/// What the receiver has stopped with.
fn io_error(replica: &Server) -> Result<String> {
    let started = Instant::now();
    loop {
        let output = replica.client(&["--vertical", "-e", statement(replica, "STATUS")]).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = text.lines().find_map(|line| line.trim().strip_prefix("Last_IO_Error: ")).unwrap_or_default();
        if !error.is_empty() {
            return Ok(error.to_owned());
        }
        ensure!(started.elapsed() < STUCK_AFTER, "no error:\n{text}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// A stream of our own from a place, which must end with this error.
fn refused(served: &Served, request: &DumpRequest, want: &str) -> Result<()> {
    let mut stream: BinlogStream = served.connect(PASSWORD)?.binlog_dump_with(request, &DumpOptions::default())?;
    let error = loop {
        match stream.next() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    ensure!(error.code() == Some(1236) && error.to_string().contains(want), "{error} is not {want}");
    Ok(())
}

/// The whole: one source, one replica, Heddle between them.
fn replicas_attach(kind: Kind) -> Result<()> {
    let seed: u64 = rand::random_range(0..1 << 31);
    eprintln!("seed {seed}");
    let strict: &[&str] = if kind.is_mariadb() { &["--gtid-strict-mode=ON"] } else { &[] };
    let (source, replica) = Server::start_two((kind, &["--max-binlog-size=262144"]), (kind, strict))?;
    let dir = tempfile::tempdir()?;
    let port = free_port()?;
    Workload::new(seed, size(kind), kind).run(&source)?;
    let mut served = Served::start(source.port, &dir.path().join("one"), port, &[])?;
    served.connected()?;
    attach(&replica, Ask::new(port, By::Gtid))?;
    assert_same(&source, &replica)?;
    if kind.is_mariadb() {
        domains(&source)?;
        assert_same(&source, &replica)?;
    }
    what_it_says(&source, &served)?;
    if !kind.is_mariadb() {
        begins_as_the_source(&source, &served)?;
    }
    served = moves(&source, &replica, served, dir.path(), seed)?;
    chain(&source, &replica, &served, dir.path(), seed)?;
    by_position(&source, &replica, &served, seed)?;
    tools(&source, &served, dir.path())?;
    refusals(&source, &replica, &served)?;
    garbage(&served, seed)?;
    attach(&replica, Ask::new(port, By::Gtid))?;
    assert_same(&source, &replica)?;
    if kind.is_mariadb() {
        until(&source, &replica, &served)?;
    }
    served.heddle.terminate()?;
    ensure!(served.heddle.wait()?.status.success());
    let book = tempfile::NamedTempFile::new()?;
    std::fs::write(book.path(), ACCOUNTS)?;
    let more = ["--accounts", &book.path().display().to_string()];
    let served = Served::start(source.port, &dir.path().join("one"), port, &more)?;
    accounts(&source, &served)?;
    served.kill().map(drop)
}

/// MySQL by GTID: packet for packet what the source sends, from the made-up events on. By the format description an applier with workers knows that a stream has begun anew.
fn begins_as_the_source(source: &Server, served: &Served) -> Result<()> {
    let uuid = source.scalar("SELECT @@server_uuid")?;
    for has in [String::new(), format!("{uuid}:1"), format!("{uuid}:1-20"), format!("{uuid}:2-20")] {
        let set: GtidSet = has.parse()?;
        let first = |mut connection: Connection, server_id| -> Result<Vec<Vec<u8>>> {
            // Beside its own, heartbeats stand for what is left out.
            connection.execute("SET @master_heartbeat_period = 60000000000")?;
            let request = DumpRequest::MySqlGtid { gtid_set_binary: set.to_binary(), server_id };
            let mut stream: BinlogStream = connection.binlog_dump_with(&request, &DumpOptions::default())?;
            (0..50).map(|_| Ok(stream.next()?.bytes.to_vec())).collect()
        };
        let (ours, theirs) = (first(served.connected()?, 98)?, first(source.connect()?, 99)?);
        let differs = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
        if let Some(at) = differs {
            bail!("with {has:?} packet {at} is\n{}, not\n{}", hex::encode(&ours[at]), hex::encode(&theirs[at]));
        }
    }
    Ok(())
}

/// Two domains, and a server id of before a fail-over.
fn domains(source: &Server) -> Result<()> {
    source.execute(
        "CREATE DATABASE domains; CREATE TABLE domains.t (id INT PRIMARY KEY); SET SESSION gtid_domain_id = 7; INSERT INTO domains.t VALUES (1); \
         SET SESSION server_id = 4242; INSERT INTO domains.t VALUES (2); SET SESSION gtid_domain_id = 0; INSERT INTO domains.t VALUES (3); \
         SET SESSION server_id = DEFAULT; INSERT INTO domains.t VALUES (4)",
    )
}

/// MariaDB: START SLAVE UNTIL master_gtid_pos.
fn until(source: &Server, replica: &Server, served: &Served) -> Result<()> {
    replica.execute(statement(replica, "STOP"))?;
    source.execute("INSERT INTO domains.t VALUES (10); INSERT INTO domains.t VALUES (11)")?;
    let goal = gtids(source)?;
    source.execute(
        "INSERT INTO domains.t VALUES (12); SET SESSION gtid_domain_id = 7; INSERT INTO domains.t VALUES (13)",
    )?;
    replica.execute(&change(replica, Ask::new(served.port, By::Gtid)))?;
    replica.execute(&format!("START SLAVE UNTIL master_gtid_pos = '{goal}'"))?;
    // Before it has connected it does not count as running either.
    replica.wait_until("SELECT COUNT(*) FROM domains.t WHERE id = 11")?;
    replica.wait_until(
        "SELECT variable_value = 'OFF' FROM information_schema.global_status WHERE variable_name = 'Slave_running'",
    )?;
    ensure!(replica.scalar("SELECT GROUP_CONCAT(id ORDER BY id) FROM domains.t")? == "1,2,3,4,10,11");
    attach(replica, Ask::new(served.port, By::Gtid))?;
    assert_same(source, replica)
}

/// Accounts by the hashes that the servers keep; the password is "secret".
const ACCOUNTS: &str = r#"
[[account]]
user = "ed"
hash = "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY"
networks = ["127.0.0.0/8"]

[[account]]
user = "native"
hash = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"

[[account]]
user = "elsewhere"
password = "secret"
networks = ["10.0.0.0/8"]
"#;

/// The stock client with accounts of a file, also compressed.
fn accounts(source: &Server, served: &Served) -> Result<()> {
    let is_let_in = |user: &str, password: &str, more: &[&str]| -> Result<bool> {
        let tree = source.kind.client_tree();
        let output = servers_script(&["run", tree, if source.kind.is_mariadb() { "mariadb" } else { "mysql" }])
            .args(["--no-defaults", "--host=127.0.0.1", "--batch", "-e", "SELECT @@server_id; SHOW GLOBAL VARIABLES"])
            .args([format!("--port={}", served.port), format!("--user={user}"), format!("--password={password}")])
            .args(more)
            .output()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success() || text.contains("Access denied"), "{user}: {text}");
        Ok(output.status.success())
    };
    let user = if source.kind.is_mariadb() { "ed" } else { USER };
    let password = if source.kind.is_mariadb() { "secret" } else { PASSWORD };
    let compressed: &[&str] =
        if source.kind.is_mariadb() { &["--compress"] } else { &["--compression-algorithms=zstd"] };
    ensure!(is_let_in(user, password, &[])? && is_let_in(user, password, compressed)?);
    ensure!(!is_let_in(user, "wrong", &[])?);
    if source.kind.is_mariadb() {
        ensure!(is_let_in("native", "secret", &[])? && !is_let_in("native", "wrong", &[])?);
    }
    ensure!(!is_let_in("elsewhere", "secret", &[])?);
    Ok(())
}

/// Back and forth under load, with kills of Heddle and of the replica: no gap, no repeat.
fn moves(source: &Server, replica: &Server, served: Served, dir: &Path, seed: u64) -> Result<Served> {
    let mut random = StdRng::seed_from_u64(seed);
    let port = served.port;
    let done = AtomicBool::new(false);
    let served = thread::scope(|scope| -> Result<Served> {
        let load = scope.spawn(|| -> Result<()> {
            let mut next = seed + 1;
            while !done.load(Ordering::Relaxed) {
                Workload::new(next, size(source.kind), source.kind).run(source)?;
                next += 1;
            }
            Ok(())
        });
        let mut served = served;
        let moved = (|| -> Result<()> {
            for step in 0..MOVES {
                thread::sleep(Duration::from_millis(random.random_range(0..400)));
                let to = if step % 2 == 0 { source.port } else { port };
                attach(replica, Ask::new(to, By::Gtid)).with_context(|| format!("move {step}"))?;
                if step == MOVES / 2 {
                    replica.kill()?;
                    replica.restart(&[])?;
                    replica.execute(statement(replica, "START"))?;
                }
                if step % 5 == 3 {
                    let again = Served::start(source.port, &dir.join("unused"), free_port()?, &[])?;
                    std::mem::replace(&mut served, again).kill()?;
                    let again = Served::start(source.port, &dir.join("one"), port, &[])?;
                    std::mem::replace(&mut served, again).kill()?;
                }
            }
            Ok(())
        })();
        done.store(true, Ordering::Relaxed);
        load.join().expect("the load ends")?;
        moved.map(|()| served)
    })?;
    served.connected()?;
    attach(replica, Ask::new(port, By::Gtid))?;
    assert_same(source, replica)?;
    Ok(served)
}

/// Heddle's mirror of a Heddle: a replica attaches to the second, then goes back to the first.
fn chain(source: &Server, replica: &Server, served: &Served, dir: &Path, seed: u64) -> Result<()> {
    let second = Served::start(served.port, &dir.join("two"), free_port()?, &[])?;
    second.connected()?;
    attach(replica, Ask::new(second.port, By::Gtid))?;
    Workload::new(seed + 1000, size(source.kind), source.kind).run(source)?;
    assert_same(source, replica)?;
    let (mut first, mut other) = (served.connected()?, second.connected()?);
    let ends = if source.kind.is_mariadb() { "SELECT @@gtid_binlog_state" } else { "SELECT @@gtid_executed" };
    ensure!(first.scalar(ends)? == other.scalar(ends)?);
    attach(replica, Ask::new(served.port, By::Gtid))?;
    assert_same(source, replica)?;
    second.kill().map(drop)
}

/// By file and position, from where the source ends now.
fn by_position(source: &Server, replica: &Server, served: &Served, seed: u64) -> Result<()> {
    replica.execute(statement(replica, "STOP"))?;
    let (file, offset) = position(source)?;
    // Compressed on the way: a replica that allows nothing else attaches only if it is.
    let compression = |method: &str| -> Result<()> {
        replica.execute(statement(replica, "STOP"))?;
        replica.execute(&if source.kind.is_mariadb() {
            format!("SET GLOBAL slave_compressed_protocol = {}", u8::from(method != "uncompressed"))
        } else {
            format!("CHANGE REPLICATION SOURCE TO source_compression_algorithms='{method}'")
        })
    };
    compression("zlib")?;
    attach(replica, Ask::new(served.port, By::Position(&file, offset)))?;
    Workload::new(seed + 2000, size(source.kind), source.kind).run(source)?;
    wait_position(source, replica)?;
    assert_equal(source, replica)?;
    compression("zstd")?;
    attach(replica, Ask::new(served.port, By::Gtid))?;
    Workload::new(seed + 3000, size(source.kind), source.kind).run(source)?;
    assert_same(source, replica)?;
    compression("uncompressed")
}

/// Its answers are the source's.
fn what_it_says(source: &Server, served: &Served) -> Result<()> {
    let mut ours = served.connected()?;
    let mut theirs = source.connect()?;
    let mut same = |sql: &str| -> Result<()> {
        let (ours, theirs) = (ours.rows(sql)?, theirs.rows(sql)?);
        let cells = |rows: &[wire::Row]| -> Vec<Vec<Option<Vec<u8>>>> {
            rows.iter().map(|row| (0..row.len()).map(|at| row.get(at).map(<[u8]>::to_vec)).collect()).collect()
        };
        let names = |rows: &[wire::Row]| -> Vec<String> {
            rows.first().map(|row| row.columns().iter().map(|column| column.name.clone()).collect()).unwrap_or_default()
        };
        ensure!(cells(&ours) == cells(&theirs), "{sql}: {:?} is not {:?}", cells(&ours), cells(&theirs));
        ensure!(names(&ours) == names(&theirs), "{sql}: {:?} is not {:?}", names(&ours), names(&theirs));
        Ok(())
    };
    for sql in [
        "SELECT @@GLOBAL.SERVER_ID",
        "SELECT @@version, @@version_comment",
        "SELECT VERSION()",
        "SHOW VARIABLES LIKE 'SERVER_ID'",
        "SHOW GLOBAL VARIABLES LIKE 'binlog_checksum'",
        "SHOW VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format') OR Variable_name = 'server_id'",
        "select @@log_bin, @@global.binlog_format, @@sql_mode AS mode LIMIT 1",
        "SHOW BINARY LOGS",
        "/* a comment */ SELECT @@max_allowed_packet",
        "SET @a = 'x', @b = 7; ",
        "SELECT @A, @b, @nothing",
        "SET NAMES utf8mb4",
    ] {
        same(sql)?;
    }
    let of_vendor: &[&str] = if source.kind.is_mariadb() {
        &[
            "SHOW MASTER STATUS",
            "SELECT @@GLOBAL.gtid_domain_id",
            "SELECT @@gtid_binlog_pos",
            "SELECT @@gtid_binlog_state",
            "SET @mariadb_slave_capability=4",
            "SELECT binlog_gtid_pos('binlog.000001', 4)",
        ]
    } else {
        &[
            "SHOW BINARY LOG STATUS",
            "SELECT @@GLOBAL.GTID_MODE",
            "SELECT @@GLOBAL.SERVER_UUID",
            "SELECT @@gtid_executed, @@gtid_purged",
            "SHOW GLOBAL VARIABLES LIKE 'gtid\\_executed'",
            "SET @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum",
            "SELECT @source_binlog_checksum",
            "SELECT GTID_SUBSET('', @@gtid_executed)",
        ]
    };
    for sql in of_vendor {
        same(sql)?;
    }
    if source.kind.is_mariadb() {
        let (file, _) = position(source)?;
        let places = source.rows(&format!("SHOW BINLOG EVENTS IN '{file}' LIMIT 60"))?;
        for place in places.iter().filter_map(|row| row.get(1)) {
            same(&format!("SELECT binlog_gtid_pos('{file}', {place})"))?;
        }
    }
    for (sql, code) in [("SELECT @@no_such_variable", 1193), ("SELECT * FROM mysql.user", 1235), ("DROP TABLE t", 1235)]
    {
        let error = ours.execute(sql).err().with_context(|| sql.to_owned())?;
        ensure!(error.code() == Some(code), "{sql}: {error}");
    }
    let hosts = ours.rows(if source.kind.is_mariadb() { "SHOW SLAVE HOSTS" } else { "SHOW REPLICAS" })?;
    ensure!(hosts.len() == 1, "{hosts:?}");
    Ok(())
}

/// The servers' own tools fetch the files.
fn tools(source: &Server, served: &Served, dir: &Path) -> Result<()> {
    let (tree, tool) =
        if source.kind.is_mariadb() { ("mariadb-10.11", "mariadb-binlog") } else { ("mysql-9.7", "mysqlbinlog") };
    let logs = source.binary_logs()?;
    let first = logs.first().and_then(|log| log.file_name()).context("a log")?.to_string_lossy().into_owned();
    let raw = dir.join("raw");
    std::fs::create_dir(&raw)?;
    let mut command = servers_script(&["run", tree, tool]);
    command
        .args(["--no-defaults", "--read-from-remote-server", "--host=127.0.0.1", "--raw", "--to-last-log"])
        .args([format!("--port={}", served.port), format!("--user={USER}"), format!("--password={PASSWORD}")])
        .arg(format!("--result-file={}/", raw.display()))
        .args((!source.kind.is_mariadb()).then_some("--ssl-mode=DISABLED"))
        .arg(&first);
    let output = command.output()?;
    ensure!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
    for log in logs.iter().take(logs.len() - 1) {
        let name = log.file_name().context("a name")?;
        let (there, here) = (std::fs::read(log)?, std::fs::read(raw.join(name))?);
        let differs = there.iter().zip(&here).position(|(there, here)| there != here);
        ensure!(there == here, "{}: {} and {} bytes; {differs:?}", log.display(), there.len(), here.len());
    }
    Ok(())
}

/// Wrong passwords, and places that are not there.
fn refusals(source: &Server, replica: &Server, served: &Served) -> Result<()> {
    let error = served.connect("wrong").err().context("a wrong password")?;
    ensure!(error.code() == Some(1045), "{error}");
    let at = |file: &str, position: u64| DumpRequest::FilePosition {
        file: file.to_owned(),
        position,
        server_id: 77,
        flags: 0,
    };
    let (file, offset) = position(source)?;
    refused(served, &at("binlog.000000", 4), "Could not find first log file name in binary log index file")?;
    refused(served, &at("other.000001", 4), "Could not find first log file name in binary log index file")?;
    let mariadb = source.kind.is_mariadb();
    let future = if mariadb { "from impossible position" } else { "from position > file size" };
    refused(served, &at(&file, offset + 1000), future)?;
    refused(served, &at("binlog.000001", 1 << 30), future)?;
    refused(served, &at(&file, 5), "bogus data in log event")?;
    // The same replica comes again: the older stream ends.
    let stream_of = |uuid: &str| -> Result<BinlogStream> {
        let options = DumpOptions { replica_uuid: Some(uuid.to_owned()), ..DumpOptions::default() };
        Ok(served.connect(PASSWORD)?.binlog_dump_with(&at("binlog.000001", 4), &options)?)
    };
    let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    let mut older = stream_of(uuid)?;
    older.next()?;
    let mut newer = stream_of(uuid)?;
    newer.next()?;
    let error = loop {
        match older.next() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    ensure!(error.to_string().contains("with the same server_uuid/server_id"), "{error}");
    newer.next()?;
    // The replica's own words.
    attach(replica, Ask::new(served.port, By::Position("binlog.000001", 1 << 30)))?;
    let error = io_error(replica)?;
    ensure!(error.contains(future), "{error}");
    replica.execute(statement(replica, "STOP"))?;
    if mariadb {
        let from = |state: &str| DumpRequest::MariaDb {
            slave_gtid_state: state.to_owned(),
            strict: true,
            annotate: true,
            server_id: 77,
        };
        let last = gtids(source)?;
        let (domain, number) = last.split_once('-').context("a GTID")?;
        let server = number.split('-').next().unwrap_or_default();
        refused(served, &from(&format!("{domain}-{server}-99999999")), "which is not in the master's binlog")?;
        refused(served, &from(&format!("{domain}-4711-1")), "diverged")?;
    } else {
        let mut set: GtidSet = gtids(source)?.parse()?;
        let uuid = source.scalar("SELECT @@server_uuid")?;
        let uuid = binlog::gtids::mysql::parse_uuid(&uuid).context("a UUID")?;
        set.add(&uuid, "", 99_999_999);
        let more = DumpRequest::MySqlGtid { gtid_set_binary: set.to_binary(), server_id: 77 };
        refused(served, &more, "Replica has more GTIDs than the source has")?;
    }
    Ok(())
}

/// Clients that speak nonsense disturb nobody.
fn garbage(served: &Served, seed: u64) -> Result<()> {
    use std::io::{Read, Write};
    let mut random = StdRng::seed_from_u64(seed);
    let mut silent = Vec::new();
    for _ in 0..100 {
        let mut tcp = std::net::TcpStream::connect(("127.0.0.1", served.port))?;
        let mut bytes = vec![0; random.random_range(0..2000)];
        random.fill(&mut bytes[..]);
        let _ = tcp.write_all(&bytes);
        if random.random_bool(0.1) {
            silent.push(tcp);
            continue;
        }
        let _ = tcp.shutdown(std::net::Shutdown::Write);
        let _ = tcp.read_to_end(&mut Vec::new());
    }
    served.connected()?.ping()?;
    Ok(())
}

#[test]
fn mysql_replicas_attach() -> Result<()> {
    replicas_attach(MYSQL_9_7)
}

#[test]
fn mariadb_replicas_attach() -> Result<()> {
    replicas_attach(MARIADB_10_11)
}

/// Other versions, as `HEDDLE_SERVE_KINDS` names them, with a blank between: replicas of their own version, for tables and GTIDs.
#[test]
#[ignore = "long: scripts/nightly"]
fn replicas_of_other_versions_attach() -> Result<()> {
    let kinds = std::env::var("HEDDLE_SERVE_KINDS").unwrap_or_else(|_| "mariadb-11.4 mysql-8.0.15".to_owned());
    for kind in kinds.split_whitespace() {
        other_version(kind.parse()?).with_context(|| kind.to_owned())?;
    }
    Ok(())
}

fn other_version(kind: Kind) -> Result<()> {
    let seed: u64 = rand::random_range(0..1 << 31);
    eprintln!("{kind}, seed {seed}");
    let (source, replica) = Server::start_two((kind, &["--max-binlog-size=262144"]), (kind, &[]))?;
    let dir = tempfile::tempdir()?;
    let size = Size { unlogged: false, same_flavour: false, ..size(kind) };
    Workload::new(seed, size, kind).run(&source)?;
    let served = Served::start(source.port, dir.path(), free_port()?, &[])?;
    served.connected()?;
    // The port is all that tells a server from Heddle.
    let by_heddle = |by_gtid: bool| -> Result<()> {
        replica.execute(statement(&replica, "STOP"))?;
        e2e::native::configure_by(&source, &replica, by_gtid)?;
        e2e::native::configure_port(&replica, served.port)?;
        replica.execute(statement(&replica, "START"))
    };
    e2e::native::configure(&source, &replica)?;
    e2e::native::configure_port(&replica, served.port)?;
    replica.execute(statement(&replica, "START"))?;
    wait_caught_up(&source, &replica)?;
    assert_equal(&source, &replica)?;
    by_heddle(false)?;
    Workload::new(seed + 1, size, kind).run(&source)?;
    wait_position(&source, &replica)?;
    assert_equal(&source, &replica)?;
    by_heddle(true)?;
    Workload::new(seed + 2, size, kind).run(&source)?;
    wait_caught_up(&source, &replica)?;
    assert_equal(&source, &replica)?;
    served.kill().map(drop)
}
