//! How Heddle prints: standard output and standard error, escaped; lines of JSON; numbers, times and words of a shell.
//!
//! It decides the form alone. What a report says is beside its subject, in the crates above.

pub mod escaping;
pub mod json_log;
pub mod log_event;
pub mod numbers;
pub mod shell;
pub mod streams;

/// `println!` that does not panic.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::streams::line(format_args!($($text)*)) };
}

/// `eprintln!` that does not panic.
#[macro_export]
macro_rules! complain {
    ($($text:tt)*) => { $crate::streams::complaint(format_args!($($text)*)) };
}
