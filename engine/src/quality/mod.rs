//! How much of a stream of transactions could run in parallel, as numbers.
//!
//! Measures only: the quality of the tags that a source wrote (AMIL, pseudo group size, group sizes), the width that
//! exact dependencies leave, what makes the longest chains, how evenly workers were used. Functions and accumulators of
//! their arguments; memory is bounded whatever the number of transactions.

pub mod exact;
pub mod groups;
pub mod heavy;
pub mod histogram;
pub mod intervals;
pub mod jain;
pub mod keyed;
pub mod series;

pub use exact::{Exact, ExactTotals, Link, Placed};
pub use groups::GroupSizes;
pub use heavy::HeavyHitters;
pub use histogram::Histogram;
pub use intervals::Intervals;
pub use jain::jain_index;
pub use keyed::KeyedTags;
pub use series::Series;
