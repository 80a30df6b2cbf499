//! What somebody asks of a switch.

use std::time::Duration;

use copy::compare;
use output::say;
use wire::ConnectOptions;

pub struct Request<'a> {
    pub source: ConnectOptions,
    pub target: ConnectOptions,
    /// Heddle's channel on the target; `None`: the only one.
    pub channel: Option<String>,
    pub task: Task,
    pub closing: ClosingMethod,
    /// For each wait: until the source is read-only, and until the target has applied all.
    pub timeout: Duration,
    /// Under which the source's log is read.
    pub server_id: u32,
    /// Rows are compared before the target is written to.
    pub comparison: Option<Comparison<'a>>,
    pub after: AfterSteps,
    /// People read what happens.
    pub talk: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    Switch,
    /// Says what would be done and what there is. Changes nothing.
    DryRun,
    /// Sets back what an interrupted switch, or one whose target was not written to since, has changed.
    Undo,
}

/// How the source comes to take no writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosingMethod {
    /// Heddle makes it read-only where its account may, else it waits for the user.
    ReadOnly,
    /// The user makes it read-only.
    Waiting,
    /// The user says that nobody writes. Only the log shows it.
    Stopped,
}

pub struct Comparison<'a> {
    pub request: compare::Request,
    pub choice: &'a dyn compare::Choice,
}

/// What is done once the target has everything.
#[derive(Clone, Debug, Default)]
pub struct AfterSteps {
    pub makes_writable: bool,
    pub enables_events: bool,
    /// The source is made ready for the channel back.
    pub prepares_return: bool,
    pub return_command: ReturnCommand,
}

/// The command that starts a channel back, without its start. Words of a shell: `heddle replicate --from TARGET --to SOURCE …`.
#[derive(Clone, Debug, Default)]
pub struct ReturnCommand {
    /// `heddle`, and flags that every command has.
    pub program: Vec<String>,
    pub from: String,
    pub to: String,
    /// Flags behind the channel's name and start.
    pub options: Vec<String>,
}

impl Request<'_> {
    /// What happens, for people or for the log.
    pub fn say(&self, text: &str) {
        if self.talk {
            say!("{text}");
        } else {
            tracing::info!("{text}");
        }
    }
}
