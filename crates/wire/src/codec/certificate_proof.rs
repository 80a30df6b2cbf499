//! How a MariaDB server shows that its certificate is its own, without an authority: with the hash of the account's password, in the OK packet that ends the
//! login (MDEV-31855, from 11.4 on). Who stands in between has another certificate, and does not know the hash.

use sha2::{Digest, Sha256};

/// What the OK packet's text begins with.
const MARK: u8 = 1;
/// So much of the nonce counts, however long it is.
const NONCE_BYTES: usize = 20;

/// SHA-256 of a certificate.
pub(crate) type Fingerprint = [u8; 32];

/// Of a certificate as it is in the handshake (DER).
pub(crate) fn fingerprint(certificate: &[u8]) -> Fingerprint {
    Sha256::digest(certificate).into()
}

/// The text of the OK packet. `password_hash`: as the server keeps it, as bytes.
pub(crate) fn text(password_hash: &[u8], nonce: &[u8], of: &Fingerprint) -> Vec<u8> {
    let nonce = nonce.get(..NONCE_BYTES).unwrap_or(nonce);
    let digest = Sha256::new().chain_update(password_hash).chain_update(nonce).chain_update(of).finalize();
    let mut text = vec![MARK];
    text.extend(digest.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
    text
}

fn digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'A' + value - 10 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_and_sixty_four_digits_of_all_that_counts() {
        let of = fingerprint(b"certificate");
        let one = text(&[1; 20], &[2; 21], &of);
        assert_eq!((one.len(), one.first()), (65, Some(&1)));
        assert!(one.iter().skip(1).all(|digit| digit.is_ascii_digit() || (b'A'..=b'F').contains(digit)));
        // The zero that ends a nonce, or the rest of a longer one, does not count; everything else does.
        assert_eq!(one, text(&[1; 20], &[2; 32], &of));
        assert_ne!(one, text(&[1; 20], &[3; 20], &of));
        assert_ne!(one, text(&[3; 20], &[2; 20], &of));
        assert_ne!(one, text(&[1; 20], &[2; 20], &fingerprint(b"another")));
    }
}
