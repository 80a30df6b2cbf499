//! Triggers of the target's tables that the account is not shown. Rows as SQL would fire them. Never looks for them.

use engine::intake::Pattern;

/// What becomes of rows of tables whose triggers the account is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HiddenTriggers {
    /// They are refused.
    Refused,
    /// Somebody says that these tables have no triggers.
    NoneOn(Vec<Pattern>),
    /// Somebody says that there is none.
    None,
}

impl HiddenTriggers {
    pub fn are_none_on(&self, schema: &str, table: &str) -> bool {
        match self {
            Self::Refused => false,
            Self::NoneOn(patterns) => patterns.iter().any(|pattern| pattern.matches(schema, table)),
            Self::None => true,
        }
    }
}
