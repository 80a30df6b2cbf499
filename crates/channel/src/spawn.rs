//! Starts threads.

use std::thread::JoinHandle;

use anyhow::{Context, Result};

/// `name`: as debuggers and `top` show it.
pub fn spawn<T: Send + 'static>(name: &str, run: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).with_context(|| format!("starting thread {name}"))
}
