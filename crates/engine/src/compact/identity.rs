//! Whether two row images carry the same identifying key, byte for byte.
//!
//! Key hashes say which rows are probably the same row; before two changes are merged into one, their key columns
//! are compared. Equal hashes with different bytes (a collision, or strings that only the collation calls
//! equal) are reported as not the same: the caller then keeps the source's order, which is always right.

use binlog::table_map::columns;
use binlog::{Bitmap, TableMap};

use crate::schema::UniqueKey;

pub fn same_key(map: &TableMap, present: &Bitmap, key: &UniqueKey, left: &[u8], right: &[u8]) -> bool {
    let (Some(left), Some(right)) = (key_bytes(map, present, key, left), key_bytes(map, present, key, right)) else {
        return false;
    };
    left == right
}

/// Raw bytes of the key's columns, in column order. `None` when the image can not be walked.
fn key_bytes<'a>(map: &'a TableMap, present: &'a Bitmap, key: &UniqueKey, image: &'a [u8]) -> Option<Vec<&'a [u8]>> {
    let mut found = Vec::with_capacity(key.parts.len());
    for column in columns(map, present, image) {
        let column = column.ok()?;
        if key.parts.iter().any(|part| part.column == column.column) {
            found.push(column.value?);
            if found.len() == key.parts.len() {
                return Some(found);
            }
        }
    }
    None
}
