//! From column values to bytes that are equal exactly when the column's index calls the values equal.
//!
//! Both directions count: values that differ in bytes but not for the index must not run in parallel, and values
//! that differ for the index must not be merged. What is not known is said to be not known ([`KeyClass::Coarse`],
//! [`EncodedValue::Wildcard`]), never guessed. Nothing here sorts: the bytes are good for equality only.

mod class;
mod collation;
mod data_type;
mod folds;
pub mod logged;
pub mod mysql_writeset;
pub mod numbered;
mod text;

pub use class::{EncodedValue, KeyClass, append_key, classify};
pub use data_type::DataType;
pub use folds::{SingleByteFold, UnicodeFold};
pub use text::{Encoding, Fold, Pad, TextKey};

#[cfg(test)]
mod tests;
