//! Threads and queues: one direction, every queue bounded.
//!
//! `channel` one run from start to end · `feed` where its events come from · `threads` starts all others and waits for them ·
//! `feeding` reads the log, `feeder` events → placements · `coordinator` around the scheduler · `worker` one session · `desk` whose thread does
//! their work · `housekeeper` chores beside the hot path · `slow` names groups that take long · `patience` tries to get a target back ·
//! `prepared` branches of XA that are open · `reread` large transactions · `budget` memory · `until` where to end · `stats` numbers for observers.

pub mod budget;
pub mod channel;
pub mod coordinator;
pub mod desk;
pub mod feed;
mod feeder;
pub mod feeding;
mod housekeeper;
pub mod patience;
mod prepared;
pub mod reread;
mod slow;
pub mod start;
pub mod stats;
mod threads;
pub mod until;
mod worker;
