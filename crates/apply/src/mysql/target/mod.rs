//! A MySQL or MariaDB server as the channel's target: the shared side.
//!
//! It answers the channel on a control connection, and hands out a session to each worker. It applies nothing itself.

mod account;
mod check_definitions;
pub(in crate::mysql) mod connect;
pub mod gtids;
mod holdings;
mod locks;
mod open;
mod other_nodes;
mod target_state;
mod wait_lock;
mod worker;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use binlog::Flavour;
use binlog::gtids::GtidState;
use engine::failure::{Failure, FailureKind};
use engine::intake::Selection;
use engine::policy::CommitOrder;
use engine::progress::Mark;
use engine::schema::{Catalogue, Leftovers};
use wire::Connection;

use self::locks::holders;
use self::locks::waits::{LockWaits, ReadMode, kill_query};
use self::target_state::TargetState;
use self::wait_lock::WaitLock;
use self::worker::WorkerSession;
use super::catalogue;
use super::progress::tables::{self, SELECTIONS};
use super::progress::{SCHEMA, executed_gtids, load, retries, stops};
use super::rows::{self, HiddenTriggers, RowsAs};
use super::server::errors::failed;
use super::server::info::{TargetInfo, machine};
use super::server::privileges;
use super::server::sql::quote;
use super::session::channel::{AccountStatements, Ddl};
use super::session::grouped_gtids;
use super::session::lease::lease_lock_name;
use super::takeover::signs::Signs;
use super::takeover::standby_place::StandbyPlace;
use super::xa::deferred_branches;
use crate::checks::{Cascade, Checks, Holdings, SourceFacts};
use crate::lock::locked;
use crate::locks::LockHolder;
use crate::retry::until_reached;
use crate::standby::SourceContact;
use crate::status::{RetryStatus, Waits};
use crate::{ChannelRecord, Footprint, PROCESS_BYTES, Session, Standby, Target};

pub struct MySqlTarget {
    shared: Arc<TargetState>,
    /// Why rows are written as SQL although nobody has asked for that.
    why_sql: Option<String>,
    /// Why the source's GTIDs are not grouped although that was asked for.
    one_by_one: Option<String>,
    control: Mutex<Connection>,
    lock_waits: LockWaits,
    source_lost: WaitLock,
    paused: WaitLock,
    closed: WaitLock,
    signs: Mutex<Signs>,
}

impl MySqlTarget {
    /// Before anything is applied. Only MariaDB knows [`Ddl::Idempotent`].
    pub fn set_ddl(&self, ddl: Ddl) -> Result<(), Failure> {
        if ddl == Ddl::Idempotent && self.flavour() == Flavour::MySql {
            let message =
                "--ddl idempotent: only MariaDB's own replicas go on where a table is there already, or is gone";
            return Err(Failure::new(FailureKind::Refused, message).remedy("leave it out for a MySQL target"));
        }
        self.shared.channel.set_ddl(ddl);
        Ok(())
    }

    /// Before anything is applied; only rows as SQL ask.
    pub fn set_hidden_triggers(&self, what: HiddenTriggers) {
        self.shared.channel.quirks.set_hidden_triggers(what);
    }

    /// Before anything is applied: the target keeps rows that the source has deleted.
    pub fn keep_leftovers(&self) {
        self.shared.channel.quirks.set_leftovers(Leftovers::Kept);
    }

    /// Before anything is applied.
    pub fn set_account_statements(&self, what: AccountStatements) {
        self.shared.channel.set_account_statements(what);
    }

    /// Before anything is applied: for how long to try to reach it when it is gone.
    pub fn set_reconnect_for(&self, time: Duration) {
        self.shared.channel.set_reconnect_for(time);
    }

    /// [`Gtids::PreserveGrouped`](super::Gtids::PreserveGrouped) was asked for, and this is why each transaction gets a target transaction of its own all the same.
    pub fn why_one_by_one(&self) -> Option<&str> {
        self.one_by_one.as_deref()
    }

    /// As what rows are written.
    pub fn rows_as(&self) -> RowsAs {
        self.shared.channel.quirks.rows_as
    }

    /// [`RowsChoice::Fitting`](connect::RowsChoice::Fitting) has chosen SQL, and this is why.
    pub fn why_sql(&self) -> Option<&str> {
        self.why_sql.as_deref()
    }

    fn info(&self) -> &TargetInfo {
        self.shared.channel.info()
    }

    pub fn flavour(&self) -> Flavour {
        self.info().flavour
    }

    /// A connection of its own that takes `BINLOG` statements with events without checksums.
    pub fn applying_connection(&self) -> Result<Connection, Failure> {
        let channel = &self.shared.channel;
        let mut connection = channel.connector.connect()?;
        let mut rows = rows::binlog_writer(channel.info(), &channel.quirks);
        rows.set_up(&mut connection, channel.info().packet_bytes_max)?;
        Ok(connection)
    }

    /// What the target has executed, when its GTIDs can be the source's: for where a new channel starts.
    pub fn executed_gtids(&self) -> Result<GtidState, Failure> {
        let (sql, needed) = match self.flavour() {
            Flavour::MySql => (executed_gtids::ALL, self.info().gtid_mode),
            Flavour::MariaDb => ("SELECT @@global.gtid_slave_pos", true),
        };
        if !needed {
            return Ok(GtidState::None);
        }
        executed_gtids::parse(self.with_control(|control| control.scalar(sql))?)
    }

    /// Changes what is beside the progress, under a GTID of the target's own.
    fn write_by_itself(&self, statement: &str) -> Result<(), Failure> {
        let own = open::own_domain(&self.shared.channel);
        let is_unlogged = self.shared.channel.gtids.are_added();
        self.with_control(|control| {
            if is_unlogged {
                return unlogged(control, &[statement]);
            }
            own.iter().try_for_each(|statement| control.execute_repeatable(statement).map(|_| ()))?;
            control.execute_repeatable(statement).map(|_| ())
        })
    }

    /// Runs something on the control connection, which is made anew when it was lost.
    fn with_control<T>(&self, run: impl Fn(&mut Connection) -> Result<T, wire::Error>) -> Result<T, Failure> {
        let mut control = locked(&self.control);
        match run(&mut control) {
            Err(error) if error.is_connection_lost() => {
                let mut fresh = self.shared.channel.connector.connect()?;
                // The lease is fenced by its number; the lock only keeps a second heddle from starting.
                let lock = quote(&lease_lock_name(self.shared.channel.lease.channel()));
                fresh.scalar(format!("SELECT GET_LOCK({lock}, 0)")).map_err(failed)?;
                *control = fresh;
                run(&mut control).map_err(failed)
            }
            other => other.map_err(failed),
        }
    }

    /// Runs what may be done twice, before the channel runs. A target that was reached and is lost meanwhile is waited for.
    fn until_done<T>(&self, run: impl Fn(&mut Connection) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut is_lost = false;
        until_reached(self.shared.channel.reconnect_for(), || {
            let mut control = locked(&self.control);
            if is_lost {
                *control = self.shared.channel.connector.connect()?;
            }
            let done = run(&mut control);
            is_lost = done.as_ref().is_err_and(|failure| failure.kind == FailureKind::ConnectionLost);
            done
        })
    }
}

impl Target for MySqlTarget {
    fn selection(&self) -> Selection {
        Selection::applied(SCHEMA.name())
    }

    fn describe(&self) -> String {
        let info = self.info();
        format!("{} {} at {}", info.flavour, info.version_text, self.shared.channel.connector.address())
    }

    fn machine(&self) -> Result<Option<String>, Failure> {
        self.with_control(machine).map(Some)
    }

    fn open(&self) -> Result<ChannelRecord, Failure> {
        self.until_done(|control| open::take_over(&self.shared, control))
    }

    fn peek(&self) -> Result<ChannelRecord, Failure> {
        let channel = self.shared.channel.lease.channel();
        let (found, is_copying) = self.until_done(|control| {
            let causal = open::begin_causal(&self.shared.channel, control)?;
            let read = (load::read(control, channel)?, load::is_copying(control, channel)?);
            causal.end(control)?;
            Ok(read)
        })?;
        Ok(ChannelRecord { is_copying, ..found.map_or_else(ChannelRecord::default, |found| found.opened) })
    }

    fn record_part(&self, part: Option<&str>) -> Result<(), Failure> {
        let name = quote(self.shared.channel.lease.channel());
        let statements = match part {
            Some(part) => {
                let part = quote(part);
                vec![
                    tables::create_selections(),
                    format!("REPLACE INTO {SCHEMA}.{SELECTIONS} (channel,selection) VALUES ({name},{part})"),
                ]
            }
            None => vec![format!("DELETE FROM {SCHEMA}.{SELECTIONS} WHERE channel={name}")],
        };
        statements.iter().try_for_each(|statement| self.write_by_itself(statement))
    }

    fn start_at(&self, mark: &Mark, source: &str) -> Result<(), Failure> {
        let statement = self.shared.channel.lease.statements().start_at(mark, source);
        let gtids = &self.shared.channel.gtids;
        let begin = grouped_gtids::begin_anew(self.shared.channel.lease.channel());
        self.with_control(|control| {
            if gtids.are_added() {
                unlogged(control, &["BEGIN", &statement, &begin, "COMMIT"])
            } else if gtids.are_logged() {
                unlogged(control, &[&statement])
            } else {
                control.execute_repeatable(&statement).map(|_| ())
            }
        })?;
        if gtids.are_added() {
            let mut control = locked(&self.control);
            let before = grouped_gtids::not_executed_before(&mut control, self.shared.channel.lease.channel())?;
            if !before.is_empty() {
                tracing::warn!(
                    "the channel starts behind GTIDs that the target's gtid_executed does not have: {before}. If their rows are there, a server that goes on by GTID \
                     needs them: SET GLOBAL gtid_purged='+…' adds them"
                );
            }
        }
        Ok(())
    }

    fn catalogue(&self) -> Result<Box<dyn Catalogue + Send>, Failure> {
        Ok(Box::new(catalogue::of_channel(&self.shared.channel)?))
    }

    fn session(&self, worker: usize) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(WorkerSession::open(Arc::clone(&self.shared), worker)?))
    }

    /// How many readers at a time are best depends on the server and on its disk: bench/results/benchmarks.md, "How many workers".
    fn reads_in_parallel(&self) -> bool {
        true
    }

    fn pages_read(&self) -> Result<u64, Failure> {
        self.with_control(|control| {
            let row = control.row("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_reads'")?;
            Ok(row.and_then(|row| row.parse(1).ok().flatten()).unwrap_or(0))
        })
    }

    fn checkpoint(&self, mark: &Mark) -> Result<(), Failure> {
        let statements = self.shared.channel.lease.statements();
        self.with_control(|control| {
            let done = statements.checkpoint(control, mark);
            if done.as_ref().is_err_and(|error| !error.is_connection_lost()) {
                control.execute("ROLLBACK")?;
            }
            done
        })
    }

    fn lock_waits(&self) -> Result<Vec<(usize, usize)>, Failure> {
        let connections = || self.shared.channel.connection_ids();
        let rows = |sql: &str, asking| {
            self.with_control(|control| {
                if asking == ReadMode::Plainly {
                    return control.rows(sql);
                }
                control.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
                let rows = control.rows(sql);
                control.execute("ROLLBACK")?;
                rows
            })
        };
        self.lock_waits.read(self.info(), rows, connections)
    }

    fn lock_holders(&self) -> Result<Vec<LockHolder>, Failure> {
        let own = self.shared.channel.connection_ids();
        let read = holders::read(self.info(), &own, |sql| self.with_control(|control| control.rows(sql)));
        self.lock_waits.read_beside();
        read
    }

    fn interrupt(&self, worker: usize) -> Result<(), Failure> {
        let may_be_opening_tables = self.info().dies_of_interruptions() && !self.lock_waits.is_waiting(worker);
        self.shared.interruptible.interrupt(worker, || {
            let id = self.shared.channel.connection_ids().get(worker).copied().filter(|&id| id != 0);
            match id.filter(|_| !may_be_opening_tables) {
                Some(id) => self.with_control(|control| kill_query(control, id)),
                None => Ok(()),
            }
        })
    }

    fn reconnect_for(&self) -> Duration {
        self.shared.channel.reconnect_for()
    }

    fn has_other_nodes(&self) -> bool {
        self.shared.channel.connector.has_other_nodes()
    }

    fn give_up(&self) {
        self.shared.channel.connector.give_up();
    }

    fn locks_rows(&self) -> bool {
        true
    }

    fn groups_by_origin(&self) -> bool {
        self.shared.channel.gtids.are_grouped() && self.flavour() == Flavour::MariaDb
    }

    fn footprint(&self) -> Footprint {
        // As text a row may have twice as many bytes.
        let event_copies = if self.shared.channel.quirks.writes_sql() { 3 } else { 1 };
        Footprint { base_bytes: PROCESS_BYTES, event_copies }
    }

    /// Who commits has his place in the order, and others can know it, only once the server's own syncs are over.
    fn syncs_for_several(&self) -> bool {
        false
    }

    fn takes_order(&self, order: CommitOrder) -> Result<(), Failure> {
        let info = self.info();
        let logs_with_gaps = self.shared.channel.gtids.are_logged() && order.has_gaps();
        if info.flavour != Flavour::MariaDb || !logs_with_gaps {
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
        let lease = &self.shared.channel.lease;
        let question = lease.question();
        lease.check(self.with_control(|control| control.scalar(&question))?)
    }

    fn refusals(&self) -> Vec<Failure> {
        let channel = &self.shared.channel;
        account::refusals(channel, &mut locked(&self.control))
    }

    fn has_table(&self, schema: &str, table: &str) -> Result<bool, Failure> {
        holdings::has_table(&mut locked(&self.control), schema, table)
    }

    fn cascades(&self) -> Result<Vec<Cascade>, Failure> {
        catalogue::cascades(&mut |sql| self.with_control(|control| control.rows(sql)))
    }

    fn holdings(&self) -> Result<Holdings, Failure> {
        holdings::read(&mut locked(&self.control), self.shared.channel.lease.channel())
    }

    fn check(&self, source: Option<&SourceFacts>, report: &mut Checks) {
        let channel = &self.shared.channel;
        let user = channel.connector.user();
        open::check_free(channel, &mut locked(&self.control), report);
        let lacks = account::lacks(channel, &mut locked(&self.control)).unwrap_or_default();
        let rows_as = self.rows_as();
        if rows_as != RowsAs::Binlog {
            let why = self.why_sql().map_or(String::new(), |why| format!(", since {why}"));
            report.ok.push(format!("target: rows are written as INSERT, UPDATE, DELETE (--rows sql){why}"));
        }
        privileges::check(channel.info(), user, channel.quirks.written(), &mut locked(&self.control), &lacks, report);
        check_definitions::check(&channel.connector, source, report);
    }

    fn give_sign(&self, source: SourceContact) -> Result<bool, Failure> {
        let given = locked(&self.signs).give(&self.shared.channel, source)?;
        if given.is_lock_free {
            // A connection that is in use now is asked the next time.
            if self.control.try_lock().is_ok() {
                let lock = quote(&lease_lock_name(self.shared.channel.lease.channel()));
                let take = format!("SELECT IF(IS_USED_LOCK({lock})=CONNECTION_ID(),1,GET_LOCK({lock},0))");
                self.with_control(|control| control.scalar(&take))?;
            }
        }
        Ok(given.is_asked)
    }

    fn standby(&self) -> Option<Box<dyn Standby>> {
        Some(Box::new(StandbyPlace::new(&self.shared.channel)))
    }

    fn show_waits(&self, waits: Waits) {
        let locks =
            [(waits.source_lost, &self.source_lost), (waits.paused, &self.paused), (waits.closed, &self.closed)];
        for (is_so, lock) in locks {
            if is_so {
                let ask = |question: &str| self.with_control(|control| control.scalar(question));
                lock.show(&self.shared.channel, ask);
            } else {
                lock.clear();
            }
        }
    }

    fn record_retry(&self, retrying: Option<&RetryStatus>) -> Result<(), Failure> {
        let lease = &self.shared.channel.lease;
        self.write_by_itself(&match retrying {
            Some(retrying) => retries::record(lease.channel(), lease.epoch(), retrying),
            None => retries::forget(lease.channel()),
        })
    }

    fn record_stop(&self, failure: &Failure) {
        // Who has lost the channel says nothing about it any more.
        if matches!(failure.kind, FailureKind::Fenced | FailureKind::Stopped) {
            return;
        }
        let channel = &self.shared.channel;
        let statement = stops::record(channel.lease.channel(), channel.lease.epoch(), failure);
        if let Err(error) = self.write_by_itself(&statement) {
            tracing::debug!("the target does not remember why the channel stops: {error}");
        }
    }

    fn complete_gtids(&self) -> Result<(), Failure> {
        self.shared.gtid_adder.complete()
    }

    fn close(&self) {
        self.shared.gtid_adder.close();
        self.source_lost.clear();
        self.paused.clear();
        self.closed.clear();
        locked(&self.signs).end();
        let mut control = locked(&self.control);
        self.shared.statements.close();
        match deferred_branches::prepare_all(&self.shared.channel, &self.shared.branches, &mut control) {
            Err(failure) if failure.kind != FailureKind::Fenced => tracing::warn!(
                "XA branches whose end was not reached are prepared when the channel goes on, not now: {failure}"
            ),
            _ => {}
        }
        self.shared.channel.close_unlogged();
        let lock = quote(&lease_lock_name(self.shared.channel.lease.channel()));
        if let Err(error) = control.execute(format!("DO RELEASE_LOCK({lock})")) {
            tracing::debug!("releasing the channel's lock: {error}");
        }
        locked(&self.shared.branches).leave_all();
    }
}

/// Each by itself, in none of the target's logs and under no GTID.
fn unlogged(control: &mut Connection, statements: &[&str]) -> Result<(), wire::Error> {
    let run = |control: &mut Connection| statements.iter().try_for_each(|sql| control.execute(*sql).map(|_| ()));
    open::unlogged(control, |error| error, run)
}
