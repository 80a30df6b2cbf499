//! Headings of groups of flags, in help and in docs/commands.md.

/// Flags that few need: below the everyday ones.
pub const EXPERT: &str = "For experts";
