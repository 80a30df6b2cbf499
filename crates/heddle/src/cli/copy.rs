//! `replicate --copy`: the rows first, then the channel.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use channel::errors::failure;
use channel::monitor::Monitor;
use channel::spec::Spec;
use copy::{CopyChannel, CopyEnd, CopyRequest, CopySample, LogPart, Measures, RunningChannel};
use engine::failure::{Failure, FailureKind};
use engine::intake::{Changes, Filter, Pattern, Rules};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use observe::http::Http;
use observe::http::endpoint::Endpoint;
use observe::progress::{Kind, Progress};

/// Runs a copy, and shows how far it is.
pub struct ShownCopy<'a> {
    pub measures: &'a Arc<Measures>,
    /// Where it is shown beside the terminal; `None`: nowhere.
    pub listen: Option<Endpoint>,
    pub stop: &'a Arc<AtomicBool>,
    /// Of a run of the channel over a part of the log, overwriting.
    pub spec: &'a mut dyn FnMut(&LogPart) -> Result<Spec>,
}

impl ShownCopy<'_> {
    /// `running`: the channel to which tables are added.
    pub fn run(self, request: &CopyRequest<'_>, running: Option<&mut dyn RunningChannel>) -> Result<CopyEnd> {
        let Self { measures, listen, stop, spec } = self;
        // Its port is free again when the channel goes on.
        let _http = listen.map(|listen| Http::start_copy(listen, Arc::clone(measures))).transpose()?;
        let shown = Shown::start(measures).context("a thread")?;
        let mut follow = |following: &LogPart| -> Result<(), Failure> {
            let spec = spec(following).map_err(failure)?;
            follow(&spec, request.part.taken, stop)
        };
        let ended = copy::copy(request, &mut CopyChannel { follow: &mut follow, running });
        shown.finish();
        ended.map_err(anyhow::Error::new)
    }
}

fn follow(spec: &Spec, part: Option<&Filter>, stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    let monitor = Arc::new(Monitor::default());
    let progress = Progress::start(&monitor, Kind::Live);
    let finished = with_flag_of_its_own(&[stop], |stop| channel::run::run(spec, &monitor, stop).map_err(failure));
    progress.finish();
    let outcome = finished?.outcome;
    if let Some(failure) = outcome.failure {
        return Err(failure);
    }
    if outcome.stopped {
        return Err(Failure::new(FailureKind::Stopped, "the copy was asked to end"));
    }
    // The part that the channel takes from here on is the one that was asked for.
    let text = part.map(ToString::to_string).filter(|text| !text.is_empty());
    spec.target.record_part(text.as_deref())
}

/// A run sets its flag at its end, too; what stands around it goes on. Whichever of `stops` is set ends the run.
pub fn with_flag_of_its_own<T>(stops: &[&AtomicBool], run: impl FnOnce(&Arc<AtomicBool>) -> T) -> T {
    const LOOK_EVERY: Duration = Duration::from_millis(50);
    let is_asked = || stops.iter().any(|stop| stop.load(Ordering::Relaxed));
    let flag = Arc::new(AtomicBool::new(is_asked()));
    std::thread::scope(|scope| {
        let forwarding = scope.spawn(|| {
            while !flag.load(Ordering::Relaxed) {
                std::thread::park_timeout(LOOK_EVERY);
                if is_asked() {
                    flag.store(true, Ordering::Relaxed);
                }
            }
        });
        let done = run(&flag);
        flag.store(true, Ordering::Relaxed);
        forwarding.thread().unpark();
        done
    })
}

/// Rows of these tables, under their names on the target, and no definitions: what is read again, and what is read as a whole, is not applied. `part`: what the
/// channel takes.
pub fn part_of_copy(log: &LogPart, part: Option<&Filter>) -> Result<Filter> {
    let pattern = |name: &copy::chunk::TableName| -> Result<Pattern> {
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        let text = format!("{}.{}", quoted(&name.schema), quoted(&name.table));
        text.parse().map_err(|error| anyhow::anyhow!("{text}: {error}"))
    };
    let mut only: Vec<Pattern> = log.tables.iter().map(pattern).collect::<Result<_>>()?;
    if only.is_empty() {
        // An empty list would take all.
        only.push("`heddle`.`takes no table`".parse().map_err(|error| anyhow::anyhow!("{error}"))?);
    }
    Ok(Filter {
        rules: Rules { only, ..Rules::default() },
        changes: Changes { no_definitions: true, ..Changes::default() },
        renames: part.map(|part| part.renames.clone()).unwrap_or_default(),
        rewrites: part.is_some_and(|part| part.rewrites),
        ..Filter::default()
    })
}

/// A bar on a terminal, lines elsewhere.
struct Shown {
    done: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Shown {
    fn start(measures: &Arc<Measures>) -> std::io::Result<Self> {
        let done = Arc::new(AtomicBool::new(false));
        let (measures, ended) = (Arc::clone(measures), Arc::clone(&done));
        let is_terminal = std::io::stderr().is_terminal();
        let thread = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(move || if is_terminal { draw(&measures, &ended) } else { log(&measures, &ended) })?;
        Ok(Self { done, thread })
    }

    fn finish(self) {
        self.done.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        if self.thread.join().is_err() {
            tracing::error!("the progress thread has panicked");
        }
    }
}

fn draw(measures: &Measures, ended: &AtomicBool) {
    const DRAW_EVERY: Duration = Duration::from_millis(200);
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    let template = "{bar:30} {percent:>3}%  {human_pos} of {human_len} rows  {per_sec}  {eta} left  {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    while !ended.load(Ordering::Relaxed) {
        let CopySample { rows, rows_expected, tables, tables_placed, .. } = measures.sample();
        bar.set_length(rows_expected);
        bar.set_position(rows);
        bar.set_message(format!("{tables_placed} of {tables} tables"));
        std::thread::park_timeout(DRAW_EVERY);
    }
    bar.finish_and_clear();
}

fn log(measures: &Measures, ended: &AtomicBool) {
    const LINE_EVERY: Duration = Duration::from_secs(10);
    let (mut since, mut before) = (Instant::now(), 0);
    while !ended.load(Ordering::Relaxed) {
        std::thread::park_timeout(LINE_EVERY);
        let CopySample { rows, rows_expected, .. } = measures.sample();
        let time = since.elapsed();
        if time < LINE_EVERY || rows <= before {
            before = before.min(rows);
            continue;
        }
        let rate = (rows - before) as f64 / time.as_secs_f64();
        let left = rows_expected.saturating_sub(rows) as f64 / rate.max(1.0);
        tracing::info!("copy: {rows} of about {rows_expected} rows, {rate:.0} rows/s, about {left:.0} s left");
        (since, before) = (Instant::now(), rows);
    }
}

#[cfg(test)]
mod tests {
    use copy::chunk::TableName;

    use super::*;

    #[test]
    fn the_log_of_a_copy_takes_its_tables_alone() {
        let nowhere = copy::CopyPlace { position: None, gtids: binlog::gtids::GtidState::None };
        let following = |tables: &[(&str, &str)]| LogPart {
            from: nowhere.clone(),
            to: nowhere.clone(),
            tables: tables.iter().map(|(schema, table)| TableName::new(*schema, *table)).collect(),
        };
        let part = part_of_copy(&following(&[("a`b", "c*"), ("d", "e.f")]), None).unwrap();
        assert!(part.takes("a`b", "c*") && part.takes("d", "e.f"));
        assert!(!part.takes("a`b", "cx") && !part.takes("d", "e"));
        assert!(!part_of_copy(&following(&[]), None).unwrap().takes("d", "t"));
    }
}
