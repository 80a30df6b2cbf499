//! The certificate that replicas are shown: given, or made here and kept in the mirror's folder, as servers do. It is read again when asked.
//!
//! A certificate of its own proves nothing to who has not seen it before, but MariaDB's replicas, which verify it by their password; against who only
//! listens it helps all.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use wire::server::{ServerTls, TlsFiles};

use super::own_certificate::OwnCertificate;

/// Its files are `heddle-tls-cert.pem` and `heddle-tls-key.pem`.
const NAME: &str = "heddle-tls";
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
    let own = OwnCertificate::new(dir, NAME);
    let due = own.renew(now)?;
    Ok((ServerTls::read(&own.files())?, due))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_are_read_again_when_asked() {
        let dir = tempfile::tempdir().unwrap();
        own(dir.path(), SystemTime::now()).unwrap();
        let files = OwnCertificate::new(dir.path(), NAME).files();
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
