//! The development tasks: `cargo xtask …`.

mod bench;
mod chaos;
mod check;
mod conformance;
mod deny;
mod deploy;
mod dist;
mod evaluate;
mod fuzz;
mod golden;
mod instructions;
mod links;
mod model;
mod mutants;
mod scale;
mod servers;
mod simulate;
mod size;
mod soak;
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
    Test(test::Options),
    /// Everything that is not a test: format, clippy, layers, docs, links, dependencies.
    Lint,
    /// `test`, then `lint`, then the demo of the release build.
    Ci,
    /// Build in release and measure; see docs/performance.md.
    Bench(bench::Options),
    /// Build the program that is shipped, on request guided by a profile of the benchmark's load, and its archive; see
    /// docs/install.md.
    Dist(dist::Options),
    /// Three replicas over PostgreSQL under load and faults, and a check of their recorded history; see
    /// docs/reliability.md.
    Chaos(chaos::Options),
    /// Build in release, load the server for half an hour, and fail if its memory, descriptors, threads or latency grow.
    Soak(soak::Options),
    /// Count the instructions, allocations, clock readings and system calls of an answer, and fail if there are too many;
    /// see docs/performance.md. Skipped without valgrind.
    Instructions,
    /// Run published client packages, unmodified, against the binary; installs them first, so it needs a network once.
    Conformance,
    /// Evaluate a real model on generated tickets with known outcomes; installs it first, so it needs a network once.
    Evaluate,
    /// Check the Dockerfile and the files of `deploy/` with the programs that read them, and start what they describe;
    /// installs those first, so it needs a network once. Needs root.
    Deploy,
    /// Search for inputs that break what reads requests and providers' answers: ten minutes a target.
    Fuzz(fuzz::Options),
    /// Write the golden files anew from what the code does; `test` only compares with them.
    Golden,
    /// Plant faults into the modules that must not have any, and see whether a test fails for each; see
    /// docs/TESTING.md.
    Mutants(mutants::Options),
    /// Try the orders of the threads of the ledger with a model checker.
    Model,
    /// Compute what replicas ask of a PostgreSQL server, from measured coefficients; see docs/performance.md.
    Scale(scale::Options),
    /// Find thresholds for models whose accuracy is known, and fail if they break their promise too often; see
    /// docs/evidence.md.
    Simulate(simulate::Options),
    /// Run the tests of PostgreSQL through PgBouncer in transaction mode, version 1.21 or later.
    Pooler,
    /// Count the code of each crate, the ports, the keys of the configuration and the words of the documents.
    Size,
    /// Check the relative links of the Markdown files.
    Links,
    /// Write the tables of characters that content filters fold, from the Unicode data of the crates in use.
    Unicode,
}

fn main() -> Result<()> {
    match Arguments::parse().task {
        Task::Test(options) => test::run(&options),
        Task::Lint => check::lint(),
        Task::Ci => {
            test::run(&test::Options::default())?;
            check::lint()?;
            check::demo()
        }
        Task::Bench(options) => bench::run(&options),
        Task::Dist(options) => dist::run(&options),
        Task::Chaos(options) => chaos::run(&options),
        Task::Soak(options) => soak::run(&options),
        Task::Instructions => instructions::run(),
        Task::Conformance => conformance::run(),
        Task::Evaluate => evaluate::run(),
        Task::Deploy => deploy::run(),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Golden => golden::run(),
        Task::Mutants(options) => mutants::run(&options),
        Task::Model => model::run(),
        Task::Scale(options) => scale::run(&options),
        Task::Simulate(options) => simulate::run(&options),
        Task::Pooler => test::run_through_pooler(),
        Task::Size => size::run(),
        Task::Links => links::run(),
        Task::Unicode => unicode::run(),
    }
}
