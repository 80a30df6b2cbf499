//! `heddle rescue --via serve`: the replica's own applier catches up from a stream of groups, where Heddle may not apply.
//!
//! `run` one step after the other · `pointing` where the channel points · `note` what there was before, in Heddle's own folder · `stream` the mirror and the binlog server on it · `source_watch` asks the source what it has · `lag` how far behind the replica is.
//!
//! Heddle writes nothing into the replica: it only points its channel to itself and, once it has caught up, back to its source. So whether a rescue is under way is seen by where the channel
//! points, and the way back is taken at a place where all transactions of the groups have their GTIDs.

mod lag;
mod note;
mod pointing;
mod run;
mod source_watch;
mod stream;
