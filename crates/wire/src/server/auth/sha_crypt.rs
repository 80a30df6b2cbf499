//! SHA-crypt with SHA-256, as "Unix crypt using SHA-256 and SHA-512" (U. Drepper, public domain) describes it; salts are taken whole, as MySQL does.

use sha2::{Digest, Sha256};

/// Length of the text that a digest becomes.
pub(super) const TEXT_BYTES: usize = 43;
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Which bytes of the digest stand together in the text.
const ORDER: [(usize, usize, usize); 10] = [
    (0, 10, 20),
    (21, 1, 11),
    (12, 22, 2),
    (3, 13, 23),
    (24, 4, 14),
    (15, 25, 5),
    (6, 16, 26),
    (27, 7, 17),
    (18, 28, 8),
    (9, 19, 29),
];

/// The text of the hash, without its prefix and salt.
pub(super) fn sha256(password: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
    let mixed = Sha256::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut start = Sha256::new().chain_update(password).chain_update(salt);
    start.update(repeated(&mixed, password.len()));
    let mut bits = password.len();
    while bits > 0 {
        if bits & 1 == 1 {
            start.update(mixed);
        } else {
            start.update(password);
        }
        bits >>= 1;
    }
    let mut digest: [u8; 32] = start.finalize().into();

    let mut of_password = Sha256::new();
    for _ in 0..password.len() {
        of_password.update(password);
    }
    let password_bytes = repeated(&of_password.finalize(), password.len());
    let mut of_salt = Sha256::new();
    for _ in 0..16 + usize::from(digest.first().copied().unwrap_or(0)) {
        of_salt.update(salt);
    }
    let salt_bytes = repeated(&of_salt.finalize(), salt.len());

    for round in 0..rounds {
        let mut next = Sha256::new();
        if round & 1 == 1 {
            next.update(&password_bytes);
        } else {
            next.update(digest);
        }
        if round % 3 != 0 {
            next.update(&salt_bytes);
        }
        if round % 7 != 0 {
            next.update(&password_bytes);
        }
        if round & 1 == 1 {
            next.update(digest);
        } else {
            next.update(&password_bytes);
        }
        digest = next.finalize().into();
    }
    text(&digest)
}

fn repeated(block: &[u8], length: usize) -> Vec<u8> {
    block.iter().copied().cycle().take(length).collect()
}

/// Three bytes become four characters, in an order of their own.
fn text(digest: &[u8; 32]) -> Vec<u8> {
    let byte = |at: usize| u32::from(digest.get(at).copied().unwrap_or(0));
    let mut out = Vec::with_capacity(TEXT_BYTES);
    let mut put = |mut value: u32, count: usize| {
        for _ in 0..count {
            out.push(ALPHABET.get((value & 63) as usize).copied().unwrap_or(b'.'));
            value >>= 6;
        }
    };
    for (a, b, c) in ORDER {
        put(byte(a) << 16 | byte(b) << 8 | byte(c), 4);
    }
    put(byte(31) << 8 | byte(30), 3);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `openssl passwd -5 -salt 12345678 PASSWORD`.
    #[test]
    fn as_openssl_has_it() {
        let check = |password: &str, want: &str| {
            assert_eq!(String::from_utf8(sha256(password.as_bytes(), b"12345678", 5000)).unwrap(), want);
        };
        check("secret", "vfXTriTcIE3fmtdKcmhtmhxt0kqEh3a0Degk.vD/PuB");
        check("a password of more than thirty-two bytes", "RGR5cqNYZ2wCG6tCYHvLfwyq.rMr6MpGYUHF8e2IFKD");
    }
}
