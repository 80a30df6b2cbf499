//! HEARTBEAT and HEARTBEAT_V2: the source is alive, and how far it has sent. Never in a file.

use crate::corruption::Corruption;
use crate::event::{Event, Flavour};
use crate::format_description::FormatDescription;
use crate::kind::Kind;

/// How far the source has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// The log being sent.
    pub file: String,
    /// Offset in it, bytes. From the first version of the event, modulo 2³².
    pub position: u64,
}

impl Heartbeat {
    /// Decodes HEARTBEAT and HEARTBEAT_V2.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, format: &FormatDescription) -> Result<Heartbeat, Corruption> {
        let mut r = event.reader();
        match event.kind() {
            Kind::HEARTBEAT => {
                let mut position = event.header().log_pos.into();
                // MariaDB past 4 GiB: 0 in the header, the position in front of the name.
                if position == 0 && format.flavour == Flavour::MariaDb && r.remaining() > 8 {
                    position = r.u64("log position")?;
                }
                let name = r.rest();
                Ok(Heartbeat { file: r.utf8(name, "log file")?, position })
            }
            Kind::HEARTBEAT_V2 => {
                const END: u8 = 0;
                const FILE: u8 = 1;
                const POSITION: u8 = 2;
                let mut heartbeat = Heartbeat { file: String::new(), position: event.header().log_pos.into() };
                while !r.is_empty() {
                    let field = r.u8("heartbeat field")?;
                    if field == END {
                        break;
                    }
                    let base = r.offset();
                    let value = r.lenenc_bytes("heartbeat field")?;
                    match field {
                        FILE => heartbeat.file = r.utf8(value, "log file")?,
                        POSITION => {
                            heartbeat.position = crate::reader::Reader::new(value, base).lenenc("log position")?;
                        }
                        _ => {}
                    }
                }
                Ok(heartbeat)
            }
            _ => Err(event.wrong_kind("HEARTBEAT")),
        }
    }
}
