//! The process's entry point: from the command line to an exit code.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser};
use serde_json::json;

use super::{
    Context, api, ask, audit, backup, catalogue, container, demo, destination, doctor, endpoint, eval, generate,
    guardrail, key, labels, preset, serve, status, store, usage, workspace,
};
use crate::cli::{Cli, Command, ConfigCommand, Resource};
use crate::config::{Environment, similar};
use crate::output::{Output, escape};
use crate::telemetry::LOG;
use crate::{telemetry, wiring};

/// The maximum time to flush the log at exit.
const END_FLUSH: Duration = Duration::from_secs(1);
/// The maximum time to wait for abandoned file operations at exit.
const BLOCKING_END: Duration = Duration::from_secs(1);

/// Runs the command line of the process.
pub fn main() -> ExitCode {
    adapters_system::create_private_files();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage_error(error, std::env::args_os()),
    };
    let json = cli.global.json;
    let output = Output::new(json);
    let without_configuration = match &cli.command {
        Command::Config(ConfigCommand::Init { file }) => Some(generate::create_configuration(&output, file)),
        Command::Completions { shell } => Some(generate::print_completions(&output, *shell)),
        _ => None,
    };
    if let Some(ended) = without_configuration {
        return ended.unwrap_or_else(|error| fail(&output, &error));
    }
    let context = match Context::new(cli.global, Environment::of_process()) {
        Ok(context) => context,
        Err(error) => return fail(&Output::new(json), &error.into()),
    };
    let code = run(&context, cli.command).unwrap_or_else(|error| fail(&context.output, &error));
    LOG.flush(END_FLUSH);
    code
}

fn run(context: &Context, command: Command) -> anyhow::Result<ExitCode> {
    let level = match command {
        Command::Serve(_) => telemetry::server_level(&context.config.log),
        // One step of the demo fails on purpose.
        Command::Demo { .. } => "error",
        _ => "warn",
    };
    telemetry::start(&context.config.log, level)?;
    if matches!(command, Command::Serve(_)) {
        LOG.start_writer().context("cannot start the log writer thread")?;
    }
    // One thread for background tasks: the HTTP server has its own threads, and with fewer handovers usage records are
    // written sooner.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    let ended = runtime.block_on(async {
        wiring::handle_file_size_signal().context("cannot install the SIGXFSZ handler")?;
        Box::pin(dispatch(context, command)).await
    });
    // A hanging file operation must not delay the exit.
    runtime.shutdown_timeout(BLOCKING_END);
    ended
}

async fn dispatch(context: &Context, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Ask(args) => ask::run(context, args).await,
        Command::Key(Resource { server, command }) => {
            api::run(context, &server, async |api| key::run(api, command).await).await
        }
        Command::Guardrail(Resource { server, command }) => {
            api::run(context, &server, async |api| guardrail::run(api, command).await).await
        }
        Command::Preset(Resource { server, command }) => {
            api::run(context, &server, async |api| preset::run(api, command).await).await
        }
        Command::Eval(command) => Box::pin(eval::run(context, command)).await,
        Command::Workspace(Resource { server, command }) => {
            api::run(context, &server, async |api| workspace::run(api, command).await).await
        }
        Command::Container(Resource { server, command }) => {
            api::run(context, &server, async |api| container::run(api, command).await).await
        }
        Command::Document(Resource { server, command }) => {
            api::run(context, &server, async |api| container::run_document(api, command).await).await
        }
        Command::Backup { file } => backup::create(context, &file).await,
        Command::Restore { file, accept_problems } => backup::restore(context, &file, accept_problems).await,
        Command::Catalogue(Resource { server, command }) => {
            api::run(context, &server, async |api| catalogue::run(api, command).await).await
        }
        Command::Endpoint(Resource { server, command }) => endpoint::run(context, &server, command).await,
        Command::Destination(Resource { server, command }) => {
            api::run(context, &server, async |api| destination::run(api, command).await).await
        }
        Command::Provider(command) => endpoint::run_provider(context, command).await,
        Command::Usage(Resource { server, command }) => {
            api::run(context, &server, async |api| usage::run(api, command).await).await
        }
        Command::Labels(Resource { server, command }) => {
            api::run(context, &server, async |api| labels::run(api, command).await).await
        }
        Command::Audit(command) => audit::run(context, command).await,
        Command::Journal(command) => store::run_journal(context, command).await,
        Command::Store(command) => store::run(context, command).await,
        Command::Migrate(command) => store::run_migrate(context, command).await,
        Command::Status(server) => status::run(context, &server).await,
        Command::Doctor { audit: true } => doctor::audit(context).await,
        Command::Doctor { audit: false } => doctor::run(context).await,
        Command::Config(ConfigCommand::Check) => doctor::check_configuration(context),
        Command::Config(ConfigCommand::Init { file }) => generate::create_configuration(&context.output, &file),
        Command::Openapi => generate::print_openapi(context),
        Command::Completions { shell } => generate::print_completions(&context.output, shell),
        Command::Serve(args) => Box::pin(serve::run(context, args)).await,
        Command::Demo { exit, verbose } => demo::run(context, exit, verbose).await,
    }
}

/// Prints the error to standard error; with `--json` also as the document, unless one was printed.
fn fail(output: &Output, error: &anyhow::Error) -> ExitCode {
    let sentence = sentence(error);
    LOG.write_line(&format!("error: {sentence}"));
    if output.is_json() && !output.has_written() {
        drop(output.show(&json!({ "error": sentence }), String::new));
    }
    ExitCode::FAILURE
}

/// Joins the chain of causes without repetitions: some libraries include the source in their own message. Control
/// characters are escaped.
fn sentence(error: &anyhow::Error) -> String {
    let mut sentence = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !sentence.contains(&cause) {
            if !sentence.is_empty() {
                sentence.push_str(": ");
            }
            sentence.push_str(&cause);
        }
    }
    escape(&sentence.lines().collect::<Vec<_>>().join(" ")).into_owned()
}

/// Prints the error with the usage to standard error; with `--json` also as the document. Help and version are also
/// errors of the parser, and are printed to standard output.
pub(super) fn usage_error(error: clap::Error, words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    let error = with_nearest_command(error, &words);
    // A closed standard error is ignored.
    drop(error.print());
    if error.use_stderr() && wants_json(words) {
        drop(Output::new(true).show(&json!({ "error": usage_sentence(&error) }), String::new));
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
fn usage_sentence(error: &clap::Error) -> String {
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

    #[test]
    fn sentence_is_one_line_without_repetitions() {
        let error = anyhow::anyhow!("disk full").context("cannot write: disk full").context("a\nb");
        assert_eq!(sentence(&error), "a b: cannot write: disk full");
        assert_eq!(sentence(&anyhow::anyhow!("row 0 (\u{1b}[2J\u{9b})")), "row 0 (\\u001b[2J\\u009b)");
    }

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
            ("audit list --limit many", "invalid value 'many' for '--limit <N>': must be a number from 1 to 10000"),
        ] {
            let words: Vec<OsString> = words(line).collect();
            let error = with_nearest_command(Cli::try_parse_from(&words).unwrap_err(), &words);
            assert!(error.use_stderr(), "{line}");
            assert_eq!(usage_sentence(&error), expected, "{line}");
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
