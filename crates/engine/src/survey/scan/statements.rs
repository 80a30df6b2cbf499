//! Statements of a piece: what they begin and end, and why they run as barriers.

use binlog::boundary::{End, Step, Verb};
use binlog::load_data::ExecuteLoadQuery;
use binlog::{Event, Kind, Query, query};

use super::{Failed, PAYLOAD_BYTES_MAX, Scan};
use crate::sql::{self, Class, DdlKind, SqlMode};
use crate::survey::Cause;

/// Characters of a statement that are kept.
const TEXT_CHARS_MAX: usize = 160;

impl Scan<'_> {
    pub(super) fn query(&mut self, event: &Event, offset: u64) -> Result<(), Failed> {
        let length = event.bytes().len() as u64;
        let (format, kind) = (&self.piece.format, event.kind());
        let body = event.body();
        // Most are just BEGIN, and need not be decoded.
        if kind == Kind::QUERY && matches!(query::peek(body, kind, format), Some((_, b"BEGIN"))) {
            self.opens(event, offset);
            return Ok(());
        }
        let (query, load) = if kind == Kind::EXECUTE_LOAD_QUERY {
            let load = ExecuteLoadQuery::decode(event, format).map_err(|corrupt| corrupt.to_string())?;
            (load.query, true)
        } else {
            (Query::decode_within(event, format, PAYLOAD_BYTES_MAX).map_err(|corrupt| corrupt.to_string())?, false)
        };
        let verb = if load { Verb::Other } else { Verb::of(&query.sql) };
        if verb == Verb::Begin {
            self.opens(event, offset);
            return Ok(());
        }
        let is_end = matches!(verb, Verb::Commit | Verb::Rollback);
        if self.current.is_none() && (self.lost || is_end) {
            return Ok(());
        }
        let step = self.boundary.query(verb);
        if matches!(step, Step::Begins { .. } | Step::Ends { first: true, .. }) {
            self.begin(event, offset);
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        let record = &mut current.record;
        if record.tags.session == 0 {
            record.tags.session = query.thread_id;
        }
        let began = event.header().timestamp;
        record.ended_us = record.ended_us.max(ended_us(began, query.exec_time));
        if query.exec_time >= record.exec_seconds {
            (record.exec_seconds, record.exec_began) = (query.exec_time, began);
        }
        if is_end || matches!(step, Step::Ends { by: End::Rollback, .. }) {
            record.no_branch();
            self.end(offset + length, false);
            return Ok(());
        }
        let mode = SqlMode::of(&query.vars);
        let statement = sql::classify(&query.sql, &String::from_utf8_lossy(&query.schema), mode);
        if self.tables.selection().leaves_out(&statement, &query) {
            if matches!(step, Step::Ends { .. }) {
                self.end(offset + length, false);
            }
            return Ok(());
        }
        let class = statement.class;
        let cause = match class {
            // Of a transaction that is under way.
            Class::Savepoint | Class::RollbackTo | Class::Release => None,
            Class::XaStart { .. } => {
                record.prepares = true;
                Some(Cause::Xa)
            }
            Class::XaCommit { .. } | Class::XaRollback => {
                record.completes = true;
                Some(Cause::Xa)
            }
            Class::XaEnd | Class::XaPrepare => Some(Cause::Xa),
            Class::Ddl { kind } => {
                // Its rows follow.
                record.create_select |= matches!(kind, DdlKind::CreateTable { start_transaction: true, .. });
                record.blocking |= is_blocking(kind);
                Some(Cause::of_ddl(kind))
            }
            Class::Dml { .. } | Class::SetStatement if load => Some(Cause::LoadData),
            Class::Dml { .. } | Class::SetStatement => Some(Cause::Statement),
            Class::Begin | Class::Commit | Class::Rollback | Class::Unknown => Some(Cause::Unknown),
        };
        if let Some(cause) = cause {
            record.statements += 1;
            if record.text.is_none() && cause != Cause::Account {
                record.text = Some(sql::shown(&query.sql, mode, TEXT_CHARS_MAX).into());
            }
            record.barrier = Some(record.barrier.map_or(cause, |known| known.min(cause)));
        }
        if matches!(step, Step::Ends { .. }) {
            self.end(offset + length, false);
        }
        Ok(())
    }

    /// BEGIN.
    fn opens(&mut self, event: &Event, offset: u64) {
        if matches!(self.boundary.query(Verb::Begin), Step::Begins { .. }) {
            self.begin(event, offset);
        }
        // The session, and how long after its own time the event was logged.
        if let (Some(current), Some(&[a, b, c, d, e, f, g, h])) = (&mut self.current, event.body().first_chunk::<8>()) {
            current.record.tags.session = u32::from_le_bytes([a, b, c, d]);
            current.record.ended_us = ended_us(event.header().timestamp, u32::from_le_bytes([e, f, g, h]));
        }
    }
}

/// The clock of the server when it logged a statement with this time.
fn ended_us(time: u32, exec_time: u32) -> u64 {
    (u64::from(time) + u64::from(exec_time)) * 1_000_000
}

/// As in [`crate::tags::Subject::blocking`].
fn is_blocking(kind: DdlKind) -> bool {
    use DdlKind::{AlterDatabase, Analyze, CreateDatabase, DropDatabase, Optimize, Repair};
    matches!(kind, Analyze | Optimize | Repair | CreateDatabase | AlterDatabase | DropDatabase)
}
