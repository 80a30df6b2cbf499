//! Threads that scan pieces at the same time, and sums that are taken in the order of the log.
//!
//! Whoever is free takes the next piece from the feed and scans it; whoever brings the piece whose turn it is adds it to
//! the sums, and those that wait behind it. So the sums see the same pieces in the same order with any number of
//! threads. How many pieces may wait is bounded.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use binlog::{Ending, LoggedGtids, NextFile};
use bytes::Bytes;
use engine::survey::{Definitions, PieceSummary, Problem, Sink, Totals, scan_part};

use super::feed::{Feed, LogFiles, Place, SurveyedFile, Work, log_name};

/// Problems that are kept, all together.
const PROBLEMS_MAX: usize = 10_000;

/// A problem and its file.
#[derive(Clone, Debug)]
pub struct Trouble {
    pub file: PathBuf,
    pub problem: Problem,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.file.as_os_str().is_empty() {
            return f.write_str(&self.problem.what);
        }
        write!(f, "{} at {}: {}", self.file.display(), self.problem.offset, self.problem.what)
    }
}

/// What a run over files found.
pub struct LogSurvey {
    pub totals: Totals,
    pub files: Vec<SurveyedFile>,
    pub troubles: Vec<Trouble>,
    /// Those that were not kept.
    pub more_troubles: u64,
}

enum Done {
    Scanned(Place, Box<PieceSummary>),
    Problem(Place, Problem),
    EndOfFile(Place),
}

#[derive(Default)]
struct Queue {
    next: u64,
    waiting: BTreeMap<u64, Done>,
    /// Somebody is adding to the sums.
    adding: bool,
}

struct Sums<'s> {
    totals: Totals,
    sink: Option<&'s mut (dyn Sink + Send)>,
    troubles: Vec<(Place, Problem)>,
    more_troubles: u64,
    place: Option<Place>,
    next_file: Option<String>,
    /// GTIDs up to here, once a file has said which were before it.
    logged: Option<LoggedGtids>,
    /// Of the file so far.
    ending: Ending,
    paths: Vec<PathBuf>,
}

/// Reads `files` to their end. `read` counts bytes for a progress bar; each of `stop` ends early.
pub fn run(
    files: LogFiles,
    definitions: Definitions,
    threads: usize,
    totals: Totals,
    sink: Option<&mut (dyn Sink + Send)>,
    read: &AtomicU64,
    stop: &[&AtomicBool],
) -> LogSurvey {
    let broken = AtomicBool::new(false);
    let stopped = || broken.load(Ordering::Relaxed) || stop.iter().any(|stop| stop.load(Ordering::Relaxed));
    let (depth, selection) = (totals.depth, totals.selection.clone());
    let sums = Mutex::new(Sums {
        totals,
        sink,
        troubles: Vec::new(),
        more_troubles: 0,
        place: None,
        next_file: None,
        logged: None,
        ending: Ending::default(),
        paths: files.paths.clone(),
    });
    let feed = Mutex::new((0_u64, Feed::new(files, definitions, &stopped)));
    let queue = Mutex::new(Queue::default());
    let moved = Condvar::new();
    let waiting_max = 2 * threads + 2;
    let work = || {
        let _guard = StopOnPanic { stop: &broken, moved: &moved };
        let mut done_with = Bytes::new();
        while !stopped() {
            let (number, work) = {
                let mut feed = lock(&feed);
                feed.1.reuse(std::mem::take(&mut done_with));
                let Some(work) = feed.1.next_work() else { break };
                let number = feed.0;
                feed.0 += 1;
                (number, work)
            };
            let done = match work {
                Work::Piece(place, piece) => {
                    let scanned = scan_part(&piece, depth, &selection);
                    read.fetch_add(piece.bytes.len() as u64, Ordering::Relaxed);
                    done_with = piece.bytes;
                    Done::Scanned(place, Box::new(scanned))
                }
                Work::Problem(place, problem) => Done::Problem(place, problem),
                Work::EndOfFile(place) => Done::EndOfFile(place),
            };
            deliver(number, done, &queue, &moved, &sums, waiting_max, &stopped);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let files = std::mem::take(&mut lock(&feed).1.seen);
    let sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut totals = sums.totals;
    totals.finish();
    let path = |place: Place| files.get(place as usize).map(|file| file.path.clone()).unwrap_or_default();
    let troubles = sums.troubles.into_iter().map(|(place, problem)| Trouble { file: path(place), problem }).collect();
    LogSurvey { totals, troubles, more_troubles: sums.more_troubles, files }
}

/// The others must not wait for a thread that is gone; the scope passes its panic on.
struct StopOnPanic<'a> {
    stop: &'a AtomicBool,
    moved: &'a Condvar,
}

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stop.store(true, Ordering::Relaxed);
            self.moved.notify_all();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// For a while at most: a signal wakes nobody.
fn wait<'q>(moved: &Condvar, state: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
    const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(100);
    moved.wait_timeout(state, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0
}

fn deliver(
    number: u64,
    done: Done,
    queue: &Mutex<Queue>,
    moved: &Condvar,
    sums: &Mutex<Sums<'_>>,
    waiting_max: usize,
    stopped: &dyn Fn() -> bool,
) {
    let mut state = lock(queue);
    state.waiting.insert(number, done);
    if state.adding {
        // Whoever adds comes to it; only the one whose turn it is must never wait here.
        while state.adding && state.waiting.len() > waiting_max && !stopped() {
            state = wait(moved, state);
        }
        if state.adding {
            return;
        }
    }
    state.adding = true;
    loop {
        let next = state.next;
        let Some(done) = state.waiting.remove(&next) else { break };
        drop(state);
        lock(sums).add(done);
        state = lock(queue);
        state.next += 1;
        moved.notify_all();
    }
    state.adding = false;
    moved.notify_all();
    // Behind a piece that somebody else still scans: wait when too many do.
    while state.waiting.len() > waiting_max && !state.adding && !state.waiting.contains_key(&state.next) {
        if stopped() {
            return;
        }
        state = wait(moved, state);
    }
}

impl Sums<'_> {
    fn add(&mut self, done: Done) {
        match done {
            Done::Scanned(place, mut scanned) => {
                self.begin(place);
                self.go_on(place, &mut scanned);
                for problem in scanned.problems.drain(..) {
                    self.problem(place, problem);
                }
                self.more_troubles += scanned.more_problems;
                if scanned.next_file.is_some() {
                    self.next_file.clone_from(&scanned.next_file);
                }
                let sink = self.sink.as_deref_mut().map(|sink| sink as &mut dyn Sink);
                self.totals.add(&scanned, sink);
            }
            Done::Problem(place, problem) => {
                self.begin(place);
                self.problem(place, problem);
            }
            Done::EndOfFile(place) => self.begin(place),
        }
    }

    fn begin(&mut self, place: Place) {
        if self.place == Some(place) {
            return;
        }
        let name = self.paths.get(place as usize).map(|path| log_name(path)).unwrap_or_default();
        if let Some(expected) = self.next_file.take().filter(|expected| *expected != name)
            && self.place.is_some()
        {
            let what = format!("the file before continues in {expected}, which is not the next one given");
            self.problem(place, Problem::new(0, what));
        }
        self.totals.begin_file(place, &name.into(), self.place.is_some());
        self.place = Some(place);
    }

    /// A copy of the file before that was made while its server wrote it, or that was cut short, may end early, between two transactions. (Of one that
    /// has a problem of its own that is enough.)
    fn go_on(&mut self, place: Place, scanned: &mut PieceSummary) {
        let is_damaged = self.troubles.last().is_some_and(|(trouble, _)| *trouble + 1 >= place);
        if let Some((first, format)) = scanned.begins.take() {
            let what = match std::mem::take(&mut self.ending).followed_by(&first, &format) {
                NextFile::Cut => {
                    Some("the file before ends early, for it does not say that its server went on to this one")
                }
                NextFile::StillWritten => {
                    Some("the file before was copied while its server still wrote it, and has no GTIDs that would tell")
                }
                NextFile::CrashedOrCut => {
                    tracing::warn!(
                        "the file before {} ends as a crash of its server leaves it, or as an incomplete copy: there are no GTIDs that would tell",
                        self.paths.get(place as usize).map(|path| path.display().to_string()).unwrap_or_default()
                    );
                    None
                }
                NextFile::Whole => None,
            };
            if let Some(what) = what.filter(|_| !is_damaged) {
                self.problem(place, Problem::new(0, format!("{what}: its copy is incomplete")));
            }
        }
        self.ending = self.ending.and(scanned.ending);
        if let Some(list) = scanned.list.take() {
            let missing = self.logged.take().map(|logged| list.without(&logged)).unwrap_or_default();
            if !missing.is_empty() && !is_damaged {
                let what = format!(
                    "the file before ends before transactions that this one begins after ({missing}): its copy is incomplete"
                );
                self.problem(place, Problem::new(0, what));
            }
            self.logged = Some(list);
        }
        if let Some(logged) = &mut self.logged {
            logged.merge(&scanned.gtids);
        }
    }

    fn problem(&mut self, place: Place, problem: Problem) {
        if self.troubles.len() < PROBLEMS_MAX {
            self.troubles.push((place, problem));
        } else {
            self.more_troubles += 1;
        }
    }
}

/// Threads to use when nobody says.
pub fn threads_by_default() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(16)
}

/// Names that go with problems which no file is to blame for.
pub fn trouble(path: PathBuf, what: String) -> Trouble {
    Trouble { file: path, problem: Problem::new(0, what) }
}

/// Files of both vendors are no one server's log.
pub fn mixed(files: &[SurveyedFile]) -> Option<Trouble> {
    let of = |file: &SurveyedFile| file.server_version.as_ref().map(|version| version.contains("MariaDB"));
    let first = files.iter().find_map(of)?;
    let other = files.iter().find(|file| of(file).is_some_and(|mariadb| mariadb != first))?;
    let (its, before) = if first { ("MySQL's", "MariaDB's") } else { ("MariaDB's", "MySQL's") };
    let what =
        format!("this file is {its}, those before it are {before}: not the log of one server; look at them one by one");
    Some(trouble(other.path.clone(), what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_both_vendors_are_named() {
        let file = |name: &str, version: Option<&str>| SurveyedFile {
            path: name.into(),
            bytes: 1,
            server_version: version.map(str::to_owned),
        };
        let (mysql, mariadb) = (Some("8.0.36"), Some("10.11.6-MariaDB-log"));
        for (files, wanted) in [
            (vec![file("a", mysql), file("b", mysql), file("c", None)], None),
            (vec![file("a", mariadb), file("b", mariadb)], None),
            (vec![file("a", None), file("b", mysql), file("c", mariadb)], Some("c at 0: this file is MariaDB's")),
            (vec![file("a", mariadb), file("b", mysql)], Some("b at 0: this file is MySQL's")),
        ] {
            let found = mixed(&files).map(|trouble| trouble.to_string());
            assert_eq!(found.is_some(), wanted.is_some(), "{found:?}");
            assert!(wanted.is_none_or(|wanted| found.is_some_and(|found| found.starts_with(wanted))));
        }
        assert_eq!(trouble(PathBuf::new(), "binlog.3 is missing".to_owned()).to_string(), "binlog.3 is missing");
    }
}
