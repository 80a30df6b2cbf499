//! Which failure is being tried again: for the log, the progress line and `heddle status`. Decides nothing; what is tried again, and how often, is
//! the scheduler's.

use std::collections::BTreeMap;
use std::time::Instant;

use engine::failure::{Directive, Failure, FailureKind};
use engine::group::{Group, GroupId};

use crate::flow::measures::GroupRetry;

/// A conflict is ordinary, and mostly gone when its group is tried again: it is shown from this failure on, and logged from the other.
const CONFLICTS_SHOWN: u32 = 3;
const CONFLICTS_LOGGED: u32 = 10;

#[derive(Debug, Default)]
pub struct RetriedGroups {
    /// Groups that have failed and are not committed yet.
    failed: BTreeMap<GroupId, FailedGroup>,
}

#[derive(Debug)]
struct FailedGroup {
    retried: GroupRetry,
    /// The message that was logged last.
    logged: Option<String>,
}

impl RetriedGroups {
    pub fn failed(&mut self, id: GroupId, group: Option<&Group>, failure: &Failure) {
        match failure.kind.directive() {
            // It runs again to find the transaction that fails, and mostly fails again: the channel's last words say it then.
            Directive::Isolate => {
                tracing::debug!("looking for the transaction that fails: {}", failure.message);
                return;
            }
            // It is not tried again: likewise.
            Directive::Stop => return,
            Directive::RetryAsHead | Directive::Wait | Directive::Reconnect => {}
        }
        let known = self.failed.entry(id).or_insert_with(|| FailedGroup {
            retried: GroupRetry {
                message: String::new(),
                code: None,
                tries: 0,
                since: Instant::now(),
                kind: FailureKind::Conflict,
            },
            logged: None,
        });
        known.retried.tries += 1;
        known.retried.message.clone_from(&failure.message);
        (known.retried.code, known.retried.kind) = (failure.code, failure.kind);
        if !is_ordinary(&known.retried, CONFLICTS_LOGGED) && known.logged.as_ref() != Some(&failure.message) {
            known.logged = Some(failure.message.clone());
            log(group, &known.retried, failure);
        }
    }

    /// True: it had failed before.
    pub fn committed(&mut self, id: GroupId) -> bool {
        let Some(FailedGroup { retried, logged }) = self.failed.remove(&id) else { return false };
        if let Some(message) = logged {
            let seconds = retried.since.elapsed().as_secs_f64();
            tracing::info!(
                "the target takes changes again, after {seconds:.1} s and {} tries: {message}",
                retried.tries
            );
        }
        true
    }

    /// Of the first group that is worth showing.
    pub fn shown(&self) -> Option<&GroupRetry> {
        self.failed.values().map(|known| &known.retried).find(|retried| !is_ordinary(retried, CONFLICTS_SHOWN))
    }
}

/// A conflict before its failure number `from`.
fn is_ordinary(retried: &GroupRetry, from: u32) -> bool {
    retried.kind == FailureKind::Conflict && retried.tries < from
}

fn log(group: Option<&Group>, retried: &GroupRetry, failure: &Failure) {
    let place = group.and_then(|group| group.transactions.first()).map(|first| first.place()).unwrap_or_default();
    let more = group.map_or(0, |group| group.transactions.len().saturating_sub(1));
    let GroupRetry { message, tries, .. } = retried;
    let group = if more == 0 { String::new() } else { format!(" and {more} more of its group") };
    let mut shown = Failure { message: String::new(), place: format!("{place}{group}"), ..failure.clone() };
    shown.message = match failure.kind {
        FailureKind::Maintenance => format!("the target takes no changes, waiting: {message}"),
        _ => format!("the target rejected a transaction, retrying ({tries}): {message}"),
    };
    tracing::warn!("{shown}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_group_that_is_worth_it_is_shown() {
        let mut groups = RetriedGroups::default();
        let conflict = Failure::new(FailureKind::Conflict, "deadlock");
        let full = Failure::new(FailureKind::Exhausted, "the table is full").code(1114);
        groups.failed(GroupId(0), None, &Failure::new(FailureKind::Divergence, "there already"));
        groups.failed(GroupId(0), None, &Failure::new(FailureKind::Fenced, "taken over"));
        let shown = |groups: &RetriedGroups| {
            groups.shown().map(|retried| (retried.message.clone(), retried.code, retried.tries))
        };
        groups.failed(GroupId(1), None, &conflict);
        groups.failed(GroupId(1), None, &conflict);
        assert_eq!(shown(&groups), None);
        groups.failed(GroupId(2), None, &full);
        assert_eq!(shown(&groups), Some(("the table is full".to_owned(), Some(1114), 1)));
        groups.failed(GroupId(1), None, &conflict);
        assert_eq!(shown(&groups), Some(("deadlock".to_owned(), None, 3)));
        assert!(groups.committed(GroupId(1)));
        groups.failed(GroupId(2), None, &full);
        assert_eq!(shown(&groups), Some(("the table is full".to_owned(), Some(1114), 2)));
        assert!(groups.committed(GroupId(2)) && !groups.committed(GroupId(2)));
        assert_eq!(shown(&groups), None);
    }
}
