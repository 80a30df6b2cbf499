//! XA branches that are prepared on the source as a round begins: its reads do not see their rows, and its log may not have them. So their ends are waited for.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use apply::mysql::server::sql::xid_text;
use apply::mysql::shown_branches;
use engine::failure::{Failure, FailureKind};
use engine::sql::Xid;
use output::numbers::counted;
use wire::Connection;

use super::ends::CopyRequest;

const POLL: Duration = Duration::from_millis(50);
/// Applications end them within milliseconds. One that nobody ends has lost its application.
const PATIENCE: Duration = Duration::from_secs(60);
const SAID_AFTER: Duration = Duration::from_secs(2);
const NAMED_MAX: usize = 5;

/// Whether the source shows them to its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchVisibility {
    Yes,
    No,
}

impl BranchVisibility {
    /// The log of a round has branches whose ends have to be waited for.
    ///
    /// # Errors
    /// They are not shown.
    pub fn require(self) -> Result<(), Failure> {
        match self {
            Self::Yes => Ok(()),
            Self::No => Err(Failure::new(
                FailureKind::Refused,
                "XA transactions are prepared on the source while it is copied, and this account is not shown which (XA RECOVER)",
            )
            .remedy("GRANT XA_RECOVER_ADMIN ON *.* to the account on the source; then the same command again")),
        }
    }
}

/// Waits until those have ended that are prepared now.
///
/// # Errors
/// One of them does not end.
pub(super) fn wait_for_ends(source: &mut Connection, request: &CopyRequest<'_>) -> Result<BranchVisibility, Failure> {
    let Some(mut open) = prepared(source)? else { return Ok(BranchVisibility::No) };
    let since = Instant::now();
    let mut is_said = false;
    while !open.is_empty() {
        if request.stop.load(Ordering::Relaxed) {
            return Err(Failure::new(FailureKind::Stopped, "the copy was asked to end"));
        }
        if since.elapsed() > PATIENCE {
            return Err(Failure::new(FailureKind::Refused, format!("source: {}", named(&open)))
                .remedy("end them (XA RECOVER, XA COMMIT or XA ROLLBACK), then the same command again: rows of prepared transactions can not be copied"));
        }
        if !is_said && since.elapsed() > SAID_AFTER {
            tracing::warn!("copy: waits for the source: {}", named(&open));
            is_said = true;
        }
        thread::sleep(POLL);
        // Shown no longer: nobody knows whether they have ended.
        let Some(still) = prepared(source)? else { return Ok(BranchVisibility::No) };
        open.retain(|xid| still.contains(xid));
    }
    Ok(BranchVisibility::Yes)
}

/// For a dry run: what a copy would wait for.
pub(super) fn warning(source: &mut Connection) -> Result<Option<String>, Failure> {
    let open = prepared(source)?.unwrap_or_default();
    Ok((!open.is_empty()).then(|| format!("source: {}: the copy waits until they have ended", named(&open))))
}

fn named(open: &[Xid]) -> String {
    let names: Vec<String> = open.iter().take(NAMED_MAX).map(xid_text).collect();
    let more = if open.len() > NAMED_MAX { ", …" } else { "" };
    format!("{} prepared: {}{more}", counted(open.len() as u64, "XA transaction"), names.join(", "))
}

/// `None`: the account is not shown them.
fn prepared(source: &mut Connection) -> Result<Option<Vec<Xid>>, Failure> {
    shown_branches(source).map_err(|failure| Failure { message: format!("source: {}", failure.message), ..failure })
}
