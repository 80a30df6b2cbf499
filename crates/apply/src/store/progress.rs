//! The channel's mark as bytes: lines of text, the GTIDs last.

use binlog::LogPosition;
use engine::progress::Mark;

/// `applied_us`: when it was written, microseconds since the epoch.
pub fn encode(mark: &Mark, applied_us: u64) -> Vec<u8> {
    let (file, offset) = match &mark.position {
        Some(position) => (position.file.as_ref(), position.offset),
        None => ("", 0),
    };
    format!("{}\n{}\n{applied_us}\n{offset}\n{file}\n{}", mark.seq, mark.commit_time_us, mark.gtids).into_bytes()
}

/// The mark, and when it was written.
pub fn decode(bytes: &[u8]) -> Result<(Mark, u64), String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let mut lines = text.splitn(6, '\n');
    let mut next = |what: &str| lines.next().ok_or_else(|| format!("no {what}"));
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
    let seq = number(next("number")?)?;
    let commit_time_us = number(next("commit time")?)?;
    let applied_us = number(next("time")?)?;
    let offset = number(next("offset")?)?;
    let file = next("file")?;
    let gtids = next("GTIDs")?.parse().map_err(|error| format!("GTIDs: {error}"))?;
    let position = (!file.is_empty()).then(|| LogPosition::new(file, offset));
    Ok((Mark { seq, position, gtids, commit_time_us }, applied_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let position = Some(LogPosition::new("binlog.000007", 1234));
        for (gtids, position) in [
            ("", None),
            ("0-1-5,1-2-6", position.clone()),
            ("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7,\n4e11fa47-71ca-11e1-9e33-c80aa9429562:1", position),
        ] {
            let mark = Mark { seq: 7, position, gtids: gtids.parse().unwrap(), commit_time_us: 99 };
            assert_eq!(decode(&encode(&mark, 5)).unwrap(), (mark, 5));
        }
        assert!(decode(b"7\n8").is_err());
        assert!(decode(b"x\n8\n9\n9\n\n").is_err());
    }
}
