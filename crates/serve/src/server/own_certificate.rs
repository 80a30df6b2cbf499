//! A certificate that signs itself, and its key: made where none is, and kept in a folder, as servers do.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use wire::server::{ServerTls, TlsFiles};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// As long as MySQL's own.
const VALID_FOR: Duration = Duration::from_secs(3650 * 24 * 3600);
/// Clocks differ.
const VALID_BEFORE: Duration = DAY;
/// Before its end it is made anew.
const RENEWED_BEFORE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Where it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCertificate {
    files: TlsFiles,
}

impl OwnCertificate {
    /// In this folder, which must be there: `NAME-cert.pem` and `NAME-key.pem`.
    pub fn new(dir: &Path, name: &str) -> Self {
        let file = |part: &str| dir.join(format!("{name}-{part}.pem"));
        Self { files: TlsFiles { cert: file("cert"), key: file("key"), ca: None } }
    }

    pub fn files(&self) -> TlsFiles {
        self.files.clone()
    }

    /// Makes it where there is none that can be used, or it ends within 30 days. Returns when it is to be made anew.
    ///
    /// # Errors
    /// The files can not be written.
    pub fn renew(&self, now: SystemTime) -> Result<SystemTime, wire::Error> {
        let kept = due(&self.files.cert).filter(|due| *due > now && ServerTls::read(&self.files).is_ok());
        if let Some(due) = kept {
            return Ok(due);
        }
        let (certificate, key) = made(now).map_err(|error| wire::Error::Tls { message: error.to_string() })?;
        // A certificate without its key, or with another one, is made anew by the next.
        for (path, text, mode) in [(&self.files.key, &key, 0o600), (&self.files.cert, &certificate, 0o644)] {
            write(path, text, mode)
                .map_err(|error| wire::Error::Tls { message: format!("{}: {error}", path.display()) })?;
        }
        tracing::info!("made a certificate: {}", self.files.cert.display());
        Ok(due(&self.files.cert).unwrap_or(now + DAY))
    }
}

/// PEM of a certificate and its key.
fn made(now: SystemTime) -> Result<(String, String), rcgen::Error> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut params = CertificateParams::new([host, "localhost".to_owned()])?;
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, "heddle");
    params.distinguished_name = name;
    params.not_before = (now - VALID_BEFORE).into();
    params.not_after = (now + VALID_FOR).into();
    let key = KeyPair::generate()?;
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let new: PathBuf = path.with_extension("pem.new");
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}

/// When the certificate in the file is to be made anew. `None`: there is none that can be used.
fn due(path: &Path) -> Option<SystemTime> {
    let text = fs::read_to_string(path).ok()?;
    let end = wire::server::certificate_end(&text)?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(end))?.checked_sub(RENEWED_BEFORE)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn text(own: &OwnCertificate) -> String {
        fs::read_to_string(&own.files.cert).unwrap()
    }

    #[test]
    fn it_is_kept_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let own = OwnCertificate::new(dir.path(), "heddle-http");
        let now = SystemTime::now();
        let due = own.renew(now).unwrap();
        assert!(due > now + VALID_FOR - RENEWED_BEFORE - DAY && due < now + VALID_FOR);
        let mode = fs::metadata(dir.path().join("heddle-http-key.pem")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let first = text(&own);
        own.renew(now + DAY).unwrap();
        assert_eq!(text(&own), first);
        own.renew(due + DAY).unwrap();
        assert_ne!(text(&own), first);
    }

    #[test]
    fn what_can_not_be_used_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let own = OwnCertificate::new(dir.path(), "heddle-tls");
        let now = SystemTime::now();
        own.renew(now).unwrap();
        let first = text(&own);
        for (path, content) in [(&own.files.key, ""), (&own.files.cert, "noise")] {
            fs::write(path, content).unwrap();
            own.renew(now).unwrap();
            assert_ne!(text(&own), first);
        }
        // Of another certificate.
        let elsewhere = tempfile::tempdir().unwrap();
        let other = OwnCertificate::new(elsewhere.path(), "heddle-tls");
        other.renew(now).unwrap();
        fs::copy(&other.files.key, &own.files.key).unwrap();
        let before = text(&own);
        own.renew(now).unwrap();
        assert_ne!(text(&own), before);
    }
}
