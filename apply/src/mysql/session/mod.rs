//! One worker's connection: rows as `BINLOG` statements, progress and commit in the same packet.

pub(in crate::mysql) mod one_statement;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use binlog::gtids::Gtid;
use binlog::{Flavour, RowsKind};
use engine::Seq;
use engine::compact::Batch;
use engine::failure::{Failure, FailureKind};
use engine::row_session::RowSession;
use engine::transaction::Transaction;
use wire::Connection;

use self::one_statement::Room;
use crate::mysql::progress::as_row::Notes;
use crate::mysql::progress::executed;
use crate::mysql::progress::statements::{SCHEMA, Statements};
use crate::mysql::rows::ambiguous_rows;
use crate::mysql::rows::binlog_statement::encoder::{Dialect, Encoder};
use crate::mysql::rows::sequences;
use crate::mysql::script::Script;
use crate::mysql::server::errors::{FENCE_COLUMN, code, failed};
use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::sql::quote;
use crate::mysql::statements::exactly_once::Intent;
use crate::mysql::statements::{context, pipeline};
use crate::mysql::xa::deferred;
use crate::mysql::{Shared, locked};
use crate::spilled::SpilledTransactions;
use crate::{Commit, Range, Session, Single, WORKERS_MAX};

/// The number of the session that runs statements for all workers; beyond any worker's.
pub(in crate::mysql) const ALONE: usize = 4096;
/// The first number of the sessions that prepare XA transactions.
pub(in crate::mysql) const XA: usize = 4097;
/// The number of the connection that lives while the source can not be reached.
pub(in crate::mysql) const SOURCE_LOST: usize = 5000;

/// How long one try to get a session's lock waits, in seconds: connections that were closed disappear meanwhile.
const TAKE_OVER_S: u32 = 2;
/// A `KILL QUERY` hits one statement, and few are under way at once.
const INTERRUPTIONS_MAX: usize = 20;
/// The lock monitor ends waits that would not end by themselves; this bounds the rest.
const LOCK_WAIT_MAX_S: u32 = 300;
const SWEEP_PAUSE: Duration = Duration::from_millis(20);
const TELL_EVERY: Duration = Duration::from_secs(10);

pub struct MySqlSession {
    pub(in crate::mysql) shared: Arc<Shared>,
    pub(in crate::mysql) number: usize,
    pub(in crate::mysql) connection: Connection,
    /// The connection's `max_allowed_packet`, which may be another than the one before had.
    pub(in crate::mysql) packet_bytes_max: usize,
    pub(in crate::mysql) encoder: Encoder,
    pub(in crate::mysql) script: Script,
    pub(in crate::mysql) notes: Notes,
    /// Of one statement, while it is made.
    pub(in crate::mysql) events: Vec<u8>,
    /// A transaction has begun on the target.
    pub(in crate::mysql) open: bool,
    /// The last commit has failed: the next one has a statement for each step, whose errors say more.
    stepwise: bool,
    /// Whose rows the connection is set up for, if another's than our own ([`MySqlSession::be_like`]).
    row_session: Option<Arc<RowSession>>,
    /// It has been set up so: after an error nobody knows whether it still is.
    was_another: bool,
    /// The domain and server that the connection gives its next GTIDs (MariaDB), if that is known.
    pub(in crate::mysql) gtids_from: Option<(u32, u32)>,
}

/// Makes a session independent of the target's settings. `logged`: what it changes goes into the target's own binary log, if it has one.
pub(in crate::mysql) fn set_up(connection: &mut Connection, info: &TargetInfo, logged: bool) -> Result<(), Failure> {
    // These end an open transaction or are not allowed inside it, and nothing that is executed later changes them.
    let mut once = String::from(
        "SET SESSION autocommit=1, foreign_key_checks=1, unique_checks=1;SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
    );
    if info.log_bin && !info.binlog_format_is_row {
        // Read committed needs it, and so does a replica of this target.
        once.push_str(";SET SESSION binlog_format='ROW'");
    }
    if info.log_bin && !logged {
        once.push_str(";SET SESSION sql_log_bin=0");
    }
    connection.execute(format!("{};{once}", settings(info))).map(|_| ()).map_err(failed)
}

/// What [`context::for_rows`] changes, as sessions of ours have it.
fn not_for_rows() -> String {
    format!("SET SESSION sql_mode='{SQL_MODE}', time_zone=DEFAULT, lc_time_names=DEFAULT")
}

/// Of all sessions of ours.
const SQL_MODE: &str = "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

/// The part that also holds inside a transaction, for after a statement with its own context: one SET.
pub(in crate::mysql) fn settings(info: &TargetInfo) -> String {
    let mut settings = format!(
        "SET NAMES utf8mb4, SESSION sql_mode='{SQL_MODE}', \
         innodb_lock_wait_timeout={LOCK_WAIT_MAX_S}, wait_timeout=86400, completion_type='NO_CHAIN', sql_select_limit={all}, \
         sql_big_selects=1, max_join_size={all}, sql_safe_updates=0",
        all = u64::MAX,
    );
    let (mysql, version) = (info.flavour == Flavour::MySql, info.version);
    for (setting, is_there) in [
        // What a server may be set to do to its clients, and never does to its own applier: end what takes long, add columns to tables.
        ("max_execution_time=0", mysql && version >= (5, 7, 8)),
        ("max_statement_time=0", !mysql && version >= (10, 1, 1)),
        ("idle_transaction_timeout=0", !mysql && version >= (10, 3, 0)),
        ("idle_write_transaction_timeout=0", !mysql && version >= (10, 3, 0)),
        ("alter_algorithm='DEFAULT'", !mysql && version >= (10, 3, 7)),
        // Not every account may set it.
        ("sql_generate_invisible_primary_key=OFF", info.adds_primary_keys),
        ("show_gipk_in_create_table_and_information_schema=ON", mysql && version >= (8, 0, 30)),
        // Whatever the source did it was allowed to do, and the servers' own appliers do not ask either.
        ("system_versioning_alter_history=KEEP", !mysql && version >= (10, 3, 4)),
    ] {
        if is_there {
            settings.push_str(", ");
            settings.push_str(setting);
        }
    }
    settings
}

/// Keeps the text of `BINLOG` statements, which is longer than the rows in it, out of the target's binary log: MariaDB
/// would write it before each of the rows events, MySQL if it is told to.
fn without_annotations(connection: &mut Connection, info: &TargetInfo) -> Result<(), Failure> {
    if !info.log_bin {
        return Ok(());
    }
    let variable = match info.flavour {
        Flavour::MariaDb => "binlog_annotate_row_events",
        Flavour::MySql => "binlog_rows_query_log_events",
    };
    let is_on = match connection.scalar(format!("SELECT @@session.{variable}")) {
        Err(error) if error.is_connection_lost() => return Err(failed(error)),
        // Older than the variable.
        Err(_) => false,
        Ok(value) => value.as_deref() == Some("1"),
    };
    if !is_on {
        return Ok(());
    }
    match connection.execute(format!("SET SESSION {variable}=OFF")) {
        Err(error) if error.is_connection_lost() => Err(failed(error)),
        Err(error) => {
            tracing::warn!(
                "the target's binary log will hold every statement's text, which makes it much larger: {error}"
            );
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

/// The failure says which server it is.
pub fn connect(shared: &Shared) -> Result<Connection, Failure> {
    let connect = || {
        let mut connection = Connection::connect(&shared.options).map_err(failed)?;
        set_up(&mut connection, &shared.info, shared.logged)?;
        without_annotations(&mut connection, &shared.info)?;
        Ok(connection)
    };
    connect().map_err(|failure: Failure| Failure {
        message: format!("target {}: {}", shared.options.address(), failure.message),
        ..failure
    })
}

fn packet_bytes_max(connection: &mut Connection) -> Result<usize, Failure> {
    let bytes = connection.scalar("SELECT @@session.max_allowed_packet").map_err(failed)?;
    bytes
        .and_then(|bytes| bytes.parse().ok())
        .ok_or_else(|| Failure::new(FailureKind::Refused, "the target does not say what its max_allowed_packet is"))
}

/// A connection for session `number` of the channel, once nothing of an earlier one can commit any more: of one that was lost,
/// or of a heddle that was killed.
fn connect_as(shared: &Shared, number: usize) -> Result<Connection, Failure> {
    let mut connection = connect(shared)?;
    if number == ALONE {
        // As clients and the servers' own appliers have it for statements: MariaDB refuses some in READ COMMITTED (REPLACE into a UNIQUE over
        // TEXT), which is for rows.
        connection.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ").map_err(failed)?;
    }
    // A successor's connections are none to take over.
    still_leased(shared, &mut connection)?;
    take_over(shared, &mut connection, number)?;
    still_leased(shared, &mut connection)?;
    Ok(connection)
}

/// Under the session's lock, so that a successor either is known here or finds the lock, and ends who holds it, before it reads
/// what is committed.
fn still_leased(shared: &Shared, connection: &mut Connection) -> Result<(), Failure> {
    is_ours(shared, connection.scalar(lease_sql(shared)).map_err(failed)?)
}

/// Asks for the number of the channel's lease.
pub(in crate::mysql) fn lease_sql(shared: &Shared) -> String {
    format!("SELECT {FENCE_COLUMN} FROM {SCHEMA}.leases WHERE channel={}", quote(&shared.channel))
}

/// `lease`: the answer to [`lease_sql`].
pub(in crate::mysql) fn is_ours(shared: &Shared, lease: Option<String>) -> Result<(), Failure> {
    let Statements { channel, epoch } = shared.statements();
    if lease == Some(epoch.to_string()) {
        return Ok(());
    }
    Err(Failure::new(FailureKind::Fenced, format!("channel {} has been taken over", quote(&channel)))
        .remedy("another heddle feeds it now; this one has nothing left to do"))
}

/// (session number, connection id) of the channel's sessions whose connections live on the server, of these.
pub(in crate::mysql) fn holders(
    connection: &mut Connection,
    channel: &str,
    numbers: impl IntoIterator<Item = usize>,
) -> Result<Vec<(usize, u64)>, Failure> {
    let numbers: Vec<usize> = numbers.into_iter().collect();
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let locks: Vec<String> =
        numbers.iter().map(|&number| format!("IS_USED_LOCK({})", quote(&lock_name(channel, number)))).collect();
    let row = connection.row(format!("SELECT {}", locks.join(","))).map_err(failed)?;
    let mut holders = Vec::new();
    for (at, &number) in numbers.iter().enumerate() {
        if let Some(id) = row.as_ref().map_or(Ok(None), |row| row.parse(at)).map_err(failed)? {
            holders.push((number, id));
        }
    }
    Ok(holders)
}

/// Ends what earlier workers of the channel have left: connections of a heddle that was killed, or cut off.
pub(in crate::mysql) fn sweep(shared: &Shared, connection: &mut Connection) -> Result<(), Failure> {
    let mut told = Instant::now();
    loop {
        let holders = holders(connection, &shared.channel, 0..WORKERS_MAX)?;
        if holders.is_empty() {
            return Ok(());
        }
        for (_, id) in &holders {
            // Gone by now is what it is for; a real refusal shows as it stays.
            if let Err(error) = connection.execute(format!("KILL {id}")) {
                tracing::debug!("KILL {id}: {error}");
            }
        }
        if told.elapsed() > TELL_EVERY {
            told = Instant::now();
            let ids: Vec<String> = holders.iter().map(|(_, id)| id.to_string()).collect();
            let ids = ids.join(", ");
            tracing::warn!(
                "connections {ids} on the target are left of an earlier run of this channel: waiting for their end"
            );
        }
        std::thread::sleep(SWEEP_PAUSE);
    }
}

/// The lock of the one heddle that feeds the channel.
pub(in crate::mysql) fn lease_lock_name(channel: &str) -> String {
    // Names of more than 64 bytes are refused; the channel's length is bounded where it is parsed.
    format!("heddle.{channel}").chars().take(64).collect()
}

/// At most 64 bytes: the channel has at most 50. The slash is in no channel's name.
pub(in crate::mysql) fn lock_name(channel: &str, number: usize) -> String {
    format!("heddle.{channel}/{number}")
}

/// Takes the lock that every session holds for as long as its connection lives on the server, which may be longer than the
/// client: a server notices the end of a client only when it has executed its statement. What a worker's old connection does is
/// rolled back. A statement that commits by itself is waited for: ended half-way it might have to start again, and executed
/// beside its repetition it would be executed twice.
fn take_over(shared: &Shared, connection: &mut Connection, number: usize) -> Result<(), Failure> {
    let name = quote(&lock_name(&shared.channel, number));
    let mut told: Option<Instant> = None;
    // A worker that was not the one to lose its connection still has it.
    let mut timeout_s = if number < ALONE { 0 } else { TAKE_OVER_S };
    loop {
        let got = connection.scalar(format!("SELECT GET_LOCK({name},{timeout_s})")).map_err(failed)?;
        if got.as_deref() == Some("1") {
            return Ok(());
        }
        let Some(id) = connection.scalar(format!("SELECT IS_USED_LOCK({name})")).map_err(failed)? else { continue };
        let command = connection
            .scalar(format!("SELECT COMMAND FROM information_schema.PROCESSLIST WHERE ID={id}"))
            .map_err(failed)?;
        if number < ALONE || command.as_deref() == Some("Sleep") {
            // Gone by now is what it is for; a real refusal shows as it stays.
            if let Err(error) = connection.execute(format!("KILL {id}")) {
                tracing::debug!("KILL {id}: {error}");
            }
        }
        if timeout_s > 0 && told.is_none_or(|since| since.elapsed() > TELL_EVERY) {
            told = Some(Instant::now());
            let doing = command.as_deref().unwrap_or("not visible to this account");
            tracing::warn!(
                "connection {id} on the target ({doing}) is left of an earlier connection of this channel: waiting for its end"
            );
        }
        timeout_s = TAKE_OVER_S;
    }
}

/// Tells the server how the events are laid out that will come.
pub(in crate::mysql) fn introduce_format(shared: &Shared, connection: &mut Connection) -> Result<(), Failure> {
    let mut script = Script::new(shared.info.packet_bytes_max);
    script.events(&shared.format_description(), connection)?;
    script.send(connection)?;
    let (mysql, version) = (shared.info.flavour == Flavour::MySql, shared.info.version);
    if mysql && version >= (5, 6, 5) {
        // The BINLOG statement leaves gtid_next undetermined, or ANONYMOUS, which is an error once GTIDs are switched on.
        connection.execute("SET SESSION gtid_next='AUTOMATIC'").map_err(failed)?;
    }
    Ok(())
}

impl MySqlSession {
    pub fn open(shared: Arc<Shared>, number: usize) -> Result<Self, Failure> {
        let connection = connect_as(&shared, number)?;
        let notes = Notes::new(locked(&shared.progress_table).clone());
        let mariadb = shared.info.flavour == Flavour::MariaDb;
        let dialect = Dialect { mariadb, sql_foreign_keys: !mariadb && shared.info.version >= (9, 6, 0) };
        let script = Script::new(shared.info.packet_bytes_max);
        let row_ends = shared.row_ends.clone();
        let mut session = Self {
            shared,
            number,
            connection,
            packet_bytes_max: 0,
            encoder: Encoder::new(dialect, script.events_bytes_max(), row_ends),
            script,
            notes,
            stepwise: false,
            events: Vec::new(),
            open: false,
            row_session: None,
            was_another: false,
            gtids_from: None,
        };
        session.introduce()?;
        Ok(session)
    }

    /// Tells the server how the events are laid out that will come, and the others which connection this is.
    fn introduce(&mut self) -> Result<(), Failure> {
        self.packet_bytes_max = packet_bytes_max(&mut self.connection)?;
        self.script = Script::new(self.packet_bytes_max);
        self.encoder.set_piece_bytes_max(self.script.events_bytes_max());
        introduce_format(&self.shared, &mut self.connection)?;
        self.shared.register(self.number, self.connection.server().connection_id);
        Ok(())
    }

    /// Nothing waits to be sent, nothing is open, and nothing is known of the connection's settings.
    fn begin_anew(&mut self) {
        self.script.clear();
        self.open = false;
        self.gtids_from = None;
    }

    /// Before rows whose table has values that the server works out as it would in this session; others do not care. Statements of our own come after
    /// [`MySqlSession::own_settings`].
    pub(in crate::mysql) fn be_like(&mut self, session: Option<&Arc<RowSession>>) {
        let Some(session) = session.filter(|_| self.shared.info.flavour == Flavour::MySql) else { return };
        if self.row_session.as_ref() != Some(session) {
            self.script.statement(context::for_rows(session, &self.shared.info));
            self.row_session = Some(Arc::clone(session));
            self.was_another = true;
        }
    }

    fn own_settings(&mut self) {
        if self.row_session.take().is_some() {
            self.script.statement(not_for_rows());
        }
    }

    pub(in crate::mysql) fn begin(&mut self, first: &Transaction) -> Result<(), Failure> {
        if self.open {
            return Ok(());
        }
        self.encoder.set_server_id(first.server_id);
        if let Some(statement) = self.shared.set_gtid(first.gtid.as_ref())? {
            self.gtids_from = None;
            self.script.statement(statement);
        }
        self.script.statement("BEGIN");
        self.open = true;
        Ok(())
    }

    /// MariaDB tells temporary tables apart by the number of the server that their statements are of: what makes one has to be of the same as
    /// what comes to use it.
    pub(in crate::mysql) fn be_server_of(&mut self, transaction: &Transaction) -> Result<(), Failure> {
        if let Some(&Gtid::MariaDb { domain, server, .. }) = self.shared.kept_gtid(transaction.gtid.as_ref())? {
            self.gtids_from = None;
            self.connection.execute(set_origin(domain, server)).map_err(failed)?;
        }
        Ok(())
    }

    fn apply_rows(&mut self, first: &Transaction, batches: &[Batch<'_>]) -> Result<(), Failure> {
        self.begin(first)?;
        self.push(batches)?;
        self.script.send(&mut self.connection).map(|_| ())
    }

    pub(in crate::mysql) fn push(&mut self, batches: &[Batch<'_>]) -> Result<(), Failure> {
        for batch in batches {
            self.be_like(batch.session);
            let Self { shared, encoder, script, connection, .. } = self;
            if sequences::lacks_columns(batch) && shared.sequences.get(batch.map).is_some() {
                script.send(connection)?;
                let completed = sequences::complete(batch, |sql| connection.rows(sql))?;
                encoder.encode(&completed.batch(batch), &mut |events| script.events(events, connection))?;
                continue;
            }
            let lookup = match batch.kind {
                RowsKind::Write => None,
                RowsKind::Update | RowsKind::Delete => shared.lookups.get(batch.map),
            };
            let Some(lookup) = lookup else {
                encoder.encode(batch, &mut |events| script.events(events, connection))?;
                continue;
            };
            ambiguous_rows::one_by_one(&lookup, batch, &mut |question, row| {
                script.send(connection)?;
                if connection.scalar(question).map_err(failed)?.as_deref() != Some("0") {
                    return Ok(false);
                }
                encoder.encode(row, &mut |events| script.events(events, connection))?;
                Ok(true)
            })?;
        }
        self.after_rows();
        Ok(())
    }

    /// Sessions other than workers' have statements of all kinds.
    pub(in crate::mysql) fn after_rows(&mut self) {
        if self.number >= ALONE {
            self.own_settings();
        }
    }

    pub(in crate::mysql) fn commit_stepwise(
        &mut self,
        first: &Transaction,
        batches: &[Batch<'_>],
        range: Range<'_>,
    ) -> Result<(), Failure> {
        self.begin(first)?;
        self.push(batches)?;
        self.finish(range)
    }

    /// Notes the progress, commits, and reads the answers of all that was not sent yet.
    pub(in crate::mysql) fn finish(&mut self, range: Range<'_>) -> Result<(), Failure> {
        self.own_settings();
        deferred::note(self, range.branches)?;
        self.script.statement(self.shared.statements().note(range));
        self.script.statement("COMMIT");
        let results = self.script.send(&mut self.connection)?;
        self.open = false;
        if self.shared.sets_gtid_next() {
            // By itself: if somebody ends it, what is committed must not look as if it were not.
            self.surely("SET SESSION gtid_next='AUTOMATIC'")?;
        }
        let noted = results.len().checked_sub(2).and_then(|at| results.get(at));
        match noted.map(|result| result.ok.affected) {
            Some(1) => Ok(()),
            _ => Err(self.shared.not_noted(range)),
        }
    }

    /// What the target says was under way: this process may not know how far it has come.
    fn read_intent(&mut self) -> Result<(), Failure> {
        let sql = format!("SELECT intent FROM {SCHEMA}.progress WHERE channel={}", quote(&self.shared.channel));
        let text = self.connection.scalar(sql).map_err(failed)?;
        let intent = text.as_deref().map(Intent::required).transpose()?;
        *locked(&self.shared.intent) = intent;
        Ok(())
    }

    /// A statement that must not be lost to a `KILL QUERY` that came late: it was meant for the one before, and MariaDB keeps it for the
    /// next. A rollback that is lost leaves the locks that it was to release.
    pub(in crate::mysql) fn surely(&mut self, sql: &str) -> Result<(), Failure> {
        for _ in 0..INTERRUPTIONS_MAX {
            match self.connection.execute(sql) {
                Err(error) if error.code() == Some(code::QUERY_INTERRUPTED) => {}
                done => return done.map(|_| ()).map_err(failed),
            }
        }
        let message = format!("{sql} was interrupted {INTERRUPTIONS_MAX} times: the connection's state is not known");
        Err(Failure::new(FailureKind::Refused, message))
    }
}

impl Session for MySqlSession {
    fn apply(&mut self, first: &Transaction, batches: &[Batch<'_>]) -> Result<(), Failure> {
        locked(&self.shared.interruptible).insert(self.number);
        let done = self.apply_rows(first, batches);
        // Waits for an interruption that is under way.
        locked(&self.shared.interruptible).remove(&self.number);
        done
    }

    fn commit(&mut self, first: &Transaction, batches: &[Batch<'_>], range: Range<'_>) -> Result<Commit, Failure> {
        if self.send(first, batches, range)? {
            return self.answer();
        }
        self.stepwise = true;
        self.commit_stepwise(first, batches, range)?;
        self.stepwise = false;
        Ok(Commit::Durable)
    }

    fn send(&mut self, first: &Transaction, batches: &[Batch<'_>], range: Range<'_>) -> Result<bool, Failure> {
        if self.stepwise || self.open || !range.branches.is_empty() {
            return Ok(false);
        }
        let room = Room::usual(self);
        let sent = one_statement::send_group(self, first, batches, range, &room);
        self.stepwise = !matches!(sent, Ok(false));
        sent
    }

    fn answer(&mut self) -> Result<Commit, Failure> {
        one_statement::answer(self)?;
        self.stepwise = false;
        Ok(Commit::Durable)
    }

    fn commit_each(&mut self, singles: &[Single<'_>], committed_to: &mut Seq) -> Result<Commit, Failure> {
        one_statement::commit_each(self, singles, committed_to)
    }

    fn run_barrier(
        &mut self,
        transaction: &Transaction,
        spilled: &dyn SpilledTransactions,
        range: Range<'_>,
    ) -> Result<(), Failure> {
        let shared = Arc::clone(&self.shared);
        let mut alone = locked(&shared.alone);
        let session = alone_of(&shared, &mut alone, transaction.source_starts)?;
        // It may make or change a table.
        locked(&shared.sharing).forget();
        let done = crate::mysql::statements::barrier::run(session, transaction, spilled, range);
        if let Err(failure) = &done
            && failure.kind != FailureKind::ConnectionLost
        {
            session.rollback()?;
        }
        done
    }

    fn run_in_order(
        &mut self,
        singles: &[Single<'_>],
        spilled: &dyn SpilledTransactions,
        committed_to: &mut Seq,
    ) -> Result<Commit, Failure> {
        let shared = Arc::clone(&self.shared);
        let starts = |single: Option<&Single<'_>>| single.map_or(0, |single| single.transaction.source_starts);
        let begun = starts(singles.first());
        if begun != starts(singles.last()) || !pipeline::may_all_share(self, singles)? {
            return self.run_serially(singles, spilled, committed_to);
        }
        let mut alone = locked(&shared.alone);
        pipeline::run(alone_of(&shared, &mut alone, begun)?, singles, committed_to).map(|()| Commit::Durable)
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.begin_anew();
        self.surely("ROLLBACK")?;
        self.row_session = None;
        if self.was_another {
            self.surely(&not_for_rows())?;
            self.was_another = false;
        }
        if self.shared.sets_gtid_next() {
            self.surely("SET SESSION gtid_next='AUTOMATIC'")?;
        }
        Ok(())
    }

    fn recover(&mut self, transactions: &[Arc<Transaction>], range: Range<'_>) -> Result<Seq, Failure> {
        self.begin_anew();
        locked(&self.shared.branches).lose();
        self.connection = connect_as(&self.shared, self.number)?;
        (self.row_session, self.was_another) = (None, false);
        self.introduce()?;
        let shared = Arc::clone(&self.shared);
        if self.number != ALONE
            && let Some(alone) = &mut *locked(&shared.alone)
            && alone.connection.ping().is_err()
        {
            alone.recover(transactions, range)?;
        }
        self.read_intent()?;
        let channel = quote(&self.shared.channel);
        let sql = match range.is_committed_range() {
            false => format!("SELECT seq FROM {SCHEMA}.progress WHERE channel={channel} FOR UPDATE"),
            true => format!(
                "SELECT COALESCE(MAX(last_seq),{before}) FROM {SCHEMA}.islands WHERE channel={channel} \
                 AND first_seq>={first} AND last_seq<={last}",
                before = range.first - 1,
                first = range.first,
                last = range.mark.seq
            ),
        };
        let text = self.connection.scalar(sql).map_err(failed)?;
        let noted: Seq = text.and_then(|text| text.parse().ok()).ok_or_else(|| {
            Failure::new(FailureKind::Fenced, format!("{SCHEMA}.progress has no row for channel {channel} any more"))
        })?;
        match range.is_committed_range() && self.shared.gtids_are_progress() {
            true => Ok(noted.max(executed::executed_to(&mut self.connection, transactions)?.unwrap_or(0))),
            false => Ok(noted),
        }
    }
}

/// The session that runs statements: another one when the source has started since, as temporary tables of before are no more.
fn alone_of<'a>(
    shared: &Arc<Shared>,
    alone: &'a mut Option<MySqlSession>,
    source_starts: u32,
) -> Result<&'a mut MySqlSession, Failure> {
    if shared.source_starts.swap(source_starts, Ordering::Relaxed) != source_starts {
        *alone = None;
    }
    match alone {
        Some(session) => Ok(session),
        empty => Ok(empty.insert(MySqlSession::open(Arc::clone(shared), ALONE)?)),
    }
}

/// MySQL's.
pub(in crate::mysql) fn set_gtid_next(gtid: &Gtid) -> String {
    format!("SET SESSION gtid_next='{gtid}'")
}

/// MariaDB's: in which domain, and of which server, the next transactions are.
pub(in crate::mysql) fn set_origin(domain: u32, server: u32) -> String {
    format!("SET SESSION gtid_domain_id={domain}, server_id={server}")
}

impl Shared {
    /// The row that the progress goes into is not there.
    pub(in crate::mysql) fn not_noted(&self, range: Range<'_>) -> Failure {
        let (channel, last) = (quote(&self.channel), range.mark.seq);
        let message = format!(
            "the row of channel {channel} in {SCHEMA}.progress is gone; the transactions up to {last} are committed but not noted"
        );
        Failure::new(FailureKind::Fenced, message)
            .remedy("find out who removed it; restore it from the last `heddle status`, or load the target anew")
    }

    /// `--gtids preserve`
    pub(in crate::mysql) fn sets_gtid(&self) -> bool {
        self.preserve_gtids
    }

    /// MySQL's `gtid_next`, which has to be set back after each transaction.
    pub(in crate::mysql) fn sets_gtid_next(&self) -> bool {
        self.preserve_gtids && self.info.flavour == Flavour::MySql
    }

    /// Single transactions in relaxed order need no other note than their GTIDs.
    pub(in crate::mysql) fn gtids_are_progress(&self) -> bool {
        self.sets_gtid_next() && self.info.durable_gtids
    }

    /// MariaDB's GTIDs have the server's number: of two servers with one number, and one domain, nobody could tell the transactions apart.
    fn check_not_own(&self, server: u32, gtid: &Gtid) -> Result<(), Failure> {
        if u64::from(server) != self.info.server_id {
            return Ok(());
        }
        let message = format!("--gtids preserve, but {gtid} is of a server whose server_id the target has, too");
        Err(Failure::new(FailureKind::Refused, message)
            .remedy(
                "give the target a server_id of its own (SET GLOBAL server_id), and let it forget the GTIDs that it has logged under this one \
                 (RESET MASTER, if it has no replicas); or use --gtids local",
            ))
    }

    /// The statement that gives the next transaction the source's GTID.
    pub(in crate::mysql) fn set_gtid(&self, gtid: Option<&Gtid>) -> Result<Option<String>, Failure> {
        Ok(self.kept_gtid(gtid)?.map(|gtid| match gtid {
            Gtid::MySql { .. } => set_gtid_next(gtid),
            Gtid::MariaDb { domain, server, seq } => format!("{}, gtid_seq_no={seq}", set_origin(*domain, *server)),
        }))
    }

    /// The source's GTID, if the next transaction is to have it; refuses one that the target can not take, or could not tell from its own.
    pub(in crate::mysql) fn kept_gtid<'a>(&self, gtid: Option<&'a Gtid>) -> Result<Option<&'a Gtid>, Failure> {
        if !self.preserve_gtids {
            return Ok(None);
        }
        match (gtid, self.info.flavour) {
            (Some(Gtid::MySql { .. }), Flavour::MySql) => Ok(gtid),
            (Some(this @ Gtid::MariaDb { server, .. }), Flavour::MariaDb) => {
                self.check_not_own(*server, this)?;
                Ok(gtid)
            }
            (None, _) => {
                Err(Failure::new(FailureKind::Refused, "--gtids preserve, but the source's transaction has no GTID")
                    .remedy("use --gtids local, or switch GTIDs on at the source"))
            }
            (Some(gtid), _) => Err(Failure::new(
                FailureKind::Refused,
                format!("--gtids preserve, but the target can not take the other server's GTID {gtid}"),
            )
            .remedy("use --gtids local between MySQL and MariaDB")),
        }
    }
}
