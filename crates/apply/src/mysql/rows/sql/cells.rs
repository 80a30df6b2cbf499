//! The rows of a batch, value by value.

use binlog::image::RowLayout;
use binlog::{Bitmap, Corruption, RowsKind};
use engine::compact::Batch;

use crate::mysql::rows::images::Shape;

/// A column of a row image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// The image does not have the column.
    Absent,
    Null,
    /// Without its length prefix.
    Bytes(&'a [u8]),
}

impl<'a> Cell<'a> {
    /// As [`super::literal::put`] takes it; `None`: absent.
    pub fn value(self) -> Option<Option<&'a [u8]>> {
        match self {
            Self::Absent => None,
            Self::Null => Some(None),
            Self::Bytes(raw) => Some(Some(raw)),
        }
    }
}

/// One row, with a cell for each column of the table map; no cells where the kind has no such image.
#[derive(Clone, Debug, Default)]
pub struct Cells<'a> {
    pub before: Vec<Cell<'a>>,
    pub after: Vec<Cell<'a>>,
}

/// Hands each row to `take`, in their order.
///
/// # Errors
/// Those of `take`; `corrupt` makes one of a row that is damaged.
pub fn for_each<'a, E>(
    batch: &'a Batch<'_>,
    corrupt: impl Fn(&Corruption) -> E,
    mut take: impl FnMut(Cells<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let shape = Shape::of(batch, batch.before_columns);
    let layout = batch.map.layout();
    let cells = |present: Option<&'a Bitmap>, image: &'a [u8]| match present {
        Some(present) => read(layout, present, image),
        None => Ok(Vec::new()),
    };
    let before_columns = (batch.kind != RowsKind::Write).then_some(batch.before_columns);
    let after_columns = (batch.kind != RowsKind::Delete).then_some(batch.after_columns);
    let mut one = |before: &'a [u8], after: &'a [u8]| {
        let before = cells(before_columns, before).map_err(|error| corrupt(&error))?;
        let after = cells(after_columns, after).map_err(|error| corrupt(&error))?;
        take(Cells { before, after })
    };
    for images in &batch.rows {
        // Those of a whole event are in one piece.
        let joined = match (images.before, images.after) {
            ([], joined) | (joined, []) => joined,
            (before, after) => {
                one(before, after)?;
                continue;
            }
        };
        if joined.is_empty() {
            one(&[], &[])?;
        }
        let mut at = 0;
        while let Some(row) = shape.row(joined, at).map_err(|error| corrupt(&error))? {
            at = row.after.end;
            let image = |place| joined.get(place).unwrap_or_default();
            one(image(row.before), image(row.after))?;
        }
    }
    Ok(())
}

fn read<'a>(layout: &'a RowLayout, present: &'a Bitmap, image: &'a [u8]) -> Result<Vec<Cell<'a>>, Corruption> {
    let mut cells = vec![Cell::Absent; layout.width()];
    if present.count() == 0 {
        return Ok(cells);
    }
    for column in layout.columns(present, image) {
        let column = column?;
        if let Some(cell) = cells.get_mut(column.column) {
            *cell = column.value.map_or(Cell::Null, Cell::Bytes);
        }
    }
    Ok(cells)
}
