//! Takes a channel over: refuses when another heddle has it, ends what an earlier one has left, and only then reads what is applied.

use binlog::Flavour;
use engine::failure::{Failure, FailureKind};
use wire::Connection;

use super::account::refuse_switched;
use super::other_nodes::OtherNodes;
use super::target_state::TargetState;
use crate::ChannelRecord;
use crate::checks::Checks;
use crate::mysql::progress::branches::open_branches;
use crate::mysql::progress::executed_gtids;
use crate::mysql::progress::load::{self, StoredChannel};
use crate::mysql::progress::progress_rows::ProgressTable;
use crate::mysql::progress::stops;
use crate::mysql::progress::tables::{self, KEPT_GTIDS, OPEN_BRANCHES, SCHEMA};
use crate::mysql::server::cluster::CausalReads;
use crate::mysql::server::errors::{FENCE_COLUMN, failed, if_there};
use crate::mysql::server::gtids::OWN_DOMAIN;
use crate::mysql::server::host::host_name;
use crate::mysql::server::sql::quote;
use crate::mysql::server::unsafe_settings;
use crate::mysql::session::bookkeeping_guard::BookkeepingGuard;
use crate::mysql::session::channel::ChannelContext;
use crate::mysql::session::grouped_gtids;
use crate::mysql::session::lease::{end_left_over_connections, kill, lease_holder, lease_lock_name, raise_lease};
use crate::mysql::session::owned_gtids;
use crate::mysql::statements::execute::nontransactional;
use crate::mysql::xa::{deferred_branches, prepare};
use crate::retry::back_off;

/// How long to wait for the lock of the channel, in seconds: a predecessor that was killed has a moment to disappear from the server.
const LOCK_WAIT_S: u32 = 5;
const LEASE_TRIES_MAX: u32 = 10;

pub fn take_over(shared: &TargetState, control: &mut Connection) -> Result<ChannelRecord, Failure> {
    let channel = &*shared.channel;
    if !channel.quirks.writes_sql() {
        unsafe_settings::refuse(control, channel.info())?;
    }
    let causal = begin_causal(channel, control)?;
    let mut others = OtherNodes::of(channel);
    refuse_held_elsewhere(channel, control, &mut others)?;
    take_lock(channel, control)?;
    // Once more, with the lock: heddle switch records first, and looks at the lock then.
    refuse_switched(channel.lease.channel(), control)?;
    if channel.gtids.are_added() {
        unlogged(control, failed, |control| make_tables(channel, control))?;
    } else {
        make_tables(channel, control)?;
    }
    make_table_of_branches(channel, control)?;
    take_lease_in_turn(channel, control)?;
    end_left_over_connections(control, channel.lease.channel())?;
    others.end_left_over(channel.lease.channel());
    // Nothing of an earlier run can commit any more.
    complete_gtids(channel, control)?;
    let mut found = load::read(control, channel.lease.channel())?.ok_or_else(|| {
        let name = quote(channel.lease.channel());
        Failure::new(FailureKind::Refused, format!("{SCHEMA}.progress has no row for {name}"))
    })?;
    channel.lease.taken(found.epoch);
    channel.set_progress_table(ProgressTable::read(control)?);
    channel.set_bookkeeping_guard(BookkeepingGuard::read(control)?);
    finish_earlier_run(shared, control, &mut found)?;
    causal.end(control)?;
    Ok(found.opened)
}

/// So that a node that is behind does not show an old progress.
pub fn begin_causal(channel: &ChannelContext, control: &mut Connection) -> Result<CausalReads, Failure> {
    if channel.connector.has_other_nodes() { CausalReads::begin(control) } else { Ok(CausalReads::default()) }
}

/// Another process may have the channel at another node.
fn refuse_held_elsewhere(
    channel: &ChannelContext,
    control: &mut Connection,
    others: &mut OtherNodes,
) -> Result<(), Failure> {
    let name = channel.lease.channel();
    let Some((holder, node)) = others.holder(name) else { return Ok(()) };
    if is_own(channel, control)? {
        others.end_holder(name);
        return Ok(());
    }
    Err(held_at(channel, holder, &node))
}

fn held_at(channel: &ChannelContext, holder: String, node: &str) -> Failure {
    let mut held = in_use(channel, Some(holder));
    held.message.push_str(&format!(", at {node}"));
    held
}

/// Whether this process has had the channel last: what holds its lock is left of a connection that it has lost.
fn is_own(channel: &ChannelContext, control: &mut Connection) -> Result<bool, Failure> {
    let owner =
        control.scalar(format!("SELECT owner FROM {SCHEMA}.progress WHERE channel={}", quote(channel.lease.channel())));
    Ok(if_there(owner)?.flatten().is_some_and(|owner| owner == own_name()))
}

fn own_name() -> String {
    format!("{}@{}", std::process::id(), host_name())
}

/// Runs it with nothing of it in the target's binary log, and with no GTID: the target then has the source's alone.
pub fn unlogged<T, E>(
    control: &mut Connection,
    failed: impl Fn(wire::Error) -> E,
    run: impl FnOnce(&mut Connection) -> Result<T, E>,
) -> Result<T, E> {
    control.execute_repeatable("SET SESSION sql_log_bin=0").map_err(&failed)?;
    let done = run(control);
    control.execute_repeatable("SET SESSION sql_log_bin=1").map_err(failed)?;
    done
}

/// Adds the GTIDs that a killed heddle, or a target that crashed, has left out; then says how this run goes on.
fn complete_gtids(channel: &ChannelContext, control: &mut Connection) -> Result<(), Failure> {
    if channel.info().flavour != Flavour::MySql {
        return Ok(());
    }
    let name = channel.lease.channel();
    let is_kept = grouped_gtids::is_kept(control, name)?;
    if is_kept {
        let added = grouped_gtids::add_missing(control, name)?;
        if !added.is_empty() {
            tracing::info!(
                "added to the target's gtid_purged, as an earlier run has applied them and could not: {added}"
            );
        }
    }
    let is_added = channel.gtids.are_added();
    let statement = match (is_kept, is_added) {
        (false, true) => grouped_gtids::begin(name),
        (true, false) => grouped_gtids::end(name),
        _ => return Ok(()),
    };
    unlogged(control, failed, |control| control.execute_repeatable(statement).map(|_| ()).map_err(failed))
}

fn take_lock(channel: &ChannelContext, control: &mut Connection) -> Result<(), Failure> {
    let name = quote(&lease_lock_name(channel.lease.channel()));
    let take = format!("SELECT GET_LOCK({name}, {LOCK_WAIT_S})");
    if control.scalar(&take).map_err(failed)?.as_deref() == Some("1") {
        return Ok(());
    }
    if channel.connector.has_other_nodes() && is_own(channel, control)? {
        if let Some(left) = lease_holder(control, channel.lease.channel())? {
            kill(control, &left);
        }
        if control.scalar(&take).map_err(failed)?.as_deref() == Some("1") {
            return Ok(());
        }
    }
    Err(in_use(channel, lease_holder(control, channel.lease.channel())?))
}

/// The connection that holds the channel's lock.
fn in_use(channel: &ChannelContext, holder: Option<String>) -> Failure {
    let holder = holder.unwrap_or_else(|| "(unknown)".to_owned());
    let channel = quote(channel.lease.channel());
    Failure::new(
        FailureKind::Fenced,
        format!("channel {channel} is in use: connection {holder} on the target holds its lock"),
    )
    .remedy("only one heddle can feed a channel; stop the other one, or use another --channel")
}

/// For `--dry-run`: what [`take_lock`] would say. Takes nothing.
pub fn check_free(channel: &ChannelContext, control: &mut Connection, report: &mut Checks) {
    let found = match lease_holder(control, channel.lease.channel()) {
        Ok(None) => match OtherNodes::of(channel).holder(channel.lease.channel()) {
            None => return,
            Some((holder, node)) => held_at(channel, holder, &node),
        },
        Ok(holder) => in_use(channel, holder),
        Err(failure) => failure,
    };
    report.problems.push(format!("target: {found}; {}", found.remedy));
}

/// Makes the tables and the channel's row where they are not there, and gives tables of earlier versions what they lack.
fn make_tables(channel: &ChannelContext, control: &mut Connection) -> Result<(), Failure> {
    let name = quote(channel.lease.channel());
    let known = control.scalar(format!("SELECT COUNT(*) FROM {SCHEMA}.progress WHERE channel={name}"));
    if known.ok().flatten().as_deref() != Some("1") {
        log_under_own_gtids(channel, control)?;
        for statement in tables::create() {
            control.execute_repeatable(&statement).map_err(failed)?;
        }
        let row = format!("SELECT {name},0,0,'',0,'',0,'','',0");
        control
            .execute_repeatable(format!(
                "INSERT INTO {SCHEMA}.progress (channel,{FENCE_COLUMN},seq,source_file,source_position,gtids,commit_time_us,\
                 source,owner,started) {row}"
            ))
            .map_err(failed)?;
    }
    if control.scalar(tables::has_workers()).map_err(failed)?.as_deref() == Some("0") {
        log_under_own_gtids(channel, control)?;
        control.execute_repeatable(tables::add_workers()).map_err(failed)?;
    }
    if lacks(control, "kept_branches")? {
        log_under_own_gtids(channel, control)?;
        control.execute_repeatable(tables::create_kept_branches()).map_err(failed)?;
    }
    if channel.gtids.are_added() && lacks(control, KEPT_GTIDS)? {
        control.execute_repeatable(grouped_gtids::create_table()).map_err(failed)?;
    }
    if control.scalar(stops::are_there()).map_err(failed)?.as_deref() == Some("0") {
        log_under_own_gtids(channel, control)?;
        for statement in tables::create_stops() {
            control.execute_repeatable(&statement).map_err(failed)?;
        }
    }
    Ok(())
}

/// The target's own replicas have no part in it.
fn make_table_of_branches(channel: &ChannelContext, control: &mut Connection) -> Result<(), Failure> {
    if !channel.gtids.are_grouped() || !lacks(control, OPEN_BRANCHES)? {
        return Ok(());
    }
    unlogged(control, failed, |control| {
        control.execute_repeatable(open_branches::create_table()).map_err(failed).map(|_| ())
    })
}

fn lacks(control: &mut Connection, table: &str) -> Result<bool, Failure> {
    Ok(control.scalar(tables::is_there(table)).map_err(failed)?.as_deref() == Some("0"))
}

/// The progress is changed in the source's transactions, so the target's own replicas need its tables. They are made under GTIDs of the target's
/// own, whatever the others are. Where MariaDB wants numbers that only grow, these come in a domain of their own.
fn log_under_own_gtids(channel: &ChannelContext, control: &mut Connection) -> Result<(), Failure> {
    match own_domain(channel) {
        Some(statement) => control.execute_repeatable(statement).map_err(failed).map(|_| ()),
        None => Ok(()),
    }
}

/// The statement that does so, where it takes one.
pub fn own_domain(channel: &ChannelContext) -> Option<String> {
    let needs_it = channel.gtids.are_logged() && channel.info().flavour == Flavour::MariaDb;
    needs_it.then(|| format!("SET SESSION gtid_domain_id={OWN_DOMAIN}"))
}

/// In a cluster the lease may meet a commit of its predecessor at another node, and is given up for it: it is raised again.
fn take_lease_in_turn(channel: &ChannelContext, control: &mut Connection) -> Result<(), Failure> {
    let mut tries = 1;
    loop {
        match take_lease(channel, control) {
            Err(failure)
                if failure.kind == FailureKind::Conflict
                    && channel.connector.has_other_nodes()
                    && tries < LEASE_TRIES_MAX =>
            {
                tracing::debug!("the lease is raised again: {failure}");
                std::thread::sleep(back_off(tries));
                tries += 1;
            }
            taken => return taken,
        }
    }
}

/// Fences off what is left of an earlier process: it has the number of an earlier lease.
fn take_lease(channel: &ChannelContext, control: &mut Connection) -> Result<(), Failure> {
    let take = |control: &mut Connection| {
        let name = channel.lease.channel();
        raise_lease(control, name, Some(&own_name()))?;
        let name = quote(name);
        let below_progress = format!(
            "DELETE FROM {SCHEMA}.islands WHERE channel={name} AND last_seq<=(SELECT seq FROM {SCHEMA}.progress WHERE channel={name})"
        );
        control.execute_repeatable(below_progress).map(|_| ()).map_err(failed)
    };
    if channel.gtids.are_logged() { unlogged(control, failed, take) } else { take(control) }
}

/// Finds out what an earlier run has left beside its progress, and ends what can be ended.
fn finish_earlier_run(
    shared: &TargetState,
    control: &mut Connection,
    found: &mut StoredChannel,
) -> Result<(), Failure> {
    let channel = &*shared.channel;
    let preserves_gtids = channel.gtids.are_preserved();
    if preserves_gtids && channel.info().gtid_mode {
        found.opened.executed = executed_gtids::of_others(control)?;
        owned_gtids::refuse_orphans(control)?;
    }
    let name = channel.lease.channel();
    let of_no_use = if_there(control.scalar(open_branches::count_of_no_use(name)))?.flatten();
    if of_no_use.is_some_and(|count| count != "0") {
        let remove = open_branches::remove_of_no_use(name);
        unlogged(control, failed, |control| control.execute_repeatable(remove).map(|_| ()).map_err(failed))?;
    }
    if let Some(connection) = deferred_branches::prepare_all(&shared.channel, &shared.branches, control)? {
        shared.statements.set(connection);
    }
    match prepare::prepared(control) {
        Err(lost) if lost.kind == FailureKind::ConnectionLost => return Err(lost),
        // Without the privilege no branch of a log is applied either.
        Err(_) => {}
        Ok(prepared) => {
            found.opened.prepared = prepared;
            // One for one, a branch is prepared under its GTID.
            let may_be_open = !preserves_gtids || channel.gtids.are_grouped();
            found.opened.keeps_branches = may_be_open && prepare::keeps_prepared(channel.info());
        }
    }
    if let Some(intent) = found.intents.partly() {
        return Err(nontransactional::left_by_an_earlier_run(intent.seq, found.opened.mark.as_ref()));
    }
    shared.unfinished.set_intents(std::mem::take(&mut found.intents));
    Ok(())
}
