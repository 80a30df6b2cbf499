//! MariaDB's ed25519 as the server checks it: the public key is what it keeps.
//!
//! Source: "Authentication Plugin - ed25519" in MariaDB's documentation, RFC 8032.

use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

/// Length of the text that a key is shown as: base64 without padding.
const TEXT_BYTES: usize = 43;

pub(super) fn public_key(password: &[u8]) -> [u8; 32] {
    let hash: Zeroizing<[u8; 64]> = Zeroizing::new(Sha512::digest(password).into());
    let mut low = Zeroizing::new([0u8; 32]);
    low.copy_from_slice(hash.split_at(32).0);
    EdwardsPoint::mul_base(&Scalar::from_bytes_mod_order(clamp_integer(*low))).compress().to_bytes()
}

/// Whether `signature` over the nonce is of the key's owner.
pub(super) fn is_right(key: &[u8; 32], signature: &[u8], nonce: &[u8]) -> bool {
    let Some((point, scalar)) = signature.split_at_checked(32) else { return false };
    let Ok(scalar) = <[u8; 32]>::try_from(scalar) else { return false };
    let Some(scalar) = Option::<Scalar>::from(Scalar::from_canonical_bytes(scalar)) else { return false };
    let Some(public) = CompressedEdwardsY(*key).decompress() else { return false };
    if public.is_small_order() {
        return false;
    }
    let hash = Sha512::new().chain_update(point).chain_update(key).chain_update(nonce).finalize();
    let challenge = Scalar::from_bytes_mod_order_wide(&hash.into());
    let expected = EdwardsPoint::vartime_double_scalar_mul_basepoint(&challenge, &-public, &scalar);
    super::same::is_same(&expected.compress().to_bytes(), point)
}

pub(super) fn from_base64(text: &str) -> Option<[u8; 32]> {
    if text.len() != TEXT_BYTES {
        return None;
    }
    let (mut bits, mut held, mut out) = (0_u32, 0, Vec::with_capacity(32));
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    out.try_into().ok()
}
