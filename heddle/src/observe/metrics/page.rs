//! docs/metrics.md has a line for every metric. A test compares the page with the list, and writes it with `HEDDLE_WRITE_DOCS=1`.

use std::fmt::Write;

use super::Kind;
use super::definitions::ALL;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md");
const BEGIN: &str = "<!-- metrics -->\n";
const END: &str = "<!-- end of metrics -->";

fn table() -> String {
    let mut text = "| Metric | Kind | Labels | Means |\n|---|---|---|---|\n".to_owned();
    for one in ALL {
        let kind = match one.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let labels = one.labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "| `{}` | {kind} | {labels} | {} |", one.full_name(), one.help);
    }
    text
}

#[test]
fn the_page_has_every_metric() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("docs/metrics.md has no place for the metrics");
    let (_, after) = rest.split_once(END).expect("docs/metrics.md has no end of the metrics");
    let made = format!("{before}{BEGIN}{}{END}{after}", table());
    if std::env::var_os("HEDDLE_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &made).unwrap();
    } else {
        assert!(page == made, "HEDDLE_WRITE_DOCS=1 cargo test -p heddle --bins the_page_has_every_metric writes it");
    }
}

#[test]
fn names_follow_the_convention() {
    let mut names: Vec<String> = ALL.iter().map(super::Definition::full_name).collect();
    for (one, name) in ALL.iter().zip(&names) {
        assert!(name.starts_with("heddle_") && one.help.ends_with('.'), "{name}");
        assert!(!one.name.ends_with("_total") && !one.name.ends_with("_seconds"), "{name}: unit and kind add it");
    }
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "a name twice");
}
