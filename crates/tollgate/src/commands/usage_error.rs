//! Errors of the command line.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::json;

use crate::cli::Cli;
use crate::config::similar;
use crate::output::Output;

/// Prints the error with the usage to standard error; with `--json` also as the document. Help and version are also
/// errors of the parser, and are printed to standard output.
pub(super) fn usage_error(error: clap::Error, words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    let error = with_nearest_command(error, &words);
    // A closed standard error is ignored.
    drop(error.print());
    if error.use_stderr() && wants_json(words) {
        drop(Output::new(true).show(&json!({ "error": sentence(&error) }), String::new));
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Adds the nearest command to the error of an unknown one. The parser itself finds no name with two letters swapped.
fn with_nearest_command(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let unknown = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) if error.get(ContextKind::SuggestedSubcommand).is_none() => name.clone(),
        _ => return error,
    };
    let root = Cli::command();
    let known = words.iter().skip(1).filter_map(|word| word.to_str()).take_while(|word| *word != unknown);
    let parent = known.fold(&root, |parent, word| parent.find_subcommand(word).unwrap_or(parent));
    if let Some(name) = similar(&unknown, parent.get_subcommands().map(clap::Command::get_name)) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![name.to_owned()]));
    }
    error
}

fn wants_json(words: impl IntoIterator<Item = OsString>) -> bool {
    words.into_iter().skip(1).take_while(|word| word != "--").any(|word| word == "--json")
}

/// Returns the error on one line, without the usage.
fn sentence(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "no command given; see --help".to_owned();
    }
    let text = error.render().to_string();
    let first = text.trim_start().split("\n\n").next().unwrap_or_default();
    let lines: Vec<&str> = first.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let line = lines.join(" ");
    format!("{}{}", line.strip_prefix("error: ").unwrap_or(&line), nearest(error))
}

/// `; the nearest is 'list'`, or an empty string if the parser knows no similar name.
fn nearest(error: &clap::Error) -> String {
    let kinds = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    match kinds.into_iter().find_map(|kind| error.get(kind)) {
        Some(ContextValue::String(name)) => format!("; the nearest is '{name}'"),
        // The most similar name is the last.
        Some(ContextValue::Strings(names)) => {
            names.last().map(|name| format!("; the nearest is '{name}'")).unwrap_or_default()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn words(line: &str) -> impl Iterator<Item = OsString> {
        std::iter::once("tollgate").chain(line.split_whitespace()).map(OsString::from)
    }

    #[test]
    fn sentence_is_one_line() {
        for (line, expected) in [
            ("key list --jsom", "unexpected argument '--jsom' found; the nearest is '--json'"),
            ("kye list", "unrecognized subcommand 'kye'; the nearest is 'key'"),
            ("key lisst", "unrecognized subcommand 'lisst'; the nearest is 'list'"),
            ("workspcae list", "unrecognized subcommand 'workspcae'; the nearest is 'workspace'"),
            ("--config c.toml key --json lsit", "unrecognized subcommand 'lsit'; the nearest is 'list'"),
            ("zzz", "unrecognized subcommand 'zzz'"),
            ("", "no command given; see --help"),
            ("key", "no command given; see --help"),
            ("key show", "the following required arguments were not provided: <KEY>"),
            ("audit list --limit many", "invalid value 'many' for '--limit <LIMIT>': invalid digit found in string"),
        ] {
            let words: Vec<OsString> = words(line).collect();
            let error = with_nearest_command(Cli::try_parse_from(&words).unwrap_err(), &words);
            assert!(error.use_stderr(), "{line}");
            assert_eq!(sentence(&error), expected, "{line}");
            assert_eq!(usage_error(error, words), ExitCode::from(2), "{line}");
        }
    }

    #[test]
    fn wants_json_finds_json_flag() {
        for (line, expected) in [
            ("--json key lisst", true),
            ("key lisst --json", true),
            ("key lisst", false),
            ("key assign g -- --json", false),
            ("key list --jsonl", false),
        ] {
            assert_eq!(wants_json(words(line)), expected, "{line}");
        }
    }

    #[test]
    fn help_and_version_exit_successfully() {
        for line in ["--help", "--json key --help", "--version"] {
            let error = Cli::try_parse_from(words(line)).unwrap_err();
            assert!(!error.use_stderr(), "{line}");
            assert_eq!(usage_error(error, words(line)), ExitCode::SUCCESS, "{line}");
        }
    }
}
