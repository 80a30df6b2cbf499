//! Which errors of the operating system pass by themselves: the table by which every crate tells "not now" from what a person has to change. It makes no call of the system.
//!
//! ```text
//! a disk or quota that is full, files or memory of which there are no more,      the same command may succeed later
//! a file system that is read-only, stale, or away
//! no such file, no permission, a disk that can not read what it wrote            a person has to change something
//! ```

use std::io::{Error, ErrorKind};

/// `ENFILE` and `EMFILE`: the machine's, or the process', files are all in use.
const TOO_MANY_FILES: [i32; 2] = [23, 24];
/// `ENOLCK` of Linux: a lock of a network file system.
const NO_LOCKS: i32 = 37;

/// The disk, or what a user may have of it, is full.
pub fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// The same call may succeed later without a change by a person.
pub fn is_passing(error: &Error) -> bool {
    if is_full(error) || error.kind() == ErrorKind::OutOfMemory {
        return true;
    }
    // The other kinds are also what programs make up.
    let Some(number) = error.raw_os_error() else { return false };
    let is_passing_kind = matches!(
        error.kind(),
        ErrorKind::ReadOnlyFilesystem
            | ErrorKind::StaleNetworkFileHandle
            | ErrorKind::ResourceBusy
            // `EAGAIN` of what does not block: a thread or a process that can not be started.
            | ErrorKind::WouldBlock
            // Of a file system that is on another machine.
            | ErrorKind::TimedOut
            | ErrorKind::NotConnected
            | ErrorKind::NetworkDown
            | ErrorKind::NetworkUnreachable
            | ErrorKind::HostUnreachable
    );
    is_passing_kind || number == NO_LOCKS || TOO_MANY_FILES.contains(&number)
}

/// What to do about an error that passes, or that does not.
pub fn remedy(error: &Error) -> &'static str {
    match error.raw_os_error() {
        _ if is_full(error) => "free some space, then run the same command again",
        Some(number) if TOO_MANY_FILES.contains(&number) => {
            "raise the limit of open files (LimitNOFILE of the unit, ulimit -n), then run the same command again"
        }
        _ if error.kind() == ErrorKind::OutOfMemory => "free some memory, then run the same command again",
        _ if is_passing(error) => {
            "see whether the file system is mounted, and for writing; then run the same command again"
        }
        _ => "see the message; when the cause is gone, run the same command again",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself() {
        // ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM, EROFS, ESTALE, EAGAIN, EBUSY, ENOLCK, ETIMEDOUT, ENOTCONN, EHOSTUNREACH.
        for number in [28, 122, 24, 23, 12, 30, 116, 11, 16, 37, 110, 107, 113] {
            let error = Error::from_raw_os_error(number);
            assert!(is_passing(&error), "{error}");
            assert!(!remedy(&error).contains("see the message"), "{error}");
        }
        // EIO, ENOENT, EACCES, EPERM, ENOTDIR, EINVAL, EFBIG.
        for number in [5, 2, 13, 1, 20, 22, 27] {
            let error = Error::from_raw_os_error(number);
            assert!(!is_passing(&error), "{error}");
        }
        assert_eq!([28, 122, 30].map(|number| is_full(&Error::from_raw_os_error(number))), [true, true, false]);
    }

    #[test]
    fn what_a_program_has_made_up_is_taken_by_its_kind_where_only_a_system_says_it() {
        let passes = |kind: ErrorKind| is_passing(&Error::new(kind, "made up"));
        assert!(passes(ErrorKind::StorageFull) && passes(ErrorKind::OutOfMemory));
        assert!(!passes(ErrorKind::TimedOut) && !passes(ErrorKind::ReadOnlyFilesystem) && !passes(ErrorKind::Other));
    }
}
