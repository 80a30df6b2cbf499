//! Follows a log's bytes as they come, in any portions: where a transaction ends, and what times and GTIDs there are. It holds the beginning of one event and
//! nothing else. It judges nothing: a mirror has checked every event.

use binlog::boundary::Boundary;
use binlog::gtids::mariadb::{Gtid as DomainGtid, GtidPos};
use binlog::gtids::{Gtid, GtidSet, GtidState};
use binlog::{
    Event, FIRST_OFFSET, FormatDescription, HEADER_LEN, Header, Kind, MAX_EVENT_LEN, MariaDbGtid, MariaDbGtidList,
    MySqlGtid,
};
use bytes::Bytes;

/// Of an event whose text says whether it ends a transaction.
const PEEK_BYTES: usize = 4 << 10;
/// A list of GTIDs is not longer.
const LIST_BYTES_MAX: usize = 64 << 20;

/// What a part of a log holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartSummary {
    /// Seconds since 1970; 0: of none.
    pub first: u32,
    pub last: u32,
    /// Of the transactions that begin here.
    pub gtids: GtidState,
    /// Of all files before this one.
    pub before: GtidState,
}

impl PartSummary {
    fn add(&mut self, later: &PartSummary) {
        self.time(later.first);
        self.time(later.last);
        self.gtids = self.gtids.then(&later.gtids);
        self.before = self.before.then(&later.before);
    }

    fn time(&mut self, time: u32) {
        if time > 0 {
            self.first = if self.first == 0 { time } else { self.first.min(time) };
            self.last = self.last.max(time);
        }
    }
}

/// What no log has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at {offset}: {reason}")]
pub struct NoLog {
    pub offset: u64,
    pub reason: String,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    offset: u64,
    format: Option<FormatDescription>,
    boundary: Boundary,
    /// Of the event that is under way.
    head: Vec<u8>,
    /// How much of it is looked at; 0: its header has not come.
    wanted: usize,
    /// Its bytes that nobody looks at.
    skip: u64,
    /// Behind the last whole transaction, or what is none.
    whole: u64,
    /// Up to there, since the last [`Scan::take`].
    sure: PartSummary,
    /// Behind it.
    open: PartSummary,
}

impl Scan {
    /// Behind all that came.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Behind the last place between two transactions.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// What came up to `to`, which is [`Scan::whole`] or [`Scan::offset`], since the last time.
    pub fn take(&mut self, to: u64) -> PartSummary {
        let mut taken = std::mem::take(&mut self.sure);
        if to > self.whole {
            taken.add(&std::mem::take(&mut self.open));
        }
        taken
    }

    /// The next bytes.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), NoLog> {
        while !bytes.is_empty() {
            if self.offset < FIRST_OFFSET {
                bytes = self.pass(bytes, FIRST_OFFSET - self.offset);
                self.whole = self.offset;
            } else if self.skip > 0 {
                let before = self.offset;
                bytes = self.pass(bytes, self.skip);
                self.skip -= self.offset - before;
                self.ended();
            } else {
                let length = if self.wanted == 0 { HEADER_LEN } else { self.wanted };
                let missing = length - self.head.len();
                let taken = bytes.get(..missing).unwrap_or(bytes);
                self.head.extend_from_slice(taken);
                bytes = self.pass(bytes, taken.len() as u64);
                if self.head.len() == length {
                    self.look()?;
                }
            }
        }
        Ok(())
    }

    fn pass<'a>(&mut self, bytes: &'a [u8], most: u64) -> &'a [u8] {
        let passed = bytes.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        self.offset += passed as u64;
        bytes.get(passed..).unwrap_or_default()
    }

    fn no_log(&self, reason: impl ToString) -> NoLog {
        NoLog { offset: self.offset - self.head.len() as u64, reason: reason.to_string() }
    }

    /// The header has come, or all that is wanted.
    fn look(&mut self) -> Result<(), NoLog> {
        let Some(header) = Header::parse(&self.head) else { return Err(self.no_log("no header")) };
        let length = header.event_len as usize;
        if self.wanted == 0 {
            if !(HEADER_LEN..=MAX_EVENT_LEN).contains(&length) {
                return Err(self.no_log(format!("an event of {length} bytes")));
            }
            let most = match header.kind {
                Kind::FORMAT_DESCRIPTION | Kind::PREVIOUS_GTIDS | Kind::MARIADB_GTID_LIST => LIST_BYTES_MAX,
                Kind::GTID | Kind::GTID_TAGGED | Kind::MARIADB_GTID => 1 << 16,
                _ => PEEK_BYTES,
            };
            self.wanted = length.min(most);
            if self.head.len() < self.wanted {
                return Ok(());
            }
        }
        self.event(&header)?;
        self.skip = (length - self.wanted) as u64;
        self.wanted = 0;
        self.head.clear();
        self.ended();
        Ok(())
    }

    fn event(&mut self, header: &Header) -> Result<(), NoLog> {
        let is_whole = self.head.len() == header.event_len as usize;
        let bytes = Bytes::copy_from_slice(&self.head);
        if header.kind == Kind::FORMAT_DESCRIPTION {
            let (_, format) = FormatDescription::decode(&bytes).map_err(|error| self.no_log(error))?;
            self.boundary.raw(header, &[], &format);
            self.format = Some(format);
            return Ok(());
        }
        let Some(format) = &self.format else { return Err(self.no_log("an event before the format description")) };
        let end = bytes.len().saturating_sub(if is_whole { format.checksum.len() } else { 0 });
        self.boundary.raw(header, bytes.get(HEADER_LEN..end).unwrap_or_default(), format);
        self.open.time(header.timestamp);
        if !is_whole {
            return Ok(());
        }
        let failed = |error: &dyn std::fmt::Display| self.no_log(error);
        let event = |bytes: Bytes| Event::parse(bytes, format.checksum).map_err(|error| failed(&error));
        let gtid = match header.kind {
            Kind::GTID | Kind::GTID_TAGGED => {
                let gtid = MySqlGtid::decode(&event(bytes)?, format).map_err(|error| failed(&error))?;
                Gtid::of_mysql(&gtid)
            }
            Kind::MARIADB_GTID => {
                let gtid = MariaDbGtid::decode(&event(bytes)?, format).map_err(|error| failed(&error))?;
                Some(Gtid::of_mariadb(&gtid))
            }
            Kind::PREVIOUS_GTIDS => {
                let set = GtidSet::from_binary(event(bytes)?.body()).map_err(|error| failed(&error))?;
                self.open.before = GtidState::MySql(set);
                None
            }
            Kind::MARIADB_GTID_LIST => {
                let list = MariaDbGtidList::decode(&event(bytes)?, format).map_err(|error| failed(&error))?;
                let mut position = GtidPos::default();
                for entry in list.entries {
                    let (domain, server, seq) = (entry.domain_id, entry.server_id, entry.seq_no);
                    position.update(DomainGtid { domain, server, seq });
                }
                self.open.before = GtidState::MariaDb(position);
                None
            }
            _ => None,
        };
        if let Some(gtid) = gtid
            && self.open.gtids.add(&gtid).is_err()
        {
            return Err(self.no_log("GTIDs of both servers"));
        }
        Ok(())
    }

    /// If nothing of the event is missing.
    fn ended(&mut self) {
        if self.skip == 0 && self.boundary.is_between() {
            self.whole = self.offset;
            self.sure.add(&std::mem::take(&mut self.open));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MYSQL: &[u8] = include_bytes!("../../binlog/tests/golden/mysql-9.7/rows.binlog");
    const MARIADB: &[u8] = include_bytes!("../../binlog/tests/golden/mariadb-10.11/rows.binlog");

    fn all(log: &[u8]) -> (Scan, PartSummary) {
        let mut scan = Scan::default();
        scan.push(log).unwrap();
        let found = scan.take(scan.offset());
        (scan, found)
    }

    #[test]
    fn a_log_of_each_kind() {
        for log in [MYSQL, MARIADB] {
            let (scan, found) = all(log);
            assert_eq!((scan.offset(), scan.whole()), (log.len() as u64, log.len() as u64));
            assert!(found.first > 1_600_000_000 && found.last >= found.first && !found.gtids.is_empty(), "{found:?}");
        }
    }

    #[test]
    fn what_is_no_log() {
        assert!(Scan::default().push(&[7; 9000]).is_err());
        let mut log = MYSQL.to_vec();
        log[4 + 9] = 1;
        log[4 + 10] = 0;
        assert!(Scan::default().push(&log).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The same whatever the portions, and wherever parts are taken.
        #[test]
        fn portions_do_not_matter(portions in proptest::collection::vec(1_usize..3000, 1..40), mariadb: bool) {
            let log = if mariadb { MARIADB } else { MYSQL };
            let (_, whole) = all(log);
            let (mut scan, mut sum, mut rest) = (Scan::default(), PartSummary::default(), log);
            for portion in portions.iter().cycle() {
                let (now, later) = rest.split_at((*portion).min(rest.len()));
                scan.push(now).unwrap();
                let to = if portion % 3 == 0 { scan.whole() } else { scan.offset() };
                sum.add(&scan.take(to));
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            sum.add(&scan.take(scan.offset()));
            prop_assert_eq!(sum, whole);
        }
    }
}
