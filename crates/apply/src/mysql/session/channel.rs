//! What all connections of one channel have in common.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use wire::Connection;

use super::bookkeeping_guard::BookkeepingGuard;
use super::connect::Connector;
use super::lease::Lease;
use crate::lock::locked;
use crate::mysql::progress::progress_rows::ProgressTable;
use crate::mysql::rows::RowsAs;
use crate::mysql::rows::quirks::TableQuirks;
use crate::mysql::server::gtids::{GtidRules, Gtids};
use crate::mysql::server::info::TargetInfo;
use crate::retry::RECONNECT_FOR;

/// What becomes of a table that a `CREATE` of the source's finds, or a `DROP` does not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ddl {
    /// The channel stops.
    Strict,
    /// It is replaced, or need not be there: MariaDB's `slave_ddl_exec_mode=IDEMPOTENT`.
    Idempotent,
}

/// What becomes of the source's statements about users, roles and privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountStatements {
    /// They are executed, but for what they do to heddle's own account.
    Apply,
    Skip,
}

pub struct ChannelContext {
    pub connector: Connector,
    pub gtids: GtidRules,
    pub lease: Lease,
    pub quirks: Arc<TableQuirks>,
    /// How its progress is recorded as a row, once the channel is open; `None`: only by statements.
    progress_table: Mutex<Option<Arc<ProgressTable>>>,
    /// Once the channel is open: only then are statements of the source executed.
    bookkeeping_guard: OnceLock<BookkeepingGuard>,
    /// Connection ids by number; 0 where there is none.
    ids: Mutex<Vec<u64>>,
    is_ddl_idempotent: AtomicBool,
    skips_account_statements: AtomicBool,
    skips_unknown_branches: AtomicBool,
    has_left_out_account_statement: AtomicBool,
    reconnect_for: OnceLock<Duration>,
    /// See [`ChannelContext::run_unlogged`].
    pub(super) unlogged: Mutex<Option<Connection>>,
}

impl ChannelContext {
    pub fn new(connector: Connector, channel: &str, gtids: Gtids, rows_as: RowsAs) -> Self {
        let info = connector.info();
        Self {
            gtids: GtidRules::new(gtids, info),
            lease: Lease::new(channel),
            quirks: Arc::new(TableQuirks::new(info, rows_as)),
            progress_table: Mutex::default(),
            bookkeeping_guard: OnceLock::new(),
            ids: Mutex::default(),
            is_ddl_idempotent: AtomicBool::new(false),
            skips_account_statements: AtomicBool::new(false),
            skips_unknown_branches: AtomicBool::new(false),
            has_left_out_account_statement: AtomicBool::new(false),
            reconnect_for: OnceLock::new(),
            unlogged: Mutex::default(),
            connector,
        }
    }

    pub fn info(&self) -> &TargetInfo {
        self.connector.info()
    }

    pub fn ddl(&self) -> Ddl {
        if self.is_ddl_idempotent.load(Ordering::Relaxed) { Ddl::Idempotent } else { Ddl::Strict }
    }

    pub fn set_ddl(&self, ddl: Ddl) {
        self.is_ddl_idempotent.store(ddl == Ddl::Idempotent, Ordering::Relaxed);
    }

    pub fn account_statements(&self) -> AccountStatements {
        if self.skips_account_statements.load(Ordering::Relaxed) {
            AccountStatements::Skip
        } else {
            AccountStatements::Apply
        }
    }

    pub fn set_account_statements(&self, what: AccountStatements) {
        self.skips_account_statements.store(what == AccountStatements::Skip, Ordering::Relaxed);
    }

    /// Whether the end of an XA branch that the target does not know is passed over: its rows are there.
    pub fn skips_unknown_branches(&self) -> bool {
        self.skips_unknown_branches.load(Ordering::Relaxed)
    }

    /// See [`ChannelContext::skips_unknown_branches`].
    pub fn skip_unknown_branches(&self) {
        self.skips_unknown_branches.store(true, Ordering::Relaxed);
    }

    /// True once: only the first is said.
    pub fn is_first_account_statement_left_out(&self) -> bool {
        !self.has_left_out_account_statement.swap(true, Ordering::Relaxed)
    }

    /// For how long to try to reach a target that is gone.
    pub fn reconnect_for(&self) -> Duration {
        if self.connector.has_other_nodes() {
            // Once, for a connection that was ended. A node that is gone is left for another one.
            return Duration::ZERO;
        }
        self.reconnect_for.get().copied().unwrap_or(RECONNECT_FOR)
    }

    /// Before anything is applied; only the first time counts.
    pub fn set_reconnect_for(&self, time: Duration) {
        let _ = self.reconnect_for.set(time);
    }

    pub fn progress_table(&self) -> Option<Arc<ProgressTable>> {
        locked(&self.progress_table).clone()
    }

    pub fn set_progress_table(&self, table: Option<ProgressTable>) {
        *locked(&self.progress_table) = table.map(Arc::new);
    }

    pub fn bookkeeping_guard(&self) -> Option<&BookkeepingGuard> {
        self.bookkeeping_guard.get()
    }

    /// Only the first time counts.
    pub fn set_bookkeeping_guard(&self, guard: BookkeepingGuard) {
        let _ = self.bookkeeping_guard.set(guard);
    }

    /// Connection ids by number; 0 where there is none.
    pub fn connection_ids(&self) -> Vec<u64> {
        locked(&self.ids).clone()
    }

    pub(super) fn register(&self, number: usize, id: u64) {
        let mut ids = locked(&self.ids);
        if ids.len() <= number {
            ids.resize(number + 1, 0);
        }
        if let Some(slot) = ids.get_mut(number) {
            *slot = id;
        }
    }
}
