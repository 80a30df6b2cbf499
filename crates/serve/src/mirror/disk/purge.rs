//! Which files of a mirror may be removed: by age, by total size, by free space on the disk. It removes nothing.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// What is kept; the last file always is. With several limits, a file is removed when any of them says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// A file goes when all that is in it is older, by the source's clock.
    pub age: Option<Duration>,
    /// The maximum size of all files together.
    pub bytes: Option<u64>,
    /// The free space that the disk must keep.
    pub free: Option<u64>,
}

/// A file as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub bytes: u64,
    /// When the source began it, in seconds since 1970.
    pub begun: u32,
}

/// The clock and the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurgeConditions {
    /// The time in seconds since 1970.
    pub seconds: u64,
    /// `None`: not known.
    pub free: Option<u64>,
}

impl PurgeConditions {
    pub fn of(dir: &Path) -> Self {
        let seconds = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        let free = rustix::fs::statvfs(dir).ok().map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize));
        Self { seconds, free }
    }
}

/// The disk space of a mirror.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUse {
    /// Size of the mirror's files, those of former sources included.
    pub used_bytes: u64,
    /// Free space. `None`: the system does not report it.
    pub free_bytes: Option<u64>,
}

/// Measures the disk space of a mirror. A file that cannot be read counts as empty.
pub fn disk_use(dir: &Path) -> DiskUse {
    DiskUse { used_bytes: used(dir, true), free_bytes: PurgeConditions::of(dir).free }
}

/// The folder's files, and those of the folders in it of former sources.
fn used(dir: &Path, with_folders: bool) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() && with_folders => used(&entry.path(), false),
        Ok(found) if found.is_file() => found.len(),
        _ => 0,
    };
    entries.filter_map(Result::ok).map(size).sum()
}

impl Retention {
    /// Everything.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// How many of the oldest files may be removed.
    pub fn surplus(&self, files: &[Size], now: PurgeConditions) -> usize {
        let mut left: u64 = files.iter().map(|file| file.bytes).sum();
        let mut free = now.free;
        let mut count = 0;
        for pair in files.windows(2) {
            let [file, next] = pair else { break };
            // The next one begins where this one ends.
            let is_old = self.age.is_some_and(|age| u64::from(next.begun).saturating_add(age.as_secs()) < now.seconds);
            let is_too_much = self.bytes.is_some_and(|max| left > max);
            let is_full = self.free.zip(free).is_some_and(|(min, free)| free < min);
            if !is_old && !is_too_much && !is_full {
                break;
            }
            left -= file.bytes;
            free = free.map(|free| free.saturating_add(file.bytes));
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surplus() {
        let files: Vec<Size> = (1..=5).map(|number| Size { bytes: 100, begun: number * 1000 }).collect();
        let check = |age: Option<u64>, bytes: Option<u64>, free: Option<u64>, count: usize| {
            let keep = Retention { age: age.map(Duration::from_secs), bytes, free };
            assert_eq!(keep.surplus(&files, PurgeConditions { seconds: 6000, free: Some(50) }), count, "{keep:?}");
        };
        check(None, None, None, 0);
        // The first ends at 2000, 4000 s ago.
        check(Some(4000), None, None, 0);
        check(Some(3999), None, None, 1);
        check(Some(1500), None, None, 3);
        check(None, Some(500), None, 0);
        check(None, Some(499), None, 1);
        check(None, Some(300), None, 2);
        check(None, None, Some(50), 0);
        check(None, None, Some(51), 1);
        check(None, None, Some(151), 2);
        check(Some(3999), Some(300), Some(51), 2);
        // The last file stays.
        check(Some(0), None, None, 4);
        check(None, Some(0), Some(u64::MAX), 4);
        let unknown = Retention { free: Some(u64::MAX), ..Retention::default() };
        assert_eq!(unknown.surplus(&files, PurgeConditions { seconds: 6000, free: None }), 0);
        assert_eq!(unknown.surplus(&[], PurgeConditions { seconds: 6000, free: Some(0) }), 0);
        assert!(Retention::default().is_all() && !unknown.is_all());
    }

    #[test]
    fn a_disk_says_what_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let now = PurgeConditions::of(dir.path());
        assert!(now.seconds > 1_700_000_000 && now.free.is_some());
    }
}
