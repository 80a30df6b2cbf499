//! What the fuzz target shares with the tests.

mod session;

pub use session::session;
