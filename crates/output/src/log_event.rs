//! An error's place and remedy as fields of a log event: one event is one line, and programs find the remedy by its name.
//!
//! [`engine::failure::Failure`] and what is made like it show them as lines of their own, for a screen. It writes nothing.

/// What the lines behind the first begin with, and the field's name.
const LABELS: [(&str, &str); 2] = [("where: ", "place"), ("what to do: ", "remedy")];

/// A message in one line, and its fields.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LogEvent {
    pub text: String,
    pub fields: Vec<(&'static str, String)>,
}

impl LogEvent {
    pub fn new(message: &str) -> Self {
        let mut event = Self::default();
        for line in message.lines().map(str::trim) {
            let label = LABELS.iter().find_map(|(label, name)| Some((*name, line.strip_prefix(label)?)));
            match label.filter(|_| !event.text.is_empty()) {
                Some((name, value)) => event.fields.push((name, value.to_owned())),
                None => event.add(line),
            }
        }
        event
    }

    /// Other line breaks, as in a set of GTIDs, are spaces.
    fn add(&mut self, line: &str) {
        if !self.text.is_empty() && !line.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(line);
    }
}

#[cfg(test)]
mod tests {
    use engine::failure::{Failure, FailureKind};

    use super::*;

    #[test]
    fn a_remedy_is_a_field() {
        let check = |message: &str, text: &str, fields: &[(&'static str, &str)]| {
            let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
            assert_eq!(LogEvent::new(message), LogEvent { text: text.to_owned(), fields });
        };
        let failure = Failure::new(FailureKind::Refused, "no table").at("GTID 0-1-2").remedy("create it");
        check(
            &format!("trying again: {failure}"),
            "trying again: no table",
            &[("place", "GTID 0-1-2"), ("remedy", "create it")],
        );
        check("plain", "plain", &[]);
        check("one,\ntwo", "one, two", &[]);
        check("what to do: nothing", "what to do: nothing", &[]);
        check("", "", &[]);
    }
}
