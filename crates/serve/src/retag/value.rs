//! A new tag as one number: MySQL's `last_committed` (5.6: and the sequence number), or MariaDB's commit id and `FL_WAITED`. And how it is put into an event.

use binlog::patch::{self, ClockRoom, Patch, PatchError};
use binlog::{Checksum, MariaDbGtid};
use engine::retag::{Marks, Tag};

/// Above all commit ids that are made.
const WAITED: i64 = 1 << 62;
/// Of a `last_committed` that stands beside a sequence number: a file has fewer transactions.
const CLOCK_BITS: u32 = 31;

/// Never below 0.
pub fn of(tag: Tag) -> i64 {
    match tag {
        Tag::LogicalClock { source: Some(_), last_committed, .. } => last_committed,
        // The source gives no number, so it stands here, too.
        Tag::LogicalClock { source: None, sequence_number, last_committed } => {
            sequence_number << CLOCK_BITS | last_committed
        }
        Tag::CommitGroup { new, .. } => of_marks(new),
    }
}

fn of_marks(marks: Marks) -> i64 {
    let id = marks.commit_id.map_or(0, |id| id as i64 & (WAITED - 1));
    if marks.waited { id | WAITED } else { id }
}

/// The commit id, and whether it waited.
fn marks(value: i64) -> (Option<u64>, bool) {
    let id = (value & (WAITED - 1)) as u64;
    ((id != 0).then_some(id), value & WAITED != 0)
}

/// Whether an event may become longer: MariaDB's have no room for a commit id that they do not have, MySQL 5.6's none for a logical clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventGrowth {
    AsItIs,
    MayGrow,
}

/// Gives a GTID event its new tag; its position of the next event stays.
///
/// # Errors
/// [`PatchError`] when it is no such event.
pub fn give(event: &mut Vec<u8>, value: i64, checksum: Checksum, growth: EventGrowth) -> Result<(), PatchError> {
    let mut patch = Patch::new(event, checksum)?;
    if patch.clock_room() == Some(ClockRoom::Nothing) {
        if growth == EventGrowth::MayGrow {
            let last_committed = value & ((1 << CLOCK_BITS) - 1);
            *event = patch::with_logical_clock(event, checksum, last_committed, value >> CLOCK_BITS)?;
        }
        return Ok(());
    }
    if !patch.is_mariadb() {
        patch.last_committed(value)?.finish();
        return Ok(());
    }
    let (commit_id, waited) = marks(value);
    patch.gtid_flags(MariaDbGtid::FL_WAITED, if waited { MariaDbGtid::FL_WAITED } else { 0 })?;
    let has_room = commit_id.map(|id| patch.commit_id(id)).transpose()?;
    patch.finish();
    if let (Some(id), Some(false), EventGrowth::MayGrow) = (commit_id, has_room, growth) {
        *event = patch::with_commit_id(event, checksum, id)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use binlog::encode::{self, Head};
    use binlog::{Event, Flavour, HEADER_LEN, MySqlGtid};
    use bytes::Bytes;

    use super::*;

    #[test]
    fn marks_are_numbers() {
        for commit_id in [None, Some(1), Some((1 << 62) - 1)] {
            for waited in [false, true] {
                let value = of_marks(Marks { commit_id, waited, begins: false });
                assert!(value >= 0);
                assert_eq!(marks(value), (commit_id, waited));
            }
        }
    }

    /// As a server writes it that has such an id.
    #[test]
    fn an_event_gets_a_commit_id() {
        let spec = encode::FormatSpec::new("11.8.2-MariaDB-log", Flavour::MariaDb, Checksum::Crc32);
        let format = spec.describe();
        for checksum in [Checksum::Off, Checksum::Crc32] {
            let head = Head::new(1_700_000_000, 1, checksum);
            let shapes = [(None, 0, None), (Some(7), 0, None), (None, MariaDbGtid::FL_EXTRA_THREAD_ID, Some(99))];
            for (commit_id, flags_extra, thread_id) in shapes {
                let old = MariaDbGtid {
                    domain_id: 3,
                    server_id: 1,
                    seq_no: 88,
                    flags: MariaDbGtid::FL_TRANSACTIONAL | MariaDbGtid::FL_WAITED,
                    commit_id,
                    flags_extra,
                    thread_id,
                    ..MariaDbGtid::default()
                };
                for growth in [EventGrowth::AsItIs, EventGrowth::MayGrow] {
                    let bytes = encode::mariadb_gtid(&head, &old);
                    let mut event = bytes.clone();
                    give(&mut event, 1 << 41, checksum, growth).unwrap();
                    let parsed = Event::parse(Bytes::from(event.clone()), checksum).unwrap();
                    let grew = growth == EventGrowth::MayGrow && commit_id.is_none();
                    assert_eq!(event.len() > bytes.len(), grew, "{old:?}");
                    let gtid = MariaDbGtid::decode(&parsed, &format).unwrap();
                    let has = grew || commit_id.is_some();
                    let group = if has { MariaDbGtid::FL_GROUP_COMMIT_ID } else { 0 };
                    let expected = MariaDbGtid {
                        flags: MariaDbGtid::FL_TRANSACTIONAL | group,
                        commit_id: has.then_some(1 << 41),
                        ..old.clone()
                    };
                    assert_eq!(gtid, expected);
                    if grew && flags_extra == 0 {
                        assert_eq!(event, encode::mariadb_gtid(&head, &expected), "as servers write it");
                    }
                }
            }
        }
    }
    /// MySQL 5.6's GTID events have no clock: both numbers come of one.
    #[test]
    fn a_clock_is_one_number() {
        let tag = Tag::LogicalClock { sequence_number: 2_000_000_000, source: None, last_committed: 1_999_999_999 };
        let gtid = encode::mysql_gtid(&Head::new(1_700_000_000, 1, Checksum::Off), &MySqlGtid::default());
        let mut bare = gtid[..HEADER_LEN + 25].to_vec();
        bare[9..13].copy_from_slice(&(HEADER_LEN as u32 + 25).to_le_bytes());
        let mut event = bare.clone();
        give(&mut event, of(tag), Checksum::Off, EventGrowth::AsItIs).unwrap();
        assert_eq!(event, bare, "by position it has to stay as long as it is");
        give(&mut event, of(tag), Checksum::Off, EventGrowth::MayGrow).unwrap();
        let format = encode::FormatSpec::new("5.6.14-log", Flavour::MySql, Checksum::Off).describe();
        let read = MySqlGtid::decode(&Event::parse(event.into(), Checksum::Off).unwrap(), &format).unwrap();
        assert_eq!((read.sequence_number, read.last_committed), (2_000_000_000, 1_999_999_999));
    }

    /// No server writes such; a forged log may have them.
    #[test]
    fn an_event_never_becomes_shorter() {
        let head = Head::new(1_700_000_000, 1, Checksum::Crc32);
        let usual = encode::mariadb_gtid(&head, &MariaDbGtid::default());
        for more in 0..200 {
            let mut event = usual.clone();
            event.splice(usual.len() - 4..usual.len() - 4, std::iter::repeat_n(0, more));
            let length = event.len();
            event[9..13].copy_from_slice(&(length as u32).to_le_bytes());
            give(&mut event, 7, Checksum::Crc32, EventGrowth::MayGrow).unwrap();
            assert!(event.len() > length, "{more}");
            Event::parse(Bytes::from(event), Checksum::Crc32).unwrap();
        }
    }
}
