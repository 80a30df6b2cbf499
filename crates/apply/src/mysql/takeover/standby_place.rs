//! One process that waits for a channel: it looks, on a connection of its own, and takes nothing over itself.

use std::sync::Arc;
use std::time::Instant;

use binlog::Flavour;
use engine::failure::Failure;
use wire::{ConnectOptions, Connection};

use super::lookout::{HolderPlace, Lookout};
use super::request::Request;
use super::{PLACES, PLACES_MAX, REQUEST, places, signs};
use crate::mysql::progress::switches::{self, SwitchPhase};
use crate::mysql::progress::tables::{self, SCHEMA, STANDBYS};
use crate::mysql::progress::{load, stops};
use crate::mysql::server::cluster;
use crate::mysql::server::errors::{FENCE_COLUMN, failed, if_there};
use crate::mysql::server::gtids::OWN_DOMAIN;
use crate::mysql::server::sql::quote;
use crate::mysql::session::channel::ChannelContext;
use crate::mysql::session::lease::{kill, lease_holder, lease_lock_name, lock_name};
use crate::standby::{ChannelView, StandbyReport};
use crate::status::LastError;
use crate::{ChannelRecord, Standby};

/// A place among those that wait.
pub struct StandbyPlace {
    channel: Arc<ChannelContext>,
    /// The server, or the node at which who has the channel was seen last.
    home: ConnectOptions,
    lookout: Lookout,
    connection: Option<Connection>,
    /// Number of the place, while the connection lives.
    place: Option<usize>,
    since: Instant,
    request: Option<Request>,
    has_table: bool,
    /// The target is a node of a cluster: what is not logged there is on this node alone, and its removal would be an error on the others.
    is_clustered: bool,
}

impl StandbyPlace {
    pub fn new(channel: &Arc<ChannelContext>) -> Self {
        Self {
            channel: Arc::clone(channel),
            home: channel.connector.node().clone(),
            lookout: Lookout::default(),
            connection: None,
            place: None,
            since: Instant::now(),
            request: None,
            has_table: false,
            is_clustered: false,
        }
    }

    /// Asks on the connection, which is made where there is none.
    fn asking<T>(&mut self, ask: impl FnOnce(&mut Connection, &str) -> Result<T, Failure>) -> Result<T, Failure> {
        let name = self.channel.lease.channel().to_owned();
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let mut connection = self.channel.connector.connect_to_within(&self.home, signs::PATIENCE)?;
                self.place = take_place(&mut connection, &name)?;
                none.insert(connection)
            }
        };
        let done = ask(connection, &name);
        if connection.is_broken() {
            self.connection = None;
        }
        done
    }

    /// What changes the table is not logged, if the account may say so: it is nothing to the target's replicas, and where the target has the source's GTIDs it would
    /// take one of the target's own each time.
    fn write(&mut self, statement: &str) -> Result<(), Failure> {
        let may_be_unlogged = self.channel.gtids.are_logged() || self.channel.info().sets_restricted;
        let is_unlogged = may_be_unlogged && !self.is_clustered;
        self.asking(|connection, _| {
            if is_unlogged {
                connection.execute_repeatable("SET SESSION sql_log_bin=0").map_err(failed)?;
            }
            let written = connection.execute_repeatable(statement).map(|_| ()).map_err(failed);
            if is_unlogged {
                connection.execute_repeatable("SET SESSION sql_log_bin=1").map_err(failed)?;
            }
            written
        })
    }

    /// Made as the other tables are: the target's replicas have it, too, unless nothing of Heddle's is logged there.
    fn make_table(&mut self) -> Result<(), Failure> {
        if self.has_table {
            return Ok(());
        }
        let (is_unlogged, is_mariadb) =
            (self.channel.gtids.are_added(), self.channel.info().flavour == Flavour::MariaDb);
        self.is_clustered = self.asking(|connection, _| cluster::is_node(connection))?;
        let needs_domain = self.channel.gtids.are_logged() && is_mariadb;
        self.asking(|connection, _| {
            let found = connection.scalar(tables::is_there(STANDBYS)).map_err(failed)?;
            if found.as_deref() != Some("0") {
                return Ok(());
            }
            let mut run = |sql: &str| connection.execute_repeatable(sql).map(|_| ()).map_err(failed);
            if is_unlogged {
                run("SET SESSION sql_log_bin=0")?;
            }
            if needs_domain {
                run(&format!("SET SESSION gtid_domain_id={OWN_DOMAIN}"))?;
            }
            let made = run(&tables::create_standbys());
            if is_unlogged {
                run("SET SESSION sql_log_bin=1")?;
            }
            made
        })?;
        self.has_table = true;
        Ok(())
    }
}

/// The number of the first place that nobody has; `None`: all are taken.
fn take_place(connection: &mut Connection, channel: &str) -> Result<Option<usize>, Failure> {
    for place in 0..PLACES_MAX {
        let lock = quote(&lock_name(channel, PLACES + place));
        if connection.scalar(format!("SELECT GET_LOCK({lock},0)")).map_err(failed)?.as_deref() == Some("1") {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

impl StandbyPlace {
    /// As the node shows it at which this process waits.
    fn look_here(&mut self) -> Result<ChannelView, Failure> {
        self.asking(|connection, channel| {
            let (lease, request) = (quote(&lease_lock_name(channel)), quote(&lock_name(channel, REQUEST)));
            let row = connection.row(format!(
                "SELECT IS_USED_LOCK({lease}),IS_USED_LOCK({request}),(SELECT MAX({FENCE_COLUMN}) FROM {SCHEMA}.leases WHERE channel={name}),\
                 (SELECT MAX(seq) FROM {SCHEMA}.progress WHERE channel={name})",
                name = quote(channel)
            ));
            // The channel is new: its tables are not there yet.
            let Some(row) = if_there(row)?.flatten() else { return Ok(ChannelView::default()) };
            let number = |at: usize| row.parse::<u64>(at).map_err(failed);
            let (holder, request, epoch) = (number(0)?, number(1)?, number(2)?.unwrap_or(0));
            let (sign, applied) = (signs::read(connection, channel)?, number(3)?.unwrap_or(0));
            Ok(ChannelView { holder, sign, is_asked: request.is_some(), epoch, applied, is_partial: false })
        })
    }

    /// Waits at another node from here on.
    fn move_to(&mut self, node: ConnectOptions) {
        tracing::debug!("standby: waits at {} from here on", node.address());
        self.home = node;
        self.connection = None;
        self.place = None;
        self.request = None;
    }

    /// The node behind this one.
    fn next_node(&self) -> Option<ConnectOptions> {
        let nodes: Vec<&ConnectOptions> = self.channel.connector.nodes().in_turn().map(|(_, node)| node).collect();
        let here = nodes.iter().position(|node| node.address() == self.home.address()).unwrap_or(0);
        nodes.get((here + 1) % nodes.len()).map(|&node| node.clone())
    }
}

impl Standby for StandbyPlace {
    /// At one node after the other, until the one answers at which who has the channel is.
    fn look(&mut self) -> Result<ChannelView, Failure> {
        let seen = self.look_here();
        if !self.channel.connector.has_other_nodes() {
            return seen;
        }
        let seen = match seen {
            Ok(seen) if seen.holder.is_some() => {
                self.lookout.rest();
                return Ok(seen);
            }
            Ok(seen) => seen,
            Err(failure) => {
                if let Some(next) = self.next_node() {
                    self.move_to(next);
                }
                return Err(failure);
            }
        };
        match self.lookout.look(&self.channel, &self.home) {
            HolderPlace::At(node) => {
                self.move_to(*node);
                self.look_here()
            }
            HolderPlace::Nowhere => Ok(seen),
            HolderPlace::Unsure => Ok(ChannelView { is_partial: true, ..seen }),
        }
    }

    fn channel(&mut self) -> Result<ChannelRecord, Failure> {
        self.asking(|connection, channel| {
            let is_copying = load::is_copying(connection, channel)?;
            let found = load::read(connection, channel)?;
            Ok(ChannelRecord { is_copying, ..found.map_or_else(ChannelRecord::default, |found| found.opened) })
        })
    }

    fn owner(&mut self) -> Result<String, Failure> {
        self.asking(|connection, channel| {
            let sql = format!("SELECT owner FROM {SCHEMA}.progress WHERE channel={}", quote(channel));
            Ok(if_there(connection.scalar(sql))?.flatten().unwrap_or_default())
        })
    }

    fn last_stop(&mut self) -> Result<Option<LastError>, Failure> {
        self.asking(stops::read)
    }

    fn is_being_switched(&mut self) -> Result<bool, Failure> {
        self.asking(|connection, channel| Ok(switches::phase(connection, channel)? == Some(SwitchPhase::Ending)))
    }

    fn show(&mut self, report: &StandbyReport) -> Result<(), Failure> {
        // It connects, and with that takes a place.
        self.make_table()?;
        let Some(place) = self.place else { return Ok(()) };
        let since_s = self.since.elapsed().as_secs();
        self.write(&places::record(self.channel.lease.channel(), place, since_s, report))
    }

    fn end_holder(&mut self, holder: u64) -> Result<(), Failure> {
        self.asking(|connection, channel| {
            if lease_holder(connection, channel)? == Some(holder.to_string()) {
                kill(connection, &holder.to_string());
            }
            Ok(())
        })
    }

    fn ask(&mut self) -> Result<(), Failure> {
        if self.request.is_none() {
            let connection = self.channel.connector.connect_to_within(&self.home, signs::PATIENCE)?;
            self.request = Request::hold(connection, self.channel.lease.channel())?;
        }
        Ok(())
    }

    fn withdraw(&mut self) {
        self.request = None;
    }

    fn leave(&mut self) {
        self.request = None;
        if let (Some(place), true) = (self.place, self.connection.is_some()) {
            let forgotten = self.write(&places::forget(self.channel.lease.channel(), place));
            if let Err(error) = forgotten {
                tracing::debug!("the target keeps what this standby has said of itself: {error}");
            }
        }
        self.connection = None;
    }
}
