//! RAND: the seeds of `RAND()` for the next statement.

use crate::corruption::Corruption;
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::kind::Kind;

/// `rand_seed1` and `rand_seed2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rand {
    /// `rand_seed1`.
    pub seed1: u64,
    /// `rand_seed2`.
    pub seed2: u64,
}

impl Rand {
    /// Decodes a RAND event.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<Rand, Corruption> {
        event.expect(Kind::RAND)?;
        let mut r = event.reader();
        Ok(Rand { seed1: r.u64("rand_seed1")?, seed2: r.u64("rand_seed2")? })
    }
}
