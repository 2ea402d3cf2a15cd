//! The process's entry point: from the command line to an exit code.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use serde_json::json;

use super::usage_error::usage_error;
use super::{
    Context, ask, audit, backup, catalogue, config_init, container, demo, destination, doctor, document, endpoint,
    guardrail, journal, key, migrate, openapi, provider, serve, status, store, usage, workspace,
};
use crate::cli::{Cli, Command, ConfigCommand};
use crate::config::Environment;
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
    if let Command::Config(ConfigCommand::Init { file }) = &cli.command {
        let output = Output::new(json);
        return config_init::run(&output, file).unwrap_or_else(|error| fail(&output, &error));
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
        LOG.start_writer(context.config.log.buffer_bytes).context("cannot start the log writer thread")?;
    }
    // One thread for background tasks: the HTTP server has its own threads, and with fewer handovers usage records are
    // written sooner.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    let ended = runtime.block_on(async {
        wiring::handle_file_size_signal().context("cannot install the SIGXFSZ handler")?;
        dispatch(context, command).await
    });
    // A hanging file operation must not delay the exit.
    runtime.shutdown_timeout(BLOCKING_END);
    ended
}

async fn dispatch(context: &Context, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Ask(args) => ask::run(context, args).await,
        Command::Key(command) => key::run(context, command).await,
        Command::Guardrail(command) => guardrail::run(context, command).await,
        Command::Workspace(command) => workspace::run(context, command).await,
        Command::Container(command) => container::run(context, command).await,
        Command::Document(command) => document::run(context, command).await,
        Command::Backup { file } => backup::create(context, &file).await,
        Command::Restore { file, accept_problems } => backup::restore(context, &file, accept_problems).await,
        Command::Catalogue(command) => catalogue::run(context, command).await,
        Command::Endpoint(command) => endpoint::run(context, command).await,
        Command::Destination(command) => destination::run(context, command).await,
        Command::Provider(command) => provider::run(context, command).await,
        Command::Usage(command) => usage::run(context, command).await,
        Command::Audit(command) => audit::run(context, command).await,
        Command::Journal(command) => journal::run(context, command).await,
        Command::Store(command) => store::run(context, command).await,
        Command::Migrate(command) => migrate::run(context, command).await,
        Command::Status => status::run(context).await,
        Command::Doctor { audit: true } => doctor::audit(context).await,
        Command::Doctor { audit: false } => doctor::run(context).await,
        Command::Config(ConfigCommand::Check) => doctor::check_configuration(context),
        Command::Config(ConfigCommand::Init { file }) => config_init::run(&context.output, &file),
        Command::Openapi => openapi::run(context),
        Command::Serve(args) => serve::run(context, args).await,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_is_one_line_without_repetitions() {
        let error = anyhow::anyhow!("disk full").context("cannot write: disk full").context("a\nb");
        assert_eq!(sentence(&error), "a b: cannot write: disk full");
        assert_eq!(sentence(&anyhow::anyhow!("row 0 (\u{1b}[2J\u{9b})")), "row 0 (\\u001b[2J\\u009b)");
    }
}
