//! A copy from its begin to its end, in rounds: tables are read, then the log of that time is applied, overwriting. Tables of which that log says too little
//! (a definition has changed, a statement or a foreign key has changed rows) are read again in the next round, whose log begins where this one's ends.
//!
//! After the last round the target is as the source was at one place of its log. Foreign keys and programs are made, and the channel goes on from there, as
//! strict as any. Each step is recorded on the target before the next one begins, so that a copy goes on wherever it was ended.
//!
//! Tables that are added to a channel are copied beside it, as a channel of their own. When they are all there, the channel is held, and both are brought to one
//! place of the log: from there on it takes them, too.

mod begin;
mod branches;
mod channel;
mod ends;
mod finish;
mod read;

use std::sync::atomic::Ordering;

use apply::mysql::BinlogChoice;
use engine::failure::{Failure, FailureKind};

use self::ends::{Ends, take_lock};
use crate::bookkeeping::{CopyState, Phase};
use crate::place;
use crate::source::source_failure;
use crate::source::{self, Windows};

pub use begin::{Plan, plan};
pub use channel::{CopyChannel, LogPart, RunningChannel};
pub use ends::CopyRequest;

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyEnd {
    /// All is there: the channel goes on.
    Copied,
    /// The channel had begun before, and no copy of it is under way.
    NotNeeded,
}

/// Copies, or goes on with a copy.
///
/// # Errors
/// What is placed stays: the same call goes on.
pub fn copy(request: &CopyRequest<'_>, channel: &mut CopyChannel<'_, '_>) -> Result<CopyEnd, Failure> {
    let mut source = source::connect(request.source.rows()).map_err(source_failure)?;
    let mut control = place::connect(request.target)?;
    take_lock(&mut control, request.channel)?;
    let mut windows = Windows::new(&mut source, request.source.log_elsewhere()).map_err(source_failure)?;
    let identity = request.source.identity().map_err(source_failure)?;
    let mut state = match CopyState::read(&mut control, request.channel)? {
        Some(mut state) => {
            check_source(&state, &identity)?;
            check_log(&state, request)?;
            check_part(&state, request)?;
            state.take_over(&mut control)?;
            tracing::info!("copy: goes on in round {}", state.round);
            state
        }
        None if begin::channel_has_begun(&mut control, request.channel)? => return Ok(CopyEnd::NotNeeded),
        None => begin::begin(request, &mut source, &mut control, &mut windows, identity)?,
    };
    let mut ends =
        Ends { request, source, control, windows, names: request.part.names(), accounts: request.accounts() };
    channel.go_on()?;
    if state.phase == Phase::Finishing && request.part.already.is_some() {
        finish::undo(&mut ends, &mut state)?;
    }
    // Whoever has to grant something is told before the rows are copied.
    drop(ends.accounts()?);
    loop {
        if request.stop.load(Ordering::Relaxed) {
            return Err(Failure::new(FailureKind::Stopped, "the copy was asked to end"));
        }
        match state.phase {
            Phase::Reading => read::read(&mut ends, &mut state)?,
            Phase::Following => ends.follow(&mut state, channel)?,
            Phase::Finishing => {
                if finish::finish(&mut ends, &mut state, channel)? {
                    return Ok(CopyEnd::Copied);
                }
            }
        }
    }
}

/// What is in the target's log in part has neither its own GTIDs nor the source's.
fn check_log(state: &CopyState, request: &CopyRequest<'_>) -> Result<(), Failure> {
    if state.logged == request.target.logged {
        return Ok(());
    }
    let (begun, now) = match state.logged {
        BinlogChoice::No => ("with", "without"),
        BinlogChoice::Yes => ("without", "with"),
    };
    Err(Failure::new(
        FailureKind::Refused,
        format!("the copy was begun {begun} --gtids preserve, and this command is {now} it"),
    )
    .remedy("go on as it was begun; or heddle channel forget, remove the tables that are there, and begin anew"))
}

/// Tables that another selection takes were not read.
fn check_part(state: &CopyState, request: &CopyRequest<'_>) -> Result<(), Failure> {
    let asked = request.part.text();
    if state.selection == asked {
        return Ok(());
    }
    let named = |text: &str| if text.is_empty() { "all of the source".to_owned() } else { text.to_owned() };
    Err(Failure::new(
        FailureKind::Refused,
        format!("the copy was begun of {}, and this command takes {}", named(&state.selection), named(&asked)),
    )
    .remedy(format!(
        "go on with the selection that it was begun with; or heddle channel forget {}, remove the tables that it has made, and begin anew",
        request.channel
    )))
}

fn check_source(state: &CopyState, identity: &str) -> Result<(), Failure> {
    if state.source == identity {
        return Ok(());
    }
    Err(Failure::new(
        FailureKind::Refused,
        format!("the copy was begun from {}, and this source is {identity}", state.source),
    )
    .remedy("go on with the old source; or heddle channel forget, remove the tables that are there, and begin anew"))
}
