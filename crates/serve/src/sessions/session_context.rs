//! What all sessions of a server share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::groups::Groups;
use super::registry::Registry;
use crate::accounts::Book;
use crate::inventory::Inventory;
use crate::mirror::Monitor;
use crate::queries::ServerValues;
use crate::retag::stream::TagMonitor;
use crate::semisync::Acks;

/// What all sessions share.
#[derive(Debug)]
pub(crate) struct SessionContext {
    pub(crate) inventory: Arc<Inventory>,
    pub(crate) monitor: Arc<Monitor>,
    pub(crate) tags: Option<Arc<TagMonitor>>,
    pub(crate) accounts: Book,
    pub(crate) registry: Registry,
    pub(crate) own: ServerValues,
    pub(crate) acks: Arc<Acks>,
    pub(crate) groups: Groups,
    pub(crate) stop: AtomicBool,
}
