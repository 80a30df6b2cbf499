//! The log on standard error: lines for people, or one JSON object a line (`--log-format json`). It filters nothing and never writes to standard output.

use std::fmt;

use clap::ValueEnum;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::{self, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use output::json_log;
use output::log_event::LogEvent;

/// `--log-format`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object a line: timestamp, level, message, and fields
    Json,
}

pub fn start(filter: &str, format: LogFormat) {
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(observe::progress::writer)
        .with_ansi(format == LogFormat::Text && output::streams::may_colour(&std::io::stderr()))
        .with_target(false);
    match format {
        LogFormat::Text => log.fmt_fields(text_fields()).init(),
        LogFormat::Json => {
            json_log::switch_on();
            log.event_format(Json).init();
        }
    }
}

/// The message, then the fields: an error's remedy is one of them.
fn text_fields() -> impl for<'w> FormatFields<'w> + Send + Sync + 'static {
    format::debug_fn(|writer, field, value| {
        if field.name() != "message" {
            return write!(writer, "{}={value:?}", field.name());
        }
        let event = LogEvent::new(&format!("{value:?}"));
        writer.write_str(&event.text)?;
        event.fields.iter().try_for_each(|(name, value)| write!(writer, " {name}={value:?}"))
    })
    .delimited(" ")
}

struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        writeln!(writer, "{}", json_log::json_line(event.metadata().level().as_str(), &fields.message, fields.others))
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        self.others.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.add(field, format!("{value:?}").into());
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn each_event_is_one_line_of_text() {
        let written = Written::default();
        let to = written.clone();
        let log = tracing_subscriber::fmt().with_writer(move || to.clone()).with_ansi(false).fmt_fields(text_fields());
        tracing::subscriber::with_default(log.finish(), || {
            tracing::warn!(worker = 3_usize, who = "a\"b", "no table\n  where: GTID 0-1-2\n  what to do: create \"t\"");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let (_, line) = text.trim_end().split_once("heddle").unwrap();
        let (_, line) = line.split_once(": ").unwrap();
        assert_eq!(line, r#"no table place="GTID 0-1-2" remedy="create \"t\"" worker=3 who="a\"b""#);
    }

    #[test]
    fn each_event_is_one_line_of_json() {
        let written = Written::default();
        let to = written.clone();
        let log = tracing_subscriber::fmt().with_writer(move || to.clone()).event_format(Json).finish();
        tracing::subscriber::with_default(log, || {
            tracing::warn!(worker = 3_usize, lag = 1.5, who = "a\"b", "two\nlines: {}", "ä");
            tracing::info!("next");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [first, second] = lines.as_slice() else { panic!("{text}") };
        assert_eq!((&first["level"], &first["message"]), (&"warn".into(), &"two lines: ä".into()));
        assert_eq!((&first["worker"], &first["lag"], &first["who"]), (&3.into(), &1.5.into(), &"a\"b".into()));
        assert!(second["timestamp"].as_str().is_some_and(|time| time.parse::<jiff::Timestamp>().is_ok()), "{text}");
    }
}
