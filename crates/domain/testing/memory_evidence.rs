//! Evidence in memory.

use std::collections::HashSet;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::memory_state::{State, StoredEvidence};
use super::memory_store::MemoryEvidence;
use crate::error::StoreError;
use crate::evidence::{
    Evidence, EvidenceFilter, EvidenceRepository, Label, LabelMode, LabelOutcome, LabelRepetition, NewLabel,
    PresetRequest,
};
use crate::ids::DecisionId;
use crate::repetition::StoredRepetition;
use crate::usage::{AnswerEvidence, UsageRecord};

impl State {
    /// Adds the evidence of a new record.
    pub(super) fn add_evidence(&mut self, record: &UsageRecord, evidence: Vec<AnswerEvidence>) {
        let Some(preset) = record.preset else { return };
        self.evidence.extend(evidence.into_iter().map(|answer| {
            let row = Evidence {
                id: record.id.clone(),
                workspace_id: record.workspace_id,
                preset,
                answer,
                created_at: record.created_at,
                label: None,
                cost: None,
                latency: None,
            };
            StoredEvidence { row, labels: Vec::new() }
        }));
    }

    /// Returns the matching rows with their current labels and the figures of their records.
    fn evidence(&self, matches: impl Fn(&Evidence) -> bool) -> Vec<Evidence> {
        let rows = self.evidence.iter().map(|StoredEvidence { row, labels }| {
            let record = self.usage.iter().find(|record| record.id == row.id);
            Evidence {
                label: labels.last().cloned(),
                cost: record.map(|record| record.cost),
                latency: record.map(|record| record.latency),
                ..row.clone()
            }
        });
        rows.filter(matches).collect()
    }
}

fn matches(filter: &EvidenceFilter, row: &Evidence) -> bool {
    let EvidenceFilter { preset, version, question, model, since, until, is_labelled, after } = filter;
    row.preset.id == *preset
        && version.is_none_or(|version| row.preset.version == version)
        && question.as_ref().is_none_or(|question| row.answer.question == *question)
        && model.as_ref().is_none_or(|model| row.answer.model.as_str() == model)
        && since.is_none_or(|since| row.created_at >= since)
        && until.is_none_or(|until| row.created_at < until)
        && is_labelled.is_none_or(|is_labelled| row.label.is_some() == is_labelled)
        && after.as_ref().is_none_or(|after| row.place() < *after)
}

#[async_trait]
impl EvidenceRepository for MemoryEvidence {
    async fn list(&self, filter: &EvidenceFilter, limit: u64) -> Result<Vec<Evidence>, StoreError> {
        let mut rows = self.0.state().evidence(|row| matches(filter, row));
        rows.sort_by_key(|row| std::cmp::Reverse(row.place()));
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(rows)
    }

    async fn find_presets(&self, ids: &[DecisionId]) -> Result<Vec<PresetRequest>, StoreError> {
        let rows = self.0.state().evidence(|row| ids.contains(&row.id));
        let request = |row: Evidence| PresetRequest { id: row.id, workspace_id: row.workspace_id, preset: row.preset };
        let mut found: Vec<PresetRequest> = rows.into_iter().map(request).collect();
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found.dedup();
        Ok(found)
    }

    async fn label<'a>(
        &self,
        labels: &[NewLabel],
        mode: LabelMode,
        by: &str,
        repetition: Option<LabelRepetition<'a>>,
    ) -> Result<Vec<LabelOutcome>, StoreError> {
        let (mut state, created_at) = (self.0.state(), self.0.now());
        if repetition.is_some_and(|(request, _)| state.repetition(&request.scope, created_at).is_some()) {
            return Err(StoreError::Repeated);
        }
        let before = state.evidence.clone();
        let outcomes = labels.iter().map(|new| {
            let is_answer =
                |stored: &&mut StoredEvidence| (&stored.row.id, stored.row.answer.position) == (&new.id, new.position);
            let Some(stored) = state.evidence.iter_mut().find(is_answer) else { return LabelOutcome::Unknown };
            let current = stored.labels.last();
            if current.is_some_and(|label| (&label.value, label.source) == (&new.value, new.source)) {
                return LabelOutcome::Unchanged;
            }
            let version = current.map_or(0, |label| label.version) + 1;
            if version > Label::MAX_VERSIONS {
                return LabelOutcome::TooMany;
            }
            let (value, source, created_by) = (new.value.clone(), new.source, by.to_owned());
            stored.labels.push(Label { version, value, source, created_by, created_at });
            LabelOutcome::Changed
        });
        let outcomes: Vec<LabelOutcome> = outcomes.collect();
        if mode == LabelMode::AllOrNone && outcomes.iter().any(|outcome| outcome.is_rejected()) {
            state.evidence = before;
        } else if let Some((request, respond)) = repetition {
            let stored = StoredRepetition { request: request.clone(), response: respond(&outcomes) };
            state.repetitions.insert(request.scope.clone(), (stored, created_at));
        }
        Ok(outcomes)
    }

    async fn versions(
        &self,
        id: &DecisionId,
        position: u32,
        newest: u32,
        limit: u64,
    ) -> Result<Vec<Label>, StoreError> {
        let state = self.0.state();
        let is_answer = |stored: &&StoredEvidence| (&stored.row.id, stored.row.answer.position) == (id, position);
        let labels = state.evidence.iter().find(is_answer).map(|stored| stored.labels.as_slice()).unwrap_or_default();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(labels.iter().rev().filter(|label| label.version <= newest).take(limit).cloned().collect())
    }

    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        let mut state = self.0.state();
        let mut old: Vec<_> = state.evidence.iter().map(|stored| stored.row.place()).collect();
        old.retain(|(at, ..)| *at < before);
        old.sort_unstable();
        old.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let old: HashSet<_> = old.into_iter().collect();
        state.evidence.retain(|stored| !old.contains(&stored.row.place()));
        Ok(old.len() as u64)
    }
}
