//! One channel: one source → one target. Threads and queues around the engine's state machines, which decide.
//!
//! ```text
//! source/receiver ─▶ relay log ─▶ feeder ─▶ coordinator ─▶ worker × N ─▶ apply::Session
//!                                   │            │             ▲
//!            engine: transactions, ─┘            └─ engine:    │
//!            write sets, placements                 scheduler ─┘
//!
//! back: low water ─▶ policy, DDL waits (flow/signals) and housekeeper ─▶ checkpoints, purging of the relay log
//! ```
//!
//! | To find | Look at |
//! |---|---|
//! | what a run needs to know | `spec`: where to start `start`, where to end `stop_condition` |
//! | what keeps a run from its start | `checks`, asked by the dry run, too; a new channel at the wrong place: `start::wrong_start` |
//! | one run from start to end | `run`; its threads and queues: `threads` |
//! | how a source is asked and received | `source/`: `open`, `upstream`, `socket`, `append`, `relay_sync`; files need only `open` |
//! | events → placed transactions | `feeder/`: `stage`, `event_intake`, `extent`, `transactions`, `output` |
//! | who runs when | `coordinator/stage`; the decisions: `engine::schedule` |
//! | how a group is applied | `worker/`: `task`, `orders`, `applier`; after a failure: `isolate` |
//! | how many workers | `workforce/` |
//! | lock waits, checkpoints, purging | `housekeeper` |
//! | two processes for one channel | who has it: `heartbeat`; who waits for it: `standby/` |
//! | how threads hand over work | `flow/handoff`; what they say: `flow/messages`, `flow/chores`; signals back: `flow/signals` |
//! | where a channel is | `snapshot`, taken by its `monitor` |
//!
//! A thread that hands over work knows a queue and a [`flow::handoff::Wake`], never the type of the stage that it wakes.
//!
//! The crate never decides about order, never builds SQL, never words a report.

pub mod checks;
mod coordinator;
pub mod errors;
mod feeder;
mod flow;
mod heartbeat;
mod housekeeper;
mod log_failures;
pub mod monitor;
pub mod outcome;
pub mod run;
pub mod snapshot;
pub mod source;
mod spawn;
pub mod spec;
pub mod standby;
pub mod start;
pub mod stop_condition;
mod threads;
mod worker;
mod workforce;
