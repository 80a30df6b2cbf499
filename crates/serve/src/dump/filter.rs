//! Which events a replica that attaches by GTID has already. Pure.

use std::collections::BTreeMap;

use binlog::boundary::{Boundary, Step};
use binlog::gtids::GtidSet;
use binlog::{Event, FormatDescription, Kind, MariaDbGtid, MySqlGtid};
use bytes::Bytes;

use super::context::{DumpError, fatal};
use crate::inventory::{BinlogState, DomainGtid, EventHead};

/// The decision about one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Send,
    LeaveOut,
}

/// The artificial event that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FollowUp {
    GoOn,
    /// MariaDB: where the stream is.
    GtidList,
    /// MariaDB: where the stream is, and that it ends as the replica wanted.
    UntilReached,
}

/// What is done with transactions that have a tagged GTID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaggedTransactions {
    Sent,
    LeftOut,
}

/// MySQL: leaves out the transactions of a GTID set.
#[derive(Debug)]
pub(super) struct MySqlFilter {
    has: GtidSet,
    /// By position: nothing is left out but for tagged ones.
    by_gtid: bool,
    skips_tagged: bool,
    is_inside: bool,
}

impl MySqlFilter {
    pub(super) fn new(has: Option<GtidSet>, tagged: TaggedTransactions) -> Option<Self> {
        let skips_tagged = tagged == TaggedTransactions::LeftOut;
        (has.is_some() || skips_tagged).then(|| Self {
            by_gtid: has.is_some(),
            has: has.unwrap_or_default(),
            skips_tagged,
            is_inside: false,
        })
    }

    pub(super) fn take(&mut self, peeked: &EventHead<'_>, format: &FormatDescription) -> Result<Verdict, DumpError> {
        match peeked.header.kind {
            Kind::GTID_TAGGED if self.skips_tagged => self.is_inside = true,
            Kind::GTID | Kind::GTID_TAGGED => {
                let event = parsed(peeked, format)?;
                let gtid = MySqlGtid::decode(&event, format).map_err(|error| fatal(error.to_string()))?;
                self.is_inside = self.has.contains(&gtid.uuid, &gtid.tag, gtid.gno);
            }
            Kind::ANONYMOUS_GTID if self.by_gtid => {
                return Err(fatal(
                    "Cannot replicate anonymous transaction when AUTO_POSITION = 1: the source wrote it without a GTID",
                ));
            }
            Kind::ANONYMOUS_GTID | Kind::ROTATE => self.is_inside = false,
            _ => {}
        }
        Ok(if self.is_inside { Verdict::LeaveOut } else { Verdict::Send })
    }
}

fn parsed(peeked: &EventHead<'_>, format: &FormatDescription) -> Result<Event, DumpError> {
    Event::parse(Bytes::copy_from_slice(peeked.bytes), format.checksum).map_err(|error| fatal(error.to_string()))
}

/// A replica's position in one domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DomainStart {
    pub(super) gtid: DomainGtid,
    /// Nothing of the domain was here when the replica came.
    pub(super) on_empty_domain: bool,
}

/// The replica's gtid_strict_mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StrictMode {
    Strict,
    Lenient,
}

/// MariaDB: in each domain all up to where the replica goes on.
#[derive(Debug)]
pub(super) struct MariaDbFilter {
    /// The domains whose place was not met yet.
    wanted: BTreeMap<u32, DomainStart>,
    until: Option<BTreeMap<u32, DomainGtid>>,
    mode: StrictMode,
    state: BinlogState,
    boundary: Boundary,
    is_skipping: bool,
    /// The last group before the end that the replica wanted is under way.
    is_last: bool,
    list_is_due: bool,
}

impl MariaDbFilter {
    pub(super) fn new(
        wanted: BTreeMap<u32, DomainStart>,
        until: Option<BTreeMap<u32, DomainGtid>>,
        mode: StrictMode,
    ) -> Self {
        Self {
            wanted,
            until,
            mode,
            state: BinlogState::default(),
            boundary: Boundary::default(),
            is_skipping: false,
            is_last: false,
            list_is_due: false,
        }
    }

    /// Whether nothing is left out, nor will be.
    pub(super) fn is_done(&self) -> bool {
        self.wanted.is_empty() && self.until.is_none() && !self.is_skipping && !self.list_is_due
    }

    /// Whether a domain's place is still to come: what the replica was told of a server's start it was told before.
    pub(super) fn has_all_places(&self) -> bool {
        self.wanted.is_empty()
    }

    pub(super) fn state(&self) -> &BinlogState {
        &self.state
    }

    pub(super) fn take(
        &mut self,
        peeked: &EventHead<'_>,
        format: &FormatDescription,
        known: &dyn Fn() -> Result<BinlogState, DumpError>,
    ) -> Result<(Verdict, FollowUp), DumpError> {
        let step = self.boundary.raw(&peeked.header, peeked.body(format.checksum), format);
        let is_end = matches!(step, Step::Ends { .. } | Step::EndsNothing);
        match peeked.header.kind {
            Kind::MARIADB_GTID_LIST if self.until.is_some() => {
                let event = parsed(peeked, format)?;
                self.state = crate::inventory::Gtids::of_list(&event, format).map_err(fatal)?.into_mariadb();
            }
            Kind::MARIADB_GTID => {
                let event = parsed(peeked, format)?;
                let gtid = MariaDbGtid::decode(&event, format).map_err(|error| fatal(error.to_string()))?;
                self.group(DomainGtid::of(&gtid), known)?;
            }
            _ => {}
        }
        let verdict = if self.is_skipping { Verdict::LeaveOut } else { Verdict::Send };
        if is_end {
            self.is_skipping = false;
        }
        let is_between = self.boundary.is_between();
        let then = if self.is_last && is_between {
            FollowUp::UntilReached
        } else if self.list_is_due && is_between {
            self.list_is_due = false;
            FollowUp::GtidList
        } else {
            FollowUp::GoOn
        };
        Ok((verdict, then))
    }

    fn group(&mut self, gtid: DomainGtid, known: &dyn Fn() -> Result<BinlogState, DumpError>) -> Result<(), DumpError> {
        self.state.update(gtid);
        if let Some(wanted) = self.wanted.get_mut(&gtid.domain) {
            let place = wanted.gtid;
            if wanted.on_empty_domain {
                if known()?.number(place.domain, place.server).is_none_or(|number| number < place.number) {
                    return Err(not_here(place, &known()?));
                }
                wanted.on_empty_domain = false;
            }
            if gtid.server != place.server || gtid.number <= place.number {
                self.is_skipping = true;
            }
            if gtid.server == place.server && gtid.number >= place.number {
                if self.mode == StrictMode::Strict && gtid.number > place.number {
                    return Err(fatal(format!(
                        "The binlog on the master is missing the GTID {place} requested by the slave (even though both a prior and a subsequent sequence number does \
                         exist), and GTID strict mode is enabled"
                    )));
                }
                self.list_is_due = true;
                self.wanted.remove(&gtid.domain);
            }
        }
        if let Some(until) = &mut self.until {
            match until.get(&gtid.domain).copied() {
                None => self.is_skipping = true,
                Some(end) if gtid.server == end.server && gtid.number >= end.number => {
                    until.remove(&gtid.domain);
                    self.is_last = until.is_empty();
                    self.is_skipping |= gtid.number > end.number;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// The replica asks for what is not in the log.
pub(super) fn not_here(gtid: DomainGtid, known: &BinlogState) -> DumpError {
    let more = match known.last(gtid.domain) {
        Some(last) if last.number >= gtid.number => {
            ". Since the master's binlog contains GTIDs with higher sequence numbers, it probably means that the slave has diverged due to executing extra erroneous \
             transactions"
        }
        _ => "",
    };
    fatal(format!(
        "Error: connecting slave requested to start from GTID {gtid}, which is not in the master's binlog{more}"
    ))
}

#[cfg(test)]
mod tests;
