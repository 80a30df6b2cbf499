//! MariaDB's tables WITH SYSTEM VERSIONING: the maximum row-end timestamp of a current row is rewritten to the target's.
//!
//! With MariaDB 11.5 the maximum has moved from 2038-01-19 03:14:07.999999 to 2106-02-07 06:28:15.999999 UTC (MDEV-32188). A server from 11.5 on
//! takes a row that ends with the earlier one for history. Its own replicas of older servers put the later one instead; a row that is written
//! through `BINLOG` keeps the earlier one (seen with 11.8).
//!
//! Never changes the length of a row. A row that a server from 11.5 on has ended in exactly that microsecond would be taken for a current one.

use std::ops::Range;

use binlog::image::RowLayout;
use binlog::{Bitmap, ColumnKind, Corruption, Flavour, TableMap};

use super::images::Shape;
use crate::mysql::server::info::TargetInfo;

/// The end of a row in a `TIMESTAMP(6)`: seconds since the epoch and microseconds, big-endian.
const EARLIER: [u8; 7] = [0x7f, 0xff, 0xff, 0xff, 0x0f, 0x42, 0x3f];
const LATER: [u8; 7] = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x42, 0x3f];

/// Whether the target has the later one.
pub fn is_later(target: &TargetInfo) -> bool {
    target.flavour == Flavour::MariaDb && target.version >= (11, 5, 0)
}

/// Where a versioned table has it, in the row image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowEnd {
    pub column: usize,
}

/// Puts the later end into rows that have the earlier one. `rows`: as in a rows event.
///
/// # Errors
/// [`Corruption`] with an offset in `rows`.
pub fn extend(row_end: RowEnd, map: &TableMap, shape: Shape<'_>, rows: &mut [u8]) -> Result<(), Corruption> {
    if map.columns.get(row_end.column).is_none_or(|column| column.real_kind() != ColumnKind::TIMESTAMP2) {
        return Ok(());
    }
    let mut at = 0;
    while let Some(row) = shape.row(rows, at)? {
        at = row.after.end;
        for (present, image) in [(shape.before, row.before), (shape.after, row.after)] {
            let (Some(present), Some(image)) = (present, rows.get_mut(image)) else { continue };
            if let Some(value) = place(row_end, shape.layout, present, image)?.and_then(|place| image.get_mut(place))
                && value == EARLIER
            {
                value.copy_from_slice(&LATER);
            }
        }
    }
    Ok(())
}

/// Where in an image its end is, if it has one.
fn place(
    row_end: RowEnd,
    layout: &RowLayout,
    present: &Bitmap,
    image: &[u8],
) -> Result<Option<Range<usize>>, Corruption> {
    let mut columns = layout.columns(present, image);
    while let Some(column) = columns.next() {
        let column = column?;
        if column.column == row_end.column {
            let value = column.value.filter(|value| value.len() == EARLIER.len());
            return Ok(value.map(|value| columns.consumed() - value.len()..columns.consumed()));
        }
    }
    Ok(None)
}

/// `create_table`: what `SHOW CREATE TABLE` says of a table with system versioning; `shown`: how many columns it shows. Without columns of its own for
/// the purpose it has two that it does not show, the end behind the start (seen in logs).
pub fn of_table(create_table: &str, shown: usize) -> RowEnd {
    let lines = create_table.lines().skip(1);
    let own = lines.map(str::trim_start).take_while(|line| line.starts_with('`')).position(is_row_end);
    RowEnd { column: own.unwrap_or(shown + 1) }
}

/// A column's line: its name, its type, what it is. A comment comes later.
fn is_row_end(line: &str) -> bool {
    let rest = line.strip_prefix('`').unwrap_or(line).replace("``", "");
    rest.split_once('`').is_some_and(|(_, rest)| {
        let mut words = rest.split_ascii_whitespace().skip(1).skip_while(|word| word.eq_ignore_ascii_case("unsigned"));
        ["GENERATED", "ALWAYS", "AS", "ROW", "END"]
            .iter()
            .all(|word| words.next().is_some_and(|found| found.trim_end_matches(',') == *word))
    })
}

#[cfg(test)]
mod tests {
    use binlog::encode::{FormatSpec, Head, TableMapSpec, table_map};
    use binlog::{Checksum, Column, Event};

    use super::*;

    /// An INT, and the end of a row.
    fn map() -> TableMap {
        let head = Head::new(1, 1, Checksum::Off);
        let columns = [Column::new(ColumnKind::LONG, 0, false), Column::new(ColumnKind::TIMESTAMP2, 6, false)];
        let spec = TableMapSpec {
            table_id: 1,
            flags: 1,
            schema: "d",
            table: "t",
            columns: &columns,
            primary_key: None,
            metadata: false,
        };
        let event = Event::parse(table_map(&head, &spec).into(), Checksum::Off).expect("an event");
        let format = FormatSpec::new("11.8.0-MariaDB", Flavour::MariaDb, Checksum::Off).describe();
        TableMap::decode(&event, &format).expect("a table map")
    }

    #[test]
    fn both_images_of_every_row() {
        let map = map();
        let (whole, key) = (Bitmap::full(2), Bitmap::from_fn(2, |column| column == 0));
        let ended: [u8; 7] = [0x65, 0, 0, 0, 0, 0, 1];
        let image = |id: u8, end: &[u8]| [&[0, id, 0, 0, 0][..], end].concat();
        let extended = |before: Option<&Bitmap>, after: Option<&Bitmap>, rows: &[Vec<u8>]| {
            let mut bytes = rows.concat();
            extend(RowEnd { column: 1 }, &map, Shape { layout: map.layout(), before, after }, &mut bytes)
                .map(|()| bytes)
        };
        let rows = |end: &[u8]| [image(1, end), image(1, &ended), image(2, end), image(2, end)];
        let changed = extended(Some(&whole), Some(&whole), &rows(&EARLIER)).expect("rows");
        assert_eq!(changed, rows(&LATER).concat());
        assert_eq!(extended(None, Some(&whole), &rows(&EARLIER)).expect("rows"), rows(&LATER).concat());
        // A key alone has none; nor is an end looked for in what is too short to be a row.
        let keys = [image(0x7f, &[]), image(0xff, &[])];
        assert_eq!(extended(Some(&key), None, &keys).expect("rows"), keys.concat());
        extended(Some(&whole), None, &[image(1, &EARLIER[..5])]).expect_err("a part of a row");
        extended(Some(&Bitmap::from_fn(2, |_| false)), None, &keys).expect_err("bytes of no row");
    }

    #[test]
    fn as_mariadb_shows_it() {
        let own = "CREATE TABLE `t` (\n  `a ``ROW END``` int(11) DEFAULT NULL COMMENT 'GENERATED ALWAYS AS ROW END',\n  \
                   `s` timestamp(6) GENERATED ALWAYS AS ROW START INVISIBLE,\n  `e` timestamp(6) GENERATED ALWAYS AS ROW END,\n  \
                   `z` int(11) NOT NULL,\n  PRIMARY KEY (`a`,`e`),\n  PERIOD FOR SYSTEM_TIME (`s`, `e`)\n) ENGINE=InnoDB WITH SYSTEM VERSIONING";
        assert_eq!(of_table(own, 4), RowEnd { column: 2 });
        let hidden = "CREATE TABLE `t` (\n  `a` int(11) NOT NULL,\n  `b` text DEFAULT NULL,\n  PRIMARY KEY (`a`)\n) ENGINE=InnoDB WITH SYSTEM VERSIONING";
        assert_eq!(of_table(hidden, 2), RowEnd { column: 3 });
    }
}
