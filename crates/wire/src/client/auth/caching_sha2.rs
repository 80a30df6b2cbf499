//! caching_sha2_password, fast path: SHA256(password) XOR SHA256(SHA256(SHA256(password)) + nonce). The full path
//! sends the password, see `connection`.

use sha2::{Digest, Sha256};

pub(crate) fn scramble(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha256::digest(password);
    let twice = Sha256::digest(once);
    let mask = Sha256::new().chain_update(twice).chain_update(nonce).finalize();
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server's check: it has SHA256(SHA256(password)) in its cache.
    #[test]
    fn the_server_accepts() {
        let nonce = b"12345678901234567890";
        let answer = scramble(b"secret", nonce);
        let cached = Sha256::digest(Sha256::digest(b"secret"));
        let mask = Sha256::new().chain_update(cached).chain_update(nonce).finalize();
        let once: Vec<u8> = answer.iter().zip(mask).map(|(a, b)| a ^ b).collect();
        assert_eq!(Sha256::digest(once), cached);
        assert!(scramble(b"", nonce).is_empty());
    }
}
