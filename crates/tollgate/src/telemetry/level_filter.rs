//! The filter of log lines by module and level, which a reload replaces.

use std::sync::OnceLock;

use anyhow::Context;
use tracing_subscriber::filter::Targets;
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

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

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
