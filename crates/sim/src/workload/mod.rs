//! Concurrent sessions of a small shop in virtual time: transactions in the order in which they commit.
//!
//! Each session thinks, runs the statements of a transaction, waits where another session holds a row that it needs, and
//! commits with whoever commits at the time. What comes out is what a server's binary log of that hour would hold:
//! tables are created, filled, and worked on.

mod change;
mod group_commit;
mod locks;
mod params;
mod script;
mod transaction;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::rng::{Rng, Zipf};
use crate::schema::{Schema, TableIndex, TableKind};
use crate::state::State;
use crate::value::Key;

use group_commit::{GroupCommit, PreparedCommit, StageStart};
use locks::{LockAnswer, Locks, RowId, SessionId};
pub use params::Params;
use script::Script;
pub use transaction::{Body, Change, ChangeKind, Statement, Transaction};

/// The workload under way: an iterator over its transactions. Its memory is bounded by the tables' size.
#[derive(Debug)]
pub struct Workload {
    params: Params,
    schema: Schema,
    state: State,
    zipf: Zipf,
    now_us: u64,
    /// What happens next, by time and then by order of planning.
    agenda: BinaryHeap<Reverse<(u64, u64, Event)>>,
    planned: u64,
    sessions: Vec<Session>,
    locks: Locks,
    group_commit: GroupCommit,
    /// The last transaction that is committed.
    committed: u64,
    /// Transactions that sessions have begun, those without any change not counted.
    begun: u64,
    /// For each schema.
    next_order: Vec<u64>,
    ready: VecDeque<Transaction>,
    opening: VecDeque<Body>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The session goes on: its next transaction, or the next step of the one under way.
    Step(SessionId),
    FlushEnded,
    SyncEnded,
}

#[derive(Debug)]
struct Session {
    rng: Rng,
    schema: usize,
    /// `None`: thinking.
    script: Option<Script>,
    step: usize,
    /// Rows of the step that are still to be locked, the next one last; `None`: not looked for yet.
    to_lock: Option<Vec<Key>>,
    /// Rows of the step.
    keys: Vec<Key>,
    held: Vec<RowId>,
    statements: Vec<Statement>,
    begun_us: u64,
    /// The order that the transaction makes.
    order: u64,
}

/// Rows of one statement while the tables are filled.
const FILL_ROWS: u64 = 500;

impl Workload {
    pub fn new(mut params: Params) -> Workload {
        params.sessions = params.sessions.max(1);
        params.schemas = params.schemas.max(1);
        params.accounts = params.accounts.max(1);
        let schema = Schema::new(params.schemas);
        let opening = opening(&params, &schema);
        let sessions = (0..params.sessions).map(|number| Session::new(&params, number)).collect();
        let mut workload = Workload {
            state: State::new(&schema),
            zipf: Zipf::new(params.accounts),
            now_us: params.start_us,
            agenda: BinaryHeap::new(),
            planned: 0,
            sessions,
            locks: Locks::default(),
            group_commit: GroupCommit::new(opening.len() as u64),
            committed: 0,
            begun: 0,
            next_order: vec![1; schema.names().len()],
            ready: VecDeque::new(),
            opening,
            schema,
            params,
        };
        // Sessions begin when the tables are filled: their first steps wait in the agenda.
        workload.now_us += workload.opening.len() as u64 * workload.opening_us();
        for session in 0..workload.sessions.len() {
            workload.plan_think(session);
        }
        workload.now_us = workload.params.start_us;
        workload
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// What the tables hold once every transaction that came out so far is committed, and those under way have done
    /// what they did so far. After the last one: the final state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Transactions that create and fill the tables: the first ones that come out.
    pub fn opening_transactions(params: &Params) -> u64 {
        let params = Params { schemas: params.schemas.max(1), accounts: params.accounts.max(1), ..params.clone() };
        opening(&params, &Schema::new(params.schemas)).len() as u64
    }

    fn opening_us(&self) -> u64 {
        2 * self.params.fsync_us + 10 * self.params.statement_us + 1
    }

    /// Creates and fills tables: one after the other, nobody else is there yet.
    fn open(&mut self, body: Body) -> Transaction {
        let begun_us = self.now_us;
        self.now_us += self.opening_us();
        let seq = self.committed + 1;
        let transaction = Transaction {
            seq,
            commit_parent: self.committed,
            session: 0,
            begun_us,
            prepared_us: begun_us,
            commit_time_us: begun_us + self.params.fsync_us,
            body,
        };
        self.committed = seq;
        let applied = self.state.apply_transaction(&transaction);
        debug_assert_eq!(applied, Ok(()));
        transaction
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Step(session) => self.go_on(session),
            Event::FlushEnded => {
                for begun in self.group_commit.flush_ended(self.now_us).into_iter().flatten() {
                    self.plan_stage(begun);
                }
            }
            Event::SyncEnded => {
                let (committed, begun) = self.group_commit.sync_ended();
                if let Some(begun) = begun {
                    self.plan_stage(begun);
                }
                for flushed in committed {
                    self.committed = flushed.seq;
                    let PreparedCommit { session, commit_parent, begun_us, prepared_us, statements } = flushed.prepared;
                    self.ready.push_back(Transaction {
                        seq: flushed.seq,
                        commit_parent,
                        session: session as u32,
                        begun_us,
                        prepared_us,
                        commit_time_us: flushed.commit_time_us,
                        body: Body::Rows(statements),
                    });
                    self.end_transaction(session);
                }
            }
        }
    }

    fn go_on(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.script.is_none() {
            if self.begun >= self.params.transactions {
                return;
            }
            self.begun += 1;
            let next_order = self.next_order.get(session.schema).copied().unwrap_or(1);
            let script = script::write(&self.params, &self.zipf, next_order, &mut session.rng);
            session.begin(script, self.now_us);
        }
        let Some(script) = &session.script else { return };
        let Some(step) = script.steps.get(session.step) else { return self.commit(id) };
        let table = self.schema.index(session.schema, step.table());
        let to_lock = match &mut session.to_lock {
            Some(to_lock) => to_lock,
            to_lock => {
                if matches!(step, script::Step::NewOrder { .. })
                    && let Some(next) = self.next_order.get_mut(session.schema)
                {
                    session.order = *next;
                    *next += 1;
                }
                session.keys = change::keys(step, &self.state, table, session.order);
                to_lock.insert(session.keys.iter().rev().copied().collect())
            }
        };
        while let Some(key) = to_lock.last() {
            let row = (table, *key);
            match self.locks.ask(row, id) {
                LockAnswer::Granted => session.held.push(row),
                // Handed on to this session, or locked by an earlier statement.
                LockAnswer::Owned => {}
                LockAnswer::Waits => {
                    // The lock is handed on to this session before it goes on.
                    session.held.push(row);
                    return;
                }
            }
            to_lock.pop();
        }
        let changes = session
            .keys
            .iter()
            .filter_map(|key| change::change(step, self.state.get(table, *key), *key, self.now_us, &mut session.rng));
        let changes: Vec<Change> = changes.collect();
        if let Some(kind) = changes.first().map(ChangeKind::of) {
            for change in &changes {
                let applied = self.state.apply(table, change);
                debug_assert_eq!(applied, Ok(()));
            }
            session.statements.push(Statement { table, kind, at_us: self.now_us, changes });
        }
        session.step += 1;
        session.to_lock = None;
        let mean_us = if script.long { 50 * self.params.statement_us } else { self.params.statement_us };
        let takes_us = session.rng.between(mean_us / 2, mean_us * 3 / 2);
        self.plan(takes_us, Event::Step(id));
    }

    fn commit(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let statements = std::mem::take(&mut session.statements);
        if statements.is_empty() {
            // Nothing was changed: nothing is logged. Another transaction takes its place.
            self.begun = self.begun.saturating_sub(1);
            return self.end_transaction(id);
        }
        let prepared = PreparedCommit {
            session: id,
            commit_parent: self.committed,
            begun_us: session.begun_us,
            prepared_us: self.now_us,
            statements,
        };
        if let Some(begun) = self.group_commit.prepared(prepared) {
            self.plan_stage(begun);
        }
    }

    fn end_transaction(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.script = None;
        for row in std::mem::take(&mut session.held) {
            if let Some(next) = self.locks.release(row) {
                self.plan(0, Event::Step(next));
            }
        }
        self.plan_think(id);
    }

    fn plan_think(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let think_us = session.rng.between(0, 2 * self.params.think_us);
        self.plan(think_us, Event::Step(id));
    }

    fn plan_stage(&mut self, begun: StageStart) {
        let event = match begun {
            StageStart::Flush => Event::FlushEnded,
            StageStart::Sync => Event::SyncEnded,
        };
        self.plan(self.params.fsync_us, event);
    }

    fn plan(&mut self, in_us: u64, event: Event) {
        self.planned += 1;
        self.agenda.push(Reverse((self.now_us + in_us, self.planned, event)));
    }
}

impl Iterator for Workload {
    type Item = Transaction;

    fn next(&mut self) -> Option<Transaction> {
        if let Some(body) = self.opening.pop_front() {
            return Some(self.open(body));
        }
        while self.ready.is_empty() {
            let Reverse((at_us, _, event)) = self.agenda.pop()?;
            self.now_us = at_us;
            self.happen(event);
        }
        self.ready.pop_front()
    }
}

impl Session {
    fn new(params: &Params, number: u32) -> Session {
        Session {
            rng: Rng::new(params.seed, u64::from(number) + 1),
            schema: number as usize % usize::from(params.schemas),
            script: None,
            step: 0,
            to_lock: None,
            keys: Vec::new(),
            held: Vec::new(),
            statements: Vec::new(),
            begun_us: 0,
            order: 0,
        }
    }

    fn begin(&mut self, script: Script, now_us: u64) {
        self.script = Some(script);
        self.step = 0;
        self.to_lock = None;
        self.begun_us = now_us;
        self.order = 0;
    }
}

impl ChangeKind {
    fn of(change: &Change) -> ChangeKind {
        match (&change.before, &change.after) {
            (None, _) => ChangeKind::Insert,
            (Some(_), Some(_)) => ChangeKind::Update,
            (Some(_), None) => ChangeKind::Delete,
        }
    }
}

/// DDL and rows to begin with.
fn opening(params: &Params, schema: &Schema) -> VecDeque<Body> {
    let mut rng = Rng::new(params.seed, 0);
    let ddl = schema.ddl().into_iter().map(|(schema, sql)| Body::Ddl { schema, sql });
    let mut bodies: VecDeque<Body> = ddl.collect();
    let fill = |table: TableIndex, changes: Vec<Change>| {
        Body::Rows(vec![Statement { table, kind: ChangeKind::Insert, at_us: params.start_us, changes }])
    };
    for number in 0..schema.names().len() {
        let counters = (1..=script::COUNTERS).map(change::counter).collect();
        bodies.push_back(fill(schema.index(number, TableKind::Counters), counters));
        let mut first = 1;
        while first <= params.accounts {
            let last = params.accounts.min(first + FILL_ROWS - 1);
            let accounts = (first..=last).map(|id| change::account(id, &mut rng)).collect();
            bodies.push_back(fill(schema.index(number, TableKind::Accounts), accounts));
            first = last + 1;
        }
    }
    bodies
}
