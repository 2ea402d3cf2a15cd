//! Policies in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::contract::{Policies, PolicySource};
use super::system::lock;
use crate::api_key::InferenceKey;
use crate::error::StoreError;
use crate::guardrail::{Guardrail, GuardrailPolicies, Policy};
use crate::ids::GuardrailId;

/// Compiles a policy at every call, from guardrails that a test sets for one key.
#[derive(Default)]
pub struct MemoryPolicies(Mutex<State>);

#[derive(Default)]
struct State {
    guardrails: HashMap<GuardrailId, Guardrail>,
    /// The current guardrails of the workspace and of the key.
    assigned: Pair,
    is_unavailable: bool,
}

type Pair = (Option<GuardrailId>, Option<GuardrailId>);

impl State {
    /// Returns the guardrails of a pair; `None` if one is missing.
    fn find(&self, pair: Pair) -> Option<Vec<Guardrail>> {
        [pair.0, pair.1].into_iter().flatten().map(|id| self.guardrails.get(&id).cloned()).collect()
    }
}

#[async_trait]
impl GuardrailPolicies for MemoryPolicies {
    async fn find(&self, key: &InferenceKey) -> Result<Option<Arc<Policy>>, StoreError> {
        let state = lock(&self.0);
        if state.is_unavailable {
            return Err(StoreError::unavailable("switched off"));
        }
        // The key was read before one of its guardrails was deleted.
        let found = state.find((key.workspace_guardrail_id(), key.guardrail_id()));
        let guardrails = found.or_else(|| state.find(state.assigned));
        let guardrails = guardrails.ok_or_else(|| StoreError::unavailable("the guardrail of the key is missing"))?;
        if guardrails.is_empty() {
            return Ok(None);
        }
        let policy = Policy::compile(guardrails).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        Ok(Some(Arc::new(policy)))
    }
}

#[async_trait]
impl PolicySource for MemoryPolicies {
    fn put(&self, guardrail: Guardrail) {
        lock(&self.0).guardrails.insert(guardrail.id, guardrail);
    }

    fn delete(&self, id: GuardrailId) {
        lock(&self.0).guardrails.remove(&id);
    }

    fn assign(&self, workspace: Option<GuardrailId>, key: Option<GuardrailId>) {
        lock(&self.0).assigned = (workspace, key);
    }

    fn set_available(&self, available: bool) {
        lock(&self.0).is_unavailable = !available;
    }

    async fn show_changes(&self) {}

    async fn expire(&self) {}
}

impl Policies {
    /// Returns the fake.
    pub fn memory() -> Self {
        let policies = Arc::new(MemoryPolicies::default());
        Self { policies: Arc::clone(&policies) as _, source: policies }
    }
}
