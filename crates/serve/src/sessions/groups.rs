//! Which replicas are sent groups, and the log of the groups that each was sent before.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use relay::fs::RealFs;

use crate::dump::{DumpError, DumpStart, GroupSender, MariaDbStart, Request, WaitMode, fatal};
use crate::group::{Domains, GroupLog, Limits, of_another};
use crate::inventory::{Inventory, SourceFacts};

/// Which replicas a server sends groups.
#[derive(Debug, Clone)]
pub struct Groups {
    /// The mirror's folder.
    pub dir: PathBuf,
    /// The size of groups. `None`: no groups are sent.
    pub limits: Option<Limits>,
    /// Set by who watches the only replica: it has much to apply, whatever it was sent.
    pub applier_is_behind: Arc<AtomicBool>,
}

/// A replica that attaches.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) uuid: Option<String>,
    pub(super) server_id: u32,
    pub(super) wants: StreamForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamForm {
    Any,
    /// It is a mirror, or acknowledges each transaction.
    Plain,
}

impl Groups {
    /// How this replica is sent groups. A MySQL replica does not report all GTIDs of the groups that it has: they are added to its request, even if no groups are sent any more.
    pub(super) fn of(
        &self,
        replica: &Replica,
        request: &mut Request,
        source: &SourceFacts,
        inventory: &Inventory,
    ) -> Result<Option<GroupSender>, DumpError> {
        let takes =
            replica.wants == StreamForm::Any && request.waiting == WaitMode::ForMore && request.of_source.is_none();
        let limits = self.limits.filter(|_| takes);
        match &mut request.start {
            DumpStart::MySqlGtids(said) => {
                let Some(uuid) = replica.uuid.as_deref().filter(|uuid| is_uuid(uuid)) else { return Ok(None) };
                let mut log = GroupLog::open(Arc::new(RealFs), &self.dir, uuid).map_err(unreadable)?;
                if log.is_empty()
                    && let Some(other) = of_another(&RealFs, &self.dir, uuid, said).map_err(unreadable)?
                {
                    return Err(fatal(copied(&other)));
                }
                let unsaid = log.unsaid(said).map_err(unreadable)?;
                said.add_set(&unsaid);
                let limits = limits.filter(|_| source.at_least(8, 0, 0));
                let is_needed = limits.is_some() || !unsaid.is_empty();
                Ok(is_needed.then(|| GroupSender::of_mysql(limits, log, unsaid).watched(&self.applier_is_behind)))
            }
            DumpStart::MariaDb(MariaDbStart { until: None, ignores_duplicates: false, .. })
                if replica.server_id != 0 =>
            {
                let log =
                    GroupLog::open(Arc::new(RealFs), &self.dir, &replica.server_id.to_string()).map_err(unreadable)?;
                let is_needed = limits.is_some() || !log.is_empty();
                let domains = domains(inventory);
                let grouped = || GroupSender::of_mariadb(limits, log, domains).watched(&self.applier_is_behind);
                Ok(is_needed.then(grouped))
            }
            DumpStart::MariaDb(_) | DumpStart::Position(_) => Ok(None),
        }
    }
}

/// A log that cannot be read yet may have several.
fn domains(inventory: &Inventory) -> Domains {
    match inventory.gtids_at_end().map(|(_, gtids)| gtids.into_mariadb().domains()) {
        Ok(0 | 1) => Domains::One,
        Ok(_) | Err(_) => Domains::Several,
    }
}

/// Nothing else becomes the name of a file.
fn is_uuid(text: &str) -> bool {
    text.len() == 36 && binlog::gtids::mysql::parse_uuid(text).is_some()
}

fn unreadable(error: crate::mirror::disk::files::FolderError) -> DumpError {
    fatal(format!("the log of this replica's groups cannot be read: {error}"))
}

fn copied(other: &str) -> String {
    format!(
        "This replica is a copy of the replica {other}, which was sent groups of transactions, and lacks GTIDs of groups that it has. Copy it again when the other one has caught up, or \
         add what its gtid_executed lacks up to there to its gtid_purged"
    )
}
