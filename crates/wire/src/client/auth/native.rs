//! mysql_native_password: SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password))).

use sha1::{Digest, Sha1};

pub(crate) fn scramble(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password);
    let twice = Sha1::digest(once);
    let mask = Sha1::new().chain_update(nonce).chain_update(twice).finalize();
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

/// As the server keeps it.
pub(crate) fn stored(password: &[u8]) -> Vec<u8> {
    Sha1::digest(Sha1::digest(password)).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server's check: it knows SHA1(SHA1(password)) only.
    #[test]
    fn the_server_accepts() {
        let nonce = b"12345678901234567890";
        let answer = scramble(b"secret", nonce);
        let stored = Sha1::digest(Sha1::digest(b"secret"));
        let mask = Sha1::new().chain_update(nonce).chain_update(stored).finalize();
        let once: Vec<u8> = answer.iter().zip(mask).map(|(a, b)| a ^ b).collect();
        assert_eq!(Sha1::digest(once), stored);
        assert!(scramble(b"", nonce).is_empty());
    }
}
