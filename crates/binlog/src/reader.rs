//! Checked little-endian reads over a slice; every error names the field and its offset in the event.

use crate::corruption::{Corruption, CorruptionKind};

#[derive(Clone)]
pub(crate) struct Reader<'a> {
    data: &'a [u8],
    pos: usize,
    base: u64,
}

macro_rules! int {
    ($name:ident, $ty:ty, $len:literal) => {
        pub fn $name(&mut self, field: &'static str) -> Result<$ty, Corruption> {
            let bytes = self.array::<$len>(field)?;
            let mut wide = [0u8; size_of::<$ty>()];
            for (to, from) in wide.iter_mut().zip(bytes) {
                *to = from;
            }
            Ok(<$ty>::from_le_bytes(wide))
        }
    };
}

impl<'a> Reader<'a> {
    /// `base` is the offset of `data` in the event.
    pub fn new(data: &'a [u8], base: u64) -> Self {
        Self { data, pos: 0, base }
    }

    pub fn offset(&self) -> u64 {
        self.base + self.pos as u64
    }

    pub fn position(&self) -> usize {
        self.pos
    }

    pub fn remaining(&self) -> usize {
        self.data.len() - self.pos
    }

    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    pub fn err(&self, what: CorruptionKind) -> Corruption {
        Corruption::new(self.offset(), what)
    }

    pub fn invalid(&self, field: &'static str, value: u64) -> Corruption {
        self.err(CorruptionKind::Invalid { field, value })
    }

    pub fn bytes(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], Corruption> {
        let rest = self.data.get(self.pos..).unwrap_or_default();
        match rest.get(..len) {
            Some(bytes) => {
                self.pos += len;
                Ok(bytes)
            }
            None => Err(self.err(CorruptionKind::Truncated { field, want: len as u64, have: rest.len() as u64 })),
        }
    }

    /// Like `bytes` for a length that came out of the input.
    pub fn bytes_u64(&mut self, len: u64, field: &'static str) -> Result<&'a [u8], Corruption> {
        match usize::try_from(len) {
            Ok(len) => self.bytes(len, field),
            Err(_) => Err(self.err(CorruptionKind::Truncated { field, want: len, have: self.remaining() as u64 })),
        }
    }

    pub fn rest(&mut self) -> &'a [u8] {
        let rest = self.data.get(self.pos..).unwrap_or_default();
        self.pos = self.data.len();
        rest
    }

    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Corruption> {
        let at = self.clone();
        self.bytes(N, field)?
            .try_into()
            .map_err(|_| at.err(CorruptionKind::Truncated { field, want: N as u64, have: 0 }))
    }

    int!(u8, u8, 1);
    int!(u16, u16, 2);
    int!(u24, u32, 3);
    int!(u32, u32, 4);
    int!(u48, u64, 6);
    int!(u56, u64, 7);
    int!(u64, u64, 8);

    /// MySQL's length-encoded integer. 0xfb (NULL) and 0xff are refused: no event has them.
    pub fn lenenc(&mut self, field: &'static str) -> Result<u64, Corruption> {
        let first = self.u8(field)?;
        match first {
            0..=0xfa => Ok(first.into()),
            0xfc => Ok(self.u16(field)?.into()),
            0xfd => Ok(self.u24(field)?.into()),
            0xfe => self.u64(field),
            _ => Err(self.invalid(field, first.into())),
        }
    }

    /// A length-encoded integer that must not be larger than what is left: a count of things of a byte or more.
    pub fn lenenc_count(&mut self, field: &'static str) -> Result<usize, Corruption> {
        let count = self.lenenc(field)?;
        self.check_count(count, field)
    }

    /// A count out of the input, refused when that many things of a byte or more cannot follow.
    pub fn check_count(&self, count: u64, field: &'static str) -> Result<usize, Corruption> {
        match usize::try_from(count) {
            Ok(count) if count <= self.remaining() => Ok(count),
            _ => Err(self.err(CorruptionKind::Truncated { field, want: count, have: self.remaining() as u64 })),
        }
    }

    /// Bytes prefixed with a length-encoded length.
    pub fn lenenc_bytes(&mut self, field: &'static str) -> Result<&'a [u8], Corruption> {
        let len = self.lenenc(field)?;
        self.bytes_u64(len, field)
    }

    /// Bytes prefixed with a one-byte length.
    pub fn u8_bytes(&mut self, field: &'static str) -> Result<&'a [u8], Corruption> {
        let len = self.u8(field)?;
        self.bytes(len.into(), field)
    }

    /// Bytes up to a NUL, which is consumed.
    pub fn nul_bytes(&mut self, field: &'static str) -> Result<&'a [u8], Corruption> {
        let rest = self.data.get(self.pos..).unwrap_or_default();
        match rest.iter().position(|b| *b == 0) {
            Some(len) => {
                let bytes = self.bytes(len, field)?;
                self.pos += 1;
                Ok(bytes)
            }
            None => {
                Err(self.err(CorruptionKind::Truncated { field, want: rest.len() as u64 + 1, have: rest.len() as u64 }))
            }
        }
    }

    pub fn utf8(&self, bytes: &[u8], field: &'static str) -> Result<String, Corruption> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(self.err(CorruptionKind::Utf8 { field })),
        }
    }
}
