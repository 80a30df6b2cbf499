//! What all connections of one channel have in common.

use std::sync::{Arc, Mutex};

use super::connect::Connector;
use super::gtids::{GtidRules, Gtids};
use super::lease::Lease;
use crate::lock::locked;
use crate::mysql::progress::as_row::ProgressTable;
use crate::mysql::rows::quirks::TableQuirks;
use crate::mysql::server::info::TargetInfo;

pub struct ChannelContext {
    pub connector: Connector,
    pub gtids: GtidRules,
    pub lease: Lease,
    pub quirks: Arc<TableQuirks>,
    /// How its progress is recorded as a row, once the channel is open; `None`: only by statements.
    progress_table: Mutex<Option<Arc<ProgressTable>>>,
    /// Connection ids by number; 0 where there is none.
    ids: Mutex<Vec<u64>>,
}

impl ChannelContext {
    pub fn new(connector: Connector, channel: &str, gtids: Gtids) -> Self {
        let info = connector.info();
        Self {
            gtids: GtidRules::new(gtids, info),
            lease: Lease::new(channel),
            quirks: Arc::new(TableQuirks::new(info)),
            progress_table: Mutex::default(),
            ids: Mutex::default(),
            connector,
        }
    }

    pub fn info(&self) -> &TargetInfo {
        self.connector.info()
    }

    pub fn progress_table(&self) -> Option<Arc<ProgressTable>> {
        locked(&self.progress_table).clone()
    }

    pub fn set_progress_table(&self, table: Option<ProgressTable>) {
        *locked(&self.progress_table) = table.map(Arc::new);
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
