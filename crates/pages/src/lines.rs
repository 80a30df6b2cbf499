//! Charts of lines as SVG inside a page. Colours are the page's (CSS classes).

use std::fmt::Write as _;

use super::axis::{Axis, YAxis, label, short, ticks};
use super::text::escape;

/// One line of a chart: (x, y), by x; a gap where y is not a number.
#[derive(Debug)]
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
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
    let y_axis = YAxis::new(least, top, x);
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
    out.push_str("</svg></div>");
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
    let mut out = format!(
        "<div class=\"scroll\"><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" preserveAspectRatio=\"xMidYMid meet\">"
    );
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

/// At most [`POINTS_MAX`] points: of each stretch the greatest.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= POINTS_MAX {
        return points.to_vec();
    }
    let each = points.len().div_ceil(POINTS_MAX);
    let greatest = |stretch: &[(f64, f64)]| stretch.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    points.chunks(each).filter_map(greatest).collect()
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
    }
}
