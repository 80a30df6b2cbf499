//! The golden logs, replicated: a server of their version gets them as its own binary logs and sends them to its own replica, and Heddle
//! replicates them from the file, in groups, and from that server, without. Replica and target must then hold the same; and the target's own
//! binary log has whole rows where the source's has.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::checksum::assert_equal;
use e2e::heddle::replicate;
use e2e::logged::BeforeImages;
use e2e::native;
use e2e::server::Server;
use std::fs;
use std::path::{Path, PathBuf};

/// The name that each of the files had: what comes after it says so.
const FILE: &str = "binlog.000002";
/// The head of a log file.
const FIRST_EVENT: u64 = 4;

struct Case {
    name: String,
    log: PathBuf,
    /// Of the server that has made it, those that its replicas must have, too.
    options: Vec<String>,
}

/// Those of one server that are named, or all; with the same options one after the other.
fn cases(server: &str, names: &[&str]) -> Result<Vec<Case>> {
    let golden = e2e::repository().join("crates/binlog/tests/golden");
    let mut cases = Vec::new();
    for entry in fs::read_dir(golden.join(server)).context("the golden files")? {
        let log = entry?.path();
        let name = log.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let wanted = names.is_empty() || names.contains(&name.as_str());
        if !wanted || log.extension().is_none_or(|extension| extension != "binlog") {
            continue;
        }
        let family = server.split('-').next().unwrap_or_default();
        let script = fs::read_to_string(golden.join("make").join(family).join(format!("{name}.sql")))?;
        let options = script.lines().filter_map(|line| line.strip_prefix("-- option: "));
        let options = options.filter(|option| option.contains("gtid")).map(str::to_owned).collect();
        cases.push(Case { name, log, options });
    }
    cases.sort_by(|a, b| (&a.options, &a.name).cmp(&(&b.options, &b.name)));
    ensure!(!cases.is_empty() && cases.len() >= names.len(), "golden files of {server} are missing");
    Ok(cases)
}

/// The server's only log is this one; it goes on with the next.
fn plant(source: &Server, log: &Path, options: &[&str]) -> Result<()> {
    source.stop()?;
    for entry in fs::read_dir(source.data())? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("binlog.")) {
            fs::remove_file(path)?;
        }
    }
    fs::copy(log, source.data().join(FILE))?;
    fs::write(source.binlog_index(), format!("./{FILE}\n"))?;
    source.restart(options)
}

/// What every file begins after.
fn anew(server: &Server) -> Result<()> {
    server.execute("DROP DATABASE IF EXISTS golden; CREATE DATABASE golden")
}

fn stop_replica(replica: &Server) -> Result<()> {
    let reset = native::statement(replica, "STOP").replace("STOP", "RESET");
    replica.execute(&format!("{}; {reset} ALL", native::statement(replica, "STOP")))
}

/// Heddle's target then holds what the native replica holds.
fn heddle(from: &[&str], replica: &Server, target: &Server, channel: &str) -> Result<()> {
    let relay = target.dir().join(channel).display().to_string();
    let mut more = vec!["--channel", channel, "--until-end", "--relay-dir", &relay];
    more.extend(&from[1..]);
    let run = replicate(from[0], &target.url(), &more)?;
    ensure!(run.number("transactions")? > 0, "{run}");
    assert_equal(replica, target).with_context(|| run.to_string())
}

fn check(server: &str, names: &[&str]) -> Result<()> {
    let kind = server.parse()?;
    let options = ["--default-time-zone=+00:00", "--local-infile=ON"];
    let (source, replica) = Server::start_two((kind, &options), (kind, &options))?;
    let target = Server::start(kind, &options)?;
    let mut in_force: Vec<String> = Vec::new();
    for case in cases(server, names)? {
        let options: Vec<&str> = case.options.iter().map(String::as_str).collect();
        if case.options != in_force {
            replica.restart(&options)?;
            target.restart(&options)?;
            in_force.clone_from(&case.options);
        }
        one(&case, &options, [&source, &replica, &target]).with_context(|| format!("{server}/{}", case.name))?;
    }
    Ok(())
}

fn one(case: &Case, options: &[&str], [source, replica, target]: [&Server; 3]) -> Result<()> {
    plant(source, &case.log, options)?;
    anew(replica)?;
    native::configure_at(source, replica, FILE, FIRST_EVENT)?;
    native::start_native(replica)?;
    native::wait_position(source, replica)?;
    stop_replica(replica)?;
    let tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'golden'";
    ensure!(replica.scalar(tables)? != "0", "the replica has made no table");
    let planted = source.data().join(FILE).display().to_string();
    let start = format!("{FILE}:{FIRST_EVENT}");
    for (way, from) in
        [("files", vec![planted.as_str()]), ("live", vec![&source.url(), "--start", &start, "--grouping", "off"])]
    {
        anew(target)?;
        let logs_before = target.binlogs()?.len();
        target.execute("FLUSH BINARY LOGS")?;
        heddle(&from, replica, target, &format!("{}-{way}", case.name)).context(way)?;
        logged_as(&case.log, target.binlogs()?.split_off(logs_before), way == "files").context(way)?;
    }
    Ok(())
}

/// Replicas of the target, and who else reads its log, miss nothing that the source's log has. Of a group its log has the net effect: a row that is
/// inserted and changed there is inserted.
fn logged_as(source: &Path, target: Vec<PathBuf>, is_grouped: bool) -> Result<()> {
    let (wanted, found) = (BeforeImages::read(vec![source.to_owned()])?, BeforeImages::read(target)?);
    if wanted.partial.is_empty() {
        ensure!(found.partial.is_empty(), "columns are missing in the target's log: {:?}", found.partial);
        let same = found.whole.is_empty() == wanted.whole.is_empty();
        ensure!(same || is_grouped, "the target's log has not the source's changes");
    }
    Ok(())
}

fn test(server: &str, names: &[&str]) {
    check(server, names).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn mariadb() {
    test("mariadb-10.11", &["mixed", "tables"]);
}

#[test]
fn mysql() {
    test("mysql-9.7", &["mixed", "tables"]);
}

macro_rules! all_of {
    ($($name:ident: $server:literal,)*) => {
        $(
            #[test]
            #[ignore = "minutes for all versions: scripts/nightly runs it"]
            fn $name() {
                test($server, &[]);
            }
        )*
    };
}

all_of! {
    mysql_5_6: "mysql-5.6.14",
    mysql_5_7: "mysql-5.7.22",
    mysql_8_0: "mysql-8.0.15",
    mysql_8_0_46: "mysql-8.0.46",
    mysql_8_4: "mysql-8.4",
    mysql_9_7: "mysql-9.7",
    mariadb_10_1: "mariadb-10.1",
    mariadb_10_2: "mariadb-10.2",
    mariadb_10_6: "mariadb-10.6",
    mariadb_10_11: "mariadb-10.11",
    mariadb_11_4: "mariadb-11.4",
    mariadb_11_8: "mariadb-11.8",
}
