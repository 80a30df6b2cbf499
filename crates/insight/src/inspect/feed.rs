//! Files → pieces, one after the other.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive::ArchiveFs;
use binlog::frame::compressed_by;
use bytes::Bytes;
use engine::survey::{Cut, Cutter, Definitions, PIECE_BYTES, Piece, Problem};
use flate2::read::MultiGzDecoder;
use relay::fs::{Fs, ReadFile};
use relay::{RealFs, packed};

use super::pipe::Pipe;

/// How much is read at once, in bytes.
const READ_BYTES: usize = 128 << 10;
/// Pieces whose memory is kept for later ones.
const SPARE_MAX: usize = 16;

/// A file, or its place among those given.
pub type Place = u32;

/// Files to read, in order.
#[derive(Debug)]
pub struct LogFiles {
    pub paths: Vec<PathBuf>,
    /// Where they are, unless it is this machine.
    pub archive: Option<ArchiveFs>,
}

impl From<Vec<PathBuf>> for LogFiles {
    fn from(paths: Vec<PathBuf>) -> Self {
        Self { paths, archive: None }
    }
}

impl LogFiles {
    /// The bytes of all files, for a progress bar.
    pub fn total_bytes(&self) -> u64 {
        self.paths.iter().map(|path| bytes_of(self.archive.as_ref(), path)).sum()
    }
}

fn bytes_of(archive: Option<&ArchiveFs>, path: &Path) -> u64 {
    match archive {
        Some(archive) => archive.file(path).map_or(0, |file| file.size),
        None => std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
    }
}

/// A file of an archive, from its beginning.
struct Archived {
    file: Arc<dyn ReadFile>,
    at: u64,
}

impl Read for Archived {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// What was read of one file.
#[derive(Clone, Debug)]
pub struct SurveyedFile {
    pub path: PathBuf,
    pub bytes: u64,
    pub server_version: Option<String>,
}

/// The next thing to do, in the order of the log.
#[derive(Debug)]
pub enum Work {
    Piece(Place, Piece),
    Problem(Place, Problem),
    /// Everything of the file has been handed out.
    EndOfFile(Place),
}

/// A file, in clear, through gzip, or compressed so that it can be read anywhere; or what is none.
enum Input<'a> {
    Plain(File),
    Packed(packed::SequentialFile),
    Gzip(Box<MultiGzDecoder<File>>),
    Pipe(Pipe<'a>),
    Archived(Archived),
}

/// Whether it is time to end.
type Stopped<'a> = &'a (dyn Fn() -> bool + Sync);

impl<'a> Input<'a> {
    /// And how many bytes come, where that is known.
    fn open(path: &Path, archive: Option<&ArchiveFs>, stopped: Stopped<'a>) -> std::io::Result<(Self, Option<u64>)> {
        if let Some(archive) = archive {
            let file = archive.open_read(path)?;
            let bytes = file.len()?;
            return Ok((Self::Archived(Archived { file, at: 0 }), Some(bytes)));
        }
        if !std::fs::metadata(path)?.is_file() {
            return Ok((Self::Pipe(Pipe::open(path, stopped)?), None));
        }
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        let mut magic = Vec::new();
        file.by_ref().take(4).read_to_end(&mut magic)?;
        file.rewind()?;
        let by = magic.first_chunk::<4>().and_then(|magic| compressed_by(*magic));
        if by.is_some_and(|(program, _)| program == "zstd")
            && let Ok(file) = packed::open(&RealFs, path)
        {
            let length = file.len()?;
            return Ok((Self::Packed(packed::SequentialFile::new(file)), Some(length)));
        }
        Ok(match by {
            Some(("gzip", _)) => (Self::Gzip(Box::new(MultiGzDecoder::new(file))), None),
            _ => (Self::Plain(file), Some(metadata.len())),
        })
    }
}

impl Read for Input<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(bytes),
            Self::Packed(file) => file.read(bytes),
            Self::Gzip(decoder) => decoder.read(bytes),
            Self::Pipe(pipe) => pipe.read(bytes),
            Self::Archived(file) => file.read(bytes),
        }
    }
}

struct Open<'a> {
    place: Place,
    input: Input<'a>,
    cutter: Cutter,
    /// Bytes of the file not yet read; of a pipe nobody knows.
    left: Option<u64>,
    /// The cutter said that nothing more can be read.
    failed: bool,
}

/// Cuts the files in their order; definitions are carried from one to the next.
pub struct Feed<'a> {
    paths: std::vec::IntoIter<(Place, PathBuf)>,
    archive: Option<ArchiveFs>,
    open: Option<Open<'a>>,
    stopped: Stopped<'a>,
    definitions: Arc<Definitions>,
    waiting: std::collections::VecDeque<Work>,
    /// Memory of pieces that are done.
    spare: Vec<Vec<u8>>,
    pub seen: Vec<SurveyedFile>,
}

impl<'a> Feed<'a> {
    pub fn new(files: LogFiles, definitions: Definitions, stopped: Stopped<'a>) -> Self {
        let numbered: Vec<(Place, PathBuf)> = (0..).zip(files.paths).collect();
        Self {
            paths: numbered.into_iter(),
            archive: files.archive,
            open: None,
            stopped,
            definitions: Arc::new(definitions),
            waiting: std::collections::VecDeque::new(),
            spare: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Takes back the memory of a piece.
    pub fn reuse(&mut self, mut bytes: Bytes) {
        bytes.clear();
        if bytes.is_unique() && self.spare.len() < SPARE_MAX {
            let buffer = Vec::from(bytes);
            // Large transactions are rare, and their memory is not kept.
            if buffer.capacity() <= 2 * PIECE_BYTES {
                self.spare.push(buffer);
            }
        }
    }

    /// `None` at the end of the last file.
    pub fn next_work(&mut self) -> Option<Work> {
        loop {
            if let Some(work) = self.waiting.pop_front() {
                return Some(work);
            }
            match self.open.take() {
                Some(open) => self.go_on(open),
                None => self.open_next()?,
            }
        }
    }

    fn open_next(&mut self) -> Option<()> {
        let (place, path) = self.paths.next()?;
        let (input, left) = match Input::open(&path, self.archive.as_ref(), self.stopped) {
            Ok(opened) => opened,
            Err(error) => {
                self.seen.push(SurveyedFile { path, bytes: 0, server_version: None });
                self.waiting.push_back(Work::Problem(place, Problem::new(0, error.to_string())));
                self.waiting.push_back(Work::EndOfFile(place));
                return Some(());
            }
        };
        let bytes = bytes_of(self.archive.as_ref(), &path);
        self.seen.push(SurveyedFile { path, bytes, server_version: None });
        let cutter = Cutter::new(Arc::clone(&self.definitions));
        let cutter = match left {
            Some(bytes) => cutter.ending_at(bytes),
            None => cutter,
        };
        self.open = Some(Open { place, input, cutter, left, failed: false });
        Some(())
    }

    /// One step in the file; puts what comes of it among the waiting work.
    fn go_on(&mut self, mut open: Open<'a>) {
        let place = open.place;
        open.cutter.reuse(&mut self.spare);
        match open.cutter.next() {
            Cut::Piece(piece) => self.waiting.push_back(Work::Piece(place, piece)),
            Cut::NeedMore(at_least) => match open.read(at_least) {
                Ok(true) => {}
                Ok(false) => {
                    let (piece, problem) = open.cutter.finish();
                    self.waiting.extend(piece.map(|piece| Work::Piece(place, piece)));
                    self.waiting.extend(problem.map(|problem| Work::Problem(place, problem)));
                    return self.close(&open);
                }
                // By a signal: who waits for it says so.
                Err(_) if (self.stopped)() => return self.close(&open),
                Err(error) => {
                    let what = format!("reading it failed: {error}");
                    self.waiting.push_back(Work::Problem(place, Problem::new(0, what)));
                    return self.close(&open);
                }
            },
            Cut::Skip { bytes, offset } => {
                if let Err(what) = open.skip(bytes) {
                    self.waiting.push_back(Work::Problem(place, Problem::new(offset, what)));
                    return self.close(&open);
                }
            }
            Cut::Failed(problem) => {
                open.failed = true;
                self.waiting.push_back(Work::Problem(place, problem));
                return self.close(&open);
            }
        }
        self.open = Some(open);
    }

    fn close(&mut self, open: &Open<'_>) {
        self.definitions = Arc::clone(open.cutter.definitions());
        if let Some(seen) = self.seen.get_mut(open.place as usize) {
            seen.server_version = open.cutter.format().map(|format| format.server_version.clone());
        }
        self.waiting.push_back(Work::EndOfFile(open.place));
    }
}

impl Open<'_> {
    /// False at the end of the file.
    fn read(&mut self, at_least: usize) -> std::io::Result<bool> {
        let want = (at_least.max(READ_BYTES) as u64).min(self.left.unwrap_or(u64::MAX));
        let buffer = self.cutter.buffer();
        // Only what the file has is allocated, whatever the length of an event says.
        if self.left.is_some() {
            buffer.reserve(want as usize);
        }
        let read = self.input.by_ref().take(want).read_to_end(buffer)? as u64;
        self.left = self.left.map(|left| left.saturating_sub(read));
        // A file that became shorter since it was opened ends here.
        Ok(read > 0)
    }

    fn skip(&mut self, bytes: u64) -> Result<(), String> {
        if let (Some(left), Input::Archived(file)) = (self.left, &mut self.input) {
            self.left = Some(left.saturating_sub(bytes));
            file.at += bytes;
            return Ok(());
        }
        let (Some(left), Input::Plain(file)) = (self.left, &mut self.input) else {
            let passed = std::io::copy(&mut self.input.by_ref().take(bytes), &mut std::io::sink());
            return match passed {
                Ok(passed) if passed == bytes => Ok(()),
                Ok(passed) => Err(format!("the file ends inside an event: {passed} of {bytes} more bytes are there")),
                Err(error) => Err(format!("reading it failed: {error}")),
            };
        };
        self.left = Some(left.saturating_sub(bytes));
        let moved = i64::try_from(bytes).map_err(std::io::Error::other);
        let moved = moved.and_then(|bytes| file.seek(SeekFrom::Current(bytes)));
        moved.map(|_| ()).map_err(|error| format!("reading it failed: {error}"))
    }
}

/// The name that the server gave a log, whatever compressed it.
pub fn log_name(path: &Path) -> String {
    let name = file_name(path);
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(packed::SUFFIX)).map(str::to_owned);
    plain.unwrap_or(name)
}

pub fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// What gzip has compressed is read as the log that it is.
    #[test]
    fn a_file_through_gzip() {
        let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/logs/keys_kept.000001");
        let dir = tempfile::tempdir().unwrap();
        let packed = dir.path().join("keys_kept.000001.gz");
        let mut encoder = flate2::write::GzEncoder::new(File::create(&packed).unwrap(), flate2::Compression::fast());
        encoder.write_all(&std::fs::read(&log).unwrap()).unwrap();
        encoder.finish().unwrap();
        let pieces = |path: PathBuf| {
            let mut feed = Feed::new(vec![path].into(), Definitions::default(), &|| false);
            let mut found = Vec::new();
            while let Some(work) = feed.next_work() {
                match work {
                    Work::Piece(_, piece) => found.push((piece.offset, piece.bytes)),
                    Work::Problem(_, problem) => panic!("{problem:?}"),
                    Work::EndOfFile(_) => {}
                }
            }
            found
        };
        let plain = pieces(log);
        assert!(!plain.is_empty());
        assert_eq!(pieces(packed), plain);
    }
}
