//! Finds where a stream begins. If the position is not here yet, it waits: a replica that comes from the source may be a little ahead.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlog::gtids::GtidSet;
use binlog::{FIRST_OFFSET, LogPosition};
use wire::server::Peer;

use super::context::{Context, DumpError, NO_SUCH_FILE, fatal};
use super::filter::{DomainStart, MariaDbFilter, MySqlFilter, StrictMode, TaggedTransactions, not_here};
use super::request::{DumpStart, MariaDbStart, Request, Vendor, WaitMode, before_first};
use crate::inventory::{BinlogState, DomainGtid, Gtids, Inventory, LogFile, ReadError, ReaderPlace};

/// A mirror that gets nothing for so long has all that the source has.
const QUIET: Duration = Duration::from_secs(5);
/// In all: replicas give up a silent server after 60.
const WAIT_AT_MOST: Duration = Duration::from_secs(40);
const STEP: Duration = Duration::from_millis(100);

/// A place in the files of a server that is not the source any more would be another place in those of the present one.
const OTHER_POSITIONS: &str = "the source has been replaced by another server, whose log files have other names and positions: attach by GTID. A replica that has its place in the present source's \
                               files is taken when heddle serve runs with --positions-of and that source's identity";

/// The start of a stream, and its hold on the file.
#[derive(Debug)]
pub(super) struct Start<'a> {
    /// The file stays while the stream is there, unless replicas may miss files.
    pub(super) reading: ReaderPlace<'a>,
    pub(super) at: Place,
}

#[derive(Debug)]
pub(super) struct Place {
    pub(super) file: Arc<LogFile>,
    pub(super) offset: u64,
    pub(super) filter: Filter,
    /// With GTIDs: the replica has the first transaction of the file.
    pub(super) has_first: bool,
}

/// The transactions that are left out.
#[derive(Debug)]
pub(super) enum Filter {
    Nothing,
    MySql(MySqlFilter),
    MariaDb(MariaDbFilter),
}

/// Why no start was found.
enum StartError {
    /// It may come.
    NotYet(DumpError),
    Never(DumpError),
}

impl<E: Into<DumpError>> From<E> for StartError {
    fn from(error: E) -> Self {
        Self::Never(error.into())
    }
}

pub(super) fn find<'a>(peer: &Peer, request: &Request, context: Context<'a>) -> Result<Start<'a>, DumpError> {
    let began = Instant::now();
    let (mut end, mut moved) = (context.inventory.end(), began);
    loop {
        let removals = context.inventory.removals();
        let found = attempt(request, context.inventory);
        let found = found.map(|at| Start { reading: context.inventory.read_from_as(&at.file, context.replica), at });
        let error = match found {
            // What was found, or needed for it, may have gone meanwhile.
            Ok(_) | Err(StartError::Never(DumpError::Unreadable(ReadError::Removed { .. })))
                if context.inventory.removals() != removals =>
            {
                continue;
            }
            Ok(start) => return Ok(start),
            Err(StartError::Never(error)) => return Err(error),
            Err(StartError::NotYet(error)) => error,
        };
        let now = context.inventory.end();
        if now != end {
            (end, moved) = (now, Instant::now());
        }
        let is_quiet = moved.elapsed() > QUIET && !context.inventory.is_settling();
        if is_quiet || began.elapsed() > WAIT_AT_MOST || peer.has_left() || context.is_replaced() {
            return Err(error);
        }
        std::thread::sleep(STEP);
    }
}

fn attempt(request: &Request, inventory: &Inventory) -> Result<Place, StartError> {
    match &request.start {
        DumpStart::Position(at) => by_position(at, request, inventory),
        DumpStart::MySqlGtids(has) => by_mysql_gtids(has, request, inventory),
        DumpStart::MariaDb(start) => by_mariadb_gtids(start, inventory),
    }
}

fn by_position(at: &LogPosition, request: &Request, inventory: &Inventory) -> Result<Place, StartError> {
    if request.waiting == WaitMode::ForMore && !inventory.takes_positions_of(request.of_source.as_deref()) {
        return Err(StartError::Never(fatal(OTHER_POSITIONS)));
    }
    let unknown = || fatal(NO_SUCH_FILE);
    let file = if at.file.is_empty() { inventory.first() } else { inventory.find(&at.file) };
    let Some(file) = file else {
        let last = inventory.end();
        let may_come = last
            .as_ref()
            .is_none_or(|last| last.base_name() == at.base_name() && at.file_number() > last.file_number());
        return Err(if may_come { StartError::NotYet(unknown()) } else { StartError::Never(unknown()) });
    };
    let is_mariadb = matches!(request.vendor, Vendor::MariaDb { .. });
    if at.offset < FIRST_OFFSET {
        let text = if is_mariadb { impossible(at) } else { before_first(asked_of(inventory)) };
        return Err(StartError::Never(fatal(text)));
    }
    let extent = inventory.extent(&file);
    if at.offset > extent.end {
        let text = if is_mariadb {
            impossible(at)
        } else {
            format!("Client requested {} to start replication from position > file size", asked_of(inventory))
        };
        let error = fatal(text);
        return Err(if extent.grows { StartError::NotYet(error) } else { StartError::Never(error) });
    }
    let filter = match request.vendor {
        Vendor::MySql { .. } => {
            MySqlFilter::new(request.leaves_out.clone(), tagged(request)).map_or(Filter::Nothing, Filter::MySql)
        }
        Vendor::MariaDb { .. } => Filter::Nothing,
    };
    Ok(Place { file, offset: at.offset, filter, has_first: false })
}

fn tagged(request: &Request) -> TaggedTransactions {
    match request.vendor {
        Vendor::MySql { skips_tagged: true, .. } => TaggedTransactions::LeftOut,
        Vendor::MySql { .. } | Vendor::MariaDb { .. } => TaggedTransactions::Sent,
    }
}

/// As the source's version calls itself.
fn asked_of(inventory: &Inventory) -> &'static str {
    if inventory.source().is_some_and(|source| source.says_replica()) { "source" } else { "master" }
}

fn impossible(at: &LogPosition) -> String {
    let (file, offset) = (&at.file, at.offset);
    format!(
        "Client requested master to start replication from impossible position; the first event '{file}' at {offset}, the last event read from '{file}' at 4, the last byte \
         read from '{file}' at 4."
    )
}

fn by_mysql_gtids(has: &GtidSet, request: &Request, inventory: &Inventory) -> Result<Place, StartError> {
    let facts = inventory.source().ok_or_else(|| StartError::NotYet(fatal("the source is not known yet")))?;
    let mode = facts.variable("gtid_mode").unwrap_or("OFF");
    if mode != "ON" {
        return Err(StartError::Never(fatal(format!(
            "The replication sender thread cannot start in AUTO_POSITION mode: this server has GTID_MODE = {mode} instead of ON."
        ))));
    }
    // The latest file of the present source, or of a former one, before which the replica has everything.
    let all = inventory.all_series();
    let mut place = None;
    for files in &all {
        place = latest(files, |before| has.contains_set(&before.clone().into_mysql()))?;
        if place.is_some() {
            break;
        }
    }
    let Some((file, before)) = place.map(|(file, before)| (file, before.into_mysql())) else {
        if all.iter().all(Vec::is_empty) {
            return Err(StartError::NotYet(fatal(NO_SUCH_FILE)));
        }
        let mut missing = oldest(&all)?.into_mysql();
        missing.subtract(has);
        return Err(StartError::Never(fatal(purged(&missing, facts.at_least(8, 0, 0)))));
    };
    // What this source has made, and is not here.
    if let Some(uuid) = facts.variable("server_uuid").and_then(binlog::gtids::mysql::parse_uuid) {
        let (_, here) = inventory.gtids_at_end()?;
        let mut more = has.clone();
        more.subtract(&here.into_mysql());
        if more.iter().any(|(owner, _, numbers)| *owner == uuid && !numbers.is_empty()) {
            return Err(StartError::NotYet(fatal(more_than_source(facts.at_least(8, 0, 26)))));
        }
    }
    let has_first = has != &before && has_first_of(&file, has, inventory)?;
    let filter = MySqlFilter::new(Some(has.clone()), tagged(request)).map_or(Filter::Nothing, Filter::MySql);
    Ok(Place { file, offset: FIRST_OFFSET, filter, has_first })
}

/// The latest file that suits by the GTIDs before it: the files list more and more, so that those which suit are the first ones.
fn latest(
    files: &[(Arc<LogFile>, u64)],
    suits: impl Fn(&Gtids) -> bool,
) -> Result<Option<(Arc<LogFile>, Gtids)>, StartError> {
    let (mut from, mut to, mut found) = (0, files.len(), None);
    while from < to {
        let middle = from.midpoint(to);
        let Some((file, end)) = files.get(middle) else { break };
        let start = file.start(*end)?;
        // Only the last file may not have begun.
        match start.map(|start| start.gtids.clone().unwrap_or_default()).filter(&suits) {
            Some(before) => (found, from) = (Some((Arc::clone(file), before)), middle + 1),
            None => to = middle,
        }
    }
    Ok(found)
}

/// The GTIDs before all that is here.
fn oldest(all: &[Vec<(Arc<LogFile>, u64)>]) -> Result<Gtids, StartError> {
    let Some((file, end)) = all.iter().rev().find_map(|files| files.first()) else { return Ok(Gtids::None) };
    Ok(file.start(*end)?.and_then(|start| start.gtids.clone()).unwrap_or_default())
}

/// Whether the replica has the first transaction of the file.
fn has_first_of(file: &LogFile, has: &GtidSet, inventory: &Inventory) -> Result<bool, StartError> {
    let end = inventory.extent(file).end;
    let Some(start) = file.start(end)? else { return Ok(false) };
    let mut reader = file.reader(start.after_format)?;
    while let Some(peeked) = reader.peek(end)? {
        if matches!(peeked.header.kind, binlog::Kind::GTID | binlog::Kind::GTID_TAGGED) {
            let bytes = bytes::Bytes::copy_from_slice(peeked.bytes);
            let gtid = binlog::Event::parse(bytes, start.format.checksum)
                .and_then(|event| binlog::MySqlGtid::decode(&event, &start.format))
                .map_err(|error| StartError::Never(fatal(error.to_string())))?;
            return Ok(has.contains(&gtid.uuid, &gtid.tag, gtid.gno));
        }
        reader.skip()?;
    }
    Ok(false)
}

/// As the servers say it; an error has room for 511 bytes.
fn purged(missing: &GtidSet, is_new: bool) -> String {
    if !is_new {
        return "The slave is connecting using CHANGE MASTER TO MASTER_AUTO_POSITION = 1, but the master has purged binary logs containing GTIDs that the slave requires."
            .to_owned();
    }
    let text = "Cannot replicate because the source purged required binary logs. Replicate the missing transactions from elsewhere, or provision a new replica from backup. \
                Consider increasing the source's binary log expiration period.";
    let missing = missing.to_string();
    if missing.len() < 150 { format!("{text} The missing transactions are '{missing}'.") } else { text.to_owned() }
}

fn more_than_source(is_new: bool) -> String {
    let [replica, source] = if is_new { ["Replica", "source"] } else { ["Slave", "master"] };
    format!(
        "{replica} has more GTIDs than the {source} has, using the {source}'s SERVER_UUID. This may indicate that the end of the binary log was truncated or that the last binary log \
         file was lost, e.g., after a power or disk failure when sync_binlog != 1."
    )
}

fn by_mariadb_gtids(start: &MariaDbStart, inventory: &Inventory) -> Result<Place, StartError> {
    let (_, here) = inventory.gtids_at_end()?;
    let here = here.into_mariadb();
    let mut until: Option<BTreeMap<u32, DomainGtid>> =
        start.until.as_ref().map(|list| list.iter().map(|gtid| (gtid.domain, *gtid)).collect());
    let mut wanted = BTreeMap::new();
    for gtid in &start.from {
        // What is empty only because the mirror has just begun says nothing.
        if inventory.is_settling() && here.last(gtid.domain).is_none() {
            return Err(StartError::NotYet(not_here(*gtid, &here)));
        }
        let on_empty_domain = check(*gtid, start, &here, &mut until)?;
        wanted.insert(gtid.domain, DomainStart { gtid: *gtid, on_empty_domain });
    }
    for files in &inventory.all_series() {
        let suits = |before: &Gtids| has_all_before(&wanted, &before.clone().into_mariadb());
        let Some((file, before)) = latest(files, suits)? else { continue };
        let before = before.into_mariadb();
        for gtid in before.iter() {
            // The place is the end of the file before: nothing has to be left out.
            if wanted.get(&gtid.domain).is_some_and(|wanted| wanted.gtid == gtid) {
                wanted.remove(&gtid.domain);
            }
            if let Some(until) = &mut until
                && until.get(&gtid.domain).is_some_and(|end| end.server == gtid.server && end.number <= gtid.number)
            {
                until.remove(&gtid.domain);
            }
        }
        let mode = if start.is_strict { StrictMode::Strict } else { StrictMode::Lenient };
        let filter = Filter::MariaDb(MariaDbFilter::new(wanted, until, mode));
        return Ok(Place { file, offset: FIRST_OFFSET, filter, has_first: false });
    }
    Err(StartError::Never(fatal(
        "Could not find GTID state requested by slave in any binlog files. Probably the slave state is too old and required binlog files have been purged.",
    )))
}

/// Whether a place can be met; true if its domain is empty so far.
fn check(
    gtid: DomainGtid,
    start: &MariaDbStart,
    here: &BinlogState,
    until: &mut Option<BTreeMap<u32, DomainGtid>>,
) -> Result<bool, StartError> {
    if here.number(gtid.domain, gtid.server).is_some_and(|number| number >= gtid.number) {
        return Ok(false);
    }
    let Some(last) = here.last(gtid.domain) else { return Ok(true) };
    if start.ignores_duplicates && last.number < gtid.number {
        return Ok(false);
    }
    if let Some(until) = until {
        let end = until.get(&gtid.domain).copied();
        let is_before =
            end.is_none_or(|end| here.number(end.domain, end.server).is_some_and(|number| number >= end.number));
        if is_before {
            until.remove(&gtid.domain);
            return Ok(false);
        }
    }
    let error = not_here(gtid, here);
    // Another server's number in the domain may be higher and its own still come.
    Err(StartError::NotYet(error))
}

/// Whether everything that the replica lacks is in a file with this list, or later.
fn has_all_before(wanted: &BTreeMap<u32, DomainStart>, before: &BinlogState) -> bool {
    before.iter().all(|listed| {
        let Some(wanted) = wanted.get(&listed.domain) else { return false };
        let place = wanted.gtid;
        if place.server != listed.server || place.number > listed.number {
            return true;
        }
        place.number == listed.number && before.last(listed.domain) == Some(listed)
    })
}
