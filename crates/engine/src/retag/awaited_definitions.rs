//! Definitions that were read from the source while its log went on: they count where the log comes to the end of the reading, without the tables that DDL
//! changed beside it.

use binlog::LogPosition;

use crate::definition_change::DefinitionChange;
use crate::survey::Definitions;

/// DDL that is remembered between the request and the end of a reading.
const BESIDE_MAX: usize = 10_000;

/// What a server had at some moment between two places of its log.
#[derive(Clone, Debug)]
pub struct ReadDefinitions {
    pub definitions: Definitions,
    /// Where its log ended before the reading, and after it.
    pub from: LogPosition,
    pub to: LogPosition,
}

#[derive(Debug, Default)]
pub(super) struct AwaitedDefinitions {
    is_expected: bool,
    /// Each with its end.
    beside: Vec<(LogPosition, DefinitionChange)>,
    read: Option<ReadDefinitions>,
}

impl AwaitedDefinitions {
    pub fn expect(&mut self) {
        *self = Self { is_expected: true, ..Self::default() };
    }

    /// Without [`expect`](Self::expect) before it nothing is known of what went on beside.
    pub fn take(&mut self, read: ReadDefinitions) {
        if self.is_expected {
            self.read = Some(read);
        }
    }

    pub fn redefined(&mut self, end: &LogPosition, redefined: DefinitionChange) {
        if !self.is_expected {
            return;
        }
        if self.beside.len() >= BESIDE_MAX {
            self.beside.clear();
            self.beside.push((end.clone(), DefinitionChange::Everything));
        } else {
            self.beside.push((end.clone(), redefined));
        }
    }

    /// At a place between two transactions: what counts from there on, and what the log changed since its reading began.
    pub fn due(&mut self, at: &LogPosition) -> Option<(Definitions, Vec<DefinitionChange>)> {
        let read = self.read.take_if(|read| read.to <= *at)?;
        let beside = std::mem::take(self).beside;
        let since = beside.into_iter().filter(|(end, _)| *end > read.from).map(|(_, redefined)| redefined);
        Some((read.definitions, since.collect()))
    }
}
