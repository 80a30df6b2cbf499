//! Reads the protocol's fields from a packet's payload. Every read is checked; errors name the offset.

use crate::error::Error;

/// A position in a payload.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    data: &'a [u8],
    at: usize,
    what: &'static str,
}

impl<'a> Cursor<'a> {
    /// `what` names the packet in errors.
    pub(crate) fn new(data: &'a [u8], what: &'static str) -> Self {
        Cursor { data, at: 0, what }
    }

    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    pub(crate) fn remaining(&self) -> usize {
        self.data.len().saturating_sub(self.at)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = self.data.get(self.at..).unwrap_or_default();
        self.at = self.data.len();
        rest
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(count);
        match end.and_then(|end| self.data.get(self.at..end)) {
            Some(bytes) => {
                self.at = self.at.saturating_add(count);
                Ok(bytes)
            }
            None => Err(Error::protocol(format!(
                "{} is cut short: {count} bytes wanted at offset {}, {} left",
                self.what,
                self.at,
                self.remaining()
            ))),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u24(&mut self) -> Result<u32, Error> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_le_bytes([a, b, c, 0]))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Bytes up to a zero byte, which is consumed; up to the end when there is none.
    pub(crate) fn until_nul(&mut self) -> &'a [u8] {
        let rest = self.data.get(self.at..).unwrap_or_default();
        match rest.iter().position(|byte| *byte == 0) {
            Some(length) => {
                self.at += length + 1;
                rest.get(..length).unwrap_or_default()
            }
            None => self.rest(),
        }
    }

    /// A length-encoded integer; `None` for the NULL marker 0xfb.
    pub(crate) fn lenenc_or_null(&mut self) -> Result<Option<u64>, Error> {
        match self.u8()? {
            0xfb => Ok(None),
            0xfc => Ok(Some(self.u16()?.into())),
            0xfd => Ok(Some(self.u24()?.into())),
            0xfe => Ok(Some(self.u64()?)),
            0xff => Err(Error::protocol(format!("{}: 0xff is no length, at offset {}", self.what, self.at - 1))),
            small => Ok(Some(small.into())),
        }
    }

    pub(crate) fn lenenc(&mut self) -> Result<u64, Error> {
        self.lenenc_or_null()?.ok_or_else(|| {
            Error::protocol(format!("{}: NULL where a number must be, at offset {}", self.what, self.at))
        })
    }

    pub(crate) fn lenenc_bytes_or_null(&mut self) -> Result<Option<&'a [u8]>, Error> {
        match self.lenenc_or_null()? {
            None => Ok(None),
            Some(length) => {
                // A length beyond usize cannot fit the payload either.
                self.bytes(usize::try_from(length).unwrap_or(usize::MAX)).map(Some)
            }
        }
    }

    pub(crate) fn lenenc_bytes(&mut self) -> Result<&'a [u8], Error> {
        Ok(self.lenenc_bytes_or_null()?.unwrap_or_default())
    }
}

/// Appends a length-encoded integer.
pub(crate) fn put_lenenc(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    let [a, b, c, ..] = bytes;
    match value {
        0..=0xfa => out.push(a),
        0xfb..=0xffff => out.extend_from_slice(&[0xfc, a, b]),
        0x1_0000..=0xff_ffff => out.extend_from_slice(&[0xfd, a, b, c]),
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends bytes with their length-encoded length before them.
pub(crate) fn put_lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_lenenc(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lenenc_round_trip(value: u64, bytes: Vec<u8>) {
            let mut out = Vec::new();
            put_lenenc(&mut out, value);
            put_lenenc_bytes(&mut out, &bytes);
            let mut cursor = Cursor::new(&out, "test");
            prop_assert_eq!(cursor.lenenc().unwrap(), value);
            prop_assert_eq!(cursor.lenenc_bytes().unwrap(), &bytes[..]);
            prop_assert_eq!(cursor.remaining(), 0);
        }

        #[test]
        fn any_bytes_never_panic(bytes: Vec<u8>) {
            let mut cursor = Cursor::new(&bytes, "test");
            while cursor.remaining() > 0 {
                if cursor.lenenc_bytes_or_null().is_err() {
                    break;
                }
            }
            let _ = cursor.u64();
            let _ = cursor.until_nul();
        }
    }

    #[test]
    fn a_huge_length_is_an_error_not_an_allocation() {
        let bytes = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert!(Cursor::new(&bytes, "test").lenenc_bytes().is_err());
    }
}
