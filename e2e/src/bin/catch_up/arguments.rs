//! The options of the benchmark, and what each section takes from them.

use super::contenders::Named;
use anyhow::{Result, ensure};
use e2e::bench::arguments::{each, list};
use e2e::bench::stage::Workload;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7};
use e2e::sysbench::{Load, Script};
use std::path::PathBuf;

const SECTIONS: [&str; 13] = [
    "catch-up",
    "gtids",
    "settings",
    "workloads",
    "slow-disk",
    "cold",
    "keep-up",
    "shapes",
    "writers",
    "tables",
    "growth",
    "receive",
    "tuning",
];

const KINDS: [Kind; 2] = [MYSQL_9_7, MARIADB_10_11];
const RATES: [u32; 2] = [1_000, 3_000];

pub struct Arguments {
    pub sections: Vec<String>,
    pub transactions: u64,
    pub sessions: u32,
    pub kinds: Vec<Kind>,
    pub only: String,
    pub workloads: String,
    pub repeat: usize,
    pub rates: Vec<u32>,
    pub more: More,
    pub output: PathBuf,
}

/// Options for all that take part, beside those of the section.
#[derive(Default)]
pub struct More {
    pub target: Vec<String>,
    pub heddle: Vec<String>,
}

/// What was typed; what was not is as it usually is.
pub fn arguments() -> Result<Arguments> {
    let mut parsed = Arguments {
        sections: SECTIONS.map(str::to_owned).to_vec(),
        transactions: 20_000,
        sessions: 16,
        kinds: KINDS.to_vec(),
        only: String::new(),
        workloads: String::new(),
        repeat: 1,
        rates: RATES.to_vec(),
        more: More::default(),
        output: e2e::repository().join("bench/results/benchmarks.md"),
    };
    each(|name, value| {
        match name {
            "--sections" => parsed.sections = list(value)?,
            "--transactions" => parsed.transactions = value.parse()?,
            "--sessions" => parsed.sessions = value.parse()?,
            "--servers" => parsed.kinds = list(value)?,
            "--only" => value.clone_into(&mut parsed.only),
            "--workloads" => value.clone_into(&mut parsed.workloads),
            "--repeat" => parsed.repeat = value.parse()?,
            "--rates" => parsed.rates = list(value)?,
            "--target-options" => parsed.more.target = words(value),
            "--heddle-options" => parsed.more.heddle = words(value),
            "--output" => parsed.output = value.into(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    ensure!(parsed.repeat > 0, "--repeat needs at least 1");
    for section in &parsed.sections {
        ensure!(SECTIONS.contains(&section.as_str()), "unknown section {section}; known: {}", SECTIONS.join(", "));
    }
    Ok(parsed)
}

fn words(value: &str) -> Vec<String> {
    value.split_whitespace().map(str::to_owned).collect()
}

impl Arguments {
    /// Those of the list that take part.
    pub fn of(&self, mut list: Vec<Named>) -> Vec<Named> {
        list.retain(|(name, _)| holds_one_of(name, &self.only));
        list
    }

    pub fn has(&self, workload: &Workload) -> bool {
        holds_one_of(workload.title, &self.workloads)
    }

    /// What makes a section again.
    pub fn command(&self, section: &str) -> String {
        let option = |name: &str, value: &str| match value {
            "" => String::new(),
            _ => format!(" --{name} '{value}'"),
        };
        let servers = if self.kinds == KINDS {
            String::new()
        } else {
            self.kinds.iter().map(Kind::to_string).collect::<Vec<_>>().join(",")
        };
        let rates = match section {
            "keep-up" if self.rates != RATES => self.rates.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
            _ => String::new(),
        };
        format!(
            "bench/catch-up --sections {section} --transactions {} --repeat {}{}{}{}{}{}{}",
            self.transactions,
            self.repeat,
            option("servers", &servers),
            option("rates", &rates),
            option("only", &self.only),
            option("workloads", &self.workloads),
            option("target-options", &self.more.target.join(" ")),
            option("heddle-options", &self.more.heddle.join(" "))
        )
    }

    pub fn workload(
        &self,
        title: &'static str,
        script: Script<'static>,
        tables: u32,
        rows: u32,
        share: u64,
    ) -> Workload {
        let events = (self.transactions / share).max(100);
        Workload { title, script, load: Load { tables, rows, threads: self.sessions, events, seconds: 0 } }
    }

    pub fn updates(&self, share: u64) -> Workload {
        self.workload("oltp_update_non_index", "oltp_update_non_index".into(), 8, 50_000, share)
    }
}

/// `texts`: separated by `|`; none stands for all.
fn holds_one_of(name: &str, texts: &str) -> bool {
    texts.split('|').any(|text| name.contains(text))
}
