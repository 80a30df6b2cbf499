//! Line and bar charts as SVG, for reports that work without a network. Colours are the page's (CSS classes).

use std::fmt::Write as _;

use super::numbers::thousands;

/// One line of a chart: (x, y), by x; a gap where y is not a number.
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// How an axis is labelled.
pub enum Axis {
    /// Numbers; logarithmic if it says so, and then the y axis is, too, where values differ much.
    Numbers { log: bool },
    /// Seconds since 1970.
    Time,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 30.0;
/// Points of a line that are drawn; of more, the greatest of each stretch is.
const POINTS_MAX: usize = 800;

/// A chart of lines over a common x axis. `unit` goes with the numbers of the y axis.
pub fn lines(lines: &[Line], x: &Axis, unit: &str) -> String {
    let log = matches!(x, Axis::Numbers { log: true });
    let scale = |value: f64| if log { value.max(1e-9).log2() } else { value };
    let all = || lines.iter().flat_map(|line| &line.points).filter(|(_, y)| y.is_finite());
    let (mut low, mut high, mut least, mut top) = (f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY, 0.0_f64);
    for &(at, y) in all() {
        least = least.min(y);
        low = low.min(scale(at));
        high = high.max(scale(at));
        top = top.max(y);
    }
    if !low.is_finite() {
        return "<p class=\"none\">nothing to show</p>".to_owned();
    }
    let span = if high > low { high - low } else { 1.0 };
    let y_axis = YAxis::new(least, top, log);
    let px = |at: f64| LEFT + (scale(at) - low) / span * (WIDTH - LEFT - RIGHT);
    let py = |y: f64| HEIGHT - BOTTOM - y_axis.along(y) * (HEIGHT - TOP - BOTTOM);
    let mut out = frame(&y_axis.ticks(), unit, py);
    let dashes = dashes(lines, &y_axis);
    for at in ticks(low, high, x) {
        let label = label(at, x, span);
        let _ = write!(
            out,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            px(at),
            HEIGHT - 10.0
        );
    }
    for (number, (line, dash)) in lines.iter().zip(dashes).enumerate() {
        let mut path = String::new();
        let mut pen_up = true;
        for (at, y) in thinned(&line.points) {
            if !y.is_finite() {
                pen_up = true;
                continue;
            }
            let _ = write!(path, "{}{:.1} {:.1}", if pen_up { 'M' } else { 'L' }, px(at), py(y));
            pen_up = false;
        }
        let _ = write!(
            out,
            "<path class=\"line c{}\" d=\"{path}\"{}><title>{}</title></path>",
            number % 10,
            // Colours come again: with dashes then.
            if number < 10 { dash } else { " stroke-dasharray=\"7 4\"".to_owned() },
            escape(&line.name)
        );
        if line.points.len() <= 60 {
            for &(at, y) in line.points.iter().filter(|(_, y)| y.is_finite()) {
                let _ = write!(
                    out,
                    "<circle class=\"dot c{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{}: {} at {}</title></circle>",
                    number % 10,
                    px(at),
                    py(y),
                    escape(&line.name),
                    short(y),
                    label(at, x, span)
                );
            }
        }
    }
    out.push_str("</svg>");
    if lines.len() > 1 {
        out.push_str("<div class=\"legend\">");
        for (number, line) in lines.iter().enumerate() {
            let _ = write!(
                out,
                "<span><i class=\"key c{}{}\"></i>{}</span>",
                number % 10,
                if number < 10 { "" } else { " dashed" },
                escape(&line.name)
            );
        }
        out.push_str("</div>");
    }
    out
}

/// Horizontal bars: name, value, text at the end.
pub fn bars(bars: &[(String, f64, String)]) -> String {
    let most = bars.iter().map(|(_, value, _)| *value).fold(0.0, f64::max);
    let mut out = String::from("<div class=\"bars\">");
    for (name, value, text) in bars {
        let width = if most > 0.0 { value / most * 100.0 } else { 0.0 };
        let _ = write!(
            out,
            "<div class=\"name\">{}</div><div class=\"track\"><div class=\"bar\" style=\"width:{width:.1}%\"></div></div>\
             <div class=\"value\">{}</div>",
            escape(name),
            escape(text)
        );
    }
    out.push_str("</div>");
    out
}

/// From 0, or from a power of two to another.
enum YAxis {
    FromZero { top: f64 },
    Powers { low: i32, high: i32 },
}

/// Values of the y axis that differ by so much are told apart on a logarithmic one only.
const DIFFER_MUCH: f64 = 12.0;
/// Lines across a logarithmic chart.
const POWERS_MAX: i32 = 7;

impl YAxis {
    fn new(least: f64, top: f64, may_be_log: bool) -> Self {
        if may_be_log && least > 0.0 && top / least >= DIFFER_MUCH {
            Self::Powers { low: least.log2().floor() as i32, high: top.log2().ceil() as i32 }
        } else {
            Self::FromZero { top: nice(top) }
        }
    }

    /// From 0 at the lower end to 1 at the upper.
    fn along(&self, y: f64) -> f64 {
        match *self {
            Self::FromZero { top } => y / top,
            Self::Powers { low, high } => (y.max(1e-9).log2() - f64::from(low)) / f64::from(high - low),
        }
    }

    fn ticks(&self) -> Vec<f64> {
        match *self {
            Self::FromZero { top } => (0..=4).map(|step| top * f64::from(step) / 4.0).collect(),
            Self::Powers { low, high } => {
                let each = (high - low).div_euclid(POWERS_MAX) + 1;
                (low..=high).step_by(each as usize).map(|power| 2_f64.powi(power)).collect()
            }
        }
    }
}

/// Lines that lie on each other, within this share of the chart's height, take turns along it.
const SAME: f64 = 0.004;

/// For each line an attribute: dashes where it would hide an earlier one.
fn dashes(lines: &[Line], y_axis: &YAxis) -> Vec<String> {
    let same = |a: &Line, b: &Line| {
        a.points.len() == b.points.len()
            && a.points
                .iter()
                .zip(&b.points)
                .all(|(a, b)| (a.1.is_nan() && b.1.is_nan()) || (y_axis.along(a.1) - y_axis.along(b.1)).abs() < SAME)
    };
    let first_of = |line: &Line| lines.iter().position(|other| same(other, line));
    let firsts: Vec<Option<usize>> = lines.iter().map(first_of).collect();
    let attribute = |(number, first): (usize, &Option<usize>)| {
        let hides = firsts.iter().take(number).filter(|other| *other == first).count();
        let all = firsts.iter().filter(|other| *other == first).count();
        const DASH: usize = 6;
        match (first, hides) {
            (None, _) | (_, 0) => String::new(),
            _ => format!(" stroke-dasharray=\"{DASH} {}\" stroke-dashoffset=\"-{}\"", DASH * (all - 1), DASH * hides),
        }
    };
    firsts.iter().enumerate().map(attribute).collect()
}

fn frame(ticks: &[f64], unit: &str, py: impl Fn(f64) -> f64) -> String {
    let mut out = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" preserveAspectRatio=\"xMidYMid meet\">");
    for &y in ticks {
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}{unit}</text>",
            WIDTH - RIGHT,
            py(y),
            py(y),
            LEFT - 8.0,
            py(y) + 4.0,
            short(y)
        );
    }
    out
}

/// 1, 2, 2.5 or 5 times a power of ten, not below `value`.
fn nice(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|factor| factor * power >= value * 0.999_999);
    factor.unwrap_or(10.0) * power
}

fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1e9 => format!("{:.3}", value / 1e9).trim_end_matches('0').trim_end_matches('.').to_owned() + "G",
        v if v >= 1e6 => format!("{:.3}", value / 1e6).trim_end_matches('0').trim_end_matches('.').to_owned() + "M",
        v if v >= 10_000.0 => {
            format!("{:.2}", value / 1e3).trim_end_matches('0').trim_end_matches('.').to_owned() + "k"
        }
        v if v >= 100.0 || value == value.trunc() => thousands(value.round() as u64),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn ticks(low: f64, high: f64, x: &Axis) -> Vec<f64> {
    match x {
        Axis::Numbers { log: true } => (low.floor() as i32..=high.ceil() as i32)
            .map(|power| 2_f64.powi(power))
            .filter(|at| {
                let at = at.log2();
                at >= low - 1e-9 && at <= high + 1e-9
            })
            .collect(),
        _ if high <= low => vec![low],
        _ => (0..=6).map(|step| low + (high - low) * f64::from(step) / 6.0).collect(),
    }
}

fn label(at: f64, x: &Axis, span: f64) -> String {
    match x {
        Axis::Numbers { .. } => short(at),
        Axis::Time => {
            let text = super::numbers::utc((at.max(0.0) as u64) * 1_000_000);
            let part = match span {
                span if span < 600.0 => text.get(11..19),
                span if span < 2.0 * 86_400.0 => text.get(11..16),
                _ => text.get(5..10),
            };
            part.unwrap_or_default().to_owned()
        }
    }
}

/// At most [`POINTS_MAX`] points: of each stretch the greatest.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= POINTS_MAX {
        return points.to_vec();
    }
    let each = points.len().div_ceil(POINTS_MAX);
    let greatest = |stretch: &[(f64, f64)]| stretch.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    points.chunks(each).filter_map(greatest).collect()
}

/// For text and attribute values.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_of_little_and_of_much() {
        let line = |points: Vec<(f64, f64)>| [Line { name: "a<b".to_owned(), points }];
        assert!(lines(&line(vec![]), &Axis::Time, "").contains("nothing"));
        let one = lines(&line(vec![(1.0, 0.0)]), &Axis::Numbers { log: true }, "");
        assert!(one.contains("a&lt;b") && !one.contains("NaN"), "{one}");
        let many = lines(&line((0..100_000).map(|n| (f64::from(n), f64::from(n % 7))).collect()), &Axis::Time, "");
        assert!(many.len() < 50_000 && !many.contains("NaN"));
        let both = [1.0, 1.001].map(|y| Line { name: y.to_string(), points: vec![(1.0, y), (2.0, 1.0)] });
        assert_eq!(lines(&both, &Axis::Numbers { log: true }, "×").matches("dasharray").count(), 1);
        assert!(lines(&line(vec![(1.0, 0.5), (2.0, 40.0)]), &Axis::Numbers { log: true }, "×").contains(">32×<"));
        assert_eq!((nice(0.0), nice(7.0), nice(21.0), nice(100.0)), (1.0, 10.0, 25.0, 100.0));
    }
}
