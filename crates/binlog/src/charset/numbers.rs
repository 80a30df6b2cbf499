//! The numbers of collations.

/// The number without MariaDB's addition for NOPAD.
pub(super) fn without_nopad(collation: u16) -> u16 {
    const NOPAD: u16 = 1024;
    const UCA14: u16 = 2048;
    if (NOPAD..UCA14).contains(&collation) { collation - NOPAD } else { collation }
}
