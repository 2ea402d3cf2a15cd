//! Logs: to standard error, as text or as JSON, filtered by `RUST_LOG`. Records that are kept in memory first:
//! throttling, rejected requests and denied changes.

mod access_log;
mod counts;
mod filters;
mod log_buffer;
mod throttling;

use std::io::{self, IsTerminal};
use std::panic;

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

use crate::config::{LogConfig, LogFormat};

use self::filters::CountAcceptPauses;

pub use access_log::access_log;
pub use counts::{DeniedChangeLog, RejectionLog};
pub use filters::{LevelFilter, accept_pauses};
pub use log_buffer::LOG;
pub use throttling::{HEARTBEAT, ThrottleLog, keep_heartbeat};

/// The level of a server without `RUST_LOG` and `log.filter`. The service logs its own starts and stops.
const SERVER_LEVEL: &str =
    "info,actix_server=warn,object_store=warn,sea_orm_migration=warn,sqlx::postgres::notice=warn";

/// Returns the level of a server.
pub fn server_level(config: &LogConfig) -> &str {
    config.server_filter.as_deref().unwrap_or(SERVER_LEVEL)
}

/// Starts logging. `default_level` is used if `RUST_LOG` is not set.
///
/// # Errors
/// `RUST_LOG` is invalid.
pub fn start(config: &LogConfig, default_level: &str) -> anyhow::Result<()> {
    let filter = LevelFilter::parse(config.filter.as_deref().unwrap_or(default_level))?;
    // Only tests start logging twice; the first start remains in force.
    let (filter, handle) = filter.into_layer();
    let lines = lines(config.format, &LOG, io::stderr().is_terminal());
    if registry().with(filter).with(lines).with(CountAcceptPauses).try_init().is_ok() {
        handle.install();
    }
    // A panic's message may contain request content; its location suffices for an operator.
    panic::set_hook(Box::new(|info| {
        tracing::error!(panic.location = info.location().map(tracing::field::display), "panic (internal error)");
    }));
    Ok(())
}

/// Returns the layer that writes a line per event in the format of `tracing_subscriber`.
fn lines<S, W>(format: LogFormat, writer: W, in_colour: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let lines = fmt::layer().with_writer(writer).with_ansi(in_colour);
    match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_span_list(false).boxed(),
    }
}

#[cfg(test)]
mod tests;
