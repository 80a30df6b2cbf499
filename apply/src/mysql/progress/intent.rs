//! The intent: which statement that commits by itself is under way. Its text on the target is a format.

use engine::failure::{Failure, FailureKind};

/// Which statement of which transaction was about to be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    pub seq: u64,
    pub item: usize,
    pub fingerprint: u64,
}

impl Intent {
    /// Says that a transaction has failed and left a part of itself: it must not be taken for one that is executed.
    pub fn partly(seq: u64) -> Self {
        Self { seq, item: usize::MAX, fingerprint: 0 }
    }

    pub fn is_partly(&self) -> bool {
        self.item == usize::MAX
    }

    pub fn to_text(&self) -> String {
        format!("seq={} item={} fingerprint={:016x}", self.seq, self.item, self.fingerprint)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split(' ').map(|field| field.split_once('=').map(|(_, value)| value));
        let mut next = || fields.next().flatten();
        Some(Self {
            seq: next()?.parse().ok()?,
            item: next()?.parse().ok()?,
            fingerprint: u64::from_str_radix(next()?, 16).ok()?,
        })
    }

    /// As the target has it. With anything else than an intent the channel can not go on.
    pub fn required(text: &str) -> Result<Self, Failure> {
        Self::parse(text).ok_or_else(|| {
            Failure::new(FailureKind::Refused, format!("heddle.progress: intent {text:?} is not understood"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intent_round_trip() {
        let intent = Intent { seq: 7, item: 2, fingerprint: 0xabc };
        assert_eq!(Intent::parse(&intent.to_text()), Some(intent));
        assert_eq!(Intent::parse("nonsense"), None);
        let partly = Intent::partly(8);
        assert!(Intent::parse(&partly.to_text()).is_some_and(|intent| intent.is_partly()));
    }
}
