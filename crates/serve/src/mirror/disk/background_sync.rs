//! Syncs a file on a thread of its own, while more is written to the file. At most one sync is under way. Its outcome is never lost: the system reports a failed sync only once.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use relay::fs::AppendFile;

/// See the module. The thread begins with the first sync.
#[derive(Default)]
pub struct BackgroundSync {
    thread: Option<Syncer>,
    /// Up to there the file is written that is synced now.
    pending: Option<u64>,
}

struct Syncer {
    files: Option<SyncSender<Box<dyn AppendFile>>>,
    outcomes: Receiver<Outcome>,
    thread: Option<JoinHandle<()>>,
}

/// How a sync has ended, and how long it took.
type Outcome = (io::Result<()>, Duration);

/// A sync that has succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedSync {
    /// The file is durable up to there.
    pub end: u64,
    pub time: Duration,
}

impl BackgroundSync {
    pub fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Begins one of a file that is written up to `end`. None may be under way.
    pub fn begin(&mut self, file: Box<dyn AppendFile>, end: u64) -> io::Result<()> {
        let syncer = match &self.thread {
            Some(syncer) => syncer,
            None => self.thread.insert(Syncer::start()?),
        };
        let sent = syncer.files.as_ref().is_some_and(|files| files.send(file).is_ok());
        if !sent {
            return Err(ended());
        }
        self.pending = Some(end);
        Ok(())
    }

    /// The outcome, if it is there by now.
    pub fn outcome(&mut self) -> io::Result<Option<FinishedSync>> {
        let Some(syncer) = self.thread.as_ref().filter(|_| self.pending.is_some()) else { return Ok(None) };
        match syncer.outcomes.try_recv() {
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => self.ends(Err(ended())),
            Ok((done, time)) => self.ends(done.map(|()| time)),
        }
    }

    /// Waits for the outcome of the one that is under way.
    pub fn wait(&mut self) -> io::Result<Option<FinishedSync>> {
        let Some(syncer) = self.thread.as_ref().filter(|_| self.pending.is_some()) else { return Ok(None) };
        let outcome = match syncer.outcomes.recv() {
            Err(_) => Err(ended()),
            Ok((done, time)) => done.map(|()| time),
        };
        self.ends(outcome)
    }

    fn ends(&mut self, outcome: io::Result<Duration>) -> io::Result<Option<FinishedSync>> {
        let end = self.pending.take();
        let time = outcome?;
        Ok(end.map(|end| FinishedSync { end, time }))
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread that syncs has ended")
}

impl Syncer {
    fn start() -> io::Result<Self> {
        let (files, work) = sync_channel::<Box<dyn AppendFile>>(1);
        let (done, outcomes) = sync_channel(1);
        let run = move || {
            for mut file in work {
                let began = Instant::now();
                let outcome = file.sync_data();
                if done.send((outcome, began.elapsed())).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("mirror sync".to_owned()).spawn(run)?;
        Ok(Self { files: Some(files), outcomes, thread: Some(thread) })
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.files = None;
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the thread that syncs has panicked");
        }
    }
}
