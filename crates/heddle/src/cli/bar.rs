//! How far something long is: a part of the whole, the rate, the time left.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar on a terminal, nothing elsewhere.
pub struct Bar {
    bar: ProgressBar,
    done: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Bar {
    /// Of so many bytes that are read.
    pub fn of_bytes(bytes: u64, read: &Arc<AtomicU64>) -> Self {
        let template = "{bar:40} {percent:>3}%  {bytes} of {total_bytes}  {bytes_per_sec}  {eta} left";
        let read = Arc::clone(read);
        Self::start(bytes, ProgressStyle::with_template(template).ok(), String::new(), move || {
            read.load(Ordering::Relaxed)
        })
    }

    /// `position` says how far it is. Without a style it is the library's own.
    pub fn start(
        length: u64,
        style: Option<ProgressStyle>,
        message: String,
        position: impl Fn() -> u64 + Send + 'static,
    ) -> Self {
        Self::draw(move || length, style, message, position)
    }

    /// The same where the length is known later, or may change.
    pub fn growing(
        length: impl Fn() -> u64 + Send + 'static,
        style: Option<ProgressStyle>,
        position: impl Fn() -> u64 + Send + 'static,
    ) -> Self {
        Self::draw(length, style, String::new(), position)
    }

    fn draw(
        length: impl Fn() -> u64 + Send + 'static,
        style: Option<ProgressStyle>,
        message: String,
        position: impl Fn() -> u64 + Send + 'static,
    ) -> Self {
        const DRAW_EVERY: std::time::Duration = std::time::Duration::from_millis(100);
        let done = Arc::new(AtomicBool::new(false));
        if !std::io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), done, thread: None };
        }
        let bar = ProgressBar::with_draw_target(Some(length()), ProgressDrawTarget::stderr());
        if let Some(style) = style {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(message);
        let (drawn, ended) = (bar.clone(), Arc::clone(&done));
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                drawn.set_length(length());
                drawn.set_position(position());
                std::thread::park_timeout(DRAW_EVERY);
            }
        });
        // Without a thread there is no bar, which is no reason to stop.
        Self { bar, done, thread: thread.ok() }
    }

    pub fn finish(self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("the progress thread has panicked");
            }
        }
        self.bar.finish_and_clear();
    }
}
