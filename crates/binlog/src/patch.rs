//! Changes fields of an event in place and mends its checksum.
//!
//! GTID events do not survive decode and encode byte for byte across versions, so a relay patches their bytes.

use crate::event::{CHECKSUM_LEN, Checksum};
use crate::gtid::{self, LAST_COMMITTED_OFFSET, SEQUENCE_NUMBER_OFFSET};
use crate::header::{HEADER_LEN, Header};
use crate::kind::Kind;
use crate::mariadb_gtid::MariaDbGtid;
use crate::varlen;

/// Of a MARIADB_GTID event: behind the number and the domain.
const MARIADB_FLAGS_AT: usize = HEADER_LEN + 8 + 4;
/// Servers fill shorter bodies up to 19 bytes with zeros.
const MARIADB_PADDING_MAX: usize = 19 - (8 + 4 + 1);
/// Of a header.
const LENGTH_AT: usize = 9;

/// What of MySQL's logical clock a GTID event has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockRoom {
    /// A `last_committed` up to this one.
    UpTo(i64),
    /// Nothing: MySQL 5.6 wrote it.
    Nothing,
}

impl ClockRoom {
    /// `body`: without header and checksum. `None`: it is no such event, or none that is understood.
    pub fn of(kind: Kind, body: &[u8]) -> Option<Self> {
        match kind {
            Kind::GTID if body.len() == gtid::BODY_5_6 => Some(Self::Nothing),
            Kind::GTID | Kind::ANONYMOUS_GTID => {
                let has =
                    body.get(gtid::BODY_5_6) == Some(&gtid::CLOCK_TYPE) && body.len() >= SEQUENCE_NUMBER_OFFSET + 8;
                has.then_some(Self::UpTo(i64::MAX))
            }
            Kind::GTID_TAGGED => {
                let bits = gtid::tagged_last_committed(body)?.len() as u32 * 7 - 1;
                Some(Self::UpTo(1i64.checked_shl(bits).map_or(i64::MAX, |above| above.wrapping_sub(1))))
            }
            _ => None,
        }
    }
}

/// Why an event could not be patched; it was left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The bytes are no event, or end before the field.
    #[error("the event is too short for the field")]
    TooShort,
    /// The field is an integer of variable length, and the value needs more bytes.
    #[error("the field has no room for {0}")]
    TooLarge(i64),
    /// Events of this type have no such field at a fixed place.
    #[error("an event of type {0} has no such field at a fixed place")]
    Kind(Kind),
}

/// An event being patched: set fields, then [`Patch::finish`] writes the checksum.
#[derive(Debug)]
pub struct Patch<'a> {
    event: &'a mut [u8],
    kind: Kind,
    checksum: Checksum,
}

impl<'a> Patch<'a> {
    /// `event` is one whole event, summed as `checksum` says.
    ///
    /// # Errors
    /// [`PatchError::TooShort`] when there is no room for a header and the checksum.
    pub fn new(event: &'a mut [u8], checksum: Checksum) -> Result<Self, PatchError> {
        let header = Header::parse(event).ok_or(PatchError::TooShort)?;
        if event.len() < HEADER_LEN + checksum.len() {
            return Err(PatchError::TooShort);
        }
        Ok(Patch { event, kind: header.kind, checksum })
    }

    /// The header's timestamp, seconds since 1970.
    pub fn timestamp(&mut self, seconds: u32) -> &mut Self {
        self.header(0, &seconds.to_le_bytes())
    }

    /// The header's server id.
    pub fn server_id(&mut self, id: u32) -> &mut Self {
        self.header(5, &id.to_le_bytes())
    }

    /// The header's position of the next event.
    pub fn log_pos(&mut self, position: u32) -> &mut Self {
        self.header(13, &position.to_le_bytes())
    }

    /// The header's flags.
    pub fn flags(&mut self, flags: u16) -> &mut Self {
        self.header(17, &flags.to_le_bytes())
    }

    /// `last_committed` and `sequence_number` of a GTID or ANONYMOUS_GTID event.
    ///
    /// # Errors
    /// [`PatchError`] when the event has no such fields at a fixed place.
    pub fn logical_clock(&mut self, last_committed: i64, sequence_number: i64) -> Result<&mut Self, PatchError> {
        self.has_logical_clock()?;
        self.set(HEADER_LEN + LAST_COMMITTED_OFFSET, &last_committed.to_le_bytes());
        self.set(HEADER_LEN + SEQUENCE_NUMBER_OFFSET, &sequence_number.to_le_bytes());
        Ok(self)
    }

    /// `last_committed` alone, of a GTID_TAGGED event as well: there it keeps its length, as servers take any that is long enough.
    ///
    /// # Errors
    /// As [`Patch::logical_clock`], and [`PatchError::TooLarge`]: see [`ClockRoom`].
    pub fn last_committed(&mut self, last_committed: i64) -> Result<&mut Self, PatchError> {
        if self.kind == Kind::GTID_TAGGED {
            let end = self.event.len() - self.checksum.len();
            let body = self.event.get_mut(HEADER_LEN..end).ok_or(PatchError::TooShort)?;
            let at = gtid::tagged_last_committed(body).ok_or(PatchError::TooShort)?;
            let field = body.get_mut(at).ok_or(PatchError::TooShort)?;
            let fits = varlen::fill_i64(field, last_committed);
            return if fits { Ok(self) } else { Err(PatchError::TooLarge(last_committed)) };
        }
        self.has_logical_clock()?;
        self.set(HEADER_LEN + LAST_COMMITTED_OFFSET, &last_committed.to_le_bytes());
        Ok(self)
    }

    /// See [`ClockRoom::of`].
    pub fn clock_room(&self) -> Option<ClockRoom> {
        ClockRoom::of(self.kind, self.event.get(HEADER_LEN..self.event.len() - self.checksum.len())?)
    }

    pub fn is_mariadb(&self) -> bool {
        self.kind == Kind::MARIADB_GTID
    }

    /// Flags of a MARIADB_GTID event (`MariaDbGtid::FL_*`): those of the mask become these, the others stay.
    ///
    /// # Errors
    /// [`PatchError`] when the event has no such field.
    pub fn gtid_flags(&mut self, mask: u8, flags: u8) -> Result<&mut Self, PatchError> {
        let old = self.mariadb_flags()?;
        self.set(MARIADB_FLAGS_AT, &[old & !mask | flags & mask]);
        Ok(self)
    }

    /// Another commit id of a MARIADB_GTID event, if it has one; whether it has.
    ///
    /// # Errors
    /// [`PatchError`] when the event has no such field.
    pub fn commit_id(&mut self, commit_id: u64) -> Result<bool, PatchError> {
        if self.mariadb_flags()? & MariaDbGtid::FL_GROUP_COMMIT_ID == 0 {
            return Ok(false);
        }
        if MARIADB_FLAGS_AT + 1 + 8 > self.event.len() - self.checksum.len() {
            return Err(PatchError::TooShort);
        }
        self.set(MARIADB_FLAGS_AT + 1, &commit_id.to_le_bytes());
        Ok(true)
    }

    fn mariadb_flags(&self) -> Result<u8, PatchError> {
        if self.kind != Kind::MARIADB_GTID {
            return Err(PatchError::Kind(self.kind));
        }
        let body = self.event.get(..self.event.len() - self.checksum.len());
        body.and_then(|body| body.get(MARIADB_FLAGS_AT)).copied().ok_or(PatchError::TooShort)
    }

    /// Writes the checksum.
    pub fn finish(&mut self) {
        fix_checksum(self.event, self.checksum);
    }

    fn has_logical_clock(&self) -> Result<(), PatchError> {
        if self.kind != Kind::GTID && self.kind != Kind::ANONYMOUS_GTID {
            return Err(PatchError::Kind(self.kind));
        }
        let end = self.event.len() - self.checksum.len();
        if HEADER_LEN + SEQUENCE_NUMBER_OFFSET + 8 > end { Err(PatchError::TooShort) } else { Ok(()) }
    }

    fn header(&mut self, at: usize, value: &[u8]) -> &mut Self {
        self.set(at, value);
        self
    }

    fn set(&mut self, at: usize, value: &[u8]) {
        if let Some(field) = self.event.get_mut(at..at + value.len()) {
            field.copy_from_slice(value);
        }
    }
}

/// A MARIADB_GTID event without a commit id → the same with one, as a server would write it: some bytes longer. Its position of the next event stays.
///
/// # Errors
/// [`PatchError`] when it is no such event, or has one already.
pub fn with_commit_id(event: &[u8], checksum: Checksum, commit_id: u64) -> Result<Vec<u8>, PatchError> {
    let header = Header::parse(event).ok_or(PatchError::TooShort)?;
    let flags = event.get(MARIADB_FLAGS_AT).copied().ok_or(PatchError::TooShort)?;
    let end = event.len().checked_sub(checksum.len()).ok_or(PatchError::TooShort)?;
    if header.kind != Kind::MARIADB_GTID || flags & MariaDbGtid::FL_GROUP_COMMIT_ID != 0 {
        return Err(PatchError::Kind(header.kind));
    }
    let (before, rest) = (event.get(..MARIADB_FLAGS_AT), event.get(MARIADB_FLAGS_AT + 1..end));
    let (before, rest) = before.zip(rest).ok_or(PatchError::TooShort)?;
    let mut longer = Vec::with_capacity(event.len() + 8);
    longer.extend_from_slice(before);
    longer.push(flags | MariaDbGtid::FL_GROUP_COMMIT_ID);
    longer.extend_from_slice(&commit_id.to_le_bytes());
    let is_padding = rest.len() <= MARIADB_PADDING_MAX && rest.iter().all(|&byte| byte == 0);
    if !is_padding {
        longer.extend_from_slice(rest);
    }
    Ok(resized(longer, checksum))
}

/// A GTID event of MySQL 5.6 → the same as MySQL 5.7 writes it, with a logical clock: 17 bytes longer. Its position of the next event stays.
///
/// # Errors
/// [`PatchError`] when it is no such event.
pub fn with_logical_clock(
    event: &[u8],
    checksum: Checksum,
    last_committed: i64,
    sequence_number: i64,
) -> Result<Vec<u8>, PatchError> {
    let header = Header::parse(event).ok_or(PatchError::TooShort)?;
    let end = event.len().checked_sub(checksum.len()).ok_or(PatchError::TooShort)?;
    let body = event.get(HEADER_LEN..end).ok_or(PatchError::TooShort)?;
    if ClockRoom::of(header.kind, body) != Some(ClockRoom::Nothing) {
        return Err(PatchError::Kind(header.kind));
    }
    let mut longer = event.get(..end).unwrap_or_default().to_vec();
    longer.push(gtid::CLOCK_TYPE);
    longer.extend_from_slice(&last_committed.to_le_bytes());
    longer.extend_from_slice(&sequence_number.to_le_bytes());
    Ok(resized(longer, checksum))
}

/// A body that was changed → the event, with its length and its checksum.
fn resized(mut event: Vec<u8>, checksum: Checksum) -> Vec<u8> {
    event.resize(event.len() + checksum.len(), 0);
    let length = (event.len() as u32).to_le_bytes();
    if let Some(field) = event.get_mut(LENGTH_AT..LENGTH_AT + length.len()) {
        field.copy_from_slice(&length);
    }
    fix_checksum(&mut event, checksum);
    event
}

/// Computes the CRC32 of a whole event anew, when it has one. A format description's is computed without its in-use flag.
pub fn fix_checksum(event: &mut [u8], checksum: Checksum) {
    if checksum == Checksum::Off {
        return;
    }
    let is_format = event.get(4) == Some(&Kind::FORMAT_DESCRIPTION.0);
    let Some((summed, stored)) = event.split_last_chunk_mut::<CHECKSUM_LEN>() else {
        return;
    };
    let mut hasher = crc32fast::Hasher::new();
    let flags = summed.get(17).copied().unwrap_or(0);
    if is_format && summed.len() > 17 {
        hasher.update(summed.get(..17).unwrap_or_default());
        hasher.update(&[flags & !(Header::FLAG_BINLOG_IN_USE as u8)]);
        hasher.update(summed.get(18..).unwrap_or_default());
    } else {
        hasher.update(summed);
    }
    *stored = hasher.finalize().to_le_bytes();
}
