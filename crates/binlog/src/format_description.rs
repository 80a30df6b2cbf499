//! Format description: the first event of a log, which says how the others are laid out and summed.
//!
//! Layout: version u16, server version 50 bytes NUL-padded, created u32, header length u8, one post-header length per
//! event type from 1 on; servers that know checksums (MySQL 5.6.1+, MariaDB 5.3+) add the algorithm u8 and, whatever
//! the algorithm, four bytes of checksum. The checksum is computed with the in-use flag cleared, because the server
//! clears that flag in place when it closes the log.

use bytes::Bytes;

use crate::corruption::{Corruption, CorruptionKind};
use crate::event::{CHECKSUM_LEN, Checksum, Event, Flavour, check_len, verify_crc};
use crate::header::{HEADER_LEN, Header};
use crate::kind::Kind;

/// Bytes of the body before the post-header lengths.
const FIXED_LEN: usize = 2 + 50 + 4 + 1;

/// How the events after it are laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatDescription {
    /// Always 4: older formats are refused.
    pub binlog_version: u16,
    /// For example `9.7.0` or `10.11.6-MariaDB-0+deb12u1-log`.
    pub server_version: String,
    /// Whose server it is.
    pub flavour: Flavour,
    /// Length of the common header in bytes, always 19.
    pub header_len: u8,
    /// Post-header lengths in bytes, that of type 1 first.
    pub post_header_lens: Vec<u8>,
    /// How the events after it are summed.
    pub checksum: Checksum,
    /// Seconds since 1970 when the log was created after a server start, 0 after a mere rotation: a replica drops
    /// its temporary tables when it is not 0.
    pub created: u32,
    /// The log is being written, or its writer crashed.
    pub in_use: bool,
}

impl FormatDescription {
    /// Decodes a whole event and checks its CRC32.
    ///
    /// When the event says that checksums are off, its own four bytes are not checked: servers leave them stale when
    /// they strip checksums for a replica.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event_bytes: &Bytes) -> Result<(Event, FormatDescription), Corruption> {
        let header = check_len(event_bytes)?;
        if header.kind != Kind::FORMAT_DESCRIPTION {
            let what = CorruptionKind::Kind { expected: Kind::FORMAT_DESCRIPTION.name(), got: header.kind };
            return Err(Corruption::new(4, what));
        }
        let bare = Event::trusted(header, event_bytes.clone(), 0);
        let mut r = bare.reader();
        let binlog_version = r.u16("binlog version")?;
        if binlog_version != 4 {
            return Err(r.err(CorruptionKind::Version(binlog_version)));
        }
        let raw_version = r.bytes(50, "server version")?;
        let raw_version = raw_version.split(|b| *b == 0).next().unwrap_or_default();
        let server_version = r.utf8(raw_version, "server version")?;
        let created = r.u32("created")?;
        let header_len = r.u8("header length")?;
        if usize::from(header_len) != HEADER_LEN {
            return Err(r.invalid("header length", header_len.into()));
        }
        let mut rest = r.rest();
        let mut checksum = Checksum::Off;
        let mut trailer_len = 0;
        if knows_checksums(&server_version) {
            let end = event_bytes.len() as u64;
            let truncated = |have: usize| {
                let want = (1 + CHECKSUM_LEN) as u64;
                Corruption::new(end, CorruptionKind::Truncated { field: "checksum algorithm", want, have: have as u64 })
            };
            let (front, _) = rest.split_last_chunk::<CHECKSUM_LEN>().ok_or_else(|| truncated(rest.len()))?;
            let (algorithm, lens) = front.split_last().ok_or_else(|| truncated(0))?;
            checksum = match algorithm {
                0 => Checksum::Off,
                1 => Checksum::Crc32,
                other => return Err(Corruption::new(end - 5, CorruptionKind::ChecksumAlgorithm(*other))),
            };
            rest = lens;
            trailer_len = CHECKSUM_LEN;
        }
        if checksum == Checksum::Crc32 {
            // Bytes 17 and 18 are the flags.
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(event_bytes.get(..17).unwrap_or_default());
            hasher.update(&(header.flags & !Header::FLAG_BINLOG_IN_USE).to_le_bytes());
            verify_crc(event_bytes, hasher, HEADER_LEN)?;
        }
        // Its own post-header length is known: a damaged length or version, which could turn checksums off, shows here.
        let own = rest.get(usize::from(Kind::FORMAT_DESCRIPTION.0) - 1).copied().unwrap_or(0);
        if usize::from(own) != FIXED_LEN + rest.len() {
            return Err(Corruption::new(
                (HEADER_LEN + FIXED_LEN) as u64,
                CorruptionKind::Invalid { field: "post-header length of a format description", value: own.into() },
            ));
        }
        // A build may hide its name: only MariaDB's table of lengths reaches past 160.
        let mariadb = server_version.contains("MariaDB") || rest.len() >= usize::from(Kind::ANNOTATE_ROWS.0);
        let format = FormatDescription {
            binlog_version,
            flavour: if mariadb { Flavour::MariaDb } else { Flavour::MySql },
            server_version,
            header_len,
            post_header_lens: rest.to_vec(),
            checksum,
            created,
            in_use: header.flags & Header::FLAG_BINLOG_IN_USE != 0,
        };
        Ok((Event::trusted(header, event_bytes.clone(), trailer_len), format))
    }

    /// Post-header length of `kind` in bytes, 0 when the writing server did not know the type.
    pub fn post_header_len(&self, kind: Kind) -> u8 {
        let index = usize::from(kind.0).checked_sub(1);
        index.and_then(|index| self.post_header_lens.get(index)).copied().unwrap_or(0)
    }

    /// Major, minor and patch number of the server; a MariaDB version's `5.5.5-` prefix is not counted.
    pub fn version_number(&self) -> (u32, u32, u32) {
        version_number(&self.server_version)
    }
}

fn version_number(text: &str) -> (u32, u32, u32) {
    let text = match text.strip_prefix("5.5.5-") {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => rest,
        _ => text,
    };
    let mut parts = text.split('.').map(|part| {
        let digits = part.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        digits.parse().unwrap_or(0)
    });
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
}

fn knows_checksums(server_version: &str) -> bool {
    if server_version.contains("MariaDB") {
        version_number(server_version) >= (5, 3, 0)
    } else {
        version_number(server_version) >= (5, 6, 1)
    }
}
