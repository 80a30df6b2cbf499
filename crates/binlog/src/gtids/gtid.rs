//! One transaction's identifier, of either server.

use std::fmt;
use std::sync::Arc;

/// A source's identifier, as the sixteen bytes that events hold.
pub type Uuid = [u8; 16];

/// Why a text or a binary form is not a GTID, a set or a position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid GTID at byte {offset}: {reason}")]
pub struct GtidError {
    /// Bytes from the start of the input.
    pub offset: usize,
    pub reason: &'static str,
}

impl GtidError {
    pub(crate) fn new(offset: usize, reason: &'static str) -> Self {
        Self { offset, reason }
    }
}

/// One transaction's identifier.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Gtid {
    /// `uuid:gno` or, since MySQL 8.3, `uuid:tag:gno`.
    MySql { uuid: Uuid, tag: Option<Arc<str>>, gno: u64 },
    /// `domain-server-sequence`.
    MariaDb { domain: u32, server: u32, seq: u64 },
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MySql { uuid, tag, gno } => {
                write_uuid(f, uuid)?;
                if let Some(tag) = tag {
                    write!(f, ":{tag}")?;
                }
                write!(f, ":{gno}")
            }
            Self::MariaDb { domain, server, seq } => write!(f, "{domain}-{server}-{seq}"),
        }
    }
}

impl Gtid {
    /// As an event names it; `None`: the transaction is anonymous.
    pub fn of_mysql(event: &crate::MySqlGtid) -> Option<Self> {
        let tag = (!event.tag.is_empty()).then(|| event.tag.as_str().into());
        (!event.anonymous).then_some(Self::MySql { uuid: event.uuid, tag, gno: event.gno })
    }

    /// As an event names it.
    pub fn of_mariadb(event: &crate::MariaDbGtid) -> Self {
        Self::MariaDb { domain: event.domain_id, server: event.server_id, seq: event.seq_no }
    }
}

/// In the form that MySQL prints.
pub(super) fn write_uuid(f: &mut fmt::Formatter<'_>, uuid: &Uuid) -> fmt::Result {
    for (n, byte) in uuid.iter().enumerate() {
        if matches!(n, 4 | 6 | 8 | 10) {
            f.write_str("-")?;
        }
        write!(f, "{byte:02x}")?;
    }
    Ok(())
}
