//! Pauses in accepting connections, which the web framework only logs.

use std::sync::atomic::{AtomicU64, Ordering};

use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

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
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
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
