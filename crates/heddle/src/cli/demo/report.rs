//! What `heddle demo` shows: pure functions of its results.

use std::fmt::Write as _;

use serde::Serialize;

use output::numbers::thousands;
use output::shell::shell_quoted;

/// All that a demo found out. `--json`: names and units are stable; fields may be added.
#[derive(Debug, Serialize)]
pub struct DemoReport {
    pub seed: u64,
    pub sessions: u32,
    /// Transactions in the log, those that create and fill the tables included.
    pub transactions: u64,
    pub rows: u64,
    pub log_files: usize,
    pub log_bytes: u64,
    /// Median time of one durable write where the stores are.
    pub fsync_us: u64,
    pub runs: Vec<Run>,
    /// Every run's state is the serial one's, and that is the one the workload predicts.
    pub states_equal: bool,
}

/// One replication of the whole log.
#[derive(Debug, Serialize)]
pub struct Run {
    pub workers: usize,
    pub grouping: bool,
    /// Runs, of which the numbers are the median's.
    pub repetitions: usize,
    pub seconds: f64,
    pub transactions_per_second: f64,
    /// Against the first run.
    pub speedup: f64,
    /// Target transactions.
    pub groups: u64,
    pub retries: u64,
    pub state_equal: bool,
}

/// Whether and how to colour.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub colour: bool,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// The head of the table.
pub fn header(style: Style) -> String {
    let line = format!(
        "{:>7}  {:<8}  {:>14}  {:>7}  {:>19}  {}",
        "workers", "grouping", "transactions/s", "speedup", "target transactions", "state as serial"
    );
    style.paint("1", &line)
}

/// A line of the table.
pub fn line(run: &Run, style: Style) -> String {
    let equal = if run.state_equal { style.paint("32", "yes") } else { style.paint("1;31", "NO") };
    format!(
        "{:>7}  {:<8}  {:>14}  {:>7}  {:>19}  {equal}",
        run.workers,
        if run.grouping { "on" } else { "off" },
        thousands(run.transactions_per_second.round() as u64),
        format!("{:.*}x", usize::from(run.speedup < 100.0), run.speedup),
        thousands(run.groups)
    )
}

/// What was generated, before the table.
pub fn introduction(report: &DemoReport) -> String {
    format!(
        "A generated shop: {} transactions ({} rows) of {} concurrent sessions, in {} MySQL 8 binary log {} ({:.1} MB).\n\
         Replicated into the embedded store, commits durable (one fsync takes {:.2} ms here), commit order preserved:\n",
        thousands(report.transactions),
        thousands(report.rows),
        report.sessions,
        report.log_files,
        if report.log_files == 1 { "file" } else { "files" },
        report.log_bytes as f64 / 1e6,
        report.fsync_us as f64 / 1e3
    )
}

/// What the table says, and what to try next. `heddle` is how the program was called; `kept` where files are left.
pub fn conclusion(report: &DemoReport, heddle: &str, kept: Option<&str>, style: Style) -> String {
    let mut text = String::from("\n");
    if report.states_equal {
        text += "Every run ended with the rows that the workload predicts, checked table by table.\n";
    } else {
        text += &style.paint("1;31", "STATES DIFFER: this is a bug in heddle; please report it with the seed.");
        let _ = writeln!(text, "\nseed {}, {} transactions", report.seed, report.transactions);
    }
    let _ = writeln!(text, "\n{}", style.paint("1", "Try next"));
    let mut tries = Vec::new();
    match kept {
        Some(dir) => {
            let dir = shell_quoted(dir);
            tries.push((
                "the log again, into a store of its own",
                format!("{heddle} replicate --from {dir}/log --to store:{dir}/mine"),
            ));
            tries.push(("where that is", format!("{heddle} status --to store:{dir}/mine")));
            tries.push((
                "the log, as MySQL's own tool reads it",
                format!("mysqlbinlog -vv {dir}/log/binlog.000001 | less"),
            ));
        }
        None => tries.push(("keep the log and the stores", format!("{heddle} demo --keep heddle-demo"))),
    }
    tries.push(("many hot rows, longer transactions", format!("{heddle} demo --hot 80 --long 5")));
    let servers = "replicate --from mysql://repl@source:3306 --to mysql://heddle@replica:3306 --dry-run";
    tries.push(("your own servers; this only checks both", format!("{heddle} {servers}")));
    for (what, command) in tries {
        let _ = writeln!(text, "  {:<42}{}", what, style.paint("36", &command));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(states_equal: bool) -> DemoReport {
        let run = |workers, grouping, transactions_per_second: f64| Run {
            workers,
            grouping,
            repetitions: 1,
            seconds: 1.0,
            transactions_per_second,
            speedup: transactions_per_second / 400.0,
            groups: 5_049,
            retries: 0,
            state_equal: states_equal,
        };
        DemoReport {
            seed: 1,
            sessions: 32,
            transactions: 5_049,
            rows: 31_415,
            log_files: 1,
            log_bytes: 3_600_000,
            fsync_us: 2_500,
            runs: vec![run(1, false, 400.0), run(4, true, 1_234_567.0)],
            states_equal,
        }
    }

    #[test]
    fn the_table_lines_up() {
        let report = report(true);
        let plain = Style { colour: false };
        let lines: Vec<String> =
            std::iter::once(header(plain)).chain(report.runs.iter().map(|run| line(run, plain))).collect();
        assert_eq!(
            lines,
            [
                "workers  grouping  transactions/s  speedup  target transactions  state as serial",
                "      1  off                  400     1.0x                5,049  yes",
                "      4  on             1,234,567    3086x                5,049  yes",
            ]
        );
        assert!(line(&report.runs[0], Style { colour: true }).contains("\x1b[32myes\x1b[0m"));
    }

    #[test]
    fn what_differs_is_said_and_commands_can_be_copied() {
        let plain = Style { colour: false };
        assert!(conclusion(&report(false), "heddle", None, plain).contains("STATES DIFFER"));
        let text = conclusion(&report(true), "target/release/heddle", Some("/tmp/my demo"), plain);
        assert!(!text.contains("STATES DIFFER"));
        assert!(
            text.contains("target/release/heddle replicate --from '/tmp/my demo'/log --to store:'/tmp/my demo'/mine")
        );
    }
}
