//! Several OpenMetrics texts → one: a family's samples stand together (the format wants that), and each sample says which channel it is of. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Default)]
struct Family {
    /// `# TYPE`, `# UNIT`, `# HELP`, of the first text that has it.
    about: String,
    samples: String,
}

/// `first`: families of its own. Of the others each sample gets the label `channel`.
pub(super) fn merged<'a>(first: &str, texts: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let (mut order, mut families) = (Vec::new(), BTreeMap::<String, Family>::new());
    add(&mut order, &mut families, first, None);
    for (channel, text) in texts {
        add(&mut order, &mut families, text, Some(channel));
    }
    let mut all = String::new();
    for family in order.iter().filter_map(|name| families.get(name)) {
        all.push_str(&family.about);
        all.push_str(&family.samples);
    }
    all.push_str("# EOF\n");
    all
}

fn add(order: &mut Vec<String>, families: &mut BTreeMap<String, Family>, text: &str, channel: Option<&str>) {
    let mut name = String::new();
    let mut is_new = false;
    for line in text.lines() {
        if line == "# EOF" || line.is_empty() {
            continue;
        }
        if let Some(about) = line.strip_prefix("# ") {
            let family = about.split(' ').nth(1).unwrap_or_default();
            if family != name {
                family.clone_into(&mut name);
                is_new = !families.contains_key(&name);
                if is_new {
                    order.push(name.clone());
                }
            }
            let family = families.entry(name.clone()).or_default();
            if is_new {
                let _ = writeln!(family.about, "{line}");
            }
            continue;
        }
        let family = families.entry(name.clone()).or_default();
        let line = channel.map_or_else(|| line.to_owned(), |channel| of_channel(line, channel));
        let _ = writeln!(family.samples, "{line}");
    }
}

/// The sample with this value of the label `channel`: two processes may have channels of one name, into different targets.
fn of_channel(sample: &str, channel: &str) -> String {
    const LABEL: &str = "channel=\"";
    let label = format!("{LABEL}{}\"", escaped(channel));
    let Some(open) = sample.find(['{', ' ']) else { return sample.to_owned() };
    let (name, rest) = sample.split_at(open);
    let Some(labels) = rest.strip_prefix('{') else { return format!("{name}{{{label}}}{rest}") };
    if labels.starts_with('}') {
        return format!("{name}{{{label}{labels}");
    }
    // Heddle writes it first.
    match labels.strip_prefix(LABEL).and_then(end_of_value) {
        Some(after) => format!("{name}{{{label}{after}"),
        None => format!("{name}{{{label},{labels}"),
    }
}

/// What comes behind the closing quotation mark.
fn end_of_value(text: &str) -> Option<&str> {
    let mut is_escaped = false;
    for (at, char) in text.char_indices() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return text.get(at + 1..),
            _ => {}
        }
    }
    None
}

/// As a label's value.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_stands_together() {
        let one = "# HELP a A.\n# TYPE a counter\na_total{channel=\"x\"} 1\n# TYPE b gauge\nb{worker=\"1\"} 2\n# EOF\n";
        let two = "# HELP a A.\n# TYPE a counter\na_total{channel=\"y\",of=\"z\"} 3\n# TYPE c gauge\nc 4\n# EOF\n";
        let all = merged("# TYPE up gauge\nup 1\n", [("x", one), ("y\"", two)].into_iter());
        assert_eq!(
            all,
            "# TYPE up gauge\nup 1\n# HELP a A.\n# TYPE a counter\na_total{channel=\"x\"} 1\na_total{channel=\"y\\\"\",of=\"z\"} 3\n\
             # TYPE b gauge\nb{channel=\"x\",worker=\"1\"} 2\n# TYPE c gauge\nc{channel=\"y\\\"\"} 4\n# EOF\n"
        );
    }

    #[test]
    fn labels() {
        for (sample, expected) in [
            ("a 1", "a{channel=\"x\"} 1"),
            ("a{} 1", "a{channel=\"x\"} 1"),
            ("a{channel=\"o\\\"ne\"} 1", "a{channel=\"x\"} 1"),
            ("a_bucket{channel=\"one\",le=\"0.1\"} 1", "a_bucket{channel=\"x\",le=\"0.1\"} 1"),
            ("a{le=\"0.1\"} 1", "a{channel=\"x\",le=\"0.1\"} 1"),
        ] {
            assert_eq!(of_channel(sample, "x"), expected);
        }
    }
}
