//! What a rescue is called on the replica: the channel that applies, and the lock that one Heddle holds. Pure.

/// The name of our channel for native replication's.
pub fn progress_channel(native: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match native {
        "" => "rescue".to_owned(),
        name if name.len() <= 40 && name.chars().all(plain) => format!("rescue-{name}"),
        name => format!("rescue-{:016x}", twox_hash::XxHash64::oneshot(0, name.as_bytes())),
    }
}

/// The lock (`GET_LOCK`) of the Heddle whose channel this is.
pub fn lock(progress: &str) -> String {
    format!("heddle.rescue.{progress}").chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_channels() {
        assert_eq!(progress_channel(""), "rescue");
        assert_eq!(progress_channel("east"), "rescue-east");
        assert!(progress_channel("é t").starts_with("rescue-") && progress_channel(&"x".repeat(64)).len() <= 50);
        assert_eq!(lock("rescue"), "heddle.rescue.rescue");
    }
}
