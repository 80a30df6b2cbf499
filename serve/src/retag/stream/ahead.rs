//! Which tables the log changes between two places: definitions that are read at the second may be others at the first.

use std::collections::BTreeSet;
use std::sync::Arc;

use binlog::{Event, FIRST_OFFSET, Kind, LogPosition};
use bytes::Bytes;
use engine::intake::Assembler;
use engine::redefined::Redefined;

use crate::inventory::{Inventory, LogFile, ReadError};

/// From the beginning of a file up to a place that is here. `go_on` says when to end early: the result does not matter then.
pub(super) fn ahead(
    inventory: &Inventory,
    from: &Arc<LogFile>,
    to: &LogPosition,
    bytes_max: u64,
    go_on: &dyn Fn() -> bool,
) -> Result<Vec<Redefined>, ReadError> {
    let mut names = BTreeSet::new();
    let mut assembler = Assembler::new(bytes_max);
    let mut next = Some(Arc::clone(from));
    while let Some(file) = next.filter(|file| LogPosition::new(Arc::clone(&file.name), FIRST_OFFSET) < *to) {
        let extent = inventory.extent(&file);
        let end = if *file.name == *to.file { extent.end.min(to.offset) } else { extent.end };
        let Some(start) = file.start(end)? else { break };
        let mut reader = file.reader(FIRST_OFFSET)?;
        let place = |offset| LogPosition::new(Arc::clone(&file.name), offset);
        while let Some(kind) = reader.peek(end)?.map(|peeked| peeked.header.kind) {
            if !go_on() {
                return Ok(Vec::new());
            }
            // Most of a log, and none of it defines a table.
            if kind.is_rows() || kind == Kind::TABLE_MAP {
                reader.skip()?;
                continue;
            }
            let at = reader.offset();
            let Some(bytes) = reader.next(end)? else { break };
            let (from, behind) = (place(at), place(at + bytes.len() as u64));
            let made = Event::parse(Bytes::copy_from_slice(bytes), start.format.checksum)
                .ok()
                .and_then(|event| assembler.event(&event, &start.format, &from, &behind).ok());
            // What can not be read may be anything.
            let Some(made) = made else { return Ok(vec![Redefined::Everything]) };
            match made.as_ref().map(Redefined::by) {
                None | Some(Redefined::Nothing) => {}
                Some(Redefined::Everything) => return Ok(vec![Redefined::Everything]),
                Some(Redefined::Tables { names: more, .. }) => names.extend(more),
            }
        }
        next = inventory.next_after(&file);
    }
    Ok(vec![Redefined::Tables { names: names.into_iter().collect(), relations: true }])
}
