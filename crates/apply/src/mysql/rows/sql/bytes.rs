//! Bytes as a literal.

/// Why a value has no literal.
pub type LiteralError = String;

/// A string literal of bytes as they are.
pub fn put_bytes(introducer: &str, raw: &[u8], out: &mut Vec<u8>) {
    out.reserve(introducer.len() + raw.len() + 2);
    out.extend_from_slice(introducer.as_bytes());
    out.push(b'\'');
    let mut rest = raw;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, 0 | b'\'' | b'\\')) {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((byte, behind)) = special.split_first() else { break };
        out.push(b'\\');
        out.push(if *byte == 0 { b'0' } else { *byte });
        rest = behind;
    }
    out.extend_from_slice(rest);
    out.push(b'\'');
}
