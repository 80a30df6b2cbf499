//! Why a change can neither be applied in part nor left out. Words only.

use std::fmt;

/// What happened, and what the operator can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub what: String,
    pub remedy: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Refusal {
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }

    pub fn not_understood(what: &str) -> Self {
        Self::new(
            format!(
                "{what} is not understood well enough to tell which tables it touches, and the channel has only a part of the source"
            ),
            "do on the target by hand what belongs to the selection, and leave the transaction out (heddle channel skip)",
        )
    }

    /// `what` needs a table that is left out.
    pub fn crosses(what: &str, left_out: &str) -> Self {
        Self::new(
            format!("{what} {left_out}, which the selection leaves out"),
            "do on the target by hand what belongs to the selection, and leave the transaction out (heddle channel skip); or take that table, too, with its rows",
        )
    }

    /// Two tables of the source are one on the target, and nobody has asked for that.
    pub fn collides(name: &str, rename: &str) -> Self {
        Self::new(
            format!("{name} of the source keeps its name, and --rename {rename} gives that name to another table"),
            format!(
                "leave {name} out (--ignore), rename it, or merge both on purpose: name it in a --rename to the same name"
            ),
        )
    }

    /// Several tables of the source are one on the target.
    pub fn shared(what: &str, name: &str) -> Self {
        Self::new(
            format!("{what} {name}, which is one table for several of the source"),
            "once each of the source's tables has it, do it once on the target by hand; leave the transaction out for each of them (heddle channel skip), or begin with --ddl skip",
        )
    }
}
