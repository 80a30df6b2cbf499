//! What the process ends with, for scripts and for systemd.
//!
//! Two kinds of failure are told apart. [`EXIT_TRY_AGAIN`]: a server or the network is away, or a disk is full, so the same command may succeed later. [`EXIT_FAILED`]: a person has to
//! change something first. A systemd unit restarts after the one and not after the other:
//!
//! ```text
//! Restart=on-failure
//! RestartSec=10
//! RestartPreventExitStatus=1 2 3 4
//! ```
//!
//! A signal and a panic (101) are in neither list, so systemd restarts after them.

use engine::failure::FailureKind;

/// The channel went on to where it was told to.
pub const EXIT_OK: u8 = 0;
/// A failure that needs a person: the message says what happened, where, and what to do.
pub const EXIT_FAILED: u8 = 1;
/// A server or the network is away, or this machine has no disk, files or memory left ([`binlog::errno`]): the same command may succeed later.
/// `EX_TEMPFAIL` of sysexits.h.
pub const EXIT_TRY_AGAIN: u8 = 75;
/// `rescue`: stopped before the hand-back; the replica does not replicate by itself. `switch`: the source is read-only.
pub const EXIT_UNFINISHED: u8 = 3;
/// The command line was not understood (clap's own code).
pub const EXIT_USAGE: u8 = 2;
/// A part of the input could not be read; the output says which.
pub const EXIT_PARTIAL: u8 = 4;

/// `inspect --find`: everything was read, and nothing was found.
pub const EXIT_NOT_FOUND: u8 = 5;

/// `compare`, `switch --compare`: rows differ.
pub const EXIT_DIFFERENT: u8 = 5;

/// After these the same command fails again until a person has changed something: `RestartPreventExitStatus` of the units, and `heddle run`.
pub const NEEDS_PERSON: [u8; 4] = [EXIT_FAILED, EXIT_USAGE, EXIT_UNFINISHED, EXIT_PARTIAL];

/// What clap lets pass and is wrong all the same, whatever the servers and files are.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Of an error that nobody handled.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if error.chain().any(|cause| cause.is::<Usage>() || cause.is::<wire::UrlError>()) {
        return EXIT_USAGE;
    }
    of_failure(channel::errors::kind(error))
}

/// Of a channel that has stopped with a failure of this kind.
pub fn of_failure(kind: FailureKind) -> u8 {
    match kind {
        FailureKind::ConnectionLost
        | FailureKind::Exhausted
        | FailureKind::Maintenance
        | FailureKind::Conflict
        | FailureKind::Stopped => EXIT_TRY_AGAIN,
        FailureKind::Divergence | FailureKind::Refused | FailureKind::Fenced => EXIT_FAILED,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use engine::failure::Failure;

    use super::*;

    #[test]
    fn the_systemd_units_restart_where_trying_again_can_help() {
        let units = [
            include_str!("../../../../packaging/heddle@.service"),
            include_str!("../../../../packaging/heddle.service"),
            include_str!("../../../../packaging/heddle-serve@.service"),
        ];
        for unit in units {
            let codes = unit.lines().find_map(|line| line.strip_prefix("RestartPreventExitStatus=")).unwrap();
            let codes: Vec<u8> = codes.split(' ').map(|code| code.parse().unwrap()).collect();
            assert_eq!(codes, NEEDS_PERSON);
            assert!(!codes.contains(&EXIT_TRY_AGAIN));
        }
    }

    #[test]
    fn a_command_line_that_was_not_understood_has_its_own_exit_code() {
        let url = || wire::ConnectOptions::from_url("mysql://host:notaport").context("the target's URL");
        assert_eq!(exit_code(&url().unwrap_err()), EXIT_USAGE);
        assert_eq!(exit_code(&anyhow::Error::new(Usage("--channel".to_owned()))), EXIT_USAGE);
        assert_eq!(exit_code(&anyhow::anyhow!("no answer").context("target")), EXIT_FAILED);
    }

    #[test]
    fn who_starts_it_again_knows_whether_that_is_of_use() {
        let failure = |kind| exit_code(&anyhow::Error::new(Failure::new(kind, "x")).context("target"));
        for (kind, code) in [
            (FailureKind::ConnectionLost, EXIT_TRY_AGAIN),
            (FailureKind::Exhausted, EXIT_TRY_AGAIN),
            (FailureKind::Maintenance, EXIT_TRY_AGAIN),
            (FailureKind::Conflict, EXIT_TRY_AGAIN),
            (FailureKind::Stopped, EXIT_TRY_AGAIN),
            (FailureKind::Divergence, EXIT_FAILED),
            (FailureKind::Refused, EXIT_FAILED),
            (FailureKind::Fenced, EXIT_FAILED),
        ] {
            assert_eq!(failure(kind), code, "{kind:?}");
        }
        let source = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let away = wire::Error::Connect { to: "db:3306".to_owned(), source };
        assert_eq!(exit_code(&anyhow::Error::new(away).context("source")), EXIT_TRY_AGAIN);
        // A full disk, too many open files, a file system that is read-only; no right to write.
        for (number, code) in
            [(28, EXIT_TRY_AGAIN), (24, EXIT_TRY_AGAIN), (30, EXIT_TRY_AGAIN), (13, EXIT_FAILED), (2, EXIT_FAILED)]
        {
            let error = anyhow::Error::new(std::io::Error::from_raw_os_error(number)).context("--config a.toml");
            assert_eq!(exit_code(&error), code, "{error:#}");
        }
        let denied = wire::Error::Auth { code: 1045, message: String::new(), hint: String::new() };
        assert_eq!(exit_code(&anyhow::Error::new(denied).context("source")), EXIT_FAILED);
    }
}
