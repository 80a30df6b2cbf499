//! TLS as a server: the certificate that is shown, and the authority whose client certificates are taken. A client may come without one; what an account
//! then may do is the caller's.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::stream::{Stream, TimedSocket};
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

/// Reads the files.
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
