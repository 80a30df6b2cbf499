//! Where files are kept from one run to the next.

use std::path::PathBuf;

use anyhow::{Result, bail};

/// `$XDG_STATE_HOME/heddle`, or `~/.local/state/heddle`. It need not be there.
pub fn state_dir() -> Result<PathBuf> {
    let state = match (std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME")) {
        (Some(state), _) if !state.is_empty() => PathBuf::from(state),
        (_, Some(home)) => PathBuf::from(home).join(".local/state"),
        _ => bail!("neither XDG_STATE_HOME nor HOME is set"),
    };
    Ok(state.join("heddle"))
}
