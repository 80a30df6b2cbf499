//! The binary log files that paths on a command line stand for.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;

use insight::inspect::feed::LogFiles;

/// `-` is standard input, as everywhere, and there are names for it wherever this runs.
pub fn with_stdin(paths: &[PathBuf]) -> Vec<PathBuf> {
    let named = |path: &PathBuf| if path.as_os_str() == "-" { PathBuf::from("/dev/stdin") } else { path.clone() };
    paths.iter().map(named).collect()
}

/// The files that the paths stand for, on this machine or in an archive, and what is missing of them.
pub fn discover(paths: &[PathBuf], stop: &Arc<AtomicBool>) -> Result<(LogFiles, Vec<String>)> {
    if let [url] = paths
        && let Some(url) = url.to_str().filter(|url| archive::is_url(url))
    {
        let archived = super::archive::files(url, stop)?;
        let gaps = archived.state().files.iter().skip(1).filter(|file| file.is_behind_gap);
        let gaps = gaps.map(|file| format!("the files before {} were never archived", file.name)).collect();
        return Ok((LogFiles { paths: archived.paths(), archive: Some(archived) }, gaps));
    }
    let (files, missing) = relay::FileSource::discover_all(paths).map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok((files.into(), missing.iter().map(ToString::to_string).collect()))
}
