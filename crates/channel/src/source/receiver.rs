//! The receiver: a live source's events into the relay log.
//!
//! One thread reads the socket (`socket`), one appends what has come and publishes it (`append`), a third makes it durable meanwhile
//! (`relay_sync`). Little work the first thread does itself, up to the target ([`crate::flow::handoff`]). After a lost connection the receiver
//! goes on behind the last whole transaction that it has received.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;
use engine::failure::{Failure, FailureKind};
use relay::RelayWriter;

use super::append::{RelayEnd, StreamAppender};
use super::damage::Damage;
use super::membership::Membership;
use super::relay_sync::{Publisher, RelaySync};
use super::socket::{self, Stages};
use super::source_end::{self, EndFlag, QueryPolicy};
use super::stream_end::StreamEnd;
use super::stream_writer::relay_failure;
use super::upstream::{OpenStream, Upstream};
use crate::errors::exited_unexpectedly;
use crate::flow::handoff::{Handoff, Wake};
use crate::flow::measures::Measures;
use crate::flow::memory::budget::Budget;
use crate::flow::signals::Signals;
use wire::reach::Backoff;

/// Batches between the two threads, and bytes in them; a larger event is alone in the queue.
const QUEUE_BATCHES: usize = 256;
const QUEUE_BYTES: u64 = 16 << 20;
const POLL: Duration = Duration::from_millis(100);

pub struct Receiver {
    upstream: Upstream,
    writer: RelayWriter,
    relay_sync: RelaySync,
    /// For how long a source that is gone is tried again.
    retry_for: Duration,
    signals: Arc<Signals>,
    measures: Arc<Measures>,
    stop: Arc<AtomicBool>,
    query: QueryPolicy,
    /// Of one of several nodes.
    membership: Option<Membership>,
}

impl Receiver {
    pub fn new(
        upstream: Upstream,
        writer: RelayWriter,
        relay_sync: RelaySync,
        retry_for: Duration,
        signals: Arc<Signals>,
        measures: Arc<Measures>,
    ) -> Self {
        Self {
            upstream,
            writer,
            relay_sync,
            retry_for,
            signals,
            measures,
            stop: Arc::default(),
            query: QueryPolicy::WhileBehind,
            membership: None,
        }
    }

    /// Ends when the source is no member of its group any more: then nothing comes from it, and it says nothing.
    pub fn of_member(self) -> Self {
        Self { membership: Some(Membership::default()), ..self }
    }

    /// Ends when this is set, and asks all the while how long the source's log is.
    pub fn of_standby(self, stop: &Arc<AtomicBool>) -> Self {
        Self { stop: Arc::clone(stop), query: QueryPolicy::Always, ..self }
    }

    /// Set it to end the receiver.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Until told to stop, or for good. `reading`: who reads the relay log.
    pub fn run(self, reading: &dyn Wake) -> Result<(), Failure> {
        let (publisher, syncs) = Publisher::new(self.relay_sync, Arc::clone(&self.measures));
        let ended = AtomicBool::default();
        std::thread::scope(|scope| {
            let measures = Arc::clone(&self.measures);
            scope.spawn(move || {
                for syncing in &syncs {
                    let (since, received) = (Instant::now(), measures.received_so_far());
                    syncing.run();
                    measures.synced(since.elapsed());
                    measures.durable(received);
                }
            });
            let (options, ended) = (self.upstream.options().clone(), &ended);
            let (signals, measures) = (Arc::clone(&self.signals), Arc::clone(&self.measures));
            let _ending = EndFlag(ended);
            let query = self.query;
            if let Some(membership) = self.membership.clone() {
                let options = options.clone();
                scope.spawn(move || membership.watch(&options, ended));
            }
            scope.spawn(move || source_end::watch(&options, query, &signals, &measures, ended));
            self.receive(publisher, reading)
        })
    }

    fn receive(mut self, mut publisher: Publisher, reading: &dyn Wake) -> Result<(), Failure> {
        let mut attempts = 0_u32;
        let mut lost_since: Option<Instant> = None;
        let mut damage = Damage::default();
        loop {
            let (ended, events) = self.stream(&mut publisher, reading);
            if let Some(left) = self.membership.as_ref().and_then(Membership::left) {
                return Err(left);
            }
            if events > 0 && !matches!(ended, StreamEnd::Damaged(_)) {
                attempts = 0;
                lost_since = None;
            }
            let ended = match ended {
                StreamEnd::Damaged(why) => {
                    let behind = self.writer.resume_position().map(|point| point.position);
                    damage.seen(behind, why)
                }
                ended => ended,
            };
            match ended {
                StreamEnd::Stopped => break,
                StreamEnd::Failed(failure) => return Err(failure),
                StreamEnd::Lost(why) | StreamEnd::Damaged(why) => {
                    let since = *lost_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > self.retry_for {
                        return Err(Failure::new(
                            FailureKind::ConnectionLost,
                            format!("the source can not be reached: {why}"),
                        )
                        .remedy("when it is back, run the same command again"));
                    }
                    self.signals.source().lost(&why);
                    attempts = attempts.saturating_add(1);
                    let pause = Backoff::SOURCE.before(attempts);
                    self.signals.source().tries_in(pause);
                    if self.pause(pause) {
                        break;
                    }
                }
            }
        }
        self.writer.close().map_err(|error| relay_failure(&error))
    }

    /// Sleeps. True: it is time to stop.
    fn pause(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if self.stop.load(Ordering::Relaxed) {
                return true;
            }
            std::thread::sleep(POLL.min(time));
        }
        self.stop.load(Ordering::Relaxed)
    }

    /// One connection: why it ended, and how many events of the source's log have come through it.
    fn stream(&mut self, publisher: &mut Publisher, reading: &dyn Wake) -> (StreamEnd, u64) {
        let OpenStream { stream, checksum, log } = match self.upstream.open(&mut self.writer, &self.stop) {
            Ok(opened) => opened,
            Err(ended) => return (ended, 0),
        };
        self.signals.source().reached();
        self.signals.set_source_log(log);
        let (shutdown, memory) = (stream.shutdown_handle(), self.upstream.memory());
        if let Some(membership) = &self.membership {
            membership.ends_with(shutdown.clone());
        }
        let (send, received) = bounded(QUEUE_BATCHES);
        let room = Budget::new(QUEUE_BYTES);
        let relay = RelayEnd { writer: &mut self.writer, publisher, reading };
        let handoff =
            Handoff::new(StreamAppender::new(received, &room, relay, &self.signals, &self.measures, &self.stop));
        std::thread::scope(|scope| {
            let stages = Stages { appending: &handoff, reading, memory, heard: self.signals.heard() };
            let (room, stop) = (&room, &*self.stop);
            scope.spawn(move || socket::read(stream, checksum, &send, room, stages, stop));
            let appending = handoff.run_loop();
            shutdown.shutdown();
            // Lets the reader out of a full queue.
            room.close();
            let ended = appending.and_then(StreamAppender::end);
            ended.unwrap_or_else(|| (StreamEnd::Failed(exited_unexpectedly("the receiver thread")), 0))
        })
    }
}
