//! Finds the tables that the log changes between two positions: their definitions may differ at the two.

use std::collections::BTreeSet;
use std::sync::Arc;

use binlog::{Event, FIRST_OFFSET, Kind, LogPosition};
use bytes::Bytes;
use engine::definition_change::DefinitionChange;
use engine::intake::Assembler;

use crate::inventory::{Inventory, LogFile, ReadError};

/// Reads from the beginning of a file up to a position. If `go_on` returns false, it ends early, and the result does not matter.
pub(super) fn ahead(
    inventory: &Inventory,
    from: &Arc<LogFile>,
    to: &LogPosition,
    bytes_max: u64,
    go_on: &dyn Fn() -> bool,
) -> Result<Vec<DefinitionChange>, ReadError> {
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
            let Some(made) = made else { return Ok(vec![DefinitionChange::Everything]) };
            match made.as_ref().map(DefinitionChange::by) {
                None | Some(DefinitionChange::Nothing) => {}
                Some(DefinitionChange::Tables { names: more, schemas, .. }) if schemas.is_empty() => names.extend(more),
                Some(DefinitionChange::Everything | DefinitionChange::Tables { .. }) => {
                    return Ok(vec![DefinitionChange::Everything]);
                }
            }
        }
        next = inventory.next_after(&file);
    }
    Ok(vec![DefinitionChange::Tables { names: names.into_iter().collect(), schemas: Vec::new(), relations: true }])
}
