//! Properties of a model that earlier calls revealed, kept for the lifetime of the process.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::members::Members;
use super::request::Kind;

/// The known properties of one model. They only accumulate, so that a bound computed earlier stays valid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Learned {
    /// Members that are rejected in requests for a label.
    pub(super) label: Members,
    /// Members that are also rejected in requests for an object. The sets differ: a token limit may be too large for an
    /// object, but never for a label.
    pub(super) object: Members,
    /// True once a request for a label succeeded.
    pub(super) took_label: bool,
    /// True once a request for an object succeeded.
    pub(super) took_object: bool,
    /// Whether the model reports log-probabilities. `Some(false)` is final.
    pub(super) logprobs: Option<bool>,
}

impl Learned {
    /// Returns the members to omit in a request of this kind.
    pub(super) fn left_out(self, kind: Kind) -> Members {
        match kind {
            Kind::Label => self.label,
            Kind::Object => self.label.and(self.object),
        }
    }

    /// Returns the number of retries per attempt after rejected members. For an unknown server any member may be
    /// rejected; a known one may change its mind about one.
    pub(super) fn retries(self, kind: Kind) -> usize {
        let spare = kind.spare(self.left_out(kind));
        let took = match kind {
            Kind::Label => self.took_label,
            Kind::Object => self.took_object,
        };
        if took { spare.min(1) } else { spare }
    }

    /// Records members as rejected in requests of this kind.
    pub(super) fn refused(&mut self, kind: Kind, members: Members) {
        match kind {
            Kind::Label => self.label = self.label.and(members),
            Kind::Object => self.object = self.object.and(members),
        }
    }

    /// Records a successful request of this kind without these members.
    pub(super) fn taken(&mut self, kind: Kind, left_out: Members) {
        self.refused(kind, left_out);
        match kind {
            Kind::Label => self.took_label = true,
            Kind::Object => self.took_object = true,
        }
    }
}

/// The known properties by the model's name at the provider. Endpoints are configured, so there are few.
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
