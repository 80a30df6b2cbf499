//! How a file ends, and what may follow it. For logs whose GTIDs do not tell whether something is missing between two files; knows no files.
//!
//! Observed with MySQL 5.7 and 9.7, MariaDB 10.11: a server ends a file that it goes on from with ROTATE, and writes no time of a start (`created`)
//! into the next format description; it ends its last file with STOP, and the next one begins with the time of its start. Killed, it writes
//! neither; when MySQL starts again it clears the in-use mark of the file that it left, MariaDB leaves it set.

use crate::format_description::FormatDescription;
use crate::header::Header;
use crate::kind::Kind;

/// What has been seen of a file, or of a part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ending {
    in_use: bool,
    /// The last event is ROTATE or STOP.
    closed: bool,
    /// MariaDB's list, or a transaction that has one.
    has_gtids: bool,
    has_anonymous: bool,
    any: bool,
}

/// What the beginning of the next file says of the end of the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextFile {
    /// Nothing is missing, or the next file's list of GTIDs says what.
    Whole,
    /// The server went on from it in another way than the file says: its end is missing.
    Cut,
    /// The copy of a file that its server still wrote.
    StillWritten,
    /// Its server was started again after it. Left by a crash, it is whole; after an ordinary end, its own end is missing. Nothing tells.
    CrashedOrCut,
}

impl Ending {
    /// Takes note of the next event. `format` is the one that holds for it.
    pub fn observe(&mut self, header: &Header, format: &FormatDescription) {
        match header.kind {
            Kind::FORMAT_DESCRIPTION if !self.any => self.in_use = format.in_use,
            // All of MariaDB's transactions have GTIDs.
            Kind::GTID | Kind::GTID_TAGGED | Kind::MARIADB_GTID | Kind::MARIADB_GTID_LIST => self.has_gtids = true,
            Kind::ANONYMOUS_GTID => self.has_anonymous = true,
            _ => {}
        }
        self.closed = matches!(header.kind, Kind::ROTATE | Kind::STOP);
        self.any = true;
    }

    /// This part of a file, and the one behind it.
    #[must_use]
    pub fn and(self, later: Self) -> Self {
        Self {
            in_use: self.in_use || later.in_use,
            closed: if later.any { later.closed } else { self.closed },
            has_gtids: self.has_gtids || later.has_gtids,
            has_anonymous: self.has_anonymous || later.has_anonymous,
            any: self.any || later.any,
        }
    }

    /// The next file's list says what is missing here.
    pub fn is_told_by_gtids(&self) -> bool {
        self.has_gtids && !self.has_anonymous
    }

    /// Judges by the first event of the next file.
    pub fn followed_by(&self, first: &Header, format: &FormatDescription) -> NextFile {
        // A replica's own log of what it received is not always ended, and its format descriptions say nothing of a start.
        let is_relay_log = first.flags & Header::FLAG_RELAY_LOG != 0;
        if !self.any || self.closed || self.is_told_by_gtids() || is_relay_log {
            NextFile::Whole
        } else if self.in_use {
            NextFile::StillWritten
        } else if format.created == 0 {
            NextFile::Cut
        } else {
            NextFile::CrashedOrCut
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{FormatSpec, Head, event, format_description};
    use crate::event::{Checksum, Flavour};

    fn format(created: u32, in_use: bool, flags: u16) -> (Header, FormatDescription) {
        let spec = FormatSpec {
            server_version: "9.7.0".into(),
            flavour: Flavour::MySql,
            checksum: Checksum::Off,
            created,
            in_use,
        };
        let bytes = format_description(&Head { flags, ..Head::new(1, 1, Checksum::Off) }, &spec);
        let (event, format) = FormatDescription::decode(&bytes.into()).expect("a format description");
        (*event.header(), format)
    }

    fn ending(in_use: bool, kinds: &[Kind]) -> Ending {
        let (header, format) = format(1, in_use, 0);
        let mut ending = Ending::default();
        ending.observe(&header, &format);
        for kind in kinds {
            let bytes = event(*kind, &Head::new(1, 1, Checksum::Off), &[0; 30]);
            ending.observe(&Header::parse(&bytes).expect("a header"), &format);
        }
        ending
    }

    #[test]
    fn what_the_next_file_says() {
        use NextFile::*;
        let (rotated, started) = (0, 1_700_000_000);
        for (in_use, kinds, created, wanted) in [
            (false, &[Kind::ANONYMOUS_GTID, Kind::XID, Kind::ROTATE][..], rotated, Whole),
            (false, &[Kind::ANONYMOUS_GTID, Kind::XID, Kind::STOP], started, Whole),
            (true, &[Kind::ANONYMOUS_GTID, Kind::XID, Kind::ROTATE], rotated, Whole),
            (false, &[Kind::ANONYMOUS_GTID, Kind::XID], rotated, Cut),
            (false, &[Kind::QUERY, Kind::XID], rotated, Cut),
            (false, &[], rotated, Cut),
            (false, &[Kind::PREVIOUS_GTIDS], rotated, Cut),
            (false, &[Kind::ANONYMOUS_GTID, Kind::XID], started, CrashedOrCut),
            (true, &[Kind::ANONYMOUS_GTID, Kind::XID], rotated, StillWritten),
            (true, &[Kind::ANONYMOUS_GTID, Kind::XID], started, StillWritten),
            (false, &[Kind::GTID, Kind::XID], rotated, Whole),
            (false, &[Kind::GTID, Kind::XID, Kind::ANONYMOUS_GTID, Kind::XID], rotated, Cut),
            (true, &[Kind::MARIADB_GTID_LIST], started, Whole),
        ] {
            let (header, next) = format(created, true, 0);
            let of = |part: &[Kind]| ending(in_use, part);
            assert_eq!(of(kinds).followed_by(&header, &next), wanted, "{in_use} {kinds:?} {created}");
            // A part of it, and the rest.
            let (front, mut back) = (of(&[]), Ending::default());
            for kind in kinds {
                let bytes = event(*kind, &Head::new(1, 1, Checksum::Off), &[0; 30]);
                back.observe(&Header::parse(&bytes).expect("a header"), &next);
            }
            assert_eq!(front.and(back), of(kinds), "{kinds:?}");
        }
    }

    #[test]
    fn replicas_relay_logs_and_a_first_file_are_not_judged() {
        let (header, next) = format(0, false, Header::FLAG_RELAY_LOG);
        assert_eq!(ending(false, &[Kind::XID]).followed_by(&header, &next), NextFile::Whole);
        let (header, next) = format(0, false, 0);
        assert_eq!(Ending::default().followed_by(&header, &next), NextFile::Whole);
    }
}
