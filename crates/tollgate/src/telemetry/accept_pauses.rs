//! Pauses of accepting connections, which the web framework reports in its log only.

use std::sync::atomic::{AtomicU64, Ordering};

use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The framework's module that accepts connections. Its errors are failures to accept one, above all for want of file
/// descriptors; it then pauses for half a second.
const ACCEPT: &str = "actix_server::accept";

static PAUSES: AtomicU64 = AtomicU64::new(0);

/// The number of pauses since the start, as far as the log's filter lets errors through.
pub fn accept_pauses() -> u64 {
    PAUSES.load(Ordering::Relaxed)
}

/// Counts them.
pub(super) struct CountAcceptPauses;

impl<S: Subscriber> Layer<S> for CountAcceptPauses {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if is_accept_error(event.metadata()) {
            PAUSES.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // The layers above decide what is enabled.
        Interest::always()
    }
}

fn is_accept_error(metadata: &Metadata<'_>) -> bool {
    *metadata.level() == Level::ERROR && metadata.target() == ACCEPT
}
