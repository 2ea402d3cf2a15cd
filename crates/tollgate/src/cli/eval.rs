//! Arguments of `eval`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::evaluation::Requirement;
use domain::statistics::Probability;

/// Commands on evaluations.
#[derive(Debug, Subcommand)]
pub enum EvalCommand {
    /// Ask models about labelled items, and report how far their answers can be relied on
    Run(EvalRunArgs),
    /// Report the answers of a result file again
    Report(EvalReportArgs),
}

/// Arguments of `eval run`.
#[derive(Debug, Args)]
pub struct EvalRunArgs {
    /// Preset with the questions
    #[arg(long, value_name = "SLUG")]
    pub preset: String,
    /// Labelled items, a JSON object {"state": …, "labels": {question: label}} a line
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
pub struct EvalReportArgs {
    /// Result file of `eval run`
    #[arg(long, value_name = "FILE")]
    pub results: PathBuf,
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
