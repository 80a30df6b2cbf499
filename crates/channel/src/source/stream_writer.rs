//! Writes the events of a source's stream to the relay log, under the name of the file that they come from. Never decides when they become durable.

use binlog::{Event, Kind};
use engine::failure::{Failure, FailureKind};
use relay::RelayWriter;

/// Knows the file that a stream is in.
#[derive(Debug, Default)]
pub struct StreamWriter {
    /// Empty until the stream has said it.
    file: Option<String>,
    /// Where the last event ends.
    end: u32,
}

impl StreamWriter {
    /// In the middle of a file.
    pub fn in_file(file: &str) -> Self {
        Self { file: Some(file.to_owned()), end: 0 }
    }

    /// The source's name of the file that the stream is in.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// The place of what comes next, for a message.
    pub fn place(&self) -> String {
        format!("behind {}:{}", self.file().unwrap_or("the beginning of the stream"), self.end)
    }

    pub fn append(&mut self, writer: &mut RelayWriter, event: &Event) -> Result<(), Failure> {
        let refused = |what: String| Failure::new(FailureKind::Refused, what);
        if event.header().log_pos > 0 {
            self.end = event.header().log_pos;
        }
        match event.kind() {
            Kind::HEARTBEAT | Kind::HEARTBEAT_V2 => return Ok(()),
            Kind::ROTATE => {
                let rotate = binlog::rotate::Rotate::decode_any(event).map_err(|error| refused(error.to_string()))?;
                if !is_made_up(event)
                    && let Some(file) = self.file.as_deref()
                {
                    writer.append(file, event).map_err(|error| relay_failure(&error))?;
                }
                self.file = Some(rotate.file);
                return Ok(());
            }
            _ => {}
        }
        let Some(file) = self.file.as_deref() else {
            return Err(refused(format!(
                "the source sent a {} event before the name of its file",
                event.kind().name()
            )));
        };
        writer.append(file, event).map_err(|error| relay_failure(&error))
    }
}

/// Whether a ROTATE is artificial, so not in the source's log: a stream begins with such a one.
pub fn is_made_up(rotate: &Event) -> bool {
    rotate.header().log_pos == 0 || rotate.header().timestamp == 0
}

pub fn relay_failure(error: &relay::Error) -> Failure {
    use relay::Error as E;
    let remedy = match error {
        E::WentBack { .. } => {
            "the source's log goes on before what was received of it: it was restored from a copy, its logs were reset, or another server answers at its address \
             now. If it is the right one, load the target anew from a copy of it, and begin a new --channel where that was made"
        }
        E::BadEvent { .. } | E::Corrupt { .. } => {
            "what is on the target stays as it is; look at the source's log there (mysqlbinlog --verify-binlog-checksum), and if it is whole, please report this"
        }
        E::Locked { .. } => "end the other process, or give this one another --relay-dir",
        E::OtherSource { .. } => "give another --relay-dir, or the source that the log is of",
        E::OtherVersion { .. } | E::Damaged { .. } | E::MissingSegment { .. } => {
            "as the message says; what is on the target stays as it is"
        }
        E::Io { .. } => error.remedy().unwrap_or_default(),
        _ => "free the disk or repair it, then run the same command again; what is on the target stays as it is",
    };
    Failure::new(of_log(error), format!("relay log: {error}")).remedy(remedy)
}

/// Of an error of this machine's own files.
pub fn of_log(error: &relay::Error) -> FailureKind {
    if error.may_pass() { FailureKind::Exhausted } else { FailureKind::Refused }
}

#[cfg(test)]
mod remedies {
    use super::*;
    use binlog::LogPosition;

    /// A source that has gone back has nothing to do with a disk.
    #[test]
    fn what_to_do_fits_the_error() {
        let (last, found) = (LogPosition::new("b.000002", 900), LogPosition::new("b.000001", 4));
        let back = relay_failure(&relay::Error::WentBack { last: last.clone(), found: found.clone() });
        assert!(back.remedy.contains("load the target anew") && !back.remedy.contains("disk"), "{}", back.remedy);
        let bad = relay_failure(&relay::Error::BadEvent { position: found, reason: "no length".to_owned() });
        assert!(!bad.remedy.contains("disk"), "{}", bad.remedy);
        let full = relay_failure(&relay::Error::DiskFull { path: "r/heddle-relay.000000001".into() });
        assert!(full.remedy.contains("free the disk"), "{}", full.remedy);
        assert_eq!((full.kind, bad.kind), (FailureKind::Exhausted, FailureKind::Refused));
        let of_system = |number| {
            let source = std::io::Error::from_raw_os_error(number);
            relay_failure(&relay::Error::Io { action: "sync", path: "r".into(), source }).kind
        };
        // ENOSPC, EMFILE, EROFS, EIO, EACCES.
        let kinds = [28, 24, 30, 5, 13].map(of_system);
        let passing = kinds.map(|kind| kind == FailureKind::Exhausted);
        assert_eq!(passing, [true, true, true, false, false]);
    }
}
