//! Artificial events: a server makes them for one replica, and they are in no file. Pure.

use std::borrow::Cow;

use binlog::encode::{self, Head};
use binlog::gtid_list::MariaDbGtidEntry;
use binlog::{Checksum, HEADER_LEN, Header, Kind, MariaDbGtidList, patch};

use super::request::Vendor;
use crate::inventory::BinlogState;

/// Where the time stands at which a format description's file was created: behind the version and its text.
const CREATED_AT: usize = HEADER_LEN + 2 + 50;

/// The ROTATE event before a file, or before a position in it.
pub(super) fn rotate(server_id: u32, checksum: Checksum, file: &str, position: u64) -> Vec<u8> {
    let head = Head::new(0, server_id, checksum).with_flags(Header::FLAG_ARTIFICIAL);
    encode::rotate(&head, position, file)
}

/// Nothing more has come, or what came is not for this replica.
pub(super) fn heartbeat(vendor: Vendor, server_id: u32, checksum: Checksum, file: &str, position: u64) -> Vec<u8> {
    let head = Head::new(0, server_id, checksum);
    if let Vendor::MySql { heartbeat_v2: true, .. } = vendor {
        return encode::heartbeat_v2(&head, position, file);
    }
    let mut body = Vec::with_capacity(8 + file.len());
    let is_far = position > u64::from(u32::MAX);
    if is_far && matches!(vendor, Vendor::MariaDb { .. }) {
        body.extend_from_slice(&position.to_le_bytes());
    }
    body.extend_from_slice(file.as_bytes());
    let mut event = encode::event(Kind::HEARTBEAT, &head, &body);
    let shown = match vendor {
        Vendor::MariaDb { .. } if is_far => 0,
        _ => position as u32,
    };
    set(&mut event, 13, &shown.to_le_bytes());
    patch::fix_checksum(&mut event, checksum);
    event
}

/// MariaDB: how far the stream is, after the domain in which a replica goes on was reached, or with the mark that it has come to where it wanted to stop.
pub(super) fn gtid_list(server_id: u32, checksum: Checksum, state: &BinlogState, flags: u8, position: u64) -> Vec<u8> {
    let entries = state
        .iter()
        .map(|gtid| MariaDbGtidEntry { domain_id: gtid.domain, server_id: gtid.server, seq_no: gtid.number })
        .collect();
    let head = Head::new(0, server_id, checksum).with_flags(Header::FLAG_ARTIFICIAL);
    let mut event = encode::mariadb_gtid_list(&head, &MariaDbGtidList { flags, entries });
    set(&mut event, 13, &(position as u32).to_le_bytes());
    patch::fix_checksum(&mut event, checksum);
    event
}

/// Fields that are cleared in a stream's first format description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClearedFields {
    /// Only that the file is open.
    Nothing,
    /// That the server has started: a replica would drop its temporary tables.
    Created,
    /// And where it stands: a replica would go back to there.
    CreatedAndPosition,
}

/// A file's format description, as a replica gets it.
pub(super) fn format(event: &[u8], checksum: Checksum, cleared: ClearedFields) -> Cow<'_, [u8]> {
    let is_open = event.get(17).is_some_and(|flags| u16::from(*flags) & Header::FLAG_BINLOG_IN_USE != 0);
    if cleared == ClearedFields::Nothing && !is_open {
        return Cow::Borrowed(event);
    }
    let mut event = event.to_vec();
    if let Some(flags) = event.get_mut(17) {
        *flags &= !(Header::FLAG_BINLOG_IN_USE as u8);
    }
    if cleared != ClearedFields::Nothing {
        set(&mut event, CREATED_AT, &[0; 4]);
    }
    if cleared == ClearedFields::CreatedAndPosition {
        set(&mut event, 13, &[0; 4]);
    }
    patch::fix_checksum(&mut event, checksum);
    Cow::Owned(event)
}

fn set(event: &mut [u8], at: usize, value: &[u8]) {
    if let Some(field) = event.get_mut(at..at + value.len()) {
        field.copy_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::heartbeat::Heartbeat;
    use binlog::{Event, FormatDescription};

    const GOLDEN: &[u8] = include_bytes!("../../../binlog/tests/golden/mysql-9.7/rows.binlog");

    fn format_event() -> Vec<u8> {
        let header = Header::parse(&GOLDEN[4..]).unwrap();
        GOLDEN[4..4 + header.event_len as usize].to_vec()
    }

    #[test]
    fn heartbeats_of_both_versions_and_beyond_4_gib() {
        let (_, format) = FormatDescription::decode(&format_event().into()).unwrap();
        let mysql = |heartbeat_v2| Vendor::MySql { heartbeat_v2, skips_tagged: false };
        let mariadb = Vendor::MariaDb { annotate: false, capability: 4 };
        let far = (5 << 32) + 7;
        for (vendor, position, read) in [
            (mysql(false), 1234, 1234),
            (mysql(false), far, 7),
            (mysql(true), far, far),
            (mariadb, 1234, 1234),
            (mariadb, far, far),
        ] {
            for checksum in [Checksum::Off, Checksum::Crc32] {
                let bytes = heartbeat(vendor, 1, checksum, "b.000001", position);
                let event = Event::parse(bytes.into(), checksum).unwrap();
                let flavour = if vendor == mariadb { binlog::Flavour::MariaDb } else { binlog::Flavour::MySql };
                let format = FormatDescription { flavour, ..format.clone() };
                let decoded = Heartbeat::decode(&event, &format).unwrap();
                assert_eq!(decoded, Heartbeat { file: "b.000001".to_owned(), position: read }, "{vendor:?} {position}");
                assert_eq!(event.header().timestamp, 0);
            }
        }
    }

    #[test]
    fn a_format_description_loses_what_it_must_not_say() {
        let mut open = format_event();
        open[17] |= 1;
        let (_, before) = FormatDescription::decode(&open.clone().into()).unwrap();
        assert!(before.in_use);
        for (cleared, created, position) in [
            (ClearedFields::Nothing, before.created, true),
            (ClearedFields::Created, 0, true),
            (ClearedFields::CreatedAndPosition, 0, false),
        ] {
            let sent = format(&open, before.checksum, cleared).into_owned();
            let (event, after) = FormatDescription::decode(&sent.into()).unwrap();
            assert_eq!((after.in_use, after.created), (false, created), "{cleared:?}");
            assert_eq!(event.header().log_pos != 0, position, "{cleared:?}");
        }
        let closed = format_event();
        assert!(matches!(format(&closed, before.checksum, ClearedFields::Nothing), Cow::Borrowed(_)));
    }
}
