//! Every folder of `cases/`, on every server it names, in every way it is to be replicated.
//! A case of both vendors that names no way runs in one way on each of them; `HEDDLE_E2E_EVERY_WAY=1` runs both on both.
//! `HEDDLE_E2E_NATIVE=1` replicates with the servers' own replication instead, to test the cases themselves.
//! `HEDDLE_E2E_SERVERS=NAME,…` takes these servers instead of those that a case names, each for the cases that suit it: other versions.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::sync::Arc;

use anyhow::Result;
use e2e::case::{Case, DEFAULT_RUNS, NATIVE, Source, cases};
use e2e::pool::ServerPool;
use e2e::server::Kind;
use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut arguments = Arguments::from_args();
    // Two servers per case: more at once than this only makes each of them wait.
    arguments.test_threads = arguments.test_threads.or(Some(3));
    let native = std::env::var_os("HEDDLE_E2E_NATIVE").is_some();
    let folder = e2e::repository().join("e2e/cases");
    let (cases, servers) = match cases(&folder).and_then(|cases| Ok((cases, servers()?))) {
        Ok(found) => found,
        Err(error) => {
            eprintln!("{error:#}");
            std::process::exit(2);
        }
    };
    let pool = Arc::new(ServerPool::default());
    let mut trials = Vec::new();
    let every_way = std::env::var_os("HEDDLE_E2E_EVERY_WAY").is_some();
    for (number, case) in cases.into_iter().enumerate() {
        let runs = if !native {
            case.runs.clone()
        } else if case.is_known_natively() {
            vec![NATIVE.to_owned()]
        } else {
            Vec::new()
        };
        let kinds = kinds(&case, &servers);
        let takes_turns = !every_way && kinds.len() == 2 && runs == DEFAULT_RUNS;
        for (turn, kind) in (number..).zip(kinds) {
            // Stopped with the last of them.
            let source = Arc::new(Source::new(case.clone(), kind, Arc::clone(&pool)));
            let runs = if takes_turns { &runs[turn % 2..=turn % 2] } else { &runs[..] };
            for run in runs {
                let (case, run, source) = (case.clone(), run.clone(), Arc::clone(&source));
                trials.push(Trial::test(format!("{} · {kind} · {run}", case.name), move || {
                    case.check(&source, &run).map_err(|error| format!("{error:#}").into())
                }));
            }
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    eprintln!("{}", pool.end());
    conclusion.exit();
}

/// None: those that the cases name.
fn servers() -> Result<Vec<Kind>> {
    let Ok(names) = std::env::var("HEDDLE_E2E_SERVERS") else { return Ok(Vec::new()) };
    names.split(',').map(str::parse).collect()
}

fn kinds(case: &Case, servers: &[Kind]) -> Vec<Kind> {
    if servers.is_empty() {
        return case.kinds.clone();
    }
    servers.iter().copied().filter(|kind| case.suits(*kind)).collect()
}
