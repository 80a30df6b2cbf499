//! Says, once, that more tables are in use than a session of a MySQL target keeps open. Asks and changes nothing.
//!
//! `table_open_cache` is shared out to `table_open_cache_instances` (16 by default), and a session uses one of these: of 4,000 tables it keeps 250 open (MySQL manual,
//! "How MySQL Opens and Closes Tables"). Beyond that each group opens its tables anew.

/// What the target was asked for: two numbers.
pub const SQL: &str = "SELECT @@table_open_cache, @@table_open_cache_instances";

#[derive(Clone, Copy, Debug, Default)]
pub struct OpenTables {
    /// `None`: not known, or there is nothing more to say.
    cache: Option<Cache>,
}

#[derive(Clone, Copy, Debug)]
struct Cache {
    tables: usize,
    instances: usize,
}

impl OpenTables {
    /// Where there is one instance only, each session has all of the cache.
    pub fn new(tables: usize, instances: usize) -> Self {
        Self { cache: (instances > 1).then_some(Cache { tables, instances }) }
    }

    /// So many tables are in use. The message, the first time that they are too many.
    pub fn too_many(&mut self, in_use: usize) -> Option<String> {
        let Cache { tables, instances } = self.cache?;
        let per_session = tables / instances;
        if in_use <= per_session {
            return None;
        }
        self.cache = None;
        Some(format!(
            "rows of more than {per_session} tables come, and a session of the target keeps no more open (table_open_cache {tables} in table_open_cache_instances \
             {instances}): the others are opened anew for each group, which takes longer than their rows do. Where the target is to be faster, set \
             table_open_cache_instances=1 in its option file, and restart it"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_once_and_only_with_several_instances() {
        let mut open = OpenTables::new(4000, 16);
        assert_eq!(open.too_many(250), None);
        assert!(open.too_many(251).is_some_and(|said| said.contains("more than 250 tables")));
        assert_eq!(open.too_many(252), None);
        assert_eq!(OpenTables::new(4000, 1).too_many(100_000), None);
        assert_eq!(OpenTables::default().too_many(100_000), None);
    }
}
