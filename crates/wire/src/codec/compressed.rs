//! Protocol compression: packets inside of compressed packets, zlib or zstd.
//!
//! A compressed packet has 3 bytes length, 1 byte number, 3 bytes length before compression (0: it is not compressed). Source: "Compression" in the MySQL client/server
//! protocol documentation.

use std::io::{self, Read, Write};

use super::cursor::Cursor;

/// Shorter ones are sent as they are, as servers do.
const LEAST_BYTES: usize = 50;
/// What one packet holds; the protocol allows 16 MiB.
const MOST_BYTES: usize = 1 << 20;
const HEADER_BYTES: usize = 7;
/// Around a payload: its own packets' headers, and what compression may add to what can not be compressed.
const MORE_BYTES: usize = 64 << 10;
/// What is read at once.
const READ_BYTES: usize = 64 << 10;

/// How it is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Zlib,
    /// With a level from 1 to 22.
    Zstd(u8),
}

/// A stream through which everything goes compressed.
#[derive(Debug)]
pub(crate) struct CompressedStream<S> {
    stream: S,
    method: Method,
    /// What comes may not be longer, compressed or not.
    packet_bytes_max: usize,
    /// Number of the next packet.
    sequence: u8,
    /// What comes is no answer to what was sent: its numbers count nothing here.
    is_apart: bool,
    /// Of the packet that is coming.
    coming: Vec<u8>,
    /// What has come and was not read yet.
    here: Vec<u8>,
    at: usize,
}

impl<S> CompressedStream<S> {
    /// Packets hold payloads of up to `payload_bytes_max`. A longer one that comes is [`io::ErrorKind::InvalidData`], and is not taken in.
    pub(crate) fn new(stream: S, method: Method, payload_bytes_max: usize) -> Self {
        CompressedStream {
            stream,
            method,
            packet_bytes_max: payload_bytes_max.saturating_add(MORE_BYTES),
            sequence: 0,
            is_apart: false,
            coming: Vec::new(),
            here: Vec::new(),
            at: 0,
        }
    }

    pub(crate) fn inner(&self) -> &S {
        &self.stream
    }

    pub(crate) fn inner_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// From here on what is sent is numbered from this on, whatever comes.
    pub(crate) fn number_from(&mut self, sequence: u8) {
        self.sequence = sequence;
        self.is_apart = true;
    }
}

impl<S: Read> CompressedStream<S> {
    fn receive(&mut self) -> io::Result<()> {
        self.fill(HEADER_BYTES)?;
        let mut fields = Cursor::new(&self.coming, "the header of a compressed packet");
        let (length, sequence, full) = fields
            .u24()
            .and_then(|length| Ok((length, fields.u8()?, fields.u24()? as usize)))
            .map_err(io::Error::other)?;
        if full.max(length as usize) > self.packet_bytes_max {
            let told = format!("a compressed packet of more than {} bytes came", self.packet_bytes_max);
            return Err(io::Error::new(io::ErrorKind::InvalidData, told));
        }
        self.fill(HEADER_BYTES + length as usize)?;
        let payload = self.coming.split_off(HEADER_BYTES);
        self.coming.clear();
        if !self.is_apart {
            self.sequence = sequence.wrapping_add(1);
        }
        self.here = if full == 0 { payload } else { expanded(&payload, full, self.method)? };
        self.at = 0;
        Ok(())
    }
}

impl<S: Read> CompressedStream<S> {
    /// Reads on until so much of a packet is here. After `WouldBlock` or `TimedOut` the call can be repeated.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        while self.coming.len() < wanted {
            let at = self.coming.len();
            // What is claimed is not allocated before it comes.
            self.coming.resize(wanted.min(at + READ_BYTES), 0);
            let read = self.stream.read(self.coming.get_mut(at..).unwrap_or_default());
            self.coming.truncate(at + read.as_ref().copied().unwrap_or(0));
            match read {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl<S: Read> Read for CompressedStream<S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at >= self.here.len() {
            if out.is_empty() {
                return Ok(0);
            }
            self.receive()?;
        }
        let rest = self.here.get(self.at..).unwrap_or_default();
        let count = rest.len().min(out.len());
        if let (Some(to), Some(from)) = (out.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.at += count;
        Ok(count)
    }
}

impl<S: Write> Write for CompressedStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.get(..bytes.len().min(MOST_BYTES)).unwrap_or_default();
        if taken.is_empty() {
            return Ok(0);
        }
        let shrunk = if taken.len() < LEAST_BYTES { None } else { Some(shrunk(taken, self.method)?) };
        let (payload, full) = match &shrunk {
            Some(shrunk) if shrunk.len() < taken.len() => (&shrunk[..], taken.len()),
            _ => (taken, 0),
        };
        let head = u24(payload.len()).into_iter().chain([self.sequence]).chain(u24(full));
        let packet: Vec<u8> = head.chain(payload.iter().copied()).collect();
        self.sequence = self.sequence.wrapping_add(1);
        self.stream.write_all(&packet)?;
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Packets are shorter than 16 MiB.
fn u24(length: usize) -> [u8; 3] {
    let [low, middle, high, ..] = length.to_le_bytes();
    [low, middle, high]
}

fn shrunk(bytes: &[u8], method: Method) -> io::Result<Vec<u8>> {
    match method {
        Method::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(bytes)?;
            encoder.finish()
        }
        Method::Zstd(level) => zstd::bulk::compress(bytes, i32::from(level.clamp(1, 22))),
    }
}

/// Exactly `full` bytes, or it is damaged.
fn expanded(bytes: &[u8], full: usize, method: Method) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let limit = full as u64 + 1;
    match method {
        Method::Zlib => flate2::read::ZlibDecoder::new(bytes).take(limit).read_to_end(&mut out)?,
        Method::Zstd(_) => zstd::stream::read::Decoder::new(bytes)?.take(limit).read_to_end(&mut out)?,
    };
    if out.len() == full {
        return Ok(out);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "a compressed packet is not as long as it says"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAX: usize = 16 << 20;

    fn round_trip(parts: &[Vec<u8>], method: Method) {
        let mut writer = CompressedStream::new(Vec::new(), method, MAX);
        for part in parts {
            writer.write_all(part).unwrap();
        }
        let sent = writer.stream;
        let mut reader = CompressedStream::new(&sent[..], method, MAX);
        let mut got = vec![0; parts.iter().map(Vec::len).sum()];
        reader.read_exact(&mut got).unwrap();
        assert!(got == parts.concat());
        assert_eq!(reader.read(&mut [0; 9]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(parts in proptest::collection::vec(proptest::collection::vec(0u8..4, 0..300), 0..20)) {
            round_trip(&parts, Method::Zlib);
            round_trip(&parts, Method::Zstd(3));
        }

        #[test]
        fn any_bytes(bytes: Vec<u8>, full in 0u32..2000) {
            let packet = [&u24(bytes.len())[..], &[0], &u24(full as usize), &bytes].concat();
            for method in [Method::Zlib, Method::Zstd(3)] {
                let _ = CompressedStream::new(&packet[..], method, MAX).read(&mut [0; 64]);
            }
        }
    }

    /// Gives a byte, then nothing for a moment.
    struct Slow<'a>(&'a [u8], bool);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let (now, later) = self.0.split_at(1.min(self.0.len()).min(out.len()));
            out[..now.len()].copy_from_slice(now);
            self.0 = later;
            Ok(now.len())
        }
    }

    #[test]
    fn what_has_come_in_part_is_gone_on_with() {
        let mut writer = CompressedStream::new(Vec::new(), Method::Zlib, MAX);
        writer.write_all(&[7; 400]).unwrap();
        let mut reader = CompressedStream::new(Slow(&writer.stream, false), Method::Zlib, MAX);
        let mut got: Vec<u8> = Vec::new();
        while got.len() < 400 {
            let mut some = [0; 64];
            match reader.read(&mut some) {
                Ok(count) => got.extend(&some[..count]),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        assert_eq!(got, [7; 400]);
    }

    #[test]
    fn large_ones_are_split_and_lies_are_refused() {
        for method in [Method::Zlib, Method::Zstd(1)] {
            round_trip(
                &[vec![7; 5 << 20], (0..3 << 20).map(|at: u32| (at.wrapping_mul(2654435761) >> 7) as u8).collect()],
                method,
            );
            // Much more is inside than is said.
            let bomb = shrunk(&vec![0; 1 << 20], method).unwrap();
            let packet = [&u24(bomb.len())[..], &[0], &u24(100), &bomb].concat();
            let error = CompressedStream::new(&packet[..], method, MAX).read(&mut [0; 64]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
        // More than is taken in, before it is taken in: inflated, or as it comes.
        for (length, full) in [(9, 300_000), (300_000, 0)] {
            let packet = [&u24(length)[..], &[0], &u24(full), &[7; 9]].concat();
            let error = CompressedStream::new(&packet[..], Method::Zlib, 200_000).read(&mut [0; 64]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
        // 16 MiB are claimed, and do not come.
        let claimed = [0xff, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 1, 2, 3];
        assert!(CompressedStream::new(&claimed[..], Method::Zlib, MAX).read(&mut [0; 64]).is_err());
    }
}
