//! The host of a server's account: `%`, `10.1.%`, `10.1.0.0/255.255.0.0`, `10.1.0.0/16`, an address, `localhost`. It is compared with an address as the servers do it. Names are
//! not looked up.
//!
//! Facts: MySQL's manual, "Specifying Account Names" and "Access Control, Stage 1: Connection Verification"; MariaDB's, "CREATE USER", "Host Name Component".

use std::cmp::Reverse;
use std::net::IpAddr;

use engine::wildcard::is_like;

use super::network::Network;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    Anywhere,
    /// From the server's own machine; here: from Heddle's.
    Local,
    Address(Network),
    Network(Network),
    /// With `%` and `_`, of the address as text.
    Like(String),
    /// Of a host's name: would have to be looked up.
    Name,
}

impl Host {
    pub(super) fn parse(text: &str) -> Self {
        if text.is_empty() || text == "%" {
            return Self::Anywhere;
        }
        if text.eq_ignore_ascii_case("localhost") {
            return Self::Local;
        }
        if let Some((address, mask)) = text.split_once('/') {
            let network = match mask.parse::<IpAddr>() {
                Ok(mask) => Network::with_mask(address, mask),
                Err(_) => Network::parse(text),
            };
            return network.map_or(Self::Name, Self::Network);
        }
        if let Some(address) = Network::parse(text) {
            return Self::Address(address);
        }
        let of_addresses = |letter: char| matches!(letter, '0'..='9' | '.' | '%' | '_');
        let is_v6 =
            text.contains(':') && text.chars().all(|letter| letter.is_ascii_hexdigit() || ":.%_".contains(letter));
        if text.chars().all(of_addresses) || is_v6 {
            return Self::Like(text.to_ascii_lowercase());
        }
        Self::Name
    }

    pub(super) fn has(&self, from: IpAddr) -> bool {
        let from = from.to_canonical();
        match self {
            Self::Anywhere => true,
            Self::Local => from.is_loopback(),
            Self::Address(network) | Self::Network(network) => network.has(from),
            Self::Like(pattern) => is_like(&from.to_string(), pattern),
            Self::Name => false,
        }
    }

    /// The servers look at the most specific host first: this is smaller then.
    pub(super) fn rank(&self) -> (u8, Reverse<usize>) {
        match self {
            Self::Name | Self::Local | Self::Address(_) => (0, Reverse(0)),
            Self::Network(network) => (1, Reverse(usize::from(network.length()))),
            Self::Like(pattern) => (2, Reverse(pattern.find(['%', '_']).unwrap_or(pattern.len()))),
            Self::Anywhere => (3, Reverse(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_from_there() {
        let check = |host: &str, address: &str, want: bool| {
            assert_eq!(Host::parse(host).has(address.parse().unwrap()), want, "{host} {address}");
        };
        check("%", "10.1.2.3", true);
        check("", "fd00::1", true);
        check("10.1.%", "10.1.2.3", true);
        check("10.1.%", "::ffff:10.1.2.3", true);
        check("10.1.%", "10.11.2.3", false);
        check("10.1._._", "10.1.2.3", true);
        check("10.1._._", "10.1.2.30", false);
        check("10.%.3", "10.1.2.3", true);
        check("10.%.3", "10.1.2.33", false);
        check("%.%.%.7", "10.1.2.7", true);
        check("10.1.2.3", "10.1.2.3", true);
        check("10.1.2.3", "10.1.2.4", false);
        check("10.1.0.0/255.255.0.0", "10.1.9.9", true);
        check("10.1.0.0/255.255.0.0", "10.2.0.1", false);
        check("10.1.0.0/16", "10.1.9.9", true);
        check("10.1.0.0/16", "10.2.0.1", false);
        check("fd00::%", "fd00::1", true);
        check("FD00::%", "fd00::1", true);
        check("fd00::1", "fd00::1", true);
        check("localhost", "127.0.0.1", true);
        check("localhost", "::1", true);
        check("localhost", "10.1.2.3", false);
        for name in
            ["replica.example.com", "%.example.com", "192.168.1.example.com", "10.0.0.0/x", "10.0.0.0/255.0.255.0"]
        {
            assert_eq!(Host::parse(name), Host::Name, "{name}");
            check(name, "10.1.2.3", false);
        }
    }

    #[test]
    fn the_most_specific_first() {
        let mut hosts = ["%", "10.%", "10.1.%", "10.1.0.0/16", "10.1.2.0/255.255.255.0", "10.1.2.3"].map(Host::parse);
        hosts.sort_by_key(Host::rank);
        let want = ["10.1.2.3", "10.1.2.0/255.255.255.0", "10.1.0.0/16", "10.1.%", "10.%", "%"].map(Host::parse);
        assert_eq!(hosts, want);
    }
}
