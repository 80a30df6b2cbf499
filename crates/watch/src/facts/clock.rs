//! Times as servers show them. Pure.

/// Seconds since 1970 of `2026-11-25 17:50:20.204999`, as the servers show a time in their session's zone. Only differences of two of them are meant. `None`: no time,
/// or the zero one.
pub fn seconds_of(time: &str) -> Option<f64> {
    let (date, clock) = time.split_once(' ')?;
    let mut parts = date.split('-').map(|part| part.parse::<i16>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.split(':').map(|part| part.parse::<i8>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let date =
        jiff::civil::DateTime::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?, hour, minute, second, 0);
    let epoch = jiff::civil::DateTime::new(1970, 1, 1, 0, 0, 0, 0).ok()?;
    let time = date.ok().filter(|_| year > 0)?.duration_since(epoch);
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    Some(time.as_secs() as f64 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_servers() {
        assert_eq!(seconds_of("1970-01-02 00:00:01.5"), Some(86_401.5));
        assert_eq!(seconds_of("2026-11-25 17:50:20"), Some(1_795_629_020.0));
        for nothing in ["", "0000-00-00 00:00:00.000000", "2026-11-25", "x y"] {
            assert_eq!(seconds_of(nothing), None, "{nothing}");
        }
    }
}
