//! `replicate --copy`: accounts, roles and their grants; what the target has already; statements about accounts while the copy runs; copies that are
//! interrupted; what the other vendor's server does not take.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::heddle::Run;
use e2e::native::gtids;
use e2e::pair::Pair;
use e2e::seed;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const GTIDS: [&str; 2] = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];
const COPY: &str = "--copy";

const OBJECTS: &str = "CREATE DATABASE d COLLATE utf8mb4_general_ci; CREATE DATABASE `a_b%c` COLLATE utf8mb4_general_ci; CREATE TABLE d.t (id INT PRIMARY KEY, a INT, b INT); INSERT INTO d.t VALUES (1, 2, 3);
    CREATE PROCEDURE d.p() SELECT 1; CREATE FUNCTION d.f() RETURNS INT DETERMINISTIC RETURN 1; CREATE VIEW d.v AS SELECT id FROM d.t; ";

const OF_APP: &str = "CREATE DEFINER = 'app'@'%' PROCEDURE d.of_app() SELECT 1; ";

/// What both vendors have.
const ACCOUNTS: &str = "CREATE USER 'app'@'%' IDENTIFIED BY 'secret', 'netmask'@'10.0.0.0/255.255.255.0' IDENTIFIED BY 'secret', ''@'host1',
        'there'@'%' IDENTIFIED BY 'secret', 'quo`te''d'@'h%' IDENTIFIED BY 'secret', 'none'@'%';
    CREATE USER 'locked'@'%' IDENTIFIED BY 'secret' ACCOUNT LOCK;
    CREATE USER 'limits'@'%' IDENTIFIED BY 'secret' REQUIRE SSL WITH MAX_QUERIES_PER_HOUR 5 MAX_USER_CONNECTIONS 3 PASSWORD EXPIRE INTERVAL 30 DAY;
    CREATE USER 'subject'@'%' IDENTIFIED BY 'secret' REQUIRE SUBJECT '/CN=a' AND ISSUER '/CN=b';
    CREATE USER 'expired'@'%' IDENTIFIED BY 'secret' PASSWORD EXPIRE; CREATE USER 'never'@'%' IDENTIFIED BY 'secret' PASSWORD EXPIRE NEVER;
    GRANT PROCESS, RELOAD, SELECT ON *.* TO 'app'@'%';
    GRANT ALL ON `a\\_b\\%c`.* TO 'app'@'%'; GRANT SELECT ON `x%`.* TO 'app'@'%'; GRANT SELECT, INSERT ON d.* TO 'there'@'%', 'quo`te''d'@'h%';
    GRANT SELECT (a, b), INSERT (a), UPDATE ON d.t TO 'app'@'%'; GRANT SELECT ON d.v TO 'app'@'%', 'netmask'@'10.0.0.0/255.255.255.0';
    GRANT EXECUTE ON PROCEDURE d.p TO 'app'@'%'; GRANT EXECUTE, ALTER ROUTINE ON FUNCTION d.f TO 'app'@'%' WITH GRANT OPTION;
    GRANT ALL ON *.* TO 'limits'@'%'; GRANT SELECT ON *.* TO 'never'@'%' WITH GRANT OPTION; ";

const OF_MYSQL_8: &str = "CREATE ROLE 'reader', 'writer'@'localhost', 'admin', 'of_role'; GRANT SELECT ON d.* TO 'reader'; GRANT INSERT, UPDATE ON d.* TO 'writer'@'localhost';
    GRANT 'reader' TO 'admin', 'app'@'%'; GRANT 'writer'@'localhost' TO 'app'@'%'; GRANT 'admin' TO 'app'@'%' WITH ADMIN OPTION; SET DEFAULT ROLE 'reader', 'admin' TO 'app'@'%';
    GRANT BACKUP_ADMIN ON *.* TO 'app'@'%' WITH GRANT OPTION; GRANT XA_RECOVER_ADMIN ON *.* TO 'app'@'%';
    CREATE USER 'history'@'%' IDENTIFIED BY 'secret' PASSWORD HISTORY 5 PASSWORD REUSE INTERVAL 10 DAY PASSWORD REQUIRE CURRENT FAILED_LOGIN_ATTEMPTS 3 PASSWORD_LOCK_TIME 2
        COMMENT 'it''s'; CREATE USER 'attribute'@'%' IDENTIFIED BY 'secret' ATTRIBUTE '{\"k\": \"v\\'\"}';
    CREATE USER 'sha256'@'%' IDENTIFIED WITH sha256_password BY 'secret';
    CREATE USER 'second'@'%' IDENTIFIED BY 'old'; ALTER USER 'second'@'%' IDENTIFIED BY 'secret' RETAIN CURRENT PASSWORD; ";

/// Schemas that are taken out of privileges on all.
const REVOKES: &str = "SET GLOBAL partial_revokes = ON; GRANT SELECT, INSERT ON *.* TO 'partly'@'%'; REVOKE INSERT ON d.* FROM 'partly'@'%'; GRANT UPDATE ON `a_b%c`.* TO 'partly'@'%';";

const OF_MARIADB: &str = "CREATE ROLE reader; CREATE ROLE writer; CREATE ROLE admin WITH ADMIN reader; GRANT SELECT ON d.* TO reader; GRANT INSERT, UPDATE ON d.* TO writer;
    GRANT writer TO reader; GRANT reader TO 'app'@'%'; GRANT admin TO 'app'@'%' WITH ADMIN OPTION; SET DEFAULT ROLE reader FOR 'app'@'%';
    CREATE USER 'several'@'%' IDENTIFIED VIA unix_socket OR mysql_native_password USING PASSWORD('secret');
    CREATE USER 'invalid'@'%' IDENTIFIED VIA mysql_native_password USING 'invalid';
    CREATE USER 'slow'@'%' IDENTIFIED BY 'secret' WITH MAX_STATEMENT_TIME 1.5; GRANT SELECT ON d.* TO PUBLIC; GRANT reader TO PUBLIC; ";

fn options(kind: Kind) -> &'static [&'static str] {
    if kind.is_mariadb() { &[] } else { &GTIDS }
}

/// Heddle's account may hand on proxies only if root lets it.
fn as_root(server: &Server, sql: &str) -> Result<()> {
    let mut client = server.client(&["--user=root", "--execute", sql]);
    let output = client.env("MYSQL_PWD", "").output().context("the client")?;
    ensure!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn let_proxies(server: &Server) -> Result<()> {
    let all = if server.kind.is_mariadb() { "''@'%'" } else { "''@''" };
    ["127.0.0.1", "localhost"].iter().try_for_each(|host| {
        as_root(server, &format!("SET sql_log_bin = 0; GRANT PROXY ON {all} TO 'heddle'@'{host}' WITH GRANT OPTION"))
    })
}

/// Accounts of the source, roles among them, by the names in statements.
fn names(server: &Server) -> Result<Vec<String>> {
    let is_role = if server.kind.is_mariadb() { "is_role = 'Y'" } else { "FALSE" };
    let rows = server.rows(&format!(
        "SELECT IF({is_role}, IF(User = 'PUBLIC', 'PUBLIC', CONCAT('`', User, '`')), CONCAT(QUOTE(User), '@', QUOTE(Host))) FROM mysql.user
         WHERE User NOT IN ('heddle', 'root', 'mysql.sys', 'mysql.session', 'mysql.infoschema', 'mariadb.sys') ORDER BY 1"
    ))?;
    Ok(rows.into_iter().flatten().collect())
}

/// All that a server says of an account.
fn described(server: &Server, name: &str) -> Result<String> {
    let mut text = String::new();
    if name.contains('@') {
        let hex = if server.kind.is_mysql_since(&[8]) { "SET print_identified_with_as_hex = ON; " } else { "" };
        text = server.scalar(&format!("{hex}SHOW CREATE USER {name}"))?;
    }
    let grants = server.scalar(&format!("SHOW GRANTS FOR {name}"))?;
    let mut grants: Vec<&str> = grants.lines().collect();
    grants.sort_unstable();
    Ok(format!("{text}\n{}", grants.join("\n")))
}

fn assert_same_accounts(pair: &Pair, except: &[&str]) -> Result<()> {
    let of_source = names(&pair.source)?;
    ensure!(of_source == names(&pair.target)?, "{of_source:?}\n{:?}", names(&pair.target)?);
    for name in of_source.iter().filter(|name| !except.contains(&name.as_str())) {
        let (source, target) = (described(&pair.source, name)?, described(&pair.target, name)?);
        ensure!(source == target, "{name}:\n{source}\n---\n{target}");
    }
    Ok(())
}

/// The accounts that both have differ.
fn to_the_end(pair: &Pair, more: &[&str]) -> Result<Run> {
    let run = pair.run_to_the_end(more)?;
    pair.assert_same_rows()?;
    Ok(run)
}

fn log_in(server: &Server, user: &str) -> Result<String> {
    server
        .run_script_as(Some(user), b"SELECT CURRENT_USER()", e2e::client::Errors::Fatal)
        .map(|text| text.trim().to_owned())
}

fn assert_no_secret(pair: &Pair, run: &Run) -> Result<()> {
    let hashes = pair.source.rows("SELECT authentication_string, HEX(authentication_string) FROM mysql.user")?;
    for hash in hashes.iter().flatten().filter(|hash| hash.len() > 8) {
        ensure!(!run.stderr.contains(hash.as_str()) && !run.stdout.contains(hash.as_str()), "a hash was said: {run}");
    }
    ensure!(!run.stderr.contains("secret") && !run.stderr.contains("$A$"), "a password was said: {run}");
    Ok(())
}

fn made(kind: Kind, target: &[&str]) -> Result<Pair> {
    let pair = Pair::start_with(kind, options(kind), target)?;
    let more = match (kind.is_mariadb(), kind.is_mysql_since(&[8])) {
        (true, _) => OF_MARIADB,
        (false, true) => OF_MYSQL_8,
        _ => "",
    };
    pair.source.execute("CREATE USER 'partly'@'%' IDENTIFIED BY 'secret'")?;
    pair.source.execute(&format!("{OBJECTS}{ACCOUNTS}{more}{OF_APP}"))?;
    as_root(&pair.source, "GRANT PROXY ON 'netmask'@'10.0.0.0/255.255.255.0' TO 'app'@'%' WITH GRANT OPTION")?;
    Ok(pair)
}

fn every_account(kind: Kind) -> Result<()> {
    let has_revokes = kind.is_mysql_since(&[8, 0, 16]);
    let pair = made(kind, if has_revokes { &["--partial-revokes=ON"] } else { &[] })?;
    if has_revokes {
        pair.source.execute(REVOKES)?;
    }
    pair.target.execute(
        "SET sql_log_bin = 0; CREATE USER 'there'@'%' IDENTIFIED BY 'own'; GRANT PROCESS ON *.* TO 'there'@'%'",
    )?;
    let_proxies(&pair.target)?;
    let before = (described(&pair.target, "'there'@'%'")?, described(&pair.target, "'heddle'@'127.0.0.1'")?);
    let dry = pair.begin(&[COPY, "--dry-run"])?.wait()?.successful()?;
    ensure!(dry.stdout.contains(&format!("\"accounts\": {}", names(&pair.source)?.len() - 1)), "{dry}");
    assert_no_secret(&pair, &dry)?;
    ensure!(names(&pair.target)?.len() == 1, "the dry run made accounts");
    let run = to_the_end(&pair, &[COPY])?;
    assert_no_secret(&pair, &run)?;
    ensure!(
        run.stderr.matches("are on the target already").count() == 1 && run.stderr.contains("'there'@'%'"),
        "{run}"
    );
    let warned = run.stderr.matches("copied").count();
    let second = run.stderr.matches("without the second password").count();
    ensure!(warned == second && second == usize::from(kind.is_mysql_since(&[8])), "{run}");
    assert_same_accounts(&pair, &["'there'@'%'"])?;
    let after = (described(&pair.target, "'there'@'%'")?, described(&pair.target, "'heddle'@'127.0.0.1'")?);
    ensure!(before.0 == after.0, "{before:?}\n{after:?}");
    // MariaDB: who makes a role may hand it on.
    let kept = |text: &str| text.lines().filter(|line| !line.starts_with("GRANT `")).collect::<Vec<_>>().join("\n");
    ensure!(kept(&before.1).lines().all(|line| after.1.contains(line)), "{before:?}\n{after:?}");
    ensure!(log_in(&pair.target, "app")? == "app@%");
    ensure!(log_in(&pair.target, "locked").is_err() && log_in(&pair.target, "there").is_err());
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM heddle.copy_accounts")? == "0");
    // And goes on.
    pair.source.execute(
        "CREATE USER 'later'@'%' IDENTIFIED BY 'secret'; GRANT DELETE ON d.* TO 'later'@'%', 'app'@'%'; DROP USER 'never'@'%'; REVOKE PROCESS ON *.* FROM 'app'@'%'",
    )?;
    to_the_end(&pair, &[COPY])?;
    assert_same_accounts(&pair, &["'there'@'%'"])?;
    ensure!(log_in(&pair.target, "later")? == "later@%");
    Ok(())
}

/// The target's log has nothing of them.
fn unlogged(kind: Kind) -> Result<()> {
    let pair = made(kind, &[])?;
    let_proxies(&pair.target)?;
    let own = gtids(&pair.target)?;
    to_the_end(&pair, &[COPY, "--gtids", "preserve"])?;
    assert_same_accounts(&pair, &[])?;
    if kind.is_mariadb() {
        ensure!(gtids(&pair.target)? == own, "{} instead of {own}", gtids(&pair.target)?);
        ensure!(pair.target.scalar("SELECT @@gtid_slave_pos")? == gtids(&pair.source)?);
    } else {
        let expected = format!("{},{own}", gtids(&pair.source)?);
        let more = pair
            .target
            .scalar(&format!("SELECT GTID_SUBTRACT(@@GLOBAL.gtid_executed, '{}')", expected.trim_end_matches(',')))?;
        ensure!(more.is_empty(), "{more}");
    }
    Ok(())
}

/// The target's own log has its accounts, and none of the copy's records: a channel of the target takes them on.
fn onwards(kind: Kind) -> Result<()> {
    let pair = made(kind, &[])?;
    let_proxies(&pair.target)?;
    to_the_end(&pair, &[COPY])?;
    let third = Server::start(kind, &[])?;
    let_proxies(&third)?;
    let (from, to) = (pair.target.url(), third.url());
    let relay = third.dir().join("relay").display().to_string();
    let arguments = ["replicate", "--from", &from, "--to", &to, "--json", "--relay-dir", &relay, "--until-end"];
    let run = e2e::heddle::heddle(&arguments)?.successful()?;
    ensure!(third.scalar("SELECT COUNT(*) FROM d.t")? == "1", "{run}");
    ensure!(names(&third)? == names(&pair.target)?, "{run}");
    Ok(())
}

/// Not asked for: a part of the source, or `--account-statements skip`.
fn not_asked_for(kind: Kind) -> Result<()> {
    for more in [&["--only", "d"][..], &["--rename", "d=e"], &["--account-statements", "skip"]] {
        let pair = Pair::start_with(kind, options(kind), &[])?;
        pair.source.execute(
            "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); CREATE USER 'app'@'%' IDENTIFIED BY 'secret'",
        )?;
        let run = pair.run_to_the_end(&[&[COPY], more].concat())?;
        ensure!(names(&pair.target)?.is_empty() && !run.stderr.contains("accounts are"), "{run}");
    }
    Ok(())
}

/// Statements about accounts before, while and after the copy's last look.
fn while_it_runs(kind: Kind) -> Result<()> {
    let pair = made(kind, &[])?;
    let_proxies(&pair.target)?;
    pair.source.execute(&format!(
        "CREATE TABLE d.many (id INT PRIMARY KEY, v CHAR(100)); INSERT INTO d.many VALUES {}",
        (0..20_000).map(|n| format!("({n}, 'x')")).collect::<Vec<_>>().join(",")
    ))?;
    let stop = Arc::new(AtomicBool::new(false));
    let (mut session, stopped, random) = (pair.source.connect()?, Arc::clone(&stop), seed(3, "copy_accounts"));
    let changing = thread::spawn(move || -> Result<u32> {
        let random = &mut StdRng::seed_from_u64(random);
        let mut number = 0;
        while !stopped.load(Ordering::Relaxed) {
            number += 1;
            for sql in [
                format!("CREATE USER 'u{number}'@'%' IDENTIFIED BY 'secret'"),
                format!("GRANT SELECT ON d.* TO 'u{number}'@'%'"),
                format!("GRANT INSERT (id) ON d.many TO 'u{number}'@'%', 'app'@'%'"),
                "REVOKE INSERT (id) ON d.many FROM 'app'@'%'".to_owned(),
                format!("DROP USER 'u{}'@'%'", number / 2),
            ] {
                // One that was dropped.
                match session.execute(&sql) {
                    Err(error) if error.code() != Some(1396) => return Err(error).context(sql),
                    _ => {}
                }
                thread::sleep(Duration::from_millis(random.random_range(0..400)));
            }
        }
        Ok(number)
    });
    let mut heddle = pair.begin(&[COPY])?;
    heddle.wait_for_log("all rows are there")?;
    thread::sleep(Duration::from_secs(2));
    stop.store(true, Ordering::Relaxed);
    let number = changing.join().expect("no panic")?;
    ensure!(number > 2, "{number} accounts");
    ensure!(!heddle.has_ended()?, "{}", heddle.log());
    let log = heddle.log();
    eprintln!("{} further rounds", log.matches("have changed since the round's end").count());
    ensure!(!log.contains("which the target has already and keeps"), "a statement came twice: {log}");
    heddle.terminate()?;
    heddle.wait()?;
    to_the_end(&pair, &[COPY])?;
    assert_same_accounts(&pair, &[])
}

/// What an earlier attempt has made is made again, as the source has it now.
fn interrupted(kind: Kind) -> Result<()> {
    let pair = made(kind, &[])?;
    let_proxies(&pair.target)?;
    // The view can not be made: accounts are there, the copy is not done.
    pair.target.execute("CREATE DATABASE d; CREATE TABLE d.v (id INT)")?;
    pair.begin(&[COPY, "--until-end"])?.wait()?.failed_with("does not take the view d.v")?;
    ensure!(names(&pair.source)? == names(&pair.target)?, "{:?}", names(&pair.target)?);
    pair.source.execute(
        "ALTER USER 'app'@'%' IDENTIFIED BY 'another'; REVOKE PROCESS ON *.* FROM 'app'@'%'; DROP USER 'never'@'%'; DROP USER ''@'host1';
         CREATE USER 'never'@'localhost' IDENTIFIED BY 'secret'; ALTER USER 'locked'@'%' ACCOUNT UNLOCK; REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'there'@'%'",
    )?;
    pair.target.execute("DROP TABLE d.v")?;
    to_the_end(&pair, &[COPY])?;
    assert_same_accounts(&pair, &[])?;
    ensure!(log_in(&pair.target, "locked")? == "locked@%");
    Ok(())
}

/// The same of an account that Heddle's own may not drop: it is the definer of what an earlier attempt has made.
fn renewed() -> Result<()> {
    let pair = Pair::start_with(MYSQL_9_7, &GTIDS, &[])?;
    pair.source.execute(&format!(
        "{OBJECTS} CREATE USER 'app'@'%' IDENTIFIED BY 'old'; CREATE ROLE 'reader'; GRANT SELECT, INSERT ON d.* TO 'app'@'%'; GRANT 'reader' TO 'app'@'%'; {OF_APP}"
    ))?;
    pair.target.execute(&format!(
        "SET sql_log_bin = 0; CREATE USER 'limited'@'%' IDENTIFIED BY '{PASSWORD}';
         GRANT BINLOG_ADMIN, SESSION_VARIABLES_ADMIN, SYSTEM_VARIABLES_ADMIN, SET_ANY_DEFINER, SYSTEM_USER, ROLE_ADMIN, BACKUP_ADMIN ON *.* TO 'limited'@'%';
         GRANT ALTER, ALTER ROUTINE, CREATE, CREATE ROUTINE, CREATE TEMPORARY TABLES, CREATE USER, CREATE VIEW, DELETE, DROP, EVENT, EXECUTE, INDEX, INSERT, LOCK TABLES,
             REFERENCES, RELOAD, SELECT, SHOW VIEW, TRIGGER, UPDATE ON *.* TO 'limited'@'%' WITH GRANT OPTION;
         SET GLOBAL log_bin_trust_function_creators = ON; CREATE DATABASE d; CREATE TABLE d.v (id INT)"
    ))?;
    let to = pair.target.url().replace("heddle@", "limited@");
    pair.begin_into(&to, &[COPY, "--until-end"])?.wait()?.failed_with("does not take the view d.v")?;
    pair.source.execute(
        "ALTER USER 'app'@'%' IDENTIFIED BY 'secret'; REVOKE INSERT ON d.* FROM 'app'@'%'; REVOKE 'reader' FROM 'app'@'%'; GRANT UPDATE ON d.* TO 'app'@'%'",
    )?;
    pair.target.execute("DROP TABLE d.v")?;
    let run = pair.begin_into(&to, &[COPY, "--until-end"])?.wait()?.successful()?;
    ensure!(!run.stderr.contains("WARN"), "{run}");
    let (source, target) = (described(&pair.source, "'app'@'%'")?, described(&pair.target, "'app'@'%'")?);
    ensure!(source == target, "{source}\n---\n{target}");
    ensure!(log_in(&pair.target, "app")? == "app@%");
    Ok(())
}

/// Killed while accounts are made.
fn killed(kind: Kind) -> Result<()> {
    let pair = made(kind, &[])?;
    let_proxies(&pair.target)?;
    let many = |n: u32| {
        format!(
            "CREATE USER 'm{n}'@'%' IDENTIFIED BY 'secret'; GRANT SELECT, INSERT ON d.* TO 'm{n}'@'%'; GRANT UPDATE (a) ON d.t TO 'm{n}'@'%';"
        )
    };
    pair.source.execute(&(0..200).map(many).collect::<String>())?;
    let random = &mut StdRng::seed_from_u64(seed(5, "copy_accounts"));
    for _ in 0..8 {
        let mut heddle = pair.begin(&[COPY])?;
        heddle.wait_for_log("copy: foreign keys, accounts")?;
        thread::sleep(Duration::from_millis(random.random_range(0..800)));
        heddle.kill()?;
        if heddle.wait()?.stderr.contains("all rows are there") {
            break;
        }
        eprintln!("{} accounts", names(&pair.target)?.len());
    }
    to_the_end(&pair, &[COPY])?;
    assert_same_accounts(&pair, &[])
}

/// Into the other vendor's server: what can not be is named before and after.
fn across(source: Kind, target: Kind) -> Result<()> {
    let pair = Pair::start_two((source, options(source)), (target, &[]))?;
    let_proxies(&pair.target)?;
    let more = if source.is_mariadb() { OF_MARIADB } else { OF_MYSQL_8 };
    pair.source.execute(&format!("{OBJECTS}{ACCOUNTS}{more}"))?;
    let dry = pair.begin(&[COPY, "--rows", "sql", "--dry-run"])?.wait()?.successful()?;
    let run = pair.run_to_the_end(&[COPY, "--rows", "sql"])?;
    assert_no_secret(&pair, &run)?;
    let expected: &[&str] = if source.is_mariadb() {
        &[
            "'app'@'%', 'expired'@'%'",
            "the target does not have the authentication plugin mysql_native_password",
            "PUBLIC: not copied: the target has no such roles",
        ]
    } else {
        &[
            "'app'@'%', 'attribute'@'%'",
            "the target does not have the authentication plugin caching_sha2_password",
            "'writer'@'localhost': not copied: the target has no such roles",
        ]
    };
    for text in expected {
        ensure!(dry.stdout.contains(text), "{text} is not in {dry}");
        ensure!(run.stderr.contains(text), "{text} is not in {run}");
    }
    let roles = ["reader", "admin"];
    let found =
        pair.target.scalar(&format!("SELECT COUNT(*) FROM mysql.user WHERE User IN ('{}')", roles.join("','")))?;
    ensure!(found == "2", "{found} roles: {run}");
    ensure!(
        pair.target.scalar("SELECT COUNT(*) FROM mysql.user WHERE User IN ('app', 'expired', '', 'none')")? == "0",
        "{run}"
    );
    let role = if target.is_mariadb() { "admin" } else { "'reader'" };
    let expected =
        if target.is_mariadb() { "GRANT `reader` TO `admin`" } else { "GRANT SELECT ON `d`.* TO `reader`@`%`" };
    ensure!(pair.target.scalar(&format!("SHOW GRANTS FOR {role}"))?.contains(expected), "{run}");
    Ok(())
}

/// An account without rights says which ones are missing, and the rows are copied.
fn denied(kind: Kind) -> Result<()> {
    let pair = Pair::start_with(kind, options(kind), &[])?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1); CREATE USER 'app'@'%' IDENTIFIED BY 'secret'")?;
    pair.target.execute(&format!(
        "SET sql_log_bin = 0; CREATE USER 'poor'@'%' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON d.* TO 'poor'@'%'; GRANT ALL ON heddle.* TO 'poor'@'%'; GRANT SELECT, {} ON *.* TO 'poor'@'%'",
        if kind.is_mariadb() { "BINLOG ADMIN, BINLOG REPLAY, PROCESS" } else { "BINLOG_ADMIN, SESSION_VARIABLES_ADMIN" }
    ))?;
    let to = pair.target.url().replace("heddle@", "poor@");
    let target = "GRANT CREATE USER ON *.* TO 'poor'@'%'";
    let dry = pair.begin_into(&to, &[COPY, "--dry-run"])?.wait()?.successful()?;
    ensure!(dry.stdout.contains(target), "{dry}");
    let run = pair.begin_into(&to, &[COPY, "--until-end"])?.wait()?.successful()?;
    ensure!(run.stderr.matches(target).count() == 1, "{run}");
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM d.t")? == "1", "{run}");
    if kind.is_mariadb() {
        return Ok(());
    }
    // The source's.
    let mut pair = Pair::start_with(kind, options(kind), &[])?;
    pair.source.execute(&format!(
        "SET GLOBAL partial_revokes = ON; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1);
         CREATE USER 'blind'@'%' IDENTIFIED BY '{PASSWORD}'; GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'blind'@'%';
         GRANT SHOW_ROUTINE, XA_RECOVER_ADMIN ON *.* TO 'blind'@'%'; REVOKE SELECT ON mysql.* FROM 'blind'@'%'"
    ))?;
    pair.from = pair.source.url().replace("heddle@", "blind@");
    let source = "GRANT SELECT ON mysql.* TO 'blind'@'%'";
    let dry = pair.begin(&[COPY, "--dry-run"])?.wait()?.successful()?;
    ensure!(dry.stdout.contains(source), "{dry}");
    let run = to_the_end(&pair, &[COPY])?;
    ensure!(run.stderr.matches(source).count() == 1, "{run}");
    ensure!(names(&pair.target)?.is_empty(), "{run}");
    Ok(())
}

/// A target that does not take schemas out of privileges: an account does not get more than it has on the source.
fn no_revokes() -> Result<()> {
    let pair = made(MYSQL_9_7, &[])?;
    pair.source.execute(REVOKES)?;
    let run = to_the_end(&pair, &[COPY])?;
    ensure!(run.stderr.contains("'partly'@'%': copied without INSERT on *.*"), "{run}");
    let grants = pair.target.scalar("SHOW GRANTS FOR 'partly'@'%'")?;
    let expected = "GRANT SELECT ON *.* TO `partly`@`%`\nGRANT UPDATE ON `a\\_b\\%c`.* TO `partly`@`%`";
    ensure!(grants == expected, "{grants}");
    // Nobody has let Heddle's account hand on proxies.
    ensure!(run.stderr.contains("'app'@'%': copied without PROXY ON"), "{run}");
    Ok(())
}

/// Into a later version.
fn upgraded(source: Kind, target: Kind) -> Result<()> {
    let pair = Pair::start_two((source, options(source)), (target, &[]))?;
    let_proxies(&pair.target)?;
    pair.source.execute(&format!("{OBJECTS}{ACCOUNTS}"))?;
    pair.source.execute("CREATE USER 'sha256'@'%' IDENTIFIED WITH sha256_password BY 'secret'; GRANT ALL ON *.* TO 'sha256'@'%'; GRANT SELECT ON d.v TO 'sha256'@'%'")?;
    let run = pair.run_to_the_end(&[COPY])?;
    assert_no_secret(&pair, &run)?;
    ensure!(run.stderr.contains("does not have the authentication plugin mysql_native_password"), "{run}");
    ensure!(names(&pair.target)? == ["'sha256'@'%'"], "{:?} {run}", names(&pair.target)?);
    ensure!(log_in(&pair.target, "sha256")? == "sha256@%", "{run}");
    Ok(())
}

e2e::tests! {
    every_account_mysql: every_account(MYSQL_9_7);
    every_account_mariadb: every_account(MARIADB_10_11);
    unlogged_mysql: unlogged(MYSQL_9_7);
    unlogged_mariadb: unlogged(MARIADB_10_11);
    onwards_mysql: onwards(MYSQL_9_7);
    onwards_mariadb: onwards(MARIADB_10_11);
    not_asked_for_mysql: not_asked_for(MYSQL_9_7);
    not_asked_for_mariadb: not_asked_for(MARIADB_10_11);
    while_it_runs_mysql: while_it_runs(MYSQL_9_7);
    while_it_runs_mariadb: while_it_runs(MARIADB_10_11);
    interrupted_mysql: interrupted(MYSQL_9_7);
    interrupted_mariadb: interrupted(MARIADB_10_11);
    account_that_can_not_be_dropped_mysql: renewed();
    killed_mysql: killed(MYSQL_9_7);
    killed_mariadb: killed(MARIADB_10_11);
    mysql_into_mariadb: across(MYSQL_9_7, MARIADB_10_11);
    mariadb_into_mysql: across(MARIADB_10_11, MYSQL_9_7);
    denied_mysql: denied(MYSQL_9_7);
    denied_mariadb: denied(MARIADB_10_11);
    target_without_partial_revokes_mysql: no_revokes();
    #[ignore = "another version: scripts/nightly"]
    mysql_5_7_into_9_7: upgraded("mysql-5.7.22".parse().expect("a server"), MYSQL_9_7);
    #[ignore = "another version: scripts/nightly"]
    every_account_mysql_5_7: every_account("mysql-5.7.22".parse().expect("a server"));
    #[ignore = "another version: scripts/nightly"]
    every_account_mysql_8_4: every_account("mysql-8.4".parse().expect("a server"));
    #[ignore = "another version: scripts/nightly"]
    every_account_mariadb_11_8: every_account("mariadb-11.8".parse().expect("a server"));
}
