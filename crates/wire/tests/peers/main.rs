//! Against peers that are played: what they may do to a connection, and how long it waits for them.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test that fails may panic")]

mod hostile;
mod peer;
mod serving;
mod tls_fallback;
mod waits;
