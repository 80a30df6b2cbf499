//! Reads logs for `heddle inspect --find`: files one after the other, or a live server. What is a hit is the engine's ([`engine::survey::search`]).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Result;
use engine::survey::search::{Hit, PieceFindings, Search};
use engine::survey::totals::Costs;
use engine::survey::{Definitions, Depth, Piece, ProblemKind, Totals};

use super::feed::{Feed, LogFiles, Work, log_name};
use super::live_server::{self, LiveServer, PieceReader};
use super::pipeline::Trouble;

/// Problems that are kept, all together.
const PROBLEMS_MAX: usize = 10_000;

/// Is given each hit, with the name of its log, as soon as it is found.
pub type HitSink<'a> = &'a mut dyn FnMut(&str, &Hit);

/// What a run found.
#[derive(Debug, Default)]
pub struct Outcome {
    pub hits: u64,
    /// As many as were asked for: the rest was not read.
    pub is_enough: bool,
    /// Events were there.
    pub has_read: bool,
    pub troubles: Vec<Trouble>,
    pub more_troubles: u64,
    /// Columns of conditions that no table had.
    pub unknown_columns: Vec<String>,
    /// Tables whose rows could not be judged: their columns have no names here.
    pub nameless_tables: Vec<String>,
}

struct Reader<'a> {
    search: Search,
    limit: u64,
    on_hit: HitSink<'a>,
    outcome: Outcome,
}

impl<'a> Reader<'a> {
    fn new(search: Search, limit: u64, on_hit: HitSink<'a>) -> Self {
        Self { search, limit, on_hit, outcome: Outcome::default() }
    }

    fn take(&mut self, name: &str, found: &PieceFindings) {
        self.outcome.has_read = true;
        for hit in &found.hits {
            if self.outcome.hits >= self.limit {
                self.outcome.is_enough = true;
                return;
            }
            self.outcome.hits += 1;
            (self.on_hit)(name, hit);
        }
    }

    fn trouble(&mut self, trouble: Trouble) {
        if self.outcome.troubles.len() < PROBLEMS_MAX {
            self.outcome.troubles.push(trouble);
        } else {
            self.outcome.more_troubles += 1;
        }
    }

    fn finish(self) -> Outcome {
        let unknown_columns = self.search.unknown_columns().into_iter().map(str::to_owned).collect();
        let nameless_tables = self.search.nameless_tables().map(str::to_owned).collect();
        Outcome { unknown_columns, nameless_tables, ..self.outcome }
    }
}

/// Files, in their order. `read` counts bytes for a progress bar.
pub fn files(
    files: LogFiles,
    definitions: Definitions,
    search: Search,
    limit: u64,
    read: &AtomicU64,
    stop: &AtomicBool,
    on_hit: HitSink<'_>,
) -> Outcome {
    let stopped = || stop.load(Ordering::Relaxed);
    let paths = files.paths.clone();
    let path = |place: u32| paths.get(place as usize).map_or_else(|| Path::new(""), PathBuf::as_path);
    let mut reader = Reader::new(search, limit, on_hit);
    let mut feed = Feed::new(files, definitions, &stopped);
    while let Some(work) = feed.next_work() {
        if stopped() || reader.outcome.is_enough {
            break;
        }
        match work {
            Work::Piece(place, piece) => {
                let found = reader.search.piece(&piece);
                read.fetch_add(piece.bytes.len() as u64, Ordering::Relaxed);
                reader.take(&log_name(path(place)), &found);
                for problem in found.problems {
                    reader.trouble(Trouble { file: path(place).to_owned(), problem });
                }
                reader.outcome.more_troubles += found.more_problems;
                feed.reuse(piece.bytes);
            }
            Work::Problem(place, problem) => reader.trouble(Trouble { file: path(place).to_owned(), problem }),
            Work::EndOfFile(_) => reader.search.new_file(),
        }
    }
    reader.finish()
}

impl PieceReader for Reader<'_> {
    fn piece(&mut self, file: &str, piece: &Piece) -> bool {
        let found = self.search.piece(piece);
        self.take(file, &found);
        // Other problems are those of who reads the log. The last transaction may still be arriving.
        for problem in found.problems.into_iter().filter(|problem| problem.kind != ProblemKind::Unfinished) {
            tracing::debug!("{file} at {}: {}", problem.offset, problem.what);
        }
        !self.outcome.is_enough
    }

    fn new_file(&mut self) {
        self.search.new_file();
    }
}

/// A live server's logs, to the end that they have now or until `stop`.
pub fn server(
    live: &LiveServer,
    definitions: Definitions,
    search: Search,
    limit: u64,
    stop: &AtomicBool,
    on_hit: HitSink<'_>,
) -> Result<Outcome> {
    let mut reader = Reader::new(search, limit, on_hit);
    let totals = Totals::new(Depth::Traffic, Costs::default());
    let found = live_server::run_with(live, definitions, totals, None, Some(&mut reader), stop)?;
    let mut outcome = reader.finish();
    outcome.troubles = found.troubles;
    outcome.more_troubles = found.more_troubles;
    Ok(outcome)
}
