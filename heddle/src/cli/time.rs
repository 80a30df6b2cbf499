//! Times as people write them.

/// Microseconds since 1970 of `2026-11-20T03:14:00[.5][Z]`, the same with a space, or a number of seconds.
pub fn parse_time(text: &str) -> Result<u64, String> {
    let bad = || format!("{text:?} is not a time: write 2026-11-20T03:14:00Z (UTC) or seconds since 1970");
    if let Ok(seconds) = text.parse::<f64>() {
        return if (0.0..1e12).contains(&seconds) { Ok((seconds * 1e6) as u64) } else { Err(bad()) };
    }
    let (date, time) = text.trim().trim_end_matches(['Z', 'z']).split_once(['T', 't', ' ']).ok_or_else(bad)?;
    let numbers = |text: &str, by: char| -> Option<Vec<u64>> { text.split(by).map(|part| part.parse().ok()).collect() };
    let date = numbers(date, '-').ok_or_else(bad)?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let time = numbers(time, ':').ok_or_else(bad)?;
    let ([year, month, day], [hour, minute, second]) = (date.as_slice(), time.as_slice()) else { return Err(bad()) };
    if *year < 1970 || *year > 9999 || !(1..=12).contains(month) || *hour > 23 || *minute > 59 || *second > 60 {
        return Err(bad());
    }
    if *day < 1 || *day > days_in_month(*year, *month) || fraction.is_empty() || fraction.len() > 6 {
        return Err(bad());
    }
    let micros: u64 = format!("{fraction:0<6}").parse().map_err(|_| bad())?;
    let seconds = days_since_1970(*year, *month, *day) * 86_400 + hour * 3600 + minute * 60 + second;
    Ok(seconds * 1_000_000 + micros)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let years: u64 = (1970..year).map(|year| 365 + u64::from(is_leap(year))).sum();
    let months: u64 = (1..month).map(|month| days_in_month(year, month)).sum();
    years + months + day - 1
}

#[cfg(test)]
mod tests {
    use super::parse_time;

    #[test]
    fn times() {
        assert_eq!(parse_time("1970-01-01T00:00:00Z"), Ok(0));
        assert_eq!(parse_time("2000-03-01 00:00:01.5"), Ok(951_868_801_500_000));
        assert_eq!(parse_time("1700000000"), Ok(1_700_000_000_000_000));
        for bad in
            ["", "yesterday", "2026-02-30 00:00:00", "2026-01-01", "2026-01-01T25:00:00", "-5", "1970-01-01T00:00:00."]
        {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
}
