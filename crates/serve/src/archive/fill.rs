//! Fills a mirror's folder from an archive: the same files, byte for byte, as the source had them. The folder can be served, and a mirror of the source can continue it.
//!
//! The published part ends between two transactions. A folder with another history is not touched.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use archive::manifest::text_of;
use archive::scan::Scan;
use archive::store::StoreError;
use archive::{ArchiveError, ArchiveFs, Manifest, Store};
use binlog::{FIRST_OFFSET, LogPosition};
use engine::failure::{Failure, FailureKind};
use relay::RealFs;
use relay::fs::{Fs, read_full};

use crate::inventory::{Inventory, SOURCE_FACTS, SourceFacts};
use crate::mirror::disk::epochs::Epochs;
use crate::mirror::disk::files::{of_folder, of_machine};
use crate::mirror::disk::folder::Folder;
use crate::mirror::disk::owner::{self, Owner};
use crate::mirror::{EndCondition, MirrorOutcome};

const COPY_BYTES: usize = 1 << 20;
/// Of the folder's end that is compared with the archive.
const COMPARED_BYTES: u64 = 1 << 20;
const SYNC_BYTES: u64 = 8 << 20;
/// Between two looks for what came into the archive.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(100);

/// Fills the folder: up to the archive's end of now, or until `stop` is set.
pub fn fill(
    store: &Store,
    dir: &Path,
    inventory: &Inventory,
    until: EndCondition,
    stop: &AtomicBool,
) -> Result<MirrorOutcome, Failure> {
    let mut manifest = Manifest::open(store).map_err(|error| of_archive(store, &error))?;
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let epochs = Epochs::open(Arc::clone(&fs), dir).map_err(|error| of_folder(&error))?;
    let (folder, _) = Folder::open(Arc::clone(&fs), &epochs.active()).map_err(|error| of_folder(&error))?;
    let mut filled = ArchiveFiller { store, fs, folder, inventory, stop, scan: None, bytes: 0 };
    filled.check_owner(&manifest)?;
    filled.learn(&manifest)?;
    filled.compare(&manifest)?;
    filled.publish()?;
    tracing::info!("filling {} from {}", filled.folder.dir().display(), store.url());
    loop {
        filled.copy(&manifest)?;
        if until == EndCondition::SourceEnd || stop.load(Ordering::Relaxed) {
            break;
        }
        let again = Instant::now() + LOOK_EVERY;
        while Instant::now() < again && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(POLL);
        }
        match manifest.refresh() {
            Ok(_) => {}
            Err(error) if error.is_stop() => break,
            Err(error) if error.may_pass() => tracing::debug!("archive {}: {error}", store.url()),
            Err(error) => return Err(of_archive(store, &error)),
        }
    }
    Ok(MirrorOutcome { position: filled.folder.durable(), files: filled.folder.names().len(), bytes: filled.bytes })
}

/// What an archive's error means for the run.
pub fn of_archive(store: &Store, error: &ArchiveError) -> Failure {
    let kind = match error {
        ArchiveError::Store(StoreError::Stopped) => FailureKind::Stopped,
        error if error.may_pass() => FailureKind::ConnectionLost,
        _ => FailureKind::Refused,
    };
    let remedy = match error {
        ArchiveError::Nothing => "check the URL: `heddle archive ls URL` shows what is there",
        ArchiveError::Damaged { .. } => "`heddle archive verify URL` names everything that is damaged",
        _ => "",
    };
    Failure::new(kind, format!("archive {}: {error}", store.url())).remedy(remedy)
}

struct ArchiveFiller<'a> {
    store: &'a Store,
    fs: Arc<dyn Fs>,
    folder: Folder,
    inventory: &'a Inventory,
    stop: &'a AtomicBool,
    /// Of the folder's last file.
    scan: Option<(String, Scan)>,
    bytes: u64,
}

impl ArchiveFiller<'_> {
    fn check_owner(&self, manifest: &Manifest) -> Result<(), Failure> {
        let text = manifest.state().owner.clone().unwrap_or_default();
        let parse = |text: &[u8]| serde_json::from_slice::<Owner>(text).map_err(|error| refused(error.to_string()));
        let archived = parse(text.as_bytes())?;
        match self.folder.read(owner::FILE).map_err(|error| of_folder(&error))? {
            None => self.folder.replace(owner::FILE, text.as_bytes()).map_err(|error| of_folder(&error)),
            Some(here) if parse(&here)?.source == archived.source => Ok(()),
            Some(here) => Err(refused(format!(
                "{} has the log of {}, and the archive that of {}",
                self.folder.dir().display(),
                parse(&here)?.source,
                archived.source
            ))
            .remedy("give another --dir")),
        }
    }

    /// What replicas will ask for.
    fn learn(&self, manifest: &Manifest) -> Result<(), Failure> {
        let Some(named) = &manifest.state().facts else { return Ok(()) };
        let text = text_of(self.store, named).map_err(|error| of_archive(self.store, &error))?;
        self.folder.replace(SOURCE_FACTS, &text).map_err(|error| of_folder(&error))?;
        if let Ok(facts) = SourceFacts::from_json(&text) {
            self.inventory.learn(facts);
        }
        Ok(())
    }

    /// What is here must be the archive's.
    fn compare(&self, manifest: &Manifest) -> Result<(), Failure> {
        let Some(end) = self.folder.durable() else { return Ok(()) };
        let archived = ArchiveFs::new(self.store.clone(), manifest.state().clone());
        let Some(file) = archived.state().file(&end.file) else {
            let first = archived.state().files.first().map_or("nothing", |file| file.name.as_str());
            return Err(refused(format!("the folder ends at {end}, and the archive begins with {first}"))
                .remedy("give an empty --dir"));
        };
        let to = end.offset.min(file.size);
        let from = to.saturating_sub(COMPARED_BYTES);
        let (mut here, mut there) = (vec![0; (to - from) as usize], vec![0; (to - from) as usize]);
        let path = self.folder.dir().join(&*end.file);
        let read = |error: std::io::Error| of_machine(&error, format!("{}: {error}", path.display()));
        let local = self.fs.open_read(&path).map_err(read)?;
        read_full(&*local, &mut here, from).map_err(read)?;
        archived.read_full(&end.file, &mut there, from).map_err(read)?;
        if here != there {
            return Err(refused(format!("{} is another file in the archive: another history", path.display()))
                .remedy("give an empty --dir"));
        }
        Ok(())
    }

    /// All files that are here; the last one up to its last whole transaction.
    fn publish(&mut self) -> Result<(), Failure> {
        let end = match self.folder.durable() {
            None => None,
            Some(end) => {
                let path = self.folder.dir().join(&*end.file);
                let read = |error: std::io::Error| of_machine(&error, format!("{}: {error}", path.display()));
                let local = self.fs.open_read(&path).map_err(read)?;
                let mut scan = Scan::default();
                while scan.offset() < end.offset {
                    let mut bytes = vec![0; COPY_BYTES.min((end.offset - scan.offset()) as usize)];
                    let count = read_full(&*local, &mut bytes, scan.offset()).map_err(read)?;
                    bytes.truncate(count);
                    scan.push(&bytes).map_err(|error| refused(format!("{} {error}", path.display())))?;
                    if count == 0 {
                        break;
                    }
                }
                let whole = scan.whole();
                self.scan = Some((end.file.as_ref().to_owned(), scan));
                Some(LogPosition::new(Arc::clone(&end.file), whole))
            }
        };
        self.inventory
            .hold(self.folder.dir(), self.folder.names(), end.as_ref())
            .map_err(|error| of_machine(&error, format!("the files cannot be read: {error}")))
    }

    /// Everything that the archive has more.
    fn copy(&mut self, manifest: &Manifest) -> Result<(), Failure> {
        let archived = ArchiveFs::new(self.store.clone(), manifest.state().clone());
        let files = &archived.state().files;
        let here = self.folder.durable();
        let from = match &here {
            None => 0,
            Some(end) => files.iter().position(|file| *file.name == *end.file).unwrap_or(files.len()),
        };
        for (index, file) in files.iter().enumerate().skip(from) {
            let is_begun = here.as_ref().is_some_and(|end| *end.file == *file.name);
            if index > 0 && !is_begun && file.is_behind_gap {
                return Err(refused(format!(
                    "the archive has a gap before {}: what is between was never archived",
                    file.name
                ))
                .remedy("`heddle archive prune` can remove what is before it; then give an empty --dir"));
            }
            if !is_begun {
                self.folder.begin(&file.name).map_err(|error| of_folder(&error))?;
                self.scan = None;
            }
            self.file(&archived, &file.name, file.size, file.is_complete)?;
            if self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn file(&mut self, archived: &ArchiveFs, name: &str, size: u64, is_complete: bool) -> Result<(), Failure> {
        let of_store = |error: std::io::Error| {
            Failure::new(FailureKind::ConnectionLost, format!("archive {}: {error}", self.store.url()))
        };
        let source = archived.open_read(Path::new(name)).map_err(of_store)?;
        let mut at = self.folder.durable().map_or(FIRST_OFFSET, |end| end.offset.max(FIRST_OFFSET));
        let mut scan = match self.scan.take() {
            Some((of, scan)) if of == name => scan,
            _ => {
                let mut scan = Scan::default();
                scan.push(&binlog::MAGIC).map_err(|error| refused(error.to_string()))?;
                scan
            }
        };
        while at < size && !self.stop.load(Ordering::Relaxed) {
            let mut bytes = vec![0; COPY_BYTES.min((size - at) as usize)];
            let count = read_full(&*source, &mut bytes, at).map_err(of_store)?;
            bytes.truncate(count);
            if count == 0 {
                return Err(refused(format!("the archive's {name} is shorter than its manifest says")));
            }
            let behind = bytes.get(scan.offset().saturating_sub(at) as usize..).unwrap_or_default();
            scan.push(behind).map_err(|error| refused(format!("the archive's {name} {error}")))?;
            self.folder.append(&bytes).map_err(|error| of_folder(&error))?;
            at += count as u64;
            self.bytes += count as u64;
            if self.folder.unsynced() >= SYNC_BYTES || at >= size {
                self.folder.sync().map_err(|error| of_folder(&error))?;
                let end = if is_complete && at >= size { size } else { scan.whole() };
                self.inventory.durable(&LogPosition::new(name, end));
            }
        }
        self.folder.sync().map_err(|error| of_folder(&error))?;
        self.scan = Some((name.to_owned(), scan));
        Ok(())
    }
}

fn refused(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Refused, message)
}
