//! Which files of a mirror may go: by age, by the size of all, by the space that is free on the disk. It removes nothing.

use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::seen::Disk;

/// What is kept; the last file always is. With several limits a file goes when one of them says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keep {
    /// A file goes when all that is in it is older, by the source's clock.
    pub age: Option<Duration>,
    /// All files together are not larger.
    pub bytes: Option<u64>,
    /// So much of the disk stays free.
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
pub struct Now {
    /// Since 1970.
    pub seconds: u64,
    /// `None`: not known.
    pub free: Option<u64>,
}

impl Now {
    pub fn of(dir: &Path) -> Self {
        let seconds = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        let free = rustix::fs::statvfs(dir).ok().map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize));
        Self { seconds, free }
    }
}

/// What a mirror takes on its disk, and what is free there. What can not be read counts as nothing.
pub fn disk(dir: &Path) -> Disk {
    Disk { used_bytes: used(dir, true), free_bytes: Now::of(dir).free }
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

impl Keep {
    /// Everything.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// How many of the oldest files may go.
    pub fn surplus(&self, files: &[Size], now: Now) -> usize {
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
            let keep = Keep { age: age.map(Duration::from_secs), bytes, free };
            assert_eq!(keep.surplus(&files, Now { seconds: 6000, free: Some(50) }), count, "{keep:?}");
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
        let unknown = Keep { free: Some(u64::MAX), ..Keep::default() };
        assert_eq!(unknown.surplus(&files, Now { seconds: 6000, free: None }), 0);
        assert_eq!(unknown.surplus(&[], Now { seconds: 6000, free: Some(0) }), 0);
        assert!(Keep::default().is_all() && !unknown.is_all());
    }

    #[test]
    fn a_disk_says_what_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let now = Now::of(dir.path());
        assert!(now.seconds > 1_700_000_000 && now.free.is_some());
    }
}
