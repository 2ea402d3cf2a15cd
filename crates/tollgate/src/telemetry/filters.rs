//! The filter of levels, which a reload replaces, and the count of pauses of the listener, which only its log shows.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

type Filter = Box<dyn Layer<Registry> + Send + Sync>;

/// The filter of this process.
static CURRENT: OnceLock<reload::Handle<Filter, Registry>> = OnceLock::new();

/// A parsed filter of log lines.
pub struct LevelFilter(Filter);

/// The handle of the filter of this process.
pub struct FilterHandle(reload::Handle<Filter, Registry>);

impl LevelFilter {
    /// Parses directives in the form of `RUST_LOG`.
    ///
    /// # Errors
    /// A directive is invalid.
    pub fn parse(directives: &str) -> anyhow::Result<Self> {
        // A filter of modules and levels only is evaluated once per call site, not once per span.
        if let Ok(targets) = directives.parse::<Targets>() {
            return Ok(Self(targets.boxed()));
        }
        let filter = EnvFilter::try_new(directives).context("RUST_LOG is invalid")?;
        Ok(Self(filter.boxed()))
    }

    /// Returns the layer of the filter, and the handle that makes it replaceable.
    pub fn into_layer(self) -> (reload::Layer<Filter, Registry>, FilterHandle) {
        let (layer, handle) = reload::Layer::new(self.0);
        (layer, FilterHandle(handle))
    }

    /// Replaces the filter of this process.
    ///
    /// # Errors
    /// Logging was not started.
    pub fn apply(self) -> anyhow::Result<()> {
        let current = CURRENT.get().context("logging was not started")?;
        current.reload(self.0).context("the filter of the log cannot be replaced")
    }
}

impl FilterHandle {
    /// Makes this filter the one of the process.
    pub fn install(self) {
        // Logging starts once.
        drop(CURRENT.set(self.0));
    }
}

/// The framework's module that accepts connections. Its errors are failures to accept one, usually because file
/// descriptors ran out; it then pauses for half a second.
const ACCEPT: &str = "actix_server::accept";

static PAUSES: AtomicU64 = AtomicU64::new(0);

/// Returns the number of pauses since the start, if the log filter includes errors.
pub fn accept_pauses() -> u64 {
    PAUSES.load(Ordering::Relaxed)
}

/// A layer that counts the pauses.
pub(super) struct CountAcceptPauses;

impl<S: Subscriber> Layer<S> for CountAcceptPauses {
    fn on_event(&self, event: &Event<'_>, _: layer::Context<'_, S>) {
        if is_accept_error(event.metadata()) {
            PAUSES.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // The layers above decide which events are enabled.
        Interest::always()
    }
}

fn is_accept_error(metadata: &Metadata<'_>) -> bool {
    *metadata.level() == Level::ERROR && metadata.target() == ACCEPT
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn replaced_filter_applies_to_call_sites_that_were_evaluated_before() {
        let (layer, handle) = LevelFilter::parse("warn").unwrap().into_layer();
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            let enabled = || tracing::enabled!(target: "tollgate", tracing::Level::DEBUG);
            assert!(!enabled());
            handle.0.reload(LevelFilter::parse("warn,tollgate=debug").unwrap().0).unwrap();
            assert!(enabled());
            handle.0.reload(LevelFilter::parse("[span{field=1}]=trace,warn").unwrap().0).unwrap();
            assert!(!enabled());
        });
    }
}
