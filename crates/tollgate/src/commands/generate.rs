//! `tollgate config init`, `tollgate openapi` and `tollgate completions`

use std::fs::OpenOptions;

use clap::CommandFactory as _;
use clap_complete::Shell;
use serde_json::json;

use super::transfer::write_text;
use crate::cli::Cli;
use crate::commands::prelude::*;
use crate::output::Output;

/// The commented minimal configuration.
const TEMPLATE: &str = include_str!("../../assets/tollgate.toml");

/// Writes the template to a new file. Reads no configuration, so that it works beside an invalid one.
///
/// # Errors
/// The file exists or cannot be written.
pub fn create_configuration(output: &Output, file: &Path) -> anyhow::Result<ExitCode> {
    let shown = file.display().to_string();
    let created = OpenOptions::new().write(true).create_new(true).open(file);
    write_text(created.with_context(|| format!("cannot create {shown}"))?, file, TEMPLATE)?;
    output.show(&json!({ "file": shown }), || format!("Created {shown}. `tollgate config check` checks it."))
}

/// Prints the completions of a shell. Reads no configuration.
pub fn print_completions(output: &Output, shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tollgate", &mut script);
    let script = String::from_utf8(script).context("the completions are not UTF-8")?;
    output.show(&json!({ "completions": script }), || script.clone())
}

/// Prints the document, with or without `--json`.
pub fn print_openapi(context: &Context) -> anyhow::Result<ExitCode> {
    let document = api_actix::openapi_document(&context.config.server.base_path);
    let pretty = serde_json::to_string_pretty(&document)?;
    context.output.show(&document, || pretty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, load_text};

    #[test]
    fn template_is_valid_with_and_without_its_examples() {
        let plain = load_text(None, TEMPLATE, &Environment::default()).unwrap();
        assert!(plain.providers.is_empty());
        let (head, examples) = TEMPLATE.split_once("# A provider.").unwrap();
        let active: Vec<&str> =
            examples.lines().filter_map(|line| line.strip_prefix("# ")).filter(|line| is_setting(line)).collect();
        let whole = load_text(None, &format!("{head}\n{}", active.join("\n")), &Environment::default()).unwrap();
        assert_eq!((whole.providers.len(), whole.endpoints.len()), (1, 1));
    }

    fn is_setting(line: &str) -> bool {
        line.starts_with("[[") || line.contains(" = \"")
    }

    #[test]
    fn existing_file_is_never_overwritten() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("tollgate.toml");
        create_configuration(&Output::new(true), &file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), TEMPLATE);
        std::fs::write(&file, "mine").unwrap();
        let error = format!("{:#}", create_configuration(&Output::new(true), &file).unwrap_err());
        assert!(error.contains("cannot create") && error.contains("exists"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    }
}
