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

/// Random numbers that follow from a seed.
#[derive(Debug, Clone)]
pub struct SeededDraws(u64);

impl SeededDraws {
    /// Creates a source; equal seeds give equal numbers.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number, of 31 bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33
    }

    /// Returns a number below a bound.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

impl Randomness for ScriptedRandomness {
    fn next_u64(&self) -> u64 {
        lock(&self.0).pop_front().unwrap_or(0)
    }
}
