//! A password in memory: never printed, zeroed on drop. It does not protect against a debugger or a core dump.

use std::fmt;

use zeroize::Zeroizing;

/// A password. `Debug` and `Display` print a placeholder.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a password.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(Zeroizing::new(text.into()))
    }

    /// The password itself; the caller keeps it out of logs and errors.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// True for the empty password, which the protocol treats as "no password".
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Secret::new(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Secret::new(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_prints() {
        let secret = Secret::new("hunter2");
        let text = format!("{secret} {secret:?}");
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(secret.expose(), "hunter2");
    }
}
