//! What a channel's process says, line by line, with the channel's name: `[orders] …`, or a field of a line of JSON.

use std::io::{BufRead, BufReader, Read};
use std::thread;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use output::streams;

/// Where the lines go.
#[derive(Clone, Copy, Debug)]
pub enum OutputStream {
    Out,
    Error,
}

/// Until the process closes its end.
pub fn pass_on(from: impl Read + Send + 'static, channel: &str, to: OutputStream) -> Result<()> {
    let channel = channel.to_owned();
    let copy = move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            let text = String::from_utf8_lossy(&line);
            let text = named(&channel, text.trim_end_matches('\n'));
            match to {
                OutputStream::Out => streams::line(format_args!("{text}")),
                OutputStream::Error => streams::error_line(&text),
            }
            line.clear();
        }
    };
    thread::Builder::new().name("lines".to_owned()).spawn(copy).context("a thread")?;
    Ok(())
}

fn named(channel: &str, line: &str) -> String {
    match serde_json::from_str::<Map<String, Value>>(line) {
        Ok(mut fields) => {
            fields.entry("channel").or_insert_with(|| channel.into());
            Value::Object(fields).to_string()
        }
        Err(_) => format!("[{channel}] {line}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_says_which_channel() {
        assert_eq!(named("a", "INFO x"), "[a] INFO x");
        assert_eq!(named("a", r#"{"level":"info"}"#), r#"{"channel":"a","level":"info"}"#.to_owned());
        assert_eq!(named("a", r#"{"channel":"b"}"#), r#"{"channel":"b"}"#);
    }
}
