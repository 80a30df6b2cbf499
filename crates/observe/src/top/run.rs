//! The loop: asks every channel once a second, each in a thread of its own, draws, and ends at a key or a signal. The terminal is left as it was found,
//! after a panic too.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use super::client::Client;
use super::screen::{ChannelState, Screen, draw};

/// Between two looks at the keys.
const KEYS_EVERY: Duration = Duration::from_millis(100);

/// Until `q`, Ctrl-C, or `stop`.
pub fn watch(clients: Vec<Client>, every: Duration, stop: &Arc<AtomicBool>) -> Result<()> {
    let shared = Arc::new(Shared {
        channels: Mutex::new(clients.iter().map(|client| vec![ChannelState::of(client)]).collect()),
        stop: Arc::clone(stop),
    });
    for (number, client) in clients.into_iter().enumerate() {
        let shared = Arc::clone(&shared);
        // It is not waited for: it may be waiting for an answer when all ends.
        let ask = move || shared.ask(number, &client, every);
        std::thread::Builder::new().name("top".to_owned()).spawn(ask).context("a thread")?;
    }
    // Leaves the terminal as it was if it panics.
    let mut terminal = ratatui::try_init().context("the terminal")?;
    let done = show(&mut terminal, &shared);
    stop.store(true, Ordering::Relaxed);
    ratatui::try_restore().context("the terminal")?;
    done
}

fn show(terminal: &mut ratatui::DefaultTerminal, shared: &Shared) -> Result<()> {
    let mut selected = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        let channels = shared.channels().concat();
        selected = selected.min(channels.len().saturating_sub(1));
        terminal.draw(|frame| draw(frame, &Screen { channels: &channels, selected }))?;
        if !event::poll(KEYS_EVERY)? {
            continue;
        }
        let Event::Key(key) = event::read()? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => break,
            KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => break,
            KeyCode::Down | KeyCode::Tab | KeyCode::Char('j') => selected = (selected + 1) % channels.len().max(1),
            KeyCode::Up | KeyCode::BackTab | KeyCode::Char('k') => {
                selected = (selected + channels.len().max(1) - 1) % channels.len().max(1);
            }
            _ => {}
        }
    }
    Ok(())
}

struct Shared {
    /// Of each who is asked.
    channels: Mutex<Vec<Vec<ChannelState>>>,
    stop: Arc<AtomicBool>,
}

impl Shared {
    fn channels(&self) -> MutexGuard<'_, Vec<Vec<ChannelState>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, number: usize, client: &Client, every: Duration) {
        while !self.stop.load(Ordering::Relaxed) {
            let since = Instant::now();
            let answer = client.frames();
            if let Some(seen) = self.channels().get_mut(number) {
                *seen = ChannelState::after(std::mem::take(seen), client, answer);
            }
            std::thread::sleep(every.saturating_sub(since.elapsed()));
        }
    }
}

/// The screen as text, for scripts: one channel below the other. False: one of them has not answered.
pub fn once(clients: &[Client], width: u16) -> Result<(String, bool)> {
    let (mut text, mut all) = (String::new(), true);
    for client in clients {
        for seen in ChannelState::after(vec![ChannelState::of(client)], client, client.frames()) {
            all &= seen.error.is_none();
            let height = super::screen::height(&seen);
            let mut terminal = Terminal::new(TestBackend::new(width, height))?;
            terminal.draw(|frame| draw(frame, &Screen { channels: std::slice::from_ref(&seen), selected: 0 }))?;
            text += &super::screen::text(terminal.backend().buffer());
        }
    }
    Ok((text, all))
}

/// Whether there is a terminal to draw on.
pub fn has_terminal() -> bool {
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}
