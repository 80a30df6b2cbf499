//! How large one event may be with the memory that there is, and what it takes while it is applied. Holds nothing.

use apply::Footprint;

/// What a process may take beside `--memory`.
const BESIDE_BYTES: u64 = 64 << 20;
/// Transactions from this size on count with the copies that applying makes of them. Smaller ones are copied a few at a time.
pub const LARGE_BYTES: u64 = 2 << 20;
/// A spilled transaction is applied in pieces of about so many bytes.
const PIECE_BYTES: u64 = 4 << 20;
/// A large event once as it comes from the source, and once as it was read from the log.
const BESIDE_COPIES: u64 = 2;
/// The part of the memory that transactions may take which wait: what they need while they are applied comes on top.
const WAITING: u64 = 3;

/// `--memory`, and what the target makes of it.
#[derive(Clone, Copy, Debug)]
pub struct EventMemory {
    memory_bytes: u64,
    footprint: Footprint,
}

impl EventMemory {
    pub fn new(memory_bytes: u64, footprint: Footprint) -> Self {
        Self { memory_bytes, footprint }
    }

    fn parts(self) -> u64 {
        BESIDE_COPIES + self.footprint.event_copies
    }

    fn events_bytes(self) -> u64 {
        self.memory_bytes.saturating_add(BESIDE_BYTES).saturating_sub(self.footprint.base_bytes)
    }

    /// The largest event that may be held at once.
    pub fn event_bytes_max(self) -> u64 {
        self.events_bytes() / self.parts()
    }

    /// What is under way may take so much with one that is large, while another comes from the source.
    pub fn large_bytes_max(self) -> u64 {
        self.events_bytes() - self.event_bytes_max()
    }

    /// Transactions that are not large may take so much together.
    pub fn waiting_bytes_max(self) -> u64 {
        self.memory_bytes / WAITING
    }

    /// A transaction with more bytes of events than this is not held.
    pub fn spill_bytes(self) -> u64 {
        const MIN: u64 = 4 << 20;
        const MAX: u64 = 16 << 20;
        (self.waiting_bytes_max() / 2).clamp(MIN, MAX)
    }

    /// What a transaction with events of so many bytes takes.
    pub fn with_copies(self, bytes: u64) -> u64 {
        if bytes < LARGE_BYTES { bytes } else { bytes.saturating_mul(1 + self.footprint.event_copies) }
    }

    /// What a transaction takes that is read again in pieces, and whose largest event has so many bytes.
    pub fn in_pieces(self, event_bytes: u64) -> u64 {
        self.with_copies(event_bytes.max(PIECE_BYTES)).min(self.large_bytes_max())
    }

    /// The `--memory`, in MiB, with which an event of so many bytes may be held.
    fn mib_for(self, event_bytes: u64) -> u64 {
        let bytes = event_bytes.saturating_mul(self.parts()).saturating_add(self.footprint.base_bytes);
        bytes.saturating_sub(BESIDE_BYTES).div_ceil(1 << 20).max(1)
    }

    /// What to do about an event, or what is held like one, of so many bytes.
    pub fn remedy(self, event_bytes: u64) -> String {
        format!(
            "everything before it is applied; run the same command again with --memory {}M or more (it is {} MiB now): an event, and the copies that \
             applying makes of it, are held at once. If no transaction of the source can be so large, the log is damaged or forged there",
            self.mib_for(event_bytes),
            self.memory_bytes >> 20,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a message says is enough, is enough.
    #[test]
    fn an_event_fits_into_the_memory_that_is_named_for_it() {
        for event_copies in [1, 4] {
            let footprint = Footprint { base_bytes: 28 << 20, event_copies };
            for bytes in [1, 20 << 20, 64 << 20, (1 << 30) + 7] {
                let mib = EventMemory::new(64 << 20, footprint).mib_for(bytes);
                let max = |mib: u64| EventMemory::new(mib << 20, footprint).event_bytes_max();
                assert!(max(mib) >= bytes, "{bytes}: {mib}");
                assert!(mib == 1 || max(mib - 1) < bytes, "{bytes}: {mib}");
            }
        }
    }
}
