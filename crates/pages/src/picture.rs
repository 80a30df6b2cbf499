//! Pictures that stand alone, as SVG: horizontal bars; points of one value against another. For pages that cannot style them.

use std::fmt::Write as _;

use super::text::{escape, thousands};

#[derive(Debug)]
pub struct Bar {
    pub label: String,
    pub value: f64,
    /// Stands out.
    pub ours: bool,
}

const WIDTH: f64 = 860.0;
const LABELS: f64 = 390.0;
const VALUES: f64 = 90.0;
const ROW: f64 = 26.0;
const TOP: f64 = 34.0;

/// One bar a line, all on one scale that starts at 0.
pub fn bars(title: &str, unit: &str, bars: &[Bar]) -> String {
    let most = bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
    let height = TOP + ROW * bars.len() as f64 + 8.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"8\" y=\"20\" font-weight=\"600\" fill=\"#1f2933\">{} ({})</text>\n",
        escape(title),
        escape(unit)
    );
    for (row, bar) in bars.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        let width = (WIDTH - LABELS - VALUES) * (bar.value / most).max(0.0);
        let colour = if bar.ours { "#1769aa" } else { "#9aa5b1" };
        let middle = y + 15.0;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\" fill=\"#323f4b\">{}</text>\
             <rect x=\"{LABELS}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\" rx=\"2\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{middle}\" fill=\"#323f4b\">{}</text>",
            LABELS - 8.0,
            escape(&bar.label),
            ROW - 7.0,
            LABELS + width + 6.0,
            amount(bar.value)
        );
    }
    svg + "</svg>\n"
}

/// One value against another, both above 0.
#[derive(Debug)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// Stands out.
    pub ours: bool,
    pub title: String,
}

const SIDE: f64 = 460.0;
const LEFT: f64 = 78.0;
/// Half of the longest label fits.
const RIGHT: f64 = 48.0;

/// Both axes logarithmic and alike; the line where both are equal, and a band of a quarter around it.
pub fn against(title: &str, points: &[Point]) -> String {
    let values = || points.iter().flat_map(|point| [point.x, point.y]).filter(|value| *value > 0.0);
    let low = values().fold(f64::MAX, f64::min).min(1e9).log10().floor();
    let high = values().fold(f64::MIN_POSITIVE, f64::max).log10().ceil().max(low + 1.0);
    let along = |value: f64| SIDE * ((value.max(f64::MIN_POSITIVE).log10() - low) / (high - low)).clamp(0.0, 1.0);
    let (x, y) = (|value: f64| LEFT + along(value), |value: f64| TOP + SIDE - along(value));
    let (first, last) = (10_f64.powf(low), 10_f64.powf(high));
    let (width, height) = (LEFT + SIDE + RIGHT, TOP + SIDE + 44.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"8\" y=\"20\" font-weight=\"600\" fill=\"#1f2933\">{}</text>\n\
         <polygon points=\"{},{} {},{} {},{} {},{} {},{} {},{}\" fill=\"#eef2f6\"/>\n",
        escape(title),
        x(first),
        y(first),
        x(first),
        y(first * 1.25),
        x(last / 1.25),
        y(last),
        x(last),
        y(last),
        x(last),
        y(last * 0.75),
        x(first / 0.75),
        y(first),
    );
    for decade in low as i32..=high as i32 {
        let value = 10_f64.powi(decade);
        let _ = writeln!(
            svg,
            "<path d=\"M{0:.1} {TOP}V{1:.1}M{LEFT} {2:.1}H{3:.1}\" stroke=\"#cbd2d9\"/><text x=\"{0:.1}\" y=\"{4:.1}\" text-anchor=\"middle\" \
             fill=\"#323f4b\">{5}</text><text x=\"{6:.1}\" y=\"{7:.1}\" text-anchor=\"end\" fill=\"#323f4b\">{5}</text>",
            x(value),
            TOP + SIDE,
            y(value),
            LEFT + SIDE,
            TOP + SIDE + 18.0,
            amount(value),
            LEFT - 6.0,
            y(value) + 4.0,
        );
    }
    let _ = writeln!(svg, "<path d=\"M{} {}L{} {}\" stroke=\"#7b8794\"/>", x(first), y(first), x(last), y(last));
    for point in points {
        let colour = if point.ours { "#1769aa" } else { "#7b8794" };
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\" fill-opacity=\"0.7\"><title>{}</title></circle>",
            x(point.x),
            y(point.y),
            escape(&point.title)
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{:.1}\" fill=\"#323f4b\"><tspan fill=\"#1769aa\">●</tspan> heddle  <tspan fill=\"#7b8794\">●</tspan> native; \
         the band is ±25 %</text>",
        TOP + SIDE + 38.0
    );
    svg + "</svg>\n"
}

/// A whole number with commas, or three digits of a small one.
pub fn amount(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.1}");
    }
    thousands(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_readable() {
        assert_eq!(amount(1_234_567.0), "1,234,567");
        assert_eq!(amount(999.6), "1,000");
        assert_eq!(amount(2.04), "2.0");
    }

    #[test]
    fn the_longest_bar_fills_the_width() {
        let bar = |label: &str, value| Bar { label: label.to_owned(), value, ours: false };
        let svg = bars("a < b", "trx/s", &[bar("x", 50.0), bar("y", 100.0)]);
        assert!(
            svg.contains("a &lt; b") && svg.contains("width=\"380.0\"") && svg.contains("width=\"190.0\""),
            "{svg}"
        );
    }
}
