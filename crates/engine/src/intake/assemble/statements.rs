//! Statements of a transaction, and what stands in front of them in the log: variables, the data of LOAD DATA.

use std::ops::Range;
use std::sync::Arc;

use binlog::boundary::{End, Step, Verb};
use binlog::intvar::IntVar;
use binlog::load_data::ExecuteLoadQuery;
use binlog::rand::Rand;
use binlog::user_var::UserVar;
use binlog::{Corruption, Event, FormatDescription, Header, Kind, LogPosition, Query};

use super::{AssembleError, Assembler};
use crate::intake::selection::{Fate, Refusal, SelectedStatement};
use crate::row_session::RowSession;
use crate::sql::{self, Class, SqlMode};
use crate::transaction::{BarrierCause, Context, LoadFile, StatementItem};

/// Variables before one statement.
pub(super) const CONTEXT_MAX: usize = 100_000;

impl Assembler {
    /// INTVAR, RAND, USER_VAR.
    pub(super) fn add_context(
        &mut self,
        event: &Event,
        format: &FormatDescription,
        at: &LogPosition,
    ) -> Result<(), AssembleError> {
        let context = context_of(event, format).map_err(|source| AssembleError::corrupt(event, at, source))?;
        if self.context.len() >= CONTEXT_MAX {
            let what = format!("more than {CONTEXT_MAX} variables for one statement");
            return Err(AssembleError::unexpected(at, what));
        }
        if self.building.as_ref().is_some_and(|building| !building.spilled) {
            if self.context.is_empty() {
                self.context_bytes = 0;
            }
            self.context_bytes += event.bytes().len() as u64;
            self.context.push(context);
        }
        self.check_held("variables for one statement,", self.context_bytes, at)
    }

    /// True when it ends the transaction.
    pub(super) fn query(
        &mut self,
        event: &Event,
        mut query: Query,
        format: &FormatDescription,
        at: &LogPosition,
    ) -> Result<bool, AssembleError> {
        query.vars.explicit_defaults_for_timestamp = query.vars.explicit_defaults(format);
        let verb = Verb::of(&query.sql);
        if verb == Verb::Begin {
            self.opens(event, at, Arc::new(RowSession::of(&query.vars)))?;
            return Ok(false);
        }
        let mut class = classify(&query);
        let is_taken = self.select(&mut query, &mut class, None, at)?;
        let step = self.boundary.query(verb);
        self.begin_if_first(step, event, at);
        let Some(building) = &mut self.building else { return Ok(false) };
        building.server_id = event.header().server_id;
        if building.tags.session == 0 {
            building.tags.session = query.thread_id;
        }
        let ends = matches!(step, Step::Ends { .. });
        if building.skips_alter {
            self.context.clear();
            return Ok(ends);
        }
        match (step, &class.class) {
            // COMMIT of a nontransactional change, or of an old server.
            (Step::Ends { by: End::Commit, .. }, _) => building.make_one_phase(),
            // ROLLBACK when only such changes remain, also as XA ROLLBACK of a branch that was not prepared.
            (Step::Ends { by: End::Rollback, .. }, _) => {
                building.ends_rolled_back();
                class = sql::Statement { class: Class::Rollback, xid: None, ..class };
                self.push_statement(event, query, class, None);
            }
            // Rows of what was rolled back are not in the log unless ROLLBACK TO is there, too.
            (Step::Inside, Class::Savepoint) => self.push_statement(event, query, class, None),
            (Step::Inside, Class::RollbackTo) => {
                building.rolls_back_to = true;
                self.push_statement(event, query, class, None);
            }
            _ => {
                if verb == Verb::XaStart {
                    building.session = Some(Arc::new(RowSession::of(&query.vars)));
                }
                match is_taken {
                    Taken::Yes => {
                        building.barrier = building.barrier.max(Some(barrier_of(&class.class)));
                        self.push_statement(event, query, class, None);
                    }
                    Taken::No(note) => {
                        building.leave_out_statement(event.bytes().len() as u64, note);
                        self.context.clear();
                    }
                    Taken::Refused(refusal) => {
                        building.refuse(&refusal);
                        self.context.clear();
                    }
                }
            }
        }
        Ok(ends)
    }

    /// Whether the statement is applied; then as it is applied. `name_range`: a place in its text that keeps its meaning.
    fn select(
        &self,
        query: &mut Query,
        class: &mut sql::Statement,
        name_range: Option<&mut Range<usize>>,
        at: &LogPosition,
    ) -> Result<Taken, AssembleError> {
        match self.tables.selection().statement(class, query) {
            SelectedStatement::Fate(Fate::Whole) => Ok(Taken::Yes),
            SelectedStatement::Fate(Fate::LeftOut(why)) => {
                const SHOWN_CHARACTERS: usize = 160;
                let shown = || sql::shown(&query.sql, SqlMode::of(&query.vars), SHOWN_CHARACTERS);
                Ok(Taken::No(why.map(|why| format!("{} ({why})", shown()))))
            }
            SelectedStatement::Fate(Fate::Rewritten(rewritten)) => {
                if let Some(range) = name_range {
                    *range = rewritten.moved(range.start)..rewritten.moved(range.end);
                }
                query.sql = rewritten.sql.into();
                query.schema = rewritten.schema.into();
                *class = classify(query);
                Ok(Taken::Yes)
            }
            SelectedStatement::Foreign(object) => Err(AssembleError::Foreign { position: at.clone(), object }),
            SelectedStatement::Refused(refusal) => Ok(Taken::Refused(refusal)),
        }
    }

    fn push_statement(&mut self, event: &Event, query: Query, class: sql::Statement, file: Option<LoadFile>) {
        let context = std::mem::take(&mut self.context);
        let Some(building) = &mut self.building else { return };
        let statement = StatementItem {
            query,
            timestamp: event.header().timestamp,
            suppress_use: event.header().flags & Header::FLAG_SUPPRESS_USE != 0,
            context,
            class,
            file,
        };
        if self.finds_unsafe {
            building.note_unsafe(&statement);
        }
        building.push_statement(statement);
    }

    /// True when it ends the transaction.
    pub(super) fn load(
        &mut self,
        event: &Event,
        mut load: ExecuteLoadQuery,
        at: &LogPosition,
    ) -> Result<bool, AssembleError> {
        let unexpected = |what: String| AssembleError::unexpected(at, what);
        let Some(data) = self.load_files.take(load.file_id) else {
            return Err(AssembleError::NoLoadData { position: at.clone(), file: load.file_id });
        };
        let mut name_range = load.file_name_start as usize..load.file_name_end as usize;
        if load.query.sql.get(name_range.clone()).is_none() {
            return Err(unexpected("LOAD DATA whose file name lies outside its text".to_owned()));
        }
        let mut class = classify(&load.query);
        let is_taken = self.select(&mut load.query, &mut class, Some(&mut name_range), at)?;
        let step = self.boundary.query(Verb::Other);
        self.begin_if_first(step, event, at);
        let Some(building) = &mut self.building else { return Ok(false) };
        let file = LoadFile { data, name_range, duplicates: load.duplicates as u8 };
        match is_taken {
            Taken::Yes => {
                building.barrier = building.barrier.max(Some(BarrierCause::LoadData));
                self.push_statement(event, load.query, class, Some(file));
            }
            Taken::No(note) => {
                building.leave_out_statement(event.bytes().len() as u64, note);
                self.context.clear();
            }
            Taken::Refused(refusal) => {
                building.refuse(&refusal);
                self.context.clear();
            }
        }
        Ok(matches!(step, Step::Ends { .. }))
    }
}

/// What the selection has said of a statement.
enum Taken {
    Yes,
    /// With what the log of this run says of it.
    No(Option<String>),
    Refused(Refusal),
}

fn classify(query: &Query) -> sql::Statement {
    let mode = SqlMode::of(&query.vars);
    sql::classify(&query.sql, &String::from_utf8_lossy(&query.schema), mode)
}

/// What a statement that is not a transaction's frame keeps from running beside others.
fn barrier_of(class: &Class) -> BarrierCause {
    match class {
        Class::Dml { .. } | Class::Savepoint | Class::RollbackTo | Class::Release | Class::SetStatement => {
            BarrierCause::Statement
        }
        Class::XaStart { .. } | Class::XaEnd | Class::XaPrepare | Class::XaCommit { .. } | Class::XaRollback => {
            BarrierCause::Xa
        }
        Class::Ddl { kind } if kind.is_account() => BarrierCause::Account,
        Class::Ddl { .. } => BarrierCause::Ddl,
        Class::Begin | Class::Commit | Class::Rollback | Class::Unknown => BarrierCause::Unknown,
    }
}

fn context_of(event: &Event, format: &FormatDescription) -> Result<Context, Corruption> {
    Ok(match event.kind() {
        Kind::INTVAR => match IntVar::decode(event, format)? {
            IntVar::LastInsertId(id) => Context::LastInsertId(id),
            IntVar::InsertId(id) => Context::InsertId(id),
        },
        Kind::RAND => {
            let rand = Rand::decode(event, format)?;
            Context::Rand(rand.seed1, rand.seed2)
        }
        _ => Context::UserVariable(UserVar::decode(event, format)?),
    })
}
