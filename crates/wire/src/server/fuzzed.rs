//! What a client sends behind its login, read without a connection: for fuzzers. The same reader, compression and parsers as [`Peer`](super::Peer) uses.

use std::io::{self, Read};

use super::auth::{Account, AuthResult, Plugin, check};
use crate::codec::command::Command;
use crate::codec::compressed::{CompressedStream, Method};
use crate::codec::packet::PacketReader;
use crate::codec::semi_sync::{REPLY_BYTES_MAX, Reply};

const READ_CHUNK_BYTES: usize = 2 << 10;

/// How packets come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As they are.
    Plain,
    /// Inside of packets that are compressed by zlib.
    Zlib,
    /// The same by zstd.
    Zstd,
}

/// The commands in what was sent. They end with the first thing that is none.
pub struct SentCommands<'a> {
    stream: Stream<'a>,
    reader: PacketReader,
}

enum Stream<'a> {
    Plain(&'a [u8]),
    Compressed(CompressedStream<&'a [u8]>),
}

impl Read for Stream<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(bytes) => bytes.read(out),
            Stream::Compressed(compressed) => compressed.read(out),
        }
    }
}

impl<'a> SentCommands<'a> {
    /// A command of more than `command_bytes_max` is none.
    pub fn new(bytes: &'a [u8], way: Way, command_bytes_max: usize) -> Self {
        let stream = match way {
            Way::Plain => Stream::Plain(bytes),
            Way::Zlib => Stream::Compressed(CompressedStream::new(bytes, Method::Zlib, command_bytes_max)),
            Way::Zstd => Stream::Compressed(CompressedStream::new(bytes, Method::Zstd(3), command_bytes_max)),
        };
        SentCommands { stream, reader: PacketReader::new(READ_CHUNK_BYTES, command_bytes_max) }
    }

    /// The rest are replies of a semi-synchronous replica: how many.
    pub fn replies(mut self) -> usize {
        self.reader.set_payload_bytes_max(REPLY_BYTES_MAX);
        let mut count = 0;
        while let Ok(frame) = self.reader.read(&mut self.stream) {
            if Reply::parse(&frame.payload).is_err() {
                break;
            }
            count += 1;
        }
        count
    }
}

impl Iterator for SentCommands<'_> {
    type Item = Command;

    fn next(&mut self) -> Option<Command> {
        let frame = self.reader.read(&mut self.stream).ok()?;
        Some(Command::parse(&frame.payload))
    }
}

/// Whether the first answer to a nonce lets a client in.
pub fn is_let_in(account: &Account, plugin: Plugin, answer: &[u8], nonce: &[u8]) -> bool {
    check(account, plugin, answer, nonce) == AuthResult::Right
}
