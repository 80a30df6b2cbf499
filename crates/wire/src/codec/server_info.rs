//! What a server says of itself in its greeting.

use binlog::Flavour;

use super::capabilities::LONG_PASSWORD;

/// The server at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInfo {
    /// The version as sent, without MariaDB's "5.5.5-" prefix.
    pub version_text: String,
    /// The version as sent.
    pub greeting: String,
    /// Major, minor, patch; 0 where the text has no number.
    pub version: (u16, u16, u16),
    /// MySQL or MariaDB.
    pub flavour: Flavour,
    /// The connection's number on the server, for KILL and the process list.
    pub connection_id: u64,
    /// True when the connection is encrypted.
    pub tls: bool,
    /// The server's default collation number.
    pub charset: u8,
}

impl ServerInfo {
    pub(crate) fn new(version: &str, connection_id: u64, charset: u8) -> Self {
        // MariaDB 10 puts "5.5.5-" before its version for replicas of old MySQL versions.
        let stripped =
            version.strip_prefix("5.5.5-").filter(|rest| rest.contains("MariaDB") || rest.starts_with("10."));
        let version_text = stripped.unwrap_or(version).to_owned();
        let flavour =
            if version.contains("MariaDB") || version.contains("mariadb") { Flavour::MariaDb } else { Flavour::MySql };
        let mut numbers =
            version_text.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u16>().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        let numbers_of = (next(), next(), next());
        ServerInfo {
            version_text,
            greeting: version.to_owned(),
            version: numbers_of,
            flavour,
            connection_id,
            tls: false,
            charset,
        }
    }

    /// MariaDB may be set to say another version (`--version`), without its name. From 10.2 on its greeting lacks a bit that every MySQL's has.
    pub(crate) fn with_capabilities(mut self, capabilities: u32) -> Self {
        if self.version.0 >= 10 && capabilities & LONG_PASSWORD == 0 {
            self.flavour = Flavour::MariaDb;
        }
        self
    }

    /// True for MariaDB.
    pub fn is_mariadb(&self) -> bool {
        self.flavour == Flavour::MariaDb
    }

    /// True for this version or a later one; says nothing of the flavour.
    pub fn at_least(&self, major: u16, minor: u16, patch: u16) -> bool {
        self.version >= (major, minor, patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let check = |text: &str, shown: &str, version, flavour| {
            let info = ServerInfo::new(text, 1, 45);
            assert_eq!((info.version_text.as_str(), info.version, info.flavour), (shown, version, flavour));
        };
        check("5.5.5-10.11.6-MariaDB-log", "10.11.6-MariaDB-log", (10, 11, 6), Flavour::MariaDb);
        check("11.8.2-MariaDB", "11.8.2-MariaDB", (11, 8, 2), Flavour::MariaDb);
        check("9.7.0", "9.7.0", (9, 7, 0), Flavour::MySql);
        check("8.0.36-28", "8.0.36-28", (8, 0, 36), Flavour::MySql);
        check("5.5.5-m3", "5.5.5-m3", (5, 5, 5), Flavour::MySql);
        check("", "", (0, 0, 0), Flavour::MySql);
        let of = |text: &str, capabilities| {
            let info = ServerInfo::new(text, 1, 45).with_capabilities(capabilities);
            (info.version, info.flavour)
        };
        assert_eq!(of("5.5.5-10.5.99", 0x81bf_f7fe), ((10, 5, 99), Flavour::MariaDb));
        assert_eq!(of("11.8.2-log", 0x81bf_f7fe), ((11, 8, 2), Flavour::MariaDb));
        assert_eq!(of("10.0.0", 0xdfff_ffff), ((10, 0, 0), Flavour::MySql));
        assert_eq!(of("9.7.0", 0), ((9, 7, 0), Flavour::MySql));
    }
}
