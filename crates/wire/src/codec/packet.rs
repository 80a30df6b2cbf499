//! Packet framing: 3 bytes length, 1 byte sequence number, payload; a payload of 2^24-1 bytes goes on in the next
//! packet. Knows nothing of what payloads mean.
//!
//! Source: "MySQL Packets" in the MySQL client/server protocol documentation.

use std::io::{self, IoSlice, Read, Write};

use bytes::{Buf, Bytes, BytesMut};

/// Largest payload of one packet; a payload of exactly this size is followed by a further packet.
pub(crate) const MAX_PACKET_PAYLOAD_BYTES: usize = 0xff_ff_ff;
/// Largest payload accepted from the peer, over all its packets: the servers' own limit for max_allowed_packet,
/// with room for the status bytes before a binary log event.
pub(crate) const MAX_PAYLOAD_BYTES: usize = (1 << 30) + 4096;
const HEADER_BYTES: usize = 4;
/// Slices of one vectored write; IOV_MAX is 1024 on Linux.
const MAX_SLICES: usize = 512;

/// One whole payload, put together again.
pub(crate) struct Frame {
    /// Sequence number of its last packet.
    pub(crate) sequence: u8,
    pub(crate) payload: Bytes,
}

/// Reads payloads out of large chunks. Payloads are slices of a chunk, so a payload that is kept keeps its chunk.
#[derive(Debug)]
pub(crate) struct PacketReader {
    /// All of it is initialised; the first `filled` bytes were received and not yet handed out.
    chunk: BytesMut,
    filled: usize,
    chunk_bytes: usize,
    /// A larger payload is refused before it is taken in.
    payload_bytes_max: usize,
    /// What came so far of a payload of several packets; kept here so that a read timeout loses nothing.
    partial: Option<BytesMut>,
    /// Of the packet that goes on in `partial`, what has not come.
    rest: Option<Rest>,
    /// The beginning of a payload that was refused.
    refused: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
struct Rest {
    bytes: usize,
    sequence: u8,
    is_last: bool,
}

impl PacketReader {
    pub(crate) fn new(chunk_bytes: usize, payload_bytes_max: usize) -> Self {
        PacketReader {
            chunk: BytesMut::new(),
            filled: 0,
            chunk_bytes,
            payload_bytes_max,
            partial: None,
            rest: None,
            refused: None,
        }
    }

    /// Largest payload from now on.
    pub(crate) fn set_payload_bytes_max(&mut self, payload_bytes_max: usize) {
        self.payload_bytes_max = payload_bytes_max;
    }

    /// Size of the chunks allocated from now on.
    pub(crate) fn set_chunk_bytes(&mut self, chunk_bytes: usize) {
        self.chunk_bytes = chunk_bytes;
    }

    /// True when bytes were received that belong to no payload handed out yet.
    pub(crate) fn has_buffered(&self) -> bool {
        self.filled > 0
    }

    /// True when the next packet is here in full (which may still be only the start of a larger payload).
    pub(crate) fn has_whole_packet(&self) -> bool {
        match self.chunk.get(..self.filled.min(HEADER_BYTES)) {
            Some(&[a, b, c, _]) => self.filled >= HEADER_BYTES + u32::from_le_bytes([a, b, c, 0]) as usize,
            _ => false,
        }
    }

    /// The next payload. `UnexpectedEof`: the peer closed the connection. `InvalidData`: over the size limit.
    /// After `WouldBlock` or `TimedOut` the call can be repeated.
    pub(crate) fn read(&mut self, source: &mut impl Read) -> io::Result<Frame> {
        loop {
            if let Some(rest) = self.rest {
                self.take_rest(source, rest)?;
                if let Some(whole) = self.partial.take_if(|_| rest.is_last) {
                    return Ok(Frame { sequence: rest.sequence, payload: whole.freeze() });
                }
            }
            self.fill(source, HEADER_BYTES)?;
            let (length, sequence) = match self.chunk.get(..HEADER_BYTES) {
                Some(&[a, b, c, sequence]) => (u32::from_le_bytes([a, b, c, 0]) as usize, sequence),
                _ => return Err(io::ErrorKind::InvalidData.into()),
            };
            let so_far = self.partial.as_ref().map_or(0, BytesMut::len);
            if so_far + length > self.payload_bytes_max {
                self.refused = Some(self.beginning(length));
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("a packet of more than {} bytes came", self.payload_bytes_max),
                ));
            }
            let is_last = length < MAX_PACKET_PAYLOAD_BYTES;
            if is_last && self.partial.is_none() {
                self.fill(source, HEADER_BYTES + length)?;
                self.skip(HEADER_BYTES);
                return Ok(Frame { sequence, payload: self.take(length).freeze() });
            }
            self.skip(HEADER_BYTES);
            self.partial.get_or_insert_default();
            self.rest = Some(Rest { bytes: length, sequence, is_last });
        }
    }

    /// Takes in what one read brings, and hands out nothing. False: as much as a chunk is here, and nothing was read.
    pub(crate) fn take_in(&mut self, source: &mut impl Read) -> io::Result<bool> {
        if self.filled >= self.chunk_bytes {
            return Ok(false);
        }
        self.fill(source, self.filled + 1)?;
        Ok(true)
    }

    /// Adds to the partial payload what comes of its packet: it is in memory once, and a chunk of it a second time.
    fn take_rest(&mut self, source: &mut impl Read, mut rest: Rest) -> io::Result<()> {
        while rest.bytes > 0 {
            self.fill(source, 1)?;
            let came = self.take(rest.bytes.min(self.filled));
            rest.bytes -= came.len();
            self.partial.get_or_insert_default().extend_from_slice(&came);
            self.rest = Some(rest);
        }
        self.rest = None;
        Ok(())
    }

    /// The beginning of a payload that was refused for its size, and the limit.
    pub(crate) fn refused(&self) -> Option<(&[u8], usize)> {
        self.refused.as_deref().map(|head| (head, self.payload_bytes_max))
    }

    /// As far as it has come: nothing is waited for.
    fn beginning(&self, length: usize) -> Vec<u8> {
        const SHOWN_BYTES: usize = 32;
        let came = match &self.partial {
            Some(partial) => partial.as_ref(),
            None => self.chunk.get(HEADER_BYTES..self.filled).unwrap_or_default(),
        };
        came.get(..SHOWN_BYTES.min(length)).unwrap_or(came).to_vec()
    }

    /// Unlike [`PacketReader::take`], without a slice that shares the chunk for a moment.
    fn skip(&mut self, count: usize) {
        let count = count.min(self.filled);
        self.filled -= count;
        self.chunk.advance(count);
    }

    fn take(&mut self, count: usize) -> BytesMut {
        let count = count.min(self.filled);
        self.filled -= count;
        self.chunk.split_to(count)
    }

    fn fill(&mut self, source: &mut impl Read, wanted: usize) -> io::Result<()> {
        while self.filled < wanted {
            // Without a minimum of room the end of every chunk would be read in tiny pieces.
            let room = self.chunk_bytes / 8;
            if self.chunk.len() < wanted.max(self.filled + room) {
                let mut chunk = BytesMut::zeroed(wanted.saturating_add(self.chunk_bytes));
                if let (Some(to), Some(from)) = (chunk.get_mut(..self.filled), self.chunk.get(..self.filled)) {
                    to.copy_from_slice(from);
                }
                self.chunk = chunk;
            }
            let free = self.chunk.get_mut(self.filled..).unwrap_or_default();
            match source.read(free) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Sends the concatenation of `parts` as one payload, split into packets that are numbered from `sequence`, without
/// copying it. Returns the number that the answer starts with. Does not flush.
pub(crate) fn write_payload(sink: &mut impl Write, sequence: u8, parts: &[&[u8]]) -> io::Result<u8> {
    write_split(sink, sequence, parts, MAX_PACKET_PAYLOAD_BYTES)
}

fn write_split(sink: &mut impl Write, mut sequence: u8, parts: &[&[u8]], limit: usize) -> io::Result<u8> {
    let mut left: usize = parts.iter().map(|part| part.len()).sum();
    let mut parts = parts.iter().copied();
    let mut current: &[u8] = &[];
    loop {
        let length = left.min(limit);
        let [a, b, c, ..] = (length as u32).to_le_bytes();
        let header = [a, b, c, sequence];
        sequence = sequence.wrapping_add(1);
        let mut slices = Vec::with_capacity(8);
        slices.push(IoSlice::new(&header));
        let mut wanted = length;
        while wanted > 0 {
            if current.is_empty() {
                match parts.next() {
                    Some(part) => current = part,
                    None => break,
                }
                continue;
            }
            let (now, later) = current.split_at(wanted.min(current.len()));
            current = later;
            wanted -= now.len();
            slices.push(IoSlice::new(now));
            if slices.len() == MAX_SLICES {
                write_all_vectored(sink, &mut slices)?;
                slices.clear();
            }
        }
        write_all_vectored(sink, &mut slices)?;
        left -= length;
        // A packet that is exactly full is always followed by another, maybe empty.
        if length < limit {
            return Ok(sequence);
        }
    }
}

/// A payload whose length is known, and which is never whole in memory: written bit by bit.
pub(crate) struct PayloadWriter<'a, W: Write> {
    sink: &'a mut W,
    sequence: u8,
    /// Of the payload, and of the packet that has begun.
    left: usize,
    packet_left: usize,
    /// The packet is as long as one can be.
    is_full: bool,
    limit: usize,
}

impl<'a, W: Write> PayloadWriter<'a, W> {
    pub(crate) fn begin(sink: &'a mut W, sequence: u8, length: usize) -> io::Result<Self> {
        Self::begin_split(sink, sequence, length, MAX_PACKET_PAYLOAD_BYTES)
    }

    fn begin_split(sink: &'a mut W, sequence: u8, length: usize, limit: usize) -> io::Result<Self> {
        let mut writer = Self { sink, sequence, left: length, packet_left: 0, is_full: false, limit };
        writer.begin_packet()?;
        Ok(writer)
    }

    fn begin_packet(&mut self) -> io::Result<()> {
        self.packet_left = self.left.min(self.limit);
        self.is_full = self.packet_left == self.limit;
        let [a, b, c, ..] = (self.packet_left as u32).to_le_bytes();
        self.sink.write_all(&[a, b, c, self.sequence])?;
        self.sequence = self.sequence.wrapping_add(1);
        Ok(())
    }

    /// Returns the number that the answer starts with.
    ///
    /// # Errors
    /// Not all of the payload was written.
    pub(crate) fn end(self) -> io::Result<u8> {
        if self.left == 0 { Ok(self.sequence) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl<W: Write> Write for PayloadWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let now = bytes.get(..self.packet_left.min(bytes.len())).unwrap_or_default();
        let written = self.sink.write(now)?;
        self.left -= written;
        self.packet_left -= written;
        // A packet that is exactly full is always followed by another, maybe empty.
        if written > 0 && self.packet_left == 0 && self.is_full {
            self.begin_packet()?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

fn write_all_vectored(sink: &mut impl Write, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    let mut slices = slices;
    while !slices.is_empty() {
        match sink.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut slices, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives its bytes in pieces of the given size, with a timeout between them.
    struct Pieces<'a>(&'a [u8], usize, bool);

    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.2 = !self.2;
            if self.2 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = self.0.len().min(self.1).min(out.len());
            let (now, later) = self.0.split_at(count);
            out[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    fn read_through_timeouts(reader: &mut PacketReader, source: &mut impl Read) -> io::Result<Frame> {
        loop {
            match reader.read(source) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    #[test]
    fn bytes_of_small_packets() {
        let mut out = Vec::new();
        let next = write_payload(&mut out, 255, &[b"\x03", b"", b"SELECT", b" 1"]).unwrap();
        assert_eq!(out, b"\x09\x00\x00\xff\x03SELECT 1");
        assert_eq!(next, 0);
    }

    #[test]
    fn an_exactly_full_packet_is_followed_by_an_empty_one() {
        let check = |length: usize, packets: &[usize]| {
            let payload = vec![7u8; length];
            let mut out = Vec::new();
            write_split(&mut out, 0, &[&payload], 10).unwrap();
            let mut rest = &out[..];
            for (number, want) in packets.iter().enumerate() {
                assert_eq!(&rest[..4], &[*want as u8, 0, 0, number as u8]);
                rest = &rest[4 + want..];
            }
            assert!(rest.is_empty());
        };
        check(0, &[0]);
        check(9, &[9]);
        check(10, &[10, 0]);
        check(11, &[10, 1]);
        check(20, &[10, 10, 0]);
    }

    #[test]
    fn written_bit_by_bit_it_is_the_same() {
        for length in [0, 1, 9, 10, 11, 20, 27] {
            let payload: Vec<u8> = (0..length).collect();
            let (mut whole, mut bits) = (Vec::new(), Vec::new());
            let next = write_split(&mut whole, 254, &[&payload], 10).unwrap();
            let mut writer = PayloadWriter::begin_split(&mut bits, 254, payload.len(), 10).unwrap();
            payload.chunks(4).for_each(|bit| writer.write_all(bit).unwrap());
            assert_eq!(writer.end().unwrap(), next, "{length}");
            assert_eq!(bits, whole, "{length}");
        }
        let mut bits = Vec::new();
        let mut writer = PayloadWriter::begin_split(&mut bits, 0, 2, 10).unwrap();
        assert!(writer.write_all(b"too long").is_err());
        let mut writer = PayloadWriter::begin_split(&mut bits, 0, 2, 10).unwrap();
        writer.write_all(b"s").unwrap();
        assert!(writer.end().is_err());
    }

    #[test]
    fn a_payload_of_many_slices() {
        let parts: Vec<&[u8]> = vec![b"ab"; 3000];
        let mut out = Vec::new();
        write_payload(&mut out, 0, &parts).unwrap();
        let frame = PacketReader::new(64, MAX_PAYLOAD_BYTES).read(&mut &out[..]).unwrap();
        assert_eq!(frame.payload, vec![*b"ab"; 3000].concat());
    }

    #[test]
    fn payloads_over_16_mib_come_back_whole() {
        let length = 2 * MAX_PACKET_PAYLOAD_BYTES + 5;
        let payload: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let mut out = Vec::new();
        write_payload(&mut out, 3, &[&payload[..100], &payload[100..]]).unwrap();
        let mut reader = PacketReader::new(1 << 16, MAX_PAYLOAD_BYTES);
        let mut source = Pieces(&out, 1 << 20, false);
        let frame = read_through_timeouts(&mut reader, &mut source).unwrap();
        assert_eq!(frame.sequence, 5);
        assert!(frame.payload == payload);
        assert!(!reader.has_buffered());
    }

    #[test]
    fn a_payload_over_the_limit_is_refused_before_it_is_read() {
        let check = |limit: usize, sizes: &[usize], fits: bool| {
            let mut out = Vec::new();
            for (number, size) in sizes.iter().enumerate() {
                let [a, b, c, ..] = (*size as u32).to_le_bytes();
                out.extend([a, b, c, number as u8]);
                out.extend(vec![1; *size]);
            }
            // The last packet's bytes do not come: a limit that is passed is seen at its header.
            out.truncate(out.len() - sizes.last().unwrap());
            let error = PacketReader::new(64, limit).read(&mut &out[..]).map(|_| ()).unwrap_err();
            let want = if fits { io::ErrorKind::UnexpectedEof } else { io::ErrorKind::InvalidData };
            assert_eq!(error.kind(), want, "{limit} {sizes:?}");
        };
        check(100, &[100], true);
        check(100, &[101], false);
        check(MAX_PACKET_PAYLOAD_BYTES + 9, &[MAX_PACKET_PAYLOAD_BYTES, 9], true);
        check(MAX_PACKET_PAYLOAD_BYTES + 9, &[MAX_PACKET_PAYLOAD_BYTES, 10], false);
    }

    #[test]
    fn a_torn_packet_is_an_unexpected_end() {
        let error =
            PacketReader::new(64, MAX_PAYLOAD_BYTES).read(&mut &b"\x05\x00\x00\x00abc"[..]).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    proptest! {
        #[test]
        fn whatever_the_pieces(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 1..20),
            piece in 1usize..400,
            chunk in 8usize..600,
        ) {
            let mut out = Vec::new();
            for payload in &payloads {
                write_payload(&mut out, 0, &[payload]).unwrap();
            }
            let mut source = Pieces(&out, piece, false);
            let mut reader = PacketReader::new(chunk, MAX_PAYLOAD_BYTES);
            let mut kept = Vec::new();
            for _ in &payloads {
                kept.push(read_through_timeouts(&mut reader, &mut source).unwrap().payload);
            }
            for (got, want) in kept.iter().zip(&payloads) {
                prop_assert_eq!(&got[..], &want[..]);
            }
        }
    }
}
