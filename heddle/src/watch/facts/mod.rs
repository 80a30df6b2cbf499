//! What was seen of a replica in a period, and what it means. Pure.
//!
//! `period` as the server said it · `states`, `clock`, `coordinator` its words · `seen` put in order · `lag`, `trend` how far behind and where to · `source` what the
//! source's log allows.

pub mod clock;
pub mod coordinator;
pub mod lag;
pub mod period;
pub mod seen;
pub mod source;
pub mod states;
pub mod trend;
