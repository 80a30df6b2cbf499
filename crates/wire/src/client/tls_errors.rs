//! What rustls refuses, and alerts that a server sends, in words: what is wrong, on which end, and what to do. It decides nothing.

use rustls::{AlertDescription, CertificateError, Error};

/// One or two sentences. Errors that no setting mends keep rustls's own text.
pub(crate) fn describe(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(of_server) => of_certificate(of_server, error),
        Error::AlertReceived(alert) => match of_alert(*alert) {
            Some(text) => format!("{text} (alert {alert:?})"),
            None => format!("the server ended the TLS handshake with the alert {alert:?}; its own error log may say why"),
        },
        Error::NoCertificatesPresented => {
            "the server has no certificate: give it one (ssl_cert, ssl_key), or use ssl-mode=disabled on a trusted network".to_owned()
        }
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => format!(
            "what came is no TLS of a database server ({error}): see that host and port are the server's, and that no proxy in between changes what it sends"
        ),
        Error::FailedToGetCurrentTime => "this machine's clock cannot be read, so no certificate can be checked".to_owned(),
        other => other.to_string(),
    }
}

/// The server's certificate, as it is checked here with `verify-ca` and `verify-identity`.
fn of_certificate(refused: &CertificateError, error: &Error) -> String {
    use CertificateError as C;
    match refused {
        C::UnknownIssuer => {
            "the server's certificate is not signed by an authority of ssl-ca: name the file with the authority that signed it".to_owned()
        }
        C::NotValidForName | C::NotValidForNameContext { .. } => format!(
            "the server's certificate is for another host ({error}); only its subject alternative names count. \
             Connect by a name that it has; ssl-mode=verify-ca does not check the name"
        ),
        C::Expired | C::ExpiredContext { .. } => {
            format!("the server's certificate has expired ({error}): renew it on the server, and see that this machine's clock is right")
        }
        C::NotValidYet | C::NotValidYetContext { .. } => {
            format!("the server's certificate is not valid yet ({error}): see that the clocks of both machines are right")
        }
        // webpki's own names, which rustls passes on as text.
        C::Other(inner) if inner.to_string().contains("CaUsedAsEndEntity") => {
            "the server's certificate is that of an authority: have it sign one for the server, or name it as ssl-ca with ssl-mode=verify-ca".to_owned()
        }
        C::Other(inner) if !inner.to_string().contains("UnsupportedCertVersion") => {
            format!("the server's certificate is not accepted ({inner})")
        }
        C::BadEncoding | C::UnhandledCriticalExtension | C::Other(_) => format!(
            "the server's certificate cannot be read ({error}). A certificate of version 1, as `openssl x509 -req` makes without -extfile, is one: make one of version 3 with a subject \
             alternative name, or use ssl-mode=required, which does not check it"
        ),
        C::InvalidPurpose | C::InvalidPurposeContext { .. } => {
            format!("the server's certificate is not for a server ({error}): its extended key usage must have serverAuth")
        }
        C::BadSignature => {
            "the server's certificate is not signed with the key of the authority in ssl-ca, though the names are equal: ssl-ca is probably an older authority".to_owned()
        }
        C::UnsupportedSignatureAlgorithmContext { .. } | C::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => format!(
            "the server's certificate is signed in a way that is not accepted any more, such as SHA-1 or RSA with 1024 bits ({error}): make a new one on the server"
        ),
        C::Revoked => "the server's certificate has been revoked: renew it on the server".to_owned(),
        _ => format!("the server's certificate is not accepted ({error})"),
    }
}

/// The server has refused what this end sent, which is nearly always its certificate (ssl-cert, ssl-key).
fn of_alert(alert: AlertDescription) -> Option<&'static str> {
    use AlertDescription as A;
    Some(match alert {
        A::UnknownCA => {
            "the server does not accept the certificate of ssl-cert: it is not signed by an authority of the server's own ssl_ca"
        }
        A::CertificateRequired => "the server wants a certificate of this client: set ssl-cert and ssl-key",
        A::CertificateExpired => "the server says that the certificate of ssl-cert has expired: renew it",
        A::CertificateRevoked => "the server says that the certificate of ssl-cert has been revoked: renew it",
        A::BadCertificate | A::UnsupportedCertificate | A::CertificateUnknown | A::NoCertificate => {
            "the server does not accept the certificate of ssl-cert: see that it is for a client (extended key usage clientAuth) and of an authority that the server knows"
        }
        A::AccessDenied => "the server accepts the certificate of ssl-cert and denies access with it",
        A::DecryptError => "the server could not verify the handshake: see that ssl-key belongs to ssl-cert",
        A::UnrecognisedName => {
            "the server, or a proxy before it, has no certificate for this host name: see the host in the URL"
        }
        A::InternalError => "the server failed in the TLS handshake: its error log says why",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_settings_mend_names_the_setting() {
        for (error, says) in [
            (Error::InvalidCertificate(CertificateError::UnknownIssuer), "ssl-ca"),
            (Error::InvalidCertificate(CertificateError::Expired), "renew it on the server"),
            (Error::InvalidCertificate(CertificateError::NotValidYet), "clocks"),
            (Error::InvalidCertificate(CertificateError::NotValidForName), "verify-ca"),
            (Error::InvalidCertificate(CertificateError::BadEncoding), "version 1"),
            (Error::InvalidCertificate(CertificateError::InvalidPurpose), "serverAuth"),
            (Error::AlertReceived(AlertDescription::UnknownCA), "ssl-cert"),
            (Error::AlertReceived(AlertDescription::CertificateRequired), "set ssl-cert and ssl-key"),
            (Error::AlertReceived(AlertDescription::UserCanceled), "UserCanceled"),
            (Error::NoCertificatesPresented, "ssl_cert"),
            (Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType), "host and port"),
        ] {
            let text = describe(&error);
            assert!(text.contains(says), "{error:?}: {text}");
        }
    }
}
