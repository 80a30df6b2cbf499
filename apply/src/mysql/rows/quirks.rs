//! What has to be known of some tables to write their rows. The catalogue finds it out when it reads their definitions.

use std::sync::Arc;

use binlog::TableMap;

use super::ambiguous_rows::Lookup;
use super::blackholes::Blackhole;
use super::by_name::{ByName, Name};
use super::hidden_keys::HiddenKey;
use super::row_end::{self, RowEnd};
use super::sequences::Sequence;
use crate::mysql::server::info::TargetInfo;

/// Most of it is MariaDB's.
#[derive(Debug)]
pub struct TableQuirks {
    /// Tables whose rows the server could take for others.
    pub lookups: ByName<Lookup>,
    pub sequences: ByName<Sequence>,
    /// MySQL's.
    pub blackholes: ByName<Blackhole>,
    /// MySQL's.
    pub hidden_keys: ByName<HiddenKey>,
    /// `None`: the target's rows end no later than any source's.
    row_ends: Option<ByName<RowEnd>>,
}

impl TableQuirks {
    pub fn new(info: &TargetInfo) -> Self {
        let row_ends = row_end::is_later(info).then(ByName::default);
        Self {
            lookups: ByName::default(),
            sequences: ByName::default(),
            blackholes: ByName::default(),
            hidden_keys: ByName::default(),
            row_ends,
        }
    }

    pub fn set_row_end(&self, name: &Name, row_end: Option<RowEnd>) {
        if let Some(row_ends) = &self.row_ends {
            row_ends.set(name, row_end);
        }
    }

    /// Where rows of the table have an end that may be earlier than the target's.
    pub fn row_end(&self, map: &TableMap) -> Option<Arc<RowEnd>> {
        self.row_ends.as_ref()?.get(map)
    }

    pub fn forget(&self, is_one: impl Fn(&Name) -> bool) {
        self.lookups.forget(&is_one);
        self.sequences.forget(&is_one);
        self.blackholes.forget(&is_one);
        self.hidden_keys.forget(&is_one);
        if let Some(row_ends) = &self.row_ends {
            row_ends.forget(&is_one);
        }
    }
}
