//! The target of `heddle replicate`: how it is to be written, and how it is opened.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use apply::Target;
use apply::mysql::{self, MySqlTarget};
use apply::retry::until_reached;
use apply::store::StoreTarget;
use binlog::gtids::GtidState;
use clap::Args;
use engine::policy::CommitOrder;
use engine::schedule::Grouping;
use engine::schema::Leftovers;
use wire::{ConnectOptions, Nodes};

use super::values::{AccountMode, DdlMode, Gtids, parse_grouping};
use crate::cli::feed::{FeedArgs, Workers, workers_that_group};
use crate::cli::headings::EXPERT;
use crate::cli::rows::RowArgs;

#[derive(Debug, Args)]
pub struct TargetArgs {
    /// Consecutive transactions in one target transaction: auto (as many as wait), off, or at most N
    ///
    /// auto takes up to 10,000 transactions, 40,000 rows or 8 MiB.
    #[arg(long, value_name = "N", help_heading = EXPERT, default_value = "auto", value_parser = parse_grouping)]
    pub grouping: Grouping,
    /// local: the target's own GTIDs · preserve: the source's
    ///
    /// preserve: a group commits under the GTID of its last transaction. MySQL 8.0 and later: the others are added to gtid_purged; MariaDB: a
    /// group has one domain and server. One target transaction for each source transaction, which is slow: into MySQL 5.6 and 5.7, with
    /// --replicas-below, --grouping off or another --commit-order, and when a MySQL target has replicas at the start. Those replicas get the
    /// schema heddle, under a few GTIDs of the target's own (relaxed order: one more for each checkpoint and DDL). Not between MySQL and
    /// MariaDB.
    #[arg(long, value_name = "KIND", help_heading = EXPERT, value_enum, default_value = "local")]
    pub gtids: Gtids,
    /// With --gtids preserve: the target has, or will have, replicas that need every GTID: one target transaction for each
    #[arg(long, help_heading = EXPERT)]
    pub replicas_below: bool,
    /// strict: a CREATE that finds its object, or a DROP that does not, stops the channel · idempotent: the object is replaced, the DROP
    /// ignored (MariaDB) · skip: no definition is applied
    ///
    /// A table that a CREATE finds may have other rows. MariaDB's replicas are idempotent (slave_ddl_exec_mode=IDEMPOTENT).
    /// skip leaves account statements to --account-statements.
    #[arg(long, value_name = "KIND", help_heading = EXPERT, value_enum, default_value = "strict")]
    pub ddl: DdlMode,
    /// Statements about users, roles and privileges: apply (never to heddle's own account; an existing account stays as it is) · skip: leave them out
    #[arg(long, value_name = "KIND", help_heading = EXPERT, value_enum, default_value = "apply")]
    pub account_statements: AccountMode,
    #[command(flatten)]
    pub rows: RowArgs,
}

/// Which target is opened, and what for.
pub struct Request<'a> {
    pub to: &'a str,
    /// Its nodes; `None`: it is no server.
    pub nodes: Option<&'a Nodes>,
    pub channel: &'a str,
    pub order: CommitOrder,
    pub feed: &'a FeedArgs,
    pub purpose: Purpose,
    /// Whether it keeps rows that the source has deleted.
    pub leftovers: Leftovers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Run,
    /// `--dry-run`
    Check,
}

/// The target, and how many transactions may share one of its own.
pub struct OpenTarget {
    pub target: Arc<dyn Target>,
    /// The GTIDs that it has executed.
    pub on_target: GtidState,
    pub address: String,
    pub grouping: Grouping,
    /// How to connect to it; `None`: it is no server.
    pub options: Option<ConnectOptions>,
}

/// With `--gtids preserve`: why each source transaction gets a target transaction of its own, whatever the target is.
fn asked_one_by_one(args: &TargetArgs, order: CommitOrder) -> Option<&'static str> {
    if args.replicas_below {
        Some("--replicas-below")
    } else if args.grouping == Grouping::Off {
        Some("--grouping off")
    } else if order != CommitOrder::Preserve {
        Some("--commit-order is not preserve")
    } else {
        None
    }
}

pub fn open(request: &Request<'_>, args: &TargetArgs) -> Result<OpenTarget> {
    let Some(nodes) = request.nodes else {
        let path = request.to.strip_prefix("store:").unwrap_or(request.to);
        if args.gtids == Gtids::Preserve {
            bail!("--gtids preserve: the store keeps the source's GTIDs as a set, there is nothing to preserve");
        }
        let grouping = args.grouping;
        let workers = workers(request.feed.workers, request.order, grouping);
        let target = StoreTarget::open_path(Path::new(path), request.channel, workers).map_err(anyhow::Error::new)?;
        return Ok(OpenTarget {
            target: Arc::new(target),
            on_target: GtidState::None,
            address: request.to.to_owned(),
            grouping,
            options: None,
        });
    };
    let address = nodes.address();
    let asked = asked_one_by_one(args, request.order);
    let gtids = match args.gtids {
        Gtids::Preserve if asked.is_none() => mysql::Gtids::PreserveGrouped,
        Gtids::Preserve => mysql::Gtids::Preserve,
        Gtids::Local => mysql::Gtids::Local,
    };
    // Whoever only wants to know is told at once.
    let limit = if request.purpose == Purpose::Check { Duration::ZERO } else { request.feed.connect_retry() };
    let rows = args.rows.rows.choice(args.rows.compare_before);
    let target = until_reached(limit, || MySqlTarget::connect_for_rows(nodes.clone(), request.channel, gtids, rows))
        .map_err(anyhow::Error::new)
        .with_context(|| format!("target {address}"))?;
    if let Some(why) = target.why_sql().filter(|_| request.purpose == Purpose::Run) {
        tracing::info!("rows are written as INSERT, UPDATE, DELETE (--rows sql), since {why}");
    }
    target.set_reconnect_for(request.feed.connect_retry());
    target.set_hidden_triggers(args.rows.hidden_triggers());
    let ddl = match args.ddl {
        DdlMode::Strict | DdlMode::Skip => mysql::Ddl::Strict,
        DdlMode::Idempotent => mysql::Ddl::Idempotent,
    };
    target.set_ddl(ddl).map_err(anyhow::Error::new)?;
    target.set_account_statements(account_statements(args));
    if request.leftovers == Leftovers::Kept {
        target.keep_leftovers();
    }
    let on_target = target.executed_gtids().map_err(anyhow::Error::new)?;
    let grouping = match (args.gtids, asked, target.why_one_by_one()) {
        (Gtids::Preserve, Some(why), _) => {
            tracing::info!("--gtids preserve: one target transaction for each of the source's ({why})");
            Grouping::Off
        }
        (Gtids::Preserve, None, Some(why)) => {
            tracing::warn!(
                "--gtids preserve: one target transaction for each of the source's, which is slow, because {why}"
            );
            Grouping::Off
        }
        _ => args.grouping,
    };
    Ok(OpenTarget { target: Arc::new(target), on_target, address, grouping, options: Some(nodes.current().clone()) })
}

pub fn account_statements(args: &TargetArgs) -> mysql::AccountStatements {
    match args.account_statements {
        AccountMode::Apply => mysql::AccountStatements::Apply,
        AccountMode::Skip => mysql::AccountStatements::Skip,
    }
}

/// Groups overlap on few connections; single transactions need many to share the target's fsyncs, where their commits may overlap.
pub fn workers(asked: Workers, order: CommitOrder, grouping: Grouping) -> usize {
    match (asked, grouping) {
        (Workers::Number(number), _) => number,
        (Workers::Auto, Grouping::Off) if order == CommitOrder::Relaxed => 32,
        (Workers::Auto, Grouping::Off) => 16,
        (Workers::Auto, Grouping::Auto | Grouping::UpTo(_)) => workers_that_group(),
    }
}
