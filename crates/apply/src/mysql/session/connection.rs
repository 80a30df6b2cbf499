//! One connection of the channel, and the target transaction that may be open on it.
//!
//! Rows, progress and commit go into one script, which is sent in as few packets as possible. It knows no statement of the source and no XA
//! transaction: `statements` and `xa` use it.

use std::sync::Arc;

use binlog::Flavour;
use binlog::gtids::Gtid;
use engine::branches::NetBranches;
use engine::compact::{Batch, event_by_key, whole_event};
use engine::failure::{Failure, FailureKind};
use engine::row_session::RowSession;
use engine::schema::Leftovers;
use engine::transaction::{RowsItem, StatementItem, Transaction};
use wire::{Connection, ResultSet};

use super::channel::{ChannelContext, Ddl};
use super::lease::STATEMENTS;
use super::state::row_state::RowState;
use super::state::statement_state::KeptState;
use crate::Range;
use crate::mysql::progress::branches::{kept_branches, open_branches};
use crate::mysql::progress::progress_rows::ProgressRows;
use crate::mysql::progress::statements::Statements;
use crate::mysql::rows;
use crate::mysql::rows::binlog_statement::session::of_source;
use crate::mysql::rows::sequences::CompletedRow;
use crate::mysql::rows::writer::RowWriter;
use crate::mysql::script::Script;
use crate::mysql::server::errors::failed;
use crate::mysql::server::gtids::{AUTOMATIC, GtidRules, set_origin};
use crate::mysql::server::info::TargetInfo;

pub struct ChannelConnection {
    pub(super) channel: Arc<ChannelContext>,
    pub(super) number: usize,
    pub wire: Connection,
    pub script: Script,
    pub(super) rows: Box<dyn RowWriter>,
    pub(super) progress_rows: ProgressRows,
    /// `max_allowed_packet`, which may be another than that of the connection before.
    pub(super) packet_bytes_max: usize,
    /// A transaction has begun on the target.
    pub(super) is_open: bool,
    /// The state that the connection has for rows; `None`: that of Heddle's own sessions.
    row_state: Option<RowState>,
    /// It has had such a state: after an error it may still have it.
    had_row_state: bool,
    /// The server has rolled a transaction back by itself, but for changes to tables without transactions.
    pub has_left_a_part: bool,
    /// The domain and server that the connection gives its next GTIDs (MariaDB), if that is known.
    pub(super) gtid_origin: Option<(u32, u32)>,
    /// The transaction that is open is not logged, and gets no GTID.
    is_unlogged: bool,
    /// The open transaction has a checksum of Heddle's tables from before its statements.
    is_guarded: bool,
    /// That of a statement of the source which the session still has.
    session_state: KeptState,
}

/// Where the channel may go on at another node, nobody can end what is left here: each record of progress compares the lease then, as only statements do.
fn progress_rows(channel: &ChannelContext) -> ProgressRows {
    if channel.connector.has_other_nodes() {
        ProgressRows::by_statements()
    } else {
        ProgressRows::new(channel.progress_table())
    }
}

impl ChannelConnection {
    /// Connection `number` of the channel, once nothing of an earlier one can commit any more.
    pub fn open(channel: &Arc<ChannelContext>, number: usize) -> Result<Self, Failure> {
        let wire = connect(channel, number)?;
        let packet_bytes_max = channel.info().packet_bytes_max;
        let mut connection = Self {
            channel: Arc::clone(channel),
            number,
            wire,
            script: Script::new(packet_bytes_max),
            rows: rows::writer(channel.info(), &channel.quirks),
            progress_rows: progress_rows(channel),
            packet_bytes_max,
            is_open: false,
            row_state: None,
            had_row_state: false,
            has_left_a_part: false,
            gtid_origin: None,
            is_unlogged: false,
            is_guarded: false,
            session_state: KeptState::default(),
        };
        connection.introduce()?;
        Ok(connection)
    }

    /// Another connection of the channel.
    pub fn open_another(&self, number: usize) -> Result<Self, Failure> {
        Self::open(&self.channel, number)
    }

    /// After the connection was lost: connects anew, once nothing of the old one can commit any more.
    pub fn reconnect(&mut self) -> Result<(), Failure> {
        self.forget();
        self.wire = connect(&self.channel, self.number)?;
        self.forget_settings();
        self.introduce()
    }

    /// Prepares the connection for rows, and lets the others know which connection this is.
    fn introduce(&mut self) -> Result<(), Failure> {
        self.packet_bytes_max = packet_bytes_max(&mut self.wire)?;
        self.script = Script::new(self.packet_bytes_max);
        self.rows.set_up(&mut self.wire, self.packet_bytes_max)?;
        self.channel.register(self.number, self.wire.server().connection_id);
        Ok(())
    }

    /// Nothing waits to be sent, nothing is open, and nothing is known of the connection's settings.
    fn forget(&mut self) {
        self.script.clear();
        self.is_open = false;
        self.is_guarded = false;
        self.gtid_origin = None;
    }

    /// The session on the server is a new one.
    fn forget_settings(&mut self) {
        (self.row_state, self.had_row_state, self.is_unlogged) = (None, false, false);
        self.session_state.set(None);
    }

    pub fn number(&self) -> usize {
        self.number
    }

    pub fn channel(&self) -> &str {
        self.channel.lease.channel()
    }

    pub fn channel_context(&self) -> &Arc<ChannelContext> {
        &self.channel
    }

    pub fn info(&self) -> &TargetInfo {
        self.channel.info()
    }

    pub fn ddl(&self) -> Ddl {
        self.channel.ddl()
    }

    pub fn gtids(&self) -> &GtidRules {
        &self.channel.gtids
    }

    /// The statements on the channel's progress.
    pub fn progress(&self) -> Statements {
        self.channel.lease.statements()
    }

    pub fn rows(&mut self) -> &mut dyn RowWriter {
        &mut *self.rows
    }

    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// That of the statement that was executed before; see [`KeptState`].
    pub fn session_state(&mut self) -> &mut KeptState {
        &mut self.session_state
    }

    /// Takes back what the session has of a statement's state, if anything.
    pub fn end_session_state(&mut self) -> Result<(), Failure> {
        match self.session_state.take_reset() {
            Some(reset) => self.execute_despite_interruption(&reset),
            None => Ok(()),
        }
    }

    /// Sends what has gathered in the script.
    pub fn send(&mut self) -> Result<(), Failure> {
        self.send_script().map(|_| ())
    }

    fn send_script(&mut self) -> Result<Vec<ResultSet>, Failure> {
        let results = self.script.send(&mut self.wire).map_err(|failure| self.explained(failure))?;
        self.session_state.forget_ended();
        Ok(results)
    }

    fn explained(&self, failure: Failure) -> Failure {
        match self.channel.bookkeeping_guard() {
            Some(guard) => guard.explained(failure),
            None => failure,
        }
    }

    /// Before a statement of the source in the transaction that is open: what it runs may change Heddle's tables ([`bookkeeping_guard`]).
    ///
    /// [`bookkeeping_guard`]: super::bookkeeping_guard
    /// `idle`: no statement is under way, so the server can be asked about the table.
    pub fn guard_bookkeeping(&mut self, statement: &StatementItem, idle: bool) -> Result<(), Failure> {
        let Some(guard) = self.channel.bookkeeping_guard().filter(|_| !self.is_guarded) else { return Ok(()) };
        if guard.is_needed(statement, idle.then_some(&mut self.wire))? {
            self.script.statement(guard.note());
            self.is_guarded = true;
        }
        Ok(())
    }

    /// So that [`ChannelConnection::guard_bookkeeping`] need not ask.
    pub fn learn_table(&mut self, statement: &StatementItem) -> Result<(), Failure> {
        let Some(guard) = self.channel.bookkeeping_guard() else { return Ok(()) };
        guard.is_needed(statement, Some(&mut self.wire)).map(|_| ())
    }

    /// Behind the source's statements, before the first change of Heddle's own to its tables in the same transaction.
    pub fn check_bookkeeping(&mut self) {
        if std::mem::take(&mut self.is_guarded)
            && let Some(guard) = self.channel.bookkeeping_guard()
        {
            self.script.statement(guard.check());
        }
    }

    /// Runs one statement. Nothing may wait in the script.
    pub fn execute(&mut self, sql: impl AsRef<[u8]>) -> Result<(), Failure> {
        self.wire.execute(sql).map(|_| ()).map_err(failed)
    }

    /// The first column of the first row.
    pub fn scalar(&mut self, sql: impl AsRef<[u8]>) -> Result<Option<String>, Failure> {
        self.wire.scalar(sql).map_err(failed)
    }

    /// Begins the target transaction, if none is open. `named_by`: the source transaction whose GTID and server it is of, the last one.
    pub fn begin(&mut self, named_by: &Transaction) -> Result<(), Failure> {
        if self.is_open {
            return Ok(());
        }
        if let Some(reset) = self.session_state.end() {
            self.script.statement(reset);
        }
        self.rows.set_server_id(named_by.server_id);
        if self.channel.gtids.are_added() && named_by.defers_branch() {
            // Nothing else is in it. Its GTID is executed where the branch is prepared, or ends.
            self.is_unlogged = true;
            self.script.statement("SET SESSION sql_log_bin=0");
        } else if let Some(statement) = self.channel.gtids.statement(named_by.gtid.as_ref())? {
            self.gtid_origin = None;
            self.script.statement(statement);
        }
        self.script.statement("BEGIN");
        self.is_open = true;
        Ok(())
    }

    /// MariaDB tells temporary tables apart by the number of the server that their statements are of: what makes one has to be of the same as
    /// what uses it later.
    pub fn use_server_of(&mut self, transaction: &Transaction) -> Result<(), Failure> {
        if let Some(&Gtid::MariaDb { domain, server, .. }) = self.channel.gtids.preserved(transaction.gtid.as_ref())? {
            self.gtid_origin = None;
            self.execute_despite_interruption(&set_origin(domain, server))?;
        }
        Ok(())
    }

    /// The GTID is used up, and what is open may have more to log: what a trigger changed in tables of the other kind. MariaDB numbers that on, and under the source's server it would
    /// take the place of the source's next transaction.
    pub fn use_own_server(&mut self) -> Result<(), Failure> {
        if self.info().flavour != Flavour::MariaDb || !self.gtids().are_preserved() {
            return Ok(());
        }
        self.gtid_origin = None;
        self.execute_despite_interruption("SET SESSION server_id=@@global.server_id")
    }

    /// Appends the rows, in the transaction that is open.
    pub fn write_rows(&mut self, batches: &[Batch<'_>]) -> Result<(), Failure> {
        // What makes way for rows changes the state, and takes it back behind.
        self.had_row_state |= self.channel.quirks.leftovers() == Leftovers::Kept;
        for batch in batches {
            self.sync_batch_state(batch);
            self.rows.write(batch, &mut self.script, &mut self.wire)?;
        }
        self.after_rows();
        Ok(())
    }

    /// Appends the rows of one event of a barrier, in the transaction that is open.
    pub fn write_event(&mut self, event: &RowsItem) -> Result<(), Failure> {
        let key_columns = self.channel.quirks.key_columns.get(&event.map);
        let by_key = match &key_columns {
            Some(columns) => event_by_key(event, columns).map_err(|error| rows::images::corrupt(&event.map, &error))?,
            None => None,
        };
        let batch = by_key.unwrap_or_else(|| whole_event(event));
        if let Some(statement) = self.rows.choose_history_partition(&batch) {
            self.script.statement(statement);
        }
        self.write_rows(&[batch])
    }

    /// See [`RowWriter::write_stored`].
    pub fn write_stored_rows(&mut self, stored: &str) -> Result<(), Failure> {
        self.had_row_state |= self.channel.quirks.leftovers() == Leftovers::Kept;
        self.rows.write_stored(stored, &mut self.script)
    }

    /// See [`RowWriter::complete`].
    pub fn complete_rows(&mut self, batch: &Batch<'_>) -> Result<Option<CompletedRow>, Failure> {
        self.rows.complete(batch, &mut self.wire)
    }

    /// Sets the state of the source's session, before rows with values that the server works out as it would in that session. Without such a
    /// session the state does not matter. Statements of our own come after [`ChannelConnection::use_own_settings`].
    pub(super) fn sync_session_state(&mut self, session: Option<&Arc<RowSession>>) {
        let Some(session) = session.filter(|_| self.info().flavour == Flavour::MySql) else { return };
        let has_it = self.row_state.as_ref().is_some_and(|state| state.session.as_ref() == Some(session));
        if !has_it {
            self.script.statement(of_source(session, self.channel.info()));
            self.row_state = Some(RowState { session: Some(Arc::clone(session)), has_timestamps: false });
            self.had_row_state = true;
        }
    }

    pub(super) fn row_state(&self) -> Option<&RowState> {
        self.row_state.as_ref()
    }

    /// What was sent has set it.
    pub(super) fn set_row_state(&mut self, state: RowState) {
        self.row_state = Some(state);
        self.had_row_state = true;
    }

    pub(super) fn use_own_settings(&mut self) {
        if self.row_state.take().is_some() {
            self.script.statement(self.after_row_state());
        }
    }

    /// Only workers' connections have nothing but rows: on the others statements of all kinds come next.
    pub(super) fn after_rows(&mut self) {
        if self.number >= STATEMENTS {
            self.use_own_settings();
        }
    }

    /// Records the progress, commits, and reads the answers of all that was not sent yet.
    pub fn record_and_commit(&mut self, range: Range<'_>) -> Result<(), Failure> {
        self.use_own_settings();
        self.check_bookkeeping();
        if !range.branches.is_empty() {
            self.record_branches(range)?;
        }
        self.commit_with(range, self.progress().record(range))
    }

    /// Keeps the rows of XA branches that are open behind the range.
    fn record_branches(&mut self, range: Range<'_>) -> Result<(), Failure> {
        let net = NetBranches::of(range.branches.iter().map(|transaction| &**transaction));
        if self.channel.gtids.are_grouped() {
            let target = (&mut self.script, &mut self.wire);
            let keep = open_branches::keep(self.channel.lease.channel(), &net, &mut *self.rows, target, range.before)?;
            return self.channel.run_unlogged(&keep);
        }
        let channel = self.channel.lease.channel();
        kept_branches::record(&mut self.script, &mut *self.rows, &mut self.wire, channel, &net)
    }

    /// Commits what is open with a statement that records the progress.
    pub fn commit_with(&mut self, range: Range<'_>, record: String) -> Result<(), Failure> {
        self.check_bookkeeping();
        self.script.statement(record);
        self.script.statement("COMMIT");
        let results = self.send_script()?;
        self.is_open = false;
        // By itself: if somebody ends it, what is committed must not look as if it were not.
        self.log_again()?;
        let recorded = results.len().checked_sub(2).and_then(|at| results.get(at));
        match recorded.map(|result| result.ok.affected) {
            Some(1) => Ok(()),
            _ => Err(self.progress().not_recorded(range)),
        }
    }

    /// Rows, progress and commit, each as statements of their own.
    pub fn write_and_commit(
        &mut self,
        named_by: &Transaction,
        batches: &[Batch<'_>],
        range: Range<'_>,
    ) -> Result<(), Failure> {
        self.begin(named_by)?;
        self.write_rows(batches)?;
        self.record_and_commit(range)
    }

    pub fn rollback(&mut self) -> Result<(), Failure> {
        self.forget();
        if self.number >= STATEMENTS {
            self.use_own_server()?;
        }
        self.execute_despite_interruption("ROLLBACK")?;
        self.end_session_state()?;
        self.row_state = None;
        if self.had_row_state || self.rows.needs_own_state() {
            self.execute_despite_interruption(&self.after_row_state())?;
            self.had_row_state = false;
        }
        self.log_again()
    }

    /// What comes next is logged, under a GTID of the target's own if nothing else is said.
    fn log_again(&mut self) -> Result<(), Failure> {
        if self.is_unlogged {
            self.execute_despite_interruption("SET SESSION sql_log_bin=1")?;
            self.is_unlogged = false;
        }
        if self.channel.gtids.use_gtid_next() {
            self.execute_despite_interruption(AUTOMATIC)?;
        }
        Ok(())
    }

    /// Whether the server says, of the rollback before, that something could not be rolled back.
    pub fn warns_of_a_rest(&mut self) -> Result<bool, Failure> {
        const NOT_COMPLETE_ROLLBACK: &str = "1196";
        let warnings = self.wire.rows("SHOW WARNINGS").map_err(failed)?;
        Ok(warnings.iter().any(|row| matches!(row.text(1), Ok(Some(NOT_COMPLETE_ROLLBACK)))))
    }

    /// A statement of the source has ended the transaction that was open, if any.
    pub fn after_own_commit(&mut self) -> Result<(), Failure> {
        self.is_open = false;
        self.is_guarded = false;
        if self.channel.gtids.use_gtid_next() {
            self.execute_despite_interruption(AUTOMATIC)?;
        }
        Ok(())
    }

    /// Runs a statement that must not be lost to a `KILL QUERY` that came late: it was meant for the one before, and MariaDB keeps it for the
    /// next. A rollback that is lost leaves the locks that it was to release.
    pub fn execute_despite_interruption(&mut self, sql: &str) -> Result<(), Failure> {
        match self.wire.execute_repeatable(sql) {
            Err(error) if error.is_interruption() => {
                let message = format!("{sql} was interrupted again and again: the connection's state is not known");
                Err(Failure::new(FailureKind::Refused, message))
            }
            done => done.map(|_| ()).map_err(failed),
        }
    }
}

fn connect(channel: &ChannelContext, number: usize) -> Result<Connection, Failure> {
    let mut wire = channel.connector.connect()?;
    if number == STATEMENTS {
        // As clients and the servers' own appliers have it for statements. MariaDB refuses some in READ COMMITTED (REPLACE into a UNIQUE over
        // TEXT), which is for rows.
        wire.execute_repeatable("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ").map_err(failed)?;
    }
    channel.lease.take_over(&mut wire, number)?;
    Ok(wire)
}

fn packet_bytes_max(connection: &mut Connection) -> Result<usize, Failure> {
    let bytes = connection.scalar("SELECT @@session.max_allowed_packet").map_err(failed)?;
    let bytes: usize = bytes
        .and_then(|bytes| bytes.parse().ok())
        .ok_or_else(|| Failure::new(FailureKind::Refused, "the target does not say what its max_allowed_packet is"))?;
    if bytes < PACKET_BYTES_MIN {
        return Err(Failure::new(
            FailureKind::Refused,
            format!("the target's max_allowed_packet is {bytes} bytes: too little for rows with the progress that goes with them"),
        )
        .remedy(format!(
            "SET GLOBAL max_allowed_packet = {PACKET_BYTES_MIN} on the target at least, and 4/3 of the largest row (the servers' defaults are 16 and 64 MiB)"
        )));
    }
    Ok(bytes)
}

/// Statements of heddle's own have up to some kilobytes.
const PACKET_BYTES_MIN: usize = 64 << 10;
