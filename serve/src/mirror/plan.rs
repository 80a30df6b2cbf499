//! What a mirror is to do, with whom, and what it has done.

use std::sync::Arc;
use std::time::Duration;

use binlog::LogPosition;

use super::orders::Orders;
use super::purge::Keep;
use crate::inventory::{Inventory, Unread};
use crate::seen::Monitor;
use crate::semisync::Acks;

/// How long a mirror goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until it is stopped.
    Stopped,
    /// Up to the end that the source's log has at the beginning.
    SourceEnd,
}

/// What a mirror does.
#[derive(Debug, Clone)]
pub struct Plan {
    pub until: Until,
    pub keep: Keep,
    pub unread: Unread,
    /// How long the source may be away until another one of the list takes its place.
    pub patience: Duration,
    /// This replica's number towards the source, if one was given.
    pub server_id: Option<u32>,
    pub complete: Complete,
    /// Of the source's files the first one that an empty folder gets. `None`: the oldest.
    pub first: Option<Arc<str>>,
}

/// What becomes of a file that is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complete {
    Kept,
    Compressed,
}

/// What a mirror has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// Up to where the files are durable, and equal to the source's.
    pub position: Option<LogPosition>,
    pub files: usize,
    /// Bytes that came in this run.
    pub bytes: u64,
}

/// Who is told what the mirror does, and who tells it what to do.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// What is durable is published here.
    pub inventory: &'a Inventory,
    pub monitor: &'a Monitor,
    pub orders: &'a Orders,
    /// What other mirrors have.
    pub acks: &'a Acks,
}
