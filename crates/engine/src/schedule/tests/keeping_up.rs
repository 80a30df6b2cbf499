//! How long transactions wait when the target keeps up, in virtual time: workers that take so long for a row and for a commit.

use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Microseconds.
type Time = u64;

#[derive(Clone, Copy, Debug)]
struct Load {
    transactions: u64,
    /// Between two that arrive, on the average; they come at random.
    every: Time,
    /// What a group costs beside its rows and its commit.
    group: Time,
    row: Time,
    commit: Time,
}

#[derive(Debug, Default)]
struct Seen {
    /// From arrival to commit, of each.
    latencies: Vec<Time>,
    commits: u64,
    /// The most groups that were with workers at once.
    in_flight_max: usize,
    end: Time,
}

impl Seen {
    fn mean(&self) -> Time {
        self.latencies.iter().sum::<Time>() / self.latencies.len() as Time
    }

    fn worst(&self) -> Time {
        self.latencies.iter().copied().max().unwrap_or(0)
    }
}

struct Busy {
    group: Arc<Group>,
    granted: bool,
    commits: bool,
    until: Time,
}

/// The shell's patience with what gathers.
const GATHER_MAX: Time = 50_000;

/// A Poisson process, the same each time.
fn arrivals(load: Load) -> Vec<Time> {
    let mut random = StdRng::seed_from_u64(1);
    let mut at = 0.0;
    let next = |_| {
        at -= load.every as f64 * (1.0 - random.random::<f64>()).ln();
        at as Time
    };
    (0..load.transactions).map(next).collect()
}

fn run(load: Load, grouping: Grouping, ahead_rows_min: usize) -> Seen {
    let limits = Limits { ahead_rows_min, ..Limits::new(grouping) };
    let mut scheduler = Scheduler::new(Config::new(4, CommitOrder::Preserve, limits, 0), Mark::default(), &[]);
    let mut workers: Vec<Option<Busy>> = (0..4).map(|_| None).collect();
    let arrivals = arrivals(load);
    let (mut now, mut arrived, mut dispatched) = (0, 0, 0);
    let mut seen = Seen::default();
    loop {
        while let Some(output) = scheduler.poll() {
            match output {
                Output::Dispatch { worker, group, run } => {
                    dispatched = now;
                    let until = now + load.group + load.row * group.rows() as Time;
                    workers[worker] = Some(Busy { group, granted: run.granted, commits: false, until });
                }
                Output::Grant { worker, .. } => workers[worker].as_mut().unwrap().granted = true,
                Output::LowWater(_) => {}
                Output::Finished => return Seen { end: now, ..seen },
                other => panic!("{other:?}"),
            }
        }
        seen.in_flight_max = seen.in_flight_max.max(scheduler.in_flight());
        let (mut turned, mut ended) = (false, Vec::new());
        for busy in workers.iter_mut().flatten().filter(|busy| busy.until <= now && busy.granted && !busy.commits) {
            (busy.commits, busy.until, turned) = (true, now + load.commit, true);
        }
        for slot in &mut workers {
            ended.extend(slot.take_if(|busy| busy.commits && busy.until <= now));
        }
        for Busy { group, .. } in &ended {
            seen.commits += 1;
            seen.latencies.extend(group.transactions.iter().map(|t| now - arrivals[t.seq as usize - 1]));
            scheduler.committed(group.id);
        }
        if turned || !ended.is_empty() {
            continue;
        }
        let next_arrival = arrivals.get(arrived as usize).copied();
        let phases = workers.iter().flatten().map(|busy| busy.until);
        let patience = dispatched + GATHER_MAX + 1;
        let next = phases.chain(next_arrival).chain([patience]).filter(|&time| time > now).min();
        if next_arrival.is_some_and(|time| time <= now) {
            let key = (arrived % 250) as u8 + 1;
            let spec = Spec { rows: vec![(key, key, 0)], barrier: false };
            arrived += 1;
            scheduler.enqueue(transaction(arrived, &spec), Placement::default());
            if arrived == load.transactions {
                scheduler.end();
            }
        } else {
            now = next.unwrap_or(now);
            if now >= patience {
                scheduler.overdue();
                dispatched = now;
            }
        }
    }
}

/// The commit that is under way, then its own, whatever the rate that the target can take.
#[test]
fn a_transaction_waits_for_two_commits_at_most() {
    let ahead = Limits::new(Grouping::Auto).ahead_rows_min;
    for (every, commit) in
        [(5_000, 1_000), (1_000, 1_000), (300, 1_000), (100, 1_000), (1_000, 400), (300, 400), (1_000, 7_000)]
    {
        let load = Load { transactions: 5_000, every, group: 100, row: 10, commit };
        let seen = run(load, Grouping::Auto, ahead);
        let longest = load.group + ahead as Time * load.row + commit;
        assert!(seen.worst() <= 2 * longest, "{load:?}: {} µs", seen.worst());
        assert!(seen.in_flight_max <= 2, "{load:?}: {}", seen.in_flight_max);
        // Groups that are formed at once stand in line.
        let eager = run(load, Grouping::Auto, 0);
        assert!(seen.mean() <= eager.mean(), "{load:?}: {} µs, at once {} µs", seen.mean(), eager.mean());
    }
}

/// More than one connection can apply: groups overlap, and it takes no longer than with groups that are formed at once.
#[test]
fn a_lag_is_worked_off_as_fast() {
    for (every, row, commit) in [(0, 20, 1_000), (1, 20, 1_000), (10, 20, 1_000), (10, 20, 7_000), (5, 7, 400)] {
        let load = Load { transactions: 20_000, every, group: 100, row, commit };
        let seen = run(load, Grouping::Auto, Limits::new(Grouping::Auto).ahead_rows_min);
        let eager = run(load, Grouping::Auto, 0);
        assert!(seen.in_flight_max > 2, "{load:?}");
        assert!(seen.end <= eager.end + eager.end / 20, "{load:?}: {} µs, at once {} µs", seen.end, eager.end);
    }
}

/// Rows that take long (no key): what arrives meanwhile is not left waiting for them.
#[test]
fn slow_rows_overlap() {
    let load = Load { transactions: 400, every: 10_000, group: 100, row: 20_000, commit: 1_000 };
    let seen = run(load, Grouping::Auto, Limits::new(Grouping::Auto).ahead_rows_min);
    assert!(seen.in_flight_max > 1);
    let eager = run(load, Grouping::Auto, 0);
    assert!(seen.mean() <= eager.mean(), "{} µs, at once {} µs", seen.mean(), eager.mean());
}

/// Nothing to gather: one transaction each.
#[test]
fn without_grouping_nothing_gathers() {
    let load = Load { transactions: 200, every: 100, group: 100, row: 10, commit: 1_000 };
    let seen = run(load, Grouping::Off, Limits::new(Grouping::Off).ahead_rows_min);
    assert_eq!((seen.commits, seen.in_flight_max), (200, 4));
}
