//! One mixed workload over pairs of servers, live, and the table of what works that comes of it.

use crate::pair::Pair;
use crate::server::Kind;
use crate::workload::{Size, Workload};
use anyhow::{Context, Result, ensure};
use std::fmt::Write;

/// Every version to itself, upward, and across where the servers themselves could.
pub const PAIRS: [(&str, &str); 36] = [
    ("mysql-5.6.14", "mysql-5.6.14"),
    ("mysql-5.7.22", "mysql-5.7.22"),
    ("mysql-8.0.15", "mysql-8.0.15"),
    ("mysql-8.0.46", "mysql-8.0.46"),
    ("mysql-8.4", "mysql-8.4"),
    ("mysql-9.7", "mysql-9.7"),
    ("mariadb-10.1", "mariadb-10.1"),
    ("mariadb-10.2", "mariadb-10.2"),
    ("mariadb-10.6", "mariadb-10.6"),
    ("mariadb-10.11", "mariadb-10.11"),
    ("mariadb-11.4", "mariadb-11.4"),
    ("mariadb-11.8", "mariadb-11.8"),
    ("mysql-5.6.14", "mysql-5.7.22"),
    ("mysql-5.6.14", "mysql-9.7"),
    ("mysql-5.7.22", "mysql-8.0.15"),
    ("mysql-5.7.22", "mysql-9.7"),
    ("mysql-5.7.22", "mysql-8.0.46"),
    ("mysql-8.0.15", "mysql-9.7"),
    ("mysql-8.0.46", "mysql-8.4"),
    ("mysql-8.4", "mysql-9.7"),
    ("mariadb-10.1", "mariadb-10.2"),
    ("mariadb-10.1", "mariadb-10.11"),
    ("mariadb-10.2", "mariadb-10.11"),
    ("mariadb-10.1", "mariadb-11.8"),
    ("mariadb-10.6", "mariadb-10.11"),
    ("mariadb-10.11", "mariadb-11.8"),
    ("mariadb-11.4", "mariadb-11.8"),
    ("mysql-5.7.22", "mariadb-10.2"),
    ("mysql-5.7.22", "mariadb-10.11"),
    ("mariadb-10.2", "mysql-5.7.22"),
    ("mariadb-10.11", "mysql-5.7.22"),
    ("mariadb-10.11", "mysql-9.7"),
    ("mysql-8.0.46", "mariadb-10.6"),
    ("mariadb-10.6", "mysql-8.4"),
    ("mysql-9.7", "mariadb-10.11"),
    ("mysql-9.7", "mariadb-11.8"),
];

/// Rows of types that every server has.
pub const ROWS: &str = include_str!("matrix_rows.sql");
/// What is defined after them.
pub const DEFINITIONS: &str = include_str!("matrix_definitions.sql");

const SEED: u64 = 2026;

/// The workload on `source`, replicated into `target` in two steps and two ways, compared after each.
pub fn check(source: Kind, target: Kind) -> Result<()> {
    // A session's own SQL mode decides, not the target's.
    let pair = Pair::start_two((source, &[]), (target, &[]))?;
    let size = Size {
        tables: 6,
        sessions: 3,
        transactions: 80,
        definitions_percent: 0,
        xa: false,
        replace: target.keeps_referring_rows() == source.keeps_referring_rows(),
        temporary: false,
        same_flavour: source.is_mariadb() == target.is_mariadb(),
        unlogged: true,
    };
    Workload::new(SEED, size, source).run(&pair.source)?;
    pair.source.execute(ROWS).context("the workload's rows")?;
    let run = pair.run_to_the_end(&[])?;
    pair.assert_same_rows().with_context(|| run.to_string())?;
    pair.source.execute(DEFINITIONS).context("the workload's definitions")?;
    Workload::new(SEED + 1, size, source).run(&pair.source)?;
    let run = pair.run_to_the_end(&["--grouping", "off", "--workers", "4"])?;
    pair.assert_same_rows().with_context(|| run.to_string())?;
    if size.same_flavour {
        pair.assert_same_collations()?;
    }
    let again = pair.run_to_the_end(&[])?;
    ensure!(again.number("transactions")? == 0, "the same command again applied something: {again}");
    Ok(())
}

/// Checks the pairs whose names hold `only`; the table as Markdown, and whether all went well.
pub fn run(only: &str) -> Result<(String, bool)> {
    let mut table = String::from("| Source | Target | |\n|---|---|---|\n");
    let mut well = true;
    for (source, target) in PAIRS {
        let name = format!("{source} {target}");
        if !name.contains(only) {
            continue;
        }
        eprintln!("repeat with: torture matrix '{name}'");
        let outcome = check(source.parse()?, target.parse()?);
        well &= outcome.is_ok();
        let text = match outcome {
            Ok(()) => "yes".to_owned(),
            Err(error) => {
                eprintln!("{name}: {error:#}");
                let text = format!("{error:#}");
                let reason =
                    text.lines().find(|line| line.contains("stopped:")).or(text.lines().next()).unwrap_or_default();
                format!(
                    "**no**: {}",
                    reason.trim().trim_start_matches("heddle: the channel stopped: ").replace('|', "/")
                )
            }
        };
        writeln!(table, "| {} | {} | {text} |", title(source), title(target))?;
    }
    Ok((table, well))
}

fn title(name: &str) -> String {
    name.replace("mysql-", "MySQL ").replace("mariadb-", "MariaDB ")
}
