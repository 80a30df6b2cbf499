//! What a mirror is to do, the handles that it works with, and its outcome.

use std::sync::Arc;
use std::time::Duration;

use binlog::LogPosition;

use super::acknowledger::AckPolicy;
use super::disk::purge::Retention;
use super::monitor::Monitor;
use super::orders::Orders;
use crate::inventory::{Inventory, UnreadFiles};

/// When a mirror ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCondition {
    /// Until it is stopped.
    Stopped,
    /// Up to the end that the source's log has at the beginning.
    SourceEnd,
}

/// The settings of a mirror.
#[derive(Debug, Clone)]
pub struct Plan {
    pub until: EndCondition,
    pub retention: Retention,
    pub unread: UnreadFiles,
    /// How long the files stay that an absent replica needs.
    pub replica_patience: Duration,
    /// How long the source may be away before another server of the list replaces it.
    pub patience: Duration,
    /// This replica's number towards the source, if one was given.
    pub server_id: Option<u32>,
    pub complete: CompleteFiles,
    /// The first of the source's files for an empty folder. `None`: the oldest.
    pub first: Option<Arc<str>>,
}

/// What is done with complete files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompleteFiles {
    Kept,
    Compressed,
}

/// What a mirror has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MirrorOutcome {
    /// The durable end of the files.
    pub position: Option<LogPosition>,
    pub files: usize,
    /// Bytes that came in this run.
    pub bytes: u64,
}

/// Handles that the mirror publishes to and takes orders from.
#[derive(Debug, Clone, Copy)]
pub struct MirrorHandles<'a> {
    /// The mirror publishes here what is durable.
    pub inventory: &'a Inventory,
    pub monitor: &'a Monitor,
    pub orders: &'a Orders,
    pub acks: &'a dyn AckPolicy,
}
