mod collisions;
mod directed;
mod keeping_up;
mod statements;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::Seq;
use crate::failure::{Failure, FailureKind};
use crate::group::{DeferredPart, Group, GroupId};
use crate::policy::{CommitOrder, Placement, Policy, SerialPolicy, WriteSetPolicy};
use crate::progress::{CommittedRanges, Mark, Marker};
use crate::schema::TableId;
use crate::transaction::{BarrierCause, Body, Row, TableAccess, Tags, Transaction, WriteSet};
use binlog::LogPosition;
use binlog::gtids::{Gtid, GtidState};

/// A generated transaction: rows as (before, after, read) keys of few, 0 for none.
#[derive(Clone, Debug)]
struct Spec {
    rows: Vec<(u8, u8, u8)>,
    barrier: bool,
}

fn specs(most: usize) -> impl Strategy<Value = Vec<Spec>> {
    let row = (0u8..14, 0u8..14, prop_oneof![4 => Just(0u8), 1 => 1u8..14]);
    let spec = (prop::collection::vec(row, 0..4), prop::bool::weighted(0.06))
        .prop_map(|(rows, barrier)| Spec { rows, barrier });
    prop::collection::vec(spec, 1..most)
}

fn gtid(seq: Seq) -> Gtid {
    Gtid::MySql { uuid: [1; 16], tag: None, gno: seq }
}

fn gtids(seqs: impl IntoIterator<Item = Seq>) -> GtidState {
    let mut state = GtidState::None;
    seqs.into_iter().for_each(|seq| state.add(&gtid(seq)).unwrap());
    state
}

fn position(seq: Seq) -> LogPosition {
    LogPosition::new("binlog.000001", seq * 100)
}

fn transaction(seq: Seq, spec: &Spec) -> Arc<Transaction> {
    let mut write_set = WriteSet::default();
    for &(before, after, read) in &spec.rows {
        let first_hash = write_set.hashes.len() as u32;
        write_set.hashes.extend([u64::from(before), u64::from(after)]);
        write_set.hashes.extend((read != 0).then_some(u64::from(read)));
        let end_hash = write_set.hashes.len() as u32;
        write_set.rows.push(Row { item: 0, before: 0..0, after: 0..0, first_hash, end_hash, unique: 1, wild: false });
        write_set.note_table(TableId(1), TableAccess::Keys);
    }
    Arc::new(Transaction {
        seq,
        gtid: Some(gtid(seq)),
        start: position(seq),
        end: position(seq + 1),
        tags: Tags::default(),
        server_id: 1,
        commit_time_us: seq,
        original_commit_us: seq,
        bytes: 100,
        map_bytes: 0,
        body: Body::Items(Vec::new()),
        rolls_back: true,
        only_changes: false,
        beside_prepared: false,
        unsafe_statements: Vec::new(),
        left_out: Vec::new(),
        refusal: None,
        branch: None,
        session: None,
        source_starts: 0,
        write_set,
        barrier: spec.barrier.then_some(BarrierCause::Ddl),
    })
}

/// For each row of each transaction (key, what it must follow for the sake of that key): every earlier one that uses the
/// key if one of them writes it.
fn oracle(specs: &[Spec]) -> Vec<Vec<BTreeSet<(u8, Seq)>>> {
    let mut all = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        let mut rows = Vec::new();
        for row in &spec.rows {
            let mut open = BTreeSet::new();
            for (seq, other) in (1..).zip(specs.iter().take(index)) {
                for (key, writes) in uses(row) {
                    let meets = |(other_key, other_writes)| key == other_key && (writes || other_writes);
                    if other.rows.iter().flat_map(uses).any(meets) {
                        open.insert((key, seq));
                    }
                }
            }
            rows.push(open);
        }
        all.push(rows);
    }
    all
}

/// Keys of a row, and whether it writes them.
fn uses(row: &(u8, u8, u8)) -> impl Iterator<Item = (u8, bool)> {
    [(row.0, true), (row.1, true), (row.2, false)].into_iter().filter(|&(key, _)| key != 0)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Apply,
    /// Nothing more to do than to wait for the grant.
    Applied,
    Commit,
    /// Its place is taken; not durable yet.
    Ordered,
    /// Has failed, and waits for what the scheduler says.
    Failed,
}

struct Job {
    group: Arc<Group>,
    run: Run,
    phase: Phase,
    granted: bool,
    abort: bool,
    /// With `isolate`: how many of the group are committed.
    done: usize,
}

/// Workers and target, driven by a list of choices; then healed, and driven to the end.
struct World {
    scheduler: Scheduler,
    order: CommitOrder,
    transactions: Vec<Arc<Transaction>>,
    placements: Vec<Placement>,
    specs: Vec<Spec>,
    oracle: Vec<Vec<BTreeSet<(u8, Seq)>>>,
    next: usize,
    jobs: Vec<Option<Job>>,
    durable: BTreeSet<Seq>,
    /// What can be seen on the target, in the order of becoming so.
    visible: Vec<Seq>,
    /// The progress row: `seq` in preserved order.
    noted: Mark,
    grouping_max: usize,
    culprit: Option<Seq>,
    attempts: BTreeMap<GroupId, u32>,
    /// How often each group found the target closed: no limit counts these.
    closed: BTreeMap<GroupId, u32>,
    finished: bool,
    stopped: Option<Failure>,
    stopping: bool,
    /// What gathers does not have to wait longer.
    overdue: bool,
    /// The transactions of a group commit one by one.
    apart: bool,
}

const RETRIES_MAX: u32 = 5;

impl World {
    fn new(specs: &[Spec], order: CommitOrder, grouping: Grouping, workers: usize, serial: bool) -> Self {
        let done = BTreeSet::new();
        Self::resumed(specs, order, grouping, workers, serial, done, 0)
    }

    fn resumed(
        specs: &[Spec],
        order: CommitOrder,
        grouping: Grouping,
        workers: usize,
        serial: bool,
        durable: BTreeSet<Seq>,
        lag: Seq,
    ) -> Self {
        let transactions: Vec<_> = (1..).zip(specs).map(|(seq, spec)| transaction(seq, spec)).collect();
        let mut policy: Box<dyn Policy> =
            if serial { Box::new(SerialPolicy) } else { Box::new(WriteSetPolicy::default()) };
        // With relaxed order the mark may have been noted some time ago.
        let low_water = (1..).take_while(|seq| durable.contains(seq)).last().unwrap_or(0);
        let low_water = low_water.saturating_sub(lag);
        let placements = transactions.iter().skip(low_water as usize).map(|t| policy.place(t));
        let placements = (0..low_water).map(|_| Placement::default()).chain(placements).collect();
        // Whoever wants transactions to gather says so.
        let limits = Limits { ahead_rows_min: 0, ..Limits::new(grouping) };
        let config = Config::new(workers, order, limits, RETRIES_MAX);
        let start = Mark {
            seq: low_water,
            gtids: gtids(1..=low_water),
            position: (low_water > 0).then(|| position(low_water + 1)),
            commit_time_us: low_water,
        };
        let ranges: Vec<(Seq, Seq)> = durable.iter().filter(|&&seq| seq > low_water).map(|&seq| (seq, seq)).collect();
        let grouping_max = match grouping {
            Grouping::Off => 1,
            Grouping::Auto => usize::MAX,
            Grouping::UpTo(most) => most,
        };
        Self {
            scheduler: Scheduler::new(config, start.clone(), &ranges),
            order,
            specs: specs.to_vec(),
            oracle: oracle(specs),
            next: low_water as usize,
            transactions,
            placements,
            jobs: (0..workers).map(|_| None).collect(),
            visible: Vec::new(),
            durable,
            noted: start,
            grouping_max,
            culprit: None,
            attempts: BTreeMap::new(),
            closed: BTreeMap::new(),
            finished: false,
            stopped: None,
            stopping: false,
            overdue: false,
            apart: false,
        }
    }

    /// Without grouping transactions share packets, if that is wanted.
    fn apart(mut self, apart: bool) -> Self {
        if apart && self.grouping_max == 1 && self.order != CommitOrder::PerLane {
            self.scheduler.config.commits = Commits::Each;
            self.grouping_max = PACKET_MAX;
            self.apart = true;
        }
        self
    }

    /// A group that can not commit at once holds so many rows, or waits to become larger.
    fn gathers(mut self, rows: usize) -> Self {
        self.scheduler.limits_mut().ahead_rows_min = rows;
        self
    }

    fn enqueue(&mut self, most: usize) {
        for _ in 0..most {
            let Some(transaction) = self.transactions.get(self.next) else { return self.scheduler.end() };
            let taken = self.scheduler.enqueue(Arc::clone(transaction), self.placements[self.next].clone());
            assert_eq!(taken, !self.durable.contains(&transaction.seq));
            self.next += 1;
        }
    }

    fn poll(&mut self) {
        while let Some(output) = self.scheduler.poll() {
            assert!(!self.finished, "{output:?} after the end");
            match output {
                Output::Dispatch { worker, group, run } => self.dispatch(worker, group, run),
                Output::Release { worker, group } => self.check_release(worker, group),
                Output::Grant { worker, group } => {
                    self.check_grant(group);
                    if let Some(job) = self.jobs[worker].as_mut().filter(|job| job.group.id == group) {
                        job.granted = true;
                    }
                }
                Output::Abort { worker, group, attempt } => {
                    let job = self.jobs[worker].as_mut();
                    if let Some(job) = job.filter(|job| job.group.id == group && job.run.attempt == attempt) {
                        job.abort = true;
                    }
                }
                Output::LowWater(mark) => {
                    let expected = (1..).take_while(|seq| self.durable.contains(seq)).last().unwrap_or(0);
                    assert!(mark.seq <= expected);
                    assert_eq!(mark.gtids, gtids(1..=mark.seq));
                    assert_eq!(mark.position, Some(position(mark.seq + 1)));
                }
                Output::Finished => self.finished = true,
                Output::Stop(failure) => {
                    assert!(self.stopped.is_none(), "stopped twice");
                    self.stopped = Some(failure);
                }
            }
        }
    }

    /// Whatever its rows follow is committed, or in the group.
    fn check_release(&self, worker: Worker, id: GroupId) {
        let Some(job) = self.jobs[worker].as_ref().filter(|job| job.group.id == id) else {
            panic!("{id:?} is released, but {worker} does not have it");
        };
        assert!(!job.run.granted && job.group.deferred.iter().any(|held| *held != DeferredPart::Nothing));
        for transaction in &job.group.transactions {
            for &(_, predecessor) in self.oracle[transaction.seq as usize - 1].iter().flatten() {
                assert!(
                    predecessor >= job.group.first() || self.durable.contains(&predecessor),
                    "{predecessor} is open"
                );
            }
        }
    }

    /// In the order of the source, and only when all before it have their places.
    fn check_grant(&self, id: GroupId) {
        if self.order == CommitOrder::PerLane {
            // Everything is in one lane here.
            let first = |id: GroupId| self.jobs.iter().flatten().find(|job| job.group.id == id).unwrap().group.first();
            let open = self.jobs.iter().flatten().filter(|job| job.phase != Phase::Ordered);
            assert_eq!(open.map(|job| job.group.first()).min(), Some(first(id)));
            return;
        }
        assert_eq!(self.order, CommitOrder::Preserve);
        for job in self.jobs.iter().flatten() {
            assert!(job.group.id >= id || job.phase == Phase::Ordered, "{id:?} was granted before {:?}", job.group.id);
        }
    }

    fn dispatch(&mut self, worker: Worker, group: Arc<Group>, run: Run) {
        assert!(self.stopped.is_none(), "a dispatch after a stop");
        match &self.jobs[worker] {
            None => assert_eq!(run.attempt, 1),
            Some(job) => assert!(job.group.id == group.id && job.phase == Phase::Failed, "the worker is busy"),
        }
        let attempts_max = RETRIES_MAX + 1 + self.closed.get(&group.id).copied().unwrap_or_default();
        let most = self.attempts.entry(group.id).or_default();
        assert!(run.attempt > *most && run.attempt <= attempts_max, "attempt {} after {most}", run.attempt);
        *most = run.attempt;
        assert!(group.transactions.len() <= self.grouping_max);
        let seqs: Vec<Seq> = group.transactions.iter().map(|t| t.seq).collect();
        assert_eq!(seqs, (group.first()..=group.last()).collect::<Vec<_>>());
        assert_eq!(group.deferred.len(), seqs.len());
        assert_eq!(group.mark.seq, group.last());
        assert!(seqs.iter().all(|seq| !self.durable.contains(seq)), "{seqs:?} is committed already");
        if run.granted && self.order == CommitOrder::Preserve {
            let before = self.jobs.iter().flatten().filter(|job| job.group.id < group.id);
            assert!(before.into_iter().all(|job| job.phase == Phase::Ordered));
        }
        if group.is_barrier() {
            assert_eq!(seqs.len(), 1);
            assert!((1..seqs[0]).all(|seq| self.durable.contains(&seq)), "something is beside the barrier");
        }
        if self.order == CommitOrder::Preserve {
            assert_eq!(group.mark.gtids, gtids(1..=group.last()));
            assert_eq!(group.before.gtids, gtids(1..group.first()));
        }
        self.check_dependencies(&group, run);
        self.check_gathered(&group, run);
        self.jobs[worker] = Some(Job { group, run, phase: Phase::Apply, granted: run.granted, abort: false, done: 0 });
    }

    /// Only groups that are worth it stand in line for their grants; [`Scheduler::overdue`] lets one through.
    fn check_gathered(&mut self, group: &Group, run: Run) {
        let overdue = std::mem::take(&mut self.overdue);
        if self.order != CommitOrder::Preserve || run.granted || run.attempt > 1 || overdue {
            return;
        }
        let is_last = group.last() == self.next as Seq && self.next < self.transactions.len();
        let is_full = group.transactions.len() == self.grouping_max;
        let is_worth = group.rows() >= self.scheduler.limits_mut().ahead_rows_min;
        assert!(!is_last || self.scheduler.has_ended() || is_full || is_worth, "a small group waits for its grant");
    }

    fn check_dependencies(&self, group: &Group, run: Run) {
        let inside = group.first()..=group.last();
        let done = |seq: Seq| self.durable.contains(&seq) || self.visible.contains(&seq);
        // Rows of a group with a common key wait together.
        let mut held_keys = BTreeSet::new();
        let rows = group.transactions.iter().zip(&group.deferred).flat_map(|(transaction, held)| {
            let seq = transaction.seq as usize - 1;
            (0..self.specs[seq].rows.len()).map(move |row| (seq, row, held.row(row)))
        });
        let rows: Vec<(usize, usize, bool)> = rows.collect();
        for &(seq, row, _) in rows.iter().filter(|row| row.2) {
            held_keys.extend(uses(&self.specs[seq].rows[row]).map(|(key, _)| key));
        }
        for &(seq, row, _) in &rows {
            for &(key, predecessor) in &self.oracle[seq][row] {
                let met = done(predecessor) || inside.contains(&predecessor);
                let waits = match self.order {
                    CommitOrder::PerLane | CommitOrder::Relaxed => false,
                    CommitOrder::Preserve => run.granted || held_keys.contains(&key),
                };
                assert!(met || waits, "row {row} of {} goes before {predecessor}", seq + 1);
            }
        }
        if self.order.has_gaps() {
            let barriers = (1..).zip(&self.specs).filter(|(seq, spec)| spec.barrier && *seq < group.first());
            assert!(barriers.into_iter().all(|(seq, _)| done(seq)), "a barrier is passed");
        }
    }

    fn fail(&mut self, worker: Worker, kind: FailureKind) {
        let job = self.jobs[worker].as_mut().unwrap();
        job.phase = Phase::Failed;
        let committed_to = if job.done == 0 { 0 } else { job.group.transactions[job.done - 1].seq };
        let id = job.group.id;
        if kind == FailureKind::Maintenance {
            *self.closed.entry(id).or_default() += 1;
        }
        self.scheduler.failed(id, Failure::new(kind, "made up"), committed_to);
        if self.scheduler.phase.failed {
            self.jobs[worker] = None;
        }
    }

    fn commit(&mut self, first: Seq, mark: &Mark, before: Seq) {
        if self.order == CommitOrder::Preserve {
            assert_eq!(before, self.noted.seq, "the progress is not where the group takes it from");
            let last = self.visible.last().copied().unwrap_or(0);
            assert!(first > last, "{first} became visible after {last}");
            self.noted = mark.clone();
        }
        for seq in first..=mark.seq {
            assert!(!self.visible.contains(&seq) && !self.durable.contains(&seq), "{seq} is applied twice");
            self.visible.push(seq);
        }
    }

    /// One step of one worker; `luck` above 200 brings mishaps.
    fn step(&mut self, worker: Worker, luck: u8) {
        let Some(job) = self.jobs[worker].as_mut() else { return };
        let mishap = match luck {
            0..=200 => None,
            201..=225 => Some(FailureKind::Conflict),
            226..=240 => Some(FailureKind::Divergence),
            _ => Some(FailureKind::Exhausted),
        };
        let has_culprit = self.culprit.is_some_and(|seq| job.group.first() <= seq && seq <= job.group.last());
        match job.phase {
            Phase::Failed => {}
            _ if job.run.isolate || (self.apart && job.group.transactions.len() > 1) => {
                self.step_isolated(worker, mishap);
            }
            Phase::Apply if mishap.is_some() => self.fail(worker, mishap.unwrap()),
            Phase::Apply => job.phase = if job.run.granted { Phase::Commit } else { Phase::Applied },
            Phase::Applied if job.abort => self.fail(worker, FailureKind::Conflict),
            Phase::Applied if job.granted => job.phase = Phase::Commit,
            Phase::Applied => {}
            Phase::Commit if mishap.is_some() => self.fail(worker, mishap.unwrap()),
            Phase::Commit if has_culprit => self.fail(worker, FailureKind::Divergence),
            Phase::Commit => {
                let group = Arc::clone(&job.group);
                job.phase = Phase::Ordered;
                self.commit(group.first(), &group.mark, group.before.seq);
                if luck.is_multiple_of(2) {
                    self.scheduler.ordered(group.id);
                } else {
                    self.durable(worker);
                }
            }
            Phase::Ordered => self.durable(worker),
        }
    }

    fn durable(&mut self, worker: Worker) {
        let job = self.jobs[worker].take().unwrap();
        self.durable.extend(job.group.first()..=job.group.last());
        self.scheduler.committed(job.group.id);
    }

    fn step_isolated(&mut self, worker: Worker, mishap: Option<FailureKind>) {
        let job = self.jobs[worker].as_mut().unwrap();
        let group = Arc::clone(&job.group);
        let Some(transaction) = group.transactions.get(job.done) else { return self.durable(worker) };
        if self.culprit == Some(transaction.seq) {
            return self.fail(worker, FailureKind::Divergence);
        }
        // Made-up divergences that do not come back are for runs that are not isolated.
        if let Some(kind) = mishap.filter(|&kind| kind != FailureKind::Divergence) {
            return self.fail(worker, kind);
        }
        job.done += 1;
        let mut marker = Marker::new(group.before.clone());
        for transaction in &group.transactions {
            marker.push(transaction.seq, transaction.gtid.clone(), transaction.end.clone(), transaction.commit_time_us);
        }
        let mut before = group.before.seq;
        if transaction.seq != group.first() {
            before = marker.advance(transaction.seq - 1).seq;
        }
        let mark = marker.advance(transaction.seq).clone();
        self.commit(transaction.seq, &mark, before);
        if self.order == CommitOrder::Preserve {
            assert_eq!(mark.gtids, gtids(1..=transaction.seq));
        }
        self.durable.insert(transaction.seq);
    }

    fn overdue(&mut self) {
        self.overdue = self.scheduler.idle_because() == IdleCause::Gathering;
        self.scheduler.overdue();
    }

    fn lock_wait(&mut self, a: usize, b: usize) {
        let group = |at: usize| self.jobs[at % self.jobs.len()].as_ref().map(|job| job.group.id);
        if let (Some(waiter), Some(blocker)) = (group(a), group(b)) {
            self.scheduler.lock_wait(waiter, blocker);
        }
    }

    fn choose(&mut self, choices: &[(u8, u8, u8)]) {
        for &(what, a, b) in choices {
            if self.finished || self.stopped.is_some() {
                return;
            }
            match what {
                0..=60 => self.enqueue(usize::from(a % 8)),
                61..=230 => self.step(usize::from(a) % self.jobs.len(), b),
                231..=248 => self.lock_wait(a.into(), b.into()),
                249..=252 => self.overdue(),
                253 if a > 200 => {
                    self.stopping = true;
                    self.scheduler.stop();
                }
                254 => self.use_workers(1 + usize::from(a % 8)),
                _ => {}
            }
            self.poll();
            self.must_go_on();
        }
    }

    fn use_workers(&mut self, count: usize) {
        if count > self.jobs.len() {
            self.jobs.resize_with(count, || None);
        }
        self.scheduler.use_workers(count);
    }

    /// With nothing in flight and something queued, something is dispatched (or the end is near).
    fn must_go_on(&self) {
        let queued = self.scheduler.queued().0;
        let at_rest = self.jobs.iter().all(Option::is_none);
        if at_rest && queued > 0 && !self.finished && self.stopped.is_none() {
            panic!("{queued} wait, nothing runs: {:?}", self.scheduler.idle_because());
        }
        assert_eq!(self.scheduler.in_flight(), self.jobs.iter().flatten().count());
    }

    /// No more mishaps: it has to come to its end.
    fn heal(&mut self) {
        for round in 0.. {
            assert!(round < 10_000, "no end: {:?}", self.scheduler.idle_because());
            self.poll();
            if self.finished || self.stopped.is_some() {
                return;
            }
            self.must_go_on();
            self.enqueue(3);
            for worker in 0..self.jobs.len() {
                self.step(worker, (round % 2) as u8);
                self.poll();
                if self.stopped.is_some() {
                    return;
                }
            }
        }
    }
}

fn all(specs: &[Spec]) -> BTreeSet<Seq> {
    (1..=specs.len() as Seq).collect()
}

fn grouping() -> impl Strategy<Value = Grouping> {
    prop_oneof![Just(Grouping::Off), Just(Grouping::Auto), (2usize..6).prop_map(Grouping::UpTo)]
}

/// Rows that are worth a group that waits for its grant.
fn ahead() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0usize), 1usize..8, Just(usize::MAX)]
}

fn order() -> impl Strategy<Value = CommitOrder> {
    prop_oneof![Just(CommitOrder::Preserve), Just(CommitOrder::PerLane), Just(CommitOrder::Relaxed)]
}

fn choices() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
    prop::collection::vec(any::<(u8, u8, u8)>(), 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever happens on the way: everything is applied exactly once, or the channel stops after so many retries.
    #[test]
    fn every_transaction_once(
        specs in specs(40),
        order in order(),
        grouping in grouping(),
        apart: bool,
        workers in 1usize..6,
        serial in prop::bool::weighted(0.2),
        ahead in ahead(),
        choices in choices(),
    ) {
        let mut world = World::new(&specs, order, grouping, workers, serial).gathers(ahead).apart(apart);
        world.choose(&choices);
        if world.stopped.is_none() {
            world.heal();
        }
        if let Some(failure) = &world.stopped {
            prop_assert!(failure.message.contains("attempts"), "{failure}");
        } else if world.stopping {
            let low_water = world.scheduler.committed_set().low_water();
            prop_assert_eq!(&world.durable, &(1..=low_water).collect::<BTreeSet<_>>(), "gaps after a stop");
        } else {
            prop_assert_eq!(&world.durable, &all(&specs));
        }
    }

    /// Killed at any moment, and started again, perhaps in the other order: the rest follows, exactly once.
    #[test]
    fn goes_on_after_a_crash(
        specs in specs(40),
        before in order(),
        after in order(),
        grouping in grouping(),
        apart: bool,
        workers in 1usize..6,
        choices in choices(),
        more in choices(),
        ahead in ahead(),
        lag in 0u64..8,
    ) {
        let mut world = World::new(&specs, before, grouping, workers, false).gathers(ahead).apart(apart);
        world.choose(&choices);
        // What had its place had reached the target.
        let reached = world.jobs.iter().flatten().filter(|job| job.phase == Phase::Ordered);
        let reached: Vec<Seq> = reached.flat_map(|job| job.group.first()..=job.group.last()).collect();
        let mut durable = world.durable;
        durable.extend(reached);
        let lag = if before.has_gaps() { lag } else { 0 };
        let mut world = World::resumed(&specs, after, grouping, workers, false, durable, lag).gathers(ahead).apart(apart);
        world.choose(&more);
        if world.stopped.is_none() {
            world.heal();
        }
        if world.stopped.is_none() && !world.stopping {
            prop_assert_eq!(&world.durable, &all(&specs));
        }
    }

    /// A transaction that the target refuses each time: all before it is applied, and the channel stops.
    #[test]
    fn stops_at_the_culprit(
        specs in specs(30),
        order in order(),
        grouping in grouping(),
        apart: bool,
        workers in 1usize..6,
        culprit in 0usize..30,
        ahead in ahead(),
        choices in choices(),
    ) {
        let calm: Vec<(u8, u8, u8)> = choices.into_iter().map(|(what, a, b)| (what.min(252), a, b % 200)).collect();
        let culprit = (culprit % specs.len()) as Seq + 1;
        let mut world = World::new(&specs, order, grouping, workers, false).gathers(ahead).apart(apart);
        world.culprit = Some(culprit);
        world.choose(&calm);
        if world.stopped.is_none() {
            world.heal();
        }
        prop_assert_eq!(world.stopped.map(|failure| failure.kind), Some(FailureKind::Divergence));
        prop_assert!(!world.durable.contains(&culprit));
        if order != CommitOrder::Relaxed {
            prop_assert_eq!(world.visible, (1..culprit).collect::<Vec<_>>());
        }
        let mut expected: BTreeSet<Seq> = (1..=specs.len() as Seq).filter(|seq| world.scheduler.committed_set().contains(*seq)).collect();
        // What has committed of a packet is said at its end.
        expected.extend(world.jobs.iter().flatten().flat_map(|job| job.group.transactions.iter().take(job.done).map(|one| one.seq)));
        prop_assert_eq!(expected, world.durable);
    }
}
