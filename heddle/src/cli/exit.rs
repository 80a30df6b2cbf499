//! What the process ends with, for scripts.

/// The channel went on to where it was told to.
pub const EXIT_OK: u8 = 0;
/// A failure: the message says what happened, where, and what to do.
pub const EXIT_FAILED: u8 = 1;
/// `rescue`: stopped before the hand-back; the replica does not replicate by itself.
pub const EXIT_UNFINISHED: u8 = 3;
/// The command line was not understood (clap's own code).
pub const EXIT_USAGE: u8 = 2;
/// A part of the input could not be read; the output says which.
pub const EXIT_PARTIAL: u8 = 4;

/// What clap lets pass and is wrong all the same, whatever the servers and files are.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Of an error that nobody handled.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let is_usage = error.chain().any(|cause| cause.is::<Usage>() || cause.is::<wire::UrlError>());
    if is_usage { EXIT_USAGE } else { EXIT_FAILED }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_command_line_that_was_not_understood_has_its_own_exit_code() {
        let url = || wire::ConnectOptions::from_url("mysql://host:notaport").context("the target's URL");
        assert_eq!(exit_code(&url().unwrap_err()), EXIT_USAGE);
        assert_eq!(exit_code(&anyhow::Error::new(Usage("--channel".to_owned()))), EXIT_USAGE);
        assert_eq!(exit_code(&anyhow::anyhow!("no answer").context("target")), EXIT_FAILED);
    }
}
