//! From what a user names to a list of binary log files in their order.

use crate::error::{Error, IoContext, Result};
use crate::fs::RealFs;
use crate::packed::{is_packed, packed_path, plain_name};
use binlog::position::split_name;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest index file that is read, in bytes.
const INDEX_BYTES_MAX: u64 = 64 << 20;

/// Binary log files as a source.
pub struct FileSource;

impl FileSource {
    /// The binary log files that `paths` stand for, in order: one file, several files, a directory, or an index file.
    ///
    /// In a directory only files that begin like a binary log count; `*.index`, `*.info`, `*.state` and all else is
    /// passed over. Files that are named one by one are only put in order.
    ///
    /// # Errors
    /// [`Error::Gap`] when a number is missing, [`Error::Ambiguous`] for more than one series of logs,
    /// [`Error::NoLogs`], or what the system says.
    pub fn discover<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<PathBuf>> {
        let (files, missing) = Self::discover_all(paths)?;
        // What is compressed beside the logs of a directory is an archive's; without it the log begins later, or has a gap.
        let is_beside = |error: &Error| match error {
            Error::Compressed { path } => !paths.iter().any(|named| named.as_ref() == path),
            _ => false,
        };
        if let Some(error) = missing.into_iter().find(|error| !is_beside(error)) {
            return Err(error);
        }
        match files.iter().find(|path| is_compressed(path)) {
            Some(path) => Err(Error::Compressed { path: path.clone() }),
            None => Ok(files),
        }
    }

    /// The same for readers who can do with a part: files that are missing ([`Error::Gap`], or named in an index and not
    /// there), and in a directory those that are compressed ([`Error::Compressed`]), are told beside those that are there. So are those that are
    /// named and compressed by another program than gzip; what gzip has compressed is among the files.
    ///
    /// # Errors
    /// As [`FileSource::discover`], without those.
    pub fn discover_all<P: AsRef<Path>>(paths: &[P]) -> Result<(Vec<PathBuf>, Vec<Error>)> {
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        match paths.as_slice() {
            [] => Err(Error::NoLogs { path: PathBuf::new() }),
            [path] => {
                let metadata = std::fs::metadata(path).during("read", path)?;
                if metadata.is_dir() {
                    directory(path)
                } else if is_index(path)? {
                    index(path)
                } else {
                    Ok((vec![path.to_path_buf()], Vec::new()))
                }
            }
            files => {
                for path in files {
                    // A name that is not there is the user's typing error: say so first.
                    std::fs::metadata(path).during("read", path)?;
                }
                let parent = files.first().and_then(|path| path.parent()).unwrap_or(Path::new(""));
                let (other, readable): (Vec<PathBuf>, Vec<PathBuf>) =
                    files.iter().map(|path| path.to_path_buf()).partition(|path| is_compressed(path) && !is_gzip(path));
                let mut other: Vec<Error> = other.into_iter().map(|path| Error::Compressed { path }).collect();
                if readable.is_empty() {
                    return Err(other.remove(0));
                }
                let (found, mut missing) = series(parent, readable)?;
                // A gap where one of these is has its reason.
                missing.retain(|error| !matches!(error, Error::Gap { .. }) || other.is_empty());
                missing.append(&mut other);
                Ok((found, missing))
            }
        }
    }
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Whether a file begins like a binary log, in clear or encrypted; also a compressed one that can be read anywhere.
fn is_log(path: &Path) -> Result<bool> {
    if plain_name(name(path)) != name(path) {
        return Ok(is_packed(&RealFs, path));
    }
    let mut magic = Vec::new();
    File::open(path).and_then(|file| file.take(4).read_to_end(&mut magic)).during("read", path)?;
    Ok(magic == binlog::MAGIC || magic == binlog::frame::MAGIC_ENCRYPTED)
}

#[expect(clippy::case_sensitive_file_extension_comparisons, reason = "servers write it in small letters")]
fn is_index(path: &Path) -> Result<bool> {
    Ok(name(path).ends_with(".index") && !is_log(path)?)
}

fn directory(dir: &Path) -> Result<(Vec<PathBuf>, Vec<Error>)> {
    let (mut files, mut compressed) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(dir).during("list", dir)? {
        let path = entry.during("list", dir)?.path();
        let plain = plain_name(name(&path)).to_owned();
        // In both forms, as a crash may leave them, it is read in clear.
        let is_twice = plain != name(&path) && path.with_extension("").exists();
        if is_compressed(&path) && !path.with_extension("").exists() {
            compressed.push(path);
        } else if !is_twice && split_name(&plain).is_some() && path.is_file() && is_log(&path)? {
            files.push(path);
        }
    }
    compressed.sort();
    let mut compressed = compressed.into_iter().map(|path| Error::Compressed { path });
    if files.is_empty() {
        return Err(compressed.next().unwrap_or(Error::NoLogs { path: dir.to_path_buf() }));
    }
    let (files, missing) = series(dir, files)?;
    // Whoever sees it there would look for the wrong thing.
    let is_there = |error| match error {
        Error::Gap { missing, .. } if dir.join(&missing).is_file() => {
            Error::NotABinaryLog { path: dir.join(missing), reason: "it is empty, or something else".to_owned() }
        }
        other => other,
    };
    let mut missing: Vec<Error> = missing.into_iter().map(is_there).collect();
    missing.extend(compressed);
    Ok((files, missing))
}

const GZIP: &str = ".gz";

fn is_gzip(path: &Path) -> bool {
    name(path).ends_with(GZIP)
}

/// Whether the name is a log's with what compressors put behind it, and the file can not be read where it is.
fn is_compressed(path: &Path) -> bool {
    let ext = path.extension().and_then(|ext| ext.to_str()).unwrap_or_default();
    ["gz", "zst", "bz2", "xz", "lz4"].contains(&ext)
        && !(ext == "zst" && is_packed(&RealFs, path))
        && path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| split_name(stem).is_some())
}

/// An index file has one name a line, absolute or relative to the server's data directory, which may not be there.
fn index(path: &Path) -> Result<(Vec<PathBuf>, Vec<Error>)> {
    let dir = path.parent().unwrap_or(Path::new(""));
    let mut text = String::new();
    File::open(path).and_then(|file| file.take(INDEX_BYTES_MAX).read_to_string(&mut text)).during("read", path)?;
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let named = dir.join(line);
        // The logs may have been copied to where their index is.
        let beside = dir.join(name(Path::new(line)));
        let packed = packed_path(&beside);
        let file = match named.exists() {
            true => named,
            false if !beside.exists() && is_packed(&RealFs, &packed) => packed,
            false => beside,
        };
        match std::fs::metadata(&file).during("read", &file) {
            Ok(_) => files.push(file),
            Err(error) => missing.push(error),
        }
    }
    if files.is_empty() {
        return Err(missing.into_iter().next().unwrap_or(Error::NoLogs { path: path.to_path_buf() }));
    }
    let (files, gaps) = series(dir, files)?;
    missing.extend(gaps);
    Ok((files, missing))
}

/// Puts files in the order of their numbers, and checks that they are one series without a gap.
fn series(dir: &Path, files: Vec<PathBuf>) -> Result<(Vec<PathBuf>, Vec<Error>)> {
    let mut bases: BTreeSet<String> = BTreeSet::new();
    let mut numbered = Vec::new();
    for path in files {
        let plain = plain_name(name(&path).strip_suffix(GZIP).unwrap_or(name(&path)));
        let Some((base, number)) = split_name(plain) else {
            let reason = "its name does not end in a number, so its order is not known".to_owned();
            return Err(Error::NotABinaryLog { path, reason });
        };
        bases.insert(base.to_owned());
        numbered.push((number, path));
    }
    if bases.len() > 1 {
        let names = bases.into_iter().collect::<Vec<_>>().join(", ");
        return Err(Error::Ambiguous { dir: dir.to_path_buf(), names });
    }
    numbered.sort();
    numbered.dedup();
    let mut gaps = Vec::new();
    for pair in numbered.windows(2) {
        let [(before, before_path), (after, after_path)] = pair else {
            continue;
        };
        if before + 1 != *after {
            let base = bases.first().map_or("", String::as_str);
            let missing = format!("{base}.{:06}", before + 1);
            gaps.push(Error::Gap { missing, before: before_path.clone(), after: after_path.clone() });
        }
    }
    Ok((numbered.into_iter().map(|(_, path)| path).collect(), gaps))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &[u8] = b"\xfebin";

    /// `files` are created; `what` is discovered; the names found, or a part of the error, must be `expect`.
    fn check(files: &[(&str, &[u8])], what: &[&str], expect: Result<&[&str], &str>) {
        let dir = tempfile::tempdir().unwrap();
        for (name, contents) in files {
            std::fs::write(dir.path().join(name), contents).unwrap();
        }
        let paths: Vec<PathBuf> = what.iter().map(|name| dir.path().join(name)).collect();
        let found = FileSource::discover(&paths);
        match (found, expect) {
            (Ok(found), Ok(expect)) => {
                let names: Vec<&str> = found.iter().map(|path| name(path)).collect();
                assert_eq!(names, expect);
            }
            (Err(e), Err(part)) => assert!(e.to_string().contains(part), "{e}"),
            (found, expect) => panic!("{found:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn directories() {
        let logs = [
            ("bin.000010", LOG),
            ("bin.000009", LOG),
            ("bin.index", b"x".as_slice()),
            ("relay-log.info", b"x"),
            ("bin.state", b"x"),
            ("aria_log.00000001", b"\xfe\xfe\x09"),
        ];
        check(&logs, &[""], Ok(&["bin.000009", "bin.000010"]));
        check(&[("bin.999999", LOG), ("bin.1000000", LOG)], &[""], Ok(&["bin.999999", "bin.1000000"]));
        check(&[("bin.000001", LOG), ("bin.000003", LOG)], &[""], Err("bin.000002 is missing"));
        let empty = [("bin.000001", LOG), ("bin.000002", b"".as_slice()), ("bin.000003", LOG)];
        check(&empty, &[""], Err("bin.000002 is not a binary log: it is empty"));
        check(&[("bin.000001", LOG), ("relay.000001", LOG)], &[""], Err("(bin, relay)"));
        check(&[("readme", b"")], &[""], Err("no binary logs"));
        check(&[("bin.000001.gz", b"")], &[""], Err("bin.000001.gz is compressed"));
        check(&[("bin.000001.gz", b""), ("bin.000002", LOG)], &[""], Ok(&["bin.000002"]));
        check(
            &[("bin.000002.zst", b""), ("bin.000001", LOG), ("bin.000003", LOG)],
            &[""],
            Err("bin.000002 is missing"),
        );
    }

    #[test]
    fn what_is_compressed_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["bin.000001.gz", "bin.000002", "bin.000002.gz", "bin.000003.zst", "notes.gz"] {
            std::fs::write(dir.path().join(name), LOG).unwrap();
        }
        let (files, missing) = FileSource::discover_all(&[dir.path()]).unwrap();
        let names = |paths: &[PathBuf]| paths.iter().map(|path| name(path).to_owned()).collect::<Vec<_>>();
        let compressed: Vec<PathBuf> = missing
            .into_iter()
            .map(|error| match error {
                Error::Compressed { path } => path,
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(names(&files), ["bin.000002"]);
        assert_eq!(names(&compressed), ["bin.000001.gz", "bin.000003.zst"]);
    }

    #[test]
    fn files() {
        let logs = [("bin.000001", LOG), ("bin.000002", LOG), ("plain", LOG), ("other.000001", LOG)];
        check(&logs, &["plain"], Ok(&["plain"]));
        check(&logs, &["bin.000002", "bin.000001"], Ok(&["bin.000001", "bin.000002"]));
        check(&logs, &["bin.000001", "plain"], Err("does not end in a number"));
        check(&logs, &["bin.000001", "other.000001"], Err("(bin, other)"));
        check(&logs, &["bin.000001", "bin.000004"], Err("bin.000004"));
        let packed = [("bin.000001", LOG), ("bin.000002.gz", b"".as_slice()), ("bin.000003.zst", b"")];
        check(&packed, &["bin.000001", "bin.000002.gz"], Err("bin.000002.gz is compressed"));
        check(&packed, &["bin.000002.gz"], Err("bin.000002.gz is compressed"));
    }

    #[test]
    fn what_can_be_read_anywhere_is_a_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["bin.000001", "bin.000002", "bin.000003"] {
            std::fs::write(path(name), LOG).unwrap();
        }
        std::fs::write(path("bin.index"), "./bin.000001\n./bin.000002\n./bin.000003\n").unwrap();
        for name in ["bin.000001", "bin.000002"] {
            let stop = std::sync::atomic::AtomicBool::new(false);
            crate::packed::pack(&RealFs, &path(name), &packed_path(&path(name)), &stop).unwrap();
        }
        std::fs::remove_file(path("bin.000001")).unwrap();
        let expected = [path("bin.000001.zst"), path("bin.000002"), path("bin.000003")];
        assert_eq!(FileSource::discover(&[dir.path()]).unwrap(), expected);
        assert_eq!(FileSource::discover(&[path("bin.index")]).unwrap(), expected);
        assert_eq!(FileSource::discover(&expected).unwrap(), expected);
        assert_eq!(FileSource::discover(&[path("bin.000001.zst")]).unwrap(), expected[..1]);
    }

    /// Who can do with a part reads what gzip has compressed, and is told of the others.
    #[test]
    fn compressed_files_that_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> =
            ["bin.000001", "bin.000002.gz", "bin.000003.zst"].iter().map(|name| dir.path().join(name)).collect();
        paths.iter().for_each(|path| std::fs::write(path, LOG).unwrap());
        let (files, missing) = FileSource::discover_all(&paths).unwrap();
        assert_eq!(files, paths[..2]);
        assert!(matches!(missing.as_slice(), [Error::Compressed { path }] if *path == paths[2]), "{missing:?}");
    }

    #[test]
    fn indexes() {
        let files = [
            ("bin.000001", LOG),
            ("bin.000002", LOG),
            ("bin.index", b"./bin.000001\n/var/lib/mysql/bin.000002\n".as_slice()),
            ("gone.index", b"./gone.000001\n"),
            ("empty.index", b"\n"),
        ];
        check(&files, &["bin.index"], Ok(&["bin.000001", "bin.000002"]));
        check(&files, &["gone.index"], Err("gone.000001"));
        check(&files, &["empty.index"], Err("no binary logs"));
    }
}
