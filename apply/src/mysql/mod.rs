//! MySQL and MariaDB as the target: `BINLOG` statements over ordinary connections.
//!
//! `session` one worker's connection · `script` packets · `answers` to many statements · `single` transactions that are one statement · `note` their progress as a row · `rows` events · `alone` transactions with statements, or too large · `early` tables without transactions under the source's GTIDs · `in_order` several with statements that share a transaction · `intent` executed once · `statement` one of the source's · `xa` prepared transactions · `branches` their connections · `kept` those that are not prepared · `context` a statement's
//! session state · `progress` the bookkeeping tables · `opened` what they hold · `catalogue` table definitions · `fingerprint` was a DDL executed · `executed` was a GTID ·
//! `lookup` rows that MariaDB could take for others · `row_end` until when they are valid · `images` rows in one piece · `sequence` · `by_name` what sessions have to know of tables · `info` what the server is · `check` and `check_schema` for `--dry-run` · `failures` its errors.

mod catalogue;
pub mod progress;
mod rows;
mod script;
pub mod server;
mod session;
mod statements;
mod target;
mod xa;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use binlog::Flavour;
use binlog::gtids::GtidState;
use engine::Seq;
use engine::failure::{Failure, FailureKind};
use engine::progress::Mark;
use engine::schedule::CommitOrder;
use engine::schema::Catalogue;
use wire::{ConnectOptions, Connection};

use self::catalogue::MySqlCatalogue;
use self::progress::statements as progress_sql;
use self::progress::{executed, load};
use self::rows::row_end;
use self::server::{errors, info, privileges, unsafe_settings};
use self::statements::{nontransactional, pipeline};
use self::target::check_definitions;
use self::xa::{deferred, prepare};
use super::{Opened, Session, Target};
use crate::checks::{Checks, SourceFacts};
use crate::mysql::progress::as_row::ProgressTable;
use crate::mysql::progress::statements::{SCHEMA, Statements};
use crate::mysql::rows::ambiguous_rows::Lookup;
use crate::mysql::rows::by_name::{ByName, Name};
use crate::mysql::rows::row_end::RowEnd;
use crate::mysql::rows::sequences::Sequence;
use crate::mysql::server::errors::{code, failed};
use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::sql::quote;
use crate::mysql::session::MySqlSession;
use crate::mysql::statements::exactly_once::{Intent, OWN_DOMAIN};
use crate::mysql::xa::connections::Branches;
use crate::retry::until_reached;

/// What the sessions of one target share.
pub struct Shared {
    pub(in crate::mysql) options: ConnectOptions,
    pub(in crate::mysql) info: TargetInfo,
    pub(in crate::mysql) channel: String,
    pub(in crate::mysql) preserve_gtids: bool,
    /// Changes go into the target's own binary log, if it has one.
    pub(in crate::mysql) logged: bool,
    /// Number of the lease that this process holds.
    epoch: AtomicU64,
    /// How its progress is noted as a row, once the channel is opened; `None`: only by statements.
    progress_table: Mutex<Option<Arc<ProgressTable>>>,
    /// Connection id of each worker; 0 while it has none.
    connections: Mutex<Vec<u64>>,
    /// Workers whose sessions apply rows of a group that may not commit yet: nobody else is interrupted.
    interruptible: Mutex<HashSet<usize>>,
    /// Left by an earlier run or connection, until its transaction comes by.
    intent: Mutex<Option<Intent>>,
    /// The transaction that has failed and left a part of itself, and why, see `early`.
    left_by: Mutex<Option<(Seq, String)>>,
    /// Statements of all workers run here, so that temporary tables find their session.
    alone: Mutex<Option<MySqlSession>>,
    /// Of the transaction that it last ran, see [`engine::transaction::Transaction::source_starts`].
    source_starts: AtomicU32,
    pub(in crate::mysql) sharing: Mutex<pipeline::Sharing>,
    branches: Mutex<Branches>,
    /// Of tables whose rows MariaDB could take for others.
    lookups: ByName<Lookup>,
    pub(in crate::mysql) sequences: ByName<Sequence>,
    /// `None`: the target's rows end no later than any source's.
    pub(in crate::mysql) row_ends: Option<Arc<ByName<RowEnd>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves plain values behind, never half of one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn statements(&self) -> Statements {
        Statements { channel: self.channel.clone(), epoch: self.epoch() }
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    fn register(&self, worker: usize, connection: u64) {
        let mut connections = locked(&self.connections);
        if connections.len() <= worker {
            connections.resize(worker + 1, 0);
        }
        if let Some(slot) = connections.get_mut(worker) {
            *slot = connection;
        }
    }

    /// What sessions have to know of these tables.
    fn forget_tables(&self, is_one: impl Fn(&Name) -> bool) {
        self.lookups.forget(&is_one);
        self.sequences.forget(&is_one);
        if let Some(row_ends) = &self.row_ends {
            row_ends.forget(&is_one);
        }
    }

    fn take_intent(&self, seq: u64) -> Option<Intent> {
        locked(&self.intent).take_if(|intent| intent.seq == seq)
    }

    /// A format description without checksums, of the target's own version: what `BINLOG` has to see first.
    fn format_description(&self) -> Vec<u8> {
        let spec = binlog::encode::FormatSpec::new(&self.info.version_text, self.info.flavour, binlog::Checksum::Off);
        let head = binlog::encode::Head::new(0, 1, binlog::Checksum::Off);
        binlog::encode::format_description(&head, &spec)
    }
}

pub struct MySqlTarget {
    shared: Arc<Shared>,
    control: Mutex<Connection>,
    /// When the lock information was last read.
    lock_waits_read: Mutex<Option<Instant>>,
    /// Workers that waited for a lock then.
    waiting: Mutex<HashSet<usize>>,
    /// Its lock shows that the source can not be reached: no table is written for that.
    source_lost: Mutex<Option<Connection>>,
}

impl MySqlTarget {
    pub fn connect(options: ConnectOptions, channel: &str, preserve_gtids: bool) -> Result<Self, Failure> {
        Self::connect_with(options, channel, preserve_gtids, true)
    }

    /// As a native replica without log_replica_updates: nothing goes into the target's own binary log, and nothing gets a GTID.
    /// `logged`: all the same, under GTIDs of the target's own.
    pub fn connect_as_replica(options: ConnectOptions, channel: &str, logged: bool) -> Result<Self, Failure> {
        Self::connect_with(options, channel, false, logged)
    }

    fn connect_with(
        options: ConnectOptions,
        channel: &str,
        preserve_gtids: bool,
        logged: bool,
    ) -> Result<Self, Failure> {
        let mut control = Connection::connect(&options).map_err(failed)?;
        let info = TargetInfo::read(&mut control)?;
        session::set_up(&mut control, &info, logged)?;
        let row_ends = row_end::is_later(&info).then(Arc::default);
        let shared = Shared {
            options,
            info,
            channel: channel.to_owned(),
            preserve_gtids,
            logged,
            epoch: AtomicU64::new(0),
            progress_table: Mutex::new(None),
            connections: Mutex::new(Vec::new()),
            interruptible: Mutex::default(),
            intent: Mutex::new(None),
            left_by: Mutex::default(),
            alone: Mutex::new(None),
            source_starts: AtomicU32::new(0),
            sharing: Mutex::default(),
            branches: Mutex::default(),
            lookups: ByName::default(),
            sequences: ByName::default(),
            row_ends,
        };
        Ok(Self {
            shared: Arc::new(shared),
            control: Mutex::new(control),
            lock_waits_read: Mutex::new(None),
            waiting: Mutex::default(),
            source_lost: Mutex::default(),
        })
    }

    fn lock_name(&self) -> String {
        session::lease_lock_name(&self.shared.channel)
    }

    /// Runs something on the control connection, which is made anew when it was lost.
    fn with_control<T>(&self, run: impl Fn(&mut Connection) -> Result<T, wire::Error>) -> Result<T, Failure> {
        let mut control = locked(&self.control);
        match run(&mut control) {
            Err(error) if error.is_connection_lost() => {
                let mut fresh = session::connect(&self.shared)?;
                // The lease is fenced by its number; the lock only keeps a second one from starting.
                fresh.scalar(format!("SELECT GET_LOCK({}, 0)", quote(&self.lock_name()))).map_err(failed)?;
                *control = fresh;
                run(&mut control).map_err(failed)
            }
            other => other.map_err(failed),
        }
    }

    /// Under the row's lock from the reading on: what a connection that was lost has sent may be executed only now.
    fn note_low_water(&self, control: &mut Connection, mark: &Mark) -> Result<(), wire::Error> {
        let statements = self.shared.statements();
        control.execute("BEGIN")?;
        let channel = quote(&self.shared.channel);
        let noted = control.scalar(format!("SELECT seq FROM {SCHEMA}.progress WHERE channel={channel} FOR UPDATE"))?;
        let before = noted.and_then(|text| text.parse().ok()).unwrap_or(0);
        if before >= mark.seq {
            return control.execute("ROLLBACK").map(|_| ());
        }
        let (advance, forget) = (statements.advance(before, mark), statements.forget_islands(mark.seq));
        control.execute(format!("{advance};{forget};COMMIT")).map(|_| ())
    }

    /// The progress is changed in the source's transactions, so the target's own replicas need its tables: they are made under GTIDs of
    /// the target's own, whatever the others are. Where MariaDB wants numbers that only grow, these come in a domain of their own.
    fn logged_beside_the_source(&self, control: &mut Connection) -> Result<(), Failure> {
        let info = &self.shared.info;
        if !(self.shared.preserve_gtids && info.log_bin && info.flavour == Flavour::MariaDb) {
            return Ok(());
        }
        control.execute(format!("SET SESSION gtid_domain_id={OWN_DOMAIN}")).map_err(failed).map(|_| ())
    }

    fn take_lock(&self, control: &mut Connection) -> Result<(), Failure> {
        let name = quote(&self.lock_name());
        // A predecessor that was killed has a moment to disappear from the server.
        let got = control.scalar(format!("SELECT GET_LOCK({name}, 5)")).map_err(failed)?;
        if got.as_deref() == Some("1") {
            return Ok(());
        }
        let holder = control.scalar(format!("SELECT IS_USED_LOCK({name})")).map_err(failed)?;
        Err(Failure::new(
            FailureKind::Fenced,
            format!(
                "channel {} is in use: connection {} on the target holds its lock",
                quote(&self.shared.channel),
                holder.unwrap_or_else(|| "(unknown)".to_owned())
            ),
        )
        .remedy("only one heddle can feed a channel; stop the other one, or use another --channel"))
    }
}

impl Target for MySqlTarget {
    fn describe(&self) -> String {
        let info = &self.shared.info;
        format!("{} {} at {}", info.flavour, info.version_text, self.shared.options.address())
    }

    fn machine(&self) -> Result<Option<String>, Failure> {
        self.with_control(info::machine).map(Some)
    }

    fn open(&self) -> Result<Opened, Failure> {
        let mut control = locked(&self.control);
        unsafe_settings::refuse(&mut control, &self.shared.info)?;
        self.take_lock(&mut control)?;
        let log = |control: &mut Connection, on: u8| match self.shared.preserve_gtids && self.shared.info.log_bin {
            true => control.execute(format!("SET SESSION sql_log_bin={on}")).map(|_| ()).map_err(failed),
            false => Ok(()),
        };
        let channel = quote(&self.shared.channel);
        let known = control.scalar(format!("SELECT COUNT(*) FROM {SCHEMA}.progress WHERE channel={channel}"));
        if known.ok().flatten().as_deref() != Some("1") {
            self.logged_beside_the_source(&mut control)?;
            for statement in progress_sql::create() {
                control.execute(&statement).map_err(failed)?;
            }
            let column = errors::FENCE_COLUMN;
            let owner = format!("SELECT {channel},0,0,'',0,'',0,'','',0");
            control
                .execute(format!(
                    "INSERT INTO {SCHEMA}.progress (channel,{column},seq,source_file,source_position,gtids,commit_time_us,\
                     source,owner,started) {owner}"
                ))
                .map_err(failed)?;
        }
        if control.scalar(progress_sql::has_workers()).map_err(failed)?.as_deref() == Some("0") {
            self.logged_beside_the_source(&mut control)?;
            control.execute(progress_sql::add_workers()).map_err(failed)?;
        }
        if control.scalar(deferred::is_there()).map_err(failed)?.as_deref() == Some("0") {
            self.logged_beside_the_source(&mut control)?;
            control.execute(deferred::create()).map_err(failed)?;
        }
        log(&mut control, 0)?;
        let column = errors::FENCE_COLUMN;
        let owner = format!("{}@{}", std::process::id(), host_name());
        control
            .execute(format!(
                "INSERT INTO {SCHEMA}.leases (channel,{column}) VALUES ({channel},1) ON DUPLICATE KEY UPDATE {column}={column}+1"
            ))
            .map_err(failed)?;
        // Waits for a commit of a predecessor that is under way; what comes after this is fenced off.
        control
            .execute(format!(
                "UPDATE {SCHEMA}.progress SET {column}={column}+1, owner={} WHERE channel={channel}",
                quote(&owner)
            ))
            .map_err(failed)?;
        control
            .execute(format!(
                "UPDATE {SCHEMA}.leases SET {column}=(SELECT {column} FROM {SCHEMA}.progress WHERE channel={channel}) \
                 WHERE channel={channel}"
            ))
            .map_err(failed)?;
        control
            .execute(format!(
                "DELETE FROM {SCHEMA}.islands WHERE channel={channel} AND last_seq<=(SELECT seq FROM {SCHEMA}.progress \
                 WHERE channel={channel})"
            ))
            .map_err(failed)?;
        log(&mut control, 1)?;
        session::sweep(&self.shared, &mut control)?;
        let mut found = load::read(&mut control, &self.shared.channel)?
            .ok_or_else(|| Failure::new(FailureKind::Refused, format!("{SCHEMA}.progress has no row for {channel}")))?;
        if self.shared.preserve_gtids && self.shared.info.gtid_mode {
            found.opened.executed = executed::of_others(&mut control)?;
        }
        self.shared.epoch.store(found.epoch, Ordering::SeqCst);
        *locked(&self.shared.progress_table) = ProgressTable::read(&mut control)?.map(Arc::new);
        deferred::prepare_all(&self.shared, &mut control)?;
        match prepare::prepared(&mut control) {
            Err(lost) if lost.kind == FailureKind::ConnectionLost => return Err(lost),
            // Without the privilege no branch of a log is applied either.
            Err(_) => {}
            Ok(prepared) => {
                found.opened.prepared = prepared;
                found.opened.keeps_branches = !self.shared.preserve_gtids && prepare::keeps_prepared(&self.shared.info);
            }
        }
        if let Some(intent) = found.intent.as_ref().filter(|intent| intent.is_partly()) {
            return Err(nontransactional::left_by_an_earlier_run(intent.seq, found.opened.mark.as_ref()));
        }
        *locked(&self.shared.intent) = found.intent;
        Ok(found.opened)
    }

    fn peek(&self) -> Result<Opened, Failure> {
        let found = load::read(&mut locked(&self.control), &self.shared.channel)?;
        Ok(found.map_or_else(Opened::default, |found| found.opened))
    }

    fn start_at(&self, mark: &Mark, source: &str) -> Result<(), Failure> {
        let statement = self.shared.statements().start_at(mark, source);
        self.with_control(|control| {
            if self.shared.preserve_gtids && self.shared.info.log_bin {
                control.execute("SET SESSION sql_log_bin=0")?;
                control.execute(&statement)?;
                control.execute("SET SESSION sql_log_bin=1").map(|_| ())
            } else {
                control.execute(&statement).map(|_| ())
            }
        })
    }

    fn catalogue(&self) -> Result<Box<dyn Catalogue + Send>, Failure> {
        Ok(Box::new(catalogue_of(&self.shared)?))
    }

    fn session(&self, worker: usize) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(MySqlSession::open(Arc::clone(&self.shared), worker)?))
    }

    fn checkpoint(&self, mark: &Mark) -> Result<(), Failure> {
        self.with_control(|control| {
            let done = self.note_low_water(control, mark);
            if done.as_ref().is_err_and(|error| !error.is_connection_lost()) {
                control.execute("ROLLBACK")?;
            }
            done
        })
    }

    fn lock_waits(&self) -> Result<Vec<(usize, usize)>, Failure> {
        let info = &self.shared.info;
        let mut read = locked(&self.lock_waits_read);
        if read.is_some_and(|at| at.elapsed() < info.lock_waits_pause()) {
            return Ok(Vec::new());
        }
        let rows = self.with_control(|control| control.rows(info.lock_waits_sql()))?;
        *read = Some(Instant::now());
        let connections = locked(&self.shared.connections).clone();
        let worker =
            |id: Option<u64>| connections.iter().position(|&connection| Some(connection) == id && connection != 0);
        let mut waits = Vec::new();
        let mut all = HashSet::new();
        for row in rows {
            let (waiting, blocking) = (row.parse(0).map_err(failed)?, row.parse(1).map_err(failed)?);
            let Some(waiting) = worker(waiting) else { continue };
            all.insert(waiting);
            if let Some(blocking) = worker(blocking) {
                waits.push((waiting, blocking));
            }
        }
        *locked(&self.waiting) = all;
        Ok(waits)
    }

    fn interrupt(&self, worker: usize) -> Result<(), Failure> {
        // Held until the server has answered: what the session does after these rows is not hit any more, but for a rollback.
        let interruptible = locked(&self.shared.interruptible);
        let may_be_opening = self.shared.info.dies_of_interruptions() && !locked(&self.waiting).contains(&worker);
        if !interruptible.contains(&worker) || may_be_opening {
            return Ok(());
        }
        let Some(id) = locked(&self.shared.connections).get(worker).copied().filter(|&id| id != 0) else {
            return Ok(());
        };
        self.with_control(|control| match control.execute(format!("KILL QUERY {id}")) {
            // It has ended by itself.
            Err(error) if error.code() == Some(code::NO_SUCH_THREAD) => Ok(()),
            other => other.map(|_| ()),
        })
    }

    fn locks_rows(&self) -> bool {
        true
    }

    /// Who commits has his place in the order, and others can know it, only once the server's own syncs are over.
    fn syncs_for_several(&self) -> bool {
        false
    }

    fn takes_order(&self, order: CommitOrder) -> Result<(), Failure> {
        let info = &self.shared.info;
        if !(self.shared.preserve_gtids && info.flavour == Flavour::MariaDb && info.log_bin && order.has_gaps()) {
            return Ok(());
        }
        match self.with_control(|control| control.scalar("SELECT @@global.gtid_strict_mode"))?.as_deref() {
            Some("1") => Err(Failure::new(
                FailureKind::Refused,
                "gtid_strict_mode is on at the target: it refuses a source's GTID once a later one has committed",
            )
            .remedy("keep the source's order (--commit-order preserve), use --gtids local, or switch gtid_strict_mode off there")),
            _ => {
                tracing::warn!(
                    "the target logs the source's GTIDs in another order than the source: its gtid_binlog_pos will be the last one written, not the highest, \
                     and no replica of the source can go on from it"
                );
                Ok(())
            }
        }
    }

    fn still_held(&self) -> Result<(), Failure> {
        let sql = session::lease_sql(&self.shared);
        session::is_ours(&self.shared, self.with_control(|control| control.scalar(&sql))?)
    }

    fn check(&self, source: Option<&SourceFacts>, report: &mut Checks) {
        privileges::target(&self.shared, &mut locked(&self.control), report);
        check_definitions::target(&self.shared, source, report);
    }

    fn show_source_lost(&self, lost: bool) {
        let mut shown = locked(&self.source_lost);
        if !lost {
            *shown = None;
            return;
        }
        let name = quote(&session::lock_name(&self.shared.channel, session::SOURCE_LOST));
        let mut show = || -> Result<(), Failure> {
            // The idle time of the connection tells for how long, so it is left alone.
            if self.with_control(|control| control.scalar(format!("SELECT IS_USED_LOCK({name})")))?.is_none() {
                let connection = shown.insert(session::connect(&self.shared)?);
                connection.execute(format!("DO GET_LOCK({name}, 1)")).map_err(failed)?;
            }
            Ok(())
        };
        if let Err(failure) = show() {
            tracing::debug!("showing that the source can not be reached: {failure}");
        }
    }

    fn close(&self) {
        *locked(&self.source_lost) = None;
        let mut control = locked(&self.control);
        *locked(&self.shared.alone) = None;
        if let Err(failure) = deferred::prepare_all(&self.shared, &mut control)
            && failure.kind != FailureKind::Fenced
        {
            tracing::warn!(
                "XA branches whose end was not reached are prepared when the channel goes on, not now: {failure}"
            );
        }
        if let Err(error) = control.execute(format!("DO RELEASE_LOCK({})", quote(&self.lock_name()))) {
            tracing::debug!("releasing the channel's lock: {error}");
        }
        *locked(&self.shared.alone) = None;
        locked(&self.shared.branches).lose();
    }
}

/// The target's definitions, which notes what sessions have to know of some tables.
fn catalogue_of(shared: &Arc<Shared>) -> Result<MySqlCatalogue, Failure> {
    let connection = session::connect(shared)?;
    let own = Arc::clone(shared);
    let reconnect = move || until_reached(|| session::connect(&own)).map_err(|failure| failure.message);
    Ok(MySqlCatalogue::new(connection, Box::new(reconnect)).noting_for_sessions(Arc::clone(shared)))
}

impl MySqlTarget {
    pub fn flavour(&self) -> Flavour {
        self.shared.info.flavour
    }

    /// A connection as the workers have it, which takes `BINLOG` statements with events without checksums.
    pub fn applying_connection(&self) -> Result<Connection, Failure> {
        let mut connection = session::connect(&self.shared)?;
        session::introduce_format(&self.shared, &mut connection)?;
        Ok(connection)
    }

    /// What the target has executed, when its GTIDs can be the source's: for where a new channel starts.
    pub fn executed_gtids(&self) -> Result<GtidState, Failure> {
        let (sql, needed) = match self.shared.info.flavour {
            Flavour::MySql => (executed::ALL, self.shared.info.gtid_mode),
            Flavour::MariaDb => ("SELECT @@global.gtid_slave_pos", true),
        };
        if !needed {
            return Ok(GtidState::None);
        }
        executed::parse(self.with_control(|control| control.scalar(sql))?)
    }
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned())
}
