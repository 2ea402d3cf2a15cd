//! The servers that the gateway is compared with, each in its own process.

mod fixed;
mod proxy;
mod upstream;

pub use fixed::fixed;
pub use proxy::proxy;
pub use upstream::upstream;

/// Prints this process's address for the parent process.
fn print_address(address: std::net::SocketAddr) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut output = std::io::stdout();
    writeln!(output, "{address}")?;
    Ok(output.flush()?)
}
