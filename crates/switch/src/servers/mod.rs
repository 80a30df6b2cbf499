//! Both servers as they are: what is asked of them, what is changed there, and the words for it.

pub mod coordinates;
pub mod events;
pub mod read_only_state;
pub mod source;
pub mod target;

use wire::{ConnectOptions, Interrupt};

/// For what has to be done when the process is asked to end.
pub fn uninterrupted(options: &ConnectOptions) -> ConnectOptions {
    let mut options = options.clone();
    options.limits.interrupt = Interrupt::default();
    options
}
