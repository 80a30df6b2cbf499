//! The hash that MySQL puts into a transaction's write set for one unique index of one row image.
//!
//! For comparing with MySQL's own tags; Heddle's ordering does not need to hash as MySQL does. The layout of the
//! key is a fact of `rpl_write_set_handler.cc` (see the vectors in the tests).

use twox_hash::XxHash64;

/// What stands between the parts: ½ in UTF-8.
const SEPARATOR: &[u8] = "½".as_bytes();

/// XXH64 of `index½db½len(db)table½len(table)` and `sortkey½len(sortkey)` for each key part, seed 0.
///
/// `sort_keys` are the collations' sort keys (for numbers their decimal text). An index with a NULL part has no hash.
pub fn hash(index: &str, db: &str, table: &str, sort_keys: &[&[u8]]) -> u64 {
    let mut key = Vec::with_capacity(64);
    key.extend_from_slice(index.as_bytes());
    key.extend_from_slice(SEPARATOR);
    for part in [db.as_bytes(), table.as_bytes()].into_iter().chain(sort_keys.iter().copied()) {
        key.extend_from_slice(part);
        key.extend_from_slice(SEPARATOR);
        key.extend_from_slice(part.len().to_string().as_bytes());
    }
    XxHash64::oneshot(0, &key)
}
