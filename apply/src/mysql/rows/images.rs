//! The rows of a rows event that are in one piece, one behind the other.

use std::ops::Range;

use binlog::image::RowLayout;
use binlog::{Bitmap, Corrupt, RowsKind, What};
use engine::compact::Batch;

/// Which images a row has, and which columns they have.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    pub layout: &'a RowLayout,
    pub before: Option<&'a Bitmap>,
    pub after: Option<&'a Bitmap>,
}

/// Where the two images of a row are; empty where the kind has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
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
    /// [`Corrupt`] with an offset in `rows`.
    pub fn row(&self, rows: &[u8], at: usize) -> Result<Option<Place>, Corrupt> {
        if at >= rows.len() {
            return Ok(None);
        }
        let before = self.image(self.before, rows, at)?;
        let after = self.image(self.after, rows, before.end)?;
        if after.end == at {
            let left = (rows.len() - at) as u64;
            return Err(Corrupt::new(
                at as u64,
                What::Invalid { field: "bytes in a row without columns", value: left },
            ));
        }
        Ok(Some(Place { before, after }))
    }

    fn image(&self, present: Option<&Bitmap>, rows: &[u8], at: usize) -> Result<Range<usize>, Corrupt> {
        let Some(present) = present else { return Ok(at..at) };
        let bytes = rows.get(at..).unwrap_or_default();
        let length = self.layout.image_len(present, bytes).map_err(|error| error.at(at as u64))?;
        Ok(at..at + length)
    }
}
