//! TLS by rustls: which certificates are accepted for each mode. What is refused is said in words by `tls_errors`.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme, StreamOwned,
};

use super::io_error::classify;
use super::options::{ConnectOptions, SslMode};
use super::socket::Socket;
use super::stream::Stream;
use super::tls_errors::describe;
use crate::codec::error_packet::parse_error;
use crate::codec::server_info::ServerInfo;
use crate::error::Error;

/// Does the TLS handshake over a socket on which TLS was agreed.
pub(crate) fn wrap(socket: Socket, options: &ConnectOptions, server: &ServerInfo) -> Result<Stream, Error> {
    let config = client_config(options)?;
    let mode = options.effective_ssl_mode();
    let name = match ServerName::try_from(options.host.clone()) {
        Ok(name) if options.socket.is_none() => name,
        Err(_) if mode == SslMode::VerifyIdentity => {
            return Err(tls(format!("{:?} cannot be the name in a certificate", options.host)));
        }
        // The name is only checked with verify-identity; a socket stands for localhost.
        _ => ServerName::try_from("localhost").map_err(|error| tls(error.to_string()))?,
    };
    let mut connection = ClientConnection::new(config, name).map_err(|error| tls(describe(&error)))?;
    let mut socket = Heard { socket, first: Vec::new() };
    while connection.is_handshaking() {
        if let Err(error) = connection.complete_io(&mut socket) {
            return Err(socket.said_in_clear(server).unwrap_or_else(|| handshake_error(error, options)));
        }
    }
    Ok(Stream::Tls(Box::new(StreamOwned::new(connection, socket.socket))))
}

/// A socket during the handshake, and what came first: a server with yaSSL says in clear, in a packet of the protocol, that it does not like the
/// handshake (seen with MySQL 5.7.22), which to TLS is noise.
struct Heard {
    socket: Socket,
    first: Vec<u8>,
}

/// Enough for the head of a packet, a mark, a code and the state; the text may be cut.
const HEARD_BYTES_MAX: usize = 256;
const ERROR_BYTES_MAX: usize = 1024;
const ER_HANDSHAKE_ERROR: u16 = 1043;

impl Heard {
    /// The server's error packet, if one came. Later servers, which have OpenSSL and send alerts, end a handshake that the network has cut like this.
    fn said_in_clear(&self, server: &ServerInfo) -> Option<Error> {
        let has_yassl = if server.is_mariadb() { !server.at_least(10, 5, 0) } else { !server.at_least(8, 0, 0) };
        let (head, payload) = self.first.split_at_checked(4)?;
        // A record of TLS, read as a packet, is a large one.
        let length = head.iter().take(3).rev().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
        if length > ERROR_BYTES_MAX || payload.first() != Some(&0xff) {
            return None;
        }
        match parse_error(payload, 0) {
            Error::Server { code: ER_HANDSHAKE_ERROR, message, .. } if has_yassl => {
                Some(incompatible(&format!("the server answered {message:?}")))
            }
            Error::Server { code: ER_HANDSHAKE_ERROR, .. } => Some(Error::Lost { during: "setting up TLS" }),
            error @ Error::Server { .. } => Some(error),
            _ => None,
        }
    }
}

impl Read for Heard {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.socket.read(out)?;
        let room = HEARD_BYTES_MAX.saturating_sub(self.first.len());
        self.first.extend_from_slice(out.get(..read.min(room)).unwrap_or_default());
        Ok(read)
    }
}

impl Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

fn tls(message: impl Into<String>) -> Error {
    Error::Tls { message: message.into() }
}

fn handshake_error(error: io::Error, options: &ConnectOptions) -> Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(
            inner @ (rustls::Error::PeerIncompatible(_)
            | rustls::Error::AlertReceived(
                AlertDescription::ProtocolVersion
                | AlertDescription::HandshakeFailure
                | AlertDescription::InsufficientSecurity,
            )),
        ) => incompatible(&inner.to_string()),
        Some(inner) => tls(describe(inner)),
        // A cut, not an answer: nothing is known of the server's TLS.
        None => classify(error, "setting up TLS", Some(options.limits.connect_timeout)),
    }
}

fn incompatible(reason: &str) -> Error {
    Error::TlsIncompatible {
        message: format!(
            "no common TLS version or cipher with the server ({reason}). It probably has only TLS 1.0 or 1.1, or no \
             ciphers with elliptic curves, as builds of MySQL 5.5 to 8.0 with yaSSL or OpenSSL 1.0 and old MariaDB; \
             this client has TLS 1.2 and 1.3 with elliptic curves. Update the server, or use ssl-mode=disabled on a \
             trusted network"
        ),
    }
}

fn client_config(options: &ConnectOptions) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = verifier(options, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| tls(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match (&options.tls.cert, &options.tls.key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(cert), Some(key)) => builder
            .with_client_auth_cert(certificates(cert, "ssl-cert")?, private_key(key)?)
            .map_err(|error| tls(format!("ssl-cert and ssl-key: {error}")))?,
        _ => return Err(tls("ssl-cert and ssl-key are needed together")),
    };
    Ok(Arc::new(config))
}

fn verifier(options: &ConnectOptions, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let schemes = provider.signature_verification_algorithms.supported_schemes();
    let mode = options.effective_ssl_mode();
    if !matches!(mode, SslMode::VerifyCa | SslMode::VerifyIdentity) {
        return Ok(Arc::new(AcceptAny { schemes }));
    }
    let Some(path) = &options.tls.ca else {
        return Ok(Arc::new(KeyOwner { provider: Arc::clone(provider) }));
    };
    let authorities = certificates(path, "ssl-ca")?;
    let mut roots = RootCertStore::empty();
    for authority in &authorities {
        roots.add(authority.clone()).map_err(|error| tls(format!("ssl-ca {}: {error}", path.display())))?;
    }
    let full = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| tls(format!("ssl-ca {}: {error}", path.display())))?;
    if mode == SslMode::VerifyIdentity {
        return Ok(full);
    }
    Ok(Arc::new(AuthorityOnly { full, authorities }))
}

fn pem(path: &Path, option: &str) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| tls(format!("cannot read {option} {}: {error}", path.display())))
}

fn certificates(path: &Path, option: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = pem(path, option)?;
    let found: Result<Vec<_>, _> = rustls_pemfile::certs(&mut &text[..]).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(tls(format!("{option} {} holds no PEM certificate", path.display()))),
        Err(error) => Err(tls(format!("{option} {}: {error}", path.display()))),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let text = pem(path, "ssl-key")?;
    match rustls_pemfile::private_key(&mut &text[..]) {
        Ok(Some(key)) => Ok(key),
        Ok(None) => Err(tls(format!("ssl-key {} holds no PEM private key without a pass phrase", path.display()))),
        Err(error) => Err(tls(format!("ssl-key {}: {error}", path.display()))),
    }
}

/// Encryption without authentication, as the servers' clients do for `preferred` and `required`.
///
/// Signatures are not checked either: whoever stands between could present a certificate of its own anyway, and
/// checking would only refuse the version 1 certificates that `openssl x509 -req` makes and many servers have.
#[derive(Debug)]
struct AcceptAny {
    schemes: Vec<SignatureScheme>,
}

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

/// Any certificate whose key the other side has: whose it is, the end of the login shows (`login`).
#[derive(Debug)]
struct KeyOwner {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for KeyOwner {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Everything but the host name is checked.
#[derive(Debug)]
struct AuthorityOnly {
    full: Arc<WebPkiServerVerifier>,
    authorities: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for AuthorityOnly {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.full.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            // A self-signed certificate that is itself the trusted one; its key is still proven by the handshake.
            Err(_) if self.authorities.iter().any(|authority| authority.as_ref() == end_entity.as_ref()) => {
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.full.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.full.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.full.supported_verify_schemes()
    }
}
