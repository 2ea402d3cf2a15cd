//! The limits of a format.

use domain::question::{MAX_LEVELS, MAX_OPTIONS};
use domain::routing::Wire;

/// The most questions, options and levels of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) questions: usize,
    pub(crate) options: usize,
    pub(crate) levels: usize,
}

impl Limits {
    /// Returns the limits by which the wire's endpoints are chosen; where the wire has none, those of the canonical form.
    pub(crate) const fn of(wire: Wire) -> Self {
        let limits = wire.limits();
        Self {
            questions: or(limits.max_questions, usize::MAX),
            options: or(limits.max_options, MAX_OPTIONS),
            levels: or(limits.max_levels, MAX_LEVELS),
        }
    }
}

const fn or(limit: Option<usize>, other: usize) -> usize {
    match limit {
        Some(limit) => limit,
        None => other,
    }
}
