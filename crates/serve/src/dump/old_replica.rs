//! MariaDB: what an old replica or tool gets in place of events that it does not know. It announces its capability in `@mariadb_slave_capability`, or does not set it.
//!
//! The position of every event stays, so an event is replaced by one of the same length. From [`HOLES`] on, an event can also be left out.

use binlog::{Checksum, HEADER_LEN, Header, Kind, patch};

/// It knows annotations, and passes over them.
const ANNOTATIONS: u32 = 1;
/// Events may be left out.
const HOLES: u32 = 2;
const CHECKPOINTS: u32 = 3;
/// The replica knows GTIDs: nothing is replaced.
pub(super) const GTIDS: u32 = 4;

/// Behind the number, the domain and so the flags of a GTID event.
const GTID_FLAGS_AT: usize = HEADER_LEN + 12;
/// A statement of its own, which has no COMMIT.
const STANDALONE: u8 = 1;
/// Body of a GTID event without a commit id.
const GTID_BODY_LEN: usize = 19;

/// Post-header of a query event: thread, time, length of the schema's name, error, length of the status variables.
const QUERY_POST_LEN: usize = 13;
/// The shortest query event: without status variables and schema, with one character.
const QUERY_LEN_MIN: usize = HEADER_LEN + QUERY_POST_LEN + 1 + 1;
/// The shortest event of a user variable: with one character for its name, and NULL.
const USER_VARIABLE_LEN_MIN: usize = HEADER_LEN + 4 + 1 + 1;
/// Its name. What is too long is cut off.
const VARIABLE_NAME: &[u8] = b"!dummyvar";
/// A status variable: the time zone.
const TIME_ZONE: u8 = 5;
const THREAD_SPECIFIC: u16 = 4;
const NO_USE: u16 = 8;

/// What the replica says it can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplicaCapabilities {
    pub(super) capability: u32,
    /// The replica requested annotations.
    pub(super) annotate: bool,
}

/// What the replica gets in place of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReplacedEvent {
    AsItIs,
    Instead(Vec<u8>),
    LeftOut,
}

/// What every replica gets as it is.
pub(super) fn is_for_all(kind: Kind) -> bool {
    !matches!(kind, Kind::ANNOTATE_ROWS | Kind::BINLOG_CHECKPOINT | Kind::MARIADB_GTID | Kind::MARIADB_GTID_LIST)
}

pub(super) fn passed(event: &[u8], checksum: Checksum, known: ReplicaCapabilities) -> ReplacedEvent {
    let ReplicaCapabilities { capability, annotate } = known;
    let Some(header) = Header::parse(event) else { return ReplacedEvent::AsItIs };
    let is_unknown = match header.kind {
        Kind::ANNOTATE_ROWS => !annotate && !(ANNOTATIONS..HOLES).contains(&capability),
        Kind::BINLOG_CHECKPOINT => capability < CHECKPOINTS,
        Kind::MARIADB_GTID | Kind::MARIADB_GTID_LIST => capability < GTIDS,
        _ => false,
    };
    debug_assert!(!is_unknown || !is_for_all(header.kind), "{header:?}");
    if !is_unknown {
        return ReplacedEvent::AsItIs;
    }
    let replaced = if header.kind == Kind::MARIADB_GTID {
        let is_standalone = event.get(GTID_FLAGS_AT).is_none_or(|flags| flags & STANDALONE != 0);
        match (is_standalone, capability >= HOLES) {
            (false, _) => begin(event, checksum),
            (true, false) => nothing(event, &header, checksum),
            (true, true) => return ReplacedEvent::LeftOut,
        }
    } else if capability >= HOLES {
        return ReplacedEvent::LeftOut;
    } else {
        nothing(event, &header, checksum)
    };
    // Shorter than anything that could stand there: no server writes such an event.
    replaced.map_or(ReplacedEvent::LeftOut, ReplacedEvent::Instead)
}

/// `BEGIN` in place of a GTID.
fn begin(event: &[u8], checksum: Checksum) -> Option<Vec<u8>> {
    let more = event.len().checked_sub(HEADER_LEN + GTID_BODY_LEN + checksum.len())?;
    let mut variables = Vec::new();
    if let Some(zeros) = more.checked_sub(2) {
        variables.extend([TIME_ZONE, u8::try_from(zeros).ok()?]);
        variables.resize(more, 0);
    } else if more > 0 {
        return None;
    }
    query(event, checksum, &variables, b"BEGIN")
}

/// A comment, or where that has no growth, a variable that nobody reads.
fn nothing(event: &[u8], header: &Header, checksum: Checksum) -> Option<Vec<u8>> {
    let length = event.len().checked_sub(checksum.len())?;
    if length >= QUERY_LEN_MIN {
        let mut text =
            format!("# Dummy event replacing event type {} that slave cannot handle.", header.kind.0).into_bytes();
        text.resize(length - (QUERY_LEN_MIN - 1), b' ');
        return query(event, checksum, &[], &text);
    }
    let name_length = (length + 1).checked_sub(USER_VARIABLE_LEN_MIN).filter(|length| *length > 0)?;
    let mut body = Vec::with_capacity(length);
    body.extend_from_slice(&u32::try_from(name_length).ok()?.to_le_bytes());
    body.extend_from_slice(VARIABLE_NAME.get(..name_length)?);
    body.push(1);
    finish(event, Kind::USER_VAR, &body, checksum)
}

fn query(event: &[u8], checksum: Checksum, variables: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    let mut body = vec![0; QUERY_POST_LEN - 2];
    body.extend_from_slice(&u16::try_from(variables.len()).ok()?.to_le_bytes());
    body.extend_from_slice(variables);
    body.push(0);
    body.extend_from_slice(text);
    finish(event, Kind::QUERY, &body, checksum)
}

/// With the header of the event that is replaced.
fn finish(event: &[u8], kind: Kind, body: &[u8], checksum: Checksum) -> Option<Vec<u8>> {
    let mut out = event.get(..HEADER_LEN)?.to_vec();
    *out.get_mut(4)? = kind.0;
    let flags = Header::parse(event)?.flags & !THREAD_SPECIFIC | NO_USE;
    out.get_mut(17..HEADER_LEN)?.copy_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(body);
    out.resize(out.len() + checksum.len(), 0);
    patch::fix_checksum(&mut out, checksum);
    (out.len() == event.len()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::encode::{self, Head};

    fn event(kind: Kind, body: &[u8]) -> Vec<u8> {
        encode::event(kind, &Head::new(7, 1, Checksum::Crc32), body)
    }

    #[test]
    fn by_capability() {
        let gtid = |flags: u8, length: usize| {
            let mut body = vec![0; length];
            body[12] = flags;
            event(Kind::MARIADB_GTID, &body)
        };
        let list = event(Kind::MARIADB_GTID_LIST, &[0; 20]);
        let empty_list = event(Kind::MARIADB_GTID_LIST, &[0; 8]);
        let checkpoint = event(Kind::BINLOG_CHECKPOINT, b"\x0d\0\0\0binlog.000001");
        let annotation = event(Kind::ANNOTATE_ROWS, b"INSERT INTO t VALUES (1)");
        let kind_of = |event: &[u8], capability: u32, annotate: bool| match passed(
            event,
            Checksum::Crc32,
            ReplicaCapabilities { capability, annotate },
        ) {
            ReplacedEvent::AsItIs => "as it is".to_owned(),
            ReplacedEvent::LeftOut => "left out".to_owned(),
            ReplacedEvent::Instead(other) => {
                assert_eq!(other.len(), event.len());
                assert_eq!(other[..4], event[..4]);
                let mut summed = other.clone();
                patch::fix_checksum(&mut summed, Checksum::Crc32);
                assert_eq!(summed, other);
                let text = other.get(HEADER_LEN + QUERY_POST_LEN + 1..other.len() - 4).unwrap_or_default();
                if other[4] == Kind::USER_VAR.0 {
                    "variable".to_owned()
                } else {
                    String::from_utf8_lossy(text).into_owned()
                }
            }
        };
        assert_eq!(kind_of(&gtid(0, 19), 0, false), "BEGIN");
        assert!(kind_of(&gtid(2, 21), 3, false).ends_with("BEGIN"));
        assert!(kind_of(&gtid(0, 30), 3, false).ends_with("BEGIN"));
        assert_eq!(kind_of(&gtid(1, 19), 1, false), "# Dum");
        assert_eq!(kind_of(&gtid(1, 19), 3, false), "left out");
        assert_eq!(kind_of(&gtid(0, 19), 4, false), "as it is");
        for (capability, want) in [(0, "# Dumm"), (1, "# Dumm"), (2, "left out"), (3, "left out"), (4, "as it is")] {
            assert_eq!(kind_of(&list, capability, false), want);
        }
        assert_eq!(kind_of(&empty_list, 0, false), "variable");
        for (capability, want) in [(0, "# D"), (1, "# D"), (2, "left out"), (3, "as it is"), (4, "as it is")] {
            assert_eq!(kind_of(&checkpoint, capability, false), want);
        }
        for (capability, want) in [(0, "# Dummy ev"), (1, "as it is"), (2, "left out"), (4, "left out")] {
            assert_eq!(kind_of(&annotation, capability, false), want);
            assert_eq!(kind_of(&annotation, capability, true), "as it is");
        }
    }

    #[test]
    fn any_event() {
        for kind in [Kind::MARIADB_GTID, Kind::MARIADB_GTID_LIST, Kind::BINLOG_CHECKPOINT, Kind::ANNOTATE_ROWS] {
            for length in 0..400 {
                let event = event(kind, &vec![0; length]);
                for capability in 0..5 {
                    for checksum in [Checksum::Off, Checksum::Crc32] {
                        if let ReplacedEvent::Instead(other) =
                            passed(&event, checksum, ReplicaCapabilities { capability, annotate: false })
                        {
                            assert_eq!(other.len(), event.len());
                        }
                    }
                }
            }
        }
    }
}
