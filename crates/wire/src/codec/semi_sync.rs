//! Semi-synchronous replication: two bytes before each event, and what a replica says of one.
//!
//! Before an event: 0xef, then 1 if the source waits for a reply and 0 if not. The reply: 0xef, 8 bytes of position, the file's name up to the packet's end; it says that
//! everything before that place is there. Source: WL#1720.

use crate::error::Error;

/// Begins both.
pub(crate) const MAGIC: u8 = 0xef;
/// A longer reply than this is none: names of files have up to 512 bytes.
pub(crate) const REPLY_BYTES_MAX: usize = 1 + 8 + 512;

/// Everything before this place is at the replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// A name of the source's.
    pub file: String,
    /// Behind the event.
    pub position: u64,
}

impl Reply {
    pub(crate) fn parse(payload: &[u8]) -> Result<Reply, Error> {
        let wrong = || Error::protocol("not a reply of a semi-synchronous replica");
        let (magic, rest) = payload.split_first().ok_or_else(wrong)?;
        let (position, file) = rest.split_first_chunk::<8>().ok_or_else(wrong)?;
        let file = file.split(|byte| *byte == 0).next().unwrap_or_default();
        match std::str::from_utf8(file) {
            Ok(file) if *magic == MAGIC && !file.is_empty() && payload.len() <= REPLY_BYTES_MAX => {
                Ok(Reply { file: file.to_owned(), position: u64::from_le_bytes(*position) })
            }
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn replies() {
        let check = |payload: &[u8], want: Option<(&str, u64)>| {
            let got = Reply::parse(payload).ok();
            assert_eq!(got, want.map(|(file, position)| Reply { file: file.to_owned(), position }), "{payload:?}");
        };
        check(b"\xef\x04\x00\x00\x00\x01\x00\x00\x00b.000001", Some(("b.000001", (1 << 32) + 4)));
        check(b"\xef\x04\x00\x00\x00\x00\x00\x00\x00b.1\0", Some(("b.1", 4)));
        check(b"\xef\x04\x00\x00\x00\x00\x00\x00\x00", None);
        check(b"\xee\x04\x00\x00\x00\x00\x00\x00\x00b.1", None);
        check(b"\xef\x04", None);
        check(b"", None);
        check(&[&b"\xef\x04\x00\x00\x00\x00\x00\x00\x00"[..], &[b'b'; 513]].concat(), None);
    }

    proptest! {
        #[test]
        fn any_bytes(payload: Vec<u8>) {
            let _ = Reply::parse(&payload);
        }
    }
}
