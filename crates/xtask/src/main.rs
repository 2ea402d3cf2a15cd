//! What the README and CI call: `cargo xtask …`.

mod bench;
mod check;
mod conformance;
mod deny;
mod fuzz;
mod links;
mod step;
mod test;
mod unicode;
mod workspace;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The tasks of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build the binary and run every test: what proves the project.
    Test,
    /// Everything that is not a test: format, clippy, layers, docs, links, dependencies.
    Lint,
    /// `test`, then `lint`, then the demo of the release build.
    Ci,
    /// Build in release and measure; see docs/performance.md.
    Bench(bench::Options),
    /// Run published client packages, unmodified, against the binary; installs them first, so it needs a network once.
    Conformance,
    /// Search for inputs that break what reads requests and providers' answers: ten minutes a target.
    Fuzz(fuzz::Options),
    /// Check the relative links of the Markdown files.
    Links,
    /// Write the tables of characters that content filters fold, from the Unicode data of the crates in use.
    Unicode,
}

fn main() -> Result<()> {
    match Arguments::parse().task {
        Task::Test => test::run(),
        Task::Lint => check::lint(),
        Task::Ci => {
            test::run()?;
            check::lint()?;
            check::demo()
        }
        Task::Bench(options) => bench::run(&options),
        Task::Conformance => conformance::run(),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Links => links::run(),
        Task::Unicode => unicode::run(),
    }
}
