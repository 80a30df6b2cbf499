//! The axes of a chart: where ticks stand and how they are labelled.

use super::text::thousands;

/// How an axis is labelled.
#[derive(Debug)]
pub enum Axis {
    /// Numbers; logarithmic if it says so, and then the y axis is, too, where values differ much.
    Numbers { log: bool },
    /// Seconds since 1970.
    Time,
}

/// From 0, or from a power of two to another.
pub enum YAxis {
    FromZero { top: f64 },
    Powers { low: i32, high: i32 },
}

/// Values of the y axis that differ by so much are told apart on a logarithmic one only.
const DIFFER_MUCH: f64 = 12.0;
/// Lines across a logarithmic chart.
const POWERS_MAX: i32 = 7;

impl YAxis {
    /// Over values from `least` to `top`, beside an x axis.
    pub fn new(least: f64, top: f64, x: &Axis) -> Self {
        if matches!(x, Axis::Numbers { log: true }) && least > 0.0 && top / least >= DIFFER_MUCH {
            Self::Powers { low: least.log2().floor() as i32, high: top.log2().ceil() as i32 }
        } else {
            Self::FromZero { top: nice(top) }
        }
    }

    /// From 0 at the lower end to 1 at the upper.
    pub fn along(&self, y: f64) -> f64 {
        match *self {
            Self::FromZero { top } => y / top,
            Self::Powers { low, high } => (y.max(1e-9).log2() - f64::from(low)) / f64::from(high - low),
        }
    }

    pub fn ticks(&self) -> Vec<f64> {
        match *self {
            Self::FromZero { top } => (0..=4).map(|step| top * f64::from(step) / 4.0).collect(),
            Self::Powers { low, high } => {
                let each = (high - low).div_euclid(POWERS_MAX) + 1;
                (low..=high).step_by(each as usize).map(|power| 2_f64.powi(power)).collect()
            }
        }
    }
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

pub fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1e9 => format!("{:.3}", value / 1e9).trim_end_matches('0').trim_end_matches('.').to_owned() + "G",
        v if v >= 1e6 => format!("{:.3}", value / 1e6).trim_end_matches('0').trim_end_matches('.').to_owned() + "M",
        v if v >= 10_000.0 => {
            format!("{:.2}", value / 1e3).trim_end_matches('0').trim_end_matches('.').to_owned() + "k"
        }
        v if v >= 100.0 || value.fract() == 0.0 => thousands(value.round() as u64),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

pub fn ticks(low: f64, high: f64, x: &Axis) -> Vec<f64> {
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

pub fn label(at: f64, x: &Axis, span: f64) -> String {
    let form = match (x, span) {
        (Axis::Numbers { .. }, _) => return short(at),
        (Axis::Time, span) if span < 600.0 => "%H:%M:%S",
        (Axis::Time, span) if span < 2.0 * 86_400.0 => "%H:%M",
        (Axis::Time, _) => "%m-%d",
    };
    jiff::Timestamp::from_second(at as i64).map_or_else(|_| short(at), |time| time.strftime(form).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        assert_eq!((nice(0.0), nice(7.0), nice(21.0), nice(100.0)), (1.0, 10.0, 25.0, 100.0));
    }

    #[test]
    fn times_show_what_differs() {
        let at = 951_868_801.0;
        let shown = [60.0, 3_600.0, 1e6].map(|span| label(at, &Axis::Time, span));
        assert_eq!(shown, ["00:00:01", "00:00", "03-01"]);
    }
}
