//! Which replicas are sent groups, and what is known of those that they were sent before.

use std::path::PathBuf;
use std::sync::Arc;

use relay::fs::RealFs;

use crate::dump::{By, DumpError, Grouped, MariaDbStart, Request, Waiting, fatal};
use crate::group::{Limits, Told, of_another};
use crate::inventory::SourceFacts;

/// How a server sends groups.
#[derive(Debug, Clone)]
pub struct Groups {
    /// The mirror's folder.
    pub dir: PathBuf,
    /// None: it sends none.
    pub limits: Option<Limits>,
}

/// Who attaches.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) uuid: Option<String>,
    pub(super) server_id: u32,
    pub(super) wants: Wants,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    Any,
    /// It is a mirror, or acknowledges each transaction.
    Plain,
}

impl Groups {
    /// How this replica is sent groups. What a MySQL replica has by them, and does not say, is added to what it asks for: also where no groups are sent any more.
    pub(super) fn of(
        &self,
        replica: &Replica,
        request: &mut Request,
        source: &SourceFacts,
    ) -> Result<Option<Grouped>, DumpError> {
        let takes = replica.wants == Wants::Any && request.waiting == Waiting::ForMore && request.of_source.is_none();
        let limits = self.limits.filter(|_| takes);
        match &mut request.by {
            By::MySqlGtids(said) => {
                let Some(uuid) = replica.uuid.as_deref().filter(|uuid| is_uuid(uuid)) else { return Ok(None) };
                let mut told = Told::open(Arc::new(RealFs), &self.dir, uuid).map_err(unreadable)?;
                if told.is_empty()
                    && let Some(other) = of_another(&RealFs, &self.dir, uuid, said).map_err(unreadable)?
                {
                    return Err(fatal(copied(&other)));
                }
                let unsaid = told.unsaid(said).map_err(unreadable)?;
                said.add_set(&unsaid);
                let limits = limits.filter(|_| source.at_least(8, 0, 0));
                let is_needed = limits.is_some() || !unsaid.is_empty();
                Ok(is_needed.then(|| Grouped::of_mysql(limits, told, unsaid)))
            }
            By::MariaDb(MariaDbStart { until: None, ignores_duplicates: false, .. }) if replica.server_id != 0 => {
                let told =
                    Told::open(Arc::new(RealFs), &self.dir, &replica.server_id.to_string()).map_err(unreadable)?;
                let is_needed = limits.is_some() || !told.is_empty();
                Ok(is_needed.then(|| Grouped::of_mariadb(limits, told)))
            }
            By::MariaDb(_) | By::Position(_) => Ok(None),
        }
    }
}

/// Nothing else becomes the name of a file.
fn is_uuid(text: &str) -> bool {
    text.len() == 36 && binlog::gtids::mysql::parse_uuid(text).is_some()
}

fn unreadable(error: crate::mirror::files::FolderError) -> DumpError {
    fatal(format!("what this replica was sent in groups is not known: {error}"))
}

fn copied(other: &str) -> String {
    format!(
        "This replica is a copy of the replica {other}, which was sent groups of transactions, and lacks GTIDs of groups that it has. Copy it again when the other one has caught up, or \
         add what its gtid_executed lacks up to there to its gtid_purged"
    )
}
