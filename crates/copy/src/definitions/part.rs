//! Which tables of the source a copy is of: those of a new channel, or those that a channel takes from now on and did not take before.

use engine::intake::{Extent, Filter};

use super::TargetNames;

#[derive(Clone, Copy, Debug, Default)]
pub struct CopyPart<'a> {
    /// What the channel takes when they are there; `None`: all.
    pub taken: Option<&'a Filter>,
    /// What it takes already; `None`: nothing, it is new.
    pub already: Option<&'a Filter>,
}

impl CopyPart<'_> {
    pub fn takes(&self, schema: &str, table: &str) -> bool {
        self.taken.is_none_or(|part| part.takes(schema, table))
            && !self.already.is_some_and(|part| part.takes(schema, table))
    }

    /// How much of a schema. One that was taken in part, and is taken whole, is whole: its views, routines and events are new.
    pub fn extent(&self, schema: &str) -> Extent {
        if self.already.is_some_and(|part| part.extent(schema) == Extent::All) {
            return Extent::Nothing;
        }
        self.taken.map_or(Extent::All, |part| part.extent(schema))
    }

    /// What the channel takes when all is there, as its options; none: all of the source.
    pub fn text(&self) -> String {
        self.taken.map_or_else(String::new, ToString::to_string)
    }

    pub fn names(&self) -> TargetNames {
        TargetNames::new(self.taken)
    }

    /// Why a table that the channel takes already can not stay as it is; `None`: it can.
    pub fn obstacle(&self, schema: &str, table: &str) -> Option<String> {
        let already = self.already.filter(|part| part.takes(schema, table))?;
        if !self.taken.is_none_or(|part| part.takes(schema, table)) {
            return Some(format!(
                "{schema}.{table} is taken by the channel, and not by the new selection: leave tables out first (--selection-changed, without --copy)"
            ));
        }
        let there = already.renames.target(schema, table);
        let then =
            self.taken.map_or_else(|| (schema.to_owned(), table.to_owned()), |part| part.renames.target(schema, table));
        (there != then).then(|| {
            format!(
                "{schema}.{table} is {}.{} on the target, and would be {}.{}: the new selection must not rename it",
                there.0, there.1, then.0, then.1
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use engine::intake::{Rename, Renames, Rules};

    use super::*;

    fn filter(only: &[&str], renames: &[&str]) -> Filter {
        Filter {
            rules: Rules { only: only.iter().map(|text| text.parse().unwrap()).collect(), ..Rules::default() },
            renames: Renames(renames.iter().map(|text| text.parse::<Rename>().unwrap()).collect()),
            ..Filter::default()
        }
    }

    #[test]
    fn only_what_is_new() {
        let (before, after) = (filter(&["a", "b.t"], &[]), filter(&["a", "b", "c.u"], &[]));
        let part = CopyPart { taken: Some(&after), already: Some(&before) };
        for (schema, table, is_new) in [
            ("a", "x", false),
            ("b", "t", false),
            ("b", "x", true),
            ("c", "u", true),
            ("c", "x", false),
            ("d", "x", false),
        ] {
            assert_eq!(part.takes(schema, table), is_new, "{schema}.{table}");
        }
        let extents = ["a", "b", "c", "d"].map(|schema| part.extent(schema));
        assert_eq!(extents, [Extent::Nothing, Extent::All, Extent::Some, Extent::Nothing]);
        let all = CopyPart { taken: None, already: Some(&before) };
        assert!(all.takes("d", "x") && !all.takes("a", "x") && all.extent("d") == Extent::All);
    }

    #[test]
    fn what_is_there_stays() {
        let (before, after) = (filter(&["a", "b"], &["b=c"]), filter(&["b", "d"], &["b=e"]));
        let part = CopyPart { taken: Some(&after), already: Some(&before) };
        assert!(part.obstacle("a", "t").unwrap().starts_with("a.t is taken by the channel"));
        assert!(part.obstacle("b", "t").unwrap().starts_with("b.t is c.t on the target, and would be e.t"));
        assert_eq!(part.obstacle("d", "t"), None);
        assert_eq!(CopyPart { taken: Some(&after), already: None }.obstacle("a", "t"), None);
    }
}
