//! Format descriptions as MySQL 8.0 to 9.7 and MariaDB 10.5 to 11.8 write them.

use crate::event::{Checksum, Flavour};
use crate::format_description::FormatDescription;
use crate::header::{HEADER_LEN, Header};
use crate::kind::Kind;

use super::{Head, build};

/// What a format description says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatSpec {
    /// At most 49 bytes; the rest is cut off. MariaDB's must contain `MariaDB`.
    pub server_version: String,
    /// Whose event types to announce.
    pub flavour: Flavour,
    /// How the events after it are summed.
    pub checksum: Checksum,
    /// Seconds since 1970 when the server started this log, 0 for a mere rotation.
    pub created: u32,
    /// The log is still being written.
    pub in_use: bool,
}

/// Post-header lengths of MySQL 8.0, types 1 to 41.
const MYSQL: [u8; 41] = [
    0, 13, 0, 8, 0, 0, 0, 0, 4, 0, 4, 0, 0, 0, 98, 0, 4, 26, 8, 0, 0, 0, 8, 8, 8, 2, 0, 0, 0, 10, 10, 10, 42, 42, 0,
    18, 52, 0, 10, 40, 0,
];

/// Post-header lengths of MariaDB, types 160 to 171.
const MARIADB: [u8; 12] = [0, 4, 19, 4, 0, 13, 8, 8, 8, 10, 10, 10];

/// Types of MariaDB's table.
const MARIADB_TYPES: usize = 171;

/// A FORMAT_DESCRIPTION event. It always carries a checksum, whatever `head.checksum` says.
pub fn format_description(head: &Head, spec: &FormatSpec) -> Vec<u8> {
    let lens = post_header_lens(spec);
    let flags = head.flags & !Header::FLAG_BINLOG_IN_USE;
    let head = Head { checksum: Checksum::Crc32, flags, ..*head };
    let mut event = build(Kind::FORMAT_DESCRIPTION, &head, 57 + lens.len() + 1, |out| {
        out.extend_from_slice(&4u16.to_le_bytes());
        let version = spec.server_version.as_bytes();
        out.extend(version.iter().copied().chain(std::iter::repeat(0)).take(50));
        // The last byte ends the text.
        if let Some(last) = out.last_mut() {
            *last = 0;
        }
        out.extend_from_slice(&spec.created.to_le_bytes());
        out.push(HEADER_LEN as u8);
        out.extend_from_slice(&lens);
        out.push(match spec.checksum {
            Checksum::Off => 0,
            Checksum::Crc32 => 1,
        });
    });
    // The flag is set after the checksum was computed.
    if spec.in_use
        && let Some(low) = event.get_mut(17)
    {
        *low |= Header::FLAG_BINLOG_IN_USE as u8;
    }
    event
}

fn post_header_lens(spec: &FormatSpec) -> Vec<u8> {
    let mut lens = MYSQL.to_vec();
    match spec.flavour {
        Flavour::MySql => {
            let digits =
                |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default().parse::<u32>();
            let mut parts = spec.server_version.split('.').map(|part| digits(part).unwrap_or(0));
            let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
            if version >= (8, 3) {
                lens.push(0);
            }
        }
        Flavour::MariaDb => {
            // MySQL's own types after 32 are not MariaDB's.
            for (index, len) in lens.iter_mut().enumerate().skip(32) {
                *len = if (38..41).contains(&index) { 10 } else { 0 };
            }
            for (kind, len) in [(Kind::START_V3, 56), (Kind::ROTATE, 8), (Kind::LOAD, 18), (Kind::CREATE_FILE, 4)] {
                set(&mut lens, kind, len);
            }
            for (kind, len) in [(Kind::EXEC_LOAD, 4), (Kind::NEW_LOAD, 18), (Kind::SLAVE, 0)] {
                set(&mut lens, kind, len);
            }
            lens.resize(usize::from(Kind::ANNOTATE_ROWS.0) - 1, 0);
            lens.extend_from_slice(&MARIADB);
            debug_assert_eq!(lens.len(), MARIADB_TYPES);
        }
    }
    // The description's own post-header: everything before the checksum algorithm.
    let own = 57 + lens.len();
    set(&mut lens, Kind::FORMAT_DESCRIPTION, own as u8);
    lens
}

fn set(lens: &mut [u8], kind: Kind, len: u8) {
    if let Some(slot) = usize::from(kind.0).checked_sub(1).and_then(|index| lens.get_mut(index)) {
        *slot = len;
    }
}

impl FormatSpec {
    /// A fresh log of this server.
    pub fn new(server_version: impl Into<String>, flavour: Flavour, checksum: Checksum) -> FormatSpec {
        FormatSpec { server_version: server_version.into(), flavour, checksum, created: 0, in_use: false }
    }

    /// The decoded description that readers of the event will have.
    pub fn describe(&self) -> FormatDescription {
        FormatDescription {
            binlog_version: 4,
            server_version: self.server_version.clone(),
            flavour: self.flavour,
            header_len: HEADER_LEN as u8,
            post_header_lens: post_header_lens(self),
            checksum: self.checksum,
            created: self.created,
            in_use: self.in_use,
        }
    }
}
