//! Consecutive definitions, one after the other, each with its own commit, and with fewer commits of our own between them.
//!
//! What is about to be executed is recorded for as many as name different tables: the fingerprint of each holds whatever becomes of the others. That they were executed is
//! recorded together with what comes next. After a crash each tells by its own fingerprint whether it was executed. Consecutive ones that may be executed again
//! (`TRUNCATE`, `GRANT`) need none, whatever they name.

use std::time::{Duration, Instant};

use engine::Seq;
use engine::definition_change::may_name;
use engine::failure::{Failure, FailureKind};
use engine::sql::ObjectName;
use engine::transaction::{Item, StatementItem};

use super::accounts::{self, ExecutedPart, Tried};
use super::barrier::BarrierContext;
use super::execute::nontransactional::after_failure;
use super::execute::{at_statement, execute_next};
use super::own_commit;
use crate::mysql::progress::intent::{FingerprintScope, Intent, Intents};
use crate::mysql::session::connection::ChannelConnection;
use crate::{Range, SingleTransaction};

/// How long what was executed stays unrecorded while more comes.
const RECORD_AFTER: Duration = Duration::from_millis(500);

/// In preserved order, with GTIDs of the target's own. After an error `committed_to` says up to where the progress is recorded, and nothing of what comes behind was executed,
/// unless the connection was lost.
pub fn run(
    connection: &mut ChannelConnection,
    context: BarrierContext<'_>,
    singles: &[SingleTransaction<'_>],
    committed_to: &mut Seq,
) -> Result<(), Failure> {
    Run { connection, context, singles, executed: 0, recorded: 0, since: Instant::now(), committed_to }.run()
}

struct Run<'a> {
    connection: &'a mut ChannelConnection,
    context: BarrierContext<'a>,
    singles: &'a [SingleTransaction<'a>],
    /// How many of them are.
    executed: usize,
    /// How many of them are known on the target to be.
    recorded: usize,
    since: Instant,
    committed_to: &'a mut Seq,
}

/// What the record on the target says of what is under way, once it has the progress.
enum UnderWay {
    /// These, of transactions up to this one.
    Are(Vec<Intent>, Seq),
    /// As before, but for what the progress takes away.
    Stays,
}

impl<'a> Run<'a> {
    fn run(mut self) -> Result<(), Failure> {
        while let Some(rest) = self.singles.get(self.executed..).filter(|rest| !rest.is_empty()) {
            let mut steps =
                rest.iter().take(together(rest)).map(|single| self.step(single)).collect::<Result<Vec<_>, _>>()?;
            if !steps.iter().all(|step| step.is_by_itself) {
                steps.truncate(1);
            }
            self.part(&steps)?;
        }
        let last = self.singles.last().map_or(0, |single| single.transaction.seq);
        self.record(UnderWay::Are(Vec::new(), last))
    }

    fn part(&mut self, steps: &[Step<'_>]) -> Result<(), Failure> {
        let last = steps.last().map_or(0, Step::seq);
        self.record(UnderWay::Are(steps.iter().filter_map(|step| step.intent.clone()).collect(), last))?;
        let unfinished = self.context.unfinished;
        // The record has another one of them now.
        for step in steps.iter().filter(|step| !step.was_begun) {
            unfinished.take_intent(step.seq());
        }
        for (at, step) in steps.iter().enumerate() {
            if self.since.elapsed() > RECORD_AFTER {
                self.record(UnderWay::Stays)?;
            }
            if let Err(failure) = step.run(self.connection, self.context) {
                if failure.kind == FailureKind::Fenced {
                    return Err(failure);
                }
                return Err(self.failed(steps.get(at..).unwrap_or_default(), last, failure));
            }
            step.intent.iter().cloned().for_each(|intent| unfinished.set_executed(intent));
            self.executed += 1;
        }
        // Behind the last one the record takes it back.
        if self.executed < self.singles.len() { self.connection.end_session_state() } else { Ok(()) }
    }

    fn step(&mut self, single: &'a SingleTransaction<'a>) -> Result<Step<'a>, Failure> {
        let place = |failure| match single.transaction.items().first() {
            Some(item) => at_statement(failure, single.transaction, item),
            None => failure,
        };
        Step::new(self.connection, self.context, single).map_err(place)
    }

    /// What was executed and is not recorded yet, in one commit with what is under way from now on.
    fn record(&mut self, under_way: UnderWay) -> Result<(), Failure> {
        let text = match under_way {
            UnderWay::Are(intents, to) => {
                let later = self.context.unfinished.later_than(to);
                Some(Intents::new(intents).with_later(&later).to_text())
            }
            UnderWay::Stays => None,
        };
        let unrecorded = self.singles.get(self.recorded..self.executed).unwrap_or_default();
        let progress = self.connection.progress();
        let (Some(first), Some(done)) = (unrecorded.first(), unrecorded.last()) else {
            let next = self.singles.get(self.executed).map(|single| single.range.before);
            // It goes with the settings of what is executed next.
            if let Some(text) = text {
                self.connection.script.statement(progress.intend(next, &text));
            }
            return Ok(());
        };
        let range = Range { first: first.range.first, before: first.range.before, ..done.range };
        let statement = match text {
            Some(text) => progress.advance_and_intend(range.before, range.mark, &text),
            None => progress.advance(range.before, range.mark),
        };
        self.connection.begin(done.transaction)?;
        self.connection.commit_with(range, statement)?;
        for single in unrecorded {
            self.context.unfinished.take_intent(single.transaction.seq);
        }
        (self.recorded, self.since) = (self.executed, Instant::now());
        *self.committed_to = range.mark.seq;
        Ok(())
    }

    /// The server says that the first of these was not executed. Those behind it were not either, unless an earlier run has begun them.
    fn failed(&mut self, steps: &[Step<'_>], last: Seq, failure: Failure) -> Failure {
        let Some((step, behind)) = steps.split_first().filter(|_| failure.kind != FailureKind::ConnectionLost) else {
            return failure;
        };
        let SingleTransaction { transaction, range, .. } = step.single;
        let begun = behind.iter().filter(|step| step.was_begun).filter_map(|step| step.intent.clone()).collect();
        // What could not be completed may still be so by another run.
        let under_way = if step.was_begun { UnderWay::Stays } else { UnderWay::Are(begun, last) };
        let done = self
            .connection
            .rollback()
            .and_then(|()| self.record(under_way))
            .and_then(|()| self.connection.send())
            .and_then(|()| after_failure(self.connection, self.context.unfinished, transaction, *range, failure));
        let failure = done.err().unwrap_or_else(|| Failure::new(FailureKind::Refused, "a definition has failed"));
        match transaction.items().first() {
            Some(item) => at_statement(failure, transaction, item),
            None => failure,
        }
    }
}

/// One of them, before it is executed.
struct Step<'a> {
    single: &'a SingleTransaction<'a>,
    statement: &'a StatementItem,
    kept: ExecutedPart,
    /// `None`: nothing of it is executed here, or it may be executed any number of times.
    intent: Option<Intent>,
    /// A run before this one, or another connection, has executed it, or begun to.
    was_begun: bool,
    /// Whether it may have been executed, whatever its fingerprint says.
    tried: Tried,
    is_by_itself: bool,
}

impl<'a> Step<'a> {
    fn new(
        connection: &mut ChannelConnection,
        context: BarrierContext<'_>,
        single: &'a SingleTransaction<'a>,
    ) -> Result<Self, Failure> {
        let transaction = single.transaction;
        let Some(statement) = statement(single) else {
            return Err(
                Failure::new(FailureKind::Refused, "not a definition: this is a bug in heddle").at(transaction.place())
            );
        };
        let before = context.unfinished.intent_of(transaction.seq);
        let tried = if before.is_some() { Tried::Perhaps } else { Tried::No };
        let kept = accounts::kept(connection, statement, transaction, tried)?;
        let mut step = Step { single, statement, kept, intent: None, was_begun: false, tried, is_by_itself: true };
        if let Some(statement) = step.executes() {
            let look = before.as_ref().map_or_else(FingerprintScope::default, |before| before.look);
            let taken = own_commit::fingerprint_of(connection, statement, look)?;
            let is_idempotent = statement.is_idempotent();
            step.is_by_itself = taken.is_by_itself;
            step.was_begun = before.as_ref().is_some_and(|before| before.fingerprint != taken.hash);
            let now = Intent { seq: transaction.seq, item: 0, fingerprint: taken.hash, look };
            step.intent = (!is_idempotent).then(|| before.filter(|_| step.was_begun).unwrap_or(now));
        }
        Ok(step)
    }

    fn seq(&self) -> Seq {
        self.single.transaction.seq
    }

    fn executes(&self) -> Option<&StatementItem> {
        match &self.kept {
            ExecutedPart::Nothing => None,
            ExecutedPart::Whole => Some(self.statement),
            ExecutedPart::Edited(edited) => Some(edited),
        }
    }

    fn run(&self, connection: &mut ChannelConnection, context: BarrierContext<'_>) -> Result<(), Failure> {
        let Some(statement) = self.executes() else { return Ok(()) };
        let transaction = self.single.transaction;
        let done = if self.was_begun {
            tracing::info!("a statement that was under way had been executed: {}", transaction.place());
            connection
                .send()
                .and_then(|()| connection.end_session_state())
                .and_then(|()| own_commit::complete(connection, context.branches, transaction, statement))
        } else {
            accounts::judge(execute_next(connection, statement), statement, self.tried)
                .and_then(|()| connection.after_own_commit())
        };
        done.map_err(|failure| accounts::explained(failure, statement, connection.info()))
    }
}

fn statement<'a>(single: &SingleTransaction<'a>) -> Option<&'a StatementItem> {
    match single.transaction.items() {
        [Item::Statement(statement)] => Some(statement),
        _ => None,
    }
}

/// How many from the first on can share the record of what is about to be executed; at least one.
fn together(singles: &[SingleTransaction<'_>]) -> usize {
    let is_repeatable = |single: &&SingleTransaction<'_>| statement(single).is_some_and(StatementItem::is_repeatable);
    apart(singles).max(singles.iter().take_while(is_repeatable).count())
}

/// How many from the first on do not show in each other's definitions; at least one.
fn apart(singles: &[SingleTransaction<'_>]) -> usize {
    let mut names: Vec<&ObjectName> = Vec::new();
    let mut count = 0;
    for single in singles {
        let Some(statement) = statement(single).filter(|statement| statement.shows_in_its_tables_only()) else { break };
        let tables = &statement.class.tables;
        if tables.iter().any(|table| names.iter().any(|name| may_name(name, &table.schema, &table.name))) {
            break;
        }
        names.extend(tables);
        count += 1;
    }
    count.max(1)
}
