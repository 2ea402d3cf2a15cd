//! The parts of a benchmark run, in their order.

mod assign;
mod bench;
mod catalogue;
mod decisions;
mod filters;
mod footprint;
mod governed;
mod growth;
mod keys;
mod management;
mod promote;
mod recording;
mod replicas;
mod wires;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};

use self::bench::{Bench, print_progress};
pub use self::governed::governed_key;
use crate::gateway::Gateway;
use crate::process::Helper;
use crate::report::{self, Conditions, Figure};
use crate::seed;

/// How to measure.
#[derive(Args)]
pub struct Options {
    /// The binary to measure.
    #[arg(long)]
    tollgate: PathBuf,
    /// The build profile, for the report.
    #[arg(long)]
    profile: String,
    /// Fewer and shorter rounds, a smaller file.
    #[arg(long)]
    quick: bool,
    /// Also promote a file of 5 GB.
    #[arg(long)]
    large: bool,
    /// One JSON document instead of the table.
    #[arg(long)]
    json: bool,
    /// Keys in the database of the replicas.
    #[arg(long, default_value_t = 1_000)]
    replica_keys: usize,
    /// Usage records in the database of the parts `replicas` and `growth`.
    #[arg(long, default_value_t = 0)]
    records: usize,
    /// Only these parts.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Start-up time and idle memory.
    Footprint,
    /// Decisions beside the provider itself and a bare proxy.
    Decisions,
    /// Decisions with limits, guardrails, rates and traces beside Decisions without.
    Governed,
    /// Decisions by many keys beside one key.
    Keys,
    /// Content filters over a megabyte.
    Filters,
    /// Recording of metrics, and a scrape of them.
    Recording,
    /// Decisions from every kind of client to every kind of provider beside a bare proxy.
    Wires,
    /// A model by its slug, and the count, beside a bare handler.
    Catalogue,
    /// Reads of keys beside 100,000 keys.
    Management,
    /// 100,000 keys to a guardrail in one call.
    Assign,
    /// A large file beside a plain copy.
    Promote,
    /// Decisions by one to three replicas over PostgreSQL beside one process on SQLite. Runs only if it is named.
    Replicas,
    /// Reads of the management API and an export beside many records, on both databases. Runs only if it is named.
    Growth,
}

/// Keys in the database; one call assigns all of them.
const KEYS: usize = 100_000;

/// Runs the parts and prints their figures.
pub async fn run(options: Options) -> Result<()> {
    let (rounds, duration) = if options.quick { (3, Duration::from_secs(1)) } else { (7, Duration::from_secs(4)) };
    let wanted = |part| options.only.is_empty() || options.only.contains(&part);
    let needs_keys = options.only != [Part::Replicas];
    print_progress("an installation");
    let upstream = Helper::start(&["upstream"]).await?;
    let gateway = Gateway::install(&options.tollgate, upstream.address).await?;
    let workspace = gateway.workspace_id.parse().context("the workspace's id")?;
    let keys = seed::keys(gateway.database_url(), workspace, if needs_keys { KEYS } else { 0 }).await?;
    let mut bench = Bench {
        tollgate: options.tollgate,
        gateway,
        upstream,
        keys,
        rounds,
        duration,
        quick: options.quick,
        large: options.large,
        replica_keys: options.replica_keys,
        records: options.records,
    };

    let mut figures: Vec<Figure> = Vec::new();
    print_progress("start-up and idle memory");
    let footprint = footprint::measure(&mut bench).await?;
    if wanted(Part::Footprint) {
        figures.extend(footprint);
    }
    if wanted(Part::Decisions) {
        print_progress("Decisions");
        figures.extend(decisions::measure(&bench).await?);
    }
    if wanted(Part::Governed) {
        print_progress("Decisions with everything on");
        figures.extend(governed::measure(&bench).await?);
    }
    if wanted(Part::Keys) {
        print_progress("Decisions by many keys");
        figures.extend(keys::measure(&bench).await?);
    }
    if wanted(Part::Filters) {
        print_progress("content filters");
        figures.extend(filters::measure(&bench)?);
    }
    if wanted(Part::Recording) {
        print_progress("recording of metrics");
        figures.extend(recording::measure(&bench)?);
    }
    if wanted(Part::Wires) {
        print_progress("every pair of wires");
        figures.extend(wires::measure(&bench).await?);
    }
    if wanted(Part::Catalogue) {
        print_progress("the catalogue");
        figures.extend(catalogue::measure(&bench).await?);
    }
    if wanted(Part::Management) {
        print_progress("reads of keys");
        figures.extend(management::measure(&bench).await?);
    }
    if wanted(Part::Assign) {
        print_progress("bulk assignment");
        figures.extend(assign::measure(&bench).await?);
    }
    if wanted(Part::Promote) {
        print_progress("promotion");
        figures.extend(promote::measure(&bench).await?);
    }
    if options.only.contains(&Part::Replicas) {
        figures.extend(replicas::measure(&bench).await?);
    }
    if options.only.contains(&Part::Growth) {
        figures.extend(growth::measure(&bench).await?);
    }
    bench.gateway.stop().await?;

    let conditions =
        Conditions { profile: options.profile, rounds, seconds: duration.as_secs_f64(), quick: options.quick };
    let text = if options.json {
        format!("{:#}\n", report::document(&conditions, &figures))
    } else {
        report::table(&conditions, &figures)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
