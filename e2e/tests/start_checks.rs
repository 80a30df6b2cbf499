//! What keeps a run from its start: `--dry-run` and the run say the same, and a start that does not fit the target is refused.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Heddle, Run, heddle};
use e2e::native;
use e2e::pair::Pair;
use e2e::refusal::{TABLE, refused_with_remedy};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server, servers_script};
use rustix::process::{Pid, Signal, kill_process};

/// One command, asked and run.
struct Situation<'a> {
    pair: &'a Pair,
    from: String,
    to: String,
}

impl<'a> Situation<'a> {
    fn new(pair: &'a Pair) -> Self {
        Self { pair, from: pair.from.clone(), to: pair.target.url() }
    }

    fn heddle(&self, more: &[&str]) -> Result<Run> {
        let own = ["replicate", "--from", &self.from, "--to", &self.to, "--relay-dir", &self.pair.relay, "--until-end"];
        heddle(&[&own, more].concat())
    }

    fn both(&self, more: &[&str]) -> Result<(Run, Run)> {
        let dry = self.heddle(&[more, &["--dry-run"]].concat())?;
        Ok((dry, self.heddle(more)?))
    }

    /// Both find nothing in the way.
    fn runs(&self, more: &[&str]) -> Result<()> {
        let (dry, run) = self.both(more)?;
        ensure!(dry.status.success() && run.status.success(), "both should succeed:\n{dry}\n{run}");
        Ok(())
    }

    /// Both refuse, for this reason.
    fn is_refused(&self, more: &[&str], words: &str) -> Result<()> {
        let (dry, run) = self.both(more)?;
        ensure!(!dry.status.success() && !run.status.success(), "'{words}': both should fail:\n{dry}\n{run}");
        let problems: Vec<&str> = dry.stdout.lines().filter(|line| line.starts_with("PROBLEM")).collect();
        ensure!(problems.iter().any(|line| line.contains(words)), "the dry run does not say '{words}':\n{dry}\n{run}");
        run.failed_with(words)
    }
}

/// Every situation in which a run is refused at its start.
fn dry_run_and_run_agree(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    let (source, target) = (&pair.source, &pair.target);
    source.execute(TABLE)?;
    source.execute("INSERT INTO d.t VALUES (1, 'a'), (2, 'b')")?;
    let (file, offset) = native::position(source)?;
    let middle = format!("{file}:{offset}");
    let here = Situation::new(&pair);
    each_privilege(&pair)?;
    here.runs(&[])?;
    here.runs(&[])?;

    here.is_refused(&["--channel", "new"], "has brought the target up to")?;
    here.runs(&["--start", &middle])?;
    here.is_refused(&["--channel", "new", "--start", "nonsense.000001:4"], "no log of that name")?;
    here.is_refused(&["--until-position", "nonsense.000001:4"], "--until-position")?;
    here.is_refused(&["--policy", "serial", "--commit-order", "per-lane"], "per-lane")?;
    let other_kind = if kind.is_mariadb() { "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5" } else { "0-1-5" };
    here.is_refused(&["--until-gtid", other_kind], " GTID, the source is ")?;
    let to_itself = Situation { to: source.url(), ..Situation::new(&pair) };
    to_itself.is_refused(&[], "the same server")?;

    let conversions = if kind.is_mariadb() { "slave_type_conversions" } else { "replica_type_conversions" };
    target.execute(&format!("SET GLOBAL {conversions} = 'ALL_LOSSY'"))?;
    here.is_refused(&[], conversions)?;
    target.execute(&format!("SET GLOBAL {conversions} = ''"))?;

    let apply = if kind.is_mariadb() {
        "BINLOG REPLAY, BINLOG ADMIN, PROCESS"
    } else {
        "BINLOG_ADMIN, SESSION_VARIABLES_ADMIN"
    };
    for account in ["plain@'%'", "plain@localhost"] {
        target.execute(&format!(
            "SET sql_log_bin = 0; CREATE USER {account} IDENTIFIED BY '{PASSWORD}'; GRANT {apply}, SELECT ON *.* TO {account}"
        ))?;
    }
    let plain = Situation { to: target.url().replace("heddle@", "plain@"), ..Situation::new(&pair) };
    let (dry, run) = plain.both(&[])?;
    ensure!(!dry.status.success() && !run.status.success(), "no privilege on heddle.*:\n{dry}\n{run}");
    ensure!(dry.stdout.contains("PROBLEM target: GRANT INSERT, UPDATE, DELETE ON heddle.*"), "{dry}");
    for account in ["plain@'%'", "plain@localhost"] {
        target
            .execute(&format!("SET sql_log_bin = 0; GRANT SELECT, INSERT, UPDATE, DELETE ON heddle.* TO {account}"))?;
    }
    plain.runs(&[])?;
    target.execute("SET GLOBAL read_only = 1")?;
    plain.is_refused(&[], "read-only")?;
    here.runs(&[])?;
    if !kind.is_mariadb() {
        target.execute("SET GLOBAL super_read_only = 1")?;
        here.is_refused(&[], "super-read-only")?;
        target.execute("SET GLOBAL super_read_only = 0")?;
    }
    target.execute("SET GLOBAL read_only = 0")?;

    let running = pair.begin(&[])?;
    target.wait_until("SELECT IS_USED_LOCK('heddle.default') IS NOT NULL")?;
    here.is_refused(&[], "is in use")?;
    running.terminate()?;
    running.wait()?.successful()?;

    // A table of the rows that come next, also for an account that sees none of the source's tables.
    source.execute("CREATE TABLE d.u (id INT PRIMARY KEY); INSERT INTO d.u VALUES (1)")?;
    here.runs(&[])?;
    target.execute("DROP TABLE d.u")?;
    source.execute("CREATE TABLE d.w (id INT PRIMARY KEY); INSERT INTO d.w VALUES (1); INSERT INTO d.u VALUES (2)")?;
    let reads = if kind.is_mariadb() { "BINLOG MONITOR" } else { "REPLICATION CLIENT" };
    for account in ["plain@'%'", "plain@localhost"] {
        source.execute(&format!(
            "SET sql_log_bin = 0; CREATE USER {account} IDENTIFIED BY '{PASSWORD}'; GRANT REPLICATION SLAVE, {reads} ON *.* TO {account}"
        ))?;
    }
    let blind = Situation { from: pair.from.replace("heddle@", "plain@"), ..Situation::new(&pair) };
    let (dry, run) = blind.both(&[])?;
    ensure!(dry.stdout.contains("cannot see the source's tables") && !dry.stdout.contains("0 tables"), "{dry}");
    ensure!(dry.stdout.contains("PROBLEM the target has no table d.u") && !dry.status.success(), "{dry}");
    run.failed_with("d.u")?;
    target.execute("CREATE TABLE d.u (id INT PRIMARY KEY); INSERT INTO d.u VALUES (1)")?;
    blind.runs(&[])?;

    // The logs go, and nothing in them is left to apply; then there is.
    let purge = || -> Result<()> {
        source.rotate()?;
        source.rotate()?;
        source.purge_all_but_last()
    };
    purge()?;
    here.runs(&[])?;
    source.execute("INSERT INTO d.t VALUES (3, 'c')")?;
    purge()?;
    std::fs::remove_dir_all(&pair.relay)?;
    here.is_refused(&[], "purged")?;
    here.is_refused(&["--channel", "new"], "purged")?;
    // With nothing on the target the log's begin is missing all the same.
    target.execute("DROP DATABASE d; DROP DATABASE heddle")?;
    here.is_refused(&[], "purged the beginning")
}

/// The documented account for rows, less one privilege each time: the dry run and the run name that one, and the run leaves nothing on the target.
fn each_privilege(pair: &Pair) -> Result<()> {
    let target = &pair.target;
    let everywhere: &[&str] = if target.kind.is_mariadb() {
        &["BINLOG REPLAY", "SELECT"]
    } else {
        &["BINLOG_ADMIN", "SESSION_VARIABLES_ADMIN", "SELECT"]
    };
    let all: Vec<(&str, &str)> = everywhere
        .iter()
        .map(|privilege| (*privilege, "*.*"))
        .chain(["INSERT", "UPDATE", "DELETE", "CREATE"].map(|privilege| (privilege, "heddle.*")))
        .collect();
    let less = Situation { to: target.url().replace("heddle@", "less@"), ..Situation::new(pair) };
    let account = |privileges: &[(&str, &str)]| -> Result<()> {
        for account in ["less@'%'", "less@localhost"] {
            target.execute(&format!(
                "SET sql_log_bin = 0; DROP USER IF EXISTS {account}; CREATE USER {account} IDENTIFIED BY '{PASSWORD}'"
            ))?;
            for (privilege, on) in privileges {
                target.execute(&format!("SET sql_log_bin = 0; GRANT {privilege} ON {on} TO {account}"))?;
            }
        }
        Ok(())
    };
    for missing in &all {
        let others: Vec<(&str, &str)> = all.iter().filter(|privilege| *privilege != missing).copied().collect();
        account(&others)?;
        let (privilege, on) = *missing;
        let on = if privilege == "SELECT" { "heddle.*" } else { on };
        less.is_refused(&["--rows", "binlog"], &format!("target: GRANT {privilege} ON {on} TO 'less'@"))?;
        ensure!(
            target.scalar("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'heddle'")? == "0",
            "{missing:?}"
        );
    }
    account(&[])?;
    let listed = everywhere.iter().filter(|privilege| **privilege != "SELECT").copied().collect::<Vec<_>>().join(", ");
    less.is_refused(&["--rows", "binlog"], &format!("target: GRANT {listed} ON *.* TO 'less'@"))?;
    less.is_refused(&["--rows", "binlog"], "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON heddle.* TO 'less'@")?;
    if !target.kind.is_mariadb() {
        // It may execute BINLOG statements, and the server then says `Unknown error` of every row.
        account(&[&all[2..], &[("REPLICATION_APPLIER", "*.*")]].concat())?;
        less.is_refused(&["--rows", "binlog"], "GRANT BINLOG_ADMIN ON *.*")?;
    }
    Ok(())
}

/// Rows on the target, and no start; a start, and no rows; a second try over what the first one has written.
fn wrong_starts(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    let (source, target) = (&pair.source, &pair.target);
    let files = Situation { from: source.binlog_index().display().to_string(), ..Situation::new(&pair) };
    source.execute(TABLE)?;
    source.execute("INSERT INTO d.t VALUES (1, 'a'), (2, 'b')")?;
    let (file, offset) = native::position(source)?;
    let middle = format!("{file}:{offset}");
    source.execute("UPDATE d.t SET v = 'x' WHERE id = 1")?;
    source.execute("INSERT INTO d.t VALUES (3, 'c')")?;

    // The schema is there, and its rows are not.
    target.execute(&format!("SET sql_log_bin = 0; {TABLE}"))?;
    Situation::new(&pair).is_refused(&["--start", &middle], "no table of the target has a row")?;
    files.is_refused(&["--start", &middle], "no table of the target has a row")?;
    // A copy, and nobody says from where, behind many tables without rows. Rows of other tables are no copy.
    let empty: String = (0..210).map(|at| format!("CREATE TABLE a_many.t{at} (id INT PRIMARY KEY);")).collect();
    target.execute(&format!("SET sql_log_bin = 0; CREATE DATABASE a_many; {empty}"))?;
    target.execute("SET sql_log_bin = 0; CREATE DATABASE other; CREATE TABLE other.t (id INT PRIMARY KEY); INSERT INTO other.t VALUES (1)")?;
    target.execute("SET sql_log_bin = 0; INSERT INTO d.t VALUES (1, 'y'), (2, 'b')")?;
    Situation::new(&pair).is_refused(&[], "the target has rows already (d.t)")?;
    files.is_refused(&[], "the target has rows already")?;
    target.execute("SET sql_log_bin = 0; DROP DATABASE a_many")?;

    // The copy is not of that place: the row is not what the source changed.
    target.execute("SET sql_log_bin = 0; DELETE FROM d.t WHERE id = 1")?;
    let wrong = Situation::new(&pair).heddle(&["--start", &middle])?;
    refused_with_remedy(
        &wrong,
        &["d.t", "probably a wrong start: this is only transaction 1 of the channel", &middle, "bring the row back"],
    )?;

    // Restored, and at the right place.
    target.execute("SET sql_log_bin = 0; INSERT INTO d.t VALUES (1, 'a')")?;
    files.runs(&["--channel", "try1", "--start", &middle])?;
    files.is_refused(&["--channel", "try2", "--start", &middle], "has brought the target up to")?;
    let insisted = files.heddle(&["--channel", "try2", "--start", &middle, "--start-anyway"])?;
    refused_with_remedy(&insisted, &["probably a wrong start"])?;
    // Behind it a new channel may go on.
    let (file, offset) = native::position(source)?;
    source.execute("INSERT INTO d.t VALUES (4, 'd')")?;
    files.runs(&["--channel", "next", "--start", &format!("{file}:{offset}")])?;
    target.execute("SET sql_log_bin = 0; DROP DATABASE other")?;
    pair.assert_equal()
}

/// The copy says where it was made.
fn start_from_a_dump(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    let (source, target) = (&pair.source, &pair.target);
    source.execute(TABLE)?;
    source.execute("INSERT INTO d.t VALUES (1, 'a'), (2, 'b')")?;
    let (name, program, option) = if kind.is_mariadb() {
        ("mariadb-10.11", "mariadb-dump", "--master-data=2")
    } else {
        ("mysql-9.7", "mysqldump", "--source-data=2")
    };
    let dump = servers_script(&["run", name, program])
        .args(["--no-defaults", "--single-transaction", option, "--user=heddle", "--databases", "d"])
        .arg(format!("--socket={}", source.socket().display()))
        .env("MYSQL_PWD", PASSWORD)
        .output()?;
    ensure!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let file = target.dir().join("dump.sql").display().to_string();
    std::fs::write(&file, &dump.stdout)?;
    source.execute("UPDATE d.t SET v = 'x' WHERE id = 1; INSERT INTO d.t VALUES (3, 'c')")?;
    target.run_script(&dump.stdout)?;
    let live = Situation::new(&pair);
    let place = gtids(source)?;
    live.runs(&["--start-from", &file])?;
    pair.assert_same_rows()?;
    live.is_refused(&["--channel", "c", "--start-from", "/nowhere/dump.sql"], "--start-from /nowhere/dump.sql")?;
    given_again(&live, &file, &place)?;
    as_a_service(&pair, &file)
}

/// What a start names that a server has executed.
fn gtids(server: &Server) -> Result<String> {
    let variable = if server.kind.is_mariadb() { "gtid_binlog_pos" } else { "gtid_executed" };
    Ok(server.scalar(&format!("SELECT @@global.{variable}"))?.replace('\n', ""))
}

/// A start that the channel has passed is said and not used. One that it has not passed is refused.
fn given_again(live: &Situation<'_>, file: &str, place: &str) -> Result<()> {
    let (source, target) = (&live.pair.source, &live.pair.target);
    live.runs(&["--start-from", file])?;
    for start in [["--start", "binlog.000001:4"], ["--start-gtid", place], ["--start-from", file]] {
        source.execute("UPDATE d.t SET v = CONCAT(v, 'y') WHERE id = 2")?;
        let (dry, run) = live.both(&start)?;
        ensure!(dry.status.success() && run.status.success(), "{start:?}:\n{dry}\n{run}");
        ensure!(run.stderr.matches("is not used: the channel has passed it").count() == 1, "{start:?}: {run}");
    }
    let (dry, run) = live.both(&["--start-from", "/nowhere/dump.sql"])?;
    ensure!(dry.status.success() && run.status.success(), "{dry}\n{run}");
    ensure!(run.stderr.contains("The channel exists and needs no start"), "{run}");
    live.pair.assert_same_rows()?;

    source.execute("UPDATE d.t SET v = 'z' WHERE id = 2")?;
    let (name, offset) = native::position(source)?;
    live.is_refused(&["--start", &format!("{name}:{offset}")], "lies behind that")?;
    live.is_refused(&["--start", "other.000001:4"], "a place in another log")?;
    live.is_refused(&["--start-gtid", &gtids(source)?], "has not applied")?;
    let strange = if source.kind.is_mariadb() { "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5" } else { "0-1-5" };
    live.is_refused(&["--start-gtid", strange], "of another kind")?;
    ensure!(target.scalar("SELECT v FROM d.t WHERE id = 2")? != "z", "a refused run has applied something");
    live.runs(&[])
}

/// A configuration file keeps its start: killed and restarted, the channel goes on.
fn as_a_service(pair: &Pair, file: &str) -> Result<()> {
    let (source, target) = (&pair.source, &pair.target);
    let config = target.dir().join("service.toml").display().to_string();
    let keys = [
        ("channel", "default"),
        ("from", &pair.from),
        ("to", &target.url()),
        ("relay-dir", &pair.relay),
        ("start-from", file),
    ];
    let text: String = keys.iter().map(|(key, value)| format!("{key} = '{value}'\n")).collect();
    std::fs::write(&config, text)?;
    let applied = |id: u32| -> Result<()> {
        source.execute(&format!("INSERT INTO d.t VALUES ({id}, 's')"))?;
        target.wait_until(&format!("SELECT COUNT(*) = 1 FROM d.t WHERE id = {id}"))
    };
    for round in 0..2 {
        let service = Heddle::start(&["run", "--restart-seconds", "1", &config])?;
        applied(100 + 2 * round)?;
        let owner =
            target.scalar("SELECT SUBSTRING_INDEX(owner, '@', 1) FROM heddle.progress WHERE channel = 'default'")?;
        let process = owner.parse().ok().and_then(Pid::from_raw).context("the channel's process")?;
        kill_process(process, Signal::KILL)?;
        applied(101 + 2 * round)?;
        service.terminate()?;
        let ended = service.wait()?;
        ensure!(ended.status.code() == Some(0), "{ended}");
        let said = "is not used: the channel has passed it";
        ensure!(ended.stderr.matches(said).count() == 2, "once for each process: {ended}");
    }
    let alone = Heddle::start(&["replicate", "--config", &config])?;
    applied(110)?;
    alone.kill()?;
    alone.wait()?;
    let alone = Heddle::start(&["replicate", "--config", &config])?;
    applied(111)?;
    alone.terminate()?;
    alone.wait()?.successful()?;
    pair.assert_same_rows()
}

e2e::tests! {
    mariadb_dry_run_and_run_agree: dry_run_and_run_agree(MARIADB_10_11);
    mysql_dry_run_and_run_agree: dry_run_and_run_agree(MYSQL_9_7);
    mariadb_wrong_starts: wrong_starts(MARIADB_10_11);
    mysql_wrong_starts: wrong_starts(MYSQL_9_7);
    mariadb_start_from_a_dump: start_from_a_dump(MARIADB_10_11);
    mysql_start_from_a_dump: start_from_a_dump(MYSQL_9_7);
}
