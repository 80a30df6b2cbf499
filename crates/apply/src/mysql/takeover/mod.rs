//! How the process that has a channel and those that wait for it see each other: by locks on the target, which cost no write and need no privilege.
//!
//! | Lock `heddle.CHANNEL/…` | Who holds it |
//! |---|---|
//! | `5010` to `5012` | who has the channel: another one each second. The same for long: its process, its machine or the network is gone |
//! | `5013` to `5015` | the same, while it does not hear its source |
//! | `5020` | who asks for a takeover, while it waits for it |
//! | `6000` to `6015` | who waits for the channel, a place each |
//!
//! What those who wait say of themselves is in the table `standbys`, for people alone: nothing is decided by it.

mod lookout;
pub(in crate::mysql) mod places;
pub mod request;
pub(in crate::mysql) mod signs;
pub(in crate::mysql) mod standby_place;

/// The first number of the locks that are signs of life; as many again for a process that does not hear its source.
const SIGNS: usize = 5010;
/// Signs that follow each other. Of two, one that looks too rarely could see the same one for ever.
const PHASES: usize = 3;
/// Held by who asks for a takeover.
const REQUEST: usize = 5020;
/// The first number of the locks of those who wait.
const PLACES: usize = 6000;
const PLACES_MAX: usize = 16;
