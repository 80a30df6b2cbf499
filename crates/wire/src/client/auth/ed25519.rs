//! MariaDB's client_ed25519: the nonce signed with Ed25519, where SHA512 of the password itself (of any length)
//! takes the place of the hashed 32-byte seed. Ordinary Ed25519 crates only take 32-byte seeds.
//!
//! Source: "Authentication Plugin - ed25519" in MariaDB's documentation, RFC 8032.

use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

struct Key {
    scalar: Scalar,
    prefix: Zeroizing<[u8; 32]>,
    public: [u8; 32],
}

fn key(password: &[u8]) -> Key {
    let hash: Zeroizing<[u8; 64]> = Zeroizing::new(Sha512::digest(password).into());
    let mut low = Zeroizing::new([0u8; 32]);
    let mut prefix = Zeroizing::new([0u8; 32]);
    let (first, second) = hash.split_at(32);
    low.copy_from_slice(first);
    prefix.copy_from_slice(second);
    let scalar = Scalar::from_bytes_mod_order(clamp_integer(*low));
    let public = EdwardsPoint::mul_base(&scalar).compress().to_bytes();
    Key { scalar, prefix, public }
}

fn hash_to_scalar(parts: [&[u8]; 3]) -> Scalar {
    let mut hash = Sha512::new();
    for part in parts {
        hash.update(part);
    }
    Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
}

pub(crate) fn sign(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let key = key(password);
    let r = hash_to_scalar([&key.prefix[..], nonce, &[]]);
    let point = EdwardsPoint::mul_base(&r).compress().to_bytes();
    let s = r + hash_to_scalar([&point, &key.public, nonce]) * key.scalar;
    [point, s.to_bytes()].concat()
}

/// As the server keeps it.
pub(crate) fn stored(password: &[u8]) -> Vec<u8> {
    key(password).public.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
    use curve25519_dalek::edwards::CompressedEdwardsY;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// RFC 8032, 7.1, test 1: an empty message with a 32-byte seed, for which this scheme is plain Ed25519.
    #[test]
    fn rfc_8032() {
        let seed: Vec<u8> = (0..64)
            .step_by(2)
            .map(|at| {
                let text = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
                u8::from_str_radix(text.get(at..at + 2).unwrap(), 16).unwrap()
            })
            .collect();
        assert_eq!(hex(&key(&seed).public), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        assert_eq!(
            hex(&sign(&seed, b"")),
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd\
             25bf5f0595bbe24655141438e7a100b"
        );
    }

    #[test]
    fn verifies() {
        let (password, nonce) = (&b"any length"[..], &[5u8; 32]);
        let signature = sign(password, nonce);
        let public = key(password).public;
        let point: [u8; 32] = signature[..32].try_into().unwrap();
        let s = Scalar::from_canonical_bytes(signature[32..].try_into().unwrap()).unwrap();
        let k = hash_to_scalar([&point, &public, nonce]);
        let left = ED25519_BASEPOINT_POINT * s;
        let right =
            CompressedEdwardsY(point).decompress().unwrap() + CompressedEdwardsY(public).decompress().unwrap() * k;
        assert_eq!(left, right);
    }
}
