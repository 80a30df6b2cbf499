//! What is drawn: the sentence, the stages, where the workers' time goes, the workers, evidence. A pure function of frames.

use anyhow::Result;
use binlog::text::escape;
use ratatui::Frame as Canvas;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table, Wrap};

use super::client::Client;
use crate::view::frame::Frame;
use crate::view::lanes::{IDLE, Lane};
use crate::view::log_lookahead::LogLookahead;
use crate::view::shares::Shares;
use crate::view::stages::Stage;
use crate::view::verdict::Level;
use crate::words;

const COLOURS: [Color; 9] = [
    Color::Blue,
    Color::Yellow,
    Color::LightRed,
    Color::Red,
    Color::Magenta,
    Color::LightMagenta,
    Color::Cyan,
    Color::LightBlue,
    Color::DarkGray,
];
/// One for each part of the bar where there are no colours.
const MARKS: [char; 9] = ['█', '▒', '▓', 'L', 'R', 'B', 'M', 'g', '·'];
/// Workers and rows of evidence that `--once` prints.
const LISTED_MAX: usize = 16;

/// One channel as it was seen last.
#[derive(Clone, Debug)]
pub struct ChannelState {
    pub address: String,
    pub frame: Option<Frame>,
    /// Why the last request got no frame.
    pub error: Option<String>,
}

impl ChannelState {
    pub fn of(client: &Client) -> Self {
        Self { address: client.address.to_string(), frame: None, error: None }
    }

    /// What was asked, as it was before → as it is now. The last frames stay when there are none.
    pub fn after(before: Vec<Self>, client: &Client, answer: Result<Vec<Frame>>) -> Vec<Self> {
        let address = client.address.to_string();
        match answer {
            Ok(frames) if frames.is_empty() => {
                vec![Self { address, frame: None, error: Some("no channel runs there".to_owned()) }]
            }
            Ok(frames) => {
                let seen = |frame| Self { address: address.clone(), frame: Some(frame), error: None };
                frames.into_iter().map(seen).collect()
            }
            Err(error) => {
                let text = channel::errors::chain(&error);
                before.into_iter().map(|seen| Self { error: Some(text.clone()), ..seen }).collect()
            }
        }
    }

    fn name(&self) -> String {
        self.frame.as_ref().map_or_else(|| self.address.clone(), |frame| clean(&frame.head.channel))
    }

    /// Source and target, as far as the channel says them.
    fn route(&self) -> String {
        self.frame.as_ref().map(|frame| clean(&frame.head.route)).unwrap_or_default()
    }
}

pub struct Screen<'a> {
    pub channels: &'a [ChannelState],
    pub selected: usize,
}

/// Others' text: what acts on a terminal is shown instead.
fn clean(text: &str) -> String {
    escape(text).into_owned()
}

/// Lines that a channel takes with all that is listed of it.
pub fn height(seen: &ChannelState) -> u16 {
    let listed = seen.frame.as_ref().map_or(0, |frame| {
        frame.workers.len().min(LISTED_MAX) + frame.why.evidence.len().min(LISTED_MAX) + ahead_lines(frame)
    });
    u16::try_from(listed).unwrap_or(u16::MAX).saturating_add(20)
}

/// Without the blanks at the ends of lines, and of the text.
pub fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width.max(1));
    let lines = buffer.content.chunks(width).map(|line| {
        let line: String = line.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned() + "\n"
}

pub fn draw(canvas: &mut Canvas<'_>, screen: &Screen<'_>) {
    let listed = if screen.channels.len() > 1 { screen.channels.len() } else { 0 };
    let listed = u16::try_from(listed.min(8)).unwrap_or(8);
    let [head, list, rest] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(listed), Constraint::Min(0)]).areas(canvas.area());
    let Some(seen) = screen.channels.get(screen.selected).or(screen.channels.first()) else { return };
    header(canvas, head, seen, listed > 0);
    if listed > 0 {
        channels(canvas, list, screen);
    }
    match &seen.frame {
        Some(frame) => channel(canvas, rest, frame, seen.error.as_deref()),
        None => {
            let text = seen
                .error
                .as_deref()
                .map_or_else(|| format!("asking {} …", seen.address), |error| format!("{}: {error}", seen.address));
            canvas.render_widget(Paragraph::new(clean(&text)).wrap(Wrap { trim: true }), rest);
        }
    }
}

fn header(canvas: &mut Canvas<'_>, area: Rect, seen: &ChannelState, several: bool) {
    let at = seen.frame.as_ref().map_or(0, |frame| frame.head.at_ms * 1000);
    let keys = if several { "↑↓ channel  q quits" } else { "q quits" };
    let time = if at > 0 { format!("{} UTC", words::clock(at)) } else { String::new() };
    let line = Line::from(vec![
        Span::styled("heddle top  ", Style::new().add_modifier(Modifier::BOLD)),
        Span::raw(format!("{}  {time}  ", seen.name())),
        Span::styled(format!("{keys}  {}", seen.route()), Style::new().fg(Color::DarkGray)),
    ]);
    canvas.render_widget(Paragraph::new(line), area);
}

fn channels(canvas: &mut Canvas<'_>, area: Rect, screen: &Screen<'_>) {
    let first = (screen.selected + 1).saturating_sub(usize::from(area.height));
    let shown = screen.channels.iter().enumerate().skip(first).take(usize::from(area.height));
    let rows = shown.map(|(number, seen)| {
        let mark = if number == screen.selected { "▶" } else { " " };
        let (lag, rate, cause, level) = match (&seen.frame, &seen.error) {
            (_, Some(error)) => (String::new(), String::new(), clean(error), Level::Stopped),
            (Some(frame), None) => (
                seconds(frame.head.lag_s),
                format!("{:.0}/s", frame.rates.transactions),
                frame.verdict.cause.replace('_', " "),
                frame.verdict.level,
            ),
            (None, None) => (String::new(), String::new(), "asking …".to_owned(), Level::Ok),
        };
        let style = Style::new().fg(colour(level));
        // Of two with one name the address says which is which.
        let is_alone = screen.channels.iter().filter(|other| other.name() == seen.name()).count() < 2;
        let name = if is_alone { seen.name() } else { format!("{} {}", seen.name(), seen.address) };
        Row::new([mark.to_owned(), name, lag, rate, cause]).style(style)
    });
    let widths = [
        Constraint::Length(1),
        Constraint::Length(24),
        Constraint::Length(9),
        Constraint::Length(10),
        Constraint::Min(10),
    ];
    canvas.render_widget(Table::new(rows, widths), area);
}

fn colour(level: Level) -> Color {
    match level {
        Level::Ok => Color::Green,
        Level::Behind => Color::Blue,
        Level::Warning => Color::Yellow,
        Level::Stopped => Color::Red,
    }
}

fn seconds(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(0.0) => "0 s".to_owned(),
        Some(value) if value < 1.0 => format!("{:.0} ms", value * 1e3),
        Some(value) if value < 10.0 => format!("{value:.1} s"),
        Some(value) => words::time(value),
    }
}

fn channel(canvas: &mut Canvas<'_>, area: Rect, frame: &Frame, error: Option<&str>) {
    let verdict = &frame.verdict;
    let mut said = vec![Line::styled(
        clean(&verdict.sentence),
        Style::new().fg(colour(verdict.level)).add_modifier(Modifier::BOLD),
    )];
    if !verdict.remedy.is_empty() {
        said.push(Line::raw(format!("→ {}", clean(&verdict.remedy))));
    }
    if let Some(error) = error {
        said.push(Line::styled(format!("seen last; now: {}", clean(error)), Style::new().fg(Color::Red)));
    } else if frame.head.ended {
        said.push(Line::styled("this run has ended", Style::new().fg(Color::Red)));
    }
    let width = usize::from(area.width.max(1));
    // Words do not fill lines: some room beside what the characters need.
    let lines = |line: &Line<'_>| (line.width() * 11 / 10).div_ceil(width).max(1);
    let needs = said.iter().map(lines).sum::<usize>().min(8);
    let workers = frame.workers.len().clamp(1, LISTED_MAX);
    let evidence = u16::from(!frame.why.evidence.is_empty() || frame.why.ahead.is_some());
    let [sentence, numbers, way, waits, lanes, proof] = Layout::vertical([
        Constraint::Length(u16::try_from(needs).unwrap_or(8)),
        Constraint::Length(1),
        Constraint::Length(4),
        Constraint::Length(3),
        Constraint::Length(u16::try_from(workers + 1).unwrap_or(8)),
        Constraint::Min(evidence),
    ])
    .areas(area);
    canvas.render_widget(Paragraph::new(said).wrap(Wrap { trim: true }), sentence);
    let (rates, quality) = (&frame.rates, &frame.quality);
    let known = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"));
    let text = format!(
        "{:.0} trx/s  {:.0} rows/s  group {}  commit {}  AMIL {} (by keys {})  Jain {}",
        rates.transactions,
        rates.rows,
        known(quality.group_transactions),
        seconds(quality.commit_s),
        known(quality.source_amil),
        known(quality.exact_amil),
        quality.jain.map_or_else(|| "–".to_owned(), |jain| format!("{jain:.2}")),
    );
    canvas.render_widget(Paragraph::new(text), numbers);
    stages(canvas, way, &frame.stages);
    time(canvas, waits, &frame.waits);
    worker_rows(canvas, lanes, &frame.workers);
    evidence_rows(canvas, proof, frame);
}

fn stages(canvas: &mut Canvas<'_>, area: Rect, stages: &[Stage]) {
    let number = |value: Option<u64>, unit: &str| value.map_or_else(String::new, |value| format!("{value}{unit}"));
    let cells = |text: fn(&Stage) -> String| stages.iter().map(text).collect::<Vec<_>>();
    let names = Row::new(
        stages
            .iter()
            .enumerate()
            .map(|(at, stage)| if at == 0 { stage.name.clone() } else { format!("▸ {}", stage.name) }),
    );
    let rows = [
        names.style(Style::new().fg(Color::DarkGray)),
        Row::new(cells(|stage| seconds(stage.lag_s))).style(Style::new().add_modifier(Modifier::BOLD)),
        Row::new(stages.iter().map(|stage| number(stage.transactions, " trx")).collect::<Vec<_>>()),
        Row::new(stages.iter().map(|stage| stage.bytes.map_or_else(String::new, size)).collect::<Vec<_>>()),
    ];
    let widths = stages.iter().map(|_| Constraint::Fill(1));
    canvas.render_widget(Table::new(rows, widths), area);
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}

fn time(canvas: &mut Canvas<'_>, area: Rect, waits: &Shares) {
    let width = f64::from(area.width);
    let (mut bar, mut names, mut drawn, mut sum) = (Vec::new(), Vec::new(), 0_usize, 0.0);
    let values = waits.values().into_iter().zip(Shares::NAMES).zip(COLOURS.into_iter().zip(MARKS));
    for ((value, name), (colour, mark)) in values {
        sum += value;
        let until = (sum * width).round() as usize;
        let cells = until.saturating_sub(drawn);
        drawn += cells;
        bar.push(Span::styled(mark.to_string().repeat(cells), Style::new().fg(colour)));
        if value >= 0.005 {
            names.push(Span::styled(mark.to_string(), Style::new().fg(colour)));
            names.push(Span::raw(format!(" {name} {:.0} %  ", value * 100.0)));
        }
    }
    let lines =
        vec![Line::styled("workers' time", Style::new().fg(Color::DarkGray)), Line::from(bar), Line::from(names)];
    canvas.render_widget(Paragraph::new(lines), area);
}

fn worker_rows(canvas: &mut Canvas<'_>, area: Rect, workers: &[Lane]) {
    let mut order: Vec<&Lane> = workers.iter().collect();
    // Where not all fit: the first, then those with a group.
    if workers.len() >= usize::from(area.height) {
        order.sort_by_key(|lane| (!lane.is_first, lane.state == IDLE, lane.worker));
    }
    let rows = order.into_iter().map(|lane| {
        let has_group = lane.state != IDLE;
        let state = if lane.state == IDLE { format!("idle: {}", lane.idle_because) } else { lane.state.clone() };
        let at = if lane.group.gtid.is_empty() { &lane.group.position } else { &lane.group.gtid };
        let shown = |value: u64| if has_group { value.to_string() } else { String::new() };
        let cells = [
            format!("{:>2}", lane.worker),
            format!("{:>3.0}%", lane.busy * 100.0),
            state.trim_end_matches(": ").to_owned(),
            if has_group { seconds(Some(lane.group.age_s)) } else { String::new() },
            shown(lane.group.transactions),
            clean(at),
            clean(&lane.group.subject),
        ];
        let style = if lane.is_first && lane.group.age_s > 1.0 {
            Style::new().add_modifier(Modifier::BOLD)
        } else {
            Style::new()
        };
        Row::new(cells).style(style)
    });
    let widths = [
        Constraint::Length(2),
        Constraint::Length(5),
        Constraint::Length(17),
        Constraint::Length(7),
        Constraint::Length(5),
        Constraint::Fill(2),
        Constraint::Fill(3),
    ];
    let head =
        Row::new(["w", " busy", "state", "for", "trx", "GTID", "changes"]).style(Style::new().fg(Color::DarkGray));
    canvas.render_widget(Table::new(rows, widths).header(head), area);
}

fn ahead_lines(frame: &Frame) -> usize {
    frame.why.ahead.as_ref().map_or(0, |ahead| ahead.words().len())
}

fn evidence_rows(canvas: &mut Canvas<'_>, area: Rect, frame: &Frame) {
    // Workers are listed above.
    let shown = frame.why.evidence.iter().filter(|one| !one.what.starts_with("worker "));
    let lines = shown.map(|one| {
        let time = one.seconds.map_or_else(String::new, |time| format!(" for {}", seconds(Some(time))));
        let at = [&one.gtid, &one.position]
            .into_iter()
            .filter(|text| !text.is_empty())
            .map(|text| clean(text))
            .collect::<Vec<_>>()
            .join(" ");
        Line::raw(format!("• {}{time}: {at} {}", clean(&one.what), clean(&one.detail)))
    });
    let ahead = frame
        .why
        .ahead
        .iter()
        .flat_map(LogLookahead::words)
        .map(|words| Line::raw(format!("• ahead: {}", clean(&words))));
    canvas.render_widget(Paragraph::new(lines.chain(ahead).collect::<Vec<_>>()).wrap(Wrap { trim: true }), area);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::view::frame::Head;
    use crate::view::lanes::LaneGroup;
    use crate::view::verdict::Verdict;

    fn seen(channel: &str) -> ChannelState {
        let stage = |name: &str| Stage {
            name: name.to_owned(),
            lag_s: Some(12.0),
            transactions: Some(400),
            bytes: Some(70_000),
        };
        let lane = |worker| Lane {
            worker,
            busy: 0.5,
            state: if worker == 1 { "waits for a lock" } else { IDLE }.to_owned(),
            is_first: worker == 1,
            group: LaneGroup {
                gtid: if worker == 1 { "3a1f2b8e-7f2c-11ee-8c99-0242ac120002:4711" } else { "" }.to_owned(),
                subject: "shop.orders".to_owned(),
                age_s: 12.3,
                ..LaneGroup::default()
            },
            ..Lane::default()
        };
        let frame = Frame {
            head: Head {
                channel: channel.to_owned(),
                route: "a:3306 → b:3306".to_owned(),
                at_ms: 1_700_000_000_000,
                lag_s: Some(12.0),
                ..Head::default()
            },
            verdict: Verdict {
                level: Level::Warning,
                cause: "target_lock".to_owned(),
                sentence: "Worker 1 waits 12 s for shop.orders for a lock that session 4711 of the target holds (app@db\u{1b}[2J, idle in a transaction for 40 s); more workers do not help.".to_owned(),
                remedy: "end that transaction: KILL 4711 on the target".to_owned(),
                ..Verdict::default()
            },
            stages: ["received", "durable", "scheduled", "applied", "committed"].map(stage).to_vec(),
            waits: Shares { applying: 0.25, lock: 0.5, no_work: 0.25, ..Shares::default() },
            workers: (0..4).map(lane).collect(),
            ..Frame::default()
        };
        ChannelState { address: "127.0.0.1:9104".to_owned(), frame: Some(frame), error: None }
    }

    fn shown(channels: &[ChannelState], width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, &Screen { channels, selected: 0 })).unwrap();
        text(terminal.backend().buffer())
    }

    #[test]
    fn all_of_a_channel_is_on_80_by_24() {
        let text = shown(&[seen("orders")], 80, 24);
        for part in [
            "heddle top  orders",
            "a:3306 → b:3306",
            "session 4711",
            "KILL 4711",
            "received",
            "▸ committed",
            "400 trx",
            "68 KiB",
            "lock 50 %",
            "waits for a lock",
            "3a1f2b8e",
            "shop.orders",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert!(text.lines().count() <= 24 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains('\u{1b}') && text.contains("app@db"), "{text}");
    }

    #[test]
    fn several_channels_are_listed_and_small_screens_do_not_panic() {
        let lost =
            ChannelState { error: Some("does not answer".to_owned()), frame: None, address: "db2:9104".to_owned() };
        let text = shown(&[seen("orders"), lost.clone(), seen("users")], 80, 24);
        assert!(text.contains("▶ orders") && text.contains("db2:9104") && text.contains("does not answer"), "{text}");
        let text = shown(&[seen("default"), seen("default")], 80, 24);
        assert!(text.contains("default 127.0.0.1:9104"), "{text}");
        for (width, height) in [(1, 1), (10, 3), (40, 10), (300, 100)] {
            shown(&[seen("orders"), lost.clone()], width, height);
            shown(&[], width, height);
        }
    }
}
