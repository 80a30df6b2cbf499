//! Text with wildcards: of names in filters, hosts and grants, and of `LIKE`. Compares as written: who takes no notice of case folds both sides.

/// A piece of a text with wildcards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    Character(char),
    /// One character.
    One,
    /// Any characters, none included.
    Any,
}

/// The pieces of a text in which `any` and `one` are wildcards, and a backslash comes before what is meant as it is; at the end it means itself.
pub fn pieces(text: &str, any: char, one: char) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        pieces.push(match character {
            '\\' => Piece::Character(characters.next().unwrap_or('\\')),
            _ if character == any => Piece::Any,
            _ if character == one => Piece::One,
            _ => Piece::Character(character),
        });
    }
    pieces
}

/// Whether the whole of the text matches.
pub fn matches(pieces: &[Piece], text: &[char]) -> bool {
    let (mut piece, mut at) = (0, 0);
    // Where the last `Any` stands, and what of the text it has taken: of several, only the last one has to be tried again.
    let mut retry: Option<(usize, usize)> = None;
    while let Some(character) = text.get(at) {
        match pieces.get(piece) {
            Some(Piece::Any) => {
                retry = Some((piece, at));
                piece += 1;
            }
            Some(Piece::One) => (piece, at) = (piece + 1, at + 1),
            Some(Piece::Character(wanted)) if wanted == character => (piece, at) = (piece + 1, at + 1),
            Some(Piece::Character(_)) | None => match &mut retry {
                Some((any, taken)) => {
                    *taken += 1;
                    (piece, at) = (*any + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pieces.iter().skip(piece).all(|piece| *piece == Piece::Any)
}

/// SQL's `LIKE` with `%`, `_` and the backslash.
pub fn is_like(text: &str, pattern: &str) -> bool {
    matches(&pieces(pattern, '%', '_'), &text.chars().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_like_a_pattern() {
        let check = |text: &str, pattern: &str, want: bool| {
            assert_eq!(is_like(text, pattern), want, "{text} LIKE {pattern}");
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
}
