//! docs/metrics.md has a line for every metric. A test compares the page with the list, and writes it with `HEDDLE_WRITE_DOCS=1`.

use std::fmt::Write;

use super::comparison::ALL as COMPARISON;
use super::copy::ALL as COPY;
use super::definitions::ALL;
use super::mirror::ALL as MIRROR;
use super::replicas::ALL as WATCHED;
use super::{Definition, Kind};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
const BEGIN: &str = "<!-- metrics -->\n";
const BEGIN_MIRROR: &str = "<!-- metrics of a mirror -->\n";
const BEGIN_COMPARISON: &str = "<!-- metrics of a comparison -->\n";
const BEGIN_COPY: &str = "<!-- metrics of a copy -->\n";
const BEGIN_WATCH: &str = "<!-- metrics of watched replicas -->\n";
const END: &str = "<!-- end of metrics -->";

fn table<R>(definitions: &[Definition<R>]) -> String {
    let mut text = "| Metric | Kind | Labels | Means |\n|---|---|---|---|\n".to_owned();
    for one in definitions {
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

/// The page with `content` between its two marks.
fn replaced(page: &str, begin: &str, content: &str) -> String {
    let (before, rest) = page.split_once(begin).expect("docs/metrics.md has no place for the metrics");
    let (_, after) = rest.split_once(END).expect("docs/metrics.md has no end of the metrics");
    format!("{before}{begin}{content}{END}{after}")
}

#[test]
fn the_page_has_every_metric() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let made = replaced(&replaced(&page, BEGIN, &table(ALL)), BEGIN_MIRROR, &table(MIRROR));
    let made = replaced(&made, BEGIN_WATCH, &table(WATCHED));
    let made = replaced(&made, BEGIN_COMPARISON, &table(COMPARISON));
    let made = replaced(&made, BEGIN_COPY, &table(COPY));
    if std::env::var_os("HEDDLE_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &made).unwrap();
    } else {
        assert!(
            page == made,
            "HEDDLE_WRITE_DOCS=1 cargo test -p heddle-observe --lib the_page_has_every_metric writes it"
        );
    }
}

#[test]
fn names_follow_the_convention() {
    let of_channel = ALL.iter().map(|one| (one.name, one.help, one.full_name()));
    let of_mirror = MIRROR.iter().map(|one| (one.name, one.help, one.full_name()));
    let watched = WATCHED.iter().map(|one| (one.name, one.help, one.full_name()));
    let compared = COMPARISON.iter().map(|one| (one.name, one.help, one.full_name()));
    let copied = COPY.iter().map(|one| (one.name, one.help, one.full_name()));
    let all: Vec<_> = of_channel.chain(of_mirror).chain(watched).chain(compared).chain(copied).collect();
    for (short, help, name) in &all {
        assert!(name.starts_with("heddle_") && help.ends_with('.'), "{name}");
        assert!(!short.ends_with("_total") && !short.ends_with("_seconds"), "{name}: unit and kind add it");
    }
    let mut names: Vec<&String> = all.iter().map(|(.., name)| name).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "a name twice");
}
