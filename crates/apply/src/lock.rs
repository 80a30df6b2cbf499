//! Locking without poisoning: the values behind these locks are whole at any moment.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A panic elsewhere ends the run. Until then its locks can be taken.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
