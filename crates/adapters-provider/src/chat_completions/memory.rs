//! What calls have taught about a model at a provider. It is kept as long as the process runs.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::members::Members;

/// What is known of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Learned {
    /// Members that it does not take where one label is wanted.
    pub(super) label: Members,
    /// Members that it does not take where an object is wanted, beside those. They are not the same: a bound may be
    /// too large for an object and never is for a label.
    pub(super) object: Members,
    /// Whether it tells log-probabilities.
    pub(super) logprobs: Option<bool>,
}

/// What is known, by the model's name at the provider. Endpoints are configured, so there are few.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<HashMap<String, Learned>>);

impl Memory {
    pub(super) fn recall(&self, model: &str) -> Learned {
        self.learned().get(model).copied().unwrap_or_default()
    }

    pub(super) fn learn(&self, model: &str, lesson: impl FnOnce(&mut Learned)) {
        let mut all = self.learned();
        if !all.contains_key(model) {
            all.insert(model.to_owned(), Learned::default());
        }
        if let Some(learned) = all.get_mut(model) {
            lesson(learned);
        }
    }

    fn learned(&self) -> MutexGuard<'_, HashMap<String, Learned>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
