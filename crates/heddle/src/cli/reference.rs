//! The tables of flags in docs/commands.md, from the flags themselves: everyday flags first, then those with the heading [`EXPERT`]. Only tests
//! use it: one compares the page, and writes it with `HEDDLE_WRITE_DOCS=1`.

use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};

use super::Cli;
use super::headings::EXPERT;

/// With more of them the page only names them.
const VALUES_EXPLAINED_MAX: usize = 4;

/// The page's part for one command: how it is called, and its flags.
fn section(command: &Command, path: &str) -> String {
    let visible: Vec<&Arg> =
        command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_global_set() && !is_help(arg)).collect();
    let (positional, flags): (Vec<&Arg>, Vec<&Arg>) = visible.into_iter().partition(|arg| arg.is_positional());
    let (expert, everyday): (Vec<&Arg>, Vec<&Arg>) =
        flags.into_iter().partition(|arg| arg.get_help_heading() == Some(EXPERT));
    let mut text = usage(path, &positional, &everyday);
    let first: Vec<&Arg> = positional.into_iter().chain(everyday).collect();
    if !first.is_empty() {
        let _ = write!(text, "\n{}", table(&first));
    }
    if !expert.is_empty() {
        let _ = write!(text, "\nFor experts:\n\n{}", table(&expert));
    }
    text
}

fn usage(path: &str, positional: &[&Arg], everyday: &[&Arg]) -> String {
    let mut usage = path.to_owned();
    for arg in positional.iter().filter(|arg| arg.is_required_set()) {
        let _ = write!(usage, " {}", shown(arg));
    }
    for arg in positional.iter().filter(|arg| !arg.is_required_set()) {
        let _ = write!(usage, " [{}]", shown(arg));
    }
    for arg in everyday.iter().filter(|arg| arg.is_required_set()) {
        let _ = write!(usage, " {}", shown(arg));
    }
    format!("<!-- not run: how the command is called -->\n```sh\n{usage} [options]\n```\n")
}

fn table(args: &[&Arg]) -> String {
    let mut table = "| Flag | Default | Meaning |\n|---|---|---|\n".to_owned();
    for arg in args {
        let _ = writeln!(table, "| `{}` | {} | {} |", shown(arg), default(arg), meaning(arg));
    }
    table
}

/// `--from SOURCE…`
fn shown(arg: &Arg) -> String {
    let names = arg.get_value_names().map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
    let takes_value = arg.is_positional() || arg.get_action().takes_values();
    let mut value = names.unwrap_or_else(|| vec![arg.get_id().as_str().to_uppercase()]).join(" ");
    if arg.get_num_args().is_some_and(|count| count.max_values() > 1) {
        value.push('…');
    }
    match arg.get_long() {
        Some(long) if takes_value => format!("--{long} {value}"),
        Some(long) => format!("--{long}"),
        None => value,
    }
    .replace('|', "\\|")
}

fn default(arg: &Arg) -> String {
    if arg.is_required_set() {
        return "required".to_owned();
    }
    if !arg.get_action().takes_values() {
        return String::new();
    }
    let values: Vec<String> =
        arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    values.join(", ")
}

/// The long help, or the short one, and the values to choose among.
fn meaning(arg: &Arg) -> String {
    let mut text = arg.get_long_help().or_else(|| arg.get_help()).map(plain).unwrap_or_default();
    let values = if arg.get_action().takes_values() { arg.get_possible_values() } else { Vec::new() };
    let values: Vec<_> = values.iter().filter(|value| !value.is_hide_set()).collect();
    let is_explained = values.iter().any(|value| text.contains(&format!("{}:", value.get_name())));
    if values.len() <= VALUES_EXPLAINED_MAX && !values.is_empty() && !is_explained {
        let all: Vec<String> = values
            .iter()
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}`: {}", value.get_name(), plain(help)),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        let _ = write!(text, ". {}", all.join(" · "));
    }
    text.replace('|', "\\|")
}

/// Paragraphs become sentences, flags become code.
fn plain(help: &StyledStr) -> String {
    let word = |word: &str| match word.strip_prefix("--") {
        Some(_) => {
            let flag = word.trim_end_matches([',', '.', ';', ':', ')']);
            format!("`{flag}`{}", word.strip_prefix(flag).unwrap_or_default())
        }
        None => word.to_owned(),
    };
    let paragraph = |text: &str| text.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    help.to_string().trim().split("\n\n").map(paragraph).collect::<Vec<_>>().join(". ")
}

fn is_help(arg: &Arg) -> bool {
    matches!(arg.get_id().as_str(), "help" | "version")
}

/// Every command that help shows, by what is typed: `heddle channel skip`.
fn commands() -> Vec<(String, Command)> {
    let mut found = Vec::new();
    let mut left = vec![("heddle".to_owned(), Cli::command().disable_help_subcommand(true))];
    while let Some((path, command)) = left.pop() {
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            left.push((format!("{path} {}", one.get_name()), one.clone()));
        }
        let leads = command.get_subcommands().any(|one| !one.is_hide_set());
        if !leads {
            found.push((path, command));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// The flags of every command.
fn global() -> String {
    let command = Cli::command();
    let args: Vec<&Arg> = command.get_arguments().filter(|arg| arg.is_global_set()).collect();
    table(&args)
}

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
const WRITE: &str = "HEDDLE_WRITE_DOCS=1 cargo test -p heddle --bins the_flags_in_the_docs writes it";

/// The page with `content` between its two marks.
fn replaced(page: &str, name: &str, content: &str) -> String {
    let (begin, end) = (format!("<!-- flags of {name} -->\n"), "<!-- end of flags -->");
    let Some((before, rest)) = page.split_once(&begin) else {
        panic!("docs/commands.md has no {begin:?}: add it and {end:?}; then {WRITE}");
    };
    let Some((_, after)) = rest.split_once(end) else { panic!("docs/commands.md: {begin:?} has no {end:?}") };
    format!("{before}{begin}{content}{end}{after}")
}

/// `HEDDLE_WRITE_DOCS=1` writes the tables in place of comparing them.
#[test]
fn the_flags_in_the_docs_are_the_flags() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let commands = commands();
    let mut made = replaced(&page, "all commands", &global());
    for (path, command) in &commands {
        made = replaced(&made, path, &section(command, path));
    }
    if std::env::var_os("HEDDLE_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &made).unwrap();
    } else {
        let differs = page.lines().zip(made.lines()).find(|(known, made)| known != made);
        assert!(page == made, "docs/commands.md is not what the flags say: {WRITE}; first: {differs:?}");
    }
    let known = page.matches("<!-- flags of ").count();
    assert_eq!(known, commands.len() + 1, "a section of docs/commands.md is of no command");
}

/// A flag without words is of no use to who reads the page.
#[test]
fn every_flag_says_what_it_is() {
    for (path, command) in commands() {
        for arg in command.get_arguments().filter(|arg| !is_help(arg) && !arg.is_hide_set()) {
            assert!(arg.get_help().is_some(), "{path}: {}", arg.get_id());
        }
    }
}
