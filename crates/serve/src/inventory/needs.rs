//! Which files replicas need that are not attached now: they lost their connection, or this server restarted. Each replica is remembered for a time. Pure, except for the clock.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::extent::Place;

/// More are no replicas that come again, but tools with another number each time.
const REPLICAS_MAX: usize = 4096;

/// What one replica needs, for who writes it down: the number of the folder, oldest first, and the number of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct NeededFile {
    pub folder: u64,
    pub file: u64,
}

/// The files that replicas need, by the replicas' names.
#[derive(Debug, Default)]
pub(super) struct Needs {
    replicas: BTreeMap<String, Need>,
    /// How long one is remembered that is not attached.
    patience: Duration,
    /// Something is to be written down: a replica is new, or has gone back.
    is_urgent: bool,
}

#[derive(Debug)]
struct Need {
    place: Place,
    /// Its streams. A replica that comes again has two for a moment.
    streams: usize,
    /// Since when it has none.
    left: Instant,
    /// Its place is what the last process wrote down. The replica may have gone on since.
    is_from_file: bool,
}

impl Needs {
    /// What was written down before this process began: from now on they are waited for.
    pub fn remember(&mut self, replicas: BTreeMap<String, NeededFile>, patience: Duration) {
        self.patience = patience;
        for (name, needed) in replicas {
            let place = (needed.folder, Some(needed.file));
            let need = Need { place, streams: 0, left: Instant::now(), is_from_file: true };
            self.replicas.entry(name).or_insert(need);
        }
    }

    pub fn attaches(&mut self, name: &str, place: Place) {
        let before = self.replicas.get(name).map(|need| (need.place, need.streams));
        if before.is_none() && self.replicas.len() >= REPLICAS_MAX {
            return;
        }
        self.is_urgent |= before.is_none_or(|(before, _)| place < before);
        let streams = before.map_or(0, |(_, streams)| streams) + 1;
        self.replicas.insert(name.to_owned(), Need { place, streams, left: Instant::now(), is_from_file: false });
    }

    pub fn moves(&mut self, name: &str, to: Place) {
        if let Some(need) = self.replicas.get_mut(name) {
            need.place = to;
        }
    }

    pub fn leaves(&mut self, name: &str) {
        if let Some(need) = self.replicas.get_mut(name) {
            need.streams = need.streams.saturating_sub(1);
            need.left = Instant::now();
        }
    }

    /// Forgets the replicas that have been away for too long. Returns their names, and how long each was away.
    pub fn forget(&mut self) -> Vec<(String, Duration)> {
        let patience = self.patience;
        let is_over = |need: &Need| need.streams == 0 && need.left.elapsed() >= patience;
        let over = self.replicas.iter().filter(|(_, need)| is_over(need));
        let over: Vec<(String, Duration)> = over.map(|(name, need)| (name.clone(), need.left.elapsed())).collect();
        for (name, _) in &over {
            self.replicas.remove(name);
        }
        over
    }

    /// The oldest file that an absent replica needs, and the replica's name. What was sent last may not have arrived, so the file before it counts. `first`: the oldest file that is here.
    /// A replica whose file is gone needs none; but a place from the last process may be out of date: that replica needs all files that are here.
    pub fn oldest_away(&self, first: Option<Place>) -> Option<(Place, &str)> {
        let needed = |need: &Need| match first {
            Some(first) if need.place < first => need.is_from_file.then_some(first),
            _ => Some(need.place),
        };
        let away = self.replicas.iter().filter(|(_, need)| need.streams == 0);
        let away = away.filter_map(|(name, need)| Some((needed(need)?, name.as_str())));
        let ((folder, file), name) = away.min_by_key(|(place, _)| *place)?;
        Some(((folder, file.map(|file| file.saturating_sub(1))), name))
    }

    /// What is to be written down.
    pub fn needed(&self) -> BTreeMap<String, NeededFile> {
        let needed = |need: &Need| Some(NeededFile { folder: need.place.0, file: need.place.1? });
        self.replicas.iter().filter_map(|(name, need)| Some((name.clone(), needed(need)?))).collect()
    }

    /// Once: something has to be written down soon.
    pub fn take_urgent(&mut self) -> bool {
        std::mem::take(&mut self.is_urgent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn at(file: u64) -> Place {
        (0, Some(file))
    }

    #[test]
    fn a_replica_that_is_away_keeps_its_files() {
        let mut needs = Needs { patience: LONG, ..Needs::default() };
        needs.attaches("a", at(7));
        assert!(needs.take_urgent() && !needs.take_urgent());
        // Its stream keeps the file by itself.
        assert_eq!(needs.oldest_away(Some(at(1))), None);
        needs.moves("a", at(9));
        needs.leaves("a");
        assert_eq!(needs.oldest_away(Some(at(1))), Some((at(8), "a")));
        assert_eq!(needs.oldest_away(Some(at(10))), None, "what it needs is gone");
        // It has come again before its older connection was noticed to be gone.
        needs.attaches("a", at(9));
        needs.attaches("a", at(9));
        needs.leaves("a");
        assert!(needs.oldest_away(None).is_none() && !needs.take_urgent());
        needs.leaves("a");
        assert!(needs.oldest_away(None).is_some() && needs.forget().is_empty());
        // One that was restored from a copy is behind what is written down.
        needs.attaches("a", at(3));
        assert!(needs.take_urgent());
    }

    #[test]
    fn one_that_does_not_come_is_forgotten() {
        let mut needs = Needs::default();
        let written: BTreeMap<String, NeededFile> =
            ["a", "b"].map(|name| (name.to_owned(), NeededFile { folder: 1, file: 4 })).into();
        needs.remember(written.clone(), LONG);
        assert_eq!(
            needs.oldest_away(Some((1, Some(7)))),
            Some(((1, Some(6)), "a")),
            "it may have gone on since it was written down"
        );
        assert_eq!((needs.needed(), needs.oldest_away(None)), (written, Some(((1, Some(3)), "a"))));
        needs.attaches("b", (1, Some(5)));
        needs.patience = Duration::ZERO;
        assert_eq!(needs.forget().into_iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a"]);
        assert_eq!(needs.needed().into_keys().collect::<Vec<_>>(), ["b"]);
    }
}
