//! An S3 server inside of the test: `s3s-fs`, a folder. It fails when it is told to, before or after it has done what it was asked for, answers late, or ends connections.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::dto::{
    DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, GetObjectInput, GetObjectOutput,
    HeadObjectInput, HeadObjectOutput, ListObjectsV2Input, ListObjectsV2Output, PutObjectInput, PutObjectOutput,
};
use s3s::service::S3ServiceBuilder;
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

pub const KEY_ID: &str = "key";
pub const SECRET: &str = "secret of the test";

/// What the store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Well = 0,
    /// One request of some fails, each in one of the ways.
    Faults = 1,
    /// Every request is answered with 503.
    Down = 2,
    /// It ignores that an object is to be made only where none is.
    Overwrites = 3,
}

const MOODS: [Mood; 4] = [Mood::Well, Mood::Faults, Mood::Down, Mood::Overwrites];
/// One request of so many has a fault.
const ONE_IN: u32 = 8;

#[derive(Debug, Default)]
struct State {
    mood: AtomicU8,
    requests: AtomicU64,
    faults: AtomicU64,
}

impl State {
    fn mood(&self) -> Mood {
        MOODS[usize::from(self.mood.load(Ordering::Relaxed))]
    }

    fn fault(&self) -> Option<u32> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let fault = match self.mood() {
            Mood::Well | Mood::Overwrites => None,
            Mood::Down => Some(0),
            Mood::Faults => rand::random_ratio(1, ONE_IN).then(|| rand::random_range(0..3)),
        };
        self.faults.fetch_add(fault.is_some().into(), Ordering::Relaxed);
        fault
    }
}

/// The server. It ends with the runtime.
pub struct Server {
    pub address: SocketAddr,
    state: Arc<State>,
    _runtime: Runtime,
}

impl Server {
    /// A bucket is a folder in `dir`.
    pub fn start(dir: &Path) -> Server {
        let runtime = Runtime::new().unwrap();
        let state = Arc::new(State::default());
        let store =
            Faulty { inner: FileSystem::new(dir).unwrap(), state: Arc::clone(&state), creates: Mutex::default() };
        let mut builder = S3ServiceBuilder::new(store);
        builder.set_auth(SimpleAuth::from_single(KEY_ID, SECRET));
        let service = builder.build();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::clone(&state);
        runtime.spawn(async move {
            loop {
                let Ok((socket, _)) = listener.accept().await else { continue };
                let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service.clone());
                let breaks = shared.mood() == Mood::Faults && rand::random_ratio(1, 3);
                tokio::spawn(async move {
                    // In the middle of whatever is under way.
                    let at_most = if breaks { rand::random_range(0..200) } else { 3_600_000 };
                    let _ = tokio::time::timeout(Duration::from_millis(at_most), connection).await;
                });
            }
        });
        Server { address, state, _runtime: runtime }
    }

    pub fn set(&self, mood: Mood) {
        self.state.mood.store(mood as u8, Ordering::Relaxed);
    }

    pub fn requests(&self) -> u64 {
        self.state.requests.load(Ordering::Relaxed)
    }

    pub fn faults(&self) -> u64 {
        self.state.faults.load(Ordering::Relaxed)
    }
}

struct Faulty {
    inner: FileSystem,
    state: Arc<State>,
    /// `s3s-fs` looks whether an object is there, and then makes it.
    creates: Mutex<()>,
}

/// Before it is done, after it, or late.
macro_rules! with_faults {
    ($self:ident, $done:expr) => {
        match $self.state.fault() {
            Some(0) => Err(s3_error!(SlowDown, "before")),
            Some(1) => {
                let _ = $done;
                Err(s3_error!(InternalError, "after"))
            }
            Some(_) => {
                tokio::time::sleep(Duration::from_millis(rand::random_range(20..400))).await;
                $done
            }
            None => $done,
        }
    };
}

#[async_trait::async_trait]
impl S3 for Faulty {
    async fn put_object(&self, mut request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        if self.state.mood() == Mood::Overwrites {
            request.input.if_none_match = None;
        }
        let _one = self.creates.lock().await;
        with_faults!(self, self.inner.put_object(request).await)
    }

    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        with_faults!(self, self.inner.get_object(request).await)
    }

    async fn head_object(&self, request: S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        with_faults!(self, self.inner.head_object(request).await)
    }

    async fn delete_object(&self, request: S3Request<DeleteObjectInput>) -> S3Result<S3Response<DeleteObjectOutput>> {
        with_faults!(self, self.inner.delete_object(request).await)
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        with_faults!(self, self.inner.delete_objects(request).await)
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        with_faults!(self, self.inner.list_objects_v2(request).await)
    }
}
