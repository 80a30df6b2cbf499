//! Numbers and times as people read them.

pub use pages::thousands;

/// `1 row`, `1,234 rows`.
pub fn counted(number: u64, one: &str) -> String {
    format!("{} {one}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// `1,234`, `3.25`: small rates with their fraction.
pub fn per_second(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.2}") } else { thousands(rate.round() as u64) }
}

/// `3.4 MB`.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (number as f64, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let unit = UNITS.get(unit).copied().unwrap_or("B");
    if unit == "B" { format!("{number} B") } else { format!("{value:.1} {unit}") }
}

/// `12.3 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `2 h 03 min`, `14.2 s`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 0.1 => format!("{:.1} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h {:02.0} min", (s / 3600.0).floor(), (s % 3600.0 / 60.0).floor()),
        s => format!("{:.1} days", s / 86_400.0),
    }
}

/// Of an estimate: `7 s`, `12 min`, `20 h`.
pub fn about(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

/// `2026-11-20T03:14:00Z`, of microseconds since 1970; beyond the year 9999 the number.
pub fn utc(time_us: u64) -> String {
    let time = i64::try_from(time_us / 1_000_000).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(|| time_us.to_string(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_people_read_them() {
        assert_eq!((thousands(0), thousands(1_234_567)), ("0".to_owned(), "1,234,567".to_owned()));
        assert_eq!((bytes(999), bytes(1_000), bytes(3_450_000)), ("999 B".into(), "1.0 kB".into(), "3.5 MB".into()));
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_868_801_000_000), "2000-03-01T00:00:01Z");
        assert_eq!(
            (duration(0.05), duration(14.2), duration(7380.0)),
            ("50.0 ms".into(), "14.2 s".into(), "2 h 03 min".into())
        );
        assert_eq!(percent(0.1234), "12.3 %");
    }
}
