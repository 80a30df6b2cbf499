//! XA transactions whose commit comes after their prepare, in a transaction of its own.

pub(in crate::mysql) mod connections;
pub(in crate::mysql) mod deferred_branches;
pub(in crate::mysql) mod end;
pub(in crate::mysql) mod prepare;
