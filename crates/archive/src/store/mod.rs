//! The few things that an archive asks of a store. Each has a deadline, and ends early when the process is to end.
//!
//! One thread does all input and output, however many ask. Nothing here retries beyond what a single request's own retries are: whoever asks decides.

mod aws_files;
mod error;
#[cfg(test)]
pub(crate) mod faulty;
mod http;
mod location;

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use binlog::text::escape;
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::runtime::Handle;

pub use self::error::StoreError;
use self::location::MissingFolder;
pub use self::location::is_url;

/// For one request, its retries included.
const DEADLINE: Duration = Duration::from_secs(300);
/// Of a request that may be asked twice: it changes nothing, or removes what may be gone.
const TRIES: u32 = 5;
const POLL: Duration = Duration::from_millis(50);
/// Nothing in an archive is larger: a segment, or the list of a file's segments.
const OBJECT_BYTES_MAX: u64 = 256 << 20;

/// What a conditional put has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    Made,
    /// Another object has the name; it was not changed.
    Taken,
}

/// An object of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Behind the archive's own prefix.
    pub name: String,
    pub bytes: u64,
    /// By the store's clock, in seconds since 1970.
    pub modified: i64,
}

/// A place in a store.
#[derive(Clone)]
pub struct Store {
    url: String,
    inner: Arc<dyn ObjectStore>,
    prefix: Path,
    stop: Option<Arc<AtomicBool>>,
    sent: Arc<AtomicU64>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Store {
    /// Of an archive that is to be read.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        Self::at(url, MissingFolder::Refuse)
    }

    /// Of an archive that is to be written: a folder is made.
    pub fn make(url: &str) -> Result<Self, StoreError> {
        Self::at(url, MissingFolder::Make)
    }

    fn at(url: &str, missing: MissingFolder) -> Result<Self, StoreError> {
        let place = location::open(url, missing)?;
        Ok(Self::new(url.trim_end_matches('/').to_owned(), place.store, place.prefix))
    }

    /// Of any store.
    pub fn new(url: String, inner: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        Self { url, inner, prefix, stop: None, sent: Arc::default() }
    }

    /// Waiting ends when this is set.
    #[must_use]
    pub fn until(mut self, stop: &Arc<AtomicBool>) -> Self {
        self.stop = Some(Arc::clone(stop));
        self
    }

    /// As the user gave it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Bytes in bodies of all puts so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Makes an object, or replaces it: for names that are given to one content only.
    pub fn put(&self, name: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let (store, path) = (Arc::clone(&self.inner), self.path(name));
        self.run(async move { store.put(&path, PutPayload::from(bytes)).await.map(|_| ()) })
    }

    /// Makes an object if there is none of that name. When an answer was lost, the object that is there is ours: that is found out.
    pub fn put_new(&self, name: &str, bytes: &Bytes) -> Result<Put, StoreError> {
        self.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let (store, path, payload) = (Arc::clone(&self.inner), self.path(name), PutPayload::from(bytes.clone()));
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = self.run(async move {
            match store.put_opts(&path, payload, options).await {
                Ok(_) => Ok(Put::Made),
                Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                    Ok(Put::Taken)
                }
                Err(error) => Err(error),
            }
        })?;
        if put == Put::Taken && self.get(name)? == *bytes {
            return Ok(Put::Made);
        }
        Ok(put)
    }

    pub fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        self.again(|| self.get_once(name))
    }

    /// An answer that breaks off, or one to a removal, is not asked for again by the store's client.
    fn again<T>(&self, mut ask: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut pause = POLL * 2;
        for _ in 1..TRIES {
            match ask() {
                Err(StoreError::Failed(_)) if !self.is_stopped() => std::thread::sleep(pause),
                answered => return answered,
            }
            pause *= 2;
        }
        ask()
    }

    fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    fn get_once(&self, name: &str) -> Result<Bytes, StoreError> {
        let (store, path) = (Arc::clone(&self.inner), self.path(name));
        self.run(async move {
            let found = store.get(&path).await?;
            if found.meta.size > OBJECT_BYTES_MAX {
                let source = format!("it has {} bytes", found.meta.size).into();
                return Err(object_store::Error::Generic { store: "archive", source });
            }
            found.bytes().await
        })
    }

    /// All objects whose names begin like this folder, behind `after` if it is given; by name.
    pub fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Object>, StoreError> {
        self.again(|| self.list_once(folder, after))
    }

    fn list_once(&self, folder: &str, after: Option<&str>) -> Result<Vec<Object>, StoreError> {
        let (store, path) = (Arc::clone(&self.inner), self.path(folder));
        let offset = after.map(|after| self.path(after));
        let prefix = self.prefix.clone();
        let mut found = self.run(async move {
            let listed = match &offset {
                Some(offset) => store.list_with_offset(Some(&path), offset),
                None => store.list(Some(&path)),
            };
            let objects: Vec<Object> = listed
                .map_ok(|meta| Object {
                    name: name_behind(&prefix, &meta.location),
                    bytes: meta.size,
                    modified: meta.last_modified.timestamp(),
                })
                .try_collect()
                .await?;
            Ok(objects)
        })?;
        found.retain(|object| after.is_none_or(|after| object.name.as_str() > after));
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// The names of the folders right below the archive.
    pub fn folders(&self) -> Result<Vec<String>, StoreError> {
        self.again(|| self.folders_once())
    }

    fn folders_once(&self) -> Result<Vec<String>, StoreError> {
        let (store, path, prefix) = (Arc::clone(&self.inner), self.prefix.clone(), self.prefix.clone());
        self.run(async move {
            let found = store.list_with_delimiter(Some(&path)).await?;
            Ok(found.common_prefixes.iter().map(|folder| name_behind(&prefix, folder)).collect())
        })
    }

    /// Removes objects. One that is gone already is no error.
    pub fn delete(&self, names: &[String]) -> Result<(), StoreError> {
        names.iter().try_for_each(|name| self.again(|| self.delete_once(name)))
    }

    fn delete_once(&self, name: &str) -> Result<(), StoreError> {
        let (store, path) = (Arc::clone(&self.inner), self.path(name));
        self.run(async move {
            match store.delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        })
    }

    fn path(&self, name: &str) -> Path {
        name.split('/').filter(|part| !part.is_empty()).fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// Waits for it on this thread.
    fn run<T: Send + 'static>(
        &self,
        asked: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (tell, told) = sync_channel(1);
        let task = io()?.spawn(async move {
            let _ = tell.send(tokio::time::timeout(DEADLINE, asked).await);
        });
        let began = Instant::now();
        loop {
            match told.recv_timeout(POLL) {
                Ok(Ok(done)) => return done.map_err(|error| store_error(&error)),
                Ok(Err(_)) => {
                    return Err(StoreError::Failed(format!("no answer within {} s", DEADLINE.as_secs())));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(StoreError::Failed("the thread that asks the store has ended".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) => {
                    if self.is_stopped() || began.elapsed() > DEADLINE * 2 {
                        task.abort();
                        return Err(StoreError::Stopped);
                    }
                }
            }
        }
    }
}

fn name_behind(prefix: &Path, path: &Path) -> String {
    let parts = path.prefix_match(prefix).map(|parts| parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>());
    parts.unwrap_or_default().join("/")
}

/// What a store says may come from anywhere: it is escaped.
fn store_error(error: &object_store::Error) -> StoreError {
    let text = || {
        let mut text = error.to_string();
        // The reason, not its page.
        if let Some((at, _)) = text.char_indices().nth(600) {
            text.truncate(at);
        }
        escape(&text).to_string()
    };
    match error {
        object_store::Error::NotFound { .. } => StoreError::NotFound,
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. }
        | object_store::Error::NotImplemented { .. }
        | object_store::Error::NotSupported { .. }
        | object_store::Error::InvalidPath { .. }
        | object_store::Error::UnknownConfigurationKey { .. } => StoreError::Refused(text()),
        _ => StoreError::Failed(text()),
    }
}

/// The thread of all stores.
fn io() -> Result<&'static Handle, StoreError> {
    static IO: OnceLock<Result<Handle, String>> = OnceLock::new();
    let started = IO.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        let handle = runtime.handle().clone();
        let work = move || runtime.block_on(std::future::pending::<()>());
        std::thread::Builder::new().name("archive-io".to_owned()).spawn(work).map_err(|error| error.to_string())?;
        Ok(handle)
    });
    started.as_ref().map_err(|error| StoreError::Failed(error.clone()))
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    pub(crate) fn check(store: &Store) {
        assert_eq!(store.get("a/x"), Err(StoreError::NotFound));
        store.put("a/x", Bytes::from_static(b"one")).unwrap();
        assert_eq!(store.put_new("a/x", &Bytes::from_static(b"two")), Ok(Put::Taken));
        assert_eq!(store.get("a/x").unwrap(), b"one"[..]);
        assert_eq!(store.put_new("a/y", &Bytes::from_static(b"two")), Ok(Put::Made));
        // As when the answer to the first try was lost.
        assert_eq!(store.put_new("a/y", &Bytes::from_static(b"two")), Ok(Put::Made));
        let names = |after| store.list("a", after).unwrap().into_iter().map(|object| object.name).collect::<Vec<_>>();
        assert_eq!(names(None), ["a/x", "a/y"]);
        assert_eq!(names(Some("a/x")), ["a/y"]);
        assert_eq!(store.folders().unwrap(), ["a"]);
        store.delete(&["a/x".to_owned(), "a/x".to_owned()]).unwrap();
        assert_eq!(names(None), ["a/y"]);
        assert_eq!(store.sent(), 3 + 3 + 3 + 3);
    }

    #[test]
    fn a_removal_that_fails_is_asked_for_again() {
        let inner = Arc::new(InMemory::new());
        let store = Store::new("memory".to_owned(), Arc::clone(&inner) as _, Path::default());
        let names: Vec<String> = (0..50).map(|number| format!("a/{number}")).collect();
        names.iter().for_each(|name| store.put(name, Bytes::from_static(b"x")).unwrap());
        Store::new("faulty".to_owned(), Arc::new(faulty::FaultyStore::new(inner, 7)), Path::default())
            .delete(&names)
            .unwrap();
        assert_eq!(store.list("a", None).unwrap(), []);
    }

    #[test]
    fn in_memory_and_in_a_folder() {
        check(&Store::new("memory".to_owned(), Arc::new(InMemory::new()), Path::from("some/prefix")));
        let dir = tempfile::tempdir().unwrap();
        let url = format!("file://{}/deep/er/", dir.path().display());
        assert_eq!(Store::open(&url).unwrap_err(), StoreError::NotFound);
        check(&Store::make(&url).unwrap());
    }
}
