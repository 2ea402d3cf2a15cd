//! Arguments of `eval`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::evaluation::Requirement;
use domain::statistics::Probability;

use super::ServerArgs;

/// Commands on evaluations.
#[derive(Debug, Subcommand)]
pub enum EvalCommand {
    /// Ask models about labelled items, and report how far their answers can be relied on
    Run(EvalRunArgs),
    /// Report the answers of a result file again, or the stored evidence of a preset with its labels
    Report(EvalReportArgs),
}

/// Arguments of `eval run`.
#[derive(Debug, Args)]
pub struct EvalRunArgs {
    /// Preset with the questions
    #[arg(long, value_name = "SLUG")]
    pub preset: String,
    /// Labelled items: JSON objects {"state": …, "labels": {question: label}}, one a line, or CSV (*.csv) with a column
    /// state and a column of labels for each question
    #[arg(long, value_name = "FILE")]
    pub dataset: PathBuf,
    /// Model to ask; may be repeated
    #[arg(long, value_name = "MODEL", required = true)]
    pub model: Vec<String>,
    /// File of the answers; the same command continues it
    #[arg(long, value_name = "FILE")]
    pub results: PathBuf,
    /// Ask without a confirmation of the highest cost
    #[arg(long)]
    pub yes: bool,
    /// Requests at once, 1 to 64
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub concurrency: u8,
    /// Server to ask, with its base path [default: this machine]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// File with the API key [default: the environment variable `TOLLGATE_KEY`]
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// The report.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Arguments of `eval report`.
#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
pub struct EvalReportArgs {
    /// Result file of `eval run`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["preset", "server_url", "server_key_file"])]
    pub results: Option<PathBuf>,
    /// Preset whose evidence is reported
    #[arg(long, value_name = "SLUG", required_unless_present = "results")]
    pub preset: Option<String>,
    /// With --preset: its workspace [default: the default workspace]
    #[arg(long, value_name = "WORKSPACE", requires = "preset")]
    pub workspace: Option<String>,
    /// With --preset: only answers to this version
    #[arg(long = "version", value_name = "N", requires = "preset", value_parser = clap::value_parser!(u32).range(1..))]
    pub preset_version: Option<u32>,
    /// With --preset: only requests that began at this time or later: a date or an RFC 3339 time (UTC)
    #[arg(long, value_name = "WHEN", requires = "preset")]
    pub since: Option<String>,
    /// With --preset: only requests that began before this time
    #[arg(long, value_name = "WHEN", requires = "preset")]
    pub until: Option<String>,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The report.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// The settings of a report.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Also write the report with its charts to this HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Highest risk of the answers that a threshold accepts
    #[arg(long, value_name = "SHARE", default_value = "0.05", value_parser = parse_share)]
    pub alpha: Probability,
    /// Probability of a threshold with a higher risk, which all questions share
    #[arg(long, value_name = "SHARE", default_value = "0.1", value_parser = parse_share)]
    pub delta: Probability,
    /// Levels by which a score may differ from its label
    #[arg(long, value_name = "N", default_value = "0")]
    pub tolerance: usize,
    /// Exit with 1 unless the lower limit of an accuracy is reached, as in refund.accuracy>=0.9; may be repeated
    #[arg(long, value_name = "REQUIREMENT")]
    pub require: Vec<Requirement>,
}

/// Parses a number between 0 and 1.
fn parse_share(text: &str) -> Result<Probability, String> {
    let share = text.parse().ok().and_then(|number| Probability::new(number).ok());
    let share = share.filter(|share| share.get() > 0.0 && share.get() < 1.0);
    share.ok_or_else(|| "must be a number between 0 and 1".to_owned())
}
