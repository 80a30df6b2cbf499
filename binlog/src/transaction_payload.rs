//! TRANSACTION_PAYLOAD (MySQL 8.0.20+): the events of a transaction, compressed with zstd.
//!
//! Layout: (type, length, value) triples, all length-encoded integers, until type 0, then the payload. Type 1: length of
//! the payload; 2: algorithm (0 zstd, 255 none); 3: uncompressed length. The inner events have no checksum.

use std::io::Read;

use bytes::Bytes;

use crate::corrupt::{Corrupt, What};
use crate::event::{Checksum, Event};
use crate::format_description::FormatDescription;
use crate::header::Header;
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
    /// [`Corrupt`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<TransactionPayload, Corrupt> {
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
    /// [`Corrupt`] when the payload is not what it announces, or longer than `limit_bytes`.
    pub fn decompress(&self, limit_bytes: u64) -> Result<Bytes, Corrupt> {
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

    /// The events inside, which share one decompressed buffer.
    ///
    /// # Errors
    /// Those of [`TransactionPayload::decompress`]; the iterator's are [`Corrupt`] with an offset in the decompressed
    /// bytes, after which it ends.
    pub fn events(&self, limit_bytes: u64) -> Result<PayloadEvents, Corrupt> {
        Ok(PayloadEvents { bytes: self.decompress(limit_bytes)?, at: 0 })
    }
}

fn missing(r: &Reader<'_>, field: &'static str) -> Corrupt {
    r.err(What::Truncated { field, want: 1, have: 0 })
}

fn failed(why: String) -> Corrupt {
    Corrupt::new(0, What::Compression { field: "transaction payload", why })
}

/// Iterator over the events of a payload.
#[derive(Debug, Clone)]
pub struct PayloadEvents {
    bytes: Bytes,
    at: u64,
}

impl Iterator for PayloadEvents {
    type Item = Result<Event, Corrupt>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let have = self.bytes.len();
        let len = Header::parse(&self.bytes).map_or(usize::MAX, |header| header.event_len as usize);
        if len > have || len == 0 {
            self.bytes.clear();
            let what = What::Truncated { field: "event in a payload", want: len as u64, have: have as u64 };
            return Some(Err(Corrupt::new(self.at, what)));
        }
        let base = self.at;
        self.at += len as u64;
        let event = Event::parse(self.bytes.split_to(len), Checksum::Off).map_err(|corrupt| corrupt.at(base));
        if event.is_err() {
            self.bytes.clear();
        }
        Some(event)
    }
}
