//! TLS as a server: the certificate that is shown, and the authority whose client certificates are taken. A client may come without one; what an account
//! then may do is the caller's.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::stream::{Stream, TimedSocket};
use crate::codec::certificate_proof::{Fingerprint, fingerprint};
use crate::error::Error;

/// PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those between it and its authority.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authorities of the clients' certificates.
    pub ca: Option<PathBuf>,
}

/// What logins are encrypted with.
#[derive(Debug)]
pub struct ServerTls {
    /// For the handshake.
    pub(crate) config: Arc<ServerConfig>,
    /// Of the certificate that is shown.
    pub(crate) fingerprint: Fingerprint,
}

impl ServerTls {
    /// Reads the files.
    pub fn read(files: &TlsFiles) -> Result<Arc<Self>, Error> {
        let config = server_tls(files)?;
        let own = certificates(&files.cert)?;
        let own = own.first().ok_or_else(|| tls(format!("{} has no certificate", files.cert.display())))?;
        Ok(Arc::new(ServerTls { config, fingerprint: fingerprint(own) }))
    }
}

/// Reads the files, for a server of another protocol.
pub fn server_tls(files: &TlsFiles) -> Result<Arc<ServerConfig>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| tls(error.to_string()))?;
    let builder = match &files.ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(ca)? {
                roots.add(certificate).map_err(|error| tls(format!("{}: {error}", ca.display())))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| tls(format!("{}: {error}", ca.display())))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder
        .with_single_cert(certificates(&files.cert)?, key(&files.key)?)
        .map_err(|error| tls(format!("{} and {}: {error}", files.cert.display(), files.key.display())))?;
    Ok(Arc::new(config))
}

/// When a certificate (PEM) ends, in seconds since 1970. `None`: none, or one that ends after 2049.
pub fn certificate_end(pem: &str) -> Option<u64> {
    let certificate = rustls_pemfile::certs(&mut pem.as_bytes()).next()?.ok()?;
    // Its validity is the first place where two times stand side by side: UTCTime, 13 characters.
    certificate.windows(2 * UTC_TIME_BYTES).find_map(|both| {
        let (from, to) = both.split_at_checked(UTC_TIME_BYTES)?;
        utc_time(from).and(utc_time(to))
    })
}

const UTC_TIME_BYTES: usize = 15;

/// `YYMMDDhhmmssZ` of this century, with its tag and length.
fn utc_time(bytes: &[u8]) -> Option<u64> {
    let digits = bytes.strip_prefix(&[0x17, 13])?.strip_suffix(b"Z")?;
    let mut numbers = [0_u64; 6];
    for (number, pair) in numbers.iter_mut().zip(digits.chunks(2)) {
        *number = std::str::from_utf8(pair).ok()?.parse().ok()?;
    }
    let [year, month, day, hour, minute, second] = numbers;
    if year > 49 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years from March on, as leap days end them then.
    let (year, month) = if month > 2 { (2000 + year, month - 3) } else { (1999 + year, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    (days.checked_sub(DAYS_BEFORE_1970)? * 24 + hour).checked_mul(3600)?.checked_add(minute * 60 + second)
}

/// From March of the year 0.
const DAYS_BEFORE_1970: u64 = 719_468;

/// Does the handshake over a socket on which TLS was agreed.
pub(crate) fn accept(mut socket: TimedSocket, config: &Arc<ServerConfig>) -> Result<Stream, Error> {
    let mut connection = ServerConnection::new(Arc::clone(config)).map_err(|error| tls(error.to_string()))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket).map_err(|error| tls(error.to_string()))?;
    }
    Ok(Stream::Tls(Box::new(StreamOwned::new(connection, socket))))
}

fn tls(message: impl Into<String>) -> Error {
    Error::Tls { message: message.into() }
}

fn open(path: &Path) -> Result<BufReader<std::fs::File>, Error> {
    std::fs::File::open(path).map(BufReader::new).map_err(|error| tls(format!("{}: {error}", path.display())))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found = rustls_pemfile::certs(&mut open(path)?).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| tls(format!("{}: {error}", path.display())))?;
    if found.is_empty() {
        return Err(tls(format!("{} has no certificate", path.display())));
    }
    Ok(found)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let found = rustls_pemfile::private_key(&mut open(path)?);
    found
        .map_err(|error| tls(format!("{}: {error}", path.display())))?
        .ok_or_else(|| tls(format!("{} has no private key", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_certificates() {
        let of = |text: &str| utc_time(&[&[0x17, 13], text.as_bytes()].concat());
        assert_eq!(of("261130120000Z"), Some(1_796_040_000));
        assert_eq!(of("000229235959Z"), Some(951_868_799));
        assert_eq!(of("360101000000Z"), Some(2_082_758_400));
        assert_eq!(of("991130120000Z"), None);
        assert_eq!(of("26113012000xZ"), None);
    }
}
