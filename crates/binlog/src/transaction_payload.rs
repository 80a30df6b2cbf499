//! TRANSACTION_PAYLOAD (MySQL 8.0.20+): the events of a transaction, compressed with zstd.
//!
//! Layout: (type, length, value) triples, all length-encoded integers, until type 0, then the payload. Type 1: length of
//! the payload; 2: algorithm (0 zstd, 255 none); 3: uncompressed length. The inner events have no checksum.

use std::io::Read;

use bytes::{Buf, Bytes};

use crate::corruption::{Corruption, CorruptionKind};
use crate::event::{Checksum, Event};
use crate::format_description::FormatDescription;
use crate::header::{HEADER_LEN, Header};
use crate::kind::Kind;
use crate::reader::Reader;

/// Algorithm of the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadCompression {
    /// Zstandard.
    Zstd,
    /// None.
    None,
}

/// A compressed transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionPayload {
    /// Algorithm.
    pub compression: PayloadCompression,
    /// Bytes of the events when decompressed.
    pub uncompressed_len: u64,
    /// The compressed events.
    pub payload: Bytes,
}

impl TransactionPayload {
    /// Decodes the event; does not decompress.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<TransactionPayload, Corruption> {
        event.expect(Kind::TRANSACTION_PAYLOAD)?;
        let mut r = event.reader();
        let mut payload_len = None;
        let mut compression = None;
        let mut uncompressed_len = None;
        loop {
            let field = r.lenenc("payload field")?;
            if field == 0 {
                break;
            }
            let base = r.offset();
            let mut value = Reader::new(r.lenenc_bytes("payload field")?, base);
            match field {
                1 => payload_len = Some(value.lenenc("payload length")?),
                2 => {
                    compression = Some(match value.lenenc("compression type")? {
                        0 => PayloadCompression::Zstd,
                        255 => PayloadCompression::None,
                        other => return Err(value.invalid("compression type", other)),
                    });
                }
                3 => uncompressed_len = Some(value.lenenc("uncompressed length")?),
                _ => {}
            }
        }
        let Some(compression) = compression else {
            return Err(missing(&r, "compression type"));
        };
        let payload = match payload_len {
            Some(len) => r.bytes_u64(len, "payload")?,
            None => r.rest(),
        };
        let uncompressed_len = match (uncompressed_len, compression) {
            (Some(len), _) => len,
            (None, PayloadCompression::None) => payload.len() as u64,
            (None, PayloadCompression::Zstd) => return Err(missing(&r, "uncompressed length")),
        };
        Ok(TransactionPayload { compression, uncompressed_len, payload: event.share(payload) })
    }

    /// The decompressed events, back to back. Memory grows with what comes out, never past the announced length and
    /// `limit_bytes`.
    ///
    /// # Errors
    /// [`Corruption`] when the payload is not what it announces, or longer than `limit_bytes`.
    pub fn decompress(&self, limit_bytes: u64) -> Result<Bytes, Corruption> {
        let want = self.uncompressed_len;
        if want > limit_bytes {
            return Err(failed(format!("{want} bytes uncompressed, the limit is {limit_bytes}")));
        }
        if self.compression == PayloadCompression::None {
            return Ok(self.payload.clone());
        }
        let decoder = zstd::Decoder::with_buffer(&self.payload[..]).map_err(|error| failed(error.to_string()))?;
        let mut out = Vec::new();
        decoder.take(want.saturating_add(1)).read_to_end(&mut out).map_err(|error| failed(error.to_string()))?;
        if out.len() as u64 != want {
            return Err(failed(format!("not the announced {want} bytes uncompressed")));
        }
        Ok(out.into())
    }

    /// The events inside. Small payloads are decompressed at once; of large ones only an event at a time is in memory.
    ///
    /// # Errors
    /// [`Corruption`]; the iterator's have an offset in the decompressed bytes, and it ends after them: one is that the payload is not what it announces,
    /// one an event of more than `event_bytes_max`.
    pub fn events(&self, event_bytes_max: u64) -> Result<PayloadEvents, Corruption> {
        let source = match self.compression {
            PayloadCompression::None => Source::Whole(self.payload.clone()),
            PayloadCompression::Zstd if self.uncompressed_len <= WHOLE_BYTES_MAX => {
                Source::Whole(self.decompress(WHOLE_BYTES_MAX)?)
            }
            PayloadCompression::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(self.payload.clone().reader())
                    .map_err(|error| failed(error.to_string()))?;
                // What it looks back at is in memory, too.
                let window_log = event_bytes_max.max(WINDOW_BYTES_MIN).ilog2().min(WINDOW_LOG_MAX);
                decoder.window_log_max(window_log).map_err(|error| failed(error.to_string()))?;
                Source::Stream(Box::new(decoder))
            }
        };
        Ok(PayloadEvents { source, at: 0, want: self.uncompressed_len, event_bytes_max, ended: false })
    }
}

fn missing(r: &Reader<'_>, field: &'static str) -> Corruption {
    r.err(CorruptionKind::Truncated { field, want: 1, have: 0 })
}

fn failed(why: String) -> Corruption {
    Corruption::new(0, CorruptionKind::Compression { field: "transaction payload", why })
}

/// Payloads up to this size are decompressed at once, in bytes.
const WHOLE_BYTES_MAX: u64 = 1 << 20;
/// What a compressor may look back at however little memory there is: that of MySQL's default level, and some more.
const WINDOW_BYTES_MIN: u64 = 8 << 20;
/// The most that zstd's decoder takes by itself.
const WINDOW_LOG_MAX: u32 = 27;

enum Source {
    Whole(Bytes),
    Stream(Box<zstd::Decoder<'static, bytes::buf::Reader<Bytes>>>),
}

/// Iterator over the events of a payload.
pub struct PayloadEvents {
    source: Source,
    at: u64,
    want: u64,
    event_bytes_max: u64,
    ended: bool,
}

impl PayloadEvents {
    /// The bytes of the next event; `None` at the end.
    fn bytes(&mut self) -> Result<Option<Bytes>, Corruption> {
        let mut head = [0; HEADER_LEN];
        let have = match &mut self.source {
            Source::Whole(bytes) => {
                let have = bytes.len().min(HEADER_LEN);
                head.iter_mut().zip(bytes.iter()).for_each(|(to, from)| *to = *from);
                have
            }
            Source::Stream(decoder) => read(decoder, &mut head)?,
        };
        if have == 0 {
            return if self.at == self.want {
                Ok(None)
            } else {
                Err(failed(format!("not the announced {} bytes uncompressed", self.want)))
            };
        }
        let length = Header::parse(head.get(..have).unwrap_or_default()).map(|header| u64::from(header.event_len));
        let Some(length) =
            length.filter(|length| (HEADER_LEN as u64..=self.want.saturating_sub(self.at)).contains(length))
        else {
            let want = length.unwrap_or(HEADER_LEN as u64);
            let what = CorruptionKind::Truncated {
                field: "event in a payload",
                want,
                have: self.want.saturating_sub(self.at),
            };
            return Err(Corruption::new(self.at, what));
        };
        if length > self.event_bytes_max {
            let what = CorruptionKind::TooLarge {
                field: "an event in a compressed transaction,",
                bytes: length,
                limit: self.event_bytes_max,
            };
            return Err(Corruption::new(self.at, what));
        }
        let bytes = match &mut self.source {
            Source::Whole(bytes) => bytes.split_to(length as usize),
            Source::Stream(decoder) => {
                let mut event = Vec::new();
                event.try_reserve_exact(length as usize).map_err(|error| failed(error.to_string()))?;
                event.extend_from_slice(&head);
                let rest = length - HEADER_LEN as u64;
                decoder.take(rest).read_to_end(&mut event).map_err(|error| failed(error.to_string()))?;
                if event.len() as u64 != length {
                    let have = event.len() as u64;
                    return Err(Corruption::new(
                        self.at,
                        CorruptionKind::Truncated { field: "event in a payload", want: length, have },
                    ));
                }
                event.into()
            }
        };
        self.at += length;
        Ok(Some(bytes))
    }
}

/// Fills `to` as far as the stream goes; says how far.
fn read(from: &mut impl Read, to: &mut [u8]) -> Result<usize, Corruption> {
    let mut have = 0;
    while let Some(rest) = to.get_mut(have..).filter(|rest| !rest.is_empty()) {
        match from.read(rest).map_err(|error| failed(error.to_string()))? {
            0 => break,
            more => have += more,
        }
    }
    Ok(have)
}

impl Iterator for PayloadEvents {
    type Item = Result<Event, Corruption>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let base = self.at;
        let event = self.bytes().transpose()?;
        let event = event.and_then(|bytes| Event::parse(bytes, Checksum::Off).map_err(|corrupt| corrupt.at(base)));
        self.ended = event.is_err();
        Some(event)
    }
}
