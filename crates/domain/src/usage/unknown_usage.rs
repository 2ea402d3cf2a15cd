//! The charge for unknown usage.

/// The charge for an attempt that was sent but whose usage is unknown: it timed out, its connection broke, its response
/// was unreadable, or the client disconnected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownUsage {
    /// The upper bound by the size of the request: the most that the provider can have billed.
    #[default]
    Bound,
    /// No charge; the operator pays.
    Free,
}
