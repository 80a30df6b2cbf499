//! `LIKE`: `%` is any text, `_` one character. As written: who compares without regard to case folds both sides before.

/// What a backslash is in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// The character behind it is meant as it is. At the end it means itself.
    Backslash,
    /// A character as any other: the host of an account.
    None,
}

/// Whether the whole of `text` is like `pattern`.
pub fn is_like(text: &str, pattern: &str, escape: Escape) -> bool {
    let parts = parts(pattern, escape);
    let text: Vec<char> = text.chars().collect();
    // Where the last `%` is, and how much of the text it has taken: of several, only the last one has to be tried again.
    let mut last: Option<(usize, usize)> = None;
    let (mut at, mut place) = (0, 0);
    while let Some(character) = text.get(at) {
        match parts.get(place) {
            Some(Part::Any) => {
                last = Some((place, at));
                place += 1;
            }
            Some(Part::One) => (at, place) = (at + 1, place + 1),
            Some(Part::Is(wanted)) if wanted == character => (at, place) = (at + 1, place + 1),
            Some(Part::Is(_)) | None => match &mut last {
                Some((any, taken)) => {
                    *taken += 1;
                    (at, place) = (*taken, *any + 1);
                }
                None => return false,
            },
        }
    }
    parts.iter().skip(place).all(|part| *part == Part::Any)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Any,
    One,
    Is(char),
}

fn parts(pattern: &str, escape: Escape) -> Vec<Part> {
    let mut characters = pattern.chars();
    let mut parts = Vec::new();
    while let Some(character) = characters.next() {
        parts.push(match character {
            '%' => Part::Any,
            '_' => Part::One,
            '\\' if escape == Escape::Backslash => Part::Is(characters.next().unwrap_or('\\')),
            character => Part::Is(character),
        });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_like_a_pattern() {
        let check = |text: &str, pattern: &str, want: bool| {
            assert_eq!(is_like(text, pattern, Escape::Backslash), want, "{text} LIKE {pattern}");
        };
        check("", "", true);
        check("", "%", true);
        check("", "_", false);
        check("a", "", false);
        check("abc", "a%", true);
        check("abc", "%c", true);
        check("abc", "a_c", true);
        check("abc", "a%b", false);
        check("abcabd", "%ab_", true);
        check("abcabd", "%ab_%c%d", false);
        check("abccabd", "%ab_%c%d", true);
        check("\u{e9}t\u{e9}", "_t_", true);
        check("a%c", "a\\%c", true);
        check("abc", "a\\%c", false);
        check("a_c", "a\\_c", true);
        check("a\\", "a\\", true);
        check("ABC", "abc", false);
        // As many ways as there are subsets of its letters, and one is tried.
        check(&"a".repeat(5000), &format!("{}b", "%a".repeat(50)), false);
    }

    #[test]
    fn a_backslash_may_mean_itself() {
        assert!(is_like("a\\b", "a\\_", Escape::None));
        assert!(!is_like("a_", "a\\_", Escape::None));
    }
}
