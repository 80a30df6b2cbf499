//! Rows events of versions 1 and 2.

use crate::image::Bitmap;
use crate::kind::Kind;
use crate::rows::{RowsEvent, RowsKind};

use super::{Head, build, write_lenenc};

/// What a rows event has besides its rows.
#[derive(Debug, Clone, Copy)]
pub struct RowsSpec<'a> {
    /// What it does.
    pub kind: RowsKind,
    /// Names the table map.
    pub table_id: u64,
    /// `RowsEvent::STMT_END` and others.
    pub flags: u16,
    /// 1 (MariaDB's own) or 2 (MySQL 5.6+; MariaDB reads both).
    pub version: u8,
    /// Extra data of version 2, without its length; at most 65,533 bytes.
    pub extra: &'a [u8],
    /// Columns of before images; not used for inserts.
    pub before_columns: &'a Bitmap,
    /// Columns of after images; not used for deletes.
    pub after_columns: &'a Bitmap,
    /// The rows have value options and may have JSON diffs: PARTIAL_UPDATE_ROWS.
    pub partial_json: bool,
}

/// A rows event whose rows are `rows`.
pub fn rows(head: &Head, spec: &RowsSpec<'_>, rows: &[u8]) -> Vec<u8> {
    rows_v(head, spec, &[rows])
}

/// A rows event whose rows are `parts` one after the other.
pub fn rows_v(head: &Head, spec: &RowsSpec<'_>, parts: &[&[u8]]) -> Vec<u8> {
    let v1 = spec.version == 1;
    let kind = match spec.kind {
        RowsKind::Write if v1 => Kind::WRITE_ROWS_V1,
        RowsKind::Write => Kind::WRITE_ROWS,
        RowsKind::Update if spec.partial_json => Kind::PARTIAL_UPDATE_ROWS,
        RowsKind::Update if v1 => Kind::UPDATE_ROWS_V1,
        RowsKind::Update => Kind::UPDATE_ROWS,
        RowsKind::Delete if v1 => Kind::DELETE_ROWS_V1,
        RowsKind::Delete => Kind::DELETE_ROWS,
    };
    let first = match spec.kind {
        RowsKind::Write => spec.after_columns,
        RowsKind::Update | RowsKind::Delete => spec.before_columns,
    };
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let capacity = 20 + spec.extra.len() + 2 * first.as_bytes().len() + len;
    build(kind, head, capacity, |out| {
        out.extend(spec.table_id.to_le_bytes().into_iter().take(6));
        out.extend_from_slice(&spec.flags.to_le_bytes());
        if kind != Kind::WRITE_ROWS_V1 && kind != Kind::UPDATE_ROWS_V1 && kind != Kind::DELETE_ROWS_V1 {
            let extra = spec.extra.get(..spec.extra.len().min(65_533)).unwrap_or_default();
            out.extend_from_slice(&(extra.len() as u16 + 2).to_le_bytes());
            out.extend_from_slice(extra);
        }
        write_lenenc(out, first.width() as u64);
        write_bitmap(out, first);
        if spec.kind == RowsKind::Update {
            write_bitmap(out, spec.after_columns);
        }
        for part in parts {
            out.extend_from_slice(part);
        }
    })
}

fn write_bitmap(out: &mut Vec<u8>, bitmap: &Bitmap) {
    let start = out.len();
    let len = bitmap.width().div_ceil(8);
    out.extend(bitmap.as_bytes().iter().take(len));
    out.resize(start + len, 0);
}

impl RowsEvent {
    /// The event again, with other rows of the same shape, another table id and other flags: what an applier sends.
    /// Decompressed; version as decoded.
    pub fn spec(&self, table_id: u64, flags: u16) -> RowsSpec<'_> {
        RowsSpec {
            kind: self.kind,
            table_id,
            flags,
            version: self.version,
            extra: &self.extra,
            before_columns: &self.before_columns,
            after_columns: &self.after_columns,
            partial_json: self.partial_json,
        }
    }
}
