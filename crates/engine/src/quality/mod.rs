//! How much of a stream of transactions could run in parallel, as numbers.
//!
//! Measures only: the quality of the tags that a source wrote (AMIL, pseudo group size, group sizes), the width that
//! exact dependencies leave, what makes the longest chains, how evenly workers were used. Functions and accumulators of
//! their arguments; memory is bounded whatever the number of transactions.

pub mod exact;
pub mod forecast;
pub mod groups;
pub mod heavy;
pub mod histogram;
pub mod intervals;
pub mod jain;
pub mod keyed_tags;
pub mod series;

pub use exact::{ChainPosition, ExactModel, ExactTotals, Link};
pub use forecast::{BacklogHistory, BacklogSample, Forecast};
pub use groups::GroupSizes;
pub use heavy::HeavyHitters;
pub use histogram::Histogram;
pub use intervals::Intervals;
pub use jain::jain_index;
pub use keyed_tags::KeyedTags;
pub use series::Series;
