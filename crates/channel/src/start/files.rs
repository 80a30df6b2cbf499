//! Where a channel starts or goes on in files, which are read in place. It does not look into them.

use anyhow::{Context, Result, bail};
use apply::ChannelRecord;
use binlog::LogPosition;
use binlog::gtids::GtidState;
use engine::progress::Mark;

use super::comparison::Channel;
use super::{Start, StartRequest, StreamStart, begun, split_source};

/// Where to start in files, which are read in place.
pub fn files(opened: &ChannelRecord, names: &[String], asked: &StartRequest) -> Result<(Start, relay::Start)> {
    let at = |position: &LogPosition| relay::Start::At(position.clone());
    let there = |position: &LogPosition| names.iter().any(|name| **name == *position.file);
    let mut passed = None;
    let (mark, is_new, start) = match (begun(opened, asked), asked) {
        (Some(mark), _) => {
            let (recorded_source, ..) = split_source(opened.source.as_deref().unwrap_or_default());
            let channel = Channel { mark, recorded_source, source: "files", source_has: &GtidState::None };
            passed = channel.passed(asked).map_err(anyhow::Error::new)?;
            let start = match &mark.position {
                Some(position) if there(position) => at(position),
                Some(position) if position.offset > 4 || mark.gtids.is_empty() => next_file(mark, position, names)?,
                _ => relay::Start::Beginning,
            };
            (mark.clone(), false, start)
        }
        (None, StartRequest::Position(position) | StartRequest::PositionAndGtids(position, _)) => {
            if !there(position) {
                bail!("--start {position}: no such file among the {} given", names.len());
            }
            (Mark { position: Some(position.clone()), gtids: asked.gtids(), ..Mark::default() }, true, at(position))
        }
        (None, StartRequest::Gtids(gtids)) => {
            (Mark { gtids: gtids.clone(), ..Mark::default() }, true, relay::Start::Beginning)
        }
        (None, StartRequest::Unreadable(reason)) => bail!("{reason}"),
        (None, StartRequest::Default) => (Mark::default(), true, relay::Start::Beginning),
    };
    // Of a new channel nobody says whether the first file given is the source's first.
    let (.., extent) = split_source(opened.source.as_deref().filter(|_| !is_new).unwrap_or_default());
    Ok((
        Start {
            mark,
            extent,
            is_new,
            by_gtid: false,
            stream: StreamStart::Oldest,
            instead_of: None,
            passed,
            warnings: Vec::new(),
        },
        start,
    ))
}

/// The file where the channel is was not given. With GTIDs the given files are read, and applied transactions are skipped. Without GTIDs the given
/// files have to begin with the very next one.
fn next_file(mark: &Mark, position: &LogPosition, names: &[String]) -> Result<relay::Start> {
    if !mark.gtids.is_empty() {
        return Ok(relay::Start::Beginning);
    }
    let first = names.first().map(String::as_str).unwrap_or_default();
    let first_number = LogPosition::new(first, 4).file_number();
    if first_number.is_some() && first_number == position.file_number().map(|number| number + 1) {
        return Ok(relay::Start::Beginning);
    }
    bail!("the channel goes on at {position}, and that file was not given: the first given is {first}")
}

/// Names as in log positions.
pub fn names(files: &[std::path::PathBuf]) -> Result<Vec<String>> {
    files
        .iter()
        .map(|file| {
            let name = file.file_name().and_then(|name| name.to_str());
            Ok(name.with_context(|| format!("{} has a name that cannot be recorded", file.display()))?.to_owned())
        })
        .collect()
}
