//! Finds the tables that the files' own statements define, before anything is tagged. A definition from elsewhere may be of another time.

use std::path::PathBuf;

use engine::definition_change::DefinitionChange;
use engine::intake::Assembler;
use relay::{FilesReader, LogReader, Read, Start};

use super::error::RetagError;

pub(super) fn read_definitions(
    files: &[PathBuf],
    bytes_max: u64,
    go_on: &mut dyn FnMut(u64) -> Result<(), RetagError>,
) -> Result<Vec<DefinitionChange>, RetagError> {
    let mut reader = FilesReader::open(files.to_vec(), Start::Beginning)?;
    let mut assembler = Assembler::new(bytes_max);
    let mut found = Vec::new();
    while let Read::Event(located) = reader.next()? {
        go_on(located.event.bytes().len() as u64)?;
        let end = located.end_position();
        let made = assembler.event(&located.event, &located.format, &located.position, &end);
        let Some(transaction) = made.map_err(engine::retag::TaggerError::from)? else { continue };
        let redefined = DefinitionChange::by(&transaction);
        if redefined != DefinitionChange::Nothing && !found.contains(&redefined) {
            found.push(redefined);
        }
    }
    Ok(found)
}
