//! CREATE, ALTER and DROP DATABASE.

use super::super::refusal::Refusal;
use super::super::removals::Removal;
use super::super::renames::SchemaTarget;
use super::super::rules::Extent;
use super::{Fate, Judge};
use crate::sql::references::database;
use crate::sql::{DdlKind, mentions};

impl Judge<'_> {
    /// A schema is made where some of it may be taken. It is dropped only where all of it is, and nothing else is there.
    pub(super) fn database(&self, kind: DdlKind) -> Result<Fate, Refusal> {
        let Some((named, if_not_exists_at)) = database(self.sql, self.mode) else {
            return Err(Refusal::not_understood("a statement about a schema"));
        };
        let schema = named.as_ref().map_or(&self.schema, |named| &named.object.name);
        let extent = self.filter.extent(schema);
        if extent == Extent::Nothing {
            return Ok(Fate::LeftOut(Some(format!("nothing of the schema {schema} is taken"))));
        }
        if let Some(rename) = self.filter.renames.taken_schema(schema) {
            return Err(Refusal::collides(&format!("the schema {schema}"), &rename.to_string()));
        }
        let target = self.filter.renames.default_target(schema);
        let is_shared = self.filter.renames.shares_schema(&target);
        let is_whole = extent == Extent::All && self.filter.schema_target(schema) == SchemaTarget::One(target.clone());
        let drops = kind == DdlKind::DropDatabase
            || kind == DdlKind::CreateDatabase && if_not_exists_at.is_none() && mentions(self.sql, b"replace");
        if drops && (is_shared || !is_whole) {
            let why = if is_shared {
                "several schemas of the source are one on the target"
            } else {
                "only a part of it is taken"
            };
            return Err(Refusal::new(
                format!("the source drops the schema {schema}, of which the target may have more: {why}"),
                "drop on the target by hand what came from this schema, and leave the transaction out (heddle channel skip)",
            ));
        }
        if kind == DdlKind::AlterDatabase && is_shared {
            return Err(Refusal::new(
                format!(
                    "the source changes the schema {schema}, and several schemas of the source are one on the target"
                ),
                "change it on the target by hand, if it shall be so there, and leave the transaction out (heddle channel skip)",
            ));
        }
        let own = self.filter.renames.default_target(&self.schema);
        let mut edits = super::Edits::new(self.sql, self.mode, own);
        if let Some(named) = &named
            && target != named.object.name
        {
            edits.token(named.name_at.clone(), &target);
        }
        // Another schema of the source may have made it, or the operator; or it was kept.
        let may_be_there = is_shared
            || extent == Extent::Some
            || target != *schema
            || self.filter.changes.left_out.contains(Removal::DropDatabase);
        if let Some(at) = if_not_exists_at
            && may_be_there
        {
            edits.insert(at, " IF NOT EXISTS".to_owned());
        }
        self.fate(edits)
    }
}
