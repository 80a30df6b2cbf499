//! What follows from what is seen of the other mirror. Pure: it is told the time.

use std::time::{Duration, Instant};

/// No answer for so long: it is gone, or its machine is.
const SILENCE: Duration = Duration::from_millis(3500);
/// Nobody has listened there for so long.
const GONE: Duration = Duration::from_millis(400);
/// The other one may be starting, too.
const START: Duration = Duration::from_secs(3);
/// It has not heard the source for so long, as it says, and this one does.
const DEAF: Duration = Duration::from_millis(1500);

/// What is seen of the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerState {
    /// It lets replicas attach, and hears the source.
    Serves,
    /// It lets replicas attach, and does not hear the source.
    Deaf,
    /// It is there, and nothing more is known of it.
    Answers,
    /// Nobody listens.
    Gone,
    /// No answer.
    Silent,
}

/// How this mirror sees the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceContact {
    Heard,
    Lost,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Wait,
    /// It is this one's turn: nobody listens there.
    Gone,
    /// No answer comes.
    Silent,
    /// It has lost the source, and this one has not.
    Deaf,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Watchman {
    /// Before that the other one may be starting.
    patient_until: Instant,
    /// It was there, or this one has begun.
    answered: Instant,
    gone: Option<Instant>,
    deaf: Option<Instant>,
    /// The other one hears the source, and this one does not.
    outdone: Option<Instant>,
}

impl Watchman {
    /// `jitter`: so much more patience at the start.
    pub(super) fn new(now: Instant, jitter: Duration) -> Self {
        Self { patient_until: now + START + jitter, answered: now, gone: None, deaf: None, outdone: None }
    }

    /// What was seen before counts no more: it was not looked for a while.
    pub(super) fn forget(&mut self, now: Instant) {
        *self = Self { patient_until: now, ..Self::new(now, Duration::ZERO) };
    }

    /// While this one waits.
    pub(super) fn judge(&mut self, now: Instant, seen: PeerState, source: SourceContact) -> Verdict {
        if seen != PeerState::Gone {
            self.gone = None;
        }
        if seen != PeerState::Deaf || source == SourceContact::Lost {
            self.deaf = None;
        }
        let lasts = |since: &mut Option<Instant>, time: Duration| now.duration_since(*since.get_or_insert(now)) >= time;
        match seen {
            PeerState::Serves | PeerState::Deaf | PeerState::Answers => {
                self.answered = now;
                self.patient_until = now;
                if seen == PeerState::Deaf && source == SourceContact::Heard && lasts(&mut self.deaf, DEAF) {
                    return Verdict::Deaf;
                }
                Verdict::Wait
            }
            PeerState::Gone if lasts(&mut self.gone, GONE) && now >= self.patient_until => Verdict::Gone,
            PeerState::Silent if now.duration_since(self.answered) >= SILENCE && now >= self.patient_until => {
                Verdict::Silent
            }
            PeerState::Gone | PeerState::Silent => Verdict::Wait,
        }
    }

    /// While replicas attach here, and this one does not hear the source: whether they had better attach to the other one.
    pub(super) fn is_to_step_back(&mut self, now: Instant, seen: PeerState) -> bool {
        if seen != PeerState::Serves {
            self.outdone = None;
            return false;
        }
        now.duration_since(*self.outdone.get_or_insert(now)) >= GONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Duration = Duration::from_millis(250);

    /// Looks for `time`; the first verdict that is not to wait, and when.
    fn looks(
        watchman: &mut Watchman,
        from: Instant,
        time: Duration,
        source: SourceContact,
        see: impl Fn(Duration) -> PeerState,
    ) -> Option<(Verdict, Duration)> {
        let mut at = Duration::ZERO;
        while at <= time {
            match watchman.judge(from + at, see(at), source) {
                Verdict::Wait => at += LOOK,
                other => return Some((other, at)),
            }
        }
        None
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn who_answers_keeps_the_replicas() {
        let now = Instant::now();
        let mut watchman = Watchman::new(now, Duration::ZERO);
        assert_eq!(looks(&mut watchman, now, LONG, SourceContact::Heard, |_| PeerState::Serves), None);
        // A lost answer, or a restart of its listener, is nothing.
        let hiccups = |at: Duration| match at.as_millis() % 3000 {
            0 => PeerState::Silent,
            1000 => PeerState::Gone,
            _ => PeerState::Serves,
        };
        assert_eq!(looks(&mut watchman, now + LONG, LONG, SourceContact::Heard, hiccups), None);
    }

    #[test]
    fn who_is_gone_is_followed_within_a_second() {
        let now = Instant::now();
        let mut watchman = Watchman::new(now, Duration::ZERO);
        let dies = |at: Duration| if at < Duration::from_secs(10) { PeerState::Serves } else { PeerState::Gone };
        let (verdict, at) = looks(&mut watchman, now, LONG, SourceContact::Heard, dies).expect("a verdict");
        assert!(verdict == Verdict::Gone && at <= Duration::from_millis(10_500), "{at:?}");
    }

    #[test]
    fn who_is_silent_is_followed_within_four() {
        let now = Instant::now();
        let mut watchman = Watchman::new(now, Duration::ZERO);
        let hangs = |at: Duration| if at < Duration::from_secs(10) { PeerState::Serves } else { PeerState::Silent };
        let (verdict, at) = looks(&mut watchman, now, LONG, SourceContact::Lost, hangs).expect("a verdict");
        assert!(verdict == Verdict::Silent && at <= Duration::from_secs(14), "{at:?}");
    }

    #[test]
    fn at_the_start_the_other_one_has_time() {
        let now = Instant::now();
        let jitter = Duration::from_millis(700);
        let mut watchman = Watchman::new(now, jitter);
        let (verdict, at) =
            looks(&mut watchman, now, LONG, SourceContact::Heard, |_| PeerState::Gone).expect("a verdict");
        assert!(verdict == Verdict::Gone && at >= START + jitter && at < START + jitter + LOOK, "{at:?}");
    }

    #[test]
    fn who_lost_the_source_loses_its_replicas_to_one_that_hears_it() {
        let now = Instant::now();
        let mut watchman = Watchman::new(now, Duration::ZERO);
        assert_eq!(looks(&mut watchman, now, LONG, SourceContact::Lost, |_| PeerState::Deaf), None);
        let later = now + LONG + LOOK;
        let (verdict, at) =
            looks(&mut watchman, later, LONG, SourceContact::Heard, |_| PeerState::Deaf).expect("a verdict");
        assert!(verdict == Verdict::Deaf && at >= DEAF && at < DEAF + 2 * LOOK, "{at:?}");
        // The other way round.
        let mut watchman = Watchman::new(now, Duration::ZERO);
        assert!(!watchman.is_to_step_back(now, PeerState::Serves));
        assert!(!watchman.is_to_step_back(now + LOOK, PeerState::Answers));
        assert!(!watchman.is_to_step_back(now + 2 * LOOK, PeerState::Serves));
        assert!(watchman.is_to_step_back(now + 2 * LOOK + GONE, PeerState::Serves));
    }
}
