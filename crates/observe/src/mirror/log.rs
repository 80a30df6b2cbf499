//! A line in the log about a running mirror, now and then, where something has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serve::status::{Detail, View};

use super::text::line;

const EVERY: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(500);

/// Until `stop` is set, in a thread of its own.
pub fn start(view: Arc<View>, stop: Arc<AtomicBool>) -> std::io::Result<()> {
    let run = move || {
        let (mut said, mut last) = (Instant::now(), String::new());
        while !stop.load(Ordering::Relaxed) {
            if said.elapsed() >= EVERY {
                said = Instant::now();
                let seen = view.snapshot(Detail::Cheap);
                let now = line(&seen);
                if now != last {
                    match seen.source.why {
                        Some(_) => tracing::warn!("{now}"),
                        None => tracing::info!("{now}"),
                    }
                    last = now;
                }
            }
            thread::sleep(POLL);
        }
    };
    thread::Builder::new().name("mirror log".to_owned()).spawn(run).map(|_| ())
}
