//! A mirror on disk: its folders, and the files in them. Nothing here connects to a source.

mod background_sync;
pub(crate) mod epochs;
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod last_file;
pub(crate) mod owner;
pub(crate) mod pack;
pub(crate) mod purge;
