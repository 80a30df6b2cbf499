//! Connects to a target: asks what it is, and chooses how its rows are written and which GTIDs they get.

use std::sync::{Arc, Mutex};

use engine::failure::Failure;
use wire::{Connection, Nodes};

use super::MySqlTarget;
use super::gtids::grouping;
use super::locks::waits::LockWaits;
use super::target_state::TargetState;
use super::wait_lock::WaitLock;
use crate::mysql::catalogue;
use crate::mysql::rows::{CompareBefore, RowsAs};
use crate::mysql::server::errors::failed;
use crate::mysql::server::gtids::Gtids;
use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::node;
use crate::mysql::server::shown_triggers::ShownTriggers;
use crate::mysql::session::channel::ChannelContext;
use crate::mysql::session::connect::Connector;
use crate::mysql::session::lease::{CLOSED, PAUSED, SOURCE_LOST};
use crate::mysql::session::settings::{self, BinlogChoice};

/// As what rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsChoice {
    Is(RowsAs),
    /// Row events where the account may apply them, else SQL.
    Fitting(CompareBefore),
}

impl MySqlTarget {
    pub fn connect(target: impl Into<Nodes>, channel: &str, gtids: Gtids) -> Result<Self, Failure> {
        Self::connect_with(&target.into(), channel, gtids, BinlogChoice::Yes, RowsChoice::Is(RowsAs::Binlog))
    }

    /// The same; `rows`: as what its rows are written. Of several nodes it takes the first one from the current on that takes changes.
    pub fn connect_for_rows(
        target: impl Into<Nodes>,
        channel: &str,
        gtids: Gtids,
        rows: RowsChoice,
    ) -> Result<Self, Failure> {
        Self::connect_with(&target.into(), channel, gtids, BinlogChoice::Yes, rows)
    }

    /// For the log of a copy's time: rows in place of those that are there, under the target's own GTIDs, or (`logged`) in no log.
    pub fn connect_for_copy(
        target: impl Into<Nodes>,
        channel: &str,
        logged: BinlogChoice,
        rows: RowsChoice,
    ) -> Result<Self, Failure> {
        let target = Self::connect_with(&target.into(), channel, Gtids::Local, logged, rows)?;
        // Prepared before the copy, ended before its reads.
        target.shared.channel.skip_unknown_branches();
        Ok(target)
    }

    /// As a native replica without log_replica_updates: nothing goes into the target's own binary log, and nothing gets a GTID.
    /// `logged`: all the same, under GTIDs of the target's own.
    pub fn connect_as_replica(target: impl Into<Nodes>, channel: &str, logged: BinlogChoice) -> Result<Self, Failure> {
        Self::connect_with(&target.into(), channel, Gtids::Local, logged, RowsChoice::Is(RowsAs::Binlog))
    }

    fn connect_with(
        nodes: &Nodes,
        channel: &str,
        gtids: Gtids,
        logged: BinlogChoice,
        rows: RowsChoice,
    ) -> Result<Self, Failure> {
        // Those of one node end apart from the process's others.
        let nodes = &if nodes.are_several() {
            nodes.with_shared(|node| node.limits.interrupt = node.limits.interrupt.for_part())
        } else {
            nodes.clone()
        };
        let options = node::choose(nodes)?;
        let mut control = Connection::connect(&options).map_err(failed)?;
        if control.needs_password_cache() {
            tracing::warn!("{}", wire::reach::password_cache_warning("target"));
        }
        let info = TargetInfo::read(&mut control)?;
        let one_by_one = match gtids {
            Gtids::PreserveGrouped => grouping::why_not(&info, &mut control)?,
            Gtids::Preserve | Gtids::Local => None,
        };
        let gtids = if one_by_one.is_some() { Gtids::Preserve } else { gtids };
        settings::set_up(&mut control, &info, logged)?;
        let connector = Connector::to_node(options, nodes.clone(), info, logged);
        let (rows_as, why_sql) = match rows {
            RowsChoice::Is(rows_as) => (rows_as, None),
            RowsChoice::Fitting(compare) => match connector.lacks_for_events()? {
                Some(why) => (RowsAs::Sql(compare), Some(why)),
                None => (RowsAs::Binlog, None),
            },
        };
        let channel = ChannelContext::new(connector, channel, gtids, rows_as);
        channel.quirks.set_sql_loader(catalogue::sql_table::load);
        if channel.quirks.writes_sql() {
            channel.quirks.set_shown_triggers(ShownTriggers::read(&mut control));
        }
        Ok(Self {
            why_sql,
            shared: Arc::new(TargetState::new(channel)),
            one_by_one,
            control: Mutex::new(control),
            lock_waits: LockWaits::default(),
            source_lost: WaitLock::new(SOURCE_LOST),
            paused: WaitLock::new(PAUSED),
            closed: WaitLock::new(CLOSED),
            signs: Mutex::default(),
        })
    }
}
