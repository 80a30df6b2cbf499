//! Text inside HTML and SVG: escaped, and numbers with commas.

/// For text and attribute values. What changes how other text is shown is written as an escape, as everywhere.
pub fn escape(text: &str) -> String {
    let text = binlog::text::escape(text);
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_attribute() {
        assert_eq!(escape("a<b & \"c\" 'd' ×"), "a&lt;b &amp; &quot;c&quot; &#39;d&#39; ×");
    }

    #[test]
    fn nothing_acts_on_the_text_around_it() {
        assert_eq!(escape("a\u{202e}b\0<\n"), "a\\u{202e}b\\0&lt;\\n");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            (thousands(0), thousands(999), thousands(1_234_567)),
            ("0".into(), "999".into(), "1,234,567".into())
        );
    }
}
