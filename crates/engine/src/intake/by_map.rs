//! What was derived from table maps, found by the map itself: the same map comes with most events of its table.
//!
//! It keeps each map, so that no other one takes its address. It starts over when the maps take too much memory. It never compares maps.

use std::sync::Arc;

use binlog::TableMap;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::tables::map_bytes;

#[derive(Debug)]
pub struct TableMapCache<T> {
    known: HashMap<usize, (Arc<TableMap>, T), FixedState>,
    bytes: usize,
    bytes_max: usize,
}

impl<T> TableMapCache<T> {
    /// The maps may take so many bytes of memory together, about.
    pub fn new(bytes_max: usize) -> Self {
        Self { known: HashMap::default(), bytes: 0, bytes_max }
    }

    pub fn get(&self, map: &Arc<TableMap>) -> Option<&T> {
        self.known.get(&address(map)).map(|(_, value)| value)
    }

    pub fn insert(&mut self, map: &Arc<TableMap>, value: T) {
        if self.bytes >= self.bytes_max {
            self.clear();
        }
        self.bytes += map_bytes(map);
        self.known.insert(address(map), (Arc::clone(map), value));
    }

    pub fn clear(&mut self) {
        self.known.clear();
        self.bytes = 0;
    }
}

fn address(map: &Arc<TableMap>) -> usize {
    Arc::as_ptr(map) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Log, TestTable};

    fn map() -> Arc<TableMap> {
        let mut log = Log::mysql();
        log.map(&TestTable::new(1, "t", "id:int v:int", &[&[0]]));
        let (event, ..) = log.events.last().unwrap();
        Arc::new(TableMap::decode(event, &log.format).unwrap())
    }

    #[test]
    fn starts_over_when_full() {
        let mut known = TableMapCache::new(4 * map_bytes(&map()));
        let maps: Vec<_> = (0..5).map(|_| map()).collect();
        for (number, map) in maps.iter().take(4).enumerate() {
            known.insert(map, number);
        }
        assert!(maps.iter().take(4).enumerate().all(|(number, map)| known.get(map) == Some(&number)));
        known.insert(&maps[4], 4);
        assert_eq!((known.get(&maps[0]), known.get(&maps[4])), (None, Some(&4)));
        assert_eq!(Arc::strong_count(&maps[0]), 1, "let go of");
    }
}
