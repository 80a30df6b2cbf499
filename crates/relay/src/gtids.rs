//! The GTIDs that a stream has brought, kept only so that it can be resumed; in the servers' own text form outside.

use std::fmt;

use binlog::gtids::{Gtid, GtidPos, GtidSet, mariadb};

/// All that were seen: MySQL's set, the last one of each of MariaDB's domains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Gtids {
    mysql: GtidSet,
    mariadb: GtidPos,
}

impl Gtids {
    pub(crate) fn insert(&mut self, gtid: &Gtid) {
        match gtid {
            Gtid::MySql { uuid, tag, gno } => self.mysql.add(uuid, tag.as_deref().unwrap_or_default(), *gno),
            &Gtid::MariaDb { domain, server, seq } => self.mariadb.update(mariadb::Gtid { domain, server, seq }),
        }
    }

    /// Reads `uuid:1-5:7:tag:1,…` and `0-1-100,…`; none when it is neither.
    pub(crate) fn parse(text: &str) -> Option<Gtids> {
        let mut gtids = Gtids::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if part.contains(':') {
                gtids.mysql.add_set(&part.parse().ok()?);
            } else {
                gtids.mariadb.update(part.parse().ok()?);
            }
        }
        Some(gtids)
    }
}

impl fmt::Display for Gtids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mysql.fmt(f)?;
        if !self.mysql.is_empty() && !self.mariadb.is_empty() {
            f.write_str(",")?;
        }
        self.mariadb.fmt(f)
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
        check(&format!("{A}:9, {A}:1-5,\n{A}:7-8:6"), Some(&format!("{A}:1-9")));
        check(&format!("{A}:1-3:Tag:1:2"), Some(&format!("{A}:1-3:tag:1-2")));
        check("1-2-7,0-1-100", Some("0-1-100,1-2-7"));
        check(&format!("0-1-7,{A}:2"), Some(&format!("{A}:2,0-1-7")));
        check("0-1", None);
        check("0-1-2-3", None);
        check("nonsense:1", None);
        check(&format!("{A}:5-1"), None);
        check(&format!("{A}:0"), None);
    }

    #[test]
    fn last_of_a_domain() {
        let mut gtids = Gtids::default();
        for text in [&format!("{A}:2"), &format!("{A}:1"), "0-1-8", "0-2-7"] {
            gtids.insert(&text.parse().unwrap());
        }
        assert_eq!(gtids.to_string(), format!("{A}:1-2,0-2-7"));
    }
}
