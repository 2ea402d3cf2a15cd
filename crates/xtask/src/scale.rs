//! `cargo xtask scale`: computes from measured coefficients what replicas ask of one PostgreSQL server, and which of its
//! resources ends first.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::{Result, ensure};
use clap::Args;

/// Charges of one fold at most, by the ledger's batch size.
const CHARGES_PER_FOLD: f64 = 512.0;
/// Folds of a replica per second at most while it keeps up: one per tick of 50 ms.
const FOLDS_PER_SECOND: f64 = 20.0;
/// Draws of a counter per second and replica while there is room.
const DRAWS_PER_SECOND: f64 = 2.0;
/// Polls of the change feed per second and replica while PostgreSQL's notifications arrive.
const POLLS_PER_SECOND: f64 = 4.0;
const SECONDS_PER_MONTH: f64 = 30.0 * 86_400.0;

/// The load, the coefficients, and the server. The defaults of the coefficients are measured; docs/performance.md names
/// the run.
#[derive(Args, Debug, Clone)]
pub struct Options {
    /// Numbers of replicas.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3, 10, 100, 1_000])]
    replicas: Vec<u32>,
    /// Answers per second of each replica.
    #[arg(long, default_value_t = 10_000.0)]
    rate: f64,
    /// PostgreSQL's processor time per answer, in microseconds.
    #[arg(long, default_value_t = 12.0)]
    answer_us: f64,
    /// PostgreSQL's processor time per second for an idle replica, in milliseconds.
    #[arg(long, default_value_t = 12.0)]
    idle_ms: f64,
    /// Bytes on the disk per usage record, with indexes.
    #[arg(long, default_value_t = 363.0)]
    record_bytes: f64,
    /// Time of a commit beside its statements, in microseconds: a write to the log and its sync.
    #[arg(long, default_value_t = 1_000.0)]
    commit_us: f64,
    /// Connections of a replica: one writes, four read, one receives notifications.
    #[arg(long, default_value_t = 6)]
    connections: u32,
    /// Processors of the server.
    #[arg(long, default_value_t = 64)]
    server_processors: u32,
    /// Connections that the server takes.
    #[arg(long, default_value_t = 5_000)]
    server_connections: u32,
    /// Disk of the server for a month of records, in terabytes.
    #[arg(long, default_value_t = 64.0)]
    server_terabytes: f64,
}

/// The demand of a number of replicas.
#[derive(Debug, Clone, PartialEq)]
struct Demand {
    replicas: u32,
    answers: f64,
    /// Processors of the server that are always busy.
    processors: f64,
    /// The part of the time in which a write transaction runs. Only one runs at a time.
    writer: f64,
    folds: f64,
    draws: f64,
    polls: f64,
    connections: f64,
    terabytes_a_month: f64,
}

/// A resource of the server, used in part.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Use {
    resource: &'static str,
    part: f64,
}

/// Prints the demands.
pub fn run(options: &Options) -> Result<()> {
    let numbers = [options.rate, options.answer_us, options.idle_ms, options.record_bytes, options.commit_us];
    ensure!(numbers.iter().all(|number| number.is_finite() && *number > 0.0), "rates and coefficients are above 0");
    std::io::stdout().write_all(table(options).as_bytes())?;
    Ok(())
}

fn demand(options: &Options, replicas: u32) -> Demand {
    let count = f64::from(replicas);
    let answers = options.rate * count;
    // A replica that answers little folds what a tick brought; a busy one fills its batches.
    let folds = count * FOLDS_PER_SECOND.min(options.rate).max(options.rate / CHARGES_PER_FOLD);
    let draws = count * DRAWS_PER_SECOND;
    Demand {
        replicas,
        answers,
        processors: answers * options.answer_us / 1e6 + count * options.idle_ms / 1e3,
        writer: (answers * options.answer_us + (folds + draws) * options.commit_us) / 1e6,
        folds,
        draws,
        polls: count * POLLS_PER_SECOND,
        connections: count * f64::from(options.connections),
        terabytes_a_month: answers * options.record_bytes * SECONDS_PER_MONTH / 1e12,
    }
}

/// Returns the resource with the highest use.
fn scarcest(options: &Options, demand: &Demand) -> Use {
    let uses = [
        Use { resource: "processors", part: demand.processors / f64::from(options.server_processors) },
        Use { resource: "one writer at a time", part: demand.writer },
        Use { resource: "connections", part: demand.connections / f64::from(options.server_connections) },
        Use { resource: "disk of a month", part: demand.terabytes_a_month / options.server_terabytes },
    ];
    let none = Use { resource: "none", part: 0.0 };
    uses.into_iter().fold(none, |most, other| if other.part > most.part { other } else { most })
}

fn table(options: &Options) -> String {
    let mut text = format!(
        "Each replica answers {:.0} requests per second; PostgreSQL takes {} us per answer.\n\
         replicas  answers/s  processors  writer  folds/s  draws/s  polls/s  connections  TB/month  scarcest\n",
        options.rate, options.answer_us
    );
    for replicas in &options.replicas {
        let demand = demand(options, *replicas);
        let Use { resource, part } = scarcest(options, &demand);
        let verdict = if part > 1.0 { "ENDS" } else { "holds" };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:>8}  {:>9.0}  {:>10.2}  {:>5.0}%  {:>7.0}  {:>7.0}  {:>7.0}  {:>11.0}  {:>8.1}  {verdict}: {resource}, {:.0}%",
            demand.replicas,
            demand.answers,
            demand.processors,
            demand.writer * 100.0,
            demand.folds,
            demand.draws,
            demand.polls,
            demand.connections,
            demand.terabytes_a_month,
            part * 100.0,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(arguments: &[&str]) -> Options {
        Line::parse_from([&["scale"], arguments].concat()).options
    }

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn demand_follows_from_coefficients() {
        let line = "--rate 10000 --answer-us 20 --idle-ms 5 --commit-us 1000 --record-bytes 500";
        let options = options(&line.split(' ').collect::<Vec<_>>());
        let found = demand(&options, 10);
        assert!(near(found.answers, 100_000.0) && near(found.folds, 200.0) && near(found.draws, 20.0), "{found:?}");
        assert!(near(found.processors, 2.05), "{found:?}");
        assert!(near(found.writer, 2.22), "{found:?}");
        assert!(near(found.connections, 60.0), "{found:?}");
        // 100,000 records of 500 bytes a second.
        assert!(near(found.terabytes_a_month, 129.6), "{found:?}");
    }

    #[test]
    fn rare_answers_cost_one_fold_each_and_many_fill_their_batches() {
        assert!(near(demand(&options(&["--rate", "3"]), 1).folds, 3.0));
        assert!(near(demand(&options(&["--rate", "51200"]), 1).folds, 100.0));
    }

    #[test]
    fn scarcest_resource_follows_from_the_server() {
        let of = |arguments: &[&str], replicas| {
            let options = options(&[&["--server-terabytes", "1000000"], arguments].concat());
            scarcest(&options, &demand(&options, replicas)).resource
        };
        assert_eq!(of(&["--answer-us", "20"], 10), "one writer at a time");
        assert_eq!(of(&["--rate", "1", "--commit-us", "0.1", "--idle-ms", "0.1"], 1_000), "connections");
        assert_eq!(of(&["--rate", "1", "--commit-us", "0.1", "--idle-ms", "900"], 1_000), "processors");
        let small = options(&["--server-terabytes", "0.001"]);
        assert_eq!(scarcest(&small, &demand(&small, 1)).resource, "disk of a month");
    }

    #[test]
    fn table_says_what_ends() {
        let text = table(&options(&["--replicas", "1,1000"]));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[2].contains("holds"), "{text}");
        assert!(lines[3].contains("ENDS: one writer at a time") || lines[3].contains("ENDS: disk"), "{text}");
    }
}
