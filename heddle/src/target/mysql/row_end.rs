//! The time until which a row is valid, in MariaDB's tables WITH SYSTEM VERSIONING: the end of all time that stands in a row which is valid still.
//!
//! With MariaDB 11.5 it has moved from 2038-01-19 03:14:07.999999 to 2106-02-07 06:28:15.999999 UTC (MDEV-32188). A server from there on takes a row
//! that ends with the earlier one for history; its own replicas of older servers put the later one instead, `BINLOG` does not (seen with 11.8).
//!
//! Never changes the length of a row. A row that a server from 11.5 on has ended in exactly that microsecond would be taken for a valid one.

use binlog::{Bitmap, ColumnKind, Corrupt, RowsKind, TableMap};

/// The end of a row in a `TIMESTAMP(6)`: seconds since the epoch and microseconds, big-endian.
const EARLIER: [u8; 7] = [0x7f, 0xff, 0xff, 0xff, 0x0f, 0x42, 0x3f];
const LATER: [u8; 7] = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x42, 0x3f];

/// From which version on, of MariaDB.
pub const LATER_SINCE: (u16, u16, u16) = (11, 5, 0);

/// Where a versioned table has it, in the row image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowEnd {
    pub column: usize,
}

/// Of one kind of rows, which columns their images have.
#[derive(Clone, Copy)]
pub struct Form<'a> {
    pub kind: RowsKind,
    pub before: &'a Bitmap,
    pub after: &'a Bitmap,
}

/// Puts the later end into rows that have the earlier one. `rows`: one image after the other, as in a rows event.
///
/// # Errors
/// [`Corrupt`] with an offset in `rows`.
pub fn extend(row_end: RowEnd, map: &TableMap, form: Form<'_>, rows: &mut [u8]) -> Result<(), Corrupt> {
    if map.columns.get(row_end.column).is_none_or(|column| column.real_kind() != ColumnKind::TIMESTAMP2) {
        return Ok(());
    }
    let images: &[&Bitmap] = match form.kind {
        RowsKind::Write => &[form.after],
        RowsKind::Delete => &[form.before],
        RowsKind::Update => &[form.before, form.after],
    };
    let mut at = 0;
    while at < rows.len() {
        let start = at;
        for present in images {
            let length = map.layout().image_len(present, &rows[at..]).map_err(|error| error.at(at as u64))?;
            if let Some(place) = place(row_end, map, present, &rows[at..at + length])?
                && let Some(value) = rows.get_mut(at + place..at + place + EARLIER.len())
                && value == EARLIER
            {
                value.copy_from_slice(&LATER);
            }
            at += length;
        }
        if at == start {
            // A row of no columns at all.
            break;
        }
    }
    Ok(())
}

/// Where in an image its end begins, if it has one.
fn place(row_end: RowEnd, map: &TableMap, present: &Bitmap, image: &[u8]) -> Result<Option<usize>, Corrupt> {
    let mut columns = map.layout().columns(present, image);
    while let Some(column) = columns.next() {
        let column = column?;
        if column.column == row_end.column {
            let length = column.value.map_or(0, <[u8]>::len);
            return Ok((length == EARLIER.len()).then(|| columns.consumed() - length));
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
    use super::*;

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
