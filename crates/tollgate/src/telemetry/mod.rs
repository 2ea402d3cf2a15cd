//! Logs: to standard error, as text or as JSON, filtered by `RUST_LOG`.

mod log_buffer;

use std::io::{self, IsTerminal};
use std::panic;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::config::{LogConfig, LogFormat};

pub use log_buffer::LOG;

/// Starts logging. `default_level` counts where `RUST_LOG` is not set.
///
/// # Errors
/// `RUST_LOG` is not understood.
pub fn start(config: &LogConfig, default_level: &str) -> anyhow::Result<()> {
    let directives = config.filter.as_deref().unwrap_or(default_level);
    let filter = EnvFilter::try_new(directives).context("RUST_LOG is not understood")?;
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(&LOG).with_ansi(io::stderr().is_terminal());
    let started = match config.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).with_span_list(false).try_init(),
    };
    // Only tests start it twice, and then the first one stands.
    drop(started);
    // A panic's own text may repeat what a caller sent; where it happened is what an operator needs.
    panic::set_hook(Box::new(|info| {
        tracing::error!(panic.location = info.location().map(tracing::field::display), "a panic: this is a defect");
    }));
    Ok(())
}
