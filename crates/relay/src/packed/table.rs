//! The table of a compressed file: how long each frame is, compressed and in clear. Bytes alone; it opens nothing.
//!
//! ```text
//! 0x184D2A5E, length of the rest                         a frame that decoders skip
//! compressed length, length in clear                     for each frame
//! number of frames, 0, 0x8F92EAB1                        the footer: the file's last nine bytes
//! ```

use std::io;

const SKIPPED: u32 = 0x184D_2A5E;
const SEEKABLE: u32 = 0x8F92_EAB1;
pub const FOOTER_LEN: usize = 9;
const HEAD_LEN: usize = 8;
const ENTRY_LEN: usize = 8;
/// Of bytes in clear: a reader keeps one frame.
pub const FRAME_BYTES: usize = 1 << 20;
/// The largest file in clear that has a table: 16 TiB.
const FRAMES_MAX: u64 = 1 << 24;

/// Where a frame begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// In the compressed file.
    pub at: u64,
    pub packed: u32,
    /// In clear.
    pub offset: u64,
    pub plain: u32,
}

pub fn write(frames: &[(u32, u32)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_LEN + frames.len() * ENTRY_LEN + FOOTER_LEN);
    let rest = frames.len() * ENTRY_LEN + FOOTER_LEN;
    out.extend_from_slice(&SKIPPED.to_le_bytes());
    out.extend_from_slice(&(rest as u32).to_le_bytes());
    for (packed, plain) in frames {
        out.extend_from_slice(&packed.to_le_bytes());
        out.extend_from_slice(&plain.to_le_bytes());
    }
    out.extend_from_slice(&(frames.len() as u32).to_le_bytes());
    out.push(0);
    out.extend_from_slice(&SEEKABLE.to_le_bytes());
    out
}

/// How long the table is, from the footer of a file of that length.
pub fn length(footer: &[u8], file: u64) -> io::Result<usize> {
    let count = number(footer, 0)?;
    let is_table = footer.get(4) == Some(&0) && number(footer, 5)? == SEEKABLE;
    let length = (HEAD_LEN + FOOTER_LEN) as u64 + u64::from(count) * ENTRY_LEN as u64;
    if !is_table || u64::from(count) > FRAMES_MAX || length > file {
        return Err(bad("it has no table of its frames"));
    }
    usize::try_from(length).map_err(|_| bad("its table is too long"))
}

/// The frames in front of the table, which must be all of a file of that length.
pub fn read(table: &[u8], file: u64) -> io::Result<Vec<Frame>> {
    if number(table, 0)? != SKIPPED || number(table, 4)? as usize != table.len().saturating_sub(HEAD_LEN) {
        return Err(bad("its table is damaged"));
    }
    let entries = table.get(HEAD_LEN..table.len().saturating_sub(FOOTER_LEN)).unwrap_or_default();
    let (mut at, mut offset) = (0, 0);
    let mut frames = Vec::with_capacity(entries.len() / ENTRY_LEN);
    for entry in entries.chunks_exact(ENTRY_LEN) {
        let (packed, plain) = (number(entry, 0)?, number(entry, 4)?);
        if plain as usize > FRAME_BYTES || plain == 0 {
            return Err(bad("its table is damaged"));
        }
        frames.push(Frame { at, packed, offset, plain });
        at += u64::from(packed);
        offset += u64::from(plain);
    }
    if at + table.len() as u64 != file {
        return Err(bad("its table is of another file"));
    }
    Ok(frames)
}

fn number(bytes: &[u8], at: usize) -> io::Result<u32> {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>);
    found.map(|bytes| u32::from_le_bytes(*bytes)).ok_or_else(|| bad("it is cut short"))
}

pub fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a compressed log: {why}"))
}
