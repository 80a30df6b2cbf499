//! The target as the channel sees it.

pub(in crate::mysql) mod check_definitions;
