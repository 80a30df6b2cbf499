//! A store for tests that fails at random, before or after it has done what it was asked for. It repeats a run from its seed.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

#[derive(Debug)]
pub struct FaultyStore {
    inner: Arc<InMemory>,
    random: Arc<Mutex<StdRng>>,
}

impl FaultyStore {
    pub fn new(inner: Arc<InMemory>, seed: u64) -> Self {
        Self { inner, random: Arc::new(Mutex::new(StdRng::seed_from_u64(seed))) }
    }

    fn fault(&self) -> Result<()> {
        fault(&self.random)
    }
}

fn fault(random: &Mutex<StdRng>) -> Result<()> {
    if random.lock().unwrap().random_bool(0.1) {
        return Err(Error::Generic { store: "faulty", source: "at random".into() });
    }
    Ok(())
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.fault()?;
        let done = self.inner.put_opts(path, payload, options).await;
        self.fault()?;
        done
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.fault()?;
        self.inner.get_opts(path, options).await
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(path, ranges).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let random = Arc::clone(&self.random);
        self.inner.delete_stream(paths).map(move |done| fault(&random).and(done)).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
