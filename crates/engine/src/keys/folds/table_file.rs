//! Reads the tables of this folder. They are part of the program, so a line that cannot be read is a fault of ours: it panics.
#![expect(clippy::expect_used, clippy::panic, reason = "the files are compiled in, and a test reads each of them")]

use super::table::{SingleByteFold, UnicodeFold};

/// A table of lines, code points in hexadecimal:
///
/// | Line | Means |
/// |---|---|
/// | `beyond CHARACTER` | all characters beyond the basic plane are equal to this one |
/// | `covered FIRST LAST` | something is known of these characters |
/// | `fold FIRST LAST CHARACTER…` | each of them becomes these characters, or nothing |
/// | `shift FIRST LAST CHARACTER` | the first becomes this character, the second the one after it, … |
pub(super) fn read_unicode(name: &'static str, text: &str) -> UnicodeFold {
    let mut table = UnicodeFold { name, covered: Vec::new(), folds: Vec::new(), beyond_bmp: None };
    for line in lines(text) {
        let (kind, points) = line.split_once(' ').expect("a kind and its code points");
        let points: Vec<u32> = points.split(' ').map(code_point).collect();
        match (kind, points.as_slice()) {
            ("beyond", [common]) => table.beyond_bmp = Some(character(*common)),
            ("covered", [first, last]) => table.covered.push((character(*first), character(*last))),
            ("fold", [first, last, to @ ..]) => {
                let to: Box<str> = to.iter().copied().map(character).collect::<String>().into();
                table.folds.extend((*first..=*last).map(|from| (character(from), to.clone())));
            }
            ("shift", [first, last, to]) => {
                let shifted = (*first..=*last).zip(*to..);
                table.folds.extend(shifted.map(|(from, to)| (character(from), character(to).to_string().into())));
            }
            _ => panic!("no line of a table: {line}"),
        }
    }
    table
}

/// A line for each collation: its name, and the weights of the 256 bytes, two hexadecimal digits each.
pub(super) fn read_single_byte(text: &'static str) -> Vec<SingleByteFold> {
    lines(text)
        .map(|line| {
            let (name, digits) = line.split_once(' ').expect("a name and its weights");
            let mut weights = [0; 256];
            hex::decode_to_slice(digits, &mut weights).expect("256 weights");
            SingleByteFold { name, weights }
        })
        .collect()
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

fn code_point(digits: &str) -> u32 {
    u32::from_str_radix(digits, 16).expect("a number in hexadecimal")
}

fn character(point: u32) -> char {
    char::from_u32(point).expect("a character")
}
