//! Passwords for the server's RSA key: XOR with the nonce, then OAEP with SHA1 (caching_sha2 and sha256 without TLS).

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rsa::pkcs8::DecodePublicKey;
use rsa::traits::PublicKeyParts;
use rsa::{Oaep, RsaPublicKey};
use sha1::Sha1;
use zeroize::Zeroizing;

use crate::error::Error;

/// A key file can have a few thousand bytes.
const KEY_BYTES_MAX: u64 = 64 << 10;

/// The PEM text of a key that is known here.
pub(crate) fn key_file(path: &Path) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    File::open(path).and_then(|file| file.take(KEY_BYTES_MAX).read_to_end(&mut text)).map_err(|error| Error::Auth {
        code: 0,
        message: format!("cannot read server-public-key-path {}: {error}", path.display()),
        hint: "On the server it is the file that @@caching_sha2_password_public_key_path names.".to_owned(),
    })?;
    Ok(text)
}

/// Encrypts `password` and a zero byte for the key that the server sent as PEM.
pub(crate) fn encrypt_password(password: &[u8], nonce: &[u8], pem: &[u8]) -> Result<Vec<u8>, Error> {
    let pem = std::str::from_utf8(pem).map_err(|_| Error::protocol("the server's RSA key is not PEM text"))?;
    let key = RsaPublicKey::from_public_key_pem(pem.trim_end_matches('\0').trim())
        .map_err(|error| Error::protocol(format!("the server's RSA key cannot be read: {error}")))?;
    if nonce.is_empty() {
        return Err(Error::protocol("the server sent no nonce"));
    }
    // OAEP with SHA1 takes 42 bytes.
    if password.len() + 1 + 42 > key.size() {
        return Err(Error::Auth {
            code: 0,
            message: format!("the password is too long for the server's RSA key of {} bytes", key.size()),
            hint: "Use TLS (ssl-mode=required) or the unix socket.".to_owned(),
        });
    }
    let mixed: Zeroizing<Vec<u8>> =
        Zeroizing::new(password.iter().chain(&[0]).zip(nonce.iter().cycle()).map(|(a, b)| a ^ b).collect());
    // rsa 0.9 wants the generator of rand_core 0.6.
    key.encrypt(&mut rsa::rand_core::OsRng, Oaep::new::<Sha1>(), &mixed)
        .map_err(|error| Error::protocol(format!("encrypting with the server's RSA key failed: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rsa::RsaPrivateKey;
    use rsa::pkcs8::{EncodePublicKey, LineEnding};

    #[test]
    fn the_server_decrypts() {
        let private = RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 1024).unwrap();
        let pem = private.to_public_key().to_public_key_pem(LineEnding::LF).unwrap();
        let nonce = b"12345678901234567890";
        let password = b"a password longer than the nonce";
        let sent = encrypt_password(password, nonce, pem.as_bytes()).unwrap();
        let mixed = private.decrypt(Oaep::new::<Sha1>(), &sent).unwrap();
        let clear: Vec<u8> = mixed.iter().zip(nonce.iter().cycle()).map(|(a, b)| a ^ b).collect();
        assert_eq!(clear, [&password[..], &[0]].concat());
        assert!(encrypt_password(&[b'x'; 200], nonce, pem.as_bytes()).is_err());
        assert!(encrypt_password(password, nonce, b"nonsense").is_err());
    }
}
