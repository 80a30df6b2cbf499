//! caching_sha2_password as the server checks it: the short way with SHA256(SHA256(password)), the long way with the hash that is kept.

use sha2::{Digest, Sha256};

use super::same::is_same;
use super::sha_crypt;

/// Bytes of the salt in the servers' hashes.
const SALT_BYTES: usize = 20;

/// The hash that a server keeps: `$A$ROUNDS$`, 20 bytes of salt, 43 characters. The salt may be any bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Sha2Hash {
    rounds: u32,
    salt: [u8; SALT_BYTES],
    digest: Vec<u8>,
}

impl std::fmt::Debug for Sha2Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sha2Hash(***)")
    }
}

impl Sha2Hash {
    /// Reads the bytes of `authentication_string`.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let rest = text.strip_prefix(b"$A$")?;
        let (thousands, rest) = rest.split_at_checked(3)?;
        let thousands = u32::from_str_radix(std::str::from_utf8(thousands).ok()?, 16).ok()?;
        let (salt, digest) = rest.strip_prefix(b"$")?.split_at_checked(SALT_BYTES)?;
        if digest.len() != sha_crypt::TEXT_BYTES || thousands == 0 {
            return None;
        }
        Some(Self { rounds: thousands * 1000, salt: salt.try_into().ok()?, digest: digest.to_vec() })
    }

    /// Whether it is the password's.
    pub(super) fn is_of(&self, password: &[u8]) -> bool {
        is_same(&sha_crypt::sha256(password, &self.salt, self.rounds), &self.digest)
    }
}

/// What the short way needs to know.
pub(crate) fn twice(password: &[u8]) -> [u8; 32] {
    Sha256::digest(Sha256::digest(password)).into()
}

pub(super) fn is_right(twice: &[u8; 32], answer: &[u8], nonce: &[u8]) -> bool {
    if answer.len() != 32 {
        return false;
    }
    let mask = Sha256::new().chain_update(twice).chain_update(nonce).finalize();
    let once: Vec<u8> = answer.iter().zip(mask).map(|(a, b)| a ^ b).collect();
    is_same(&Sha256::digest(once), twice)
}
