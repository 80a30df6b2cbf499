//! Channels that take a part of their source, under other names: beside a native replica with the same filters, where the meaning is the same; what crosses the border; kills.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use e2e::checksum::{Checksums, checksums, contents, differences};
use e2e::heddle::{Run, heddle};
use e2e::lagging::{By, Lagging};
use e2e::native::{start_native, stop_applier};
use e2e::pair::Pair;
use e2e::refusal::refused_with_remedy;
use e2e::served::Served;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server, free_port};
use e2e::{Heddle, native_replica, wait_caught_up};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

const SCHEMAS: [&str; 3] = ["shop", "crm", "other"];
const TABLES: [&str; 3] = ["a", "b", "log"];
/// For heddle, and for a server.
const PART: [&str; 4] = ["--only", "shop", "--ignore", "shop.log"];
const NATIVE_PART: [&str; 2] = ["--replicate-wild-do-table=shop.%", "--replicate-ignore-table=shop.log"];

fn definitions() -> String {
    let mut sql = String::new();
    for schema in SCHEMAS {
        let _ = writeln!(sql, "CREATE DATABASE {schema};");
        for table in TABLES {
            let _ = writeln!(
                sql,
                "CREATE TABLE {schema}.{table} (id INT PRIMARY KEY, n INT, s VARCHAR(40), KEY n (n)) ENGINE=InnoDB;"
            );
        }
    }
    sql
}

/// Transactions of rows in all schemas, and definitions of one table each.
fn workload(random: &mut StdRng, transactions: u32, defines: bool) -> String {
    let mut sql = String::new();
    // Names are new each time.
    let first = random.random_range(1..1000) * 1000;
    for number in first..first + transactions {
        let _ = writeln!(sql, "USE {};\nBEGIN;", SCHEMAS.choose(random).expect("there are some"));
        for _ in 0..random.random_range(1..5) {
            let (schema, table) = (SCHEMAS.choose(random).expect("some"), TABLES.choose(random).expect("some"));
            let id = random.random_range(0..60);
            let _ = match random.random_range(0..4) {
                0 | 1 => {
                    writeln!(sql, "REPLACE INTO {schema}.{table} (id, n, s) VALUES ({id}, {number}, 'of {number}');")
                }
                2 => writeln!(
                    sql,
                    "UPDATE {schema}.{table} SET n = n + 1, s = CONCAT(LEFT(s, 20), '+') WHERE id < {id};"
                ),
                _ => writeln!(sql, "DELETE FROM {schema}.{table} WHERE id = {id};"),
            };
        }
        let _ = writeln!(sql, "COMMIT;");
        if defines && number % 9 == 0 {
            let (schema, table) = (SCHEMAS.choose(random).expect("some"), TABLES.choose(random).expect("some"));
            let _ = match random.random_range(0..4) {
                0 => writeln!(sql, "ALTER TABLE {schema}.{table} ADD COLUMN c{number} INT DEFAULT {number};"),
                1 => writeln!(sql, "CREATE INDEX i{number} ON {schema}.{table} (n, s);"),
                // What is made like a table that is left out crosses the border.
                2 => writeln!(sql, "CREATE TABLE {schema}.t{number} LIKE {schema}.a;"),
                _ => writeln!(sql, "TRUNCATE TABLE {schema}.{table};"),
            };
        }
    }
    sql
}

fn assert_same(of: &Checksums, and: &Checksums) -> Result<()> {
    let lines = differences(of, and);
    ensure!(lines.is_empty(), "they differ:\n  {}", lines.join("\n  "));
    Ok(())
}

/// Equal to the server's own replica with filters of the same meaning, rows and definitions; with all the GTIDs.
fn beside_native(kind: Kind, format: &str, options: &[&str]) -> Result<()> {
    let seed = e2e::seed(50, "filters");
    let mut random = StdRng::seed_from_u64(seed);
    let pair = Pair::start_with(kind, &[&format!("--binlog-format={format}")], &[])?;
    let replica = Server::start(kind, &NATIVE_PART)?;
    native_replica(&pair.source, &replica)?;
    pair.source.run_script(definitions().as_bytes())?;
    pair.source.run_script(workload(&mut random, 300, true).as_bytes())?;
    let run = pair.run_to_the_end(&[&PART, options].concat())?;
    wait_caught_up(&pair.source, &replica)?;
    assert_same(&checksums(&replica)?, &checksums(&pair.target)?).with_context(|| run.to_string())?;
    ensure!(
        pair.target.scalar("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME IN ('crm', 'other')")?
            == "0"
    );
    if options.contains(&"preserve") {
        let gtids = if kind.is_mariadb() { "SELECT @@gtid_binlog_pos" } else { "SELECT @@gtid_executed" };
        let (source, target) = (pair.source.scalar(gtids)?, pair.target.scalar(gtids)?);
        ensure!(target.split(',').any(|part| part.trim() == source), "source {source}, target {target}");
    }
    Ok(())
}

/// Each case: what the source does, and what the target has then, of `SHOW TABLES` in its two schemas or of another question.
fn crossings(kind: Kind) -> Result<()> {
    const TABLES_OF_BOTH: &str = "SELECT COALESCE(GROUP_CONCAT(CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) ORDER BY 1), '') FROM information_schema.TABLES \
        WHERE TABLE_SCHEMA IN ('d', 'e')";
    let pair = Pair::start_with(kind, &["--binlog-format=STATEMENT"], &[])?;
    let part = ["--only", "d.a*", "--until-end"];
    let cases: [(&str, &str, &str); 9] = [
        (
            "CREATE DATABASE d; CREATE DATABASE e; CREATE TABLE d.a (v INT PRIMARY KEY); CREATE TABLE d.b (v INT PRIMARY KEY)",
            TABLES_OF_BOTH,
            "d.a",
        ),
        (
            "USE e; CREATE TABLE t (v INT PRIMARY KEY); INSERT INTO t VALUES (1); INSERT INTO d.a VALUES (1), (2)",
            "SELECT COUNT(*) FROM d.a",
            "2",
        ),
        ("USE d; CREATE TABLE a2 (v INT PRIMARY KEY); CREATE TABLE c (v INT)", TABLES_OF_BOTH, "d.a,d.a2"),
        ("USE e; DROP TABLE d.b, d.a2, e.t", TABLES_OF_BOTH, "d.a"),
        ("USE d; UPDATE a SET v = v + 10; INSERT INTO c SELECT v FROM a", "SELECT SUM(v) FROM d.a", "23"),
        ("RENAME TABLE d.a TO d.a3, d.c TO e.c", TABLES_OF_BOTH, "d.a3"),
        ("CREATE VIEW d.a_view AS SELECT v FROM d.a3; CREATE VIEW d.v AS SELECT 1", TABLES_OF_BOTH, "d.a3,d.a_view"),
        (
            "CREATE TRIGGER d.t BEFORE INSERT ON d.a3 FOR EACH ROW SET NEW.v = NEW.v + 1; INSERT INTO d.a3 VALUES (100)",
            "SELECT MAX(v) FROM d.a3",
            "101",
        ),
        ("DROP TRIGGER d.t; DROP VIEW d.v, d.a_view; CREATE USER filtered@localhost", TABLES_OF_BOTH, "d.a3"),
    ];
    for (sql, question, expected) in cases {
        pair.source.run_script(sql.as_bytes())?;
        let run = pair.begin(&part)?.wait()?.successful().with_context(|| sql.to_owned())?;
        let found = pair.target.scalar(question)?;
        ensure!(found == expected, "{sql}\nexpected {expected}\nfound {found}\n{run}");
    }
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM mysql.user WHERE user = 'filtered'")? == "0");
    Ok(())
}

/// What needs both sides stops the channel with its place; skipped, it leaves nothing behind, and what follows is applied.
fn refusals(kind: Kind) -> Result<()> {
    let pair = Pair::start_with(kind, &["--binlog-format=STATEMENT"], &[])?;
    let part = ["--only", "d.a", "--until-end"];
    let run = || -> Result<Run> { pair.begin(&part)?.wait() };
    pair.source.run_script(
        b"CREATE DATABASE d; CREATE TABLE d.a (v INT PRIMARY KEY, n INT); CREATE TABLE d.b LIKE d.a; INSERT INTO d.a VALUES (1, 1); INSERT INTO d.b VALUES (1, 5)",
    )?;
    run()?.successful()?;
    let mut value = 10;
    for (sql, word) in [
        ("UPDATE d.a, d.b SET a.n = b.n, b.n = 0 WHERE a.v = b.v", "on both sides"),
        ("INSERT INTO d.a SELECT v + 1, n FROM d.b", "reads d.b"),
        ("CREATE TABLE d.x LIKE d.a; RENAME TABLE d.a TO d.c, d.x TO d.a", "d.a is renamed to d.c"),
        ("CREATE TRIGGER d.t AFTER INSERT ON d.a FOR EACH ROW DELETE FROM d.b", "names d.b"),
    ] {
        pair.source.run_script(sql.as_bytes())?;
        let stopped = run()?;
        refused_with_remedy(&stopped, &[word]).with_context(|| sql.to_owned())?;
        let position = pair.target.scalar("SELECT position FROM heddle.stops WHERE channel = 'default'")?;
        heddle(&["channel", "skip", "default", "--to", &pair.target.url(), "--position", &position, "--yes"])?
            .successful()?;
        run()?.successful().with_context(|| sql.to_owned())?;
        if sql.starts_with("CREATE TRIGGER") {
            break;
        }
        // It goes on.
        value += 1;
        pair.source.run_script(format!("INSERT INTO d.a VALUES ({value}, 0)").as_bytes())?;
        run()?.successful()?;
        let found = pair.target.scalar(&format!("SELECT COUNT(*) FROM d.a WHERE v = {value}"))?;
        ensure!(found == "1", "{sql}: what follows is not applied");
    }
    Ok(())
}

fn renamed(of: Checksums, names: &[(&str, &str)]) -> Checksums {
    of.into_iter()
        .filter_map(|(name, content)| {
            let (from, to) = names.iter().find(|(from, _)| name.starts_with(from))?;
            Some((name.replacen(from, to, 1), content))
        })
        .collect()
}

/// Rows and statements under other names, through kills: each exactly once.
fn renames(kind: Kind, format: &str, kills: u32) -> Result<()> {
    let seed = e2e::seed(rand::random_range(0..1 << 31), "filters -- --include-ignored");
    let mut random = StdRng::seed_from_u64(seed);
    let pair = Pair::start_with(kind, &[&format!("--binlog-format={format}")], &[])?;
    let options = [
        "--only",
        "shop",
        "--only",
        "crm.a",
        "--rename",
        "shop.b=store.b_old",
        "--rename",
        "shop=store",
        "--rename",
        "crm.a=store.people",
    ];
    pair.source.run_script(definitions().as_bytes())?;
    // Tables of one schema alone do not make another one.
    pair.target.execute("CREATE DATABASE store")?;
    let run = pair.run_through_kills(&options, kills, 4, &mut random, |random| workload(random, 400, true))?;
    let names = [("`shop`.`b`", "`store`.`b_old`"), ("`shop`.", "`store`."), ("`crm`.`a`", "`store`.`people`")];
    let mut target = contents(&pair.target)?;
    target.retain(|name, _| name.starts_with("`store`"));
    assert_same(&renamed(contents(&pair.source)?, &names), &target).with_context(|| run.to_string())
}

/// Many schemas into one. A key that two have stops the channel by name, however large the groups are.
fn shards(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    let options = ["--only", "shard_*", "--rename", "shard_*=all_shards"];
    for shard in 1..4 {
        pair.source.run_script(
            format!("CREATE DATABASE shard_{shard}; USE shard_{shard}; CREATE TABLE t (id INT PRIMARY KEY, shard INT) ENGINE=InnoDB").as_bytes(),
        )?;
    }
    let mut sql = String::new();
    for id in 0..600 {
        let _ = writeln!(
            sql,
            "INSERT INTO shard_{shard}.t VALUES ({id}, {shard}); UPDATE shard_{shard}.t SET shard = shard + 10 WHERE id = {id};",
            shard = id % 3 + 1
        );
    }
    pair.source.run_script(sql.as_bytes())?;
    let run = pair.run_to_the_end(&options)?;
    let found =
        pair.target.scalar("SELECT CONCAT(COUNT(*), ' ', COUNT(DISTINCT shard), ' ', MIN(shard)) FROM all_shards.t")?;
    ensure!(found == "600 3 11", "{found}: {run}");
    pair.source.run_script(b"INSERT INTO shard_1.t VALUES (1000, 1); INSERT INTO shard_2.t VALUES (1000, 2); INSERT INTO shard_2.t VALUES (1001, 2)")?;
    let run = pair.begin(&[&["--until-end"], &options[..]].concat())?.wait()?;
    refused_with_remedy(&run, &["all_shards.t", "1000"])?;
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM all_shards.t WHERE id = 1000 AND shard = 2")? == "0");
    pair.source.run_script(b"ALTER TABLE shard_3.t ADD COLUMN x INT")?;
    Ok(())
}

/// A channel keeps its selection.
fn recorded(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.run_script(definitions().as_bytes())?;
    pair.run_to_the_end(&PART)?;
    let status = heddle(&["status", "--to", &pair.target.url()])?.successful()?;
    ensure!(status.stdout.contains("--only shop --ignore shop.log"), "{status}");
    for other in [&[][..], &["--only", "shop"], &["--only", "shop", "--ignore", "shop.log", "--rename", "shop=store"]] {
        let run = pair.begin(&[&["--until-end"], other].concat())?.wait()?;
        refused_with_remedy(&run, &["--only shop --ignore shop.log", "--selection-changed"])?;
    }
    // In another order it is the same.
    pair.run_to_the_end(&["--ignore", "shop.log", "--only", "shop"])?;
    pair.source.run_script(b"INSERT INTO shop.log (id) VALUES (1)")?;
    pair.target.execute("CREATE TABLE shop.log (id INT PRIMARY KEY, n INT, s VARCHAR(40), KEY n (n)) ENGINE=InnoDB")?;
    pair.run_to_the_end(&["--only", "shop", "--selection-changed"])?;
    pair.run_to_the_end(&["--only", "shop"])?;
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM shop.log")? == "1");
    Ok(())
}

/// Four channels take one schema each of one `heddle serve`: what they have together is what the source has. A definition that crosses is cut by each.
fn split(kind: Kind, kills: u32) -> Result<()> {
    let seed = e2e::seed(rand::random_range(0..1 << 31), "filters");
    let mut random = StdRng::seed_from_u64(seed);
    let pair = Pair::start(kind)?;
    let mirror = pair.source.dir().join("mirror");
    let served = Served::start(pair.source.port, &mirror, free_port()?, &[])?;
    let from = format!("mysql://{}:{}@127.0.0.1:{}", e2e::server::USER, e2e::server::PASSWORD, served.port);
    let parts: [&[&str]; 4] = [
        &["--only", "shop", "--channel", "one"],
        &["--only", "crm", "--channel", "two"],
        &["--only", "other.a", "--only", "other.b", "--channel", "three"],
        &["--ignore", "shop", "--ignore", "crm", "--ignore", "other.a", "--ignore", "other.b", "--channel", "four"],
    ];
    let begin = |part: usize, more: &[&str]| -> Result<Heddle> {
        let relay = pair.target.dir().join(format!("relay-{part}")).display().to_string();
        let to = pair.target.url();
        let mut arguments = vec!["replicate", "--from", &from, "--to", &to, "--json", "--relay-dir", &relay];
        arguments.extend(parts[part]);
        arguments.extend(more);
        Heddle::start(&arguments)
    };
    pair.source.run_script(definitions().as_bytes())?;
    let mut running = (0..4).map(|part| begin(part, &[])).collect::<Result<Vec<_>>>()?;
    for _ in 0..kills {
        pair.source.run_script(workload(&mut random, 150, false).as_bytes())?;
        let part = random.random_range(0..4);
        running[part].kill()?;
        let killed = std::mem::replace(&mut running[part], begin(part, &[])?);
        killed.wait()?;
    }
    pair.source.run_script(b"CREATE TABLE shop.x (v INT); CREATE TABLE crm.x (v INT); CREATE TABLE other.x (v INT); USE crm; DROP TABLE shop.x, crm.x, other.x, other.a")?;
    pair.source.run_script(workload(&mut random, 50, false).replace("other.a ", "other.b ").as_bytes())?;
    for one in running {
        one.kill()?;
        one.wait()?;
    }
    for part in 0..4 {
        begin(part, &["--until-end"])?.wait()?.successful()?;
    }
    served.kill()?;
    pair.assert_equal()
}

/// A replica with filters of its own is rescued with their meaning, and goes on by itself.
fn rescued(kind: Kind) -> Result<()> {
    let mut random = StdRng::seed_from_u64(e2e::seed(51, "filters"));
    let lagging = Lagging::empty(kind, By::Gtid, &NATIVE_PART)?;
    lagging.source.run_script(definitions().as_bytes())?;
    lagging.caught_up()?;
    stop_applier(&lagging.replica)?;
    lagging.source.run_script(workload(&mut random, 300, true).as_bytes())?;
    let look = lagging.rescue(&["--dry-run"])?.successful()?;
    ensure!(
        look.stdout.contains("--replicate-wild-do-table") || look.stderr.contains("--replicate-wild-do-table"),
        "{look}"
    );
    start_native(&lagging.replica)?;
    let run = lagging.rescue(&["--anyway"])?.successful()?;
    lagging.source.run_script(workload(&mut random, 30, true).as_bytes())?;
    lagging.caught_up()?;
    let mut expected = renamed(contents(&lagging.source)?, &[("`shop`.", "`shop`.")]);
    expected.retain(|name, _| name != "`shop`.`log`");
    assert_same(&expected, &contents(&lagging.replica)?).with_context(|| run.to_string())
}

/// The same with other names of schemas. `per_channel`: of the channel alone, set while it runs (MySQL).
fn rescued_renamed(kind: Kind, per_channel: bool) -> Result<()> {
    let mut random = StdRng::seed_from_u64(e2e::seed(52, "filters"));
    let options =
        ["--replicate-rewrite-db=shop->store", "--replicate-do-db=store", "--replicate-ignore-table=store.log"];
    let lagging = Lagging::empty(kind, By::Gtid, if per_channel { &[] } else { &options })?;
    let hidden = |sql: &str| format!("SET sql_log_bin=0;\n{sql}");
    lagging.source.run_script(hidden(&definitions()).as_bytes())?;
    lagging.replica.run_script(hidden(&definitions().replace("shop", "store")).as_bytes())?;
    stop_applier(&lagging.replica)?;
    if per_channel {
        lagging.replica.execute(
            "CHANGE REPLICATION FILTER REPLICATE_REWRITE_DB = ((shop, store)), REPLICATE_DO_DB = (store), REPLICATE_IGNORE_TABLE = (store.log) FOR CHANNEL ''",
        )?;
    }
    lagging.source.run_script(workload(&mut random, 300, false).as_bytes())?;
    let look = lagging.rescue(&["--dry-run"])?.successful()?;
    let shown = format!("{}{}", look.stdout, look.stderr);
    ensure!(shown.contains("--replicate-rewrite-db 'shop->store'"), "{look}");
    start_native(&lagging.replica)?;
    let run = lagging.rescue(&["--anyway"])?.successful()?;
    lagging.source.run_script(workload(&mut random, 30, false).as_bytes())?;
    lagging.caught_up()?;
    let part = |of: Checksums, from: &str| {
        let mut part = renamed(of, &[(from, "`store`.")]);
        part.remove("`store`.`log`");
        part
    };
    assert_same(&part(contents(&lagging.source)?, "`shop`."), &part(contents(&lagging.replica)?, "`store`."))
        .with_context(|| run.to_string())?;
    let left_out = "SELECT (SELECT COUNT(*) FROM crm.a) + (SELECT COUNT(*) FROM store.log)";
    ensure!(lagging.replica.scalar(left_out)? == "0");
    Ok(())
}

/// A foreign key from before the channel: what cascades on the source would be missing.
fn cascades(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    let tables = b"SET sql_log_bin=0; CREATE DATABASE d; CREATE TABLE d.p (id INT PRIMARY KEY); CREATE TABLE d.q (id INT PRIMARY KEY); \
        CREATE TABLE d.c (id INT PRIMARY KEY, p INT, q INT, CONSTRAINT key_of_p FOREIGN KEY (p) REFERENCES d.p (id) ON DELETE SET NULL, \
        CONSTRAINT key_of_q FOREIGN KEY (q) REFERENCES d.q (id))";
    pair.source.run_script(tables)?;
    pair.target.run_script(tables)?;
    pair.source.run_script(b"INSERT INTO d.c VALUES (1, NULL, NULL)")?;
    for more in ["--until-end", "--dry-run"] {
        let run = pair.begin(&["--only", "d.c", more])?.wait()?;
        ensure!(format!("{}{}", run.stdout, run.stderr).contains("key_of_p"), "{more}: {run}");
    }
    refused_with_remedy(&pair.begin(&["--only", "d.c", "--until-end"])?.wait()?, &["d.c", "d.p", "key_of_p"])?;
    let all = pair.begin(&["--only", "d", "--dry-run"])?.wait()?;
    ensure!(!format!("{}{}", all.stdout, all.stderr).contains("key_of_p"), "{all}");
    pair.target.execute("ALTER TABLE d.c DROP FOREIGN KEY key_of_p")?;
    pair.run_to_the_end(&["--only", "d.c"])?;
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM d.c")? == "1");
    Ok(())
}

e2e::tests! {
    rows_beside_a_native_replica_mysql: beside_native(MYSQL_9_7, "ROW", &[]);
    rows_beside_a_native_replica_mariadb: beside_native(MARIADB_10_11, "ROW", &[]);
    statements_beside_a_native_replica_mysql: beside_native(MYSQL_9_7, "STATEMENT", &[]);
    statements_beside_a_native_replica_mariadb: beside_native(MARIADB_10_11, "STATEMENT", &[]);
    gtids_beside_a_native_replica_mysql: beside_native(MYSQL_9_7, "ROW", &["--gtids", "preserve"]);
    gtids_beside_a_native_replica_mariadb: beside_native(MARIADB_10_11, "ROW", &["--gtids", "preserve"]);
    what_crosses_is_cut_mysql: crossings(MYSQL_9_7);
    what_crosses_is_cut_mariadb: crossings(MARIADB_10_11);
    what_needs_both_sides_stops_mysql: refusals(MYSQL_9_7);
    what_needs_both_sides_stops_mariadb: refusals(MARIADB_10_11);
    other_names_through_kills_mysql: renames(MYSQL_9_7, "ROW", 6);
    other_names_through_kills_mariadb: renames(MARIADB_10_11, "ROW", 6);
    other_names_in_statements_mysql: renames(MYSQL_9_7, "STATEMENT", 3);
    other_names_in_statements_mariadb: renames(MARIADB_10_11, "STATEMENT", 3);
    shards_become_one_mysql: shards(MYSQL_9_7);
    shards_become_one_mariadb: shards(MARIADB_10_11);
    a_channel_keeps_its_selection_mysql: recorded(MYSQL_9_7);
    a_channel_keeps_its_selection_mariadb: recorded(MARIADB_10_11);
    four_channels_read_one_server_mysql: split(MYSQL_9_7, 6);
    four_channels_read_one_server_mariadb: split(MARIADB_10_11, 6);
    a_replica_with_filters_is_rescued_mysql: rescued(MYSQL_9_7);
    a_replica_with_filters_is_rescued_mariadb: rescued(MARIADB_10_11);
    a_replica_with_other_names_is_rescued_mysql: rescued_renamed(MYSQL_9_7, false);
    a_replica_with_other_names_is_rescued_mariadb: rescued_renamed(MARIADB_10_11, false);
    a_channel_with_other_names_is_rescued_mysql: rescued_renamed(MYSQL_9_7, true);
    a_key_from_before_the_channel_mysql: cascades(MYSQL_9_7);
    a_key_from_before_the_channel_mariadb: cascades(MARIADB_10_11);
}
