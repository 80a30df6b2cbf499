//! What a replica requests: the command, and the session variables that it set before.

use std::collections::BTreeMap;
use std::time::Duration;

use binlog::gtids::GtidSet;
use binlog::{Checksum, LogPosition};
use wire::server::{DumpPlace, ServerError};

use super::context::{DumpError, NO_SUCH_FILE, fatal};
use crate::inventory::{DomainGtid, SourceFacts, VersionFamily};
use crate::mirror::POSITIONS_OF;

const NON_BLOCK: u16 = 1;
/// MySQL's second flag and MariaDB's are the same bit.
const HEARTBEAT_V2: u16 = 2;
const ANNOTATE: u16 = 2;
const SKIP_TAGGED: u16 = 4;

/// What happens at the end of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    ForMore,
    End,
}

/// What is done with events that are marked by `skip_replication`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkedEvents {
    Sent,
    LeftOut,
}

/// Where a dump begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DumpStart {
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
    pub start: DumpStart,
    pub waiting: WaitMode,
    /// The heartbeat period. `None`: no heartbeats.
    pub heartbeat: Option<Duration>,
    /// The checksum that the replica accepts. `None`: it knows no checksums.
    pub checksum: Option<Checksum>,
    pub vendor: Vendor,
    pub marked: MarkedEvents,
    /// MySQL, by file and position: transactions that the client has.
    pub leaves_out: Option<GtidSet>,
    /// Another heddle names the server whose positions it uses; servers do not.
    pub of_source: Option<String>,
}

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
        from: &DumpPlace,
        source: &SourceFacts,
        marked: MarkedEvents,
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
        let (start, leaves_out) = dump_start(from, source, variable)?;
        Ok(Self {
            start,
            leaves_out,
            waiting: if ends { WaitMode::End } else { WaitMode::ForMore },
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
            of_source: variable(POSITIONS_OF),
        })
    }
}

/// Where it begins, and what is left out from there.
fn dump_start(
    from: &DumpPlace,
    source: &SourceFacts,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(DumpStart, Option<GtidSet>), DumpError> {
    let is_mariadb = source.is_mariadb();
    let mut leaves_out = None;
    if let Some(set) = from.gtid_set.as_ref().filter(|_| !is_mariadb) {
        let malformed = |_| refused(1773, "Malformed GTID set encoding.");
        let set = GtidSet::from_binary(set).map_err(malformed)?;
        if from.file.is_empty() {
            if from.position < binlog::FIRST_OFFSET {
                let asked = if source.says_replica() { "source" } else { "master" };
                return Err(fatal(before_first(asked)));
            }
            return Ok((DumpStart::MySqlGtids(set), None));
        }
        leaves_out = Some(set);
    }
    if is_mariadb && let Some(state) = variable("slave_connect_state") {
        let is_set = |name: &str| variable(name).is_some_and(|value| value != "0");
        let start = DumpStart::MariaDb(MariaDbStart {
            from: domain_gtids(&state)?,
            until: variable("slave_until_gtid").map(|text| domain_gtids(&text)).transpose()?,
            is_strict: is_set("slave_gtid_strict_mode"),
            ignores_duplicates: is_set("slave_gtid_ignore_duplicates"),
        });
        return Ok((start, None));
    }
    let file = String::from_utf8_lossy(&from.file);
    // MySQL since 8.0 looks at the last part of a path. The others know no path, which is then no file's name.
    let is_path = !is_mariadb && source.at_least(8, 0, 0);
    let name = if is_path { file.rsplit('/').next().unwrap_or_default() } else { &file };
    if name.is_empty() && !file.is_empty() {
        return Err(fatal(NO_SUCH_FILE));
    }
    Ok((DumpStart::Position(LogPosition::new(name, from.position)), leaves_out))
}

/// The text of an error.
pub(super) fn before_first(asked: &str) -> String {
    format!("Client requested {asked} to start replication from position < 4")
}

fn domain_gtids(text: &str) -> Result<Vec<DomainGtid>, DumpError> {
    let list = DomainGtid::parse_list(text).ok_or_else(|| refused(1941, "Could not parse GTID list"))?;
    let mut known: BTreeMap<u32, DomainGtid> = BTreeMap::new();
    for gtid in &list {
        if let Some(other) = known.insert(gtid.domain, *gtid) {
            let domain = gtid.domain;
            return Err(refused(1943, format!("GTID {gtid} and {other} conflict (duplicate domain id {domain})")));
        }
    }
    Ok(list)
}

fn refused(code: u16, text: impl Into<String>) -> DumpError {
    DumpError::Refused(ServerError::new(code, "HY000", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(flags: u16) -> DumpPlace {
        DumpPlace { server_id: 7, flags, file: b"./b.000002".to_vec(), position: 99, gtid_set: None }
    }

    fn source(greeting: &str, version: (u16, u16, u16)) -> SourceFacts {
        SourceFacts { greeting: greeting.to_owned(), charset: 45, version, variables: BTreeMap::default() }
    }

    #[test]
    fn what_replicas_say() {
        let none = |_: &str| None;
        let request = Request::new(&from(6), &source("9.7.0", (9, 7, 0)), MarkedEvents::Sent, &none).unwrap();
        assert_eq!(request.start, DumpStart::Position(LogPosition::new("b.000002", 99)));
        assert_eq!(request.vendor, Vendor::MySql { heartbeat_v2: true, skips_tagged: true });
        assert_eq!((request.waiting, request.checksum, request.heartbeat), (WaitMode::ForMore, None, None));
        let old = Request::new(&from(6), &source("5.7.22", (5, 7, 22)), MarkedEvents::Sent, &none).unwrap();
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
        let request =
            Request::new(&from(3), &source("10.11.6-MariaDB", (10, 11, 6)), MarkedEvents::Sent, &mariadb).unwrap();
        assert_eq!(request.vendor, Vendor::MariaDb { annotate: true, capability: 4 });
        assert_eq!((request.checksum, request.waiting), (Some(Checksum::Crc32), WaitMode::End));
        assert_eq!(request.heartbeat, Some(Duration::from_secs(2)));
        let DumpStart::MariaDb(start) = request.start else { panic!() };
        assert_eq!(start.from.len(), 2);
        assert!(start.is_strict && !start.ignores_duplicates && start.until.is_none());
        let broken = |name: &str| (name == "slave_connect_state").then(|| "0-1".to_owned());
        assert!(Request::new(&from(0), &source("10.11.6-MariaDB", (10, 11, 6)), MarkedEvents::Sent, &broken).is_err());
        // A path is one where the version takes it.
        let path = |name: &[u8], source: &SourceFacts| {
            let from = DumpPlace { file: name.to_vec(), ..from(0) };
            Request::new(&from, source, MarkedEvents::Sent, &none)
                .map(|request| request.start)
                .map_err(|error| error.to_string())
        };
        let (new, old) = (source("9.7.0", (9, 7, 0)), source("5.7.22", (5, 7, 22)));
        assert_eq!(path(b"/var/b.000002", &new), Ok(DumpStart::Position(LogPosition::new("b.000002", 99))));
        assert_eq!(path(b"/var/b.000002", &old), Ok(DumpStart::Position(LogPosition::new("/var/b.000002", 99))));
        assert!(path(b"./", &new).unwrap_err().contains("1236"));
        assert_eq!(path(b"", &new), Ok(DumpStart::Position(LogPosition::new("", 99))));
        let twice = |name: &str| (name == "slave_connect_state").then(|| "0-1-1,0-1-2".to_owned());
        let error = Request::new(&from(0), &source("10.11.6-MariaDB", (10, 11, 6)), MarkedEvents::Sent, &twice);
        assert!(error.unwrap_err().to_string().contains("GTID 0-1-2 and 0-1-1 conflict"));
        let gtids = DumpPlace { file: Vec::new(), gtid_set: Some(vec![1, 2, 3]), ..from(0) };
        assert!(Request::new(&gtids, &source("9.7.0", (9, 7, 0)), MarkedEvents::Sent, &none).is_err());
    }
}
