//! The GTIDs that a stream has brought, kept only so that it can be resumed; in the servers' own text form outside.
//!
//! It does no set algebra beyond adding: the engine's GTID sets are for decisions.

use std::collections::BTreeMap;
use std::fmt;

/// One transaction's identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gtid {
    /// MySQL: source uuid, tag (mostly empty), number.
    Mysql { sid: [u8; 16], tag: Box<str>, number: u64 },
    /// MariaDB: domain, server, sequence number.
    Mariadb { domain: u32, server: u32, number: u64 },
}

/// Source uuid and tag.
type Source = ([u8; 16], Box<str>);

/// All that were seen: intervals (MySQL), the last one of each domain (MariaDB).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Gtids {
    mysql: BTreeMap<Source, Vec<(u64, u64)>>,
    mariadb: BTreeMap<u32, (u32, u64)>,
}

impl Gtids {
    pub(crate) fn insert(&mut self, gtid: Gtid) {
        match gtid {
            Gtid::Mysql { sid, tag, number } => add(self.mysql.entry((sid, tag)).or_default(), number, number),
            Gtid::Mariadb { domain, server, number } => {
                self.mariadb.insert(domain, (server, number));
            }
        }
    }

    /// Reads `uuid:1-5:7:tag:1,…` and `0-1-100,…`; none when it is neither.
    pub(crate) fn parse(text: &str) -> Option<Gtids> {
        let mut gtids = Gtids::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if let Some((uuid, rest)) = part.split_once(':') {
                let sid = parse_uuid(uuid.trim())?;
                let mut tag = String::new();
                for item in rest.split(':').map(str::trim) {
                    if item.starts_with(|c: char| c.is_ascii_digit()) {
                        let (from, to) = item.split_once('-').unwrap_or((item, item));
                        let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
                        if from == 0 || from > to {
                            return None;
                        }
                        add(gtids.mysql.entry((sid, tag.as_str().into())).or_default(), from, to);
                    } else {
                        tag = item.to_ascii_lowercase();
                    }
                }
            } else {
                let mut numbers = part.split('-');
                let (domain, server, number) = (numbers.next()?, numbers.next()?, numbers.next()?);
                if numbers.next().is_some() {
                    return None;
                }
                gtids.mariadb.insert(domain.parse().ok()?, (server.parse().ok()?, number.parse().ok()?));
            }
        }
        Some(gtids)
    }

    /// The one GTID that this is.
    pub(crate) fn into_single(self) -> Option<Gtid> {
        let mysql = self.mysql.into_iter().filter_map(|((sid, tag), intervals)| match intervals.as_slice() {
            [(from, to)] if from == to => Some(Gtid::Mysql { sid, tag, number: *from }),
            _ => None,
        });
        let mariadb = self.mariadb.into_iter();
        let mariadb = mariadb.map(|(domain, (server, number))| Gtid::Mariadb { domain, server, number });
        let mut all = mysql.chain(mariadb);
        let first = all.next()?;
        all.next().is_none().then_some(first)
    }
}

/// Adds an interval; the usual one continues the last.
fn add(intervals: &mut Vec<(u64, u64)>, from: u64, to: u64) {
    if let Some(last) = intervals.last_mut()
        && from >= last.0
        && from <= last.1.saturating_add(1)
    {
        last.1 = last.1.max(to);
        return;
    }
    intervals.push((from, to));
    intervals.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(intervals.len());
    for &(from, to) in intervals.iter() {
        match merged.last_mut() {
            Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    *intervals = merged;
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let mut digits = text.bytes().filter(|&b| b != b'-').map(|b| (b as char).to_digit(16));
    let mut sid = [0; 16];
    for byte in &mut sid {
        *byte = (digits.next()?? * 16 + digits.next()??) as u8;
    }
    digits.next().is_none().then_some(sid)
}

struct Uuid<'a>(&'a [u8; 16]);

impl fmt::Display for Uuid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Gtids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for ((sid, tag), intervals) in &self.mysql {
            write!(f, "{comma}{}", Uuid(sid))?;
            if !tag.is_empty() {
                write!(f, ":{tag}")?;
            }
            for (from, to) in intervals {
                if from == to { write!(f, ":{from}")? } else { write!(f, ":{from}-{to}")? }
            }
            comma = ",";
        }
        for (domain, (server, number)) in &self.mariadb {
            write!(f, "{comma}{domain}-{server}-{number}")?;
            comma = ",";
        }
        Ok(())
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut one = Gtids::default();
        one.insert(self.clone());
        one.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    #[test]
    fn text() {
        let check = |input: &str, output: Option<&str>| {
            assert_eq!(Gtids::parse(input).map(|gtids| gtids.to_string()).as_deref(), output, "{input}");
        };
        check("", Some(""));
        check(&format!("{A}:1-5:6:9"), Some(&format!("{A}:1-6:9")));
        check(&format!("{A}:9, {A}:1-5,\n{A}:7-8:6"), Some(&format!("{A}:1-9")));
        check(&format!("{A}:1-3:Tag:1:2"), Some(&format!("{A}:1-3,{A}:tag:1-2")));
        check("1-2-7,0-1-100", Some("0-1-100,1-2-7"));
        check("0-1", None);
        check("0-1-2-3", None);
        check("nonsense:1", None);
        check(&format!("{A}:5-1"), None);
        check(&format!("{A}:0"), None);
    }

    #[test]
    fn insert_in_any_order() {
        let sid = parse_uuid(A).unwrap();
        let mut gtids = Gtids::default();
        for number in [5, 6, 1, 2, 9, 4, 3] {
            gtids.insert(Gtid::Mysql { sid, tag: "".into(), number });
        }
        gtids.insert(Gtid::Mariadb { domain: 0, server: 1, number: 8 });
        gtids.insert(Gtid::Mariadb { domain: 0, server: 2, number: 9 });
        assert_eq!(gtids.to_string(), format!("{A}:1-6:9,0-2-9"));
    }
}
