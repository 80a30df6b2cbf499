//! Standard output and standard error, whose reader may have gone (`| head`): then there is nobody to tell, and that is no
//! failure.

use std::fmt::Arguments;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use crate::escaping::{in_json, on_screen};
use crate::json_log;

/// Something was said that could not be written, and not because nobody reads it.
static LOST: OnceLock<Loss> = OnceLock::new();

/// Why a part of a report is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A full disk, say: [`binlog::errno`].
    Passing,
    Other,
}

pub fn line(text: Arguments<'_>) {
    write_line(&on_screen(&text.to_string()));
}

fn write_line(text: &str) {
    let written = writeln!(std::io::stdout().lock(), "{text}");
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
        && LOST.set(if binlog::errno::is_passing(&error) { Loss::Passing } else { Loss::Other }).is_ok()
    {
        complaint(format_args!("heddle: standard output is not whole, writing it failed: {error}"));
    }
}

/// On a terminal: what follows is drawn from the top, on an empty screen.
pub fn clear() {
    let _ = write!(std::io::stdout().lock(), "\x1b[H\x1b[2J");
}

/// A line of JSON. What acts on a terminal stands in its strings alone, as escapes of JSON.
pub fn json(text: &str) {
    write_line(&in_json(text));
}

/// `None`: all that was said on standard output has been written. A report on a full disk is none.
pub fn loss() -> Option<Loss> {
    LOST.get().copied()
}

/// Writes through, and remembers whether its reader has gone.
pub struct Pipe<W> {
    to: W,
    pub gone: bool,
}

impl<W: Write> Pipe<W> {
    pub fn new(to: W) -> Self {
        Self { to, gone: false }
    }

    fn note<T>(&mut self, done: std::io::Result<T>) -> std::io::Result<T> {
        self.gone |= done.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe);
        done
    }
}

impl<W: Write> Write for Pipe<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let done = self.to.write(bytes);
        self.note(done)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let done = self.to.flush();
        self.note(done)
    }
}

/// Shows what acts on a terminal instead of letting it act: for values of rows that go there. Lines end where they end.
pub struct Screen<W: Write>(pub W);

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // Whole lines come; a character that is cut in two is shown as its bytes.
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(on_screen(&text).as_bytes()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Whether what goes there may be coloured: a terminal, unless NO_COLOR (no-color.org) or TERM=dumb says no.
pub fn may_colour(stream: &impl IsTerminal) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// A line on standard error.
pub fn complaint(text: Arguments<'_>) {
    // If nobody reads it there is nowhere else to say it; the exit code remains.
    let text = text.to_string();
    let _ = if json_log::is_json() {
        let line = json_log::json_line("error", &text, serde_json::Map::new());
        writeln!(std::io::stderr().lock(), "{}", in_json(&line))
    } else {
        writeln!(std::io::stderr().lock(), "{}", on_screen(&text))
    };
}

/// A line of another process's standard error, as it is.
pub fn error_line(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", on_screen(text));
}
