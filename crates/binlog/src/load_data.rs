//! LOAD DATA in statement format: the file comes in blocks, then the statement that loads it.

use bytes::Bytes;

use crate::corruption::Corruption;
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::kind::Kind;
use crate::query::{PostHeader, Query};

/// BEGIN_LOAD_QUERY (the first block) or APPEND_BLOCK (the others).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadBlock {
    /// Number of the file on the source.
    pub file_id: u32,
    /// A new file starts.
    pub first: bool,
    /// Bytes of the file.
    pub data: Bytes,
}

impl LoadBlock {
    /// Decodes BEGIN_LOAD_QUERY and APPEND_BLOCK.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<LoadBlock, Corruption> {
        let first = match event.kind() {
            Kind::BEGIN_LOAD_QUERY => true,
            Kind::APPEND_BLOCK => false,
            _ => return Err(event.wrong_kind("BEGIN_LOAD_QUERY")),
        };
        let mut r = event.reader();
        Ok(LoadBlock { file_id: r.u32("file id")?, first, data: event.share(r.rest()) })
    }
}

/// What to do with a row whose key is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateHandling {
    /// The statement fails.
    Error,
    /// IGNORE.
    Ignore,
    /// REPLACE.
    Replace,
}

/// EXECUTE_LOAD_QUERY: the statement that loads the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecuteLoadQuery {
    /// The statement and its session; `sql[file_name_start..file_name_end]` is to be replaced with
    /// `'name of the local copy' [IGNORE|REPLACE] INTO`-like text: it runs from the file name to before INTO.
    pub query: Query,
    /// Number of the file.
    pub file_id: u32,
    /// Where the file name starts in the statement, bytes.
    pub file_name_start: u32,
    /// Where what is to be replaced ends, bytes.
    pub file_name_end: u32,
    /// IGNORE or REPLACE.
    pub duplicates: DuplicateHandling,
}

impl ExecuteLoadQuery {
    /// Decodes an EXECUTE_LOAD_QUERY event.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<ExecuteLoadQuery, Corruption> {
        event.expect(Kind::EXECUTE_LOAD_QUERY)?;
        let mut r = event.reader();
        let head = PostHeader::read(&mut r)?;
        let file_id = r.u32("file id")?;
        let file_name_start = r.u32("file name start")?;
        let file_name_end = r.u32("file name end")?;
        let duplicates = match r.u8("duplicate handling")? {
            0 => DuplicateHandling::Error,
            1 => DuplicateHandling::Ignore,
            2 => DuplicateHandling::Replace,
            other => return Err(r.invalid("duplicate handling", other.into())),
        };
        let query = head.finish(event, &mut r)?;
        if file_name_start > file_name_end || file_name_end as usize > query.sql.len() {
            return Err(r.invalid("file name end", file_name_end.into()));
        }
        Ok(ExecuteLoadQuery { query, file_id, file_name_start, file_name_end, duplicates })
    }
}

/// DELETE_FILE: forget the file, its statement failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeleteFile {
    /// Number of the file.
    pub file_id: u32,
}

impl DeleteFile {
    /// Decodes a DELETE_FILE event.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<DeleteFile, Corruption> {
        event.expect(Kind::DELETE_FILE)?;
        Ok(DeleteFile { file_id: event.reader().u32("file id")? })
    }
}
