//! Assignments of keys to guardrails in memory.

use std::cmp::Reverse;

use async_trait::async_trait;

use super::memory_store::MemoryAssignments;
use crate::api_key::KeyReference;
use crate::audit::Actor;
use crate::change_feed::ChangeSubject;
use crate::error::StoreError;
use crate::guardrail::{AssignmentPage, GuardrailAssignments, KeyAssignment, keys_removed};
use crate::ids::GuardrailId;

#[async_trait]
impl GuardrailAssignments for MemoryAssignments {
    async fn list(&self, id: GuardrailId, offset: u64, limit: u64) -> Result<Option<AssignmentPage>, StoreError> {
        let state = self.0.state();
        if !state.guardrails.iter().any(|stored| stored.id == id) {
            return Ok(None);
        }
        let holding = state.keys.values().filter(|stored| !stored.deleted && stored.key.guardrail_id == Some(id));
        let mut assignments: Vec<KeyAssignment> = holding
            .map(|stored| KeyAssignment {
                guardrail_id: id,
                key_id: stored.key.id,
                key_hash: stored.key.hash,
                key_name: stored.key.name.clone(),
                key_label: stored.key.label.clone(),
                assigned_by: stored.assigned.as_ref().map(|(actor, _)| actor.clone()),
                assigned_at: stored.assigned.as_ref().map_or(stored.key.created_at, |(_, at)| *at),
            })
            .collect();
        assignments.sort_by_key(|assignment| (Reverse(assignment.assigned_at), assignment.key_id));
        let total = assignments.len() as u64;
        let (offset, limit) = (usize::try_from(offset), usize::try_from(limit));
        let page = assignments.into_iter().skip(offset.unwrap_or(usize::MAX)).take(limit.unwrap_or(usize::MAX));
        Ok(Some(AssignmentPage { assignments: page.collect(), total }))
    }

    async fn remove(&self, id: GuardrailId, keys: &[KeyReference], actor: &Actor) -> Result<Option<u64>, StoreError> {
        let mut state = self.0.state();
        let Some(guardrail) = state.guardrails.iter().find(|stored| stored.id == id) else { return Ok(None) };
        let workspace_id = guardrail.workspace_id;
        let (mut removed, mut hashes) = (Vec::new(), Vec::new());
        for name in keys {
            let Some(stored) = state.live_key(name).filter(|stored| stored.key.guardrail_id == Some(id)) else {
                continue;
            };
            (stored.key.guardrail_id, stored.assigned) = (None, None);
            removed.push(stored.key.id);
            hashes.push(stored.key.hash);
        }
        if !removed.is_empty() {
            state.changed(self.0.now(), ChangeSubject::keys_of(workspace_id, &hashes));
            state.note(&keys_removed(actor, id, &removed), self.0.now());
        }
        Ok(Some(removed.len() as u64))
    }
}
