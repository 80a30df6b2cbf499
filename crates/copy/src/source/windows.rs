//! Between which places of the source's log a consistent read lies: what its servers say of that, which differs.
//!
//! A transaction of MySQL is written to the log, then visible, then in `gtid_executed`. So all of `gtid_executed`, asked before a read, is in what the read
//! sees; and what it sees is before the end of the log, asked after the read has begun. MariaDB says the exact place of a consistent read.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use apply::mysql::server::sql::quote;
use binlog::LogPosition;
use binlog::gtids::GtidState;
use engine::windows::{Low, Window};
use wire::{ConnectOptions, Connection, Error};

use super::log_server::{self, LogServer};

/// Without a better answer: what was written to the log so long ago is visible.
const SETTLED_AFTER: Duration = Duration::from_secs(20);

/// Where the low of a window comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LowSource {
    /// MySQL with GTIDs: `gtid_executed`. Not with `binlog_order_commits=OFF`: the set may then have a transaction before one that it depends on.
    ExecutedGtids,
    /// MySQL without GTIDs: `performance_schema.log_status`, which needs BACKUP_ADMIN.
    LogStatus,
    /// Where nothing better is known: the end of the log some time ago.
    EarlierEnd,
    /// MariaDB: the place of the read itself.
    Snapshot,
    /// MariaDB, whose log is not the one that counts: the GTIDs before the place of the read.
    SnapshotGtids,
}

/// Begins reads on sessions of one source.
#[derive(Debug)]
pub struct Windows {
    low: LowSource,
    /// Ends of the log, and when they were asked for.
    ends: VecDeque<(Instant, LogPosition)>,
    /// `None`: the rows' server has the log.
    log: Option<LogServer>,
}

impl Windows {
    /// Asks which of the ways the source knows.
    ///
    /// # Errors
    /// The server's; [`Error::Protocol`]: rows and log are of two servers, and this one does not say what a read sees in GTIDs.
    pub fn new(connection: &mut Connection, log: Option<&ConnectOptions>) -> Result<Self, Error> {
        let low = if connection.server().is_mariadb() {
            if log.is_some() { LowSource::SnapshotGtids } else { LowSource::Snapshot }
        } else if connection.scalar("SELECT @@global.binlog_order_commits")?.as_deref() != Some("1") {
            LowSource::EarlierEnd
        } else if connection.scalar("SELECT @@global.gtid_mode")?.as_deref() == Some("ON") {
            LowSource::ExecutedGtids
        } else if log_status(connection).is_ok() {
            LowSource::LogStatus
        } else {
            LowSource::EarlierEnd
        };
        if log.is_some() && !matches!(low, LowSource::ExecutedGtids | LowSource::SnapshotGtids) {
            return Err(Error::Protocol(
                "rows of one server and the log of another have only GTIDs in common: the rows' server needs gtid_mode=ON and binlog_order_commits=ON".to_owned(),
            ));
        }
        Ok(Self { low, ends: VecDeque::new(), log: log.cloned().map(LogServer::new) })
    }

    pub fn low_source(&self) -> LowSource {
        self.low
    }

    /// Begins a transaction in which all reads see one state of the source, and says between which places of the log that state lies. The high is asked for
    /// at once: however long the reads take, the window stays small.
    pub fn begin(&mut self, connection: &mut Connection) -> Result<Window, Error> {
        if self.low == LowSource::Snapshot {
            let place = begin_snapshot(connection)?;
            return Ok(Window { low: Low::Position(place.clone()), high: place });
        }
        if self.low == LowSource::SnapshotGtids {
            let low = begin_snapshot_gtids(connection)?;
            return Ok(Window { low, high: self.high(connection)? });
        }
        let low = self.low(connection)?;
        connection.execute(BEGIN_SNAPSHOT)?;
        Ok(Window { low, high: self.high(connection)? })
    }

    /// A place of the log behind all that reads on the rows' server have seen so far.
    pub fn high(&mut self, connection: &mut Connection) -> Result<LogPosition, Error> {
        match &mut self.log {
            None => wire::source::log_end(connection),
            Some(log) => log.end_with(&log_server::executed_at_most(connection)?),
        }
    }

    /// A place up to which all is visible to reads that begin from now on.
    pub fn low(&mut self, connection: &mut Connection) -> Result<Low, Error> {
        match self.low {
            LowSource::ExecutedGtids => log_server::executed(connection).map(Low::Gtids),
            LowSource::LogStatus => log_status(connection).map(Low::Position),
            LowSource::EarlierEnd => self.earlier_end(connection).map(Low::Position),
            LowSource::Snapshot => {
                let place = begin_snapshot(connection)?;
                connection.execute("ROLLBACK")?;
                Ok(Low::Position(place))
            }
            LowSource::SnapshotGtids => {
                let low = begin_snapshot_gtids(connection)?;
                connection.execute("ROLLBACK")?;
                Ok(low)
            }
        }
    }

    fn earlier_end(&mut self, connection: &mut Connection) -> Result<LogPosition, Error> {
        loop {
            let now = Instant::now();
            self.ends.push_back((now, wire::source::log_end(connection)?));
            let is_settled = |at: &Instant| now.duration_since(*at) >= SETTLED_AFTER;
            while self.ends.get(1).is_some_and(|(at, _)| is_settled(at)) {
                self.ends.pop_front();
            }
            match self.ends.front() {
                Some((at, end)) if is_settled(at) => return Ok(end.clone()),
                _ => thread::sleep(Duration::from_millis(500)),
            }
        }
    }
}

const BEGIN_SNAPSHOT: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT";

/// Begins a transaction in which all reads see one state of the source, and says the exact place of that state in its log (MariaDB).
///
/// # Errors
/// The server's, or the connection's; [`Error::Protocol`]: it has no binary log.
pub fn begin_snapshot(connection: &mut Connection) -> Result<LogPosition, Error> {
    connection.execute(BEGIN_SNAPSHOT)?;
    let (mut file, mut position) = (String::new(), 0);
    for row in connection.rows("SHOW STATUS LIKE 'binlog_snapshot_%'")? {
        match row.required_text(0)?.to_ascii_lowercase().as_str() {
            "binlog_snapshot_file" => row.text(1)?.unwrap_or_default().clone_into(&mut file),
            "binlog_snapshot_position" => position = row.parse(1)?.unwrap_or(0),
            _ => {}
        }
    }
    if file.is_empty() {
        return Err(Error::Protocol("binlog_snapshot_file is empty: the server has no binary log".to_owned()));
    }
    Ok(LogPosition::new(file, position))
}

/// The same, in GTIDs: what the read's place in this server's own log says, and what the server had applied as a replica before.
fn begin_snapshot_gtids(connection: &mut Connection) -> Result<Low, Error> {
    let replicated = log_server::position(connection, "gtid_slave_pos")?;
    let place = begin_snapshot(connection)?;
    Ok(Low::Gtids(replicated.then(&gtids_before(connection, &place)?)))
}

/// The GTIDs before a place of this server's log (MariaDB).
///
/// # Errors
/// The server's, or the connection's; [`Error::Protocol`]: it says none.
pub fn gtids_before(connection: &mut Connection, place: &LogPosition) -> Result<GtidState, Error> {
    let sql = format!("SELECT BINLOG_GTID_POS({}, {})", quote(&place.file), place.offset);
    let text = connection.scalar(sql)?.unwrap_or_default();
    text.parse().map_err(|error| Error::Protocol(format!("BINLOG_GTID_POS: {text:?}: {error}")))
}

/// The end of the log, with all before it visible (MySQL 8.0 and later).
fn log_status(connection: &mut Connection) -> Result<LogPosition, Error> {
    let sql = "SELECT JSON_UNQUOTE(JSON_EXTRACT(LOCAL,'$.binary_log_file')), JSON_EXTRACT(LOCAL,'$.binary_log_position') \
               FROM performance_schema.log_status";
    let row = connection.row(sql)?.ok_or_else(|| Error::Protocol("log_status has no row".to_owned()))?;
    Ok(LogPosition::new(row.required_text(0)?, row.required(1)?))
}
