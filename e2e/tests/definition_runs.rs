//! Logs of little but definitions and account statements, with kills: each is executed once, in its order, whatever was under way.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::pair::Pair;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

const STATEMENTS: usize = 500;
const TABLES: u32 = 12;

/// Statements of one session. Some fail on the source, and are not logged then.
fn definitions(random: &mut StdRng, schema: &str) -> String {
    let mut sql = format!("CREATE DATABASE IF NOT EXISTS {schema};\nUSE {schema};\n");
    for number in 0..STATEMENTS {
        let [one, other] = [0; 2].map(|_| format!("t{}", random.random_range(0..TABLES)));
        let user = format!("u{}", random.random_range(0..4));
        let statement = match random.random_range(0..20) {
            0..=3 => format!("CREATE TABLE {one} (id INT PRIMARY KEY, n INT, UNIQUE KEY n (n)) ENGINE=InnoDB"),
            4 => format!("CREATE TABLE {one} LIKE {other}"),
            5 => format!(
                "CREATE TABLE {one} (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES {other} (id)) ENGINE=InnoDB"
            ),
            6..=7 => format!("ALTER TABLE {one} ADD COLUMN c{} INT DEFAULT {number}", number % 7),
            8 => format!("ALTER TABLE {one} DROP COLUMN c{}", number % 7),
            9 => format!("ALTER TABLE {one} CHANGE COLUMN n n INT NULL COMMENT 'of {number}'"),
            10 => format!("ALTER TABLE {one} RENAME TO {other}"),
            11 => format!("RENAME TABLE {one} TO x, {other} TO {one}, x TO {other}"),
            12 => format!("TRUNCATE TABLE {one};\nTRUNCATE TABLE {other};\nTRUNCATE TABLE {one}"),
            13 => format!("DROP TABLE IF EXISTS {one}, {other}"),
            14 => format!("CREATE INDEX i{number} ON {one} (n)"),
            15 => format!("INSERT INTO {one} (id) VALUES ({number}), ({number} + 1000)"),
            16 => format!(
                "UPDATE {one} SET n = {number} WHERE id = (SELECT id FROM (SELECT MIN(id) AS id FROM {one}) AS d)"
            ),
            17 => format!("CREATE USER {user}@localhost IDENTIFIED BY 'secret {number}'"),
            18 => {
                let statements: Vec<String> = (0..random.random_range(1..6))
                    .map(|_| match random.random_range(0..3) {
                        0 => format!("REVOKE INSERT ON {schema}.{one} FROM {user}@localhost"),
                        1 => format!("GRANT SELECT, INSERT ON {schema}.{one} TO {user}@localhost"),
                        _ => format!("GRANT INSERT ON {schema}.{other} TO {user}@localhost"),
                    })
                    .collect();
                statements.join(";\n")
            }
            _ => {
                let ways =
                    ["REVOKE INSERT ON {t} FROM {u}", "DROP USER {u}", "CREATE VIEW v AS SELECT 1", "DROP VIEW v"];
                let way = ways.choose(random).copied().unwrap_or_default();
                way.replace("{t}", &format!("{schema}.{one}")).replace("{u}", &format!("{user}@localhost"))
            }
        };
        let _ = writeln!(sql, "{statement};");
    }
    sql
}

#[derive(Clone, Copy, PartialEq)]
enum Victim {
    Heddle,
    Target,
}

fn survive_kills(kind: Kind, victim: Victim, kills: u32, options: &[&str]) -> Result<()> {
    let seed = e2e::seed(rand::random_range(0..1 << 31), "definition_runs -- --include-ignored");
    let mut random = StdRng::seed_from_u64(seed);
    let pair = Pair::start(kind)?;
    let mut done = 0;
    while done < kills {
        // A backlog, so that many come one behind the other.
        for session in ["one", "two"] {
            e2e::workload::run_script(&pair.source, &definitions(&mut random, session))?;
        }
        let mut running = pair.begin(options)?;
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(random.random_range(100..700)));
            if running.has_ended()? {
                break;
            }
            if victim == Victim::Heddle {
                running.kill()?;
                running.wait()?;
                running = pair.begin(options)?;
            } else {
                pair.target.kill()?;
                pair.target.restart(&[])?;
            }
            done += 1;
        }
        if running.has_ended()? {
            let run = running.wait()?;
            ensure!(!run.stderr.contains("the channel stopped"), "{run}");
        } else {
            running.kill()?;
            running.wait()?;
        }
        pair.to_the_end(options).with_context(|| format!("after {done} kills"))?;
    }
    Ok(())
}

fn kills() -> u32 {
    std::env::var("HEDDLE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(100)
}

e2e::tests! {
    mysql: survive_kills(MYSQL_9_7, Victim::Heddle, 4, &[]);
    mariadb: survive_kills(MARIADB_10_11, Victim::Heddle, 4, &[]);
    #[ignore = "scripts/nightly kills"]
    mysql_kills: survive_kills(MYSQL_9_7, Victim::Heddle, kills(), &[]);
    #[ignore = "scripts/nightly kills"]
    mariadb_kills: survive_kills(MARIADB_10_11, Victim::Heddle, kills(), &[]);
    #[ignore = "scripts/nightly kills"]
    mysql_target_kills: survive_kills(MYSQL_9_7, Victim::Target, kills(), &[]);
    #[ignore = "scripts/nightly kills"]
    mariadb_target_kills: survive_kills(MARIADB_10_11, Victim::Target, kills(), &[]);
    #[ignore = "scripts/nightly kills"]
    old_mysql_kills: "mysql-5.7.22".parse().and_then(|kind| survive_kills(kind, Victim::Heddle, kills(), &[]));
}
