//! What was seen of a replica in a period, and what it means. Pure.
//!
//! `period` as the server said it · `states`, `clock`, `coordinator` its words · `channel_facts` one channel put in order · `lag`, `trend` how far behind and where to · `source` what the
//! source's log allows.

pub mod channel_facts;
pub mod clock;
pub mod coordinator;
pub mod lag;
pub mod period;
pub mod source;
pub mod states;
pub mod trend;
