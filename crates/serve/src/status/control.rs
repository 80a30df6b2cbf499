//! The socket in a mirror's folder. A command on the same machine asks a running server for its status, or points it to another source: one line of JSON each way.
//!
//! Only the folder's owner can reach it. It accepts no file and no network address of its own.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use engine::failure::{Failure, FailureKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use super::snapshot::Snapshot;

/// The socket's name in the folder.
pub const SOCKET: &str = "heddle-serve.sock";
const QUESTION_BYTES_MAX: u64 = 64 << 10;
const ANSWER_BYTES_MAX: u64 = 256 << 20;
/// Who has connected says at once what it wants.
const QUESTION_WITHIN: Duration = Duration::from_secs(2);
/// A source that is to be followed is asked what it has.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);
const STEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Question {
    Status,
    Repoint { from: Vec<String> },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Status(Box<Snapshot>),
    Repointed { source: String },
    Refused { message: String, remedy: String, again: bool },
}

/// Answers the questions on the socket.
pub trait ControlHandler: Send + Sync {
    fn status(&self) -> Snapshot;
    /// Follows another source; says which server it is.
    ///
    /// # Errors
    /// It is not followed, and all goes on as before.
    fn repoint(&self, from: &[String]) -> Result<String, Failure>;
}

/// The listening socket. It is removed when this value is dropped.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Listens in the folder of a mirror that this process has, so that a socket which is there is one of before.
    ///
    /// # Errors
    /// The folder does not take it.
    pub fn start(dir: &Path, controlled: Arc<dyn ControlHandler>) -> io::Result<Self> {
        let path = dir.join(SOCKET);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = short(dir, |path| UnixListener::bind(path))?;
        rustix::fs::chmod(&path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
        listener.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        let run = move || {
            while !ends.load(Ordering::Relaxed) {
                let _ = poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&STEP));
                if let Ok((stream, _)) = listener.accept()
                    && let Err(error) = answer(stream, &*controlled)
                {
                    tracing::debug!("{SOCKET}: {error}");
                }
            }
        };
        let thread = thread::Builder::new().name("control".to_owned()).spawn(run)?;
        Ok(Self { path, stop, thread: Some(thread) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

fn answer(mut stream: UnixStream, controlled: &dyn ControlHandler) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(QUESTION_WITHIN))?;
    stream.set_write_timeout(Some(QUESTION_WITHIN))?;
    let mut line = String::new();
    BufReader::new(&stream).take(QUESTION_BYTES_MAX).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(Question::Status) => Answer::Status(Box::new(controlled.status())),
        Ok(Question::Repoint { from }) => match controlled.repoint(&from) {
            Ok(source) => Answer::Repointed { source },
            Err(failure) => Answer::Refused {
                again: failure.kind == FailureKind::ConnectionLost,
                message: failure.message,
                remedy: failure.remedy,
            },
        },
        Err(error) => Answer::Refused {
            message: format!("not understood, perhaps asked by another version of heddle: {error}"),
            remedy: "use the heddle that runs the server".to_owned(),
            again: false,
        },
    };
    serde_json::to_writer(&mut stream, &answer).map_err(io::Error::other)?;
    stream.write_all(b"\n")
}

/// The path of a socket may have 107 bytes: it is named through the folder's descriptor.
fn short<T>(dir: &Path, with: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let folder = File::open(dir)?;
    with(&PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd())))
}

/// Asks the server of a folder for its status. `None`: no process runs the mirror.
///
/// # Errors
/// It does not answer.
pub fn status(dir: &Path) -> Result<Option<Snapshot>, Failure> {
    match ask(dir, &Question::Status)? {
        Some(Answer::Status(snapshot)) => Ok(Some(*snapshot)),
        Some(other) => Err(unexpected(dir, other)),
        None => Ok(None),
    }
}

/// Points the server of a folder to another source, and returns that server's identity. `None`: no process runs the mirror.
///
/// # Errors
/// The source is not followed; the server goes on as before.
pub fn repoint(dir: &Path, from: &[String]) -> Result<Option<String>, Failure> {
    match ask(dir, &Question::Repoint { from: from.to_vec() })? {
        Some(Answer::Repointed { source }) => Ok(Some(source)),
        Some(other) => Err(unexpected(dir, other)),
        None => Ok(None),
    }
}

fn unexpected(dir: &Path, answer: Answer) -> Failure {
    match answer {
        Answer::Refused { message, remedy, again } => {
            let kind = if again { FailureKind::ConnectionLost } else { FailureKind::Refused };
            Failure::new(kind, message).remedy(remedy)
        }
        Answer::Status(_) | Answer::Repointed { .. } => {
            Failure::new(FailureKind::Refused, format!("the server of {} gave an unexpected answer", dir.display()))
        }
    }
}

fn ask(dir: &Path, question: &Question) -> Result<Option<Answer>, Failure> {
    let mut stream = match short(dir, |path| UnixStream::connect(path)) {
        Ok(stream) => stream,
        // None, or one that a killed process has left.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(failed(dir, &error)),
    };
    let mut exchange = || {
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.set_write_timeout(Some(ANSWER_WITHIN))?;
        serde_json::to_writer(&mut stream, question).map_err(io::Error::other)?;
        stream.write_all(b"\n")?;
        let mut answer = String::new();
        BufReader::new(&stream).take(ANSWER_BYTES_MAX).read_line(&mut answer)?;
        serde_json::from_str(&answer).map_err(io::Error::other)
    };
    exchange().map(Some).map_err(|error| failed(dir, &error))
}

fn failed(dir: &Path, error: &io::Error) -> Failure {
    Failure::new(FailureKind::ConnectionLost, format!("asking the server of {}: {error}", dir.display()))
        .remedy("run this as the user that heddle runs as, on its machine; see whether heddle serve still runs")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl ControlHandler for Fixed {
        fn status(&self) -> Snapshot {
            serde_json::from_str(include_str!("snapshot.json")).unwrap()
        }

        fn repoint(&self, from: &[String]) -> Result<String, Failure> {
            if from == ["mysql://b"] {
                return Ok("b".to_owned());
            }
            Err(Failure::new(FailureKind::Refused, "it lacks transactions").remedy("another one"))
        }
    }

    #[test]
    fn a_server_is_asked_through_its_folder() {
        let top = tempfile::tempdir().unwrap();
        // Longer than a socket's path may be.
        let dir = top.path().join("d".repeat(120));
        std::fs::create_dir(&dir).unwrap();
        assert!(status(&dir).unwrap().is_none());
        let control = Control::start(&dir, Arc::new(Fixed)).unwrap();
        assert_eq!(status(&dir).unwrap(), Some(Fixed.status()));
        assert_eq!(repoint(&dir, &["mysql://b".to_owned()]).unwrap().as_deref(), Some("b"));
        let refused = repoint(&dir, &["mysql://c".to_owned()]).unwrap_err();
        assert_eq!((refused.kind, refused.message.as_str()), (FailureKind::Refused, "it lacks transactions"));
        let mut garbage = short(&dir, |path| UnixStream::connect(path)).unwrap();
        garbage.write_all(b"{\"what\": 1}\n").unwrap();
        let mut said = String::new();
        garbage.read_to_string(&mut said).unwrap();
        assert!(said.contains("not understood"), "{said}");
        drop(control);
        assert!(status(&dir).unwrap().is_none());
        // One of a killed process.
        let left = short(&dir, |path| UnixListener::bind(path)).unwrap();
        drop(left);
        assert!(status(&dir).unwrap().is_none());
        drop(Control::start(&dir, Arc::new(Fixed)).unwrap());
    }
}
