//! Errors of the command line.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use serde_json::json;

use crate::output::Output;

/// Prints the error with the usage to standard error; with `--json` also as the document. Help and version are also
/// errors of the parser, and are printed to standard output.
pub(super) fn usage_error(error: &clap::Error, words: impl IntoIterator<Item = OsString>) -> ExitCode {
    // A closed standard error is ignored.
    drop(error.print());
    if error.use_stderr() && wants_json(words) {
        drop(Output::new(true).show(&json!({ "error": sentence(error) }), String::new));
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
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
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn words(line: &str) -> impl Iterator<Item = OsString> {
        std::iter::once("tollgate").chain(line.split_whitespace()).map(OsString::from)
    }

    #[test]
    fn sentence_is_one_line() {
        for (line, expected) in [
            ("key list --jsom", "unexpected argument '--jsom' found"),
            ("kye list", "unrecognized subcommand 'kye'"),
            ("", "no command given; see --help"),
            ("key", "no command given; see --help"),
            ("key show", "the following required arguments were not provided: <KEY>"),
            ("audit list --limit many", "invalid value 'many' for '--limit <LIMIT>': invalid digit found in string"),
        ] {
            let error = Cli::try_parse_from(words(line)).unwrap_err();
            assert!(error.use_stderr(), "{line}");
            assert_eq!(sentence(&error), expected, "{line}");
            assert_eq!(usage_error(&error, words(line)), ExitCode::from(2), "{line}");
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
            assert_eq!(usage_error(&error, words(line)), ExitCode::SUCCESS, "{line}");
        }
    }
}
