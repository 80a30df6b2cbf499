//! Orders to a running mirror: to follow another source. An order interrupts the stream, is tried once, and is answered. If the other source cannot be followed, nothing changes.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::failure::{Failure, FailureKind};
use wire::ShutdownHandle;

use super::source::Upstream;

type Answer = Result<String, Failure>;

/// See the module. One for each mirror.
#[derive(Debug, Default)]
pub struct Orders(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    pending: Option<Order>,
    /// The mirror has ended.
    is_closed: bool,
    /// Of the stream that is under way.
    stream: Option<ShutdownHandle>,
}

#[derive(Debug)]
pub(super) struct Order {
    pub(super) upstreams: Vec<Upstream>,
    answer: Mutex<Option<SyncSender<Answer>>>,
}

impl Order {
    /// The first answer counts.
    pub(super) fn answer(&self, answer: Answer) {
        let waiting = self.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waiting) = waiting {
            // Who has asked may be gone.
            let _ = waiting.send(answer);
        }
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl Orders {
    /// Follows one of these sources from now on; says which server it is. It waits for the answer at most so long.
    ///
    /// # Errors
    /// None of them can be followed; the mirror goes on with those that it had.
    pub fn follow(&self, upstreams: Vec<Upstream>, at_most: Duration) -> Answer {
        let (answer, answered): (_, Receiver<Answer>) = sync_channel(1);
        {
            let mut state = self.state();
            if state.pending.is_some() {
                return Err(Failure::new(FailureKind::Refused, "another source is about to be followed")
                    .remedy("run the same command again in a moment"));
            }
            if state.is_closed {
                return Err(ended());
            }
            state.pending = Some(Order { upstreams, answer: Mutex::new(Some(answer)) });
            if let Some(stream) = &state.stream {
                stream.shutdown();
            }
        }
        match answered.recv_timeout(at_most) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Disconnected) => Err(ended()),
            Err(RecvTimeoutError::Timeout) => {
                self.state().pending = None;
                Err(Failure::new(FailureKind::ConnectionLost, "the mirror did not come to it in time")
                    .remedy("see `heddle status` and the server's log; run the same command again"))
            }
        }
    }

    /// Nothing is followed any more; who waits for an answer gets one.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.pending = None;
    }

    pub(super) fn is_pending(&self) -> bool {
        self.state().pending.is_some()
    }

    pub(super) fn take(&self) -> Option<Order> {
        self.state().pending.take()
    }

    /// An order ends this stream, until what is returned is dropped.
    pub(super) fn interrupt(&self, stream: &ShutdownHandle) -> StreamGuard<'_> {
        let mut state = self.state();
        if state.pending.is_some() {
            stream.shutdown();
        }
        state.stream = Some(stream.clone());
        StreamGuard(self)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ended() -> Failure {
    Failure::new(FailureKind::Refused, "the mirror has ended").remedy("see its log; start it with the new source")
}

pub(super) struct StreamGuard<'a>(&'a Orders);

impl Drop for StreamGuard<'_> {
    fn drop(&mut self) {
        self.0.state().stream = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn an_order_is_answered_once() {
        let orders = Arc::new(Orders::default());
        assert!(!orders.is_pending() && orders.take().is_none());
        let asking = Arc::clone(&orders);
        let asked = std::thread::spawn(move || asking.follow(Vec::new(), Duration::from_secs(60)));
        while !orders.is_pending() {
            std::thread::yield_now();
        }
        assert!(orders.follow(Vec::new(), Duration::ZERO).unwrap_err().message.contains("about to be"));
        let order = orders.take().unwrap();
        assert!(!order.is_answered());
        order.answer(Ok("two".to_owned()));
        order.answer(Ok("three".to_owned()));
        assert_eq!(asked.join().unwrap().unwrap(), "two");
        // Nobody comes to it.
        let late = orders.follow(Vec::new(), Duration::ZERO).unwrap_err();
        assert!(late.kind == FailureKind::ConnectionLost && !orders.is_pending());
        orders.close();
        assert!(orders.follow(Vec::new(), Duration::from_secs(60)).unwrap_err().message.contains("has ended"));
    }
}
