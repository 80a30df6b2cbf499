//! `heddle completions` and `heddle man`: what shells and `man` know of the flags, derived from the flags themselves.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use super::exit::EXIT_OK;
use output::streams::Pipe;

/// Print what a shell needs to complete heddle's commands and flags
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heddle completions bash > ~/.local/share/bash-completion/completions/heddle
  heddle completions zsh > ~/.zfunc/_heddle
  heddle completions fish > ~/.config/fish/completions/heddle.fish")]
pub struct CompletionsArgs {
    /// Which shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Write the man pages into a folder
#[derive(Debug, Args)]
pub struct ManArgs {
    /// A folder that exists
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub fn completions(args: &CompletionsArgs, command: &mut Command) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, command, "heddle", &mut text);
    let mut out = Pipe::new(std::io::stdout().lock());
    match out.write_all(&text).and_then(|()| out.flush()) {
        Err(error) if !out.gone => Err(error).context("standard output"),
        _ => Ok(ExitCode::from(EXIT_OK)),
    }
}

/// `heddle.1`, and one page for each command that help shows.
pub fn man(args: &ManArgs, command: Command) -> Result<ExitCode> {
    let mut command = command.disable_help_subcommand(true);
    // Names each command "heddle-NAME".
    command.build();
    write_page(&args.dir, &command)?;
    for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        write_page(&args.dir, one)?;
    }
    Ok(ExitCode::from(EXIT_OK))
}

fn write_page(dir: &Path, command: &Command) -> Result<()> {
    let path = dir.join(format!("{}.1", command.get_display_name().unwrap_or(command.get_name())));
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    std::fs::write(&path, page).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// Every flag of every command that help shows is in its page; nothing of a page is lost in macros of its own.
    #[test]
    fn pages_have_all_flags() {
        let dir = tempfile::tempdir().unwrap();
        man(&ManArgs { dir: dir.path().to_owned() }, Cli::command()).unwrap();
        let main = std::fs::read_to_string(dir.path().join("heddle.1")).unwrap();
        let mut pages = 0;
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let page = std::fs::read_to_string(dir.path().join(format!("heddle-{name}.1"))).unwrap();
            for flag in command.get_arguments().filter(|flag| !flag.is_hide_set()).filter_map(|flag| flag.get_long()) {
                let escaped = format!("\\-\\-{}", flag.replace('-', "\\-"));
                assert!(page.contains(&escaped), "{name}: --{flag}: {page}");
            }
            assert!(main.contains(&format!("heddle\\-{name}(1)")), "{main}");
            pages += 1;
        }
        assert!(pages >= 8, "{pages}");
    }

    #[test]
    fn shells_complete_flags() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "heddle", &mut text);
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains("until-position") && text.contains("rescue"), "{shell}");
        }
    }
}
