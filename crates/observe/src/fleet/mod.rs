//! Several channels of one `heddle run`: each process shows itself through a socket, and here all are shown in one place. It asks the processes when somebody asks,
//! and keeps nothing but who they are.

mod merge;

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::http_get;

/// A process that does not answer keeps up the others no longer.
const PATIENCE: Duration = Duration::from_secs(1);
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// So many are asked at once.
const ASKED_AT_ONCE: usize = 16;

/// A channel, or a binlog server, and its process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub state: MemberState,
    /// Where its process shows itself. `None`: at an address that its file names.
    pub socket: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    Running,
    /// It has ended, and is started again.
    #[default]
    Waiting,
    /// It has come to its end.
    Ended,
    /// It has stopped: its message says what to do.
    NeedsPerson,
}

/// A member as it is shown.
#[derive(Debug, Serialize)]
pub struct MemberView {
    pub name: String,
    pub state: MemberState,
    /// As its own page has it; null: it does not run, or is shown elsewhere.
    pub frame: Option<Value>,
}

/// Who the members are.
#[derive(Debug, Default)]
pub struct Fleet {
    members: Mutex<Vec<Member>>,
}

impl Fleet {
    pub fn set(&self, members: Vec<Member>) {
        *self.members.lock().unwrap_or_else(PoisonError::into_inner) = members;
    }

    fn members(&self) -> Vec<Member> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks each process for its last frame.
    pub fn views(&self) -> Vec<MemberView> {
        let answers = self.ask("/frame");
        let view = |(member, answer): (Member, Option<String>)| MemberView {
            frame: answer.and_then(|text| serde_json::from_str(&text).ok()),
            name: member.name,
            state: member.state,
        };
        answers.into_iter().map(view).collect()
    }

    /// The metrics of all, as one text.
    pub fn metrics(&self) -> String {
        let answers = self.ask("/metrics");
        let mut process = String::from(
            "# HELP heddle_process_up Whether the channel's process runs.\n# TYPE heddle_process_up gauge\n",
        );
        for (member, _) in &answers {
            let is_up = u8::from(member.state == MemberState::Running);
            process.push_str(&format!("heddle_process_up{{channel=\"{}\"}} {is_up}\n", merge::escaped(&member.name)));
        }
        let texts = answers.iter().filter_map(|(member, text)| Some((member.name.as_str(), text.as_deref()?)));
        merge::merged(&process, texts)
    }

    fn ask(&self, path: &str) -> Vec<(Member, Option<String>)> {
        let members = self.members();
        let mut answers = Vec::with_capacity(members.len());
        for some in members.chunks(ASKED_AT_ONCE) {
            thread::scope(|scope| {
                let asked: Vec<_> = some.iter().map(|member| scope.spawn(|| answer_of(member, path))).collect();
                for (member, answer) in some.iter().zip(asked) {
                    answers.push((member.clone(), answer.join().ok().flatten()));
                }
            });
        }
        answers
    }
}

fn answer_of(member: &Member, path: &str) -> Option<String> {
    let socket = member.socket.as_ref().filter(|_| member.state == MemberState::Running)?;
    // One that starts does not listen yet.
    let answer = get(socket, path).inspect_err(|error| tracing::debug!("{}: {error}", socket.display())).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    (head.split(' ').nth(1) == Some("200")).then(|| body.to_owned())
}

fn get(socket: &Path, path: &str) -> io::Result<String> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    http_get::get(stream, "localhost", path, ANSWER_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn all_are_asked_and_who_does_not_answer_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("a.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let serving = thread::spawn(move || {
            for answer in ["{\"channel\":\"a\"}", "# TYPE heddle_x gauge\nheddle_x{channel=\"a\"} 1\n# EOF\n"] {
                let (mut stream, _) = listener.accept().unwrap();
                // All of the question: a socket that is closed with a part unread takes the answer with it.
                let (mut asked, mut part) = (Vec::new(), [0; 1024]);
                while !asked.ends_with(b"\r\n\r\n") {
                    let count = stream.read(&mut part).unwrap();
                    asked.extend_from_slice(&part[..count]);
                }
                write!(stream, "HTTP/1.0 200 OK\r\n\r\n{answer}").unwrap();
            }
        });
        let fleet = Fleet::default();
        let member = |name: &str, state, socket| Member { name: name.to_owned(), state, socket };
        fleet.set(vec![
            member("a", MemberState::Running, Some(socket)),
            member("b", MemberState::Running, Some(dir.path().join("nobody.sock"))),
            member("c", MemberState::NeedsPerson, None),
        ]);
        let text = serde_json::to_string(&fleet.views()).unwrap();
        assert_eq!(
            text,
            r#"[{"name":"a","state":"running","frame":{"channel":"a"}},{"name":"b","state":"running","frame":null},{"name":"c","state":"needs_person","frame":null}]"#
        );
        let metrics = fleet.metrics();
        for line in
            ["heddle_x{channel=\"a\"} 1", "heddle_process_up{channel=\"a\"} 1", "heddle_process_up{channel=\"c\"} 0"]
        {
            assert!(metrics.lines().any(|found| found == line), "{metrics}");
        }
        assert!(metrics.ends_with("# EOF\n") && metrics.matches("# EOF").count() == 1);
        serving.join().unwrap();
    }
}
