//! Byte sizes on the command line and in configuration files: `4096`, `512M`, `10G`. Units are powers of 1024, as in the servers' own options.

/// A number above 0, with a unit K, M, G or T if wanted (also `10GB`, `10GiB`, in small letters, with spaces around the parts).
///
/// # Errors
/// What is expected instead, for the user.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    parse(text).ok_or_else(|| format!("{text:?} is not a number of bytes, such as 512M or 10G"))
}

fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit.trim_start().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|&bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed() {
        for (text, bytes) in [
            ("1", 1),
            ("4096B", 4096),
            ("10k", 10 << 10),
            ("512M", 512 << 20),
            (" 10G ", 10 << 30),
            ("2 GiB", 2 << 30),
            ("3TB", 3 << 40),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for text in ["", "G", "0", "0M", "10KK", "10MG", "-1", "+1", "1.5G", "10 G B", "1e9", "99999999999T"] {
            assert!(parse_bytes(text).is_err_and(|error| error.contains("512M")), "{text}");
        }
    }
}
