//! A period put in order: what rules and reports look at. Pure: a [`Period`] in, numbers out.

use std::collections::BTreeMap;

use binlog::gtids::GtidState;
use engine::quality::jain_index;

use crate::facts::clock;
use crate::facts::period::{Period, Role, StatusSample, Thread, number, text};
use crate::facts::states::{Activity, doing};
use crate::questions::{BY_WORKER, CLOCK, COMMITS, COUNTERS, STATUS, TRANSACTIONS, VARIABLES};
use replica::statements::NativeChannel;
use replica::status::{Columns, ReplicaStatus};

/// One worker in the period.
#[derive(Clone, Debug, Default)]
pub struct Worker {
    pub id: u64,
    pub session: u64,
    /// Where the server counts them.
    pub commits: Option<u64>,
    /// Of the samples, by what it did.
    pub shares: BTreeMap<Activity, f64>,
    /// Under way at the end: its GTID and for how long, by the replica's clock.
    pub applying: Option<(String, f64)>,
    pub last_state: String,
    pub last_info: String,
}

impl Worker {
    /// It had something that it could do: MariaDB's workers also hold a transaction while that waits for one before it.
    pub fn busy_share(&self) -> f64 {
        1.0 - self.share(Activity::NoWork) - self.share(Activity::Dependency)
    }

    pub fn share(&self, doing: Activity) -> f64 {
        self.shares.get(&doing).copied().unwrap_or(0.0)
    }
}

/// A transaction of the storage engine that is open at the end of the period.
#[derive(Clone, Debug)]
pub struct OpenTransaction {
    pub session: u64,
    pub waits_for_lock: bool,
    pub rows_modified: u64,
    pub seconds: u64,
    pub query: String,
}

/// Of the samples, by what was done.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    pub coordinator: BTreeMap<Activity, f64>,
    pub receiver: BTreeMap<Activity, f64>,
    /// All workers' time together; where there are none, the coordinator's.
    pub work: BTreeMap<Activity, f64>,
}

/// Transactions that wait: fewer are no queue.
const QUEUE_MIN: u64 = 8;
/// What is done in less than that, a replica that keeps up has under way.
const QUEUE_S_MIN: f64 = 0.25;

pub struct ChannelFacts<'a> {
    pub period: &'a Period,
    pub before: ReplicaStatus,
    pub status: ReplicaStatus,
    pub native: NativeChannel,
    pub seconds: f64,
    /// As configured; 0 or 1: the coordinator applies itself.
    pub workers_set: u64,
    pub workers: Vec<Worker>,
    pub shares: Shares,
    /// Transactions applied in the period.
    pub applied: Option<u64>,
    pub samples: usize,
    /// Every sample has a worker that works.
    always_busy: bool,
}

impl<'a> ChannelFacts<'a> {
    /// The channel of a period. `Err`: the replication status is not understood.
    pub fn new(period: &'a Period, channel: &str) -> Result<Self, String> {
        let of = |look: &StatusSample| {
            let all = look.rows(STATUS).iter().map(|row| {
                let columns = row.iter().map(|(name, value)| (name.clone(), value.clone()));
                ReplicaStatus::parse(&Columns::new(columns), period.flavour())
            });
            let found = all.collect::<Result<Vec<_>, _>>()?.into_iter().find(|status| status.channel == channel);
            found.ok_or_else(|| format!("the server has no replication channel {channel:?}"))
        };
        let (before, status) = (of(&period.before)?, of(&period.after)?);
        let native = NativeChannel { flavour: period.flavour(), version: period.version, channel: channel.to_owned() };
        let mut seen = Self {
            period,
            before,
            status,
            native,
            seconds: period.seconds(),
            workers_set: 0,
            workers: Vec::new(),
            shares: Shares::default(),
            applied: None,
            samples: period.samples.len(),
            always_busy: false,
        };
        let names = ["replica_parallel_workers", "slave_parallel_workers", "slave_parallel_threads"];
        seen.workers_set = seen.variable(&names).and_then(|value| value.parse().ok()).unwrap_or(0);
        seen.take_samples();
        seen.take_workers();
        seen.applied = seen.count_applied();
        Ok(seen)
    }

    /// The first of these that the server has.
    pub fn variable(&self, names: &[&str]) -> Option<&'a str> {
        names.iter().find_map(|name| self.period.after.named(VARIABLES, name))
    }

    pub fn is_on(&self, names: &[&str]) -> bool {
        matches!(self.variable(names), Some("ON" | "1"))
    }

    /// How much a counter has grown.
    pub fn grown(&self, name: &str) -> Option<u64> {
        let of = |look: &StatusSample| look.named(COUNTERS, name)?.parse::<u64>().ok();
        Some(of(&self.period.after)?.saturating_sub(of(&self.period.before)?))
    }

    pub fn counter(&self, name: &str) -> Option<u64> {
        self.period.after.named(COUNTERS, name)?.parse().ok()
    }

    /// The replica's clock at the end, seconds since 1970.
    pub fn now_s(&self) -> Option<f64> {
        self.period.after.first(CLOCK, "now_s")?.parse().ok()
    }

    /// The same in the form of the server's times: for differences.
    pub fn local_now_s(&self) -> Option<f64> {
        clock::seconds_of(self.period.after.first(CLOCK, "now")?)
    }

    pub fn coordinator_share(&self, doing: Activity) -> f64 {
        self.shares.coordinator.get(&doing).copied().unwrap_or(0.0)
    }

    pub fn work_share(&self, doing: Activity) -> f64 {
        self.shares.work.get(&doing).copied().unwrap_or(0.0)
    }

    /// The applier always had something to apply: it catches up, or falls behind. Else it keeps up.
    pub fn has_backlog(&self) -> bool {
        self.status.applier_runs
            && self.samples > 0
            && self.coordinator_share(Activity::Delay) < 0.5
            && (self.coordinator_share(Activity::NoWork) < 0.1 || self.has_queue())
    }

    /// MariaDB's coordinator hands out ahead, so that it has no work while its workers still have: as long as every sample has one that works, and more
    /// transactions wait than a replica that keeps up has under way.
    fn has_queue(&self) -> bool {
        let waiting = self.behind_transactions().unwrap_or(0);
        let is_late = self.status.behind_s.unwrap_or(0) >= 2;
        // The workers hold what they wait with, however many there are of them.
        let is_more =
            waiting as f64 >= self.busy_workers() * 2.0 && self.queue_s().is_none_or(|seconds| seconds >= QUEUE_S_MIN);
        self.period.mariadb && self.always_busy && waiting >= QUEUE_MIN && (is_late || is_more)
    }

    /// Workers that had something that they could do, on average.
    pub fn busy_workers(&self) -> f64 {
        self.workers.iter().map(Worker::busy_share).sum()
    }

    /// How long what waits takes at the present rate, in seconds.
    pub fn queue_s(&self) -> Option<f64> {
        let (waiting, rate) = (self.behind_transactions()?, self.applied_per_second()?);
        (rate > 0.0).then(|| waiting as f64 / rate)
    }

    pub fn is_single(&self) -> bool {
        self.workers.len() <= 1
    }

    pub fn jain(&self) -> Option<f64> {
        let commits: Vec<f64> = self.workers.iter().filter_map(|worker| Some(worker.commits? as f64)).collect();
        if commits.len() == self.workers.len() && commits.len() > 1 {
            return jain_index(commits);
        }
        // No counts: how much of their time they were busy.
        let busy = self.workers.iter().map(Worker::busy_share);
        if self.workers.len() > 1 && self.samples > 0 { jain_index(busy) } else { None }
    }

    pub fn applied_per_second(&self) -> Option<f64> {
        self.applied.map(|applied| applied as f64 / self.seconds)
    }

    pub fn open_transactions(&self) -> Vec<OpenTransaction> {
        let rows = self.period.after.rows(TRANSACTIONS).iter();
        let open = rows.filter_map(|row| {
            Some(OpenTransaction {
                session: number(row, "session")?,
                waits_for_lock: text(row, "state") == "LOCK WAIT",
                rows_modified: number(row, "rows_modified").unwrap_or(0),
                seconds: number(row, "seconds").unwrap_or(0),
                query: text(row, "query").to_owned(),
            })
        });
        open.collect()
    }

    /// Whether a session is one of the applier's threads.
    pub fn is_applier(&self, session: u64) -> bool {
        let last = self.period.samples.last();
        last.is_some_and(|sample| {
            sample.threads.iter().any(|thread| thread.session == session && thread.role != Role::Receiver)
        })
    }

    fn take_samples(&mut self) {
        let of_channel = self.threads_of_channel();
        let is_ours = |thread: &Thread| of_channel.as_ref().is_none_or(|ids| ids.contains(&thread.id));
        let by_schema = self.variable(&["replica_parallel_type", "slave_parallel_type"]) == Some("DATABASE");
        let mut workers: BTreeMap<u64, (Worker, BTreeMap<Activity, u32>)> = BTreeMap::new();
        let (mut coordinator, mut receiver) = (BTreeMap::<Activity, u32>::new(), BTreeMap::<Activity, u32>::new());
        let mut busy_samples = 0;
        for sample in &self.period.samples {
            let threads: Vec<&Thread> = sample.threads.iter().filter(|thread| is_ours(thread)).collect();
            let all_busy = {
                let mut all = threads.iter().filter(|thread| thread.role == Role::Worker).peekable();
                all.peek().is_some() && all.all(|thread| doing(Role::Worker, &thread.state) != Activity::NoWork)
            };
            let works = |thread: &&&Thread| {
                thread.role == Role::Worker && doing(Role::Worker, &thread.state) != Activity::NoWork
            };
            busy_samples += usize::from(threads.iter().filter(works).count() > 0);
            for thread in threads {
                let now = match doing(thread.role, &thread.state) {
                    // One state for both. By intervals the coordinator waits in it for any worker that is free.
                    Activity::Barrier if all_busy || !by_schema => Activity::WorkersBusy,
                    now => now,
                };
                match thread.role {
                    Role::Coordinator => *coordinator.entry(now).or_default() += 1,
                    Role::Receiver => *receiver.entry(now).or_default() += 1,
                    Role::Worker => {
                        let (worker, seen) = workers.entry(thread.id).or_default();
                        *seen.entry(now).or_default() += 1;
                        (worker.id, worker.session) = (thread.id, thread.session);
                        worker.last_state.clone_from(&thread.state);
                        worker.last_info.clone_from(&thread.info);
                    }
                }
            }
        }
        self.always_busy = busy_samples == self.period.samples.len();
        self.shares.coordinator = shares(&coordinator);
        self.shares.receiver = shares(&receiver);
        let mut all = BTreeMap::<Activity, u32>::new();
        for (mut worker, seen) in workers.into_values() {
            worker.shares = shares(&seen);
            seen.iter().for_each(|(doing, count)| *all.entry(*doing).or_default() += count);
            self.workers.push(worker);
        }
        self.shares.work = if self.workers.is_empty() {
            let single = |doing: Activity| if doing == Activity::Read { Activity::Apply } else { doing };
            coordinator.iter().for_each(|(doing, count)| *all.entry(single(*doing)).or_default() += count);
            shares(&all)
        } else {
            shares(&all)
        };
    }

    /// MySQL names each thread's channel. `None`: all threads belong to it.
    fn threads_of_channel(&self) -> Option<Vec<u64>> {
        if self.period.after.rows(STATUS).len() <= 1 {
            return None;
        }
        let rows = self.period.after.rows(BY_WORKER);
        let own = rows.iter().filter(|row| text(row, "CHANNEL_NAME") == self.status.channel);
        let workers: Vec<u64> = own.filter_map(|row| number(row, "THREAD_ID")).collect();
        let others: Vec<u64> = rows
            .iter()
            .filter(|row| text(row, "CHANNEL_NAME") != self.status.channel)
            .filter_map(|row| number(row, "THREAD_ID"))
            .collect();
        if workers.is_empty() {
            return None;
        }
        // Coordinators and receivers are started just before their workers: the nearest one below belongs to them.
        let first = workers.iter().copied().min().unwrap_or(0);
        let mut ids = workers;
        let threads = self.period.samples.iter().flat_map(|sample| &sample.threads);
        let mut above: Vec<(Role, u64)> = threads
            .filter(|thread| thread.role != Role::Worker && thread.id < first && !others.contains(&thread.id))
            .map(|thread| (thread.role, thread.id))
            .collect();
        above.sort_by_key(|(_, id)| std::cmp::Reverse(*id));
        for role in [Role::Coordinator, Role::Receiver] {
            ids.extend(above.iter().find(|(own, _)| *own == role).map(|(_, id)| *id));
        }
        Some(ids)
    }

    fn take_workers(&mut self) {
        let count = |look: &StatusSample, id: u64| {
            let rows = look.rows(COMMITS).iter();
            let mut found = rows.filter(|row| number::<u64>(row, "thread") == Some(id));
            number::<u64>(found.next()?, "commits")
        };
        let now_s = self.local_now_s();
        for worker in &mut self.workers {
            let (from, to) = (count(&self.period.before, worker.id), count(&self.period.after, worker.id));
            worker.commits = to.map(|to| to.saturating_sub(from.unwrap_or(0)));
            let rows = self.period.after.rows(BY_WORKER);
            let Some(row) = rows.iter().find(|row| number::<u64>(row, "THREAD_ID") == Some(worker.id)) else {
                continue;
            };
            let gtid = text(row, "APPLYING_TRANSACTION");
            let since = clock::seconds_of(text(row, "APPLYING_TRANSACTION_START_APPLY_TIMESTAMP"));
            if let (false, Some(now), Some(since)) = (gtid.is_empty(), now_s, since) {
                worker.applying = Some((gtid.to_owned(), (now - since).max(0.0)));
            }
        }
        // Counted by the server, or by nobody: with the instrument `transaction` off all are 0.
        let is_counted = self.workers.iter().any(|worker| worker.commits.is_some_and(|commits| commits > 0));
        if !is_counted && self.moved_by_gtid() != Some(0) {
            self.workers.iter_mut().for_each(|worker| worker.commits = None);
        }
    }

    fn executed(look: &StatusSample) -> Option<GtidState> {
        look.first(CLOCK, "executed")?.replace('\n', "").parse().ok()
    }

    fn moved_by_gtid(&self) -> Option<u64> {
        Self::executed(&self.period.after)?.count_since(&Self::executed(&self.period.before)?)
    }

    fn count_applied(&self) -> Option<u64> {
        if let Some(moved) = self.moved_by_gtid() {
            return Some(moved);
        }
        let counted: Option<Vec<u64>> = self.workers.iter().map(|worker| worker.commits).collect();
        if let Some(all) = counted.filter(|all| !all.is_empty()) {
            return Some(all.iter().sum());
        }
        // MariaDB counts by kind from 10.3 on.
        ["Slave_transactional_groups", "Slave_non_transactional_groups", "Slave_ddl_groups"]
            .iter()
            .map(|name| self.grown(name))
            .sum()
    }

    /// GTIDs that are received and not applied.
    pub fn behind_transactions(&self) -> Option<u64> {
        let received: GtidState = self.status.received_gtids.parse().ok()?;
        received.count_since(&Self::executed(&self.period.after)?)
    }

    /// What a look saw received that long ago is not applied: seconds, of the oldest such look.
    pub fn waiting_since_s(&self) -> Option<f64> {
        let applied = Self::executed(&self.period.after)?;
        let before = (self.period.before.at_s, self.before.received_gtids.as_str());
        let earlier = self.period.received.iter().filter(|look| look.channel == self.status.channel);
        let mut looks = earlier.map(|look| (look.at_s, look.gtids.as_str())).chain(std::iter::once(before));
        let is_waiting =
            |gtids: &str| gtids.parse::<GtidState>().is_ok_and(|received| !applied.contains_state(&received));
        let (at_s, _) = looks.find(|(_, gtids)| is_waiting(gtids))?;
        Some(self.period.after.at_s - at_s)
    }

    /// Of the source's log, received and not applied.
    pub fn behind_bytes(&self) -> Option<u64> {
        let (received, applied) = (self.status.received.as_ref()?, self.status.applied.as_ref()?);
        if received.file == applied.file {
            return Some(received.offset.saturating_sub(applied.offset));
        }
        // Whole files lie in between: what the relay logs take is near it.
        self.status.relay_space
    }
}

fn shares(counts: &BTreeMap<Activity, u32>) -> BTreeMap<Activity, f64> {
    let all: u32 = counts.values().sum();
    counts.iter().map(|(doing, count)| (*doing, f64::from(*count) / f64::from(all.max(1)))).collect()
}
