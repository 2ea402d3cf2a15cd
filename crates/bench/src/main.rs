//! The benchmark: starts the binary under test and the servers to compare it with, each as its own process, and drives
//! all of them with the same client in the same run.
//!
//! `cargo xtask bench` builds and runs it; docs/performance.md says how to read it.

mod clock;
mod gateway;
mod http;
mod instructions;
mod load;
mod parts;
mod process;
mod report;
mod seed;
mod servers;
mod soak;
mod statistics;
mod wires;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The gateway's allocator, so that the compared servers have no worse one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "bench")]
struct Arguments {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Measure.
    Run(parts::Options),
    /// Load the server for a long time and check that no resource grows.
    Soak(soak::Options),
    /// Count the instructions of an answer under callgrind, its allocations, clock readings and system calls.
    Instructions(instructions::Options),
    /// Be the providers: answers every request with the bytes of its path.
    #[command(hide = true)]
    Upstream,
    /// Be a bare reverse proxy in front of a provider: actix-web in, hyper out, nothing in between.
    #[command(hide = true)]
    Proxy {
        #[arg(long)]
        upstream: SocketAddr,
    },
    /// Be a bare actix-web handler that answers every request with the bytes of a file.
    #[command(hide = true)]
    Fixed {
        #[arg(long)]
        body: PathBuf,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().role {
        Role::Run(options) => client_runtime()?.block_on(parts::run(options)),
        Role::Soak(options) => client_runtime()?.block_on(soak::run(&options)),
        Role::Instructions(options) => client_runtime()?.block_on(instructions::run(&options)),
        Role::Upstream => client_runtime()?.block_on(servers::upstream()),
        Role::Proxy { upstream } => servers::proxy(upstream),
        Role::Fixed { body } => servers::fixed(&body),
    }
}

fn client_runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}
