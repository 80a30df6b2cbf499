//! Which tables the files' own statements define, before anything is tagged: a definition from elsewhere may be that of another time.

use std::path::PathBuf;

use engine::intake::Assembler;
use engine::redefined::Redefined;
use relay::{FilesReader, LogReader, Read, Start};

use super::error::RetagError;

pub(super) fn later(
    files: &[PathBuf],
    bytes_max: u64,
    go_on: &mut dyn FnMut(u64) -> Result<(), RetagError>,
) -> Result<Vec<Redefined>, RetagError> {
    let mut reader = FilesReader::open(files.to_vec(), Start::Beginning)?;
    let mut assembler = Assembler::new(bytes_max);
    let mut found = Vec::new();
    while let Read::Event(located) = reader.next()? {
        go_on(located.event.bytes().len() as u64)?;
        let end = located.end_position();
        let made = assembler.event(&located.event, &located.format, &located.position, &end);
        let Some(transaction) = made.map_err(engine::retag::TaggerError::from)? else { continue };
        let redefined = Redefined::by(&transaction);
        if redefined != Redefined::Nothing && !found.contains(&redefined) {
            found.push(redefined);
        }
    }
    Ok(found)
}
