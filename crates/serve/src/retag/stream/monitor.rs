//! The progress of a mirror's new tags, and the source's tables as the tagger knows them: for status, metrics and questions about the schema. It decides nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use binlog::LogPosition;
use engine::survey::Definitions;

use crate::retag::TagMeasures;

/// See the module.
#[derive(Debug, Default)]
pub struct TagMonitor(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The source's tables, as the last file begins with them or its DDL has left them.
    schema: Option<Arc<Definitions>>,
    /// Replicas can have the log up to this position; and how parallel it is.
    tagged: Option<(LogPosition, TagMeasures)>,
}

impl TagMonitor {
    /// The log has its tags up to this position.
    pub(super) fn set_tagged(&self, to: LogPosition, measured: &TagMeasures) {
        self.lock().tagged = Some((to, measured.clone()));
    }

    /// The source has these tables.
    pub(super) fn set_schema(&self, schema: Definitions) {
        self.lock().schema = Some(Arc::new(schema));
    }

    /// The source's tables; `None` before they are known.
    pub fn schema(&self) -> Option<Arc<Definitions>> {
        self.lock().schema.clone()
    }

    /// The position up to which the log has new tags, and its measures. `None` before the first tag.
    pub fn tagged(&self) -> Option<(LogPosition, TagMeasures)> {
        self.lock().tagged.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
