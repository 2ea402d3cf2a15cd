//! Properties of a model that earlier calls revealed, kept for the lifetime of the process.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wires::chat::members::Members;
use wires::chat::provider_request::OutputKind;

/// The known properties of one model. They only accumulate, so that a bound computed earlier stays valid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ModelProperties {
    /// Members that are rejected in requests for a label.
    pub(super) label: Members,
    /// Members that are also rejected in requests for an object. The sets differ: a token limit may be too large for an
    /// object, but never for a label.
    pub(super) object: Members,
    /// True once a request for a label succeeded.
    pub(super) accepts_label: bool,
    /// True once a request for an object succeeded.
    pub(super) accepts_object: bool,
    /// Whether the model reports log-probabilities. `Some(false)` is final.
    pub(super) logprobs: Option<bool>,
}

impl ModelProperties {
    /// Returns the members to omit in a request of this kind.
    pub(super) fn omitted(self, kind: OutputKind) -> Members {
        match kind {
            OutputKind::Label => self.label,
            OutputKind::Object => self.label.and(self.object),
        }
    }

    /// Returns the number of retries per attempt after rejected members. For an unknown server any member may be
    /// rejected; a known one may change its mind about one.
    pub(super) fn retries(self, kind: OutputKind) -> usize {
        let spare = kind.count_optional(self.omitted(kind));
        let took = match kind {
            OutputKind::Label => self.accepts_label,
            OutputKind::Object => self.accepts_object,
        };
        if took { spare.min(1) } else { spare }
    }

    /// Records members as rejected in requests of this kind.
    pub(super) fn record_rejected(&mut self, kind: OutputKind, members: Members) {
        match kind {
            OutputKind::Label => self.label = self.label.and(members),
            OutputKind::Object => self.object = self.object.and(members),
        }
    }

    /// Records a successful request of this kind without these members.
    pub(super) fn record_accepted(&mut self, kind: OutputKind, omitted: Members) {
        self.record_rejected(kind, omitted);
        match kind {
            OutputKind::Label => self.accepts_label = true,
            OutputKind::Object => self.accepts_object = true,
        }
    }
}

/// The known properties by the model's name at the provider. Endpoints are configured, so there are few.
#[derive(Debug, Default)]
pub(super) struct ModelMemory(Mutex<HashMap<String, ModelProperties>>);

impl ModelMemory {
    pub(super) fn recall(&self, model: &str) -> ModelProperties {
        self.learned().get(model).copied().unwrap_or_default()
    }

    pub(super) fn learn(&self, model: &str, change: impl FnOnce(&mut ModelProperties)) {
        let mut all = self.learned();
        if !all.contains_key(model) {
            all.insert(model.to_owned(), ModelProperties::default());
        }
        if let Some(learned) = all.get_mut(model) {
            change(learned);
        }
    }

    fn learned(&self) -> MutexGuard<'_, HashMap<String, ModelProperties>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
