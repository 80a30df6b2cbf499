//! The intent: which statements that commit by themselves are under way. Its text on the target is a format.

use engine::failure::{Failure, FailureKind};

use super::tables::SCHEMA;

/// Which statement of which transaction was about to be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    pub seq: u64,
    pub item: usize,
    pub fingerprint: u64,
    pub look: FingerprintScope,
}

/// What is in a fingerprint of tables' definitions. One that was taken before is compared with one taken in the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FingerprintScope {
    /// As earlier versions took it: all that the server says of the tables.
    All,
    #[default]
    Needed,
}

impl Intent {
    /// Says that a transaction has failed and left a part of itself: it must not be taken for one that is executed.
    pub fn partly(seq: u64) -> Self {
        Self { seq, item: usize::MAX, fingerprint: 0, look: FingerprintScope::default() }
    }

    pub fn is_partly(&self) -> bool {
        self.item == usize::MAX
    }

    pub fn to_text(&self) -> String {
        let look = match self.look {
            FingerprintScope::All => "",
            FingerprintScope::Needed => " look=needed",
        };
        format!("seq={} item={} fingerprint={:016x}{look}", self.seq, self.item, self.fingerprint)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split(' ').map(|field| field.split_once('=').map(|(_, value)| value));
        let mut next = || fields.next().flatten();
        Some(Self {
            seq: next()?.parse().ok()?,
            item: next()?.parse().ok()?,
            fingerprint: u64::from_str_radix(next()?, 16).ok()?,
            look: match next() {
                None => FingerprintScope::All,
                Some("needed") => FingerprintScope::Needed,
                Some(_) => return None,
            },
        })
    }
}

/// Several of them, each of a transaction of its own, in the order of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intents(Vec<Intent>);

/// Between two of them.
const NEXT: &str = "; ";

impl Intents {
    pub fn new(of: Vec<Intent>) -> Self {
        Self(of)
    }

    /// The last comes first: its number says up to where the progress has to come before the record goes ([`Statements::advance`]).
    ///
    /// [`Statements::advance`]: super::statements::Statements::advance
    pub fn to_text(&self) -> String {
        let texts: Vec<String> = self.0.iter().rev().map(Intent::to_text).collect();
        texts.join(NEXT)
    }

    /// As the target has it. With anything else the channel can not go on.
    pub fn required(text: &str) -> Result<Self, Failure> {
        let mut intents: Option<Vec<Intent>> = text.split(NEXT).map(Intent::parse).collect();
        intents.iter_mut().for_each(|intents| intents.reverse());
        intents.map(Self).ok_or_else(|| {
            Failure::new(FailureKind::Refused, format!("{SCHEMA}.progress: intent {text:?} is not understood"))
        })
    }

    /// The one that says that a part of its transaction was executed.
    pub fn partly(&self) -> Option<&Intent> {
        self.0.iter().find(|intent| intent.is_partly())
    }

    /// In the place of the one of the same transaction, if there is one.
    pub fn put(&mut self, intent: Intent) {
        self.0.retain(|known| known.seq != intent.seq);
        let at = self.0.partition_point(|known| known.seq < intent.seq);
        self.0.insert(at, intent);
    }

    /// The one of this transaction.
    pub fn take(&mut self, seq: u64) -> Option<Intent> {
        let at = self.0.iter().position(|intent| intent.seq == seq)?;
        Some(self.0.remove(at))
    }

    pub fn of(&self, seq: u64) -> Option<&Intent> {
        self.0.iter().find(|intent| intent.seq == seq)
    }

    /// And those of later transactions than its own.
    pub fn with_later(mut self, others: &Intents) -> Self {
        let last = self.0.last().map_or(0, |intent| intent.seq);
        self.0.extend(others.0.iter().filter(|intent| intent.seq > last).cloned());
        self
    }

    /// Those of transactions after this one.
    pub fn after(&self, seq: u64) -> Self {
        Self(self.0.iter().filter(|intent| intent.seq > seq).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intent_round_trip() {
        let intent = Intent { seq: 7, item: 2, fingerprint: 0xabc, look: FingerprintScope::Needed };
        assert_eq!(Intent::parse(&intent.to_text()), Some(intent.clone()));
        assert_eq!(Intent::parse("nonsense"), None);
        assert_eq!(Intent::parse("seq=7 item=2 fingerprint=abc look=other"), None);
        let earlier = Intent { look: FingerprintScope::All, ..intent.clone() };
        assert_eq!(earlier.to_text(), "seq=7 item=2 fingerprint=0000000000000abc");
        assert_eq!(Intent::parse(&earlier.to_text()), Some(earlier));
        assert_eq!(Intents::required(&intent.to_text()).unwrap(), Intents::new(vec![intent]));
        let partly = Intent::partly(8);
        assert!(Intent::parse(&partly.to_text()).is_some_and(|intent| intent.is_partly()));
    }

    #[test]
    fn several_intents() {
        let of = |seq| Intent { seq, item: 0, fingerprint: seq * 3, look: FingerprintScope::Needed };
        let mut several = Intents::new(vec![of(7), of(8), of(9)]);
        let text = several.to_text();
        assert!(text.starts_with("seq=9 item=0 fingerprint="), "{text}");
        assert_eq!(Intents::required(&text).unwrap(), several);
        assert!(Intents::required("seq=9 item=0 fingerprint=1; nonsense").is_err() && Intents::required("").is_err());
        assert_eq!(several.take(8), Some(of(8)));
        assert_eq!(several.take(8), None);
        assert_eq!(several.after(7), Intents::new(vec![of(9)]));
        several.put(of(8));
        several.put(Intent { item: 1, ..of(9) });
        assert_eq!(several, Intents::new(vec![of(7), of(8), Intent { item: 1, ..of(9) }]));
        several.take(8);
        several.put(of(9));
        let more = Intents::new(vec![of(7), of(8)]).with_later(&several);
        assert_eq!(more, Intents::new(vec![of(7), of(8), of(9)]));
    }
}
