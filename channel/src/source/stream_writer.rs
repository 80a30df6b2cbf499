//! Writes the events of a source's stream to the relay log, under the name of the file that they come from. Never decides when they become durable.

use binlog::{Event, Kind};
use engine::failure::{Failure, FailureKind};
use relay::RelayWriter;

/// Knows the file that a stream is in.
#[derive(Debug, Default)]
pub struct StreamWriter {
    /// Empty until the stream has said it.
    file: Option<String>,
}

impl StreamWriter {
    /// In the middle of a file.
    pub fn in_file(file: &str) -> Self {
        Self { file: Some(file.to_owned()) }
    }

    /// The source's name of the file that the stream is in.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    pub fn append(&mut self, writer: &mut RelayWriter, event: &Event) -> Result<(), Failure> {
        let refused = |what: String| Failure::new(FailureKind::Refused, what);
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
    Failure::new(FailureKind::Refused, format!("relay log: {error}"))
        .remedy("free the disk or repair it, then run the same command again; what is on the target stays as it is")
}
