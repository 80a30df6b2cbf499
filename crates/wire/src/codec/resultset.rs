//! Results of statements in the text protocol: columns, rows, and what an OK packet says.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;

use super::cursor::Cursor;
use crate::error::Error;

/// What a server says of a statement that was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OkInfo {
    /// Rows changed.
    pub affected: u64,
    /// First value generated for an AUTO_INCREMENT column.
    pub last_insert_id: u64,
    /// Number of warnings; SHOW WARNINGS has them.
    pub warnings: u16,
    /// Status flags, such as 1: inside a transaction.
    pub status: u16,
}

impl OkInfo {
    /// `payload` is an OK packet, or (0xfe) what stands in for EOF at the end of rows.
    pub(crate) fn parse(payload: &[u8]) -> Result<OkInfo, Error> {
        let mut cursor = Cursor::new(payload, "an OK packet");
        cursor.u8()?;
        let affected = cursor.lenenc()?;
        let last_insert_id = cursor.lenenc()?;
        let status = cursor.u16()?;
        let warnings = cursor.u16()?;
        Ok(OkInfo { affected, last_insert_id, warnings, status })
    }

    /// The text of an OK packet.
    pub(crate) fn text(payload: &[u8]) -> Result<&[u8], Error> {
        let mut cursor = Cursor::new(payload, "an OK packet");
        cursor.u8()?;
        cursor.lenenc()?;
        cursor.lenenc()?;
        cursor.u16()?;
        cursor.u16()?;
        if cursor.remaining() == 0 { Ok(&[]) } else { cursor.lenenc_bytes() }
    }

    /// An EOF packet of a server without CLIENT_DEPRECATE_EOF.
    pub(crate) fn parse_eof(payload: &[u8]) -> Result<OkInfo, Error> {
        let mut cursor = Cursor::new(payload, "an EOF packet");
        cursor.u8()?;
        let warnings = cursor.u16()?;
        let status = cursor.u16()?;
        Ok(OkInfo { warnings, status, ..OkInfo::default() })
    }
}

/// One column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name or alias.
    pub name: String,
    /// Table it comes from; empty for an expression.
    pub table: String,
    /// Type code of the protocol, such as 3 for INT.
    pub type_code: u8,
    /// Flags of the protocol, such as 32 for UNSIGNED.
    pub flags: u16,
    /// Collation number; 63 is binary.
    pub collation: u16,
}

impl Column {
    pub(crate) fn parse(payload: &[u8]) -> Result<Column, Error> {
        let mut cursor = Cursor::new(payload, "a column definition");
        let _catalog = cursor.lenenc_bytes()?;
        let _schema = cursor.lenenc_bytes()?;
        let table = cursor.lenenc_bytes()?;
        let _original_table = cursor.lenenc_bytes()?;
        let name = cursor.lenenc_bytes()?;
        let _original_name = cursor.lenenc_bytes()?;
        let _length_of_the_rest = cursor.lenenc()?;
        let collation = cursor.u16()?;
        let _display_length = cursor.u32()?;
        let type_code = cursor.u8()?;
        let flags = cursor.u16()?;
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Ok(Column { name: text(name), table: text(table), type_code, flags, collation })
    }
}

/// The result of one statement: rows with their columns, or neither.
#[derive(Clone, Debug, Default)]
pub struct ResultSet {
    /// Empty for a statement without rows.
    pub columns: Arc<[Column]>,
    /// All rows.
    pub rows: Vec<Row>,
    /// What the server said at the end.
    pub ok: OkInfo,
}

/// One row. A value is the text that the server sent.
#[derive(Clone, Debug)]
pub struct Row {
    columns: Arc<[Column]>,
    payload: Bytes,
    /// Start and end of each value in `payload`; none for NULL.
    cells: Box<[Option<(u32, u32)>]>,
}

impl Row {
    pub(crate) fn from_payload(columns: &Arc<[Column]>, payload: Bytes) -> Result<Row, Error> {
        let mut cursor = Cursor::new(&payload, "a row");
        let mut cells = Vec::with_capacity(columns.len());
        for _ in columns.iter() {
            let cell = cursor.lenenc_bytes_or_null()?;
            // A payload is at most 1 GiB, see `packet`.
            cells.push(cell.map(|value| ((cursor.offset() - value.len()) as u32, cursor.offset() as u32)));
        }
        if cursor.remaining() > 0 {
            return Err(Error::protocol(format!("a row has {} bytes too many", cursor.remaining())));
        }
        Ok(Row { columns: columns.clone(), cells: cells.into(), payload })
    }

    /// The row's columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// True for a row without columns, which no server sends.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The value by number (from 0) or name (in any case); none when it is NULL or there is no such column.
    #[expect(clippy::needless_pass_by_value, reason = "a number or a name, as it is written")]
    pub fn get(&self, column: impl ColumnIndex) -> Option<&[u8]> {
        self.cell(column.find(&self.columns)?)
    }

    /// The value as text; `None` for NULL. Errors: no such column, not UTF-8.
    #[expect(clippy::needless_pass_by_value, reason = "a number or a name, as it is written")]
    pub fn text(&self, column: impl ColumnIndex) -> Result<Option<&str>, Error> {
        let index = column.find(&self.columns).filter(|index| *index < self.cells.len());
        let Some(index) = index else {
            return Err(value_error(&column, "there is no such column in the result"));
        };
        match self.cell(index).map(std::str::from_utf8).transpose() {
            Ok(text) => Ok(text),
            Err(_) => Err(value_error(&column, "it is not UTF-8")),
        }
    }

    /// The value in another type; `None` for NULL. Errors: no such column, cannot be read as that type.
    pub fn parse<T: FromStr>(&self, column: impl ColumnIndex) -> Result<Option<T>, Error> {
        let name = column.describe().into_owned();
        let Some(text) = self.text(column)? else {
            return Ok(None);
        };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(Error::Value {
                column: name,
                reason: format!("{text:?} cannot be read as {}", std::any::type_name::<T>()),
            }),
        }
    }

    /// The value as text, and an error when it is NULL.
    pub fn required_text(&self, column: impl ColumnIndex) -> Result<&str, Error> {
        let name = column.describe().into_owned();
        self.text(column)?.ok_or_else(|| Error::Value { column: name, reason: "it is NULL".to_owned() })
    }

    /// The value in another type, and an error when it is NULL.
    pub fn required<T: FromStr>(&self, column: impl ColumnIndex) -> Result<T, Error> {
        let name = column.describe().into_owned();
        self.parse(column)?.ok_or_else(|| Error::Value { column: name, reason: "it is NULL".to_owned() })
    }

    fn cell(&self, index: usize) -> Option<&[u8]> {
        let (start, end) = (*self.cells.get(index)?)?;
        self.payload.get(start as usize..end as usize)
    }
}

fn value_error(column: &impl ColumnIndex, reason: &str) -> Error {
    Error::Value { column: column.describe().into_owned(), reason: reason.to_owned() }
}

/// A column by number or by name.
pub trait ColumnIndex {
    /// The column's number, from 0.
    fn find(&self, columns: &[Column]) -> Option<usize>;
    /// For errors.
    fn describe(&self) -> Cow<'_, str>;
}

impl ColumnIndex for usize {
    fn find(&self, _: &[Column]) -> Option<usize> {
        Some(*self)
    }

    fn describe(&self) -> Cow<'_, str> {
        format!("number {self}").into()
    }
}

impl ColumnIndex for &str {
    fn find(&self, columns: &[Column]) -> Option<usize> {
        columns.iter().position(|column| column.name.eq_ignore_ascii_case(self))
    }

    fn describe(&self) -> Cow<'_, str> {
        (*self).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn columns(names: &[&str]) -> Arc<[Column]> {
        names
            .iter()
            .map(|name| Column {
                name: (*name).to_owned(),
                table: String::new(),
                type_code: 253,
                flags: 0,
                collation: 45,
            })
            .collect()
    }

    #[test]
    fn a_row() {
        let row =
            Row::from_payload(&columns(&["Id", "name", "gone"]), Bytes::from_static(b"\x0242\x03abc\xfb")).unwrap();
        assert_eq!(row.get(0), Some(&b"42"[..]));
        assert_eq!(row.text("NAME").unwrap(), Some("abc"));
        assert_eq!(row.parse::<u64>("id").unwrap(), Some(42));
        assert_eq!(row.required::<u64>(0).unwrap(), 42);
        assert_eq!(row.text("gone").unwrap(), None);
        let shown = |error: Error| error.to_string();
        assert_eq!(shown(row.text(3).unwrap_err()), "column number 3: there is no such column in the result");
        assert_eq!(shown(row.parse::<u64>("name").unwrap_err()), "column name: \"abc\" cannot be read as u64");
        assert_eq!(shown(row.required_text("gone").unwrap_err()), "column gone: it is NULL");
    }

    #[test]
    fn rows_that_do_not_fit_their_columns() {
        let check = |payload: &'static [u8]| {
            assert!(Row::from_payload(&columns(&["a", "b"]), Bytes::from_static(payload)).is_err(), "{payload:?}");
        };
        check(b"");
        check(b"\x01x");
        check(b"\x01x\x05y");
        check(b"\x01x\x01y\x01z");
    }

    #[test]
    fn ok_packets() {
        let ok = OkInfo::parse(b"\x00\xfc\x00\x01\x07\x0a\x00\x02\x00info").unwrap();
        assert_eq!(ok, OkInfo { affected: 256, last_insert_id: 7, status: 10, warnings: 2 });
        let eof = OkInfo::parse_eof(b"\xfe\x01\x00\x08\x00").unwrap();
        assert_eq!(eof, OkInfo { warnings: 1, status: 8, ..OkInfo::default() });
    }

    proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>) {
            let _ = Column::parse(&bytes);
            let _ = OkInfo::parse(&bytes);
            let _ = OkInfo::parse_eof(&bytes);
            if let Ok(row) = Row::from_payload(&columns(&["a", "b", "c"]), bytes.into()) {
                for index in 0..4 {
                    let _ = row.get(index);
                }
            }
        }
    }
}
