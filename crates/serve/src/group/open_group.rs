//! A group: its members, and its events. Pure.

use binlog::encode::{self, Head};
use binlog::gtids::Gtid;
use binlog::patch::Patch;
use binlog::{Checksum, Flavour, FormatDescription, HEADER_LEN, Header, MariaDbGtid, MySqlGtid, RowsEvent};
use bytes::Bytes;

use super::clock::Clock;
use super::member::{self, Member, Opener};
use super::statement::{Statement, TableKey};

/// The maximum size of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub transactions: usize,
    pub bytes: usize,
}

/// A group that is about to be sent, as the group log records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormedGroup {
    /// The GTIDs of its transactions, in the order of the log.
    pub gtids: Vec<Gtid>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Group {
    members: Vec<Member>,
    statements: Vec<Statement>,
    bytes: usize,
}

impl Opener {
    pub fn gtid(&self) -> Option<Gtid> {
        match self {
            Self::MySql(gtid) => Gtid::of_mysql(gtid),
            Self::MariaDb(gtid) => Some(Gtid::of_mariadb(gtid)),
        }
    }

    /// As its source says; MySQL's says it by its tags.
    fn may_run_beside(&self) -> bool {
        match self {
            Self::MySql(_) => true,
            Self::MariaDb(gtid) => gtid.flags & MariaDbGtid::FL_ALLOW_PARALLEL != 0,
        }
    }
}

impl Group {
    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// MariaDB: of all its transactions.
    pub fn domain(&self) -> u32 {
        match self.members.last().map(|member| &member.opener) {
            Some(Opener::MariaDb(gtid)) => gtid.domain_id,
            Some(Opener::MySql(_)) | None => 0,
        }
    }

    pub fn tables(&self) -> impl Iterator<Item = TableKey> {
        self.statements.iter().flat_map(Statement::tables)
    }

    /// The group's transactions as single transactions, unchanged.
    pub fn singles(&self) -> Vec<u8> {
        self.members.iter().flat_map(|member| member.raw.iter().copied()).collect()
    }

    pub fn last(&self) -> Option<Gtid> {
        self.members.last().and_then(|member| member.opener.gtid())
    }

    /// Whether the next transaction of the log can follow in this group.
    pub fn takes(&self, next: &Member, format: &FormatDescription) -> bool {
        let Some(last) = self.members.last() else { return true };
        match (&last.opener, &next.opener) {
            // The last one's GTID must say that all before it were applied.
            (Opener::MariaDb(last), Opener::MariaDb(next)) => {
                last.domain_id == next.domain_id && last.server_id == next.server_id && last.seq_no < next.seq_no
            }
            (Opener::MySql(_), Opener::MySql(_)) => last.session(format) == next.session(format),
            _ => false,
        }
    }

    pub fn add(&mut self, mut next: Member, flavour: Flavour) {
        // Inflated, where it is compressed.
        self.bytes += next.raw.len().max(next.statements.iter().map(Statement::bytes).sum());
        for statement in std::mem::take(&mut next.statements) {
            match self.statements.last_mut() {
                Some(last) if last.takes(&statement, flavour) => last.append(statement),
                _ => self.statements.push(statement),
            }
        }
        self.members.push(next);
    }

    /// Appends the group's events to `out`. A single transaction stays unchanged, except for its tag.
    pub fn write(self, clock: &mut Clock, format: &FormatDescription, out: &mut Vec<u8>) -> Option<FormedGroup> {
        let (first, last) = (self.members.first()?, self.members.last()?);
        if self.members.len() == 1 {
            write_tagged(&last.raw, clock, format, out);
            return None;
        }
        let tag = self.tag(first, last, clock);
        let mut behind = Vec::with_capacity(self.bytes);
        let at = GroupEnd { log_pos: last.position, checksum: format.checksum };
        if let Some(begin) = &last.begin {
            at.put(begin, &mut behind);
        }
        for statement in &self.statements {
            for map in &statement.maps {
                at.put(&map.event, &mut behind);
            }
            for (index, rows) in statement.rows.iter().enumerate() {
                at.put_rows(&rows.event, index + 1 == statement.rows.len(), &mut behind);
            }
        }
        at.put(&last.end, &mut behind);
        out.extend_from_slice(&self.opener(last, tag, behind.len() as u64, at));
        out.append(&mut behind);
        Some(FormedGroup { gtids: self.members.iter().filter_map(|member| member.opener.gtid()).collect() })
    }

    /// What the group waits for. A member that waits for a transaction waits for all up to that one: if it is a member itself, for all before the group.
    fn tag(&self, first: &Member, last: &Member, clock: &mut Clock) -> (i64, i64) {
        let (Opener::MySql(first), Opener::MySql(last)) = (&first.opener, &last.opener) else { return (0, 0) };
        let before = self.members.iter().filter_map(|member| match &member.opener {
            Opener::MySql(gtid) => Some(gtid.last_committed.min(first.sequence_number - 1)),
            Opener::MariaDb(_) => None,
        });
        clock.tag(before.max().unwrap_or(0).max(0), first.sequence_number, last.sequence_number)
    }

    /// The GTID event of the last one, for all.
    fn opener(&self, last: &Member, tag: (i64, i64), of_rest: u64, at: GroupEnd) -> Vec<u8> {
        match &last.opener {
            Opener::MySql(gtid) => {
                let gtid = MySqlGtid { last_committed: tag.0, sequence_number: tag.1, ..gtid.clone() };
                mysql_opener(&last.header, gtid, of_rest, at)
            }
            Opener::MariaDb(gtid) => {
                // Nothing is known of who else committed or waited with all of them.
                let mut flags = gtid.flags & !(MariaDbGtid::FL_GROUP_COMMIT_ID | MariaDbGtid::FL_WAITED);
                // What the source says of one of them (`skip_parallel_replication`) holds for all.
                if !self.members.iter().all(|member| member.opener.may_run_beside()) {
                    flags &= !MariaDbGtid::FL_ALLOW_PARALLEL;
                }
                let gtid = MariaDbGtid { flags, commit_id: None, ..gtid.clone() };
                let mut event = encode::mariadb_gtid(&head(&last.header, at.checksum), &gtid);
                at.place(&mut event);
                event
            }
        }
    }
}

/// A transaction as it stands in the log, with the tag that it has here.
pub(super) fn write_tagged(raw: &Bytes, clock: &mut Clock, format: &FormatDescription, out: &mut Vec<u8>) {
    let Some((header, Opener::MySql(gtid))) = member::opener(raw, format) else { return out.extend_from_slice(raw) };
    let (last_committed, sequence_number) = clock.tag(gtid.last_committed, gtid.sequence_number, gtid.sequence_number);
    if (last_committed, sequence_number) == (gtid.last_committed, gtid.sequence_number) {
        return out.extend_from_slice(raw);
    }
    let (old, rest) = raw.split_at(header.event_len as usize);
    let mut event = old.to_vec();
    let patched = Patch::new(&mut event, format.checksum)
        .and_then(|mut patch| patch.logical_clock(last_committed, sequence_number).map(Patch::finish));
    if patched.is_err() {
        // One with a tag (uuid:tag:number) has no such fields at a fixed place. The transaction may be here in part.
        let of_rest = gtid.transaction_length.unwrap_or(0).saturating_sub(old.len() as u64);
        let at = GroupEnd { log_pos: header.log_pos, checksum: format.checksum };
        event = mysql_opener(&header, MySqlGtid { last_committed, sequence_number, ..gtid }, of_rest, at);
    }
    out.extend_from_slice(&event);
    out.extend_from_slice(rest);
}

/// `of_rest`: bytes of the transaction behind this event, which says how many there are in all.
fn mysql_opener(header: &Header, mut gtid: MySqlGtid, of_rest: u64, at: GroupEnd) -> Vec<u8> {
    let mut event = Vec::new();
    // Its own length depends on that number.
    for _ in 0..3 {
        gtid.transaction_length = gtid.transaction_length.map(|_| event.len() as u64 + of_rest);
        event = encode::mysql_gtid(&head(header, at.checksum), &gtid);
    }
    at.place(&mut event);
    event
}

fn head(header: &Header, checksum: Checksum) -> Head {
    Head::new(header.timestamp, header.server_id, checksum).with_flags(header.flags)
}

/// A group's next position, and the checksum of its events.
#[derive(Debug, Clone, Copy)]
struct GroupEnd {
    log_pos: u32,
    checksum: Checksum,
}

impl GroupEnd {
    /// An event without checksum, which gets one.
    fn put(self, event: &[u8], out: &mut Vec<u8>) {
        self.put_with(event, |_| {}, out);
    }

    fn put_rows(self, event: &[u8], is_last: bool, out: &mut Vec<u8>) {
        const FLAGS_AT: usize = HEADER_LEN + 6;
        let end = if is_last { RowsEvent::STMT_END as u8 } else { 0 };
        let set = |event: &mut [u8]| {
            if let Some(flags) = event.get_mut(FLAGS_AT) {
                *flags = *flags & !(RowsEvent::STMT_END as u8) | end;
            }
        };
        self.put_with(event, set, out);
    }

    fn put_with(self, event: &[u8], change: impl Fn(&mut [u8]), out: &mut Vec<u8>) {
        const LENGTH_AT: usize = 9;
        let at = out.len();
        out.extend_from_slice(event);
        out.resize(out.len() + self.checksum.len(), 0);
        let event = out.get_mut(at..).unwrap_or_default();
        let length = event.len() as u32;
        if let Some(field) = event.get_mut(LENGTH_AT..LENGTH_AT + 4) {
            field.copy_from_slice(&length.to_le_bytes());
        }
        change(event);
        self.place(event);
    }

    fn place(self, event: &mut [u8]) {
        if let Ok(mut patch) = Patch::new(event, self.checksum) {
            patch.log_pos(self.log_pos).finish();
        }
    }
}
