//! What an operator does to a channel that does not run: forget it, have it leave one transaction out, complete the target's GTIDs. It holds the channel's lock meanwhile, so no heddle can
//! start. It never changes the user's own tables.

use std::iter;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::failure::{Culprit, Failure, FailureKind};
use wire::{ConnectOptions, Connection};

use super::native_position;
use crate::added_tables_channel;
use crate::mysql::progress::branches::kept_branches;
use crate::mysql::progress::branches::open_branches::{self, OpenBranch};
use crate::mysql::progress::stops;
use crate::mysql::progress::tables::{
    COPY_TABLES, KEPT_GTIDS, OPEN_BRANCHES, SCHEMA, SELECTIONS, STANDBYS, SWITCHES, TABLES,
};
use crate::mysql::rows::{CompareBefore, RowsAs};
use crate::mysql::server::errors::{failed, if_there};
use crate::mysql::server::gtids::{Gtids, OWN_DOMAIN};
use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::sql::quote;
use crate::mysql::session::channel::ChannelContext;
use crate::mysql::session::connect::Connector;
use crate::mysql::session::grouped_gtids;
use crate::mysql::session::lease::{end_left_over_connections, lease_lock_name};
use crate::mysql::session::settings::BinlogChoice;
use crate::mysql::takeover::places;
use crate::mysql::xa::{deferred_branches, prepare};
use crate::status::LastError;

/// A channel that stands still for as long as this lives.
pub struct StoppedChannel {
    connection: Connection,
    options: ConnectOptions,
    channel: String,
}

/// What [`StoppedChannel::settle`] has done.
#[derive(Debug, Default)]
pub struct Settlement {
    /// GTIDs that were added to the target's `gtid_purged`, as a set's text.
    pub added: String,
    /// XA branches that were prepared, as the servers write their names.
    pub prepared: Vec<String>,
    /// MariaDB: `gtid_slave_pos` with which the server's own replication goes on. None where the channel has no GTIDs.
    pub position: Option<String>,
}

/// XA branches that the source has prepared, and the target has not, although their transactions are recorded.
fn names_of_open(connection: &mut Connection, channel: &str) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> =
        kept_branches::read(connection, channel)?.into_iter().map(|branch| branch.name).collect();
    let open = open_branches::read(connection, channel)?;
    names.extend(open.into_iter().filter(|branch| !branch.is_prepared()).map(|branch| branch.name));
    Ok(names)
}

impl StoppedChannel {
    /// Refuses a channel that runs.
    pub fn take(options: &ConnectOptions, channel: &str) -> Result<Self, Failure> {
        Self::take_within(options, channel, Duration::ZERO)
    }

    /// The same, of a channel whose process may just have ended.
    pub fn take_within(options: &ConnectOptions, channel: &str, wait: Duration) -> Result<Self, Failure> {
        let mut connection = Connection::connect(options).map_err(failed)?;
        let lock = quote(&lease_lock_name(channel));
        let got = connection.scalar(format!("SELECT GET_LOCK({lock}, {})", wait.as_secs())).map_err(failed)?;
        if got.as_deref() != Some("1") {
            return Err(Failure::new(FailureKind::Fenced, format!("channel {} is running", quote(channel)))
                .remedy("stop its heddle first, and run the same command again"));
        }
        if connection.server().is_mariadb() {
            // As its tables are made; an account that may not set it logs under the server's own domain.
            let set = connection.execute_repeatable(format!("SET SESSION gtid_domain_id={OWN_DOMAIN}"));
            if let Err(error) = set {
                tracing::debug!("gtid_domain_id: {error}");
            }
        }
        if !connection.server().is_mariadb() && grouped_gtids::is_kept(&mut connection, channel)? {
            // The target has the source's GTIDs and no others.
            connection.execute_repeatable("SET SESSION sql_log_bin=0").map_err(failed)?;
        }
        Ok(Self { connection, options: options.clone(), channel: channel.to_owned() })
    }

    /// Prepares the XA branches that are open. Of a channel that keeps the source's GTIDs in groups: adds those that are applied and that the target does not
    /// say it has executed. On MariaDB it finds the position for the server's own replication.
    pub fn settle(&mut self) -> Result<Settlement, Failure> {
        let mut settled = Settlement::default();
        let Self { connection, options, channel } = self;
        let is_mariadb = connection.server().is_mariadb();
        let is_kept = !is_mariadb && grouped_gtids::is_kept(connection, channel)?;
        let has_branches = !names_of_open(connection, channel)?.is_empty();
        if !is_kept && !has_branches && !is_mariadb {
            return Ok(settled);
        }
        end_left_over_connections(connection, channel)?;
        if is_mariadb {
            settled.position = native_position::read(connection, channel)?.map(|position| position.to_string());
        }
        if is_kept {
            settled.added = grouped_gtids::add_missing(connection, channel)?;
        }
        // Read again: nothing can commit any more.
        settled.prepared = names_of_open(connection, channel)?;
        if !settled.prepared.is_empty() {
            let connector = Connector::new(options.clone(), TargetInfo::read(connection)?, BinlogChoice::Yes);
            // Their rows are stored as the run wrote them. Row events among them are refused by name then.
            let rows_as = match connector.lacks_for_events()? {
                Some(_) => RowsAs::Sql(CompareBefore::Full),
                None => RowsAs::Binlog,
            };
            let gtids = if open_branches::read(connection, channel)?.is_empty() {
                Gtids::Local
            } else {
                Gtids::PreserveGrouped
            };
            let context = ChannelContext::new(connector, channel, gtids, rows_as);
            let epoch = connection.scalar(context.lease.question()).map_err(failed)?;
            context.lease.taken(epoch.and_then(|epoch| epoch.parse().ok()).unwrap_or_default());
            deferred_branches::prepare_all(&Arc::new(context), &Mutex::default(), connection)?;
        }
        Ok(settled)
    }

    /// Why it stopped last, if it ever did.
    pub fn last_error(&mut self) -> Result<Option<LastError>, Failure> {
        stops::read(&mut self.connection, &self.channel)
    }

    /// Its next run leaves the transaction out. It stays recorded for good.
    pub fn skip(&mut self, culprit: &Culprit, error: &LastError) -> Result<(), Failure> {
        let is_recorded = stops::skips(&mut self.connection, &self.channel)?.contains(culprit);
        if is_recorded {
            return Ok(());
        }
        self.connection.execute(stops::skip(&self.channel, culprit, error)).map(|_| ()).map_err(failed)
    }

    /// All that the target remembers of it goes, in one transaction.
    pub fn forget(&mut self) -> Result<(), Failure> {
        let name = quote(&self.channel);
        let of_copy = quote(&added_tables_channel(&self.channel));
        if places::count(&mut self.connection, &self.channel)? > 0 {
            let message = format!("processes wait for channel {name}: one of them would begin it anew");
            return Err(Failure::new(FailureKind::Refused, message)
                .remedy("stop them first (heddle status shows them), and run the same command again"));
        }
        self.check_branches(&self.channel.clone())?;
        // And the copy of tables that were to be added to it.
        let statements = deletions(&mut self.connection, &[&name, &of_copy])?;
        self.execute_as_one(statements)
    }

    /// Tables that a copy has brought to the channel's place in the log are the channel's from here on, and nothing is remembered of the copy. `selection`: what the channel
    /// takes now; `None`: all of the source. `logged`: whether the target's binary log has what Heddle writes for itself.
    pub fn take_tables_of(&mut self, copy: &str, selection: Option<&str>, logged: BinlogChoice) -> Result<(), Failure> {
        self.check_branches(copy)?;
        if logged == BinlogChoice::No {
            self.connection.execute_repeatable("SET SESSION sql_log_bin=0").map_err(failed)?;
        }
        let name = quote(&self.channel);
        let mut statements = deletions(&mut self.connection, &[&quote(copy)])?;
        statements.push(match selection {
            Some(selection) => {
                format!("REPLACE INTO {SCHEMA}.{SELECTIONS} (channel,selection) VALUES ({name},{})", quote(selection))
            }
            None => format!("DELETE FROM {SCHEMA}.{SELECTIONS} WHERE channel={name}"),
        });
        self.execute_as_one(statements)
    }

    fn execute_as_one(&mut self, statements: Vec<String>) -> Result<(), Failure> {
        let mut all = iter::once("BEGIN".to_owned()).chain(statements).chain(iter::once("COMMIT".to_owned()));
        all.try_for_each(|statement| self.connection.execute(statement).map(|_| ()).map_err(failed))
    }

    /// Refuses while the channel has branches that were not ended.
    fn check_branches(&mut self, channel: &str) -> Result<(), Failure> {
        let name = quote(channel);
        for table in ["branches", "kept_branches"] {
            let count = self.connection.scalar(format!("SELECT COUNT(*) FROM {SCHEMA}.{table} WHERE channel={name}"));
            if if_there(count)?.flatten().is_some_and(|count| count != "0") {
                return Err(Failure::new(
                    FailureKind::Refused,
                    format!("channel {name} has XA branches that were not ended ({SCHEMA}.{table})"),
                )
                .remedy("run the channel until they have ended; or end them by hand (XA RECOVER, XA ROLLBACK), and delete their rows there"));
            }
        }
        if let Some(branch) = self.open_branch(channel)? {
            return Err(Failure::new(
                FailureKind::Refused,
                format!("channel {name} has XA branches that were not ended ({SCHEMA}.{OPEN_BRANCHES}), such as {branch}"),
            )
            .remedy("run the channel until they have ended; or heddle settle, and end them by hand (XA RECOVER, XA ROLLBACK)"));
        }
        Ok(())
    }

    /// The name of a branch that is not prepared where it should be, or still is.
    fn open_branch(&mut self, channel: &str) -> Result<Option<String>, Failure> {
        let open = open_branches::read(&mut self.connection, channel)?;
        if open.is_empty() {
            return Ok(None);
        }
        let prepared = prepare::prepared(&mut self.connection)?;
        let is_open = |branch: &OpenBranch| !branch.is_prepared() || prepared.contains(&branch.xid);
        Ok(open.into_iter().find(is_open).map(|branch| branch.name))
    }
}

/// Of all that the target remembers of these channels, whose names are quoted.
fn deletions(connection: &mut Connection, names: &[&str]) -> Result<Vec<String>, Failure> {
    let known = connection
        .rows(format!("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA='{SCHEMA}'"))
        .map_err(failed)?;
    let known: Vec<&str> = known.iter().filter_map(|row| row.text(0).ok().flatten()).collect();
    let there = TABLES
        .iter()
        .chain([&KEPT_GTIDS, &OPEN_BRANCHES, &SELECTIONS, &STANDBYS, &SWITCHES])
        .chain(&COPY_TABLES)
        .filter(|table| known.contains(table));
    let names = names.join(",");
    Ok(there.map(|table| format!("DELETE FROM {SCHEMA}.{table} WHERE channel IN ({names})")).collect())
}
