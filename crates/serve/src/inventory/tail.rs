//! The newest bytes of the log, in memory. Replicas that keep up are sent these, so that the file is not read again for each of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// In all.
const BYTES_MAX: usize = 4 << 20;
const PIECES_MAX: usize = 16_384;

/// See the module.
#[derive(Debug, Default)]
pub struct Tail(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Series and name of the file.
    file: Option<(u64, Arc<str>)>,
    /// Without gaps, each with its offset.
    pieces: VecDeque<(u64, Bytes)>,
    bytes: usize,
}

impl Tail {
    /// What follows in a file. Bytes of another file, or with a gap before them, begin anew.
    pub(super) fn push(&self, file: (u64, Arc<str>), offset: u64, pieces: &[Bytes]) {
        let mut state = self.state();
        let end = state.pieces.back().map(|(at, piece)| at + piece.len() as u64);
        if state.file.as_ref() != Some(&file) || end != Some(offset) {
            *state = State { file: Some(file), ..State::default() };
        }
        let mut at = offset;
        for piece in pieces {
            state.bytes += piece.len();
            state.pieces.push_back((at, piece.clone()));
            at += piece.len() as u64;
        }
        while state.bytes > BYTES_MAX || state.pieces.len() > PIECES_MAX {
            let Some((_, gone)) = state.pieces.pop_front() else { break };
            state.bytes -= gone.len();
        }
    }

    /// What is on disk may have changed.
    pub(super) fn forget(&self) {
        *self.state() = State::default();
    }

    /// Copies what there is from an offset on; 0: nothing.
    pub(super) fn read(&self, series: u64, file: &Arc<str>, offset: u64, into: &mut [u8]) -> usize {
        let state = self.state();
        let is_it = state.file.as_ref().is_some_and(|(of, name)| *of == series && **name == **file);
        if !is_it || state.pieces.front().is_none_or(|(first, _)| offset < *first) {
            return 0;
        }
        let index = state.pieces.partition_point(|(at, _)| *at <= offset).saturating_sub(1);
        let mut done = 0;
        for (at, piece) in state.pieces.range(index..) {
            let from = usize::try_from((offset + done as u64).saturating_sub(*at)).unwrap_or(usize::MAX);
            let (Some(found), Some(rest)) = (piece.get(from..), into.get_mut(done..)) else { break };
            let count = found.len().min(rest.len());
            if let (Some(rest), Some(found)) = (rest.get_mut(..count), found.get(..count)) {
                rest.copy_from_slice(found);
            }
            done += count;
            if done == into.len() {
                break;
            }
        }
        done
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_bytes_are_here_and_no_others() {
        let tail = Tail::default();
        let (one, two): (Arc<str>, Arc<str>) = ("b.000001".into(), "b.000002".into());
        let read = |series: u64, file: &Arc<str>, offset: u64, length: usize| {
            let mut into = vec![0; length];
            let count = tail.read(series, file, offset, &mut into);
            into.truncate(count);
            into
        };
        let piece = |text: &'static str| Bytes::from_static(text.as_bytes());
        tail.push((0, Arc::clone(&one)), 100, &[piece("abc"), piece("defg")]);
        tail.push((0, Arc::clone(&one)), 107, &[piece("h")]);
        assert_eq!(read(0, &one, 100, 8), b"abcdefgh");
        assert_eq!(read(0, &one, 102, 3), b"cde");
        assert_eq!(read(0, &one, 104, 100), b"efgh");
        assert!(read(0, &one, 99, 9).is_empty() && read(0, &one, 108, 9).is_empty());
        assert!(read(1, &one, 100, 8).is_empty() && read(0, &two, 100, 8).is_empty());
        // With a gap, and another file.
        tail.push((0, Arc::clone(&one)), 200, &[piece("xy")]);
        assert!(read(0, &one, 100, 8).is_empty() && read(0, &one, 201, 8) == b"y");
        tail.push((0, Arc::clone(&two)), 4, &[piece("z")]);
        assert!(read(0, &one, 201, 8).is_empty() && read(0, &two, 4, 8) == b"z");
        tail.forget();
        assert!(read(0, &two, 4, 8).is_empty());
        // It is bounded.
        let large = Bytes::from(vec![7; 1 << 20]);
        tail.push((0, Arc::clone(&two)), 0, &vec![large; 9]);
        assert!(read(0, &two, 0, 8).is_empty() && read(0, &two, (9 << 20) - 3, 8) == [7; 3]);
    }
}
