//! What goes to standard error with `--log-format json`: one object a line. It decides only the shape of a line, and writes nothing itself.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};

use crate::log_event::LogEvent;

/// All that goes to standard error is JSON: errors at the end, too.
static JSON: AtomicBool = AtomicBool::new(false);

/// From now on.
pub fn switch_on() {
    JSON.store(true, Ordering::Relaxed);
}

pub fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// One line of the log. A remedy in the message has a key of its own.
pub fn json_line(level: &str, message: &str, mut fields: Map<String, Value>) -> String {
    let LogEvent { text: message, fields: more } = LogEvent::new(message);
    for (name, value) in more {
        fields.entry(name).or_insert_with(|| value.into());
    }
    let mut line = Map::new();
    line.insert("timestamp".to_owned(), jiff::Timestamp::now().to_string().into());
    line.insert("level".to_owned(), level.to_ascii_lowercase().into());
    line.insert("message".to_owned(), message.into());
    line.append(&mut fields);
    Value::Object(line).to_string()
}
