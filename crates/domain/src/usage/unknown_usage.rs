//! The charge for unknown usage.

/// What is charged for an attempt that was sent and of whose usage nothing is known: it timed out, its connection
/// broke, its answer was unreadable, or the caller left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownUsage {
    /// The bound by the size of what was sent: what the provider can have billed at most.
    #[default]
    Bound,
    /// Nothing; the operator bears it.
    Free,
}
