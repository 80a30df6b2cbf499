//! The rows of a rows event that are in one piece, one behind the other.

use std::ops::Range;

use binlog::image::RowLayout;
use binlog::{Bitmap, Corruption, CorruptionKind, RowsKind, TableMap};
use engine::compact::{Batch, Images};
use engine::failure::{Failure, FailureKind};

/// Which images a row has, and which columns they have.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    pub layout: &'a RowLayout,
    pub before: Option<&'a Bitmap>,
    pub after: Option<&'a Bitmap>,
}

/// Where the two images of a row are; empty where the kind has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRanges {
    pub before: Range<usize>,
    pub after: Range<usize>,
}

impl<'a> Shape<'a> {
    /// `before`: of the images before, which may have been cut.
    pub fn of(batch: &'a Batch<'_>, before: &'a Bitmap) -> Self {
        Self {
            layout: batch.map.layout(),
            before: (batch.kind != RowsKind::Write).then_some(before),
            after: (batch.kind != RowsKind::Delete).then_some(batch.after_columns),
        }
    }

    /// The row that begins at `at`; `None` at the end.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in `rows`.
    pub fn row(&self, rows: &[u8], at: usize) -> Result<Option<ImageRanges>, Corruption> {
        if at >= rows.len() {
            return Ok(None);
        }
        let before = self.image(self.before, rows, at)?;
        let after = self.image(self.after, rows, before.end)?;
        if after.end == at {
            let left = (rows.len() - at) as u64;
            return Err(Corruption::new(
                at as u64,
                CorruptionKind::Invalid { field: "bytes in a row without columns", value: left },
            ));
        }
        Ok(Some(ImageRanges { before, after }))
    }

    fn image(&self, present: Option<&Bitmap>, rows: &[u8], at: usize) -> Result<Range<usize>, Corruption> {
        let Some(present) = present else { return Ok(at..at) };
        let bytes = rows.get(at..).unwrap_or_default();
        let length = self.layout.image_len(present, bytes).map_err(|error| error.at(at as u64))?;
        Ok(at..at + length)
    }
}

/// The rows of a batch one by one, also where they are in one piece.
pub fn rows<'a>(batch: &Batch<'a>) -> Result<Vec<Images<'a>>, Failure> {
    let mut rows = Vec::with_capacity(batch.rows.len());
    let shape = Shape::of(batch, batch.before_columns);
    for images in &batch.rows {
        let (([], joined) | (joined, [])) = (images.before, images.after) else {
            rows.push(*images);
            continue;
        };
        let mut at = 0;
        while let Some(row) = shape.row(joined, at).map_err(|error| corrupt(batch.map, &error))? {
            at = row.after.end;
            let image = |place| joined.get(place).unwrap_or_default();
            rows.push(Images { before: image(row.before), after: image(row.after) });
        }
    }
    Ok(rows)
}

/// The log has rows that do not fit their table map.
pub fn corrupt(map: &TableMap, error: &Corruption) -> Failure {
    Failure::new(FailureKind::Refused, format!("a row of {}.{}: {error}", map.schema, map.table))
}
