//! When a process that waits takes the channel: rules over what it sees, by its own clock. It asks nobody.

use std::time::{Duration, Instant};

use apply::standby::{ChannelView, Sign, SourceContact};

/// Without another sign for so long, who has the channel is taken for dead. It gives one each second.
pub const SILENCE: Duration = Duration::from_millis(3500);
/// Between two looks that are further apart nothing is known: this process was not there, or the target.
const BLIND: Duration = Duration::from_millis(1500);
/// A sign that changes is of a process that lives, whether or not it holds the lock: it takes it again when it had lost a connection.
const LIVES: Duration = Duration::from_millis(1500);
/// After it could not look, and finds the lock free: the target was gone, and who had the channel comes back, too.
const GRACE: Duration = Duration::from_secs(3);
/// For so long who has handed the channel over leaves it to others.
const YIELDS: Duration = Duration::from_secs(10);
/// For so long the holder may not hear its source before the channel is asked for: it says so only after some seconds.
const SOURCE_LOST: Duration = Duration::from_millis(400);

/// Where a node of the target does not answer, who has the channel may be there: the lease and the progress, which the nodes share, have stood for so long. A process that
/// has lost its node goes on at another one within this time.
const UNSEEN: Duration = Duration::from_secs(8);

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Another process has the channel, or is about to take it.
    Wait,
    /// Nobody has it.
    Free,
    /// Its process gives no sign of life: this connection of it still holds the lock.
    Silent(u64),
    /// Its process does not hear the source, and this one does.
    Ask,
}

/// How it came to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It has not had the channel.
    First,
    /// It has handed the channel over: others come first.
    HandedOver,
    /// Another process has taken the channel from it.
    Lost,
}

pub struct Watchman {
    began: Instant,
    yields: bool,
    /// The last that were seen.
    holder: Option<u64>,
    sign: Option<Sign>,
    /// When the last look was, and when it last saw that somebody lives.
    looked: Instant,
    changed: Instant,
    /// Before that a free lock says nothing.
    free_from: Instant,
    /// Since when the holder does not hear its source.
    source_lost: Option<Instant>,
    /// The holder has given a sign.
    has_signed: bool,
    /// The lease and the progress, as they were seen last.
    recorded: (u64, u64),
}

impl Watchman {
    pub fn new(turn: Turn, now: Instant) -> Self {
        Self {
            began: now,
            yields: turn == Turn::HandedOver,
            holder: None,
            sign: None,
            looked: now,
            changed: now,
            free_from: now,
            source_lost: None,
            has_signed: false,
            recorded: (0, 0),
        }
    }

    /// The target cannot be asked.
    pub fn lost_sight(&mut self, now: Instant) {
        self.free_from = now + GRACE;
    }

    /// `own`: how this process sees the source.
    pub fn judge(&mut self, now: Instant, seen: &ChannelView, own: SourceContact) -> Verdict {
        let is_other = seen.holder.is_some() && seen.holder != self.holder;
        // That a sign is gone is none: its connection has ended.
        let is_sign = seen.sign.is_some() && seen.sign != self.sign;
        let recorded = (seen.epoch, seen.applied);
        let is_recorded = std::mem::replace(&mut self.recorded, recorded) != recorded && seen.is_partial;
        let was_blind = now.duration_since(self.looked) > BLIND;
        if is_other || is_sign || is_recorded || was_blind {
            self.changed = now;
        }
        if was_blind {
            self.lost_sight(now);
        }
        if is_other {
            self.holder = seen.holder;
            self.has_signed = false;
            self.source_lost = None;
        }
        if is_sign {
            self.sign = seen.sign;
            self.has_signed = true;
        }
        self.looked = now;
        let unchanged = now.duration_since(self.changed);
        let Some(holder) = seen.holder else {
            let yields = self.yields && now.duration_since(self.began) < YIELDS;
            let lives = seen.sign.is_some() && unchanged < LIVES || seen.is_partial && unchanged < UNSEEN;
            return if yields || lives || now < self.free_from { Verdict::Wait } else { Verdict::Free };
        };
        // Who has handed it over may still be seen.
        if seen.sign.is_some() {
            self.yields = false;
        }
        if self.has_signed && unchanged >= SILENCE {
            return Verdict::Silent(holder);
        }
        let is_lost = own == SourceContact::Reached && seen.sign.is_some_and(|sign| sign.source == SourceContact::Lost);
        if !is_lost {
            self.source_lost = None;
            return Verdict::Wait;
        }
        let since = *self.source_lost.get_or_insert(now);
        if now.duration_since(since) >= SOURCE_LOST { Verdict::Ask } else { Verdict::Wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REACHED: SourceContact = SourceContact::Reached;
    const LOOK: Duration = Duration::from_millis(200);

    fn held(phase: usize) -> ChannelView {
        let sign = Some(Sign { connection: 8, phase, source: SourceContact::Reached });
        ChannelView { holder: Some(7), sign, epoch: 3, ..ChannelView::default() }
    }

    /// Looks each 200 ms from `from` for `time`; the first verdict that is not to wait, and when.
    fn looks(
        watchman: &mut Watchman,
        from: Instant,
        time: Duration,
        see: impl Fn(Duration) -> ChannelView,
    ) -> Option<(Verdict, Duration)> {
        let mut at = Duration::ZERO;
        while at <= time {
            match watchman.judge(from + at, &see(at), REACHED) {
                Verdict::Wait => {}
                other => return Some((other, at)),
            }
            at += LOOK;
        }
        None
    }

    #[test]
    fn who_gives_signs_keeps_the_channel() {
        let now = Instant::now();
        let mut watchman = Watchman::new(Turn::First, now);
        let living = |at: Duration| held(at.as_secs() as usize % 3);
        assert_eq!(looks(&mut watchman, now, Duration::from_secs(60), living), None);
    }

    #[test]
    fn who_falls_silent_loses_it() {
        let now = Instant::now();
        let mut watchman = Watchman::new(Turn::First, now);
        let dies = |at: Duration| held(at.as_secs().min(5) as usize % 3);
        let (verdict, at) = looks(&mut watchman, now, Duration::from_secs(60), dies).expect("a verdict");
        assert_eq!(verdict, Verdict::Silent(7));
        assert!(at >= Duration::from_secs(5) + SILENCE && at < Duration::from_secs(9), "{at:?}");
    }

    #[test]
    fn a_sign_that_goes_is_none() {
        let now = Instant::now();
        let mut watchman = Watchman::new(Turn::First, now);
        let cut_off = |at: Duration| {
            let sign = held(0).sign.filter(|_| at < Duration::from_secs(2));
            ChannelView { sign, ..held(0) }
        };
        let (verdict, at) = looks(&mut watchman, now, Duration::from_secs(60), cut_off).expect("a verdict");
        assert!(verdict == Verdict::Silent(7) && at < SILENCE + 2 * LOOK, "{verdict:?} {at:?}");
    }

    #[test]
    fn who_never_gave_a_sign_is_of_another_version() {
        let now = Instant::now();
        let mut watchman = Watchman::new(Turn::First, now);
        let mute = |_| ChannelView { sign: None, ..held(0) };
        assert_eq!(looks(&mut watchman, now, Duration::from_secs(60), mute), None);
        let later = now + Duration::from_secs(60) + LOOK;
        let gone = |_| ChannelView::default();
        assert_eq!(looks(&mut watchman, later, Duration::from_secs(60), gone), Some((Verdict::Free, Duration::ZERO)));
    }

    #[test]
    fn who_lost_a_connection_takes_the_lock_again() {
        let now = Instant::now();
        let mut watchman = Watchman::new(Turn::First, now);
        let lockless = |at: Duration| ChannelView { holder: None, ..held(at.as_secs() as usize % 3) };
        assert_eq!(looks(&mut watchman, now, Duration::from_secs(10), lockless), None);
        // It dies.
        let later = now + Duration::from_secs(10) + LOOK;
        let dead = |_| ChannelView { holder: None, ..held(1) };
        let (verdict, at) = looks(&mut watchman, later, Duration::from_secs(10), dead).expect("a verdict");
        assert!(verdict == Verdict::Free && at <= LIVES + LOOK, "{verdict:?} {at:?}");
    }

    #[test]
    fn after_the_target_was_gone_its_holder_comes_first() {
        let now = Instant::now();
        let mut watchman = Watchman::new(Turn::First, now);
        assert_eq!(watchman.judge(now, &held(0), REACHED), Verdict::Wait);
        watchman.lost_sight(now + LOOK);
        assert_eq!(watchman.judge(now + 2 * LOOK, &ChannelView::default(), REACHED), Verdict::Wait);
        let back = |at: Duration| held(at.as_secs() as usize % 3);
        assert_eq!(looks(&mut watchman, now + 3 * LOOK, Duration::from_secs(10), back), None);
        let mut watchman = Watchman::new(Turn::First, now);
        watchman.lost_sight(now);
        let gone = |_| ChannelView::default();
        let (verdict, at) = looks(&mut watchman, now, Duration::from_secs(60), gone).expect("a verdict");
        assert!(verdict == Verdict::Free && at >= GRACE, "{verdict:?} {at:?}");
    }

    #[test]
    fn who_was_not_there_itself_does_not_judge() {
        let now = Instant::now();
        let mut watchman = Watchman::new(Turn::First, now);
        assert_eq!(watchman.judge(now, &held(0), REACHED), Verdict::Wait);
        // This process was stopped for an hour.
        let later = now + Duration::from_secs(3600);
        assert_eq!(watchman.judge(later, &held(0), REACHED), Verdict::Wait);
        assert_eq!(watchman.judge(later + SILENCE, &held(0), REACHED), Verdict::Wait);
    }

    #[test]
    fn who_may_be_at_a_node_that_does_not_answer_lives_while_the_progress_moves() {
        let now = Instant::now();
        let unsure = |applied| ChannelView { epoch: 3, applied, is_partial: true, ..ChannelView::default() };
        let mut watchman = Watchman::new(Turn::First, now);
        assert_eq!(looks(&mut watchman, now, Duration::from_secs(60), |at| unsure(at.as_secs() / 5)), None);
        let later = now + Duration::from_secs(60) + LOOK;
        let (verdict, at) = looks(&mut watchman, later, Duration::from_secs(60), |_| unsure(12)).expect("a verdict");
        assert!(verdict == Verdict::Free && at + LOOK + Duration::from_secs(5) >= UNSEEN, "{verdict:?} {at:?}");
        let mut watchman = Watchman::new(Turn::First, now);
        let (verdict, at) = looks(&mut watchman, now, Duration::from_secs(60), |_| unsure(12)).expect("a verdict");
        assert!(verdict == Verdict::Free && at >= UNSEEN, "{verdict:?} {at:?}");
        // All nodes answer again, and nobody is there.
        let mut watchman = Watchman::new(Turn::First, now);
        assert_eq!(watchman.judge(now, &unsure(12), REACHED), Verdict::Wait);
        let sure = ChannelView { is_partial: false, ..unsure(12) };
        assert_eq!(watchman.judge(now + LOOK, &sure, REACHED), Verdict::Free);
    }

    #[test]
    fn who_handed_it_over_leaves_it_to_others() {
        let now = Instant::now();
        let free = |_| ChannelView::default();
        let mut watchman = Watchman::new(Turn::HandedOver, now);
        let (verdict, at) = looks(&mut watchman, now, Duration::from_secs(60), free).expect("a verdict");
        assert!(verdict == Verdict::Free && at >= YIELDS, "{verdict:?} {at:?}");
        // Another one had it, and is gone.
        let mut watchman = Watchman::new(Turn::HandedOver, now);
        assert_eq!(watchman.judge(now, &ChannelView::default(), REACHED), Verdict::Wait);
        assert_eq!(watchman.judge(now + LOOK, &held(1), REACHED), Verdict::Wait);
        assert_eq!(watchman.judge(now + 2 * LOOK, &ChannelView::default(), REACHED), Verdict::Free);
    }

    #[test]
    fn who_does_not_hear_the_source_is_asked_by_one_that_does() {
        let now = Instant::now();
        let deaf = |at: Duration| {
            let sign = Some(Sign { connection: 8, phase: at.as_secs() as usize % 3, source: SourceContact::Lost });
            ChannelView { sign, ..held(0) }
        };
        let mut watchman = Watchman::new(Turn::First, now);
        let (verdict, at) = looks(&mut watchman, now, Duration::from_secs(60), deaf).expect("a verdict");
        assert_eq!(verdict, Verdict::Ask);
        assert!(at >= SOURCE_LOST && at < SOURCE_LOST + 2 * LOOK, "{at:?}");
        let mut watchman = Watchman::new(Turn::First, now);
        assert_eq!(watchman.judge(now, &deaf(Duration::ZERO), SourceContact::Lost), Verdict::Wait);
        assert_eq!(watchman.judge(now + SOURCE_LOST, &deaf(SOURCE_LOST), SourceContact::Lost), Verdict::Wait);
    }
}
