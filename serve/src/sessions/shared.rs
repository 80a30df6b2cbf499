//! What all sessions of a server share.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use wire::server::RsaKey;

use super::groups::Groups;
use super::registry::Registry;
use crate::accounts::Book;
use crate::inventory::Inventory;
use crate::queries::Own;
use crate::seen::Monitor;
use crate::semisync::Acks;

/// What all sessions share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) inventory: Arc<Inventory>,
    pub(super) monitor: Arc<Monitor>,
    pub(super) accounts: Book,
    pub(super) tls: Option<Arc<rustls::ServerConfig>>,
    pub(super) rsa: Arc<OnceLock<RsaKey>>,
    pub(super) registry: Registry,
    pub(super) own: Own,
    pub(super) acks: Arc<Acks>,
    pub(super) groups: Groups,
    pub(super) stop: AtomicBool,
}
