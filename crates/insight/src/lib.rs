//! What a log says: `inspect` reads logs and reports what is in them, `simulate` predicts which replica would apply them how fast, `retag` reports what
//! tags made anew are worth, `log_part` is both of a part of a live server's log.
//!
//! Applies nothing; but `simulate --calibrate` measures a server in a schema of its own.

pub mod inspect;
pub mod log_part;
pub mod retag;
pub mod simulate;
