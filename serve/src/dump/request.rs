//! What a replica asks for: its command, and the session variables that it has set before.

use std::time::Duration;

use binlog::gtids::GtidSet;
use binlog::{Checksum, LogPosition};
use wire::server::DumpFrom;

use super::context::{DumpError, fatal};
use crate::inventory::{DomainGtid, SourceFacts, VersionFamily};

const NON_BLOCK: u16 = 1;
/// MySQL's second flag and MariaDB's are the same bit.
const HEARTBEAT_V2: u16 = 2;
const ANNOTATE: u16 = 2;
const SKIP_TAGGED: u16 = 4;

/// What is done at the end of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    ForMore,
    End,
}

/// Events that carry the mark of `skip_replication`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marked {
    Sent,
    LeftOut,
}

/// How the place is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// An empty name is the oldest file.
    Position(LogPosition),
    /// What the replica has.
    MySqlGtids(GtidSet),
    MariaDb(MariaDbStart),
}

/// MariaDB's way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MariaDbStart {
    /// The last GTID of each domain.
    pub from: Vec<DomainGtid>,
    pub until: Option<Vec<DomainGtid>>,
    pub is_strict: bool,
    pub ignores_duplicates: bool,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub by: By,
    pub waiting: Waiting,
    /// None: no heartbeats.
    pub heartbeat: Option<Duration>,
    /// What the replica can take; none: it knows nothing of checksums.
    pub checksum: Option<Checksum>,
    pub vendor: Vendor,
    pub marked: Marked,
    /// Another heddle says whose positions it asks for; servers do not.
    pub of_source: Option<String>,
}

/// The user variable in which a heddle says it.
pub const OF_SOURCE: &str = "heddle_source";

/// What only one vendor's replicas say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    MySql {
        heartbeat_v2: bool,
        skips_tagged: bool,
    },
    /// `capability`: which events it knows ([`super::old_replica`]).
    MariaDb {
        annotate: bool,
        capability: u32,
    },
}

impl Request {
    /// `variable` gives a session's user variable.
    pub fn new(
        from: &DumpFrom,
        source: &SourceFacts,
        marked: Marked,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, DumpError> {
        let either = |name: &str| variable(&format!("source_{name}")).or_else(|| variable(&format!("master_{name}")));
        let has = |flag: u16| from.flags & flag != 0;
        let checksum = either("binlog_checksum").map(|value| match value.to_ascii_uppercase().as_str() {
            "CRC32" | "1" => Checksum::Crc32,
            _ => Checksum::Off,
        });
        let heartbeat = either("heartbeat_period").and_then(|value| value.parse::<u64>().ok());
        let family = source.family();
        let ends = has(NON_BLOCK) || from.server_id == 0;
        Ok(Self {
            by: by(from, family, variable)?,
            waiting: if ends { Waiting::End } else { Waiting::ForMore },
            heartbeat: heartbeat.filter(|nanoseconds| *nanoseconds > 0).map(Duration::from_nanos),
            checksum,
            vendor: if family == VersionFamily::MariaDb {
                let capability = variable("mariadb_slave_capability").and_then(|value| value.parse::<u32>().ok());
                Vendor::MariaDb { annotate: has(ANNOTATE), capability: capability.unwrap_or(0) }
            } else {
                // Before that the bits meant other things.
                let heartbeat_v2 = has(HEARTBEAT_V2) && source.at_least(8, 0, 26);
                Vendor::MySql { heartbeat_v2, skips_tagged: has(SKIP_TAGGED) && source.at_least(8, 3, 0) }
            },
            marked,
            of_source: variable(OF_SOURCE),
        })
    }
}

fn by(from: &DumpFrom, family: VersionFamily, variable: &dyn Fn(&str) -> Option<String>) -> Result<By, DumpError> {
    if let Some(set) = &from.gtid_set
        && from.file.is_empty()
        && family == VersionFamily::MySql
    {
        let set = GtidSet::from_binary(set).map_err(|error| fatal(format!("the GTID set of the replica: {error}")))?;
        return Ok(By::MySqlGtids(set));
    }
    let list = |name: &str, text: &str| {
        DomainGtid::parse_list(text).ok_or_else(|| {
            fatal(format!("Out of memory or malformed slave request when obtaining {name} from GTID state"))
        })
    };
    if family == VersionFamily::MariaDb
        && let Some(state) = variable("slave_connect_state")
    {
        let is_set = |name: &str| variable(name).is_some_and(|value| value != "0");
        return Ok(By::MariaDb(MariaDbStart {
            from: list("start position", &state)?,
            until: variable("slave_until_gtid").map(|text| list("UNTIL position", &text)).transpose()?,
            is_strict: is_set("slave_gtid_strict_mode"),
            ignores_duplicates: is_set("slave_gtid_ignore_duplicates"),
        }));
    }
    let file = String::from_utf8_lossy(&from.file);
    // A client may give a path, as servers allow.
    let name = file.rsplit('/').next().unwrap_or_default();
    Ok(By::Position(LogPosition::new(name, from.position)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(flags: u16) -> DumpFrom {
        DumpFrom { server_id: 7, flags, file: b"./b.000002".to_vec(), position: 99, gtid_set: None }
    }

    fn source(greeting: &str, version: (u16, u16, u16)) -> SourceFacts {
        SourceFacts {
            greeting: greeting.to_owned(),
            charset: 45,
            version,
            variables: std::collections::BTreeMap::default(),
        }
    }

    #[test]
    fn what_replicas_say() {
        let none = |_: &str| None;
        let request = Request::new(&from(6), &source("9.7.0", (9, 7, 0)), Marked::Sent, &none).unwrap();
        assert_eq!(request.by, By::Position(LogPosition::new("b.000002", 99)));
        assert_eq!(request.vendor, Vendor::MySql { heartbeat_v2: true, skips_tagged: true });
        assert_eq!((request.waiting, request.checksum, request.heartbeat), (Waiting::ForMore, None, None));
        let old = Request::new(&from(6), &source("5.7.22", (5, 7, 22)), Marked::Sent, &none).unwrap();
        assert_eq!(old.vendor, Vendor::MySql { heartbeat_v2: false, skips_tagged: false });
        let mariadb = |name: &str| {
            let value = match name {
                "master_binlog_checksum" => "CRC32",
                "master_heartbeat_period" => "2000000000",
                "mariadb_slave_capability" => "4",
                "slave_connect_state" => "0-1-5,1-2-3",
                "slave_gtid_strict_mode" => "1",
                "slave_gtid_ignore_duplicates" => "0",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let request = Request::new(&from(3), &source("10.11.6-MariaDB", (10, 11, 6)), Marked::Sent, &mariadb).unwrap();
        assert_eq!(request.vendor, Vendor::MariaDb { annotate: true, capability: 4 });
        assert_eq!((request.checksum, request.waiting), (Some(Checksum::Crc32), Waiting::End));
        assert_eq!(request.heartbeat, Some(Duration::from_secs(2)));
        let By::MariaDb(start) = request.by else { panic!() };
        assert_eq!(start.from.len(), 2);
        assert!(start.is_strict && !start.ignores_duplicates && start.until.is_none());
        let broken = |name: &str| (name == "slave_connect_state").then(|| "0-1".to_owned());
        assert!(Request::new(&from(0), &source("10.11.6-MariaDB", (10, 11, 6)), Marked::Sent, &broken).is_err());
        let gtids = DumpFrom { file: Vec::new(), gtid_set: Some(vec![1, 2, 3]), ..from(0) };
        assert!(Request::new(&gtids, &source("9.7.0", (9, 7, 0)), Marked::Sent, &none).is_err());
    }
}
