//! The certificate that replicas are shown: given, or made here and kept in the mirror's folder, as servers do. It is read again when asked.
//!
//! A certificate of its own proves nothing to who has not seen it before, but MariaDB's replicas, which verify it by their password; against who only
//! listens it helps all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use wire::server::{ServerTls, TlsFiles};

const CERTIFICATE_FILE: &str = "heddle-tls-cert.pem";
const KEY_FILE: &str = "heddle-tls-key.pem";
const DAY: Duration = Duration::from_secs(24 * 3600);
/// As long as MySQL's own.
const VALID_FOR: Duration = Duration::from_secs(3650 * 24 * 3600);
/// Clocks differ.
const VALID_BEFORE: Duration = DAY;
/// Before its end it is made anew.
const RENEWED_BEFORE: Duration = Duration::from_secs(30 * 24 * 3600);
/// After one that could not be made.
const TRIED_AGAIN: Duration = Duration::from_secs(3600);

/// Where the certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// TLS is not offered.
    None,
    /// These files.
    Given(TlsFiles),
    /// Made here if need be, in this folder. A mirror must have made the folder before.
    Own(PathBuf),
}

/// What replicas' connections are encrypted with now.
pub(super) struct ReplicaTls {
    from: Certificate,
    current: Option<Arc<ServerTls>>,
    reload: Arc<AtomicBool>,
    /// When one of its own is made anew.
    due: SystemTime,
}

impl ReplicaTls {
    /// Files that were given are read now. One of its own is for [`ReplicaTls::renew`].
    pub(super) fn new(from: Certificate, reload: Arc<AtomicBool>) -> Result<Self, wire::Error> {
        let current = match &from {
            Certificate::Given(files) => Some(ServerTls::read(files)?),
            Certificate::None | Certificate::Own(_) => None,
        };
        Ok(Self { from, current, reload, due: SystemTime::UNIX_EPOCH })
    }

    pub(super) fn current(&self) -> Option<Arc<ServerTls>> {
        self.current.clone()
    }

    /// Reads the files again, if that was asked for; makes a certificate of its own when there is none, or it ends soon.
    pub(super) fn renew(&mut self) {
        let is_asked = self.reload.swap(false, Ordering::Relaxed);
        match &self.from {
            Certificate::None => {}
            Certificate::Given(_) if !is_asked => {}
            Certificate::Given(files) => match ServerTls::read(files) {
                Ok(tls) => {
                    self.current = Some(tls);
                    tracing::info!("new connections are shown the certificate {}", files.cert.display());
                }
                Err(error) => tracing::warn!("the certificate was not read again, the one of before stays: {error}"),
            },
            Certificate::Own(dir) => {
                let now = SystemTime::now();
                if !is_asked && now < self.due {
                    return;
                }
                match own(dir, now) {
                    Ok((tls, due)) => (self.current, self.due) = (Some(tls), due),
                    Err(error) => {
                        tracing::warn!("there is no certificate for replicas, they can not use TLS: {error}");
                        self.due = now + TRIED_AGAIN;
                    }
                }
            }
        }
    }
}

/// The certificate in the folder, and when it is to be made anew.
fn own(dir: &Path, now: SystemTime) -> Result<(Arc<ServerTls>, SystemTime), wire::Error> {
    let files = TlsFiles { cert: dir.join(CERTIFICATE_FILE), key: dir.join(KEY_FILE), ca: None };
    let kept = due(&files.cert).filter(|due| *due > now).and_then(|due| Some((ServerTls::read(&files).ok()?, due)));
    if let Some(kept) = kept {
        return Ok(kept);
    }
    let (certificate, key) = made(now).map_err(|error| wire::Error::Tls { message: error.to_string() })?;
    // A certificate without its key, or with another one, is made anew by the next.
    for (path, text, mode) in [(&files.key, &key, 0o600), (&files.cert, &certificate, 0o644)] {
        write(path, text, mode)
            .map_err(|error| wire::Error::Tls { message: format!("{}: {error}", path.display()) })?;
    }
    tracing::info!("made a certificate for replicas: {}", files.cert.display());
    let due = due(&files.cert).unwrap_or(now + DAY);
    Ok((ServerTls::read(&files)?, due))
}

/// PEM of a certificate and its key.
fn made(now: SystemTime) -> Result<(String, String), rcgen::Error> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut params = CertificateParams::new([host])?;
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, "heddle serve");
    params.distinguished_name = name;
    params.not_before = (now - VALID_BEFORE).into();
    params.not_after = (now + VALID_FOR).into();
    let key = KeyPair::generate()?;
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let new = path.with_extension("pem.new");
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

    fn text(dir: &Path, name: &str) -> String {
        fs::read_to_string(dir.join(name)).unwrap()
    }

    #[test]
    fn one_of_its_own_is_kept_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let (_, due) = own(dir.path(), now).unwrap();
        assert!(due > now + VALID_FOR - RENEWED_BEFORE - DAY && due < now + VALID_FOR);
        let mode = fs::metadata(dir.path().join(KEY_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let first = text(dir.path(), CERTIFICATE_FILE);
        own(dir.path(), now + DAY).unwrap();
        assert_eq!(text(dir.path(), CERTIFICATE_FILE), first);
        own(dir.path(), due + DAY).unwrap();
        assert_ne!(text(dir.path(), CERTIFICATE_FILE), first);
    }

    #[test]
    fn what_can_not_be_used_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        own(dir.path(), now).unwrap();
        let first = text(dir.path(), CERTIFICATE_FILE);
        for (name, content) in [(KEY_FILE, ""), (CERTIFICATE_FILE, "noise")] {
            fs::write(dir.path().join(name), content).unwrap();
            own(dir.path(), now).unwrap();
            assert_ne!(text(dir.path(), CERTIFICATE_FILE), first);
        }
        // Of another certificate.
        let other = tempfile::tempdir().unwrap();
        own(other.path(), now).unwrap();
        fs::copy(other.path().join(KEY_FILE), dir.path().join(KEY_FILE)).unwrap();
        let before = text(dir.path(), CERTIFICATE_FILE);
        own(dir.path(), now).unwrap();
        assert_ne!(text(dir.path(), CERTIFICATE_FILE), before);
    }

    #[test]
    fn files_are_read_again_when_asked() {
        let dir = tempfile::tempdir().unwrap();
        own(dir.path(), SystemTime::now()).unwrap();
        let files = TlsFiles { cert: dir.path().join(CERTIFICATE_FILE), key: dir.path().join(KEY_FILE), ca: None };
        let reload = Arc::new(AtomicBool::new(false));
        let mut tls = ReplicaTls::new(Certificate::Given(files.clone()), Arc::clone(&reload)).unwrap();
        let first = tls.current().unwrap();
        fs::remove_file(&files.cert).unwrap();
        own(dir.path(), SystemTime::now()).unwrap();
        tls.renew();
        assert!(Arc::ptr_eq(&tls.current().unwrap(), &first));
        reload.store(true, Ordering::Relaxed);
        tls.renew();
        let second = tls.current().unwrap();
        assert!(!Arc::ptr_eq(&second, &first));
        // What can not be read leaves the one of before.
        fs::write(&files.cert, "noise").unwrap();
        reload.store(true, Ordering::Relaxed);
        tls.renew();
        assert!(Arc::ptr_eq(&tls.current().unwrap(), &second));
    }
}
