//! One workload on one server: predicted, then measured.

use super::arguments::Arguments;
use anyhow::{Context, Result, ensure};
use e2e::bench::contender::{Contender, measure, target};
use e2e::bench::stage::{Stage, Workload};
use e2e::bench::version;
use e2e::heddle::heddle;
use e2e::server::Kind;
use e2e::sysbench::{Load, Script};
use serde_json::Value;
use std::path::Path;

/// One way to apply a log.
pub struct Setting {
    /// As `heddle simulate --policy` names it.
    pub policy: &'static str,
    pub workers: u16,
    /// Arguments of heddle, or options of the replica.
    options: Vec<String>,
    ours: bool,
}

/// Transactions per second.
pub struct Line {
    pub policy: &'static str,
    pub workers: u16,
    pub predicted: f64,
    pub measured: f64,
    /// What was predicted, with the same costs, of one after the other.
    pub serial: f64,
}

pub struct Table {
    pub version: String,
    pub workload: &'static str,
    pub transactions: u64,
    pub rows: u64,
    /// What the calibration has found, in words.
    pub costs: String,
    pub lines: Vec<Line>,
    /// Settings that could not be measured.
    pub failed: usize,
}

impl Table {
    /// Predicted and measured speedup over the server's own serial replication.
    pub fn speedups(&self, line: &Line) -> (f64, f64) {
        let serial = self.lines.iter().find(|line| line.policy == "serial");
        let measured = serial.map_or(f64::NAN, |line| line.measured);
        (line.predicted / line.serial, line.measured / measured)
    }
}

macro_rules! shape {
    ($name:literal) => {
        Script { name: "bench/workloads/shapes.lua", options: &[concat!("--shape=", $name)] }
    };
}

pub fn workloads(arguments: &Arguments) -> Vec<Workload> {
    let workload = |title: &'static str, script: Script<'static>, tables: u32, rows: u32, share: u64| Workload {
        title,
        script,
        load: Load {
            tables,
            rows,
            threads: arguments.sessions,
            events: (arguments.transactions / share).max(100),
            seconds: 0,
        },
    };
    let tpcc = Script { name: "bench/workloads/tpcc_like.lua", options: &[] };
    let all = [
        workload("oltp_update_non_index", "oltp_update_non_index".into(), 4, 20_000, 1),
        workload("oltp_write_only", "oltp_write_only".into(), 4, 20_000, 2),
        workload("TPC-C-like (4 warehouses)", tpcc, 4, 2_000, 3),
        workload("Zipf 0.99 over 20,000 rows", shape!("zipf"), 1, 20_000, 1),
        workload("ten hot rows", shape!("hot10"), 1, 10, 2),
    ];
    all.into_iter().filter(|workload| workload.title.contains(&arguments.workloads)).collect()
}

fn settings(kind: Kind, workers: &[u16]) -> Vec<Setting> {
    let mut list = Vec::new();
    let mut native = |policy, workers, options: &[&str]| {
        list.push(Setting {
            policy,
            workers,
            options: options.iter().map(|&text| text.to_owned()).collect(),
            ours: false,
        });
    };
    if kind.is_mariadb() {
        native("serial", 1, &["--slave-parallel-threads=0"]);
        for &count in workers {
            let threads = format!("--slave-parallel-threads={count}");
            for (policy, mode) in [
                ("mariadb-conservative", "--slave-parallel-mode=conservative"),
                ("mariadb-optimistic", "--slave-parallel-mode=optimistic"),
                ("mariadb-aggressive", "--slave-parallel-mode=aggressive"),
            ] {
                native(policy, count, &[&threads, mode]);
            }
        }
    } else {
        native("serial", 1, &["--replica-parallel-workers=1"]);
        for &count in workers {
            let threads = format!("--replica-parallel-workers={count}");
            for (policy, order) in [
                ("mysql-logical-clock", "--replica-preserve-commit-order=ON"),
                ("mysql-logical-clock-unordered", "--replica-preserve-commit-order=OFF"),
            ] {
                native(policy, count, &[&threads, order]);
            }
        }
    }
    let mut ours = |policy, workers: u16, options: &[&str]| {
        let mut options: Vec<String> = options.iter().map(|&text| text.to_owned()).collect();
        options.extend(["--workers".to_owned(), workers.to_string()]);
        list.push(Setting { policy, workers, options, ours: true });
    };
    for &count in [1].iter().chain(workers) {
        ours("heddle", count, &["--grouping", "off"]);
        if count > 1 {
            ours("heddle-unordered", count, &["--grouping", "off", "--commit-order", "relaxed"]);
        }
    }
    for count in [1, 4] {
        ours("heddle-grouping", count, &["--grouping", "auto"]);
    }
    list
}

/// The report of `heddle simulate`. `costs`: of an earlier one; else they are measured on a replica that is as the measured ones will be.
fn predict(stage: &Stage, settings: &[Setting], options: &[&str], costs: Option<&Path>) -> Result<Value> {
    let replica = target(stage, Contender::Native(&[]), options)?;
    let mut policies: Vec<&str> = settings.iter().map(|setting| setting.policy).collect();
    policies.sort_unstable();
    policies.dedup();
    let mut workers: Vec<u16> = settings.iter().map(|setting| setting.workers).collect();
    workers.sort_unstable();
    workers.dedup();
    let workers: Vec<String> = workers.iter().map(u16::to_string).collect();
    let (policies, workers, url) = (policies.join(","), workers.join(","), replica.url());
    let files: Vec<String> = stage.logs.iter().map(|path| path.display().to_string()).collect();
    let mut line = vec!["simulate", "--json", "--schema", &url];
    let costs = costs.map(|path| path.display().to_string());
    match &costs {
        Some(path) => line.extend(["--costs", path]),
        None => line.extend(["--calibrate", &url, "--calibrate-logged"]),
    }
    line.extend(["--policy", &policies, "--workers", &workers]);
    line.extend(files.iter().map(String::as_str));
    heddle(&line)?.successful()?.summary()
}

fn predicted(report: &Value, setting: &Setting) -> Result<f64> {
    let policies = report["policies"].as_array().context("policies")?;
    let policy = policies.iter().find(|policy| policy["policy"] == setting.policy).context("the policy")?;
    let runs = policy["runs"].as_array().context("runs")?;
    let run = runs.iter().find(|run| run["workers"] == setting.workers).context("the number of workers")?;
    run["transactions_per_second"].as_f64().context("a rate")
}

pub fn compare(kind: Kind, workload: &Workload, arguments: &Arguments) -> Result<Table> {
    let (groups, single): (Vec<Setting>, Vec<Setting>) =
        settings(kind, &arguments.workers).into_iter().partition(|setting| setting.policy.ends_with("grouping"));
    let (mut table, report) = measured(kind, workload, &single, arguments, None)?;
    let costs = tempfile::NamedTempFile::new()?;
    std::fs::write(costs.path(), report.to_string())?;
    let load = Load { events: workload.load.events * arguments.grouped.max(1), ..workload.load };
    let (longer, _) = measured(kind, &Workload { load, ..*workload }, &groups, arguments, Some(costs.path()))?;
    table.lines.extend(longer.lines);
    table.failed += longer.failed;
    Ok(table)
}

/// Predicts and measures on one log.
fn measured(
    kind: Kind,
    workload: &Workload,
    settings: &[Setting],
    arguments: &Arguments,
    costs: Option<&Path>,
) -> Result<(Table, Value)> {
    let stage = Stage::new(kind, workload)?;
    let of_replicas: Vec<&str> = arguments.options.iter().map(String::as_str).collect();
    let report = predict(&stage, settings, &of_replicas, costs)?;
    let transactions = number(&report, "transactions")?;
    ensure!(transactions > 0, "no transactions");
    let serial = report.get("serial_transactions_per_second").and_then(Value::as_f64).context("one after the other")?;
    let (mut lines, mut failed) = (Vec::new(), 0);
    for setting in settings {
        let options: Vec<&str> = setting.options.iter().map(String::as_str).collect();
        let contender = if setting.ours { Contender::Files(&options) } else { Contender::Applier(&options) };
        let named = || format!("{kind}, {}: {}, {} workers", workload.title, setting.policy, setting.workers);
        let run = || measure(&stage, contender, &of_replicas);
        let again = |error: anyhow::Error| {
            eprintln!("{}: {error:#}; once more", named());
            run()
        };
        let seconds = match run().or_else(again) {
            Ok(measured) => measured.seconds,
            Err(error) => {
                eprintln!("{}: {error:#}", named());
                failed += 1;
                continue;
            }
        };
        let measured = transactions as f64 / seconds;
        let predicted = predicted(&report, setting).with_context(named)?;
        eprintln!("{}: predicted {predicted:.0}, measured {measured:.0} ({:.2})", named(), predicted / measured);
        lines.push(Line { policy: setting.policy, workers: setting.workers, predicted, measured, serial });
    }
    if let Some(dir) = &arguments.keep {
        keep(
            &dir.join(format!("{kind}-{}-{transactions}", workload.title.replace([' ', '(', ')', ','], "_"))),
            &stage,
            &report,
            &lines,
        )?;
    }
    let table = Table {
        version: version(&stage.source)?,
        workload: workload.title,
        transactions,
        rows: number(&report, "rows")?,
        costs: report.get("costs").context("costs")?.to_string(),
        lines,
        failed,
    };
    Ok((table, report))
}

/// What the comparison rests on.
fn keep(dir: &Path, stage: &Stage, report: &Value, lines: &[Line]) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    for log in &stage.logs {
        std::fs::copy(log, dir.join(log.file_name().context("a file")?))?;
    }
    std::fs::write(dir.join("predicted.json"), serde_json::to_vec_pretty(report)?)?;
    let measured: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::json!({"policy": line.policy, "workers": line.workers, "rate": line.measured}))
        .collect();
    std::fs::write(dir.join("measured.json"), serde_json::to_vec_pretty(&measured)?)?;
    Ok(())
}

fn number(report: &Value, field: &str) -> Result<u64> {
    report.get(field).and_then(Value::as_u64).with_context(|| format!("no {field} in the report"))
}
