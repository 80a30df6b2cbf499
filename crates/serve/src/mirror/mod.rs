//! A mirror: the source's binary logs, equal to its own files at the same positions.
//!
//! | Folder | Is |
//! |---|---|
//! | `stream/` | what an event of the source's stream is to a file (pure) |
//! | `disk/` | the folders and files: written, synced, compressed, removed, read after a restart |
//! | `source/` | the source: which server it is, whether it has the mirror's history, which server can take its place |
//! | `thread/` | the mirror's thread: connects, reads, decides when the disk is synced, publishes |
//!
//! After a lost connection, and at each start, the last event is asked for again and compared: a source that was reset, restored or that lost the end of its log is noticed
//! before anything is added.

mod acknowledger;
pub(crate) mod disk;
mod monitor;
mod orders;
mod plan;
mod receiver_status;
pub(crate) mod source;
mod stream;
mod thread;

pub use self::acknowledger::{AckPolicy, Acknowledger};
pub use self::disk::epochs::{folder_of, folders_of};
pub use self::disk::purge::{DiskUse, Retention, disk_use};
pub use self::monitor::{Link, MirrorState, Monitor};
pub use self::orders::Orders;
pub use self::plan::{CompleteFiles, EndCondition, MirrorHandles, MirrorOutcome, Plan};
pub use self::receiver_status::ReceiverStatus;
pub use self::source::{POSITIONS_OF, Upstream};
pub use self::thread::run;
