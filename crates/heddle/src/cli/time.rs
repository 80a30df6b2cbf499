//! Times as people write them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Microseconds since 1970 of `2026-11-20T03:14:00[.5][Z]`, the same with a space or another offset, or a number of seconds.
pub fn parse_time(text: &str) -> Result<u64, String> {
    let bad = || format!("{text:?} is not a time: write 2026-11-20T03:14:00Z (UTC) or seconds since 1970");
    if let Ok(seconds) = text.parse::<f64>() {
        return if (0.0..1e12).contains(&seconds) { Ok((seconds * 1e6) as u64) } else { Err(bad()) };
    }
    let text = text.trim();
    let time = text.parse::<Timestamp>().ok().or_else(|| in_utc(text)).ok_or_else(bad)?;
    u64::try_from(time.as_microsecond()).map_err(|_| bad())
}

/// Without an offset. A date alone is not a time.
fn in_utc(text: &str) -> Option<Timestamp> {
    let time: DateTime = text.contains(':').then(|| text.parse().ok())??;
    TimeZone::UTC.to_timestamp(time).ok()
}

#[cfg(test)]
mod tests {
    use super::parse_time;

    #[test]
    fn times() {
        assert_eq!(parse_time("1970-01-01T00:00:00Z"), Ok(0));
        assert_eq!(parse_time("2000-03-01 00:00:01.5"), Ok(951_868_801_500_000));
        assert_eq!(parse_time("2000-03-01t00:00:01z"), Ok(951_868_801_000_000));
        assert_eq!(parse_time("2000-03-01 01:00:01+01:00"), Ok(951_868_801_000_000));
        assert_eq!(parse_time("1700000000"), Ok(1_700_000_000_000_000));
        for bad in
            ["", "yesterday", "2026-02-30 00:00:00", "2026-01-01", "2026-01-01T25:00:00", "-5", "1970-01-01T00:00:00."]
        {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
}
