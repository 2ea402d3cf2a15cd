//! What calls have taught about a model at a provider. It is kept as long as the process runs.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::members::Members;
use super::request::Kind;

/// What is known of one model. It only ever grows, so that what is bounded by it today is not exceeded tomorrow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Learned {
    /// Members that it does not take where one label is wanted.
    pub(super) label: Members,
    /// Members that it does not take where an object is wanted, beside those. They are not the same: a bound may be
    /// too large for an object and never is for a label.
    pub(super) object: Members,
    /// Whether it took a request for a label.
    pub(super) took_label: bool,
    /// Whether it took one for an object.
    pub(super) took_object: bool,
    /// Whether it tells log-probabilities. Once it does not, that stands.
    pub(super) logprobs: Option<bool>,
}

impl Learned {
    /// What it does not take in a request of that kind.
    pub(super) fn left_out(self, kind: Kind) -> Members {
        match kind {
            Kind::Label => self.label,
            Kind::Object => self.label.and(self.object),
        }
    }

    /// How often one attempt may ask again because the server objects to a member. Of a server that is not known yet
    /// everything may have to be found out; one that took such a request before may have changed its mind about one.
    pub(super) fn retries(self, kind: Kind) -> usize {
        let spare = kind.spare(self.left_out(kind));
        let took = match kind {
            Kind::Label => self.took_label,
            Kind::Object => self.took_object,
        };
        if took { spare.min(1) } else { spare }
    }

    /// These are not taken in a request of that kind.
    pub(super) fn refused(&mut self, kind: Kind, members: Members) {
        match kind {
            Kind::Label => self.label = self.label.and(members),
            Kind::Object => self.object = self.object.and(members),
        }
    }

    /// A request of that kind without these was taken.
    pub(super) fn taken(&mut self, kind: Kind, left_out: Members) {
        self.refused(kind, left_out);
        match kind {
            Kind::Label => self.took_label = true,
            Kind::Object => self.took_object = true,
        }
    }
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
