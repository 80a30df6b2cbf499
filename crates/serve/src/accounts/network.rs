//! Networks such as 10.0.0.0/8, and single addresses.

use std::net::IpAddr;

/// Addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network {
    bits: u128,
    length: u8,
    is_v6: bool,
}

impl Network {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let full = if address.is_ipv6() { 128 } else { 32 };
        let length = length.unwrap_or(full);
        (length <= full).then(|| Self { bits: bits(address), length, is_v6: address.is_ipv6() })
    }

    /// A network with a mask such as 255.255.0.0. `None`: the mask's one bits are not all in front.
    pub(super) fn with_mask(address: &str, mask: IpAddr) -> Option<Self> {
        let address: IpAddr = address.parse().ok()?;
        let ones = bits(mask).leading_ones();
        let is_mask = bits(mask).checked_shl(ones).unwrap_or(0) == 0;
        let length = u8::try_from(ones).ok()?;
        (is_mask && mask.is_ipv6() == address.is_ipv6()).then(|| Self {
            bits: bits(address),
            length,
            is_v6: address.is_ipv6(),
        })
    }

    /// Bits that have to be the same.
    pub(super) fn length(&self) -> u8 {
        self.length
    }

    pub(super) fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        if address.is_ipv6() != self.is_v6 {
            return false;
        }
        let differing = bits(address) ^ self.bits;
        differing.leading_zeros() >= u32::from(self.length)
    }
}

/// From the highest bit on.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        let check = |network: &str, address: &str, want: bool| {
            assert_eq!(Network::parse(network).unwrap().has(address.parse().unwrap()), want, "{network} {address}");
        };
        check("10.0.0.0/8", "10.255.0.1", true);
        check("10.0.0.0/8", "11.0.0.1", false);
        check("10.0.0.0/8", "::ffff:10.1.1.1", true);
        check("0.0.0.0/0", "1.2.3.4", true);
        check("0.0.0.0/0", "::1", false);
        check("192.168.1.7", "192.168.1.7", true);
        check("192.168.1.7", "192.168.1.6", false);
        check("fd00::/8", "fdff::1", true);
        check("::/0", "fe80::1", true);
        for wrong in ["", "10.0.0.0/33", "::/129", "host", "10.0.0.0/x", "10.0.0.0/"] {
            assert!(Network::parse(wrong).is_none(), "{wrong}");
        }
    }
}
