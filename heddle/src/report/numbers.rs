//! Numbers and times as people read them.

/// `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
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

/// `2026-11-20T03:14:00Z`, of microseconds since 1970.
pub fn utc(time_us: u64) -> String {
    let seconds = time_us / 1_000_000;
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // Days to civil date in eras of 400 years that start on 1 March.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", time / 3600, time / 60 % 60, time % 60)
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
