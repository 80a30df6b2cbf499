//! Accounts that both ends have: the source's log begins with `CREATE USER` of the names that the target knows, and Heddle has exactly the privileges
//! that docs/privileges.md names.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Run, heddle};
use e2e::pair::Pair;
use e2e::refusal::refused_with_remedy;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server};

/// Statements of the page that have one of the words, and none of the others.
fn documented(with: &[&str], without: &[&str]) -> Result<Vec<String>> {
    let page = std::fs::read_to_string(e2e::repository().join("docs/privileges.md"))?;
    let mut found: Vec<String> = Vec::new();
    for block in page.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let lines: Vec<&str> = block.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
        for statement in lines.join(" ").split(';').map(str::trim).filter(|text| text.starts_with("GRANT")) {
            let has = |word: &&str| statement.contains(*word);
            if with.iter().any(has) && !without.iter().any(has) && !found.iter().any(|known| known == statement) {
                found.push(statement.to_owned());
            }
        }
    }
    ensure!(!found.is_empty(), "docs/privileges.md has no GRANT with {with:?} and without {without:?}");
    Ok(found)
}

/// The account for all that a log has but the rarest, as the page gives it.
fn full_account(kind: Kind) -> Result<Vec<String>> {
    if kind.is_mariadb() {
        documented(&["ALTER ROUTINE, BINLOG ADMIN"], &["SUPER"])
    } else {
        documented(&["SET_ANY_DEFINER", "ALTER, ALTER ROUTINE"], &["SUPER", "BINLOG ADMIN", "BINLOG REPLAY"])
    }
}

/// `repl` on the target: outside its log, as an operator makes it.
fn make_account(target: &Server) -> Result<()> {
    for host in ["%", "localhost"] {
        target.execute(&format!("SET sql_log_bin = 0; CREATE USER 'repl'@'{host}' IDENTIFIED BY '{PASSWORD}'"))?;
        for grant in full_account(target.kind)? {
            target.execute(&format!(
                "SET sql_log_bin = 0; {}",
                grant.replace(" TO heddle", &format!(" TO 'repl'@'{host}'"))
            ))?;
        }
    }
    Ok(())
}

fn grants(server: &Server, account: &str) -> Result<String> {
    server.scalar(&format!("SHOW GRANTS FOR {account}"))
}

/// What a source's log begins with: the accounts of the application, and heddle's own, which have other passwords on the target.
fn begin_log(source: &Server) -> Result<()> {
    let reads = if source.kind.is_mariadb() { "BINLOG MONITOR" } else { "REPLICATION CLIENT" };
    source.execute(&format!(
        "CREATE USER 'repl'@'%' IDENTIFIED BY 'other', 'app'@'%' IDENTIFIED BY 'secret', 'repl'@'localhost' IDENTIFIED BY 'other';
         GRANT REPLICATION SLAVE, {reads} ON *.* TO 'repl'@'%', 'repl'@'localhost';
         CREATE USER 'there'@'%' IDENTIFIED BY 'secret', 'new'@'%' IDENTIFIED BY 'secret';
         CREATE ROLE 'readers';
         CREATE DATABASE shop;
         CREATE TABLE shop.t (id INT PRIMARY KEY);
         GRANT ALL ON shop.* TO 'app'@'%';
         GRANT SELECT ON shop.* TO 'there'@'%', 'repl'@'%', 'readers';
         ALTER USER 'repl'@'%' IDENTIFIED BY 'other', 'app'@'%' IDENTIFIED BY 'next';
         INSERT INTO shop.t VALUES (1)"
    ))
}

fn said(run: &Run, text: &str) -> usize {
    run.stderr.matches(text).count()
}

const LEFT_OUT: &str = "changes the account that heddle uses on the target";

/// The first replication, and what comes later.
fn first_replication(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    let (source, target) = (&pair.source, &pair.target);
    begin_log(source)?;
    make_account(target)?;
    target.execute("SET sql_log_bin = 0; CREATE USER 'there'@'%' IDENTIFIED BY 'own'; CREATE ROLE 'readers'")?;
    let own = [grants(target, "'repl'@'%'")?, grants(target, "'repl'@'localhost'")?];
    let (to, reader) = (target.url().replace("heddle@", "repl@"), source.url().replace("heddle@", "repl:other@"));
    let run = |from: &str, more: &[&str]| {
        heddle(
            &[&["replicate", "--from", from, "--to", &to, "--until-end", "--json", "--relay-dir", &pair.relay], more]
                .concat(),
        )
    };
    let first = run(&reader, &[])?.successful()?;
    ensure!(said(&first, LEFT_OUT) == 1, "said once: {first}");
    ensure!(said(&first, "'there'@'%', which the target has already") == 1, "{first}");
    ensure!(said(&first, "'readers', which the target has already") == 1, "{first}");
    ensure!(!first.stderr.contains("secret") && !first.stderr.contains("'next'"), "a password in the log: {first}");
    pair.assert_same_rows()?;
    for account in ["'app'@'%'", "'there'@'%'", "'new'@'%'", "'readers'"] {
        let (there, here) = (grants(source, account)?, grants(target, account)?);
        // MariaDB shows the hash of the password, which the account that was there has kept.
        let is_kept = kind.is_mariadb() && account.starts_with("'there'");
        let privileges = |text: &str| text.lines().skip(usize::from(is_kept)).collect::<Vec<_>>().join("\n");
        ensure!(privileges(&there) == privileges(&here), "{account}:\n{there}\n{here}");
    }
    // The account can still log in, and another heddle has nothing to do.
    ensure!(run(&reader, &[])?.successful()?.number("transactions")? == 0, "something was left");
    source.execute(
        "DROP USER 'repl'@'%', 'repl'@'localhost'; SET PASSWORD FOR 'new'@'%' = 'next'; INSERT INTO shop.t VALUES (2)"
            .replace("= 'next'", if kind.is_mariadb() { "= PASSWORD('next')" } else { "= 'next'" })
            .as_str(),
    )?;
    run(&source.url(), &[])?.successful()?;
    ensure!(
        own == [grants(target, "'repl'@'%'")?, grants(target, "'repl'@'localhost'")?],
        "heddle's own account has changed"
    );
    pair.assert_same_rows()?;

    // What heddle's account does not have is named, with the statement that gives it.
    source.execute("GRANT SELECT, FILE ON *.* TO 'app'@'%'")?;
    let refused = run(&source.url(), &[])?;
    refused_with_remedy(&refused, &["an account statement", "GRANT SELECT, FILE ON *.* TO 'repl'@'"])?;
    let remedy =
        refused.stderr.split("administrator of the target run ").nth(1).and_then(|rest| rest.split("; then").next());
    target.execute(&format!("SET sql_log_bin = 0; {}", remedy.context("no statement in the remedy")?))?;
    run(&source.url(), &[])?.successful()?;
    ensure!(grants(source, "'app'@'%'")? == grants(target, "'app'@'%'")?, "app's grants");

    source.execute("CREATE USER 'later'@'%'; INSERT INTO shop.t VALUES (3)")?;
    let skipping = run(&source.url(), &["--account-statements", "skip"])?.successful()?;
    ensure!(said(&skipping, "--account-statements skip: left out") == 1, "{skipping}");
    ensure!(target.scalar("SELECT COUNT(*) FROM mysql.user WHERE User = 'later'")? == "0", "{skipping}");
    pair.assert_same_rows()?;
    changed_tables(&pair, &|| run(&source.url(), &[]))
}

/// Changes of the account tables themselves: heddle's own account stays, whatever format they are logged in, and others change.
fn changed_tables(pair: &Pair, run: &dyn Fn() -> Result<Run>) -> Result<()> {
    let (source, target) = (&pair.source, &pair.target);
    let (table, lock, is_locked) = if source.kind.is_mariadb() {
        ("global_priv", "Priv = JSON_SET(Priv, '$.account_locked', true)", "JSON_VALUE(Priv, '$.account_locked') = 1")
    } else {
        ("user", "account_locked = 'Y'", "account_locked = 'Y'")
    };
    let own = || Ok::<_, anyhow::Error>([grants(target, "'repl'@'%'")?, grants(target, "'repl'@'localhost'")?]);
    let before = own()?;
    for format in ["ROW", "STATEMENT"] {
        source.execute(&format!(
            "SET sql_log_bin = 0; CREATE USER 'repl'@'%' IDENTIFIED BY 'other', 'repl'@'localhost' IDENTIFIED BY 'other'; SET sql_log_bin = 1;
             CREATE USER 'of_{format}'@'%'; SET SESSION binlog_format = '{format}';
             UPDATE mysql.{table} SET {lock} WHERE User IN ('repl', 'of_{format}'); DELETE FROM mysql.{table} WHERE User = 'repl'; FLUSH PRIVILEGES;
             INSERT INTO shop.t VALUES ({})",
            if format == "ROW" { 10 } else { 11 }
        ))?;
        let changed = run()?.successful()?;
        ensure!(said(&changed, "taken back") == 2, "{format}: {changed}");
        ensure!(own()? == before, "{format}: heddle's own account has changed: {changed}");
        let locked = format!("SELECT COUNT(*) FROM mysql.{table} WHERE User = 'of_{format}' AND {is_locked}");
        ensure!(target.scalar(&locked)? == "1", "{format}: others change as on the source: {changed}");
        ensure!(run()?.successful()?.number("transactions")? == 0, "{format}: something was left");
    }
    emptied_table(pair, run)?;
    pair.assert_same_rows()
}

/// Emptied alone, and twice in a row: what it has of heddle's own account stays.
fn emptied_table(pair: &Pair, run: &dyn Fn() -> Result<Run>) -> Result<()> {
    let (source, target) = (&pair.source, &pair.target);
    target.execute(
        "SET sql_log_bin = 0; GRANT EVENT ON shop.* TO 'repl'@'%'; GRANT EVENT ON shop.* TO 'repl'@'localhost'",
    )?;
    let own = || target.scalar("SELECT COUNT(*) FROM mysql.db WHERE User = 'repl' AND Db = 'shop'");
    ensure!(own()? == "2", "the privileges are not in mysql.db");
    for (id, statements) in [(12, "TRUNCATE TABLE mysql.db"), (13, "TRUNCATE TABLE mysql.db; TRUNCATE TABLE mysql.db")]
    {
        source.execute(&format!("INSERT INTO shop.t VALUES ({id}); {statements}; FLUSH PRIVILEGES"))?;
        let emptied = run()?.successful()?;
        ensure!(own()? == "2", "{statements}: heddle's own account has changed: {emptied}");
        ensure!(said(&emptied, "taken back") > 0, "{statements}: {emptied}");
    }
    Ok(())
}

e2e::tests! {
    mariadb_first_replication: first_replication(MARIADB_10_11);
    mysql_first_replication: first_replication(MYSQL_9_7);
}
