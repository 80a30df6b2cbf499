//! What a group becomes: rows of one table and kind, ready to be sent, and a change on its way there.

use std::sync::Arc;

use binlog::{Bitmap, RowsKind, TableMap};

use crate::row_session::RowSession;
use crate::schema::Table;
use crate::transaction::{Row, RowsItem, WriteSet};

/// What to apply, in order, first the rows that need not wait for an earlier group's commit.
#[derive(Debug, Default)]
pub struct Plan<'a> {
    pub independent: Vec<Batch<'a>>,
    pub deferred: Vec<Batch<'a>>,
}

/// Rows of one table and kind: one rows event, or several when it would be too large.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    pub map: &'a Arc<TableMap>,
    pub table: Option<&'a Arc<Table>>,
    pub kind: RowsKind,
    pub before_columns: &'a Bitmap,
    pub after_columns: &'a Bitmap,
    /// Of full before images, the columns that are enough for the target to find each row.
    pub lookup_columns: Option<&'a Bitmap>,
    /// Of the rows event, without STMT_END.
    pub flags: u16,
    pub partial_json: bool,
    /// Seconds since the epoch.
    pub timestamp: u32,
    /// Of the rows, if the server needs it.
    pub session: Option<&'a Arc<RowSession>>,
    pub rows: Vec<Images<'a>>,
}

/// The images of one row as in the rows event; empty where the kind has none.
#[derive(Clone, Copy, Debug)]
pub struct Images<'a> {
    pub before: &'a [u8],
    pub after: &'a [u8],
}

impl<'a> Batch<'a> {
    /// Whether the server may change rows of other tables with these, by foreign keys.
    pub fn may_cascade(&self) -> bool {
        self.kind != RowsKind::Write && self.table.is_none_or(|table| !table.cascades_to.is_empty())
    }

    /// The same with a single row.
    pub fn with_row(&self, row: Images<'a>) -> Batch<'a> {
        self.with_rows(vec![row])
    }

    /// The same with other rows.
    pub fn with_rows(&self, rows: Vec<Images<'a>>) -> Batch<'a> {
        let Batch { map, table, kind, before_columns, after_columns, lookup_columns, .. } = *self;
        let Batch { flags, partial_json, timestamp, session, .. } = *self;
        Batch {
            map,
            table,
            kind,
            before_columns,
            after_columns,
            lookup_columns,
            flags,
            partial_json,
            timestamp,
            session,
            rows,
        }
    }

    /// Whether the target gives the rows the time of the event, or what follows from it.
    pub fn takes_time(&self) -> bool {
        self.table.is_some_and(|table| table.takes_time(self.kind, self.after_columns))
    }

    pub fn bytes(&self) -> usize {
        self.rows.iter().map(|row| row.before.len() + row.after.len()).sum()
    }
}

/// `STMT_END_F` of a rows event: the applier closes its tables there, so it is set anew for each batch.
pub(super) const STMT_END: u16 = 1;

/// One row with all that is around it.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub item: &'a RowsItem,
    pub row: &'a Row,
    pub set: &'a WriteSet,
    pub images: Images<'a>,
    /// It waits for an earlier group's commit.
    pub deferred: bool,
}

/// Of the before images of an event, if they have all columns.
fn lookup_columns(item: &RowsItem) -> Option<&Bitmap> {
    let event = &item.event;
    // All images of a group that is merged are full, those that an insert has left behind, too.
    let before = if event.kind == RowsKind::Write { &event.after_columns } else { &event.before_columns };
    let lookup = item.table.as_ref()?.lookup_columns.as_ref()?;
    (before.is_full() && !event.partial_json && lookup.width() == before.width()).then_some(lookup)
}

/// An empty batch for the table of a change.
pub(super) fn batch_like<'a>(change: &Change<'a>, kind: RowsKind) -> Batch<'a> {
    let event = &change.item.event;
    Batch {
        map: &change.item.map,
        table: change.item.table.as_ref(),
        kind,
        before_columns: &event.before_columns,
        after_columns: &event.after_columns,
        lookup_columns: if kind == RowsKind::Write { None } else { lookup_columns(change.item) },
        flags: event.flags & !STMT_END,
        partial_json: event.partial_json,
        timestamp: change.item.timestamp,
        session: change.item.session.as_ref(),
        rows: Vec::new(),
    }
}
