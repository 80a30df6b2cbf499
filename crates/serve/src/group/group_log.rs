//! The log of groups that one replica was sent: a file in the mirror's folder. A group is written to it before it is sent.
//!
//! MySQL: a replica that has a group reports only the group's own GTID when it attaches again. The log shows that it has the other GTIDs, too. MariaDB: only the last group matters,
//! since the replica may have a part of it.
//!
//! One line for each group: its last GTID, then the others (MySQL, a set) or its first (MariaDB). A torn line was never followed by its group.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlog::gtids::{Gtid, GtidSet};
use relay::fs::{AppendFile, Fs, read_full};

use super::group_builder::FirstTransaction;
use super::open_group::FormedGroup;
use crate::mirror::disk::files::{self, FolderError, at};

/// In the mirror's folder.
const FOLDER: &str = "groups";

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    last: Gtid,
    others: OtherGtids,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum OtherGtids {
    MySql(GtidSet),
    First(Gtid),
}

/// The log of the groups that one replica was sent.
pub struct GroupLog {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    name: String,
    entries: Vec<Entry>,
    file: Option<Box<dyn AppendFile>>,
}

impl std::fmt::Debug for GroupLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupLog")
            .field("name", &self.name)
            .field("entries", &self.entries.len())
            .finish_non_exhaustive()
    }
}

impl GroupLog {
    /// `name` is the replica's: its `server_uuid` (MySQL) or its `server_id` (MariaDB).
    pub fn open(fs: Arc<dyn Fs>, mirror: &Path, name: &str) -> Result<Self, FolderError> {
        let dir = mirror.join(FOLDER);
        let mut entries = read(&*fs, &dir.join(name))?.unwrap_or_default();
        if let Some(Entry { others: OtherGtids::First(_), .. }) = entries.last() {
            // Only the last one can have been cut off.
            entries.drain(..entries.len() - 1);
        }
        Ok(Self { fs, dir, name: name.to_owned(), entries, file: None })
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// MySQL: of the groups that a replica was sent and has, the GTIDs that it does not say. All other groups are forgotten, durably: those that it has not may be sent in other ways.
    pub fn unsaid(&mut self, said: &GtidSet) -> Result<GtidSet, FolderError> {
        let mut unsaid = GtidSet::default();
        let before = self.entries.len();
        self.entries.retain(|entry| {
            let Some(more) = entry.unsaid(said) else { return false };
            unsaid.add_set(&more);
            true
        });
        if self.entries.len() < before {
            self.file = Some(self.rewrite()?);
        }
        Ok(unsaid)
    }

    /// MariaDB: what the replica's next transaction must be.
    pub fn first(&self) -> FirstTransaction {
        match self.entries.last() {
            Some(Entry { last, others: OtherGtids::First(first) }) => {
                FirstTransaction::Group { first: first.clone(), last: last.clone() }
            }
            _ => FirstTransaction::Single,
        }
    }

    /// Durable when it returns.
    pub fn note(&mut self, formed: &[FormedGroup]) -> Result<(), FolderError> {
        let begin = self.entries.len();
        self.entries.extend(formed.iter().filter_map(Entry::of));
        if self.file.is_none() {
            self.file = Some(self.rewrite()?);
            return Ok(());
        }
        let text = text(self.entries.get(begin..).unwrap_or_default());
        let Some(file) = &mut self.file else { return Ok(()) };
        let done = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        done.map_err(at(&self.dir.join(&self.name)))
    }

    /// What is still needed, in a file that begins anew.
    fn rewrite(&self) -> Result<Box<dyn AppendFile>, FolderError> {
        files::make(&*self.fs, &self.dir)?;
        files::replace(&*self.fs, &self.dir, &self.name, text(&self.entries).as_bytes())?;
        let path = self.dir.join(&self.name);
        self.fs.open_append(&path).map_err(at(&path))
    }
}

/// MySQL: of the groups that this replica was sent and has, the GTIDs that it does not say. Nothing is forgotten.
pub fn unsaid(fs: &dyn Fs, mirror: &Path, name: &str, said: &GtidSet) -> Result<GtidSet, FolderError> {
    let mut all = GtidSet::default();
    for unsaid in
        read(fs, &mirror.join(FOLDER).join(name))?.unwrap_or_default().iter().filter_map(|entry| entry.unsaid(said))
    {
        all.add_set(&unsaid);
    }
    Ok(all)
}

/// MySQL: the replica of whose groups this one has some without their other GTIDs. A copy of that replica has another `server_uuid`.
pub fn of_another(fs: &dyn Fs, mirror: &Path, own: &str, said: &GtidSet) -> Result<Option<String>, FolderError> {
    let dir = mirror.join(FOLDER);
    let names = match fs.list(&dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        listed => listed.map_err(at(&dir))?,
    };
    for name in names.into_iter().filter(|name| name != own && !name.contains('.')) {
        let entries = read(fs, &dir.join(&name))?.unwrap_or_default();
        if entries.iter().any(|entry| entry.unsaid(said).is_some()) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

impl Entry {
    fn of(formed: &FormedGroup) -> Option<Self> {
        let (last, others) = formed.gtids.split_last()?;
        let others = match last {
            Gtid::MariaDb { .. } => OtherGtids::First(others.first()?.clone()),
            Gtid::MySql { .. } => OtherGtids::MySql(set(others)),
        };
        Some(Self { last: last.clone(), others })
    }

    /// MySQL: of a group that is there, the GTIDs that are not said. One that is said came by itself, from elsewhere, and so did the group's own.
    fn unsaid(&self, said: &GtidSet) -> Option<GtidSet> {
        let (Gtid::MySql { uuid, tag, gno }, OtherGtids::MySql(others)) = (&self.last, &self.others) else {
            return None;
        };
        let has_group = said.contains(uuid, tag.as_deref().unwrap_or_default(), *gno);
        let mut unsaid = others.clone();
        unsaid.subtract(said);
        (has_group && unsaid == *others).then_some(unsaid)
    }

    fn parse(line: &str) -> Option<Self> {
        let (last, others) = line.split_once(' ')?;
        let last = last.parse().ok()?;
        let others = match last {
            Gtid::MySql { .. } => OtherGtids::MySql(others.parse().ok()?),
            Gtid::MariaDb { .. } => OtherGtids::First(others.parse().ok()?),
        };
        Some(Self { last, others })
    }
}

fn set(gtids: &[Gtid]) -> GtidSet {
    let mut set = GtidSet::default();
    for gtid in gtids {
        if let Gtid::MySql { uuid, tag, gno } = gtid {
            set.add(uuid, tag.as_deref().unwrap_or_default(), *gno);
        }
    }
    set
}

/// The GTIDs of these groups, except each group's own.
pub fn others(formed: &[FormedGroup]) -> GtidSet {
    let mut all = GtidSet::default();
    for group in formed {
        all.add_set(&set(group.gtids.split_last().map_or(&[][..], |(_, others)| others)));
    }
    all
}

fn text(entries: &[Entry]) -> String {
    let mut text = String::new();
    for Entry { last, others } in entries {
        let _ = match others {
            // One line, whatever a set's text has between its sources.
            OtherGtids::MySql(set) => writeln!(text, "{last} {}", set.to_string().replace(['\n', ' '], "")),
            OtherGtids::First(first) => writeln!(text, "{last} {first}"),
        };
    }
    text
}

/// None: there is no such file.
fn read(fs: &dyn Fs, path: &Path) -> Result<Option<Vec<Entry>>, FolderError> {
    let file = match fs.open_read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(at(path))?,
    };
    let length = file.len().map_err(at(path))?;
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    read_full(&*file, &mut bytes, 0).map_err(at(path))?;
    let text = String::from_utf8_lossy(&bytes);
    let whole = text.rfind('\n').map_or("", |end| text.get(..end).unwrap_or_default());
    let damaged = |line: &str| {
        let reason = format!("not a group: {}", binlog::text::escape(line));
        at(path)(io::Error::new(io::ErrorKind::InvalidData, reason))
    };
    whole.lines().map(|line| Entry::parse(line).ok_or_else(|| damaged(line))).collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use relay::fs::RealFs;

    use super::*;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn formed(numbers: &[u64]) -> FormedGroup {
        FormedGroup { gtids: numbers.iter().map(|number| format!("{UUID}:{number}").parse().unwrap()).collect() }
    }

    fn said(numbers: &str) -> GtidSet {
        format!("{UUID}:{numbers}").parse().unwrap()
    }

    #[test]
    fn what_a_replica_has_and_does_not_say() {
        let dir = tempfile::tempdir().unwrap();
        let open = || GroupLog::open(Arc::new(RealFs), dir.path(), UUID).unwrap();
        let mut log = open();
        assert!(log.unsaid(&said("1-5")).unwrap().is_empty());
        log.note(&[formed(&[6, 7, 8]), formed(&[9, 10])]).unwrap();
        log.note(&[formed(&[11, 12, 13])]).unwrap();
        assert_eq!(unsaid(&RealFs, dir.path(), UUID, &said("1-5:8:10:13")).unwrap(), said("6-7:9:11-12"));
        assert!(unsaid(&RealFs, dir.path(), "another", &said("1-5:8")).unwrap().is_empty());
        // The last one did not arrive; of the first it has said all, by other means.
        assert_eq!(open().unsaid(&said("1-5:8:10:13")).unwrap(), said("6-7:9:11-12"));
        assert_eq!(open().unsaid(&said("1-8:10")).unwrap(), said("9"));
        // What was forgotten is forgotten for good.
        assert_eq!(open().unsaid(&said("1-8:10:13")).unwrap(), said("9"));
        let mut log = open();
        log.note(&[formed(&[11, 12])]).unwrap();
        assert_eq!(open().unsaid(&said("1-8:10:12:13")).unwrap(), said("9:11"));
        // One of the others came by itself: so did all.
        let mut log = open();
        log.note(&[formed(&[14, 15, 16])]).unwrap();
        assert!(open().unsaid(&said("1-13:14:16")).unwrap().is_empty());
    }

    #[test]
    fn a_copy_of_a_replica_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let other = |said: &GtidSet| of_another(&RealFs, dir.path(), "copy", said).unwrap();
        assert_eq!(other(&said("1-5")), None);
        GroupLog::open(Arc::new(RealFs), dir.path(), UUID).unwrap().note(&[formed(&[6, 7, 8])]).unwrap();
        assert_eq!(other(&said("1-5")), None);
        assert_eq!(other(&said("1-8")), None);
        assert_eq!(other(&said("1-5:8")).as_deref(), Some(UUID));
    }

    #[test]
    fn a_mariadb_replica_is_sent_the_same_again() {
        let dir = tempfile::tempdir().unwrap();
        let open = || GroupLog::open(Arc::new(RealFs), dir.path(), "7").unwrap();
        assert_eq!(open().first(), FirstTransaction::Single);
        let gtids = |list: &[&str]| FormedGroup { gtids: list.iter().map(|gtid| gtid.parse().unwrap()).collect() };
        open().note(&[gtids(&["0-1-5", "0-1-6"]), gtids(&["0-1-7", "0-1-8", "0-1-9"])]).unwrap();
        let same = FirstTransaction::Group { first: "0-1-7".parse().unwrap(), last: "0-1-9".parse().unwrap() };
        assert_eq!(open().first(), same);
    }

    #[test]
    fn a_line_that_was_cut_off_is_none() {
        let dir = tempfile::tempdir().unwrap();
        GroupLog::open(Arc::new(RealFs), dir.path(), UUID).unwrap().note(&[formed(&[6, 7, 8])]).unwrap();
        let path = dir.path().join(FOLDER).join(UUID);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str(&format!("{UUID}:12 {UUID}:9-"));
        std::fs::write(&path, &text).unwrap();
        let mut log = GroupLog::open(Arc::new(RealFs), dir.path(), UUID).unwrap();
        assert_eq!(log.unsaid(&said("1-5:8:12")).unwrap(), said("6-7"));
        std::fs::write(&path, format!("{text}\n{UUID}:13 {UUID}:12\n")).unwrap();
        assert!(GroupLog::open(Arc::new(RealFs), dir.path(), UUID).is_err());
    }
}
