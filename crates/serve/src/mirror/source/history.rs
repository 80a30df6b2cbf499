//! Checks whether a source still has the history of its mirror. It asks, and changes nothing. Another history is never added to the mirror.
//!
//! | The source | Is noticed by |
//! |---|---|
//! | was reset | its list of files; the beginning of the file of the same name; the GTIDs of the next file |
//! | was restored from an older copy | the same, and the last event |
//! | has lost the end of what it had sent | the length of the file; the last event |
//! | has purged what comes next | its list of files |

use std::sync::Arc;

use binlog::{FIRST_OFFSET, LogPosition};
use engine::failure::{Failure, FailureKind};

use super::connection::{self, Attachment, NextStep, Source, StreamStart, Upstream};
use crate::mirror::disk::last_file::LastFile;
use crate::mirror::stream::{Arrival, EventReceiver, GtidBreak, Refusal};

const ANOTHER_HISTORY: &str = "the mirror stays as it is: it may be the only copy of what the source has lost. See which of the two histories is right; mirror the source \
                               as it is now into a new --dir";

/// The source still has the mirror's last file, up to where the mirror ends.
pub fn check_lists(last: &LastFile, state: &Source) -> Result<(), Failure> {
    let end = &last.end;
    if let Some(log) = state.logs.iter().find(|log| log.file == end.file) {
        if log.offset < end.offset {
            return Err(another_history(&format!(
                "the source's file {} is {} bytes long, and the mirror has {}: the source has lost the end of its log (sync_binlog=1 keeps it), was reset, or restored",
                end.file, log.offset, end.offset
            )));
        }
        return Ok(());
    }
    let oldest = state.logs.first().map(|log| log.file.to_string()).unwrap_or_default();
    if state.logs.first().is_some_and(|log| *log > *end) {
        return Err(refused(format!(
            "the source has purged the log behind {end}: its oldest file is {oldest}, and the part in between is in no file any more"
        ))
        .remedy("keep the mirror as it is; mirror from the source's oldest file on into a new --dir; keep more files on the source"));
    }
    Err(another_history(&format!(
        "the source does not have the mirror's last file {}: its logs were reset, or it was restored",
        end.file
    )))
}

/// The first events of the last file tell it from another one of the same name: of a source that was reset, or restored.
pub fn compare_head(upstream: &Upstream, identity: &str, last: &LastFile) -> Result<(), Failure> {
    let connection = connection::connect(&upstream.options)?;
    let at = LogPosition::new(Arc::clone(&last.end.file), FIRST_OFFSET);
    let from = StreamStart {
        at: at.clone(),
        server_id: upstream.server_id,
        attaching: Attachment::default(),
        at_end: NextStep::End,
    };
    let mut stream = connection::stream(connection, &from, identity)?;
    let mut arriving = EventReceiver::default();
    let mut head = last.head.iter();
    while head.len() > 0 {
        let packet = stream.next().map_err(|error| connection::failed("reading the beginning of its log", &error))?;
        match arriving.take(packet.bytes) {
            Ok(Arrival::LeaveOut | Arrival::Begin { .. }) => {}
            Ok(Arrival::Store(bytes)) if head.next() == Some(&bytes) => {}
            Ok(Arrival::Store(_)) | Err(_) => {
                return Err(another_history(&format!("the source's file {} does not begin as the mirror's", at.file)));
            }
        }
    }
    Ok(())
}

/// What cannot be mirrored any further.
pub fn refused_event(refusal: &Refusal) -> Failure {
    let message = refusal.to_string();
    match refusal {
        Refusal::Gtids { broken: GtidBreak::Lost(_) | GtidBreak::Twice(_), .. } | Refusal::OtherFile { .. } => another_history(&message),
        Refusal::Gtids { broken: GtidBreak::Missing(_), .. } => refused(message).remedy(
            "the source's own files lack these transactions. The mirror stays as it is, up to there; mirror the source as it is now into a new --dir",
        ),
        _ => refused(message).remedy(
            "nothing of it is in the mirror. Look at the source's file there (mysqlbinlog --verify-binlog-checksum); if it is whole, please report this",
        ),
    }
}

pub fn another_history(what: &str) -> Failure {
    refused(what).remedy(ANOTHER_HISTORY)
}

fn refused(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Refused, message)
}
