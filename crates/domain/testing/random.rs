//! Predictable randomness.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::system::lock;
use crate::system::Randomness;

/// Draws from a list, in order; zero after its end. Clones share the list.
#[derive(Debug, Clone, Default)]
pub struct ScriptedRandomness(Arc<Mutex<VecDeque<u64>>>);

impl ScriptedRandomness {
    /// Creates a source of these numbers, in order.
    pub fn new(draws: impl IntoIterator<Item = u64>) -> Self {
        Self(Arc::new(Mutex::new(draws.into_iter().collect())))
    }
}

impl Randomness for ScriptedRandomness {
    fn next_u64(&self) -> u64 {
        lock(&self.0).pop_front().unwrap_or(0)
    }
}
