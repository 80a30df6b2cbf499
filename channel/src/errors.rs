//! The text of errors.

/// An error and its causes in one line. Causes that the text before them has said already are left out.
pub fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_said_once() {
        let refused = anyhow::anyhow!("refused").context("cannot connect: refused").context("source");
        assert_eq!(chain(&refused), "source: cannot connect: refused");
        assert_eq!(chain(&anyhow::anyhow!("alone")), "alone");
    }
}
