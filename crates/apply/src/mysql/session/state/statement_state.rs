//! The session state of a statement of the source, which a session may keep for the next statement.

/// As `statements::execute::context` sets it for a statement.
#[derive(Debug)]
pub struct SessionState {
    /// What has set it.
    frame: String,
    /// One statement, which takes it back.
    reset: String,
    /// That one waits to be sent.
    ends: bool,
}

impl SessionState {
    pub fn new(frame: String, reset: String) -> Self {
        Self { frame, reset, ends: false }
    }
}

/// That of one session. None: Heddle's own settings, or what somebody takes back.
#[derive(Debug, Default)]
pub struct KeptState(Option<SessionState>);

impl KeptState {
    /// Whether the session has the state that this text sets, and nothing else.
    pub fn is(&self, frame: &str) -> bool {
        self.0.as_ref().is_some_and(|kept| kept.frame == frame && !kept.ends)
    }

    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    pub fn set(&mut self, state: Option<SessionState>) {
        self.0 = state;
    }

    /// What takes it back; then nothing is known of it.
    pub fn take_reset(&mut self) -> Option<String> {
        self.0.take().map(|kept| kept.reset)
    }

    /// What takes it back, for the caller to send. It is known until [`KeptState::forget_ended`], so that an error leaves nothing behind.
    pub fn end(&mut self) -> Option<&str> {
        let kept = self.0.as_mut().filter(|kept| !kept.ends)?;
        kept.ends = true;
        Some(&kept.reset)
    }

    /// What was to be sent has been executed.
    pub fn forget_ended(&mut self) {
        self.0.take_if(|kept| kept.ends);
    }
}
