//! The RSA key under which clients without TLS send a password: XOR with the nonce, then OAEP with SHA1.

use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::{DecodePrivateKey, EncodePublicKey, LineEnding};
use rsa::{Oaep, RsaPrivateKey};
use sha1::Sha1;
use zeroize::Zeroizing;

use crate::error::Error;

const BITS: usize = 2048;

/// A key of this process; clients ask for its public half.
pub struct RsaKey {
    private: RsaPrivateKey,
    public_pem: String,
}

impl std::fmt::Debug for RsaKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RsaKey(***)")
    }
}

impl RsaKey {
    /// Makes a new one. It takes a while.
    pub fn generate() -> Result<Self, Error> {
        // rsa 0.9 wants the generator of rand_core 0.6.
        RsaPrivateKey::new(&mut rsa::rand_core::OsRng, BITS)
            .map_err(|error| failed(&error.to_string()))
            .and_then(RsaKey::new)
    }

    /// Reads one, such as a server's `private_key.pem`.
    pub fn from_pem(text: &str) -> Result<Self, Error> {
        RsaPrivateKey::from_pkcs8_pem(text)
            .or_else(|_| RsaPrivateKey::from_pkcs1_pem(text))
            .map_err(|error| failed(&error.to_string()))
            .and_then(RsaKey::new)
    }

    fn new(private: RsaPrivateKey) -> Result<Self, Error> {
        let public_pem =
            private.to_public_key().to_public_key_pem(LineEnding::LF).map_err(|error| failed(&error.to_string()))?;
        Ok(Self { private, public_pem })
    }

    pub(crate) fn public_pem(&self) -> &str {
        &self.public_pem
    }

    /// The password in what a client has sent; none for anything else.
    pub(crate) fn open(&self, sent: &[u8], nonce: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let mixed = self.private.decrypt_blinded(&mut rsa::rand_core::OsRng, Oaep::new::<Sha1>(), sent).ok()?;
        let mixed = Zeroizing::new(mixed);
        let clear: Zeroizing<Vec<u8>> =
            Zeroizing::new(mixed.iter().zip(nonce.iter().cycle()).map(|(a, b)| a ^ b).collect());
        clear.strip_suffix(&[0]).map(|password| Zeroizing::new(password.to_vec()))
    }
}

fn failed(reason: &str) -> Error {
    Error::Protocol(format!("the RSA key: {reason}"))
}
