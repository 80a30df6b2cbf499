//! Removes from the relay log what is committed on the target.

use engine::progress::Mark;
use relay::RelayHandle;

pub struct RelayPurger(RelayHandle);

impl RelayPurger {
    pub fn new(relay: RelayHandle) -> Self {
        Self(relay)
    }

    /// Everything before the mark is committed. A file that cannot be removed is left for the next time.
    pub fn purge_to(&self, mark: &Mark) {
        if let Some(position) = &mark.position
            && let Err(error) = self.0.purge(position)
        {
            tracing::warn!("purging the relay log: {error}");
        }
    }
}
