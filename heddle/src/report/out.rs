//! Standard output, whose reader may have gone (`| head`): then there is nobody to tell, and that is no failure.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

pub fn line(text: Arguments<'_>) {
    let written = writeln!(std::io::stdout().lock(), "{text}");
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        tracing::error!("writing to standard output: {error}");
    }
}

/// `println!` that does not panic.
macro_rules! say {
    ($($text:tt)*) => { $crate::report::out::line(format_args!($($text)*)) };
}
pub(crate) use say;
