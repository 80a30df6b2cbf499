//! The GTIDs that a log has had by some place, to see whether the next file goes on there: each file of a log begins with those of the files before.

use std::collections::BTreeMap;
use std::fmt;

use crate::corruption::Corruption;
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::gtid::MySqlGtid;
use crate::gtid_list::MariaDbGtidList;
use crate::gtids::GtidSet;
use crate::kind::Kind;
use crate::mariadb_gtid::MariaDbGtid;
use crate::previous_gtids::{GtidSetEntry, PreviousGtids};

/// GTIDs in the order-free form of the files' own lists: all of MySQL's; of MariaDB's the highest number of each domain and server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggedGtids {
    mysql: GtidSet,
    mariadb: BTreeMap<(u32, u32), u64>,
}

impl LoggedGtids {
    /// What the list at the begin of a file says of the files before it; `None` for any other event.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn of_list(event: &Event, format: &FormatDescription) -> Result<Option<Self>, Corruption> {
        Ok(match event.kind() {
            Kind::PREVIOUS_GTIDS => {
                let mut found = Self::default();
                for GtidSetEntry { uuid, tag, intervals } in PreviousGtids::decode(event, format)?.entries {
                    for (start, end) in intervals {
                        found.mysql.add_range(&uuid, &tag, start, end.saturating_sub(1));
                    }
                }
                Some(found)
            }
            Kind::MARIADB_GTID_LIST => {
                let list = MariaDbGtidList::decode(event, format)?;
                let mut found = Self::default();
                for entry in list.entries {
                    found.add_mariadb(entry.domain_id, entry.server_id, entry.seq_no);
                }
                Some(found)
            }
            _ => None,
        })
    }

    /// Takes note of the GTID that an event announces, if it does.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn observe(&mut self, event: &Event, format: &FormatDescription) -> Result<(), Corruption> {
        match event.kind() {
            Kind::GTID | Kind::GTID_TAGGED => {
                self.insert_mysql(&MySqlGtid::decode(event, format)?);
            }
            Kind::MARIADB_GTID => self.insert_mariadb(&MariaDbGtid::decode(event, format)?),
            _ => {}
        }
        Ok(())
    }

    /// Unless it is anonymous.
    pub fn insert_mysql(&mut self, gtid: &MySqlGtid) {
        if !gtid.anonymous && gtid.gno > 0 {
            self.mysql.add(&gtid.uuid, &gtid.tag, gtid.gno);
        }
    }

    /// MariaDB's.
    pub fn insert_mariadb(&mut self, gtid: &MariaDbGtid) {
        self.add_mariadb(gtid.domain_id, gtid.server_id, gtid.seq_no);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.mysql.is_empty() && self.mariadb.is_empty()
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Self) {
        self.mysql.add_set(&other.mysql);
        for (&(domain, server), &number) in &other.mariadb {
            self.add_mariadb(domain, server, number);
        }
    }

    /// Those that `other` does not have. Of MariaDB's all numbers from the one after `other`'s.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut rest = Self { mysql: self.mysql.clone(), ..Self::default() };
        rest.mysql.subtract(&other.mysql);
        let later = |(key, number): &(&(u32, u32), &u64)| other.mariadb.get(key).is_none_or(|known| known < *number);
        rest.mariadb = self.mariadb.iter().filter(later).map(|(key, number)| (*key, *number)).collect();
        rest
    }

    fn add_mariadb(&mut self, domain: u32, server: u32, number: u64) {
        let last = self.mariadb.entry((domain, server)).or_default();
        *last = number.max(*last);
    }
}

/// As the servers write sets and positions.
impl fmt::Display for LoggedGtids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mysql.fmt(f)?;
        let mut comma = if self.mysql.is_empty() { "" } else { "," };
        for ((domain, server), number) in &self.mariadb {
            write!(f, "{comma}{domain}-{server}-{number}")?;
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: [u8; 16] = [0x3e; 16];
    const TEXT: &str = "3e3e3e3e-3e3e-3e3e-3e3e-3e3e3e3e3e3e";

    fn mysql(intervals: &[(u64, u64)]) -> LoggedGtids {
        let mut set = LoggedGtids::default();
        for &(first, last) in intervals {
            set.mysql.add_range(&UUID, "", first, last);
        }
        set
    }

    #[test]
    fn what_another_lacks() {
        let check = |all: &[(u64, u64)], known: &[(u64, u64)], rest: &[(u64, u64)]| {
            assert_eq!(mysql(all).without(&mysql(known)), mysql(rest), "{all:?} without {known:?}");
        };
        check(&[(1, 10)], &[(1, 10)], &[]);
        check(&[(1, 10)], &[], &[(1, 10)]);
        check(&[(1, 10)], &[(3, 4), (7, 20)], &[(1, 2), (5, 6)]);
        check(&[(5, 6), (9, 9)], &[(1, 5)], &[(6, 6), (9, 9)]);
        check(&[(5, 6)], &[(1, 2), (8, 9)], &[(5, 6)]);
        let mut tagged = mysql(&[(1, 2)]);
        tagged.mysql.add_range(&UUID, "t", 1, 2);
        assert_eq!(tagged.without(&mysql(&[(1, 2)])).to_string(), format!("{TEXT}:t:1-2"));
        let mariadb = |gtids: &[(u32, u32, u64)]| {
            let mut set = LoggedGtids::default();
            gtids.iter().for_each(|&(domain, server, number)| set.add_mariadb(domain, server, number));
            set
        };
        let all = mariadb(&[(0, 1, 7), (0, 1, 5), (0, 2, 3), (4, 1, 1)]);
        assert_eq!(all.to_string(), "0-1-7,0-2-3,4-1-1");
        assert_eq!(all.without(&mariadb(&[(0, 1, 8), (0, 2, 3)])).to_string(), "4-1-1");
        assert!(all.without(&all).is_empty());
    }

    #[test]
    fn merged() {
        let mut one = mysql(&[(1, 3)]);
        one.merge(&mysql(&[(4, 5), (8, 8)]));
        assert_eq!(one, mysql(&[(1, 5), (8, 8)]));
    }
}
