//! Checks that a log's GTIDs are continuous: each file begins with the GTIDs of the files before it, and no GTID comes twice. Pure.

use binlog::{Corruption, Event, FormatDescription, Kind, LoggedGtids};

/// Why the GTIDs of a log do not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GtidBreak {
    /// The source has forgotten transactions: it was reset, or restored.
    #[error("the file begins without the GTIDs {0}, which the files before it have")]
    Lost(String),
    /// The source has transactions that are in none of its files.
    #[error("the file begins after the GTIDs {0}, which no file before it has")]
    Missing(String),
    /// A GTID that the log has already.
    #[error("{0} is in the log twice")]
    Twice(String),
    /// An event that cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

/// The GTIDs of a log up to some place.
#[derive(Debug, Clone, Default)]
pub struct Continuity {
    logged: LoggedGtids,
    /// A file's list has been seen: `logged` is complete.
    is_complete: bool,
    /// The list of the present file has been seen.
    has_list: bool,
}

impl Continuity {
    /// The next file begins.
    pub fn next_file(&mut self) {
        self.has_list = false;
    }

    /// The present file's list has come: what comes behind it is the file's own.
    pub fn has_list(&self) -> bool {
        self.has_list
    }

    /// All GTIDs of the log so far.
    pub fn logged(&self) -> &LoggedGtids {
        &self.logged
    }

    /// Takes note of the next stored event.
    pub fn observe(&mut self, event: &Event, format: &FormatDescription) -> Result<(), GtidBreak> {
        let unreadable = |corrupt: Corruption| GtidBreak::Unreadable(corrupt.to_string());
        match event.kind() {
            Kind::PREVIOUS_GTIDS | Kind::MARIADB_GTID_LIST if !self.has_list => {
                let list = LoggedGtids::of_list(event, format).map_err(unreadable)?.unwrap_or_default();
                self.begin(list, event.kind() == Kind::MARIADB_GTID_LIST, &format.server_version)
            }
            Kind::GTID | Kind::GTID_TAGGED => {
                let mut this = LoggedGtids::default();
                this.observe(event, format).map_err(unreadable)?;
                if self.is_complete && !this.is_empty() && this.without(&self.logged).is_empty() {
                    return Err(GtidBreak::Twice(this.to_string()));
                }
                self.logged.merge(&this);
                Ok(())
            }
            _ => self.logged.observe(event, format).map_err(unreadable),
        }
    }

    fn begin(&mut self, list: LoggedGtids, lists_last: bool, server_version: &str) -> Result<(), GtidBreak> {
        if self.is_complete {
            let (lost, missing) = (self.logged.without(&list), list.without(&self.logged));
            // MariaDB's numbers may go back, and FLUSH BINARY LOGS DELETE_DOMAIN_ID takes domains away.
            if !lost.is_empty() && !lists_last {
                return Err(GtidBreak::Lost(lost.to_string()));
            }
            // MySQL 5.6 and 5.7 write what is set as gtid_purged into the next list.
            let is_set = self.logged.is_empty() && server_version.starts_with("5.");
            if !missing.is_empty() && !is_set {
                return Err(GtidBreak::Missing(missing.to_string()));
            }
        }
        *self = Self { logged: list, is_complete: true, has_list: true };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use binlog::{Framer, Step};
    use bytes::Bytes;

    use super::*;

    const MYSQL: &[u8] = include_bytes!("../../../../binlog/tests/golden/mysql-9.7/rows.binlog");
    const MARIADB: &[u8] = include_bytes!("../../../../binlog/tests/golden/mariadb-10.11/rows.binlog");

    fn events(log: &'static [u8]) -> (Vec<Event>, FormatDescription) {
        let mut framer = Framer::new();
        framer.push(Bytes::from_static(log));
        let mut events = Vec::new();
        while let Step::Event { event, .. } = framer.next() {
            events.push(event);
        }
        (events, framer.format().unwrap().clone())
    }

    fn is_list(event: &Event) -> bool {
        matches!(event.kind(), Kind::PREVIOUS_GTIDS | Kind::MARIADB_GTID_LIST)
    }

    #[test]
    fn a_file_goes_on() {
        for log in [MYSQL, MARIADB] {
            let (events, format) = events(log);
            let mut gtids = Continuity::default();
            for event in &events {
                gtids.observe(event, &format).unwrap();
            }
            assert!(gtids.has_list() && !gtids.logged.is_empty());
            // The next file is the same one again: it begins without what came in it.
            gtids.next_file();
            let again = events.iter().filter(|event| is_list(event)).map(|event| gtids.observe(event, &format));
            let again: Vec<_> = again.collect();
            let is_lost = matches!(&again[..], [Err(GtidBreak::Lost(_))]);
            assert!(is_lost == (log == MYSQL) && (is_lost || again == [Ok(())]), "{again:?}");
        }
    }

    #[test]
    fn what_comes_twice_or_was_never_there_is_noticed() {
        let (events, format) = events(MYSQL);
        let mut gtids = Continuity::default();
        for event in &events {
            gtids.observe(event, &format).unwrap();
        }
        let again = events.iter().rev().find(|event| event.kind() == Kind::GTID).unwrap();
        assert!(matches!(gtids.observe(again, &format), Err(GtidBreak::Twice(_))));
        // A file that begins with what the files before it do not have.
        let mut behind = Continuity { is_complete: true, ..Continuity::default() };
        let missing = behind.begin(gtids.logged.clone(), false, "9.7.0");
        assert_eq!(missing, Err(GtidBreak::Missing(gtids.logged.to_string())));
        assert_eq!(behind.begin(gtids.logged.clone(), false, "5.7.22-log"), Ok(()));
        assert!(behind.has_list());
    }
}
