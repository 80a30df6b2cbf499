//! Query events: a statement with its session, BEGIN and COMMIT included; MariaDB's compressed ones too.

use bytes::Bytes;

use crate::compressed;
use crate::corruption::Corruption;
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::frame::MAX_EVENT_LEN;
use crate::header::HEADER_LEN;
use crate::kind::Kind;
use crate::reader::Reader;
use crate::status_vars::StatusVars;

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Connection on the source (`pseudo_thread_id`).
    pub thread_id: u32,
    /// Seconds that it ran on the source.
    pub exec_time: u32,
    /// Error with which it ended on the source, 0 for none.
    pub error_code: u16,
    /// Default schema, may be empty; in the system character set (UTF-8).
    pub schema: Bytes,
    /// The encoded status variables.
    pub status_vars: Bytes,
    /// The statement, in `character_set_client`.
    pub sql: Bytes,
    /// The decoded status variables.
    pub vars: StatusVars,
}

pub(crate) struct PostHeader {
    pub thread_id: u32,
    pub exec_time: u32,
    pub schema_len: u8,
    pub error_code: u16,
    pub status_vars_len: u16,
}

impl PostHeader {
    pub fn read(r: &mut Reader<'_>) -> Result<PostHeader, Corruption> {
        Ok(PostHeader {
            thread_id: r.u32("thread id")?,
            exec_time: r.u32("execution time")?,
            schema_len: r.u8("schema length")?,
            error_code: r.u16("error code")?,
            status_vars_len: r.u16("status variables length")?,
        })
    }

    /// What follows every post-header that starts with a Query event's.
    pub fn finish(self, event: &Event, r: &mut Reader<'_>) -> Result<Query, Corruption> {
        let base = r.offset();
        let status_vars = event.share(r.bytes(self.status_vars_len.into(), "status variables")?);
        let schema = event.share(r.bytes(self.schema_len.into(), "schema")?);
        r.u8("schema end")?;
        Ok(Query {
            thread_id: self.thread_id,
            exec_time: self.exec_time,
            error_code: self.error_code,
            schema,
            vars: StatusVars::decode(&status_vars, base)?,
            status_vars,
            sql: event.share(r.rest()),
        })
    }
}

/// The encoded status variables and the statement in the body of a QUERY or QUERY_COMPRESSED event, found without decoding it. The
/// statement is as it stands there: that of QUERY_COMPRESSED is compressed.
#[inline]
pub fn peek<'a>(body: &'a [u8], kind: Kind, format: &FormatDescription) -> Option<(&'a [u8], &'a [u8])> {
    const POST_HEADER_LEN: usize = 13;
    let schema_len = usize::from(*body.get(8)?);
    let vars_len = usize::from(u16::from_le_bytes([*body.get(11)?, *body.get(12)?]));
    let vars_at = POST_HEADER_LEN.max(format.post_header_len(kind).into());
    let vars = body.get(vars_at..vars_at + vars_len)?;
    Some((vars, body.get(vars_at + vars_len + schema_len + 1..)?))
}

impl Query {
    /// Decodes QUERY and QUERY_COMPRESSED.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event; an unknown status variable is one, named.
    pub fn decode(event: &Event, format: &FormatDescription) -> Result<Query, Corruption> {
        Self::decode_within(event, format, MAX_EVENT_LEN as u64)
    }

    /// The same of a statement of at most so many bytes, if it is compressed.
    ///
    /// # Errors
    /// As [`Query::decode`], and [`What::TooLarge`](crate::What::TooLarge).
    pub fn decode_within(event: &Event, format: &FormatDescription, limit_bytes: u64) -> Result<Query, Corruption> {
        let compressed = match event.kind() {
            Kind::QUERY => false,
            Kind::QUERY_COMPRESSED => true,
            _ => return Err(event.wrong_kind("QUERY")),
        };
        let mut r = event.reader();
        let head = PostHeader::read(&mut r)?;
        // A later format may have a longer post-header.
        let known = r.position();
        let post_header_len = usize::from(format.post_header_len(event.kind()));
        r.bytes(post_header_len.saturating_sub(known), "post-header")?;
        let mut query = head.finish(event, &mut r)?;
        if compressed {
            let base = (HEADER_LEN + event.body().len() - query.sql.len()) as u64;
            query.sql =
                compressed::inflate(&query.sql, "statement", limit_bytes).map_err(|corrupt| corrupt.at(base))?;
        }
        Ok(query)
    }
}
