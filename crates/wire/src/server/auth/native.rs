//! mysql_native_password as the server checks it: it knows SHA1(SHA1(password)).

use sha1::{Digest, Sha1};

use super::same::is_same;

pub(super) fn stored(password: &[u8]) -> [u8; 20] {
    Sha1::digest(Sha1::digest(password)).into()
}

pub(super) fn from_hex(text: &str) -> Option<[u8; 20]> {
    if text.len() != 40 || !text.is_ascii() {
        return None;
    }
    let mut out = [0; 20];
    for (byte, digits) in out.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(out)
}

pub(super) fn is_right(stored: &[u8; 20], answer: &[u8], nonce: &[u8]) -> bool {
    if answer.len() != 20 {
        return false;
    }
    let mask = Sha1::new().chain_update(nonce).chain_update(stored).finalize();
    let once: Vec<u8> = answer.iter().zip(mask).map(|(a, b)| a ^ b).collect();
    is_same(&Sha1::digest(once), stored)
}
