//! Accounts, roles, and what they are granted: read from the source by its own `SHOW` statements, made on the target when the rows are there.
//!
//! Never changed: accounts that the target has already, Heddle's own account there, the servers' own. No hash goes into a message: where a
//! server's words might quote one, its error number stands for them. What the target does not take is left out and named; no account gets
//! another password than its own, or more than it has on the source.
//!
//! | File | Does |
//! |---|---|
//! | `show_output/` | takes apart what servers show |
//! | `source.rs`, `target.rs` | asks the ends |
//! | `statements.rs` | the statement that makes an account on the target |
//! | `grantor.rs` | grants |
//! | `records.rs` | which accounts a copy under way has made |
//! | `transfer.rs` | an account from begin to end |

mod attempt;
mod grantor;
mod notes;
mod records;
mod show_output;
mod source;
mod statements;
mod target;
mod transfer;

pub use transfer::{AccountTransfer, Preparation};
