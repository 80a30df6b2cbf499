//! `--ack`: what has to be durable, and where, before the mirror acknowledges it to the source.

use std::fmt;
use std::str::FromStr;

/// See the module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ack {
    /// The source is told nothing.
    #[default]
    Off,
    /// This mirror has it.
    Local,
    /// This mirror has it, and so have some of the others that attach to this one.
    Others { needed: usize, of: usize },
}

/// Other mirrors of one: nobody has more.
const OTHERS_MAX: usize = 16;

impl FromStr for Ack {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not off, local, or K-of:N such as 1-of:2 (K other heddles of N)");
        match text {
            "off" => return Ok(Ack::Off),
            "local" => return Ok(Ack::Local),
            _ => {}
        }
        let (needed, of) = text.split_once("-of:").ok_or_else(wrong)?;
        let (needed, of) = (needed.parse::<usize>().map_err(|_| wrong())?, of.parse::<usize>().map_err(|_| wrong())?);
        if needed == 0 {
            return Err(format!("{text:?}: K counts the other heddles; without any say local"));
        }
        if needed > of || of > OTHERS_MAX {
            return Err(format!("{text:?}: K-of:N needs K <= N <= {OTHERS_MAX}"));
        }
        Ok(Ack::Others { needed, of })
    }
}

impl fmt::Display for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ack::Off => f.write_str("off"),
            Ack::Local => f.write_str("local"),
            Ack::Others { needed, of } => write!(f, "{needed}-of:{of}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_asked_for() {
        for text in ["off", "local", "1-of:1", "2-of:3", "16-of:16"] {
            assert_eq!(text.parse::<Ack>().unwrap().to_string(), text);
        }
        for text in ["", "on", "0-of:2", "3-of:2", "1-of:17", "-1-of:2", "1of2", "1-of:", "k-of:n"] {
            assert!(text.parse::<Ack>().is_err(), "{text}");
        }
    }
}
